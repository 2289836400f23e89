import { once } from 'node:events';
import net from 'node:net';
import { setImmediate as immediate } from 'node:timers/promises';
import t from 'tap';

import { createServer } from 'sprites-server';

import {
  alarms,
  bytes,
  headline,
  number,
  duration
} from '../../lib/operator/admin-page/admin-words.js';
import { createAdmin } from '../../lib/operator/admin.js';
import { History } from '../../lib/operator/history.js';
import { OverloadLog } from '../../lib/operator/overload-log.js';
import { lawOf } from '../../lib/report/words.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';

/** Starts an admin listener on a free port. */
async function start(t, { text = async () => 'a 1\n', ...options } = {}) {
  const metrics = { contentType: 'text/plain; version=0.0.4', text };
  const server = createAdmin({ port: 0, metrics, ...options });
  await once(server, 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, url: `http://127.0.0.1:${server.address().port}` };
}

/** Sends bytes, and reads until the server closes. */
async function exchangeRaw(server, bytes, localAddress = '127.0.0.1') {
  const socket = net.connect({ port: server.address().port, host: '127.0.0.1', localAddress });
  let text = '';
  socket
    .setEncoding('utf8')
    .on('data', (piece) => {
      text += piece;
    })
    .on('error', () => {});
  socket.write(bytes);
  await once(socket, 'close');
  return text;
}

/** A request that is answered for any host name, and ends its connection. */
const CLOSING_REQUEST = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';

const PROBLEM = 'application/problem+json';

t.test('what it answers', async (t) => {
  let problem;
  const shown = { status: () => ({ clients: 1, rss: 2 }), readinessProblem: () => problem };
  const { url } = await start(t, shown);
  const text = { 'content-type': 'text/plain; version=0.0.4', 'content-length': '4' };
  const allow = { allow: 'GET, HEAD', 'content-type': PROBLEM };
  for (const [method, path, status, headers, body] of [
    ['GET', '/metrics', 200, text, /^a 1\n$/],
    ['HEAD', '/metrics', 200, text, /^$/],
    ['GET', '/status', 200, { 'content-type': 'application/json' }, /^\{"clients":1,"rss":2\}\n$/],
    ['GET', '/readyz', 200, {}, /^ready\n$/],
    ['GET', '/healthz?verbose', 200, {}, /^ok\n$/],
    ...['/status/', '/metrics/', '/join', '/__proto__'].map((other) => [
      ...['GET', other, 404, { 'content-type': PROBLEM }],
      /"urn:sprites:not-found".*404.*\/healthz, \/readyz, \/metrics, \/status/
    ]),
    ...['POST', 'PUT', 'DELETE', 'OPTIONS'].map((other) => [
      ...[other, '/metrics', 405, allow, /"urn:sprites:method-not-allowed"/]
    ])
  ]) {
    const response = await fetch(url + path, { method });
    t.equal(response.status, status, `${method} ${path}`);
    t.match(Object.fromEntries(response.headers), { 'cache-control': 'no-store', ...headers });
    t.match(await response.text(), body);
  }
  problem = 'draining';
  const unready = await fetch(`${url}/readyz`);
  t.equal(unready.status, 503);
  t.ok(Number(unready.headers.get('retry-after')) > 0);
  t.match(await unready.json(), { type: 'urn:sprites:draining', status: 503 });
  t.equal((await fetch(`${url}/healthz`)).status, 200, 'it lives');
});

t.test('on loopback it is asked by an address, localhost or its own name alone', async (t) => {
  const statusOf = async ({ server }, path, ...lines) => {
    const head = [`GET ${path} HTTP/1.${lines.length > 0 ? 1 : 0}`, ...lines, 'Connection: close'];
    return (await exchangeRaw(server, `${head.join('\r\n')}\r\n\r\n`)).slice(9, 12);
  };
  const usual = await start(t);
  const named = await start(t, { host: 'LocalHost' });
  const { port } = usual.server.address();
  const own = ['127.0.0.1', `127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', '192.0.2.7:1'];
  for (const host of [...own, '[::1]', `[::1]:${port}`, '']) {
    t.equal(await statusOf(usual, '/metrics', `Host: ${host}`), '200', host);
  }
  t.equal(await statusOf(usual, '/metrics'), '200', 'HTTP/1.0 without a Host');
  for (const host of [
    ...['evil.example', `evil.example:${port}`, 'localhost.evil.example', '127.0.0.1.evil'],
    ...['a:1:2', '[localhost', 'xlocalhost', '[::1].evil', 'localhost@e']
  ]) {
    for (const path of ['/', '/status', '/metrics', '/admin-view.js', '/clients', '/nothing']) {
      t.equal(await statusOf(usual, path, `Host: ${host}`), '421', `${host}${path}`);
    }
    t.equal(await statusOf(usual, '/readyz', `Host: ${host}`), '200', 'balancers ask by any');
    t.equal(await statusOf(usual, '/healthz', `Host: ${host}`), '200');
  }
  const answer = await exchangeRaw(
    usual.server,
    'GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n'
  );
  t.match(answer, /urn:sprites:bad-host.*an address.*localhost.*--admin-host/s);
  t.equal(await statusOf(named, '/metrics', 'Host: LOCALHOST:1'), '200');
  const open = await start(t, { host: '0.0.0.0' });
  t.equal(await statusOf(open, '/metrics', 'Host: sprites.example'), '200', 'elsewhere by any');
});

t.test('metrics that fail answer 500, are reported, and end nothing', async (t) => {
  const errors = [];
  const { url } = await start(t, {
    text: async () => {
      throw new Error('broken');
    },
    onError: (error) => errors.push(error.message)
  });
  const response = await fetch(`${url}/metrics`);
  const body = await response.text();
  t.match(JSON.parse(body), { type: 'urn:sprites:internal-error', status: 500 });
  t.notMatch(body, 'broken', 'the reason is for the log');
  t.same(errors, ['broken']);
  t.equal((await fetch(`${url}/healthz`)).status, 200);
});

/** Connects from one of two addresses in turn: each may have half of all connections. */
const connectFrom = (server, n, more = {}) =>
  net.connect({
    port: server.address().port,
    host: '127.0.0.1',
    localAddress: `127.0.0.${2 + (n % 2)}`,
    ...more
  });

t.test('one address may have half of the connections', async (t) => {
  const { server } = await start(t);
  const openSockets = Array.from({ length: 40 }, () => connectFrom(server, 0));
  for (const socket of openSockets) {
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
  }
  // Connections above the limit are closed without an answer.
  await until(
    () => openSockets.filter((socket) => socket.destroyed || socket.readableEnded).length === 8
  );
  t.match(await exchangeRaw(server, CLOSING_REQUEST), /^HTTP\/1\.1 200 /, 'others are served');
  openSockets.forEach((socket) => socket.destroy());
  await until(async () =>
    (await exchangeRaw(server, CLOSING_REQUEST, '127.0.0.2')).startsWith('HTTP/1.1 200 ')
  );
});

t.test('the 65th connection is closed, until another one goes', async (t) => {
  const { server } = await start(t);
  const ask = 'GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n';
  const held = [];
  for (let i = 0; i < 64; i++) {
    const socket = connectFrom(server, i);
    t.teardown(() => socket.destroy());
    socket.write(ask);
    const [answer] = await once(socket, 'data');
    if (!answer.toString().startsWith('HTTP/1.1 200')) t.fail(`connection ${i + 1}: ${answer}`);
    held.push(socket);
  }
  t.equal(await exchangeRaw(server, ask), '', 'without an answer');
  held.pop().destroy();
  // The server notices the closed connection some time later.
  let text = '';
  while (text === '') text = await exchangeRaw(server, CLOSING_REQUEST);
  t.match(text, /^HTTP\/1\.1 200 /);
});

t.test('what is no request, or a head above 8 KiB, is answered and cut off', async (t) => {
  const { server } = await start(t);
  const head = (bytes) => {
    const prefix = 'GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX: ';
    return `${prefix}${'x'.repeat(bytes - prefix.length - 4)}\r\n\r\n`;
  };
  t.match(await exchangeRaw(server, head(8000)), /^HTTP\/1\.1 200 /);
  for (const bytes of [8400, 20_000]) {
    t.match(
      await exchangeRaw(server, head(bytes)),
      /^HTTP\/1\.1 431 .*urn:sprites:head-too-large/s
    );
  }
  t.match(
    await exchangeRaw(server, 'nonsense\r\n\r\n'),
    /^HTTP\/1\.1 400 .*urn:sprites:bad-request/s
  );
});

t.test('a connection that is silent until it is answered 408 is closed', async (t) => {
  const { server } = await start(t);
  const silent = Array.from({ length: 64 }, (_, n) => {
    const socket = connectFrom(server, n, { allowHalfOpen: true });
    socket.on('error', () => {});
    t.teardown(() => socket.destroy());
    return socket;
  });
  const answers = await Promise.all(silent.map((socket) => once(socket, 'data')));
  for (const [answer] of answers) {
    if (!answer.toString().startsWith('HTTP/1.1 408 ')) t.fail(answer.toString());
  }
  // The clients keep their half open, so the server has to close the connections.
  const text = await until(() => exchangeRaw(server, CLOSING_REQUEST));
  t.match(text, /^HTTP\/1\.1 200 /, 'there is room again');
});

t.test(
  'sixteen requests of a connection may wait for their answers; one more closes it',
  async (t) => {
    let asked = 0;
    let answer;
    const awaited = new Promise((resolve) => {
      answer = resolve;
    });
    const { server } = await start(t, { text: async () => ((asked += 1), awaited) });
    const one = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
    t.equal(await exchangeRaw(server, one.repeat(1000)), '');
    t.equal(asked, 16, 'nothing is done for those beyond');
    const last = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n';
    const answers = exchangeRaw(server, one.repeat(15) + last);
    await until(() => asked === 32);
    answer('a 1\n');
    t.equal((await answers).match(/HTTP\/1\.1 200 /g).length, 16);
  }
);

t.test('what can not be read is refused behind the answers of the requests before', async (t) => {
  const { server } = await start(t, { text: async () => (await immediate(), 'a 1\n') });
  const one = 'GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n';
  for (const garbage of ['nonsense\r\n\r\n', 'nonsense\r\n\r\n'.repeat(20_000)]) {
    const text = await exchangeRaw(server, one + one + garbage);
    t.strictSame(text.match(/HTTP\/1\.1 \d+|a 1\n|urn:[a-z:-]+/g), [
      ...['HTTP/1.1 200', 'a 1\n', 'HTTP/1.1 200', 'a 1\n'],
      ...['HTTP/1.1 400', 'urn:sprites:bad-request']
    ]);
  }
});

/* The texts of the status page at the admin port. admin-page.browser.test.js tests the page itself. */

const status = {
  ...{ clients: 12_410, thrown: 7, acked: 4, waiting: 2, lost: 1, world: null },
  ...{ mailboxBytes: 0, feedMemory: 0, journalUnsyncedSeconds: 0.4, stateBlocked: 0 }
};
const overview = {
  ...{ unready: null, state: { file: '/var/s', sync: 'second' }, arenas: [] },
  ...{ disk: { folder: '/var', free: 2 ** 34, size: 2 ** 40 } },
  ...{ bounds: { feedMemory: 1000, mailboxMemory: 1000 }, status }
};

/** Returns this overview with some members replaced. */
const overviewWith = ({ status: statusChanges = {}, ...rest }) => ({
  ...overview,
  ...rest,
  status: { ...status, ...statusChanges },
  law: lawOf({ ...status, ...statusChanges })
});

t.test('the first sentence says what it serves, and what a crash would cost', async (t) => {
  t.equal(headline(overview), 'Serving 12,410 clients; last crash-safe point 0.4 s ago.');
  const served = { clients: 1, watching: 2, players: 3, journalUnsyncedSeconds: 0 };
  t.equal(
    headline(overviewWith({ status: served })),
    'Serving 1 client, 2 watchers and 3 players; everything is on the disk.'
  );
  t.match(headline(overviewWith({ state: null })), /; nothing is kept/);
  t.match(headline(overviewWith({ status: { stateBlocked: 1 } })), /can’t be written/);
  t.match(headline(overviewWith({ state: { file: '/s', sync: 'never' } })), /not waited for/);
  t.match(
    headline(overviewWith({ unready: 'The state cannot be written' })),
    /^Not ready: The state/
  );
  t.same(
    [0.42, 59, 61, 7300, 90_000].map((seconds) => duration(seconds)),
    ['0.4 s', '59 s', '1 min', '2 h 1 min', '1 d 1 h']
  );
  t.equal(
    [0, 1023, 1536, 2 ** 31, 2 ** 60].map(bytes).join('; '),
    '0 B; 1,023 B; 1.5 kB; 2 GB; 1,048,576 TB'
  );
  t.equal([0, 0.42, 7, 12.6, 12_410].map(number).join('; '), '0; 0.4; 7; 13; 12,410');
});

t.test('the law of sprites, within a world too', async (t) => {
  const alone = { thrown: 10, acked: 7, waiting: 2, lost: 1 };
  t.strictSame(lawOf({ ...alone, clients: 5 }), { ...alone, holds: true });
  t.strictSame(lawOf({ ...alone, acked: 6 }).holds, false);
  const world = { ...alone, acked: 8, crossedIn: 6, crossedOut: 5 };
  t.strictSame(lawOf(world), { ...world, holds: true });
  t.strictSame(lawOf({ ...world, crossedIn: 7 }).holds, false);
  t.equal(lawOf({ thrown: 10 }), null);
});

t.test('what wants attention', async (t) => {
  t.same(alarms(overviewWith({}), { fetchesFailed: 0 }), []);
  const failed = { game: 'pong', why: 'late', message: 'it took longer than 1 s' };
  for (const [other, words, latest] of [
    [{ unready: 'The state cannot be written' }, /state cannot be written/],
    [{ status: { waiting: 3 } }, /law of sprites does not hold/],
    [{ status: { stateBlocked: 1 } }, /\/var\/s can’t be written/],
    [{ disk: { folder: '/var', free: 1000, size: 2 ** 40 } }, /\/var has 1,000 B left/],
    [{ status: { mailboxBytes: 900 } }, /Mailboxes are 90 % full/],
    [{ status: { feedMemory: 951 } }, /Feeds take 95 %/],
    [{}, /Fetches from --upstream fail/, { fetchesFailed: 0.1 }],
    [{ arenas: [{ name: 'hall', failed }] }, /arena hall the game pong was stopped \(late\)/],
    [{ status: { world: { problem: 'name-taken' } } }, /No member of its world: name-taken/],
    [{ status: { world: { problem: null, state: 'cut-off' } } }, /Cut off/],
    [{ status: { outOfFiles: 2 } }, /No file descriptor was left 2 times/]
  ]) {
    const alarmLines = alarms(overviewWith(other), latest);
    t.equal(alarmLines.length, 1, alarmLines.join('\n'));
    t.match(alarmLines[0], words);
  }
  t.same(alarms(overviewWith({ state: null, disk: null })), []);
});

t.test('refusals for lack of room are warned of, once a minute', async (t) => {
  const warnings = [];
  const warn = ({ problem, times }, text) => warnings.push([problem, times, text]);
  const refused = { 'neighbor-busy': 9, 'bad-hold': 1 };
  const overload = new OverloadLog({ refused: () => refused, log: { warn } });
  t.teardown(() => overload.close());
  overload.look(0);
  refused['torus-full'] = 3;
  overload.look(10_000);
  refused['torus-full'] = 5;
  refused['too-many-connections'] = 1;
  overload.look(69_999);
  const full = 'requests were refused: No place left in the torus (--capacity)';
  t.match(warnings, [
    ['torus-full', 3, full],
    ['too-many-connections', 1, /No further connection now \(.*ulimit -n\)/]
  ]);
  overload.look(70_000);
  overload.look(200_000);
  t.strictSame(warnings.slice(2), [['torus-full', 2, full]]);
  refused['torus-full'] = 6;
  overload.close();
  t.strictSame(warnings.slice(3), [['torus-full', 1, full]], 'also those of the last seconds');
});

t.test('a server says that it was full', async (t) => {
  const warnings = [];
  const warn = (fields, text) => warnings.push([fields, text]);
  const log = { debug() {}, info() {}, error: t.fail, warn };
  const server = await createServer({ port: 0, host: '127.0.0.1', capacity: 1, log });
  const join = () => fetch(`http://127.0.0.1:${server.port}/join`, { method: 'POST' });
  const statuses = [(await join()).status, (await join()).status];
  await server.close();
  t.strictSame(statuses, [201, 503]);
  t.match(warnings, [[{ problem: 'torus-full', times: 1 }, /--capacity/]]);
});

t.test('an hour is kept, and no more', async (t) => {
  const now = {
    clients: 1,
    thrown: 0,
    refused: {},
    deliveryTimes: { bounds: [1, 2], counts: [0, 0, 0] }
  };
  const history = new History(() => structuredClone(now));
  t.teardown(() => history.close());
  t.match(history.samples, [{ clients: 1, throws: null, refused: null, p99: null, players: 0 }]);
  Object.assign(now, { clients: 2, thrown: 10, refused: { 'neighbor-busy': 3, 'bad-hold': 1 } });
  now.deliveryTimes.counts = [0, 4, 0];
  history.takeSample();
  const [, second] = history.samples;
  t.equal(second.clients, 2);
  t.ok(
    second.throws > 0 && Math.abs(second.throws / second.refused - 2.5) < 1e-9,
    'by the same time'
  );
  t.ok(second.p99 > 1 && second.p99 <= 2);
  now.deliveryTimes.counts = [0, 4, 0];
  for (let i = 0; i < 500; i += 1) history.takeSample();
  t.equal(history.samples.length, 360);
  t.equal(history.samples.at(-1).p99, null, 'nothing arrived since');
});

t.test('how long ago the crash-safe point was', async (t) => {
  const join = (server) => fetch(new URL('join', server.addresses[0]), { method: 'POST' });
  for (const [sync, holds] of [
    ['never', (seconds) => seconds > 0.3],
    ['second', (seconds) => seconds === 0]
  ]) {
    const options = { host: '127.0.0.1', port: 0, adminPort: 0, drain: 0, lease: 600, sync };
    const server = await createServer({ ...options, state: `${temporary(t)}/state` });
    t.teardown(() => server.close());
    await join(server);
    await until(async () => {
      const { journalUnsynced, journalUnsyncedSeconds } = server.status();
      return holds(journalUnsyncedSeconds) && journalUnsynced > 0 === (sync === 'never');
    }, sync);
  }
});
