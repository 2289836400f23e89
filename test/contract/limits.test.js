import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { connect } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';

import { AddressLimits } from '../../lib/server/address-limits.js';
import { readOptions, table } from '../../lib/server/options.js';
import { Pool } from '../../lib/server/pool.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { DOORS, ROOT, startServer } from '../support/server.js';
import { childrenOf } from '../support/processes.js';

/**
 * Every bound a stranger may run into: it is an option, it has an answer, and the answer comes when
 * the bound is reached, not before.
 */

/** A hot request that anybody may make. */
const LEAVE = '/leave/00000000-0000-4000-8000-000000000000';

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

/** A sprite of so many bytes. */
const spriteOf = (length) => `{"x":"${'x'.repeat(length - 8)}"}`;

/** Connects from an address of the loopback network. */
function from(localAddress, port) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(new Wire(socket));
    });
  });
}

/** One request over a connection of its own, from an address or behind a proxy's header. */
async function askFrom(
  server,
  { address = '127.0.0.1', before = '', headers } = {},
  method = 'POST',
  target = '/join'
) {
  const wire = await from(address, server.port);
  if (before.length > 0) wire.send(before);
  wire.send(request(method, target, { headers }));
  try {
    return await server.read(wire);
  } finally {
    await wire.destroy();
  }
}

/** Asserts a refusal at a bound: the problem, and when to come again where that helps. */
function refusal(t, answer, problem, status) {
  t.equal(problemOf(answer), problem);
  t.equal(answer.status, status);
  if (status === 429 || status === 503) t.match(answer.headers['retry-after'], /^[1-9]\d*$/);
}

/** Runs one test by each way in, each against a server of its own that must come to nothing. */
function bound(name, options, test, doors = DOORS) {
  for (const door of doors) {
    t.test(`${name}, by the way in "${door}"`, async (t) => {
      const server = await startServer(t, { door, options });
      await test(t, server, door);
      await server.leaveNothing();
      const { connections, heldBytes = 0 } = await server.until(
        (status) => status.connections <= 1
      );
      t.strictSame(
        { connections, heldBytes },
        { connections: 1, heldBytes: 0 },
        'only the connection that asks is left'
      );
      await server.stop();
    });
  }
}

bound('throws of one client', { 'throw-rate': 1, 'throw-burst': 3 }, async (t, server) => {
  const id = await server.join();
  const other = await server.join();
  for (let i = 0; i < 3; i++) t.equal((await server.throw(id, 'left')).status, 202);
  refusal(t, await server.throw(id, 'left'), 'too-many-throws', 429);
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
  t.equal((await server.throw(ids[0], 'left')).status, 202, 'and those who have joined are');
  for (const id of [...ids, elsewhere.body.id]) await server.leave(id);
});

t.test('IPv6 counts by its /64, IPv4 by the address, and a mapped one as IPv4', async (t) => {
  const limits = new AddressLimits({ ...readOptions([]), addressConnections: 1, addressJoins: 1 });
  const pool = new Pool({ ...readOptions([]), capacity: 100 }, limits);
  t.teardown(() => pool.close());
  const sources = limits.native;
  const open = (address) => sources.open(address);
  // An address may join ten times its rate at once.
  const join = (address) =>
    Array.from({ length: 10 }, () => pool.join(address).outcome).every((it) => it === 'ok');
  for (const may of [open, join]) {
    t.equal(may('2001:db8:0:1::1'), true);
    t.equal(may('2001:db8:0:1:ffff::2'), false, 'the same /64');
    t.equal(may('2001:db8:0:2::1'), true, 'another one');
    t.equal(may('192.0.2.1'), true);
    t.equal(may('::ffff:192.0.2.1'), false, 'the same, mapped');
    t.equal(may('192.0.2.2'), true);
    t.equal(may('::1'), true);
    t.equal(may('0.0.0.0'), true, "the loopback network is not IPv4's");
  }
  sources.close('2001:db8:0:1::3');
  t.equal(sources.open('2001:db8:0:1::4'), true, 'a place that was given back');
});

bound(
  'connections from one source address',
  { 'address-connections': 3 },
  async (t, server, door) => {
    const elsewhere = await from('127.0.0.2', server.port);
    await server.noConnectionBut(1);
    // The connections of /status are this address's too: they have gone before the next comes.
    const wires = await Promise.all(Array.from({ length: 3 }, () => server.wire()));
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
    if (door === 'native') t.equal((await server.status()).connectionsRefused, 1);
  }
);

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
  t.equal((await server.status()).joined, 0, 'nobody has joined');
});

bound(
  'connections that Node holds',
  { 'handed-over': 2 },
  async (t, server) => {
    const wires = await Promise.all(Array.from({ length: 2 }, () => server.wire()));
    for (const wire of wires) {
      wire.send(request('GET', '/status?by=node'));
      t.equal((await server.read(wire)).status, 200);
    }
    const late = await server.wire();
    late.send(request('POST', '/join', { headers: { Expect: '100-continue' } }));
    refusal(t, await server.read(late), 'too-many-connections', 503);
    const hot = await server.wire();
    hot.send(request('POST', LEAVE));
    t.equal((await server.read(hot)).status, 204, 'hot requests are still welcome');
    await Promise.all([...wires, late, hot].map((wire) => wire.destroy()));
    await server.noConnectionBut(0);
    t.equal((await server.status()).joined, 0, 'the one refused has not joined');
  },
  ['native'].filter((door) => DOORS.includes(door))
);

bound(
  'connections in all, those that Node holds among them',
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
    await server.noConnectionBut(7);
    const next = await server.wire();
    next.send(request('POST', LEAVE));
    t.equal((await server.read(next)).status, 204, 'one that goes makes room');
    await Promise.all([...wires, next].map((wire) => wire.destroy()));
    await server.noConnectionBut(0);
    t.equal((await server.status()).joined, 0, 'nobody has joined');
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
  t.equal(typeof (await server.join()), 'string', 'as soon as somebody leaves there is a place');
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
  const dir = mkdtempSync(path.join(tmpdir(), 'sprites-limits-'));
  t.teardown(() => rmSync(dir, { recursive: true }));
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
  t.match(Buffer.concat(small.server.errors).toString(), /the state is lost: --state .*\n$/);
  t.throws(() => statSync(state), { code: 'ENOENT' }, 'nothing is written');
  t.equal((await fill('4K')).code, 0);
  t.ok(statSync(state).size > 1024);
  const again = spawn(
    'env',
    [
      '-u',
      'NODE_OPTIONS',
      process.execPath,
      `${ROOT}bin/sprites`,
      '--port',
      '0',
      '--state',
      state,
      '--state-bytes',
      '1K'
    ],
    { stdio: ['ignore', 'ignore', 'pipe'] }
  );
  const said = [];
  again.stderr.on('data', (chunk) => said.push(chunk));
  const code = await new Promise((resolve) => {
    again.on('close', resolve);
  });
  t.equal(code, 1);
  t.match(Buffer.concat(said).toString(), /is not used, and left as it is/);
  t.ok(statSync(state).size > 1024, 'and so it is');
});

// ---- Whose word is taken for an address ---------------------------------------------------------

/** Fills an address's allowance by `most` joins at most; resolves to what ends it. */
async function exhaust(server, how, most = 40) {
  for (let i = 0; i < most; i++) {
    const answer = await askFrom(server, how);
    if (answer.status !== 201) return refusalOf(answer);
  }
  return 'never refused';
}

const refusalOf = (answer) => (answer.status === 201 ? 'joined' : problemOf(answer));

/** Starts a server that lets an address join ten times at once. */
const trusting = (t, door, trust) =>
  startServer(t, { door, options: { 'trust-proxy': trust, 'address-joins': 1 } });

for (const door of DOORS) {
  t.test(`without --trust-proxy nobody's word is taken, "${door}"`, async (t) => {
    const server = await trusting(t, door, 'none');
    t.equal(await exhaust(server), 'too-many-joins');
    for (const headers of [{ 'X-Forwarded-For': '192.0.2.1' }, { Forwarded: 'for=192.0.2.1' }]) {
      t.equal(await exhaust(server, { headers }), 'too-many-joins', 'another address, it claims');
    }
    const wire = await server.wire();
    wire.send('PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n').send(request('POST', '/join'));
    t.equal(problemOf(await server.read(wire)), 'bad-request');
    await wire.destroy();
  });

  /**
   * Holds that requests count as whose they are.
   *
   * @param {object[][]} sources for each client, headers that say it is that one
   * @param {object[]} nobody headers that say nothing: then it is the proxy's own address
   */
  async function tellApart(t, trust, sources, nobody) {
    const server = await startServer(t, {
      door,
      options: { 'trust-proxy': trust, 'address-joins': 1, 'head-bytes': '64K' }
    });
    for (const all of [...sources, [{}, ...nobody]]) {
      t.equal(refusalOf(await askFrom(server, { headers: all[0] })), 'joined', 'somebody new');
      for (const headers of all) {
        const text = JSON.stringify(headers).slice(0, 200);
        // Somebody else would have ten joins; what time gives back meanwhile is fewer.
        t.equal(await exhaust(server, { headers: all[0] }), 'too-many-joins');
        t.equal(await exhaust(server, { headers }, 5), 'too-many-joins', text);
      }
    }
  }

  /** So many header lines that Node, left alone, would not see the last. */
  const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`a${i}`, '']));

  t.test(`--trust-proxy x-forwarded-for: by that header alone, "${door}"`, (t) =>
    tellApart(
      t,
      'x-forwarded-for',
      [
        [
          { 'X-Forwarded-For': '192.0.2.1' },
          { 'X-Forwarded-For': '198.51.100.7, 192.0.2.1' },
          { 'X-Forwarded-For': ' 192.0.2.1:5555 ' },
          { 'X-Forwarded-For': 'nonsense,\t192.0.2.1' },
          { 'X-Forwarded-For': '::ffff:192.0.2.1' },
          { Forwarded: 'for=198.51.100.8', 'X-Forwarded-For': '192.0.2.1' },
          { 'X-Forwarded-For': '198.51.100.9', 'x-forwarded-for': '192.0.2.1' },
          { ...many, 'X-Forwarded-For': '192.0.2.1' }
        ],
        [{ 'X-Forwarded-For': '2001:db8::1' }, { 'X-Forwarded-For': '[2001:db8::2]:443' }],
        [{ 'X-Forwarded-For': '192.0.2.1, 192.0.2.3' }]
      ],
      [
        { 'X-Forwarded-For': 'unknown' },
        { 'X-Forwarded-For': '192.0.2.1,' },
        { 'X-Forwarded-For': '999.0.2.1' },
        { Forwarded: 'for=198.51.100.10' }
      ]
    )
  );

  t.test(`--trust-proxy forwarded: by RFC 7239 alone, "${door}"`, (t) =>
    tellApart(
      t,
      'forwarded',
      [
        [
          { Forwarded: 'for=192.0.2.1' },
          { Forwarded: 'for=198.51.100.9, proto=http;FOR="192.0.2.1:80";by=203.0.113.1' },
          { Forwarded: 'for="a, for=198.51.100.9", for=192.0.2.1' },
          { Forwarded: 'for="\\"", for="192.0.2.\\1"' },
          { 'X-Forwarded-For': '198.51.100.7', Forwarded: 'for=192.0.2.1' },
          // What a client leaves open does not reach into the line that the proxy adds.
          { Forwarded: 'for=198.51.100.9;x="', forwarded: 'for=192.0.2.1' },
          { ...many, Forwarded: 'for=192.0.2.1' }
        ],
        [
          { Forwarded: 'for="[2001:db8::3]:443"' },
          { Forwarded: 'proto=https; for="[2001:db8::4]"' }
        ],
        [{ Forwarded: 'for=192.0.2.1, for=192.0.2.4' }],
        [{ Forwarded: 'for="[2001:db8:0:1::1]"' }]
      ],
      [
        { Forwarded: 'for=_hidden' },
        { Forwarded: 'for=unknown' },
        { Forwarded: 'proto=http' },
        { Forwarded: '' },
        { Forwarded: 'for="' },
        { Forwarded: 'for=198.51.100.11;x=", for=192.0.2.1' },
        { Forwarded: 'for=198.51.100.12;for=198.51.100.13' },
        { Forwarded: 'for=198.51.100.14 for=198.51.100.15' },
        { 'X-Forwarded-For': '198.51.100.16' }
      ]
    )
  );
}

/** The PROXY protocol's version 2: command 1 is PROXY, 0 LOCAL; family 1 IPv4, 2 IPv6. */
function proxy2({ command = 1, version = 2, family = 1, source = [192, 0, 2, 1], more = 0 }) {
  const length = { 0: 0, 1: 12, 2: 36 }[family] + more;
  const rest = Buffer.alloc(length);
  if (family !== 0) Buffer.from(source).copy(rest);
  return Buffer.concat([
    Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    Buffer.from([(version << 4) | command, (family << 4) | 1, length >> 8, length & 255]),
    rest
  ]);
}

const SIX = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];

if (DOORS.includes('native')) {
  t.test("--trust-proxy proxy: the proxy's word is, at the start of a connection", async (t) => {
    const server = await startProxied(t);

    t.test('version 1 and version 2 say the same', async (t) => {
      t.equal(await exhaust(server, { before: proxy1('192.0.2.1') }), 'too-many-joins');
      for (const before of [proxy2({}), proxy2({ more: 40 })]) {
        t.equal(await exhaust(server, { before }), 'too-many-joins');
      }
      const headers = { 'X-Forwarded-For': '192.0.2.77' };
      t.equal(
        await exhaust(server, { before: proxy1('192.0.2.1'), headers }),
        'too-many-joins',
        'and no header is believed besides'
      );
      const before = proxy1('192.0.2.2');
      t.equal(refusalOf(await askFrom(server, { before })), 'joined', 'another client');
      t.equal(
        refusalOf(await askFrom(server, { before: proxy2({ source: [192, 0, 2, 3] }) })),
        'joined',
        'another client'
      );
    });

    t.test('IPv6', async (t) => {
      t.equal(
        await exhaust(server, { before: proxy2({ family: 2, source: SIX }) }),
        'too-many-joins'
      );
      t.equal(
        await exhaust(server, { before: 'PROXY TCP6 2001:db8:0:1:2::2 2001:db8::9 1000 80\r\n' }),
        'too-many-joins',
        'the same /64'
      );
      t.equal(
        refusalOf(
          await askFrom(server, { before: 'PROXY TCP6 2001:db8:0:2::1 2001:db8::9 1000 80\r\n' })
        ),
        'joined'
      );
    });

    t.test('LOCAL and UNKNOWN are the proxy itself', async (t) => {
      t.equal(
        await exhaust(server, { before: proxy2({ command: 0, family: 0 }) }),
        'too-many-joins'
      );
      for (const before of [
        'PROXY UNKNOWN\r\n',
        'PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n',
        proxy2({ family: 0 })
      ]) {
        t.equal(await exhaust(server, { before }), 'too-many-joins');
      }
    });

    t.test('a byte at a time', async (t) => {
      for (const before of [proxy1('192.0.2.50'), proxy2({ source: [192, 0, 2, 51] })]) {
        const wire = await Wire.open(server.port);
        await wire.sendByteByByte(
          Buffer.concat([Buffer.from(before), request('POST', '/join')]).toString('latin1')
        );
        t.equal((await server.read(wire)).status, 201);
        await wire.destroy();
      }
    });

    t.test('also for what Node serves, with the requests behind it', async (t) => {
      const wire = await Wire.open(server.port);
      wire.send(
        Buffer.concat([
          Buffer.from(proxy1('192.0.2.1')),
          request('GET', '/status'),
          request('POST', '/join', { headers: { Expect: '100-continue' } })
        ])
      );
      t.equal((await server.read(wire)).status, 200);
      let answer = await server.read(wire);
      if (answer.status === 100) answer = await server.read(wire);
      t.equal(problemOf(answer), 'too-many-joins');
      await wire.destroy();
    });

    t.test('a connection with no such header, or a bad one, is closed', async (t) => {
      for (const bytes of [
        request('POST', '/join'),
        'GET / HTTP/1.1\r\n',
        'PROXY TCP5 1.2.3.4 1.2.3.4 1 2\r\n',
        'PROXY TCP4 1.2.3 1.2.3.4 1 2\r\n',
        'PROXY TCP4\r\n',
        'PROXY \r\n',
        `PROXY TCP4 ${'1'.repeat(120)}`,
        'PROXy',
        '\r\n\r\n\r\n',
        proxy2({ version: 1 }),
        proxy2({ command: 2 }),
        proxy2({ more: 600 })
      ]) {
        const wire = await Wire.open(server.port);
        wire.send(bytes);
        await wire.closed();
        t.equal(wire.leftOver.length, 0, JSON.stringify(bytes.toString('latin1')));
        await wire.destroy();
      }
    });
  });

  t.test('a PROXY header that does not come, or drips in, is no way to stay', async (t) => {
    const server = await startProxied(t, { 'head-time': 1 });
    const silent = await Wire.open(server.port);
    const dripping = await Wire.open(server.port);
    const text = proxy1('192.0.2.1');
    let ended = false;
    const drip = (async () => {
      // Some forty seconds, if every byte bought another second.
      for (const byte of text) {
        dripping.send(byte);
        await pause(900);
        if (ended) return;
      }
      throw new Error('it could drip to the end');
    })();
    await silent.closed();
    await dripping.closed();
    ended = true;
    await drip;
    await Promise.all([silent.destroy(), dripping.destroy()]);
  });
}

const proxy1 = (address) => `PROXY TCP4 ${address} 192.0.2.200 1000 80\r\n`;

/** A server that only a proxy may speak to, as the helpers then do. */
function startProxied(t, options = {}) {
  return startServer(t, {
    options: { 'trust-proxy': 'proxy', 'address-joins': 1, ...options },
    greeting: 'PROXY UNKNOWN\r\n'
  });
}

// ---- The table ----------------------------------------------------------------------------------

t.test('every bound is an option with a default', async (t) => {
  const options = readOptions([]);
  for (const name of [
    'throwRate',
    'throwBurst',
    'addressJoins',
    'addressConnections',
    'connections',
    'handedOver',
    'headBytes',
    'headTime',
    'bodyTime',
    'idleTime',
    'writeTime',
    'maxSprite',
    'mailbox',
    'mailboxBytes',
    'mailboxMemory',
    'capacity',
    'answerBytes',
    'stateBytes'
  ]) {
    t.ok(Number.isSafeInteger(options[name]) && options[name] > 0, `${name}: ${options[name]}`);
  }
  t.equal(options.trustProxy, 'none');
  t.ok(table.every(({ help }) => help.length > 0));
});

t.test('a wrong option does not keep anybody from --help', async (t) => {
  t.strictSame(readOptions(['--port', 'x', '--help']), { help: true });
  t.strictSame(readOptions(['--nonsense', '--help']), { help: true });
  t.strictSame(readOptions(['--help'], { SPRITES_PORT: 'x' }), { help: true });
});

t.test('an empty variable is as good as none', async (t) => {
  t.equal(readOptions([], { SPRITES_PORT: '' }).port, readOptions([]).port);
  t.throws(() => readOptions(['--port', ''], {}), /--port takes/);
});

// ---- The log ------------------------------------------------------------------------------------

for (const door of DOORS) {
  t.test(`no id is logged in full, however much is logged, "${door}"`, async (t) => {
    const dir = mkdtempSync(path.join(tmpdir(), 'sprites-limits-'));
    t.teardown(() => rmSync(dir, { recursive: true }));
    const options = {
      'log-level': 'trace',
      capacity: 3,
      state: path.join(dir, 'state'),
      ...(door === 'native' ? { workers: 1, 'transient-port': 0 } : {})
    };
    const server = await startServer(t, { door, options });
    const ids = [await server.join(), await server.join(), await server.join()];
    await server.ask('POST', '/join');
    const { wire, answer } = await server.park(ids[0]);
    for (const id of ids) {
      await server.throw(id, 'left');
      await server.throw(id, 'nowhere');
      await server.throw(id, 'left', 'nonsense');
      await server.poll(id, 'ack=99');
      await server.ask('GET', `/place/${id}`);
      await server.ask('GET', `/page/${id}`);
    }
    await answer;
    await wire.reset();
    const garbage = await server.wire();
    garbage.send(`POST /throw/${ids[1]}/left HTTP/1.1\r\nbad header\r\n\r\n`);
    await server.read(garbage);
    if (door === 'native') {
      const [worker] = childrenOf(server.pid);
      process.kill(worker, 'SIGKILL');
      await server.until(({ workerDeaths, workers }) => workerDeaths === 1 && workers === 1);
    }
    const { answer: last } = await server.park(ids[2], 'ack=0').catch(() => ({}));
    await server.stop();
    await last?.catch(() => {});
    const log = Buffer.concat(server.errors).toString();
    t.match(log, /"msg":"state kept"/, 'there is a log');
    if (door === 'native') t.match(log, /SIGKILL/, 'and of the worker too');
    t.notMatch(log, ID);
    for (const id of ids) t.notOk(log.includes(id) || log.includes(id.replaceAll('-', '')));
  });
}
