import { statSync } from 'node:fs';
import path from 'node:path';
import t from 'tap';

import { AddressLimits } from '../../lib/torus/address-limits.js';
import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';
import { problemOf } from '../support/contract.js';
import { request } from '../support/http.js';
import { launchToEnd } from '../support/launch.js';
import { startServer } from '../support/server.js';
import { askFrom, from } from '../support/addresses.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';

/**
 * Every bound a stranger may run into: it is an option, it has an answer, and the answer comes when
 * the bound is reached, not before.
 */

/** A hot request that every client may make. */
const LEAVE = '/leave/00000000-0000-4000-8000-000000000000';

/** A sprite of so many bytes. */
const spriteOf = (length) => `{"x":"${'x'.repeat(length - 8)}"}`;

/** Asserts a refusal at a bound: the problem, and when to come again where that helps. */
function refusal(t, answer, problem, status) {
  t.equal(problemOf(answer), problem);
  t.equal(answer.status, status);
  if (status === 429 || status === 503) t.match(answer.headers['retry-after'], /^[1-9]\d*$/);
}

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

bound('throws of one client', { 'throw-rate': 1, 'throw-burst': 3 }, async (t, server) => {
  const id = await server.join();
  const other = await server.join();
  const answers = [];
  // Three at once, and one more for each second that this takes.
  do answers.push(await server.throw(id, 'left'));
  while (answers.at(-1).status === 202 && answers.length < 40);
  t.ok(answers.length > 3, `${answers.length - 1} were taken`);
  refusal(t, answers.at(-1), 'too-many-throws', 429);
  t.equal((await server.throw(other, 'left')).status, 202, 'another client is still welcome');
});

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
  refusal(t, refused, 'too-many-joins', 429);
  const elsewhere = await askFrom(server, { address: '127.0.0.2' });
  t.equal(elsewhere.status, 201, 'another address is still welcome');
  t.equal((await server.throw(ids[0], 'left')).status, 202, 'and clients that have joined are');
  for (const id of [...ids, elsewhere.body.id]) await server.leave(id);
});

t.test('IPv6 counts by its /64, IPv4 by the address, and a mapped one as IPv4', async (t) => {
  const limits = new AddressLimits({ ...readOptions([]), addressJoins: 1 });
  const pool = new Pool({ ...readOptions([]), capacity: 100 }, limits);
  t.teardown(() => pool.close());
  // An address may join ten times its rate at once.
  const may = (address) =>
    Array.from({ length: 10 }, () => pool.join(address).outcome).every((it) => it === 'ok');
  t.equal(may('2001:db8:0:1::1'), true);
  t.equal(may('2001:db8:0:1:ffff::2'), false, 'the same /64');
  t.equal(may('2001:db8:0:2::1'), true, 'another one');
  t.equal(may('192.0.2.1'), true);
  t.equal(may('::ffff:192.0.2.1'), false, 'the same, mapped');
  t.equal(may('192.0.2.2'), true);
  t.equal(may('::1'), true);
  t.equal(may('0.0.0.0'), true, "the loopback network is not IPv4's");
});

bound('connections from one source address', { 'address-connections': 3 }, async (t, server) => {
  const elsewhere = await from('127.0.0.2', server.port);
  await server.noConnectionBut(1);
  // The connections of /status are this address's too: they have gone before the next comes.
  const wires = await Promise.all(Array.from({ length: 3 }, () => server.wire()));
  // By two workers the last to connect may be the first to be let in.
  await until(async () => (await server.inside()).connections === 4, 'they are let in');
  const late = await server.wire();
  refusal(t, await server.read(late), 'too-many-connections', 503);
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
  refusal(t, await server.read(late), 'too-many-connections', 503);
  await late.closed();
  t.equal(late.leftOver.length, 0, 'one answer and no other');
  await Promise.all([...wires, late].map((wire) => wire.destroy()));
  await server.noConnectionBut(0);
  t.equal((await server.status()).joined, 0, 'no client has joined');
});

bound(
  'connections in all, whose requests JavaScript handles',
  { connections: 8 },
  async (t, server) => {
    const wires = await Promise.all(Array.from({ length: 8 }, () => server.wire()));
    for (const wire of wires) {
      wire.send(request('GET', '/place/nobody'));
      t.equal((await server.read(wire)).status, 404);
    }
    const late = await server.wire();
    late.send(request('POST', '/join'));
    refusal(t, await server.read(late), 'too-many-connections', 503);
    await late.destroy();
    await wires.pop().destroy();
    let next;
    await until(async () => {
      next = await server.wire();
      next.send(request('POST', LEAVE));
      if ((await server.read(next)).status === 204) return true;
      await next.destroy();
      return false;
    }, 'one that goes makes room');
    await Promise.all([...wires, next].map((wire) => wire.destroy()));
    await server.noConnectionBut(0);
    t.equal((await server.status()).joined, 0, 'no client has joined');
  }
);

bound('the bytes of a head', { 'head-bytes': '6K' }, async (t, server) => {
  const headers = (length) => ({ headers: { 'X-Long': 'x'.repeat(length) } });
  t.equal((await server.ask('GET', '/status', headers(5000))).status, 200);
  refusal(t, await server.ask('GET', '/status', headers(7000)), 'head-too-large', 431);
});

bound('the time of a head', { 'head-time': 1, 'body-time': 60 }, async (t, server) => {
  const wire = await server.wire();
  wire.send('POST /join HTTP/1.1\r\nHost: a\r\n');
  refusal(t, await server.read(wire), 'request-timeout', 408);
  await wire.closed();
});

bound('the time of a body', { 'head-time': 1, 'body-time': 2 }, async (t, server) => {
  const id = await server.join();
  const wire = await server.wire();
  wire.send(request('POST', `/throw/${id}/left`, { headers: { 'Content-Length': '20' } }));
  wire.send('{"half":');
  refusal(t, await server.read(wire), 'request-timeout', 408);
  // What comes too late is no throw.
  wire.send('         1}}');
  await wire.closed();
  t.equal((await server.status()).thrown, 0);
});

bound('the time between requests', { 'idle-time': 1 }, async (t, server) => {
  const wire = await server.wire();
  wire.send(request('POST', LEAVE));
  t.equal((await server.read(wire)).status, 204);
  await wire.closed();
  t.equal(wire.leftOver.length, 0, 'closed without a word');
});

bound('the bytes of a sprite', { 'max-sprite': 100 }, async (t, server) => {
  const id = await server.join();
  t.equal((await server.throw(id, 'left', spriteOf(100))).status, 202);
  refusal(t, await server.throw(id, 'left', spriteOf(101)), 'sprite-too-large', 413);
});

bound('the sprites of a mailbox', { mailbox: 2 }, async (t, server) => {
  const id = await server.join();
  for (let i = 0; i < 2; i++) t.equal((await server.throw(id, 'left')).body.state, 'queued');
  refusal(t, await server.throw(id, 'left'), 'neighbor-busy', 503);
  await server.poll(id);
  const { answer } = await server.park(id, 'ack=2');
  t.equal((await server.throw(id, 'left')).body.state, 'delivered', 'once it was read on');
  t.equal((await answer).body.seq, 3);
});

bound('the bytes of a mailbox', { 'mailbox-bytes': 400, 'max-sprite': 200 }, async (t, server) => {
  const id = await server.join();
  t.equal((await server.throw(id, 'left', spriteOf(200))).body.state, 'queued');
  refusal(t, await server.throw(id, 'left', spriteOf(200)), 'neighbor-busy', 503);
  t.equal((await server.throw(id, 'left', spriteOf(50))).body.state, 'queued', 'a small one fits');
  t.ok((await server.status()).mailboxBytes <= 400);
});

bound(
  'the memory of all mailboxes',
  { 'mailbox-memory': 600, 'mailbox-bytes': 400, 'max-sprite': 200, mailbox: 4 },
  async (t, server) => {
    const [one, other] = [await server.join(), await server.join()];
    for (const id of [one, other]) {
      t.equal((await server.throw(id, 'left', spriteOf(200))).body.state, 'queued');
    }
    refusal(t, await server.throw(one, 'left', spriteOf(150)), 'mailboxes-full', 503);
    t.ok((await server.status()).mailboxBytes <= 600);
  }
);

bound('places in the torus', { capacity: 2 }, async (t, server) => {
  const id = await server.join();
  await server.join();
  refusal(t, await server.ask('POST', '/join'), 'torus-full', 503);
  await server.leave(id);
  t.equal(typeof (await server.join()), 'string', 'as soon as a client leaves there is a place');
});

bound('the bytes of an answer', { 'answer-bytes': 250, 'max-sprite': 100 }, async (t, server) => {
  const id = await server.join();
  for (let i = 0; i < 5; i++) await server.throw(id, 'left', spriteOf(100));
  const seen = [];
  for (let ack = 0; seen.length < 5;) {
    const { body } = await server.poll(id, `ack=${ack}`);
    t.ok(body.sprites.length > 0 && body.sprites.length <= 2, 'no more than fit');
    seen.push(...body.sprites.map(({ seq }) => seq));
    ack = body.seq;
  }
  t.strictSame(seen, [1, 2, 3, 4, 5], 'the others come in the next polls');
});

t.test('the bytes of a state: a larger one is neither written nor read', async (t) => {
  const dir = temporary(t);
  const state = path.join(dir, 'state');
  const fill = async (bytes) => {
    const server = await startServer(t, { options: { state, 'state-bytes': bytes, drain: 0 } });
    const id = await server.join();
    await server.throw(id, 'left', spriteOf(2000));
    server.child.kill('SIGTERM');
    return { server, ...(await server.ended()) };
  };
  const small = await fill('1K');
  t.equal(small.code, 1);
  t.match(
    Buffer.concat(small.server.errors).toString(),
    /no snapshot can be written \(the state has \d+ bytes, .*allows 1024\); the journal beside it stays/
  );
  t.throws(() => statSync(state), { code: 'ENOENT' }, 'nothing is written');
  t.equal((await fill('16K')).code, 0, 'the journal was there, and has it all');
  t.ok(statSync(state).size > 1024);
  const again = await launchToEnd(t, { state, 'state-bytes': '1K' });
  t.equal(again.code, 1);
  t.match(again.errors, /is not used, and left as it is/);
  t.ok(statSync(state).size > 1024, 'and so it is');
});
