import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { addUp } from '../../lib/operator/live.js';
import { checkAnswer, problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { launchToEnd } from '../support/launch.js';
import { ROOT, startServer } from '../support/server.js';
import { childrenOf } from '../support/processes.js';
import { until } from '../support/until.js';

/**
 * The workers' port: the same answers as on the main port, whoever dies meanwhile.
 */

const MAX_SPRITE = 1000;
const NOBODY = '11111111-2222-8333-8444-000000000000';

/** Starts a server with workers; `server.transient` is their port. */
async function startWithWorkers(t, options = {}) {
  const server = await startServer(t, {
    options: { workers: 2, 'transient-port': 0, drain: 0, ...options }
  });
  const { transient, id } = (await server.ask('POST', '/join')).body;
  await server.leave(id);
  return Object.assign(server, { transient });
}

/** Whether a process is there; one that nobody has buried is not. */
function lives(pid) {
  try {
    return !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, 'latin1'));
  } catch {
    return false;
  }
}

/** Waits until something holds. */
async function soon(t, holds, what) {
  await until(holds, what);
  t.pass(what);
}

// ---- The ways a request can be sent -------------------------------------------------------------

/** A body in two chunks. */
function chunked(body) {
  const half = body.length >> 1;
  const parts = [body.subarray(0, half), body.subarray(half)].filter(({ length }) => length > 0);
  return Buffer.concat(
    [...parts, Buffer.alloc(0)].map((part) =>
      Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')])
    )
  );
}

/** Each sends one request over a connection and reads its answer. */
const WAYS = {
  async whole(wire, method, target, body) {
    wire.send(request(method, target, { body }));
    return wire.read();
  },
  async chunked(wire, method, target, body = '') {
    wire
      .send(
        request(method, target, {
          headers: { 'Transfer-Encoding': 'chunked', 'Content-Length': undefined }
        })
      )
      .send(chunked(Buffer.from(body)));
    return wire.read();
  },
  async expecting(wire, method, target, body = '') {
    wire.send(
      request(method, target, {
        headers: { Expect: '100-continue', 'Content-Length': Buffer.byteLength(body) }
      })
    );
    const first = await wire.read();
    if (first.status !== 100) return first;
    wire.send(Buffer.from(body));
    return wire.read();
  },
  async byteByByte(wire, method, target, body) {
    const bytes = request(method, target, { body }).toString('latin1');
    // What is too large is refused by its head; sending on would be into a closed connection.
    const tooLarge = Buffer.byteLength(body ?? '') > MAX_SPRITE;
    await wire.sendByteByByte(tooLarge ? bytes.slice(0, bytes.indexOf('\r\n\r\n') + 4) : bytes);
    return wire.read();
  },
  async pipelined(wire, method, target, body) {
    wire.send(
      Buffer.concat([
        request('POST', `/leave/${NOBODY}`),
        request(method, target, { body }),
        request('POST', `/leave/${NOBODY}`)
      ])
    );
    t.equal((await wire.read()).status, 204, 'the one before is answered before');
    const answer = await wire.read();
    if (answer.headers.connection !== 'close') t.equal((await wire.read()).status, 204);
    return answer;
  }
};

/** One request over a connection of its own. */
async function ask(port, way, ...what) {
  const wire = await Wire.open(port);
  try {
    return checkAnswer(await WAYS[way](wire, ...what));
  } finally {
    await wire.destroy();
  }
}

/** What must be the same on both ports: everything but the time, and who it is. */
function shape({ status, headers, bytes }) {
  const { date, ...fields } = headers;
  return {
    status,
    date: date !== undefined,
    fields,
    body: bytes.toString().replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, 'ID')
  };
}

// ---- The same answers ---------------------------------------------------------------------------

const BIG = `{"x":"${'.'.repeat(900)}"}`;

/**
 * What is asked for, each with its outcome, by a client with one neighbor besides itself: two fill
 * this torus. `before` are throws that come first.
 */
const THROWS = [
  ['queued', {}],
  ['queued', { query: '?n=7', body: ' {"a":"é\\u00e9🎈"}\n' }],
  ['delivered', { parked: true }],
  ['duplicate', { query: '?n=1', before: [['left', '{}', '?n=1']] }],
  ['stale-number', { query: '?n=1', before: [['left', '{}', '?n=900']] }],
  ['bad-sprite', { body: '[]' }],
  ['bad-sprite', { body: '{"a":1' }],
  ['bad-sprite', { body: '' }],
  ['sprite-too-large', { body: `{"x":"${'.'.repeat(MAX_SPRITE)}"}` }],
  ['unknown-client', { id: NOBODY }],
  ['unknown-client', { id: 'nonsense' }],
  ['bad-edge', { edge: 'north' }],
  ['bad-number', { query: '?n=-1' }],
  ['bad-number', { query: '?n=1&n=2' }],
  ['bad-number', { query: '?n=9007199254740992' }],
  ['neighbor-busy', { before: Array(3).fill(['left', '{}', '']) }],
  ['neighbor-busy', { body: BIG, before: Array(2).fill(['left', BIG, '']) }],
  ['mailboxes-full', { edge: 'up', body: BIG, before: Array(2).fill(['left', BIG, '']) }]
];

t.test('throws, joins and leaves are answered as on the main port', async (t) => {
  const server = await startWithWorkers(t, {
    capacity: 2,
    mailbox: 3,
    'max-sprite': MAX_SPRITE,
    'mailbox-bytes': 2048,
    'mailbox-memory': 2048,
    'throw-rate': 0,
    'address-joins': 0
  });

  async function throwOver(
    port,
    way,
    { id, edge = 'left', query = '', body = '{}', before = [], parked = false }
  ) {
    const ids = [await server.join(), await server.join()];
    const parkedWires = [];
    for (const one of parked ? ids : []) parkedWires.push((await server.park(one)).wire);
    for (const [over, sprite, number] of before) {
      const { status } = await ask(port, way, 'POST', `/throw/${ids[0]}/${over}${number}`, sprite);
      t.equal(status, 202, 'the ones before pass');
    }
    const answer = await ask(port, way, 'POST', `/throw/${id ?? ids[0]}/${edge}${query}`, body);
    await server.leaveNothing();
    return answer;
  }

  for (const way of Object.keys(WAYS)) {
    t.test(`sent ${way}`, async (t) => {
      for (const [expected, what] of THROWS) {
        const there = await throwOver(server.port, way, what);
        const here = await throwOver(server.transient, way, what);
        t.equal(problemOf(here) ?? here.body.state, expected);
        t.strictSame(shape(here), shape(there), `${expected} in the same words`);
      }
      const join = async (port) => {
        const answer = await ask(port, way, 'POST', '/join');
        t.match(answer.body, { transient: server.transient }, "tells the workers' port");
        return answer;
      };
      const [there, here] = [await join(server.port), await join(server.transient)];
      t.strictSame(shape(here), shape(there), 'a join');
      t.equal((await server.poll(here.body.id, 'ack=1')).status, 400, 'it is somebody now');
      const full = (port) => ask(port, way, 'POST', '/join');
      t.equal(problemOf(await full(server.transient)), 'torus-full');
      t.strictSame(shape(await full(server.transient)), shape(await full(server.port)));
      const leave = (port, id) => ask(port, way, 'POST', `/leave/${id}`);
      t.strictSame(
        shape(await leave(server.transient, here.body.id)),
        shape(await leave(server.port, there.body.id)),
        'a leave'
      );
      t.equal((await server.status()).clients, 0, 'both have left');
      for (const id of [here.body.id, NOBODY, 'nonsense']) {
        t.strictSame(shape(await leave(server.transient, id)), shape(await leave(server.port, id)));
      }
    });
  }

  t.test(
    'what is not served there is misdirected, everything else is as on the main port',
    async (t) => {
      const id = await server.join();
      for (const way of ['whole', 'byteByByte', 'chunked']) {
        for (const target of [
          `/poll/${id}`,
          `/place/${id}`,
          '/status',
          '/',
          '/page/page.js',
          '/x'
        ]) {
          const answer = await ask(server.transient, way, 'GET', target);
          t.equal(problemOf(answer), 'misdirected', target);
          t.equal(answer.status, 421);
        }
      }
      for (const [method, target] of [
        ['GET', '/join'],
        ['GET', `/throw/${id}/left`],
        ['DELETE', `/leave/${id}`],
        ['OPTIONS', '/join'],
        ['OPTIONS', `/throw/${id}/left`]
      ]) {
        t.strictSame(
          shape(await ask(server.transient, 'whole', method, target)),
          shape(await ask(server.port, 'whole', method, target)),
          `${method} ${target}`
        );
      }
      await server.leaveNothing();
    }
  );

  t.test("a poll parked on the main port is answered by a throw on the workers'", async (t) => {
    const id = await server.join();
    const { answer } = await server.park(id);
    const thrown = await ask(server.transient, 'whole', 'POST', `/throw/${id}/up`, '{"x":[1]}');
    t.strictSame(thrown.body, { state: 'delivered' });
    t.strictSame((await answer).body, {
      seq: 1,
      sprites: [{ seq: 1, from: 'down', sprite: { x: [1] } }]
    });
    await server.leaveNothing();
  });

  await t.test('it stops well', () => server.stop());
});

t.test(
  'an address may join so often, a client throw so often, on both ports together',
  async (t) => {
    const server = await startWithWorkers(t, {
      'address-joins': 1,
      'throw-rate': 1,
      'throw-burst': 2
    });
    const throwers = [await server.join(), await server.join()];

    /** Asks until it is too much. */
    async function untilRefused(what) {
      for (let i = 0; i < 500; i += 1) {
        const answer = await what(i);
        if (answer.status === 429) return answer;
      }
      return t.fail('never too much');
    }
    const throwAt = (port, id, way) =>
      untilRefused(() => ask(port, way, 'POST', `/throw/${id}/left`, '{}'));
    for (const way of ['whole', 'chunked']) {
      const here = await throwAt(server.transient, throwers[0], way);
      t.equal(problemOf(here), 'too-many-throws');
      t.strictSame(shape(here), shape(await throwAt(server.port, throwers[1], way)));
    }
    const joinAt = (port, way) => untilRefused(() => ask(port, way, 'POST', '/join'));
    for (const way of ['whole', 'chunked']) {
      const here = await joinAt(server.transient, way);
      t.equal(problemOf(here), 'too-many-joins');
      t.strictSame(shape(here), shape(await joinAt(server.port, way)));
    }
    const { joined } = await server.status();
    await untilRefused(() => ask(server.transient, 'whole', 'POST', '/join'));
    t.ok((await server.status()).joined < joined + 10, 'one allowance, not one a port');
    const elsewhere = new Wire(
      await new Promise((resolve) => {
        const socket = connect(
          {
            port: server.transient,
            host: '127.0.0.1',
            localAddress: '127.0.0.9',
            allowHalfOpen: true
          },
          () => resolve(socket)
        );
      })
    );
    elsewhere.send(request('POST', '/join'));
    t.equal((await elsewhere.read()).status, 201, 'another address may');
    await elsewhere.destroy();
    await server.stop();
  }
);

/** Opens connections one by one and asks over each; resolves to the statuses of those that stay. */
async function served(t, port, most, ...what) {
  const wires = [];
  const statuses = [];
  for (let i = 0; i < most; i += 1) {
    const wire = await Wire.open(port);
    wires.push(wire);
    wire.send(request(...what));
    const answer = checkAnswer(await wire.read());
    if (answer.status === 503) t.equal(problemOf(answer), 'too-many-connections');
    else statuses.push(answer.status);
    if (answer.status === 503) await wire.destroy();
  }
  await Promise.all(wires.map((wire) => wire.destroy()));
  return statuses;
}

t.test('each worker has its share of the connections, and an address one for all', async (t) => {
  const leave = ['POST', `/leave/${NOBODY}`];
  for (const [name, limit, expected, what] of [
    ['connections', 8, 8, leave],
    // Counted once, whichever worker they come to.
    ['address-connections', 3, 3, leave]
  ]) {
    const server = await startWithWorkers(t, { [name]: limit });
    // Which worker a connection comes to is the kernel's choice: of so many, enough to each.
    t.strictSame(
      await served(t, server.transient, 48, ...what),
      Array(expected).fill(204),
      `--${name} ${limit}`
    );
    await server.stop();
  }
});

t.test('of many at once each gets its own answer', async (t) => {
  const server = await startWithWorkers(t, { 'throw-rate': 0, 'address-joins': 0, mailbox: 65536 });
  const ids = await Promise.all(
    Array.from(
      { length: 40 },
      async () => (await ask(server.transient, 'whole', 'POST', '/join')).body.id
    )
  );
  t.equal(new Set(ids).size, 40, 'every newcomer has an id of its own');
  t.equal((await server.status()).clients, 40);
  const expected = [202, 404, 400, 400, 204];
  const outcomes = await Promise.all(
    ids
      .flatMap((id, i) =>
        ['whole', 'chunked'].map((way) => [
          way,
          ...[
            ['POST', `/throw/${id}/left?n=${i}`, `{"by":${i}}`],
            ['POST', `/throw/${NOBODY}/left`, '{}'],
            ['POST', `/throw/${id}/left`, '{'],
            ['POST', `/throw/${id}/left?n=x`, '{}'],
            ['POST', `/leave/${NOBODY}`]
          ][i % 5]
        ])
      )
      .map((what) => ask(server.transient, ...what))
  );
  t.strictSame(
    outcomes.map(({ status }) => status),
    outcomes.map((_, i) => expected[(i >> 1) % 5])
  );
  // By each way once, in any order: one is served, the other the duplicate.
  const states = ids
    .map((_, i) => i)
    .filter((i) => i % 5 === 0)
    .map((i) => [outcomes[2 * i].body.state, outcomes[2 * i + 1].body.state].sort());
  t.strictSame(
    states,
    states.map(() => ['duplicate', 'queued'])
  );

  const wire = await Wire.open(server.transient);
  const numbers = Array.from({ length: 60 }, (_, i) => (i % 3 === 2 ? i - 1 : i) + 100);
  wire.send(
    Buffer.concat(
      numbers.map((n) => request('POST', `/throw/${ids[0]}/left?n=${n}`, { body: '{}' }))
    )
  );
  const inOrder = [];
  for (const n of numbers) inOrder.push([n, (await wire.read()).body.state]);
  t.strictSame(
    inOrder,
    numbers.map((n, i) => [n, i % 3 === 2 ? 'duplicate' : 'queued']),
    'on one connection in order'
  );
  await wire.destroy();
  await server.stop();
});

t.test('a thrower that half-closes after its throw is answered', async (t) => {
  const server = await startWithWorkers(t);
  const id = await server.join();
  for (const port of [server.port, server.transient]) {
    const wire = await Wire.open(port);
    wire.send(request('POST', `/throw/${id}/left`, { body: '{}' })).half();
    t.equal((await wire.read()).status, 202);
    await wire.destroy();
  }
  await server.stop();
});

// ---- What is counted ----------------------------------------------------------------------------

t.test('what the workers count is in /status, and never goes back', async (t) => {
  const server = await startWithWorkers(t, { 'admin-port': 0, 'max-sprite': MAX_SPRITE });
  const id = await server.join();
  const before = await server.status();
  const wires = await Promise.all(Array.from({ length: 3 }, () => Wire.open(server.transient)));
  for (const wire of wires) {
    wire.send(request('POST', `/leave/${NOBODY}`));
    await wire.read();
  }
  wires[0].send(`POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: 20\r\n\r\n{`);
  const open = await server.until(
    ({ workerConnections, workerHeldBytes }) => workerConnections === 3 && workerHeldBytes > 0
  );
  t.ok(
    open.requests >= before.requests + 3 && open.accepted >= before.accepted + 3,
    `${open.requests} requests, ${open.accepted} connections`
  );
  await Promise.all(wires.map((wire) => wire.destroy()));
  for (const [problem, way, target, body] of [
    ['bad-sprite', 'whole', `/throw/${id}/left`, '[]'],
    ['bad-sprite', 'chunked', `/throw/${id}/left`, '[]'],
    ['unknown-client', 'chunked', '/throw/nobody/left', '{}']
  ]) {
    const answer = await ask(server.transient, way, 'POST', target, body);
    t.equal(problemOf(answer), problem);
  }
  const counted = await server.until(
    ({ workerConnections, workerHeldBytes, refused }) =>
      workerConnections === 0 &&
      workerHeldBytes === 0 &&
      refused['bad-sprite'] === 2 &&
      refused['unknown-client'] === 1
  );
  t.ok(counted.handled >= open.handled + 2, 'also what JavaScript has handled');

  for (const pid of childrenOf(server.pid)) process.kill(pid, 'SIGKILL');
  const after = await server.until(
    ({ workers, workerDeaths }) => workers === 2 && workerDeaths === 2
  );
  for (const name of ['accepted', 'requests', 'handled']) {
    t.ok(after[name] >= counted[name], `${name}: ${after[name]} after ${counted[name]}`);
  }
  t.strictSame(after.refused, counted.refused);

  const [, admin] = /:(\d+)\/metrics/.exec(server.lines.find((line) => line.includes('/metrics')));
  const scrape = await Wire.open(Number(admin));
  scrape.send(request('GET', '/metrics', { headers: { Connection: 'close' } }));
  await scrape.closed();
  const text = scrape.leftOver.toString();
  t.match(text, /^sprites_refused_total\{problem="bad-sprite"\} 2$/m);
  t.match(text, /^sprites_front_worker_connections 0$/m);
  t.match(text, '# TYPE sprites_front_worker_connections gauge');
  t.match(text, '# TYPE sprites_front_tls_connections gauge');
  await scrape.destroy();
  await server.leaveNothing();
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

// ---- Workers that die ---------------------------------------------------------------------------

/** Throws over the workers' port until it is answered, as clients do: the same number again. */
async function throwAndRepeat(server, id, edge, n, body) {
  let repeats = 0;
  for (; ; repeats += 1) {
    try {
      const answer = await ask(
        server.transient,
        'whole',
        'POST',
        `/throw/${id}/${edge}?n=${n}`,
        body
      );
      if (answer.status === 202) return { state: answer.body.state, repeats };
      if (answer.status !== 503) throw new Error(`answered ${answer.status}: ${answer.bytes}`);
    } catch (error) {
      // Nobody answers: the connection was reset, refused or ended.
      if (error.code === undefined || error.message.startsWith('answered')) throw error;
    }
    await pause(5);
  }
}

/** One poll; undefined where its worker has died, or none is there to take it. */
async function pollOnce(server, target) {
  let wire;
  try {
    wire = await Wire.open(server.port);
    wire.send(request('GET', target));
    return (await wire.read()).body;
  } catch (error) {
    if (error.code === undefined && !error.message.includes('ended in')) throw error;
    await pause(5);
    return undefined;
  } finally {
    await wire?.destroy();
  }
}

/** Polls until `done`, and keeps what comes by its sequence number. */
async function catchAll(server, id, done) {
  const caught = [];
  let ack = 0;
  while (!done()) {
    const body = await pollOnce(server, `/poll/${id}?ack=${ack}&hold=5`);
    // The worker that held it is gone: what it was answered comes again.
    if (body === undefined) continue;
    for (const { seq, sprite } of body.sprites) {
      if (seq !== caught.length + 1) throw new Error(`number ${seq} after ${caught.length}`);
      caught.push(sprite.uid);
    }
    ack = body.seq;
  }
  return caught;
}

t.test('with workers killed under load nothing is lost and nothing comes twice', async (t) => {
  const CLIENTS = 8;
  const THROWS_EACH = 60;
  const KILLS = 5;
  const server = await startWithWorkers(t, { 'throw-rate': 0, 'address-joins': 0 });
  const ids = [];
  for (let i = 0; i < CLIENTS; i += 1) ids.push(await server.join());
  let over = false;
  const catchers = ids.map((id) => catchAll(server, id, () => over));

  let accepted = 0;
  let kills = 0;
  let repeats = 0;
  const uids = [];
  const throwing = ids.map(async (id, who) => {
    for (let n = 1; n <= THROWS_EACH; n += 1) {
      const uid = `${who}/${n}`;
      uids.push(uid);
      const edge = ['left', 'right', 'up', 'down'][n % 4];
      const done = await throwAndRepeat(server, id, edge, n, JSON.stringify({ uid }));
      repeats += done.repeats;
      accepted += 1;
      if (accepted % ((CLIENTS * THROWS_EACH) / (KILLS + 1)) === 0 && kills < KILLS) {
        const workers = childrenOf(server.pid);
        // While others are on their way through it.
        process.kill(workers[kills % workers.length], 'SIGKILL');
        kills += 1;
      }
    }
  });
  await Promise.all(throwing);
  const status = await server.until(
    ({ workers, workerDeaths, waiting }) => workers === 2 && workerDeaths === KILLS && waiting === 0
  );
  t.strictSame([status.workers, status.workerDeaths], [2, KILLS], 'every one is started again');
  t.equal(status.thrown, uids.length, 'each was thrown once');
  t.equal(status.lost, 0);
  over = true;
  for (const id of ids) await server.leave(id);
  const caught = (await Promise.all(catchers)).flat();
  t.equal(caught.length, uids.length);
  t.strictSame(caught.sort(), uids.sort(), 'each came once');
  t.comment(`${repeats} repeats`);
  await server.stop();
});

t.test('a repeated throw is a duplicate if it was served, and is served if not', async (t) => {
  const server = await startWithWorkers(t, { workers: 1, 'throw-rate': 0 });
  const id = await server.join();
  let duplicates = 0;
  let n = 0;
  for (; n < 30 && duplicates < 2; n += 1) {
    await server.until(({ workers }) => workers === 1);
    const [worker] = childrenOf(server.pid);
    const { thrown } = await server.status();
    const wire = await Wire.open(server.transient);
    // A connection that the worker has not accepted would wait for the next one, and not end.
    t.equal((await wire.send(request('OPTIONS', '/join')).read()).status, 204);
    // The worker asks, nobody answers, and it dies: was it served or not?
    server.child.kill('SIGSTOP');
    wire.send(request('POST', `/throw/${id}/left?n=${n}`, { body: `{"uid":${n}}` }));
    await pause(5 * n);
    process.kill(worker, 'SIGKILL');
    await wire.closed();
    t.equal(wire.leftOver.length, 0, 'no answer');
    server.child.kill('SIGCONT');
    const before = await server.until(({ workerDeaths }) => workerDeaths === n + 1);
    const served = before.thrown > thrown;
    const { state } = await throwAndRepeat(server, id, 'left', n, `{"uid":${n}}`);
    t.equal(state, served ? 'duplicate' : 'queued');
    if (served) duplicates += 1;
    t.equal((await server.status()).thrown, thrown + 1);
    await wire.destroy();
  }
  t.equal(duplicates, 2, 'it was served at least twice');
  t.strictSame(
    (await server.poll(id)).body.sprites.map(({ sprite }) => sprite.uid),
    Array.from({ length: n }, (_, i) => i)
  );
  await server.leaveNothing();
  await server.stop();
});

t.test('a worker that dies leaves no descriptor behind', async (t) => {
  const server = await startWithWorkers(t, { workers: 1 });
  for (let deaths = 1; deaths <= 3; deaths += 1) {
    process.kill(childrenOf(server.pid)[0], 'SIGKILL');
    await server.until((status) => status.workers === 1 && status.workerDeaths === deaths);
  }
  await server.noConnectionBut(0);
  await server.leaveNothing();
  await server.stop();
});

t.test(
  'a worker that dies again and again is started ever later, one that was well at once',
  async (t) => {
    const server = await startWithWorkers(t, { workers: 1 });
    let deaths = 0;

    /** Kills the worker; resolves to what the log says of its death. */
    async function kill() {
      process.kill(childrenOf(server.pid)[0], 'SIGKILL');
      deaths += 1;
      await server.until(({ workers, workerDeaths }) => workers === 1 && workerDeaths === deaths);
      return Buffer.concat(server.errors)
        .toString()
        .split('\n')
        .filter(Boolean)
        .map(JSON.parse)
        .filter(({ signal }) => signal === 'SIGKILL')
        .at(-1);
    }

    await pause(600);
    let last = await kill();
    t.equal(last.wait, 50, 'at once');
    for (let doubled = 0; doubled < 3;) {
      const next = await kill();
      // On a machine that is busy it may have listened for long after all.
      const quick = next.time - last.time - last.wait < 500;
      if (quick)
        t.equal(next.wait, Math.min(2 * last.wait, 5000), `${next.wait} ms after ${last.wait}`);
      doubled = quick ? doubled + 1 : 0;
      last = next;
    }
    await pause(600);
    t.equal((await kill()).wait, 50, 'at once, after it was well');
    await server.stop();
  }
);

// ---- The end ------------------------------------------------------------------------------------

t.test('SIGTERM ends main process and workers, with every parked poll answered', async (t) => {
  const server = await startWithWorkers(t);
  const workers = childrenOf(server.pid);
  t.equal(workers.length, 2);
  const parked = [];
  for (let i = 0; i < 5; i += 1) parked.push(await server.park(await server.join()));
  const idle = await Wire.open(server.transient);
  const half = await Wire.open(server.transient);
  half.send(`POST /throw/${NOBODY}/left HTTP/1.1\r\nHost: x\r\n`);
  await server.stop();
  for (const { answer } of parked) {
    const { status, body } = await answer;
    t.strictSame([status, body.sprites], [200, []]);
  }
  for (const pid of workers) t.notOk(lives(pid), 'a worker is gone');
  await Promise.all([idle.destroy(), half.destroy()]);
});

t.test('a worker killed together with the order to stop does not hold it up', async (t) => {
  const server = await startWithWorkers(t);
  const workers = childrenOf(server.pid);
  process.kill(workers[0], 'SIGKILL');
  await server.stop();
  await soon(t, () => !workers.some(lives), 'both are gone');
});

t.test(
  'SIGTERM to every process of the group, as from a service manager, is the same',
  async (t) => {
    const server = await startWithWorkers(t);
    const workers = childrenOf(server.pid);
    const { answer } = await server.park(await server.join());
    for (const pid of workers) process.kill(pid, 'SIGTERM');
    t.equal(
      (await ask(server.transient, 'whole', 'POST', `/leave/${NOBODY}`)).status,
      204,
      'a worker waits for the main process'
    );
    await server.stop();
    t.equal((await answer).status, 200);
    t.notOk(workers.some(lives));
  }
);

t.test('with the main process killed the workers end by themselves', async (t) => {
  const server = await startWithWorkers(t);
  const workers = childrenOf(server.pid);
  const idle = await Wire.open(server.transient);
  server.child.kill('SIGKILL');
  await server.ended();
  await soon(t, () => !workers.some(lives), 'no worker is left');
  await idle.destroy();
});

// ---- The start ----------------------------------------------------------------------------------

t.test('a start that fails says why in one line and leaves no worker behind', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.teardown(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address();
  const failures = {
    "the workers' port is taken": { port: 0, 'transient-port': port },
    'the main port is taken': { port, 'transient-port': 0 },
    'the certificate is none': {
      port: 0,
      'transient-port': 0,
      'tls-cert': `${ROOT}package.json`,
      'tls-key': `${ROOT}package.json`,
      'tls-port': 0
    }
  };
  for (const [why, options] of Object.entries(failures)) {
    t.test(why, async (t) => {
      const { code, errors, pid } = await launchToEnd(
        t,
        { workers: 2, ...options },
        { detached: true }
      );
      t.equal(code, 1);
      t.match(errors, /^sprites: [^\n]+\n$/, 'one line');
      if (why.includes('port')) t.match(errors, `127.0.0.1:${port} is taken`);
      t.throws(() => process.kill(-pid, 0), { code: 'ESRCH' }, 'nobody is left');
    });
  }
});
