import { statSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';

import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { launchToEnd } from '../support/launch.js';
import { startServer } from '../support/server.js';
import { askFrom } from '../support/addresses.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';

/**
 * Every bound a stranger may run into: it is an option, it has an answer, and the answer comes when
 * the bound is reached, not before.
 */

/** A hot request that every client may make. */
const LEAVE = '/leave/00000000-0000-4000-8000-000000000000';

/** Runs one test against a server of its own that must come to nothing. */
function bound(name, options, test) {
  t.test(name, async (t) => {
    const server = await startServer(t, { options });
    await test(t, server);
    await server.leaveNothing();
    const { connections, heldBytes = 0 } = await server.until(
      (status) => status.connections <= 1 && !(status.heldBytes > 0)
    );
    t.strictSame(
      { connections: Math.max(1, connections), heldBytes },
      { connections: 1, heldBytes: 0 },
      'only the connection that asks is left'
    );
    await server.stop();
  });
}

bound('joins from one source address', { 'address-joins': 1 }, async (t, server) => {
  const ids = [];
  let refused;
  // Ten at once, and one more for each second that this takes.
  while (refused === undefined && ids.length < 40) {
    const answer = await askFrom(server);
    if (answer.status === 201) ids.push(answer.body.id);
    else refused = answer;
  }
  t.ok(ids.length >= 10, `${ids.length} joined`);
  t.equal(problemOf(refused), 'too-many-joins');
  const elsewhere = await askFrom(server, { address: '127.0.0.2' });
  t.equal(elsewhere.status, 201, 'another address is still welcome');
  t.equal((await server.throw(ids[0], 'left')).status, 202, 'and clients that have joined are');
  for (const id of [...ids, elsewhere.body.id]) await server.leave(id);
});

bound('connections from one source address', { 'address-connections': 3 }, async (t, server) => {
  const elsewhere = await Wire.open(server.port, server.host, '127.0.0.2');
  await server.noConnectionBut(1);
  // The connections of /status are this address's too: they have gone before the next comes.
  const wires = await Promise.all(Array.from({ length: 3 }, () => server.wire()));
  // By two workers the last to connect may be the first to be let in.
  await until(async () => (await server.inside()).connections === 4, 'they are let in');
  const late = await server.wire();
  t.equal(problemOf(await server.read(late)), 'too-many-connections');
  await late.closed();
  const status = request('GET', '/place/nobody');
  t.equal(
    ((await wires[0].send(status)) && (await server.read(wires[0]))).status,
    404,
    'those that are there are served'
  );
  elsewhere.send(request('POST', LEAVE));
  t.equal((await server.read(elsewhere)).status, 204, 'another address is still welcome');
  await Promise.all([...wires, late, elsewhere].map((wire) => wire.destroy()));
  await server.noConnectionBut(0);
  t.equal((await server.status()).connectionsRefused, 1);
});

bound('connections in all', { connections: 4 }, async (t, server) => {
  const wires = await Promise.all(Array.from({ length: 4 }, () => server.wire()));
  for (const wire of wires) {
    wire.send(request('POST', LEAVE));
    t.equal((await server.read(wire)).status, 204);
  }
  const late = await server.wire();
  // What it sends all the same has no effect.
  late.send(request('POST', '/join'));
  t.equal(problemOf(await server.read(late)), 'too-many-connections');
  await late.closed();
  t.equal(late.leftOver.length, 0, 'one answer and no other');
  await Promise.all([...wires, late].map((wire) => wire.destroy()));
  await server.noConnectionBut(0);
  t.equal((await server.status()).joined, 0, 'no client has joined');
});

bound('the bytes of a head', { 'head-bytes': '6K' }, async (t, server) => {
  const headers = (length) => ({ headers: { 'X-Long': 'x'.repeat(length) } });
  t.equal((await server.ask('GET', '/status', headers(5000))).status, 200);
  t.equal(problemOf(await server.ask('GET', '/status', headers(7000))), 'head-too-large');
});

t.test('the bytes of a state: a larger one is neither written nor read', async (t) => {
  const dir = temporary(t);
  const state = path.join(dir, 'state');
  const fill = async (bytes) => {
    const server = await startServer(t, { options: { state, 'state-bytes': bytes, drain: 0 } });
    const id = await server.join();
    await server.throw(id, 'left', `{"x":"${'x'.repeat(2000)}"}`);
    server.child.kill('SIGTERM');
    return { server, ...(await server.ended()) };
  };
  const small = await fill('1K');
  t.equal(small.code, 1);
  t.match(
    Buffer.concat(small.server.errors).toString(),
    /no snapshot can be written \(the state has \d+ bytes, .*allows 1024\); the next start goes on from what is there/
  );
  t.throws(() => statSync(state), { code: 'ENOENT' }, 'nothing is written');
  t.equal((await fill('16K')).code, 0, 'the journal was there, and has it all');
  t.ok(statSync(state).size > 1024);
  const again = await launchToEnd(t, { state, 'state-bytes': '1K' });
  t.equal(again.code, 1);
  t.match(again.errors, /is not used, and left as it is/);
  t.ok(statSync(state).size > 1024, 'and so it is');
});
