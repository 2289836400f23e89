import { join } from 'node:path';

import t from 'tap';

import { readOptions } from '../../lib/operator/options.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { Pool } from '../../lib/torus/pool.js';
import { certificate } from '../support/certificate.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';

/** The shares of one source address at the TLS port, at the transient port of workers, and after a restart. */

const HOSTILE = '127.0.6.6';
const HONEST = '127.0.1.1';
const NOBODY = '11111111-2222-8333-8444-000000000000';
const PREFLIGHT = request('OPTIONS', '/join');
const JOIN = request('POST', '/join');

const ask = async (wire, bytes) => wire.send(bytes).read();

/** Opens a TLS connection. Returns its wire if it is served; null if the server closes it before the handshake. */
async function openServed(port, address) {
  try {
    const wire = await Wire.openTls(port, '127.0.0.1', address);
    return (await ask(wire, PREFLIGHT)).status === 204 ? wire : null;
  } catch {
    return null;
  }
}

t.test('connections of one address at the TLS port', async (t) => {
  const options = { drain: 0, 'tls-port': 0, ...certificate(temporary(t)) };
  const server = await startServer(t, { options: { ...options, 'address-connections': 3 } });
  const port = server.tlsPort;
  const wires = [];
  for (let n = 0; n < 3; n += 1) wires.push(await openServed(port, HOSTILE));
  t.ok(wires.every(Boolean), 'three are taken');
  t.equal(await openServed(port, HOSTILE), null, 'a fourth is closed');
  const other = await openServed(port, HONEST);
  t.ok(other, 'another address is welcome');
  const plain = await Wire.open(server.port, server.host, HOSTILE);
  t.equal(problemOf(await ask(plain, PREFLIGHT)), 'too-many-connections', 'one share for both');
  await plain.closed();
  await plain.destroy();
  await wires.pop().destroy();
  await server.until(({ tlsConnections }) => tlsConnections === 3);
  const reopened = await openServed(port, HOSTILE);
  t.ok(reopened, 'a place that was given back');
  await Promise.all([...wires, other, reopened].map((wire) => wire.destroy()));
  await server.assertNothingLeft();
  await server.stop();
});

t.test('shares of one address at the transient port', async (t) => {
  const share = (name, options, test) =>
    t.test(name, async (t) => {
      const server = await startServer(t, {
        options: { drain: 0, workers: 1, 'transient-port': 0, 'throw-rate': 0, ...options }
      });
      const at = (address) => Wire.open(server.transientPort, server.host, address);
      await test(t, server, { hostile: () => at(HOSTILE), honest: () => at(HONEST) });
      await server.stop();
    });

  share('places, by both ports together', { 'address-clients': 2 }, async (t, server, at) => {
    const [hostile, honest] = [await at.hostile(), await at.honest()];
    const { id } = (await ask(hostile, JOIN)).body;
    const main = await Wire.open(server.port, server.host, HOSTILE);
    t.equal((await ask(main, JOIN)).status, 201);
    for (const wire of [hostile, main]) {
      t.equal(problemOf(await ask(wire, JOIN)), 'too-many-clients');
    }
    t.equal((await ask(honest, JOIN)).status, 201, 'others are welcome');
    t.equal((await ask(hostile, request('POST', `/leave/${id}`))).status, 204);
    t.equal((await ask(hostile, JOIN)).status, 201, 'a place that was given back');
    await Promise.all([hostile, honest, main].map((wire) => wire.destroy()));
  });

  share('memory of sprites', { 'address-memory': '4K' }, async (t, server, at) => {
    const [hostile, honest] = [await at.hostile(), await at.honest()];
    const ids = [];
    for (const wire of [hostile, hostile, honest]) ids.push((await ask(wire, JOIN)).body.id);
    const outcomes = [];
    for (let n = 0; n < 5; n += 1) {
      const edge = ['left', 'right', 'up', 'down'][n % 4];
      const answer = await ask(
        hostile,
        request('POST', `/throw/${ids[n % 2]}/${edge}`, { body: '{}' })
      );
      outcomes.push(answer.status === 202 ? 202 : problemOf(answer));
    }
    t.strictSame(outcomes, [202, 202, 202, 202, 'too-many-sprites']);
    const own = request('POST', `/throw/${ids[2]}/left`, { body: '{}' });
    t.equal((await ask(honest, own)).status, 202, 'others throw');
    await Promise.all([hostile, honest].map((wire) => wire.destroy()));
  });

  share('connections', { 'address-connections': 2 }, async (t, server, at) => {
    const wires = [await at.hostile(), await at.hostile(), await at.hostile()];
    const statuses = [];
    for (const wire of wires) statuses.push((await ask(wire, PREFLIGHT)).status);
    t.strictSame(statuses, [204, 204, 503]);
    const honest = await at.honest();
    t.equal((await ask(honest, PREFLIGHT)).status, 204, 'others are served');
    await Promise.all([...wires, honest].map((wire) => wire.destroy()));
  });

  share('what is held', { 'address-held': '64K' }, async (t, server, at) => {
    // Bodies whose last byte does not come.
    const half = request('POST', `/throw/${NOBODY}/up`, { body: 'x'.repeat(15000) });
    const refused = [];
    const wires = [];
    for (let n = 0; n < 6; n += 1) {
      const { heldBytes } = await server.status();
      const wire = await at.hostile();
      wires.push(wire);
      wire.send(half.subarray(0, half.length - 1));
      wire.read().then(
        (answer) => refused.push(problemOf(answer)),
        () => {}
      );
      await server.until((now) => refused.length > 0 || now.heldBytes > heldBytes);
    }
    t.ok(refused.length > 0, 'the last are refused');
    t.ok(
      refused.every((problem) => problem === 'too-much-held'),
      refused.join()
    );
    const honest = await at.honest();
    t.equal((await ask(honest, JOIN)).status, 201, 'others are served');
    await Promise.all([...wires, honest].map((wire) => wire.destroy()));
  });
});

// ---- The same after a restart, however the run before has ended ---------------------------------

const SPRITE = Buffer.from('{"a":1}');
const OPTIONS = readOptions([
  ...['--address-clients', '2', '--address-memory', '4K', '--throw-rate', '0'],
  ...['--poll-rate', '0']
]);

function startPool(t, path) {
  const limits = new AddressLimits(OPTIONS);
  const pool = new Pool(OPTIONS, limits);
  t.teardown(() => pool.close());
  pool.openState({
    path,
    stateBytes: OPTIONS.stateBytes,
    journalBytes: OPTIONS.journalBytes,
    snapshotEvery: OPTIONS.snapshotEvery,
    sync: 'never'
  });
  return { pool, limits };
}

const RUN_ENDS = {
  'in order: a snapshot': (pool) => {
    pool.finishState();
    pool.closeState();
  },
  'without a word: a journal': (pool) => pool.closeState()
};

const stateIn = (t) => join(t.testdir(), 'state');

for (const [name, end] of Object.entries(RUN_ENDS)) {
  t.test(`after a run that has ended ${name}`, async (t) => {
    const path = stateIn(t);
    const first = startPool(t, path);
    const other = first.pool.join(HONEST).id;
    const hostile = [1, 2].map(() => first.pool.join(HOSTILE).id);
    // Round and round: each catches some of them.
    for (const edge of ['left', 'right', 'up', 'down']) {
      t.equal(first.pool.throw(hostile[0], edge, -1, SPRITE), 'queued');
    }
    // Its thrower leaves, and its sprites stay its address's.
    first.pool.leave(hostile[0]);
    end(first.pool);

    const { pool, limits } = startPool(t, path);
    t.equal(pool.status().waiting, 4);
    t.equal(pool.status().clients, 2);
    t.equal(pool.throw(hostile[1], 'left', -1, SPRITE), 'too-many-sprites');
    t.equal(pool.throw(other, 'left', -1, SPRITE), 'queued', 'others throw');
    t.equal(pool.join(HOSTILE).outcome, 'ok', 'the place that was given back');
    t.equal(pool.join(HOSTILE).outcome, 'too-many-clients', 'and no third');
    t.equal(pool.join(HONEST).outcome, 'ok', 'others join');

    // An end in order and one more start: the same again, and all is given back at the end.
    pool.finishState();
    pool.closeState();
    const last = startPool(t, path);
    t.equal(last.pool.join(HOSTILE).outcome, 'too-many-clients');
    for (const { id } of [{ id: other }, { id: hostile[1] }]) last.pool.leave(id);
    t.equal(last.pool.join(HOSTILE).outcome, 'ok');
    t.ok(limits.native.size() > 0);
  });
}
