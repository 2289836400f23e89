import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { createServer as createSprites } from 'sprites-server';

import { addUp } from '../../lib/base/add-up.js';
import { createDoor } from '../../lib/http/door.js';
import { readOptions } from '../../lib/operator/options.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { Pool } from '../../lib/torus/pool.js';
import { checkAnswer, problemOf } from '../support/contract.js';
import { emptyFeeds, get, parkGet, put, tokenFile, UNCOUNTED } from '../support/feeds.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Workers, and the transient port. */

const NOBODY = '11111111-2222-8333-8444-000000000000';

const startWithWorkers = (t) =>
  startServer(t, { options: { workers: 2, 'transient-port': 0, drain: 0 } });

/** Sends a request over a connection of its own. Returns the answer. */
async function ask(port, method, target, more) {
  const wire = await Wire.open(port);
  try {
    return checkAnswer(await wire.send(request(method, target, more)).read());
  } finally {
    await wire.destroy();
  }
}

// ---- The transient port -------------------------------------------------------------------------

t.test(
  'a client joins, throws and leaves by the transient port, and polls by the other',
  async (t) => {
    const server = await startWithWorkers(t);
    const { transientPort } = server;
    const joined = await ask(transientPort, 'POST', '/join');
    t.match(joined, { status: 201, body: { transient: transientPort } }, 'a join tells the port');
    const { id } = joined.body;
    const { answer } = await server.park(id);
    const thrown = await ask(transientPort, 'POST', `/throw/${id}/up`, { body: '{"x":[1]}' });
    t.strictSame([thrown.status, thrown.body], [202, { state: 'delivered' }]);
    t.strictSame((await answer).body, {
      seq: 1,
      sprites: [{ seq: 1, from: 'down', sprite: { x: [1] } }]
    });
    t.equal((await ask(transientPort, 'POST', `/leave/${id}`)).status, 204);
    t.equal((await server.status()).clients, 0);
    await server.stop();
  }
);

t.test('what the transient port does not serve is misdirected', async (t) => {
  const server = await startWithWorkers(t);
  const id = await server.join();
  for (const target of [`/poll/${id}`, `/place/${id}`, '/status', '/', '/page/page.js', '/x']) {
    const answer = await ask(server.transientPort, 'GET', target);
    t.strictSame([answer.status, problemOf(answer)], [421, 'misdirected'], target);
  }
  for (const [method, target, status] of [
    ['GET', '/join', 405],
    ['GET', `/throw/${id}/left`, 405],
    ['DELETE', `/leave/${id}`, 405],
    ['OPTIONS', '/join', 204],
    ['OPTIONS', `/throw/${id}/left`, 204]
  ]) {
    const answer = await ask(server.transientPort, method, target);
    t.equal(answer.status, status, `${method} ${target}, as by the main port`);
  }
  await server.assertNothingLeft();
  await server.stop();
});

// ---- What is counted ----------------------------------------------------------------------------

t.test('what the workers count is in /status, each at once', async (t) => {
  const server = await startWithWorkers(t);
  const id = await server.join();
  const before = await server.status();
  const wires = await Promise.all(Array.from({ length: 3 }, () => Wire.open(server.transientPort)));
  for (const wire of wires) {
    wire.send(request('POST', `/leave/${NOBODY}`));
    await wire.read();
  }
  wires[0].send(`POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{`);
  const open = await server.until(
    ({ connections, heldBytes }) => connections === 1 + 3 && heldBytes > 0
  );
  t.ok(
    open.requests >= before.requests + 3 && open.accepted >= before.accepted + 3,
    `${open.requests} requests, ${open.accepted} connections`
  );
  await Promise.all(wires.map((wire) => wire.destroy()));
  // With a field that no hot request has, JavaScript handles the request.
  const odd = { TE: 'trailers' };
  for (const [problem, target, body, headers] of [
    ['bad-sprite', `/throw/${id}/left`, '[]', {}],
    ['bad-sprite', `/throw/${id}/left`, '[]', odd],
    ['unknown-client', '/throw/nobody/left', '{}', odd]
  ]) {
    const answer = await ask(server.transientPort, 'POST', target, { headers, body });
    t.equal(problemOf(answer), problem);
  }
  const counted = await server.until(
    ({ connections, heldBytes, refused }) =>
      connections === 1 &&
      heldBytes === 0 &&
      refused['bad-sprite'] === 2 &&
      refused['unknown-client'] === 1
  );
  t.ok(counted.handled >= open.handled + 2, 'also what JavaScript has handled');

  const metrics = `http://127.0.0.1:${server.adminPort}/metrics`;
  const text = await (await fetch(metrics, { headers: { Connection: 'close' } })).text();
  t.match(text, /^sprites_refused_total\{problem="bad-sprite"\} 2$/m);
  t.match(text, /^sprites_front_workers 2$/m);
  t.match(text, '# TYPE sprites_front_tls_connections gauge');
  await server.assertNothingLeft();
  await server.stop();
});

t.test('counts add up by their names', async (t) => {
  t.strictSame(addUp([]), {});
  t.strictSame(addUp([{ a: 1 }, { a: 2, b: 3, c: { x: 1 } }, { c: { x: 2, y: 4 } }]), {
    a: 3,
    b: 3,
    c: { x: 3, y: 4 }
  });
});

// ---- The end ------------------------------------------------------------------------------------

t.test('SIGTERM ends it with every parked poll answered', async (t) => {
  const server = await startWithWorkers(t);
  const parked = [];
  for (let i = 0; i < 5; i += 1) parked.push(await server.park(await server.join()));
  const idle = await Wire.open(server.transientPort);
  const half = await Wire.open(server.transientPort);
  half.send(`POST /throw/${NOBODY}/left HTTP/1.1\r\nHost: x\r\n`);
  await server.stop();
  for (const { answer } of parked) {
    const { status, body } = await answer;
    t.strictSame([status, body.sprites], [200, []]);
  }
  await Promise.all([idle.destroy(), half.destroy()]);
});

/** Returns how often all threads of a process have gone to sleep so far. */
function countSleeps(pid) {
  const threads = readdirSync(`/proc/${pid}/task`);
  const statuses = threads.map((id) => readFileSync(`/proc/${pid}/task/${id}/status`, 'utf8'));
  const sleeps = statuses.map((text) => Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(text)[1]));
  return sleeps.reduce((sum, each) => sum + each, 0);
}

t.test('what JavaScript answers when the workers have ended goes nowhere', async (t) => {
  const options = readOptions(['--workers', '1']);
  const limits = new AddressLimits(options);
  const pool = new Pool(options, limits);
  t.teardown(() => pool.close());
  let answer;
  let isCancelled = false;
  const handle = ({ park }) => {
    park(() => {
      isCancelled = true;
    });
    return new Promise((resolve) => {
      answer = resolve;
    });
  };
  const routes = { headers: {}, bodyLimits: [], defaultBodyLimit: 0, handle, answerFailure() {} };
  const feeds = emptyFeeds();
  const door = createDoor({ pool, feeds, limits, options, routes, refusals: UNCOUNTED });
  const port = await door.listen({ host: '127.0.0.1', port: 0 });
  const wire = await Wire.open(port, '127.0.0.1');
  wire.send(request('GET', '/waits'));
  await until(() => answer !== undefined);
  door.close();
  t.ok(isCancelled, 'it is cancelled');
  answer({ status: 200, headers: {}, body: 'late' });
  await pause(0);
  door.close();
});

// ---- A restart with a state: nothing is lost -----------------------------------------------------

const CLIENTS = 12;

/** Sprites thrown before the server is told to end. */
const THROWN = 200;

const WITH_STATE = {
  workers: 2,
  lease: 600,
  drain: 1,
  'throw-rate': 0,
  mailbox: 65536,
  'mailbox-bytes': '8M'
};

/** Throws on one connection, one after the other, until that ends; `promised` takes what got a 202. */
async function throwUntilClosed(server, id, acceptedUids) {
  const wire = await server.wire();
  for (let n = 1; ; n += 1) {
    wire.send(request('POST', `/throw/${id}/left?n=${n}`, { body: `{"uid":"${id}/${n}"}` }));
    let answer;
    try {
      answer = await server.read(wire);
    } catch {
      // The server has ended: whether it has taken this one is unknown.
      return wire.destroy();
    }
    if (answer.status === 202) acceptedUids.push(`${id}/${n}`);
  }
}

/** Polls, and acks what comes, until `over`; gives the names of what came. */
async function pollUntil(server, id, isOver) {
  const wire = await server.wire();
  const uids = [];
  for (let ack = 0; !isOver();) {
    wire.send(request('GET', `/poll/${id}?ack=${ack}`));
    const { body } = await server.read(wire);
    for (const { sprite } of body.sprites) uids.push(sprite.uid);
    ack = body.seq;
  }
  await wire.destroy();
  return uids;
}

t.test('what was promised while the server ends comes after its restart', async (t) => {
  const options = {
    ...WITH_STATE,
    state: join(t.testdir(), 'state'),
    'publish-token-file': tokenFile(t)
  };
  const one = await startServer(t, { options });
  const ids = [];
  for (let i = 0; i < CLIENTS; i += 1) ids.push(await one.join());
  await put(one, 'scores', { home: 1 });
  const watcher = await one.wire();
  watcher.send(request('GET', '/feed/scores'));
  const { cursor } = (await one.read(watcher)).body;
  // Half of them are parked once, and get what is thrown while they are; none acks it.
  const parked = [];
  for (const id of ids.slice(0, CLIENTS / 2)) parked.push(await one.park(id));
  const promised = [];
  const throwing = ids.map((id) => throwUntilClosed(one, id, promised));
  await one.until(({ thrown }) => thrown > THROWN);
  one.child.kill('SIGTERM');
  await Promise.all(throwing);
  for (const { answer } of parked) t.equal((await answer).status, 200, 'answered');
  t.strictSame(await one.ended(), { code: 0, signal: null });

  const two = await startServer(t, { options });
  const { clients, thrown, acked, waiting, lost } = await two.status();
  t.equal(clients, CLIENTS, 'every client has its place');
  t.equal(acked + lost, 0);
  t.ok(thrown >= promised.length, `${thrown} thrown, ${promised.length} promised`);
  t.equal(waiting, thrown);
  let hasStopped = false;
  const catching = ids.map((id) => pollUntil(two, id, () => hasStopped));
  await two.until((status) => status.waiting === 0);
  hasStopped = true;
  for (const id of ids) await two.leave(id);
  const uids = (await Promise.all(catching)).flat();
  const receivedUids = new Set(uids);
  t.equal(receivedUids.size, uids.length, 'none came twice');
  t.strictSame(
    promised.filter((uid) => !receivedUids.has(uid)),
    [],
    'none is missing'
  );
  const { body } = await get(two, 'scores', `after=${cursor}&hold=5`);
  t.strictSame(body, { feed: 'scores', cursor }, 'a feed keeps its version');
  await two.stop();
});

t.test('feeds that are watched in workers show what the main thread has', async (t) => {
  const options = { workers: 2, drain: 0, 'publish-token-file': tokenFile(t) };
  const server = await startServer(t, { options });
  const value = Array.from({ length: 200 }, (_, i) => `line ${i}`);
  await put(server, 'large', value);
  // Enough that each worker has a first one that asks for it compressed.
  for (let i = 0; i < 12; i += 1) {
    const wire = await server.wire();
    wire.send(request('GET', '/feed/large', { headers: { 'Accept-Encoding': 'gzip' } }));
    const { headers, bytes } = await server.read(wire, { gzip: true });
    await wire.destroy();
    t.equal(headers['content-encoding'], 'gzip');
    t.strictSame(JSON.parse(gunzipSync(bytes)).value, value);
  }

  const { cursor } = (await put(server, 'watched', 1)).body;
  const watchers = await Promise.all(
    Array.from({ length: 3 }, () => parkGet(server, 'watched', `after=${cursor}`))
  );
  const page = await Wire.open(server.adminPort, '127.0.0.1');
  await until(async () => {
    const { body } = await page.send(request('GET', '/overview')).read();
    const feeds = body.feeds.map(({ key, watching }) => `${key}: ${watching}`);
    return feeds.join() === 'watched: 3,large: 0';
  });
  for (const wire of [page, ...watchers.map((one) => one.wire)]) await wire.destroy();
  await server.stop();
});

// ---- At rest ------------------------------------------------------------------------------------

/** Most wake-ups a second of all threads of an idle server, together. */
const MAX_WAKE_UPS = [
  { of: 'a server', options: () => ({}), most: 8 },
  { of: 'one with a state', options: (t) => ({ state: join(t.testdir(), 'state') }), most: 8 },
  { of: 'one with workers', options: () => ({ workers: 2 }), most: 12 }
];

for (const { of, options, most } of MAX_WAKE_UPS) {
  t.test(`with nothing to do all threads sleep: ${of}`, async (t) => {
    const server = await startServer(t, { options: { drain: 0, ...options(t) } });
    await until(async () => {
      const [before, begin] = [countSleeps(server.pid), performance.now()];
      await pause(500);
      const seconds = (performance.now() - begin) / 1000;
      return (countSleeps(server.pid) - before) / seconds < most;
    }, 'it is at rest');
    await server.stop();
  });
}

t.test('what a worker has answered is counted when it rests', async (t) => {
  const options = { port: 0, host: '127.0.0.1', drain: 0, workers: 1, hold: 1 };
  const server = await createSprites(options);
  t.teardown(() => server.close());
  const own = '/proc/self/task';
  const of = (id, file) => readFileSync(`${own}/${id}/${file}`, 'utf8');
  const worker = readdirSync(own).find((id) => of(id, 'comm') === 'worker 1\n');
  const wire = await Wire.open(server.port, '127.0.0.1');
  wire.send(request('GET', '/feed/a?after=none'));
  t.equal((await wire.read()).status, 200);
  await until(() => of(worker, 'stat').includes(') S '));
  t.equal(server.status().watching, 0);
  await wire.destroy();
});

t.test('a server that is woken knows the time: no hold ends early', async (t) => {
  const receive = async (workers) => {
    const server = await startServer(t, { options: { workers, hold: 1, drain: 0 } });
    const id = await server.join();
    const wire = await server.wire();
    for (const target of [`/poll/${id}`, '/feed/a?after=none']) {
      // By then the server sleeps for longer at a time.
      await pause(550);
      const begin = performance.now();
      wire.send(request('GET', target));
      t.equal((await server.read(wire)).status, 200);
      t.ok(performance.now() - begin >= 1000, `${target} with ${workers} workers`);
    }
    await server.stop();
  };
  await Promise.all([0, 1].map(receive));
});
