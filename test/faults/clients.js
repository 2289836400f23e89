import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

import { stopwatch } from './scene.js';
import { until } from '../support/until.js';

/** Clients that are killed, and clients that are stopped. */

export const killed = {
  name: 'clients killed (SIGKILL)',
  promise: 'their places are free after the lease; their sprites fly on; nothing promised is lost',
  async run(scene) {
    const server = await scene.server({ lease: 2, hold: 5 });
    const clients = scene.short ? 20 : 60;
    await scene.crowd(server, { clients });
    const victims = await scene.crowd(server, { clients });
    await pause(scene.short ? 1500 : 4000);
    const took = stopwatch();
    victims.signal('SIGKILL');
    await server.until((status) => status.clients === clients, 15);
    const gone = took();
    const { expired } = await server.status();
    assert.equal(expired, clients, 'each of the killed has expired');
    assert.equal(scene.ledger.gone, 0, 'no survivor has lost its place');
    await pause(500);
    const account = await scene.account(server);
    const { flown } = await server.status();
    return `${clients} of ${2 * clients} killed, gone after ${gone} s, ${flown} flew on; ${account}`;
  }
};

export const stopped = {
  name: 'clients stopped (SIGSTOP)',
  promise: 'shorter than a hold: the same places; longer than hold and lease: gone, joins again',
  async run(scene) {
    const clients = 15;
    const server = await scene.server({ lease: 3, hold: 5 });
    await scene.crowd(server, { clients });
    const frozen = await scene.crowd(server, { clients });
    await pause(800);
    frozen.signal('SIGSTOP');
    // A stopped client's poll that a sprite has answered is a lease from its end.
    await pause(1000);
    frozen.signal('SIGCONT');
    await pause(1500);
    const early = await server.status();
    assert.equal(scene.ledger.gone, 0, 'a short stop costs nobody its place');
    assert.equal(early.clients, 2 * clients);
    frozen.signal('SIGSTOP');
    const took = stopwatch();
    await server.until((status) => status.expired === clients, 30);
    const gone = took();
    await pause(scene.short ? 500 : 3000);
    frozen.signal('SIGCONT');
    await until(() => scene.ledger.gone >= clients, 'all stopped clients are back', 20);
    await server.until((status) => status.clients === 2 * clients, 20);
    const account = await scene.account(server);
    return `1 s: all ${clients} kept; then gone after ${gone} s and back; ${account}`;
  }
};
