import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';

import { askFrom } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';

/** The source of a client's address: the connection, a proxy's header, or the PROXY protocol. */

/** Returns a client's address as the admin port reports it. Then makes the client leave. */
async function reportedAddress(server, id) {
  const client = await fetch(`http://127.0.0.1:${server.adminPort}/clients/${id}`);
  await server.leave(id);
  return (await client.json()).address;
}

/** Joins a client by a request like `how`. Returns its address, or the problem of the join. */
async function joinedAddress(server, how) {
  const joined = await askFrom(server, how);
  return joined.status === 201 ? reportedAddress(server, joined.body.id) : problemOf(joined);
}

t.test('without --trust-proxy no header is believed', async (t) => {
  const server = await startServer(t, { options: { 'address-joins': 1 } });
  for (const headers of [{ 'X-Forwarded-For': '192.0.2.1' }, { Forwarded: 'for=192.0.2.1' }]) {
    t.equal(await joinedAddress(server, { headers }), '127.0.0.1');
  }
  let joined;
  for (let i = 0; i < 40 && joined !== 'too-many-joins'; i += 1) {
    joined = await joinedAddress(server, { headers: { 'X-Forwarded-For': `192.0.2.${i}` } });
  }
  t.equal(joined, 'too-many-joins', 'whatever it claims to be');
  t.equal(await joinedAddress(server, { address: '127.0.0.2' }), '127.0.0.2', 'another may');
  const wire = await server.wire();
  wire.send('PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n').send(request('POST', '/join'));
  t.equal(problemOf(await server.read(wire)), 'bad-request');
  await wire.destroy();
});

/** Asserts that clients with these headers count for these addresses. */
async function assertAddresses(t, trust, addresses) {
  const server = await startServer(t, {
    options: { 'trust-proxy': trust, 'address-joins': 0, 'head-bytes': '64K' }
  });
  for (const [address, all] of Object.entries(addresses)) {
    for (const headers of all) {
      const text = JSON.stringify(headers).slice(0, 200);
      t.equal(await joinedAddress(server, { headers }), address, text);
    }
  }
}

/** More header lines than Node's default limit: by default Node would drop the last. */
const manyHeaders = Object.fromEntries(Array.from({ length: 2001 }, (_, i) => [`a${i}`, '']));

t.test('--trust-proxy x-forwarded-for: by that header alone', (t) =>
  assertAddresses(t, 'x-forwarded-for', {
    '192.0.2.1': [
      { 'X-Forwarded-For': '192.0.2.1' },
      { 'X-Forwarded-For': '198.51.100.7, 192.0.2.1' },
      { 'X-Forwarded-For': ' 192.0.2.1:5555 ' },
      { 'X-Forwarded-For': 'nonsense,\t192.0.2.1' },
      { 'X-Forwarded-For': '::ffff:192.0.2.1' },
      { Forwarded: 'for=198.51.100.8', 'X-Forwarded-For': '192.0.2.1' },
      { 'X-Forwarded-For': '198.51.100.9', 'x-forwarded-for': '192.0.2.1' },
      { ...manyHeaders, 'X-Forwarded-For': '192.0.2.1' }
    ],
    '2001:db8::': [
      { 'X-Forwarded-For': '2001:db8::1' },
      { 'X-Forwarded-For': '[2001:db8::2]:443' }
    ],
    '::': [{ 'X-Forwarded-For': '::1' }],
    '0.0.0.0': [{ 'X-Forwarded-For': '0.0.0.0' }],
    // The proxy's own address.
    '127.0.0.1': [
      {},
      { 'X-Forwarded-For': 'unknown' },
      { 'X-Forwarded-For': '192.0.2.1,' },
      { 'X-Forwarded-For': '999.0.2.1' },
      { Forwarded: 'for=198.51.100.10' }
    ]
  })
);

t.test('--trust-proxy forwarded: by RFC 7239 alone', (t) =>
  assertAddresses(t, 'forwarded', {
    '192.0.2.1': [
      { Forwarded: 'for=192.0.2.1' },
      { Forwarded: 'for=198.51.100.9, proto=http;FOR="192.0.2.1:80";by=203.0.113.1' },
      { Forwarded: 'for="a, for=198.51.100.9", for=192.0.2.1' },
      { Forwarded: 'for="\\"", for="192.0.2.\\1"' },
      { 'X-Forwarded-For': '198.51.100.7', Forwarded: 'for=192.0.2.1' },
      // A client's open quote does not swallow the line that the proxy adds.
      { Forwarded: 'for=198.51.100.9;x="', forwarded: 'for=192.0.2.1' },
      { ...manyHeaders, Forwarded: 'for=192.0.2.1' }
    ],
    '2001:db8::': [
      { Forwarded: 'for="[2001:db8::3]:443"' },
      { Forwarded: 'proto=https; for="[2001:db8::4]"' }
    ],
    '2001:db8:0:1::': [{ Forwarded: 'for="[2001:db8:0:1::1]"' }],
    '127.0.0.1': [
      {},
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
  })
);

/** Returns a header of the PROXY protocol, version 2. `command`: 1 PROXY, 0 LOCAL; `family`: 1 IPv4, 2 IPv6. */
function proxy2({ command = 1, version = 2, family = 1, source = [192, 0, 2, 1], extraBytes = 0 }) {
  const length = { 0: 0, 1: 12, 2: 36 }[family] + extraBytes;
  const rest = Buffer.alloc(length);
  if (family !== 0) Buffer.from(source).copy(rest);
  return Buffer.concat([
    Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1'),
    Buffer.from([(version << 4) | command, (family << 4) | 1, length >> 8, length & 255]),
    rest
  ]);
}

const proxy1 = (address) => `PROXY TCP4 ${address} 192.0.2.200 1000 80\r\n`;
const IPV6_ADDRESS = [0x20, 1, 0xd, 0xb8, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];

/** Starts a server that requires the PROXY protocol; its helpers send a PROXY header. */
function startProxied(t, options = {}) {
  return startServer(t, {
    options: { 'trust-proxy': 'proxy', 'address-joins': 0, ...options },
    greeting: 'PROXY UNKNOWN\r\n'
  });
}

t.test("--trust-proxy proxy: the proxy's word is, at the start of a connection", async (t) => {
  const server = await startProxied(t);

  t.test('whose address it says', async (t) => {
    const headers = { 'X-Forwarded-For': '192.0.2.77' };
    for (const [address, before] of [
      ['192.0.2.1', proxy1('192.0.2.1')],
      ['192.0.2.1', proxy2({})],
      ['192.0.2.1', proxy2({ extraBytes: 40 })],
      ['192.0.2.3', proxy2({ source: [192, 0, 2, 3] })],
      ['2001:db8:0:1::', proxy2({ family: 2, source: IPV6_ADDRESS })],
      ['2001:db8:0:1::', 'PROXY TCP6 2001:db8:0:1:2::2 2001:db8::9 1000 80\r\n'],
      // Headers without a client's address: the proxy's own counts.
      ['127.0.0.1', proxy2({ command: 0 })],
      ['127.0.0.1', proxy2({ family: 0 })],
      ['127.0.0.1', 'PROXY UNKNOWN\r\n'],
      ['127.0.0.1', 'PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n']
    ]) {
      const name = JSON.stringify(before.toString('latin1'));
      t.equal(await joinedAddress(server, { before, headers }), address, name);
    }
  });

  t.test('a byte at a time, and for what comes behind', async (t) => {
    for (const [address, before] of [
      ['192.0.2.50', proxy1('192.0.2.50')],
      ['192.0.2.51', proxy2({ source: [192, 0, 2, 51] })]
    ]) {
      const wire = await Wire.open(server.port);
      const expects = request('POST', '/join', { headers: { Expect: '100-continue' } });
      const all = [Buffer.from(before), request('GET', '/status'), expects];
      await wire.sendByteByByte(Buffer.concat(all).toString('latin1'));
      t.equal((await server.read(wire)).status, 200);
      let answer = await server.read(wire);
      if (answer.status === 100) answer = await server.read(wire);
      t.equal(await reportedAddress(server, answer.body.id), address);
      await wire.destroy();
    }
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
      proxy2({ extraBytes: 600 })
    ]) {
      const wire = await Wire.open(server.port);
      wire.send(bytes);
      await wire.closed();
      t.equal(wire.unreadBytes.length, 0, JSON.stringify(bytes.toString('latin1')));
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
  // After the join's answer the server has read those bytes.
  await server.join();
  greeted.send(text.slice(9));
  let ended = false;
  const drip = (async () => {
    // Some 40 s, if every byte extended the timeout by a second.
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
  t.equal(greeted.unreadBytes.length, 0, 'no 408 where nothing of a request has come');
  ended = true;
  await drip;
  await Promise.all([silent, dripping, greeted].map((wire) => wire.destroy()));
});
