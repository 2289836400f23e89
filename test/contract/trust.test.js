import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';

import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';
import { askFrom } from '../support/addresses.js';

/** What tells a client's address: the connection, or a proxy, by a header or by the PROXY protocol. */

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
const trusting = (t, trust) =>
  startServer(t, { options: { 'trust-proxy': trust, 'address-joins': 1 } });

t.test('without --trust-proxy no header is believed', async (t) => {
  const server = await trusting(t, 'none');
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
 * Holds that a request counts for its client's address.
 *
 * @param {object[][]} sources for each client, headers that say it is that one
 * @param {object[]} nameless headers that say nothing: then it is the proxy's own address
 */
async function tellApart(t, trust, sources, nameless) {
  const server = await startServer(t, {
    options: { 'trust-proxy': trust, 'address-joins': 1, 'head-bytes': '64K' }
  });
  for (const all of [...sources, [{}, ...nameless]]) {
    t.equal(refusalOf(await askFrom(server, { headers: all[0] })), 'joined', 'a new address');
    for (const headers of all) {
      const text = JSON.stringify(headers).slice(0, 200);
      // Another address would have ten joins; what time gives back meanwhile is fewer.
      t.equal(await exhaust(server, { headers: all[0] }), 'too-many-joins');
      t.equal(await exhaust(server, { headers }, 5), 'too-many-joins', text);
    }
  }
}

/** So many header lines that Node, left alone, would not see the last. */
const many = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`a${i}`, '']));

t.test('--trust-proxy x-forwarded-for: by that header alone', (t) =>
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
      [{ 'X-Forwarded-For': '192.0.2.1, 192.0.2.3' }],
      [{ 'X-Forwarded-For': '::1' }],
      [{ 'X-Forwarded-For': '0.0.0.0' }]
    ],
    [
      { 'X-Forwarded-For': 'unknown' },
      { 'X-Forwarded-For': '192.0.2.1,' },
      { 'X-Forwarded-For': '999.0.2.1' },
      { Forwarded: 'for=198.51.100.10' }
    ]
  )
);

t.test('--trust-proxy forwarded: by RFC 7239 alone', (t) =>
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
      [{ Forwarded: 'for="[2001:db8::3]:443"' }, { Forwarded: 'proto=https; for="[2001:db8::4]"' }],
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
    t.equal(await exhaust(server, { before: proxy2({ command: 0, family: 0 }) }), 'too-many-joins');
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
  const greeted = await Wire.open(server.port);
  greeted.send(text.slice(0, 9));
  // The server has read those.
  await server.join();
  greeted.send(text.slice(9));
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
  await greeted.closed();
  t.equal(greeted.leftOver.length, 0, 'no 408 where nothing of a request has come');
  ended = true;
  await drip;
  await Promise.all([silent, dripping, greeted].map((wire) => wire.destroy()));
});

const proxy1 = (address) => `PROXY TCP4 ${address} 192.0.2.200 1000 80\r\n`;

/** A server that only a proxy may speak to, as the helpers then do. */
function startProxied(t, options = {}) {
  return startServer(t, {
    options: { 'trust-proxy': 'proxy', 'address-joins': 1, ...options },
    greeting: 'PROXY UNKNOWN\r\n'
  });
}
