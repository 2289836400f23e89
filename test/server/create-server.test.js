import { execFile, execFileSync } from 'node:child_process';
import {
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import Ajv from 'ajv/dist/2020.js';
import t from 'tap';

import { createServer } from 'sprites-server';

import { fileLimit } from '../../lib/base/file-limit.js';
import { behind } from '../../lib/examples/behind.js';
import { camelCase } from '../../lib/operator/options.js';
import { programOptionTable } from '../../lib/operator/program-options.js';
import { optionTypes } from '../../lib/operator/tables.js';
import { Lifecycle } from '../../lib/server/lifecycle.js';
import { listening } from '../support/addresses.js';
import { certificate } from '../support/certificate.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { startUpstream } from '../support/feeds.js';
import { request, Wire } from '../support/http.js';
import { shown } from '../support/documents.js';
import { temporary } from '../support/processes.js';
import { ROOT } from '../support/server.js';
import { until } from '../support/until.js';

/** A server within another Node program. */

t.setTimeout(300_000); // TypeScript is slow on a busy machine.

const TSC = join(ROOT, 'node_modules/.bin/tsc');

/** Starts a server on a free port of loopback. The end of the test closes it. */
async function serve(t, options = {}) {
  const server = await createServer({ port: 0, host: '127.0.0.1', drain: 0, ...options });
  t.teardown(() => server.close());
  return server;
}

/**
 * Returns a log that adds the message of each line above `debug` to `lines`. At `debug` the server logs joins and refusals up
 * to a second late.
 */
function collectingLog(lines) {
  const note = (fields, message = fields) => lines.push(fields.err?.message ?? message);
  return { debug() {}, info: note, warn: note, error: note };
}

/** Runs a program in this checkout. Returns its output. */
async function runProgram(t, text, environment = {}) {
  const file = join(t.testdir(), 'program.mjs');
  writeFileSync(file, text);
  // `env -u` removes the hooks that the test runner puts into every child.
  return promisify(execFile)('env', ['-u', 'NODE_OPTIONS', process.execPath, file], {
    cwd: ROOT,
    env: plainEnvironment({ SPRITES_PORT: 'no port', SPRITES_CAPACITY: 'none', ...environment }),
    timeout: 120_000
  });
}

/**
 * Counts the sockets of this process. This is exact only in the first test: later, clients' connections end at any
 * time.
 */
function countSockets() {
  const isSocket = (fd) => {
    try {
      return readlinkSync(`/proc/self/fd/${fd}`).startsWith('socket:');
    } catch {
      // This was the descriptor of the listing itself.
      return false;
    }
  };
  return readdirSync('/proc/self/fd').filter(isSocket).length;
}

t.test('a wrong option says which it is, and opens nothing', async (t) => {
  const { port } = await serve(t);
  const before = countSockets();
  const wrong = [
    [{ prot: 1 }, 'ERR_SPRITES_OPTION', 'there is no option prot; did you mean port?'],
    [{ door: 'node' }, 'ERR_SPRITES_OPTION', 'door is no option here: there is one door'],
    [{ 'throw-rate': 1 }, 'ERR_SPRITES_OPTION', /no option throw-rate; did you mean throwRate\?/],
    [{ port: 65536 }, 'ERR_SPRITES_OPTION', 'port takes a whole number from 0 to 65535'],
    [{ port: 1.5 }, 'ERR_SPRITES_OPTION', 'not "1.5"'],
    [{ port: NaN }, 'ERR_SPRITES_OPTION', 'not "NaN"'],
    [{ port: null }, 'ERR_SPRITES_OPTION', 'not null'],
    [{ port: [80] }, 'ERR_SPRITES_OPTION', 'not [ 80 ]'],
    [{ port: true }, 'ERR_SPRITES_OPTION', 'not true'],
    [{ state: NaN }, 'ERR_SPRITES_OPTION', 'state takes a file, not NaN'],
    [{ state: 'a\0b' }, 'ERR_SPRITES_OPTION', 'state takes a file, not "a\\u0000b"'],
    [{ host: 127 }, 'ERR_SPRITES_OPTION', 'host takes an address or a host name, not 127'],
    [{ host: '::1\0' }, 'ERR_SPRITES_OPTION', 'host takes an address'],
    [{ games: 'a\0b', arena: 'a' }, 'ERR_SPRITES_OPTION', 'games takes a folder'],
    [{ capacity: 10n }, 'ERR_SPRITES_OPTION', 'not 10n'],
    [{ world: ['nats://me:secret@a'] }, 'ERR_SPRITES_OPTION', /not \[ 'nats:\/\/…@a' \]$/],
    [{ mailboxMemory: '9X' }, 'ERR_SPRITES_OPTION', 'mailboxMemory takes a size'],
    [{ mailboxBytes: 4096 }, 'ERR_SPRITES_OPTION', /^mailboxBytes must have .* of maxSprite bytes/],
    [{ tlsPort: 0 }, 'ERR_SPRITES_OPTION', 'tlsPort needs tlsCert and tlsKey'],
    [{ logLevel: 'info' }, 'ERR_SPRITES_OPTION', 'logLevel is no option here: give a log'],
    [{ fetch: 'none' }, 'ERR_SPRITES_OPTION', 'fetch takes a function'],
    [{ publishTokens: 'a' }, 'ERR_SPRITES_OPTION', 'publishTokens takes an array'],
    [{ publishTokens: ['a b'] }, 'ERR_SPRITES_OPTION', 'publishTokens takes an array'],
    [{ check: 5 }, 'ERR_SPRITES_OPTION', 'check is no option here: run "sprites" with it'],
    [{ log: 'info' }, 'ERR_SPRITES_OPTION', 'log takes an object with the functions debug,'],
    [{ log: { info() {} } }, 'ERR_SPRITES_OPTION', 'log takes an object with the functions debug,'],
    [{ log: null }, 'ERR_SPRITES_OPTION', 'log takes an object with the functions debug,'],
    [
      { port: 0, transientPort: 0, tlsPort: 0, tlsCert: '/nope', tlsKey: '/nope' },
      ...[undefined, "tlsCert /nope can't be read"]
    ],
    [{ port }, 'EADDRINUSE', 'choose another port by port']
  ];
  for (const [options, code, message] of wrong) {
    const error = await createServer({ host: '127.0.0.1', ...options }).catch((reason) => reason);
    t.equal(error.code, code, String(error.message));
    t.match(error.message, message);
    t.notMatch(error.message, '--', 'in the words of a program');
    t.equal(countSockets(), before, 'no port is taken');
  }
  for (const none of [null, 8080, '8080']) {
    const refused = { code: 'ERR_SPRITES_OPTION', message: /^createServer takes an object of/ };
    await t.rejects(createServer(none), refused);
  }
  t.same(
    (await serve(t, { port: undefined, cors: undefined, ...{ port: 0 } })).status().clients,
    0,
    'undefined is the default'
  );
});

t.test('the example of the manual runs, and ends by itself', async (t) => {
  const { stdout, stderr } = await runProgram(t, shown('lib/server/README.md', 'as `beside.mjs`'));
  t.same(stdout.trim().split('\n').sort(), ['1', 'star']);
  t.equal(stderr, '');
});

t.test('two servers in one program have nothing in common', async (t) => {
  const [one, other] = [await serve(t, { adminPort: 0 }), await serve(t, { capacity: '5' })];
  t.not(one.port, other.port);
  t.same(one.addresses, [`http://127.0.0.1:${one.port}/`]);
  t.same(one.adminAddresses, [`http://127.0.0.1:${one.adminPort}/`]);
  t.match(other, { adminPort: 0, adminAddresses: [], tlsPort: 0, tlsAddresses: [] });
  await fetch(`${one.addresses[0]}join`, { method: 'POST' });
  t.match(one.status(), { clients: 1, capacity: 1000000, parked: 0 });
  t.match(other.status(), { clients: 0, capacity: 5 });
  const metrics = await (await fetch(`${one.adminAddresses[0]}metrics`)).text();
  t.match(metrics, '\nsprites_clients 1\n');
  const ends = [one.close(), one.close()];
  t.equal(ends[0], ends[1], 'ends once');
  await ends[0];
  await t.rejects(fetch(one.addresses[0]));
  t.equal((await fetch(`${other.addresses[0]}status`)).status, 200, 'the other one goes on');
  const second = await serve(t, { port: one.port });
  t.equal(second.port, one.port, 'its port is free');
});

t.test('nothing of the process is touched', async (t) => {
  const { stdout, stderr } = await runProgram(
    t,
    `import cluster from 'node:cluster';
    const looks = () => JSON.stringify([
      process.eventNames().map((name) => [String(name), process.listenerCount(name)]),
      process.exitCode, process.title, cluster.settings, process.stdout.listenerCount('error'),
      Object.keys(globalThis)
    ]);
    const before = looks();
    const { createServer } = await import('sprites-server');
    const server = await createServer({ port: 0, drain: 0, adminPort: 0 });
    await fetch(server.addresses[0] + 'join', { method: 'POST', headers: { Connection: 'close' } });
    await server.close();
    const after = looks();
    process.stdout.write(after === before ? 'the same' : before + '\\n' + after);`
  );
  t.equal(stdout, 'the same');
  t.equal(stderr, '');
});

t.test('a start waits for a state, can be called off, and logs where it is told to', async (t) => {
  const state = join(t.testdir(), 'state');
  const lines = [];
  const options = { port: 0, host: '127.0.0.1', drain: 0, state, log: collectingLog(lines) };
  const waits = () => lines.includes('waits for the state of another server');
  const first = await createServer(options);
  await fetch(`${first.addresses[0]}join`, { method: 'POST' });
  const off = new AbortController();
  const called = createServer({ ...options, signal: off.signal });
  await until(waits);
  off.abort();
  await t.rejects(called, { name: 'AbortError' });

  lines.length = 0;
  const waiting = createServer(options);
  await until(waits);
  await first.close();
  const second = await waiting;
  t.equal(second.status().clients, 1, 'it has the state of the first');
  rmSync(state, { force: true });
  mkdirSync(state);
  await t.rejects(second.close(), { message: /^state .* no snapshot can be written/ });
});

t.test('tokens are an option; files are where the program was when it began', async (t) => {
  const [from, folder] = [process.cwd(), temporary(t)];
  writeFileSync(join(folder, 'tokens'), 'old\n');
  process.chdir(folder);
  const files = { state: 'state', publishTokenFile: 'tokens' };
  const server = await serve(t, { ...files, publishTokens: ['x', 'y'], adminPort: 0 });
  process.chdir(from);
  writeFileSync(join(folder, 'tokens'), 'new\n');
  server.reload();
  const put = async ({ addresses: [base] }, token) => {
    const headers = { Authorization: `Bearer ${token}` };
    return (await fetch(`${base}feed/a`, { method: 'PUT', headers, body: '1' })).status;
  };
  t.equal(await put(server, 'new'), 201, 'a file is read anew where it was');
  t.equal(await put(server, 'old'), 401);
  t.strictSame([await put(server, 'x'), await put(server, 'y')], [200, 200], 'beside the option');
  t.equal(await put(await serve(t, { publishTokens: [] }), 'x'), 403);
  const overview = async () => (await fetch(`${server.adminAddresses[0]}overview`)).json();
  t.equal((await overview()).state.file, join(folder, 'state'));
  // The overview waits 100 ms for a slow disk.
  await until(async () => (await overview()).disk?.folder === folder);
});

t.test('feeds as functions', async (t) => {
  const server = await serve(t, { feedBytes: 4096, arena: 'hall' });
  const first = server.watch('a');
  const { created, cursor, watching } = await server.publish('a', { score: [1] });
  t.strictSame([created, watching], [true, 0]);
  t.strictSame(await first, { cursor, value: { score: [1] } });
  const base = server.addresses[0];
  const parked = fetch(`${base}feed/a?after=${cursor}`);
  const next = server.watch('a', cursor);
  await until(() => server.status().watching === 1);
  const patched = await server.patch('a', [{ op: 'add', path: '/score/1', value: 2 }]);
  t.equal(patched.watching, 1);
  t.strictSame((await (await parked).json()).value, { score: [1, 2] });
  t.strictSame(await next, { cursor: patched.cursor, value: { score: [1, 2] } });
  await server.patch('a', { over: true });
  t.strictSame((await server.watch('a', cursor)).value, { score: [1, 2], over: true }, 'at once');
  const { cursor: last } = await server.watch('a');
  t.equal((await server.publish('a', { over: true, score: [1, 2] })).cursor, last, 'unchanged');
  const { cursor: one } = await server.append('log', { n: 1 });
  const two = await server.watch('log');
  t.strictSame(two, { cursor: one, items: [{ n: 1 }], gap: false });
  const more = server.watch('log', one);
  const { cursor: both } = await server.append('log', [2]);
  t.strictSame(await more, { cursor: both, items: [[2]], gap: false });
  t.equal((await server.watch('log', 'e1-1')).gap, true);
  await t.rejects(server.append('a', 1), { problem: 'other-kind' });
  await t.rejects(server.publish('log', 1), { problem: 'other-kind' });
  await t.rejects(server.append('log', 'x'.repeat(4095)), { problem: 'item-too-large' });
  await t.rejects(server.append('arena/hall', 1), { problem: 'reserved-feed' });
  await server.remove('log');
  const end = server.watch('a', last);
  await server.remove('a');
  t.strictSame(await end, { cursor: 'none', value: undefined });

  const circle = {};
  circle.self = circle;
  const refused = [
    ['unknown-feed', () => server.remove('a')],
    ['unknown-feed', () => server.patch('a', {})],
    ['bad-key', () => server.publish('a//b', 1)],
    ['bad-key', () => server.watch(7)],
    ['bad-value', () => server.publish('a', undefined)],
    ['bad-value', () => server.publish('a', 1n)],
    ['bad-value', () => server.append('new', circle)],
    ['bad-patch', () => server.patch('a', circle)],
    ['bad-patch', () => server.patch('b', [1])],
    ['feed-too-large', () => server.publish('a', 'x'.repeat(4095))],
    ['reserved-feed', () => server.publish('arena/hall', 1)],
    ['bad-media-type', () => server.patch('arena/hall/control', [])],
    ['bad-control', () => server.publish('arena/hall/control', { game: 7 })]
  ];
  await server.publish('b', 1);
  for (const [problem, act] of refused) {
    const error = await act().catch((reason) => reason);
    t.match(error, { code: 'ERR_SPRITES_FEED', problem }, problem);
    t.match(error.message, /^\w.*\.$/);
    t.notMatch(error.message, '--');
  }
  t.equal((await server.watch('b', null, null)).value, 1, 'null is none');
  const off = new AbortController();
  const abortedWatch = server.watch('c', undefined, { signal: off.signal });
  off.abort();
  await t.rejects(abortedWatch, { name: 'AbortError' });
  await t.rejects(server.watch('c', undefined, { signal: off.signal }), { name: 'AbortError' });
  const openWatch = server.watch('c');
  openWatch.catch(() => {});
  const underWay = Array.from({ length: 100 }, (_, n) => server.patch('b', { n }));
  await server.close();
  t.equal(new Set((await Promise.all(underWay)).map(({ cursor }) => cursor)).size, 100);
  const ended = {
    ...{ code: 'ERR_SPRITES_FEED', problem: 'draining' },
    message: 'the server has ended'
  };
  await t.rejects(openWatch, ended);
  const callsAfterEnd = [
    () => server.watch('b'),
    () => server.watch('c'),
    () => server.publish('b', 2),
    () => server.patch('b', {}),
    () => server.append('new', 1),
    () => server.remove('b')
  ];
  for (const act of callsAfterEnd) await t.rejects(act(), ended, 'nothing would keep it');
});

t.test('a program that watches hears that a fetched feed is forgotten', async (t) => {
  const { url } = await startUpstream(t, (request, response) => response.end('1'));
  const server = await serve(t, { upstream: url, upstreamEvery: 1, feedIdle: 1 });
  const { cursor } = await (await fetch(`${server.addresses[0]}feed/a`)).json();
  t.strictSame(await server.watch('a', cursor), { cursor: 'none', value: undefined });
});

t.test('nothing of a server goes on behind its end', async (t) => {
  const timers = [];
  for (const name of ['setTimeout', 'setInterval']) {
    const own = globalThis[name];
    t.capture(globalThis, name, (...given) => {
      const timer = own(...given);
      // Node's own timers do not count.
      if (new Error().stack.includes(join(ROOT, 'lib/'))) timers.push({ timer, given });
      return timer;
    });
  }
  const files = certificate(t.testdir());
  const upstream = await startUpstream(t, () => {});
  const lines = [];
  const server = await createServer({
    ...{ port: 0, host: '127.0.0.1', adminPort: 0, drain: 0, arena: 'hall', feedThreads: 1 },
    ...{ tlsPort: 0, tlsCert: files['tls-cert'], tlsKey: files['tls-key'] },
    ...{ upstream: upstream.url, log: collectingLog(lines) }
  });
  const reader = fetch(`${server.addresses[0]}feed/a`).catch(() => {});
  await until(() => upstream.fetches === 1);
  lines.length = 0;
  await server.close();
  await reader;
  const game = server.publish('arena/hall/control', { game: 'pong', running: true });
  await t.rejects(game, { problem: 'draining' });
  t.ok(timers.length > 0);
  t.strictSame(
    timers.filter(({ timer }) => !timer._destroyed).map(({ given }) => String(given[0])),
    [],
    'no timer'
  );
  t.strictSame(lines, [], 'and nothing has failed');
});

t.test('the memory of a server that has ended is given back', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  /** Returns the address space in megabytes. A server takes about 300. */
  const space = () => {
    collect();
    return /VmSize:\s+(\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1] / 1024;
  };
  const options = { port: 0, host: '127.0.0.1', drain: 0 };
  const before = space();
  for (let i = 0; i < 5; i += 1) {
    await (await createServer(options)).close();
    await t.rejects(createServer({ ...options, state: '/nope/state' }));
    await t.rejects(createServer({ ...options, publishTokenFile: '/nope' }));
  }
  const limit = (files) =>
    execFileSync('prlimit', ['--pid', String(process.pid), `--nofile=${files}:`]);
  const most = fileLimit();
  limit(300);
  for (let failed = 0; failed < 5;) {
    const files = [];
    t.throws(() => {
      for (;;) files.push(openSync('/dev/null'));
    }, 'no descriptor is left');
    // A start needs one descriptor for a moment. Garbage collection may free others meanwhile.
    closeSync(files.pop());
    try {
      await (await createServer(options)).close();
    } catch ({ syscall }) {
      t.equal(syscall, 'epoll_create1');
      failed += 1;
    }
    files.forEach(closeSync);
  }
  limit(most);
  await until(() => space() < before + 600);
});

t.test('all of a server is closed, also where a part can not be', async (t) => {
  const closed = [];
  const note = (name) => () => closed.push(name);
  const failsToClose = (name) => () => {
    closed.push(name);
    throw new Error(`${name} can not be closed`);
  };
  const none = () => ({ watching: 0, streams: 0 });
  const open = () => {
    closed.length = 0;
    const state = { save: note('kept'), release: note('released') };
    const pool = { drain() {}, status: () => ({ parked: 0 }), close: note('pool') };
    const lifecycle = new Lifecycle({ options: { drain: 0 }, pool, state });
    for (const name of ['first', 'second']) lifecycle.closeAtEnd({ close: failsToClose(name) });
    lifecycle.closeAtEnd({ close: note('third') });
    return lifecycle;
  };
  const parts = {
    feeds: { feeds: { drain() {}, async through() {} }, status: none },
    arena: { drain() {}, endRounds() {} },
    world: { leave() {} },
    door: { stopListening() {}, drain() {}, closeIdle: () => 0, counts: () => ({ feeds: none() }) }
  };
  await t.rejects(open().stop(parts), { message: 'second can not be closed' });
  t.strictSame(closed, ['third', 'second', 'first', 'kept', 'released']);
  await t.rejects(open().fail(new Error('no port')), { message: 'no port' });
  t.strictSame(closed, ['third', 'second', 'first', 'released', 'pool']);
});

t.test('a grant that would be none is not signed', async (t) => {
  const k = Buffer.alloc(32, 1).toString('base64url');
  const server = await serve(t, { grants: { keys: [{ kty: 'oct', k }] } });
  await server.grant({ read: ['a'], seconds: 0.5 });
  t.type(await server.grant(null), 'string', 'null is none, as elsewhere');
  const [, claims] = (await server.grant({ jti: undefined })).split('.');
  t.match(Buffer.from(claims, 'base64url').toString(), '"jti":"', 'undefined is the default');
  for (const seconds of [0, -1, NaN, '60', null]) {
    await t.rejects(server.grant({ seconds }), { message: /^seconds takes a number above 0/ });
  }
  await t.rejects(server.grant({ join: 'yes' }), { message: /; join and present true or false$/ });
  await t.rejects(server.grant({ red: ['a'] }), { message: /^a grant has no "red": it has read,/ });
});

t.test('answers are as the OpenAPI document says', async (t) => {
  const server = await serve(t, { publishTokens: ['x'], arena: 'hall', arenaRate: 1 });
  const base = server.addresses[0];
  const document = await (await fetch(`${base}openapi.json`)).json();
  const ajv = new Ajv({ strict: false, validateFormats: false }).addSchema(document, 'api');
  const pointer = (...names) =>
    names.map((one) => `/${one.replace(/~/g, '~0').replace(/\//g, '~1')}`).join('');
  const asks = [
    ['POST', '/join'],
    ['GET', '/place/{id}'],
    ['POST', '/throw/{id}/{edge}', { body: '{}' }],
    ['GET', '/poll/{id}', { query: '?ack=0' }],
    ['GET', '/place/{id}', { id: 'none' }],
    ['GET', '/status'],
    ['PUT', '/feed/{key}', { body: '{"a":1}' }],
    ['PATCH', '/feed/{key}', { body: '{"a":2}', type: 'application/merge-patch+json' }],
    ['PATCH', '/feed/{key}', { body: '[]', type: 'text/plain' }],
    ['GET', '/feed/{key}'],
    ['GET', '/feed/{key}', { query: '?after=none&hold=4' }],
    ['POST', '/feeds', { body: '{"feeds":{"a/b":"","c":""}}' }],
    ['GET', '/feeds'],
    ['GET', '/arena'],
    ['POST', '/arena/{name}'],
    // A player may send two names at once, as with inputs, and no more.
    ...['{}', '{"name":""}', '{"name":"Ada"}', '{"name":"Bo"}', '{"name":"Cy"}'].map((body) => [
      'POST',
      '/arena/{name}/{player}/name',
      { body }
    ]),
    ['PUT', '/feed/{key}', { body: '{"game":null}', key: 'arena/hall/control' }],
    ['GET', '/arena'],
    ['GET', '/nothing']
  ];
  let id = 'none';
  let player;
  for (const [method, path, { body, query = '', type, ...other } = {}] of asks) {
    const given = { ...{ id, edge: 'left', key: 'a/b', name: 'hall', player }, ...other };
    const target = path.replace(/\{(\w+)\}/g, (_, name) => given[name]).slice(1) + query;
    const headers = { Authorization: 'Bearer x', ...(type && { 'Content-Type': type }) };
    const answer = await fetch(base + target, { method, body, headers });
    if (answer.status === 204) continue;
    const answerBody = await answer.json();
    id = path === '/join' ? answerBody.id : id;
    player = answerBody.player ?? player;
    const { responses } = document.paths[path]?.[method.toLowerCase()] ?? {};
    const [kind] = answer.headers.get('content-type').split(';');
    const schema = responses?.[answer.status]
      ? ['paths', path, method.toLowerCase(), 'responses', String(answer.status)]
      : ['components', 'responses', 'Refused'];
    const check = ajv.getSchema(`api#${encodeURI(pointer(...schema, 'content', kind, 'schema'))}`);
    t.ok(
      check(answerBody),
      `${method} ${target}: ${answer.status} ${JSON.stringify(check.errors)}`
    );
  }
});

t.test('an application of its own, at the same port', async (t) => {
  let lastRequest;
  let isCancelled = false;
  const stream = new ReadableStream({
    cancel() {
      isCancelled = true;
    }
  });
  const page = new Response('once');
  const empty = (status, headers) => new Response(null, { status, headers });
  /** Special answers, by path. */
  const answers = {
    '/fails': () => Promise.reject(new Error('a fault of the application')),
    '/wordless': () => Promise.reject(),
    '/none': () => undefined,
    '/text': () => 'hello',
    '/again': () => page,
    '/long': () => new Response(new Uint8Array(16 * 2 ** 20 + 1)),
    '/error': () => Response.error(),
    '/waits': ({ signal }) =>
      new Promise((_, reject) => {
        signal.addEventListener('abort', () => reject(signal.reason));
      }),
    '/stream': () => new Response(stream),
    '/latin': () => new Response('', { headers: { 'X-A': 'ä' } }),
    '/204': () => empty(204, { 'Content-Length': '5' }),
    '/304': () => empty(304, { ETag: '"a"' })
  };
  const headers = [
    ['Set-Cookie', 'a=1'],
    ['Set-Cookie', 'b=2'],
    ['X-Of', 'it'],
    ['Connection', 'close']
  ];
  const lines = [];
  const server = await serve(t, {
    log: collectingLog(lines),
    async fetch(request, about) {
      lastRequest = { request, about };
      const answer = answers[new URL(request.url).pathname];
      return answer
        ? answer(request)
        : new Response(await request.text(), { status: 218, headers });
    }
  });
  const base = server.addresses[0];
  const ask = (path, how) => fetch(`${base}${path}`, { redirect: 'manual', ...how });

  const body = 'x'.repeat(2 ** 20);
  const said = await ask('a%20b/?c=d&c=e', { method: 'POST', body, headers: { Cookie: 'k=v' } });
  t.equal(lastRequest.request.url, `${base}a%20b/?c=d&c=e`);
  t.equal(lastRequest.request.headers.get('cookie'), 'k=v');
  t.strictSame(lastRequest.about, { address: '127.0.0.1', secure: false });
  t.equal(said.status, 218);
  t.equal(await said.text(), body);
  t.strictSame(said.headers.getSetCookie(), ['a=1', 'b=2']);
  t.equal(said.headers.get('x-of'), 'it');
  t.equal((await ask('latin')).headers.get('x-a'), 'ä');
  t.equal(said.headers.get('connection'), 'keep-alive', 'the connection is not');
  t.equal(said.headers.get('cache-control'), null, 'no field but those');

  t.equal((await ask('')).status, 218, 'the page is the application’s');
  t.equal((await ask('feeds/more')).status, 218);
  t.equal((await ask('x', { method: 'OPTIONS' })).status, 218);
  const head = await ask('x', { method: 'HEAD' });
  t.strictSame(
    [head.status, head.headers.get('content-length'), await head.text()],
    [218, '0', '']
  );
  lastRequest = undefined;
  t.equal((await ask('join', { method: 'POST' })).status, 201);
  t.equal((await ask('feed/a')).status, 404);
  t.equal((await ask('join', { method: 'OPTIONS' })).status, 204);
  t.equal((await ask('client/client.js')).status, 200);
  t.equal(lastRequest, undefined, 'what is of Sprites it is not asked for');

  t.equal((await ask('x', { method: 'POST', body: `${body}y` })).status, 413);
  t.equal(lastRequest, undefined, 'nor with more than it may have');
  t.equal(await (await ask('again')).text(), 'once');
  const logged = {
    fails: /a fault of the application/,
    wordless: /\w/,
    none: /returned no Response/,
    text: /returned no Response/,
    again: /was read before/,
    long: /more than 16777216 bytes/,
    error: /Response\.error\(\)/
  };
  for (const [path, words] of Object.entries(logged)) {
    lines.length = 0;
    t.equal((await ask(path)).status, 500, path);
    t.match(lines, [words], `${path} is logged`);
  }
  const nothing = await ask('204', { method: 'HEAD' });
  t.equal(nothing.headers.get('content-length'), null, 'a 204 has none');
  const same = await ask('304');
  t.strictSame([same.status, same.headers.get('etag')], [304, '"a"']);

  const wire = await Wire.open(server.port, '127.0.0.1');
  const head1 = 'POST /c HTTP/1.1\r\nHost: a.test\r\nCookie: a=1\r\nCookie: b=2\r\n';
  wire.send(`${head1}Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n`);
  await until(() => wire.unreadBytes.includes('100 Continue'));
  wire.send('3\r\nabc\r\n0\r\n\r\nTRACE /c HTTP/1.1\r\nHost: a.test\r\n\r\n');
  wire.send('GET /c HTTP/1.1\r\nHost: [\r\n\r\n');
  const statuses = () => wire.unreadBytes.toString().match(/(?<=HTTP\/1\.1 )(?!100)\d+/g) ?? [];
  await until(() => statuses().length === 3);
  t.same(statuses(), ['218', '405', '400']);
  t.same(
    [...lastRequest.request.headers],
    [
      ['content-length', '3'],
      ['cookie', 'a=1; b=2'],
      ['host', 'a.test']
    ],
    'no field of the connection'
  );
  wire.send('GET /c/d HTTP/1.1\r\nHost:\r\n\r\n');
  await until(() => statuses().length === 4);
  t.equal(lastRequest.request.url, 'http://localhost/c/d', 'without a Host its path is no host');
  wire.send('GET http://a.test?b=c HTTP/1.1\r\nHost: a.test\r\n\r\n');
  await until(() => statuses().length === 5);
  t.equal(lastRequest.request.url, 'http://a.test/?b=c', 'an absolute form may have no path');
  await wire.destroy();

  const abort = new AbortController();
  const waits = ask('waits', { signal: abort.signal });
  await until(() => lastRequest?.request.url.endsWith('waits'));
  t.notOk(lastRequest.request.signal.aborted);
  const streams = ask('stream', { signal: abort.signal });
  await until(() => stream.locked);
  lines.length = 0;
  abort.abort();
  await t.rejects(waits);
  await t.rejects(streams);
  await until(() => lastRequest.request.signal.aborted);
  await until(() => isCancelled);
  await ask('x');
  t.strictSame(lines, [], 'that a client has gone is no fault');
});

t.test('no path leads to another host than the site in front of which it is', async (t) => {
  const listen = async (answer) => `127.0.0.1:${await listening(t, createHttpServer(answer))}`;
  const site = await listen(({ url }, response) => response.end(url));
  const secret = await listen((request, response) => response.end('secret'));
  const server = await serve(t, { fetch: behind(`http://${site}`) });
  const wire = await Wire.open(server.port);
  for (const before of ['//', '/\\', 'http://c.test//']) {
    wire.send(request('GET', `${before}${secret}/a?b`));
    const { bytes } = await wire.read();
    t.equal(bytes.toString(), `//${secret}/a?b`, before);
  }
  await wire.destroy();
});

t.test('what verifies grants is loaded where there are keys alone', async (t) => {
  const isLoaded = async (options) => {
    // In this folder V8 lists the scripts that it has run.
    const folder = temporary(t);
    await runProgram(
      t,
      `import { createServer } from 'sprites-server';
      const server = await createServer({ port: 0, host: '127.0.0.1', drain: 0, ...${options} });
      await fetch(server.addresses[0] + 'feed/a', { headers: { Authorization: 'Bearer x' } });
      await server.close();`,
      { NODE_V8_COVERAGE: folder }
    );
    return readdirSync(folder)
      .flatMap((name) => JSON.parse(readFileSync(join(folder, name), 'utf8')).result)
      .some(({ url }) => url.includes('/node_modules/jose/'));
  };
  const k = Buffer.alloc(32, 1).toString('base64url');
  t.ok(await isLoaded(`{ grants: { keys: [{ kty: 'oct', k: '${k}' }] } }`));
  t.notOk(await isLoaded('{}'));
});

t.test('in a thread that is not the main one it says so', async (t) => {
  const { stdout } = await runProgram(
    t,
    `import { Worker, isMainThread } from 'node:worker_threads';
    import { fileURLToPath } from 'node:url';
    if (isMainThread) {
      const worker = new Worker(fileURLToPath(import.meta.url));
      worker.on('error', (error) => console.log('error', error));
    } else {
      const { createServer } = await import('sprites-server');
      await createServer({ port: 0 }).catch(({ code, message }) => console.log(code, message));
    }`
  );
  t.match(stdout, 'ERR_SPRITES_ADDON the native addon works in the main thread alone');
});

t.test('the declarations have every option, and TypeScript holds a program to them', async (t) => {
  const declarations = optionTypes();
  writeFileSync(join(ROOT, 'lib/server/types/options.d.ts'), declarations);
  for (const { name } of programOptionTable) t.match(declarations, ` ${camelCase(name)}?: `);

  const right = `import { createServer, type Options, type Server } from 'sprites-server';
    import pino from 'pino';
    const options: Options = { port: 0, mailboxMemory: '1G', adminPort: 'none', sync: 'turn' };
    const off = new AbortController();
    const server: Server = await createServer({ ...options, log: pino(), signal: off.signal });
    const other = await createServer({ maxSprite: 4096, log: console });
    const first: string = server.addresses[0]!;
    const clients: number = server.status().clients + other.port + first.length;
    console.log(clients.toFixed());
    const { cursor } = await server.publish('a', { b: 1 });
    await server.watch('a', cursor, { signal: off.signal });
    const answer = async (request: Request) => new Response(request.url);
    await createServer({ publishTokens: ['a'], fetch: answer });
    server.reload();
    await server.close();`;
  const wrong = {
    'an-option-that-is-none': right.replace('port: 0', 'prot: 0'),
    'a-port-that-is-a-word': right.replace('port: 0', "port: 'eighty'"),
    'a-sync-that-is-none': right.replace("'turn'", "'soon'"),
    'a-log-that-is-none': right.replace('log: console', 'log: 1'),
    'a-response-that-is-none': right.replace('new Response(request.url)', 'request.url'),
    'a-cursor-that-is-a-number': right.replace("'a', cursor,", "'a', 1,"),
    'a-check': right.replace('maxSprite: 4096', 'check: 2'),
    'a-count-that-is-a-word': right.replace('clients: number', 'clients: string')
  };
  // The folder is in the checkout, where a package can import itself by its name.
  const folder = t.testdir();
  const files = Object.entries({ right, ...wrong });
  for (const [name, text] of files) writeFileSync(join(folder, `${name}.mts`), text);
  const strict = ['--strict', '--noEmit', '--skipLibCheck', '--target', 'es2022'];
  const modern = ['--module', 'nodenext', '--lib', 'es2022,dom'];
  const names = files.map(([name]) => `${name}.mts`);
  const said = await promisify(execFile)(TSC, [...strict, ...modern, ...names], {
    cwd: folder,
    env: plainEnvironment()
  }).catch(({ stdout }) => ({ stdout }));
  const complaints = said.stdout.match(/^[\w-]+(?=\.mts\(\d+,\d+\): error TS)/gm);
  t.same([...new Set(complaints)].sort(), Object.keys(wrong).sort(), said.stdout);
});
