import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { stopwatch } from './scene.js';

/** Clients that take their time. */

/** Sends `bytes` one a second, until the server answers. */
async function drip(server, first, bytes) {
  const took = stopwatch();
  const wire = await server.wire();
  wire.send(first);
  let answered = false;
  const answer = server.read(wire).finally(() => {
    answered = true;
  });
  answer.catch(() => {});
  for (let at = 0; at < bytes.length && !answered; at++) {
    wire.send(bytes.slice(at, at + 1));
    await Promise.race([answer, pause(1000)]);
  }
  const read = await answer;
  await wire.closed();
  return { problem: problemOf(read), status: read.status, seconds: took() };
}

export const slow = {
  name: 'slow by a byte a second',
  promise: '408 by --head-time for a head, by --body-time for a body; the connection ends',
  async run(scene) {
    const server = await scene.server({ 'head-time': 2, 'body-time': 4 });
    const id = await server.join();
    const head = request('GET', `/poll/${id}?ack=0`).toString();
    const whole = request('POST', `/throw/${id}/up`, {
      body: JSON.stringify({ a: 'x'.repeat(50) })
    }).toString();
    const cut = whole.indexOf('\r\n\r\n') + 4;
    const [ofHead, ofBody] = await Promise.all([
      drip(server, '', head),
      drip(server, whole.slice(0, cut), whole.slice(cut))
    ]);
    assert.equal(ofHead.problem, 'request-timeout');
    assert.equal(ofBody.problem, 'request-timeout');
    assert.ok(ofHead.seconds >= 1.9 && ofHead.seconds < 6, `head: ${ofHead.seconds} s`);
    assert.ok(ofBody.seconds >= 3.9 && ofBody.seconds < 9, `body: ${ofBody.seconds} s`);
    assert.equal((await server.status()).thrown, 0, 'a cut throw is none');
    await server.leaveNothing();
    return `head 408 at ${ofHead.seconds} s, body 408 at ${ofBody.seconds} s`;
  }
};

export const silent = {
  name: 'a thousand connect and say nothing',
  promise: 'closed by --head-time; all others are served meanwhile',
  async run(scene) {
    const count = 1000;
    const server = await scene.server({ 'head-time': 3 });
    const took = stopwatch();
    const wires = await Promise.all(Array.from({ length: count }, () => Wire.open(server.port)));
    scene.teardown(() => Promise.all(wires.map((wire) => wire.destroy())));
    const { connections } = await server.status();
    assert.ok(connections >= count, `${connections} are held`);
    await scene.crowd(server, { clients: 20, pace: 50 });
    await Promise.all(wires.map((wire) => wire.closed()));
    const closed = took();
    assert.ok(closed >= 2.9, `closed before their time, after ${closed} s`);
    const account = await scene.account(server);
    return `${count} closed after ${closed} s; meanwhile ${account}`;
  }
};
