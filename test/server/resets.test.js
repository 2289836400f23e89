import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as connectTls } from 'node:tls';

import t from 'tap';

import { lengthOf } from '../support/until.js';
import { listening } from '../support/addresses.js';
import { clientHello, request, resetSocket } from '../support/http.js';
import { startServer, startWithAllPorts } from '../support/server.js';

/**
 * Peers that reset their connection, at every moment of every kind of answer, by every port. A
 * socket without an error listener would end the process, and the torus with it.
 */

const NOBODY = '11111111-2222-8333-8444-000000000000';
const PROXY = 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n';

/** The parts of a chunked throw: head, chunk, last chunk. */
const CHUNKED = [
  `POST /throw/${NOBODY}/left HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n`,
  '2\r\n{}\r\n',
  '0\r\n\r\n'
];

/** Kinds of answers that are tested at the same time: each waits most of its time. */
const CONCURRENT_KINDS = 4;
/** The same at the admin port, which allows 64 connections, and 32 of one address. */
const CONCURRENT_ADMIN_KINDS = 2;

t.jobs = 2;

/** Actions on a test's socket in the same turn of the event loop as its reset. */
const SOCKET_ACTIONS = {
  nothing: () => {},
  'its end': (socket) => socket.end(),
  'its end, with bytes': (socket) => socket.end('bytes'),
  'its end, with more bytes than are read': (socket) => socket.end(Buffer.alloc(2 ** 25)),
  'another reset': resetSocket
};

t.test("a test's own reset closes its socket, whatever has begun", async (t) => {
  const peers = [];
  const server = createServer({ pauseOnConnect: true }, (peer) => {
    peers.push(peer.on('error', () => {}));
  });
  const port = await listening(t, server);
  for (const state of ['connected', 'connecting']) {
    for (const [what, begin] of Object.entries(SOCKET_ACTIONS)) {
      const socket = connect(port, '127.0.0.1');
      const closed = new Promise((resolve) => {
        socket.on('close', resolve).on('error', resolve);
      });
      if (state === 'connected') await once(socket, 'connect');
      begin(socket);
      resetSocket(socket);
      t.equal(await closed, false, `${state}, ${what}: closed without an error`);
    }
  }
  for (const peer of peers) peer.destroy();
});

const long = (length) => 'x'.repeat(length);

/** Number of resets of each kind at each moment, and bytes between two cuts. */
const TIMES = lengthOf({ short: 2, long: 4 });
const STEP = lengthOf({ short: 23, long: 9 });

const expecting = (what) =>
  request('POST', `/throw/${NOBODY}/left`, { headers: { Expect: what, 'Content-Length': 2 } });

/** Requests for every kind of answer. */
const KINDS = {
  connect: 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
  'connect with bytes behind it': 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\nand more',
  websocket: request('GET', '/status', {
    headers: { Connection: 'Upgrade', Upgrade: 'websocket', 'Sec-WebSocket-Version': 13 }
  }),
  'upgrade to HTTP/2': request('GET', '/', {
    headers: { Connection: 'Upgrade, HTTP2-Settings', Upgrade: 'h2c', 'HTTP2-Settings': '' }
  }),
  'preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
  'hot request': request('POST', `/leave/${NOBODY}`),
  'hot 404': request('GET', `/poll/${NOBODY}`),
  page: request('GET', '/'),
  head: request('HEAD', '/'),
  status: request('GET', '/status'),
  metrics: request('GET', '/metrics'),
  preflight: request('OPTIONS', '/join'),
  'not found': request('GET', '/nothing'),
  'wrong method': request('DELETE', '/join'),
  'no Host': 'GET / HTTP/1.1\r\n\r\n',
  garbage: 'nonsense\r\n\r\n',
  'garbage behind a request': `${request('GET', '/status')}nonsense\r\n\r\n`,
  'too long a head': request('GET', '/', { headers: { 'X-Long': long(20_000) } }),
  'too large a sprite': request('POST', `/throw/${NOBODY}/left`, { body: long(20_000) }),
  'too large, chunked': CHUNKED[0] + `5000\r\n${long(0x5000)}\r\n0\r\n\r\n`,
  chunked: CHUNKED.join(''),
  'chunked, half': CHUNKED.slice(0, 2).join(''),
  'chunked, broken': `${CHUNKED[0]}nonsense\r\n`,
  'expected, half': expecting('100-continue'),
  expected: `${expecting('100-continue')}{}`,
  'expected in vain': expecting('200-ok'),
  pipelined: Buffer.concat(Array(20).fill(request('GET', '/page/page.js')))
};

/** Actions of a connection between its last byte and its reset. */
const MOMENTS = {
  'at once': () => {},
  'at the first byte of the answer': (socket) => eventWithinPatience(socket, 'data'),
  'at the end of the answer': async (socket) => {
    const hasEnded = new Promise((resolve) => {
      socket.end(resolve);
    });
    await eventWithinPatience(socket, 'end');
    await hasEnded; // With TLS, resetSocket of the connection below can't see this end: see its comment.
  },
  'with the answer unread': async (socket, server) => {
    socket.pause();
    await server.status();
  }
};

/** Waits for an event, or for the connection's end. An error comes before that end, and is ignored. */
function eventOrEnd(socket, event) {
  return new Promise((resolve) => {
    socket.once(event, resolve);
    socket.once('close', resolve);
  });
}

/** Waits the same way for a part of the answer, at most 200 ms: an incomplete request gets no answer. */
function eventWithinPatience(socket, event) {
  socket.resume();
  return Promise.race([eventOrEnd(socket, event), pause(200, undefined, { ref: false })]);
}

/** Opens a connection that ignores its own errors. */
async function open(port) {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
  socket.on('error', () => {});
  await eventOrEnd(socket, 'connect');
  return socket;
}

/** Sends bytes, performs the actions of the moment, and resets the connection. */
async function resetPlain(port, bytes, moment, server) {
  const socket = await open(port);
  socket.write(bytes);
  await moment(socket, server);
  resetSocket(socket);
}

/** Does the same inside TLS. Resets the connection below. */
async function resetTls(port, bytes, moment, server) {
  const tcpSocket = await open(port);
  const socket = connectTls({ socket: tcpSocket, rejectUnauthorized: false, allowHalfOpen: true });
  socket.on('error', () => {});
  await eventOrEnd(socket, 'secureConnect');
  await new Promise((resolve) => {
    socket.write(bytes, resolve);
  });
  await moment(socket, server);
  resetSocket(tcpSocket);
  socket.destroy();
}

/** Calls `work` for all items, with at most `most` calls at a time. */
async function forEachAtMost(most, all, work) {
  const queue = all.values();
  await Promise.all(
    Array.from({ length: most }, async () => {
      for (const one of queue) await work(one);
    })
  );
}

/** Asserts that the server runs, and has logged no warning and no error. */
async function assertHealthy(t, server) {
  t.equal(server.child.exitCode, null, 'the server lives');
  t.strictSame(
    server.logLines.filter(({ level }) => level >= 40),
    [],
    'without a word'
  );
}

for (const workers of [0, 2]) {
  t.test(`resets cost no other client anything, with ${workers} workers`, async (t) => {
    const { server, ways } = await startWithAllPorts(t, { workers });
    t.afterEach(() => server.assertNothingLeft());

    for (const [way, { port }] of Object.entries(ways)) {
      const reset = way === 'tls' ? resetTls : resetPlain;
      t.test(`by ${way}`, async (t) => {
        const atOnce = way === 'admin' ? CONCURRENT_ADMIN_KINDS : CONCURRENT_KINDS;
        await forEachAtMost(atOnce, Object.entries(KINDS), async ([kind, bytes]) => {
          await Promise.all(
            Object.values(MOMENTS).flatMap((moment) =>
              Array.from({ length: TIMES }, () => reset(port, bytes, moment, server))
            )
          );
          await server.status();
          t.equal(server.child.exitCode, null, kind);
        });
        await assertHealthy(t, server);
      });

      t.test(`by ${way}, in the middle of what is sent`, async (t) => {
        for (const bytes of [KINDS.connect, KINDS.chunked, KINDS.expected, KINDS.page]) {
          for (let cut = 1; cut < bytes.length; cut += STEP) {
            await reset(port, bytes.slice(0, cut), () => server.status(), server);
          }
        }
        await assertHealthy(t, server);
      });
    }

    t.test('in the middle of a TLS handshake', async (t) => {
      const { port } = ways.tls;
      const hello = await clientHello();
      for (let cut = 0; cut < hello.length; cut += 23) {
        for (const when of ['at once', 'with the answer unread']) {
          await resetPlain(port, hello.subarray(0, cut), MOMENTS[when], server);
        }
      }
      await resetPlain(port, hello, MOMENTS['at the first byte of the answer'], server);
      await assertHealthy(t, server);
    });

    t.test('the server stops well', () => server.stop());
  });
}

t.test('resets behind a proxy of TCP', async (t) => {
  const server = await startServer(t, {
    options: { 'trust-proxy': 'proxy', drain: 0 },
    greeting: PROXY
  });
  await forEachAtMost(CONCURRENT_KINDS, Object.entries(KINDS), async ([kind, bytes]) => {
    const greeted = PROXY + bytes.toString('latin1');
    const resets = Object.values(MOMENTS).map((moment) =>
      resetPlain(server.port, greeted, moment, server)
    );
    await Promise.all(resets);
    t.equal((await server.status()).thrown, 0, kind);
  });
  for (let cut = 1; cut < PROXY.length; cut += 1) {
    await resetPlain(server.port, PROXY.slice(0, cut), MOMENTS['at once'], server);
  }
  await server.assertNothingLeft();
  await server.stop();
});

t.test('connections that are one too many are reset while they are told so', async (t) => {
  const server = await startServer(t, { options: { 'address-connections': 4, drain: 0 } });
  for (let held = 0; held < 4; held += 1) {
    await (await server.wire()).send(request('POST', `/leave/${NOBODY}`)).read();
  }
  for (const when of ['at once', 'at the first byte of the answer']) {
    for (let times = 0; times < 40; times += 1) {
      await resetPlain(server.port, KINDS.connect, MOMENTS[when], server);
    }
  }
  await server.assertNothingLeft();
  t.equal((await server.status()).thrown, 0, 'the server lives');
  await server.stop();
});
