import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { createServer as createSprites } from 'sprites-server';

import { addUp } from '../../lib/base/add-up.js';
import { createDoor } from '../../lib/http/door.js';
import { readOptions } from '../../lib/operator/options.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { Pool } from '../../lib/torus/pool.js';
import { checkAnswer, problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { launchToEnd } from '../support/launch.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Workers, and the transient port: the same answers as by the main thread.
 */

const MAX_SPRITE = 1000;
const NOBODY = '11111111-2222-8333-8444-000000000000';

const startWithWorkers = (t, options = {}) =>
  startServer(t, { options: { workers: 2, 'transient-port': 0, drain: 0, ...options } });

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
        const here = await throwOver(server.transientPort, way, what);
        t.equal(problemOf(here) ?? here.body.state, expected);
        t.strictSame(shape(here), shape(there), `${expected} in the same words`);
      }
      const join = async (port) => {
        const answer = await ask(port, way, 'POST', '/join');
        t.match(answer.body, { transient: server.transientPort }, 'tells the transient port');
        return answer;
      };
      const [there, here] = [await join(server.port), await join(server.transientPort)];
      t.strictSame(shape(here), shape(there), 'a join');
      t.equal((await server.poll(here.body.id, 'ack=1')).status, 400, 'it is a client now');
      const full = (port) => ask(port, way, 'POST', '/join');
      t.equal(problemOf(await full(server.transientPort)), 'torus-full');
      t.strictSame(shape(await full(server.transientPort)), shape(await full(server.port)));
      const leave = (port, id) => ask(port, way, 'POST', `/leave/${id}`);
      t.strictSame(
        shape(await leave(server.transientPort, here.body.id)),
        shape(await leave(server.port, there.body.id)),
        'a leave'
      );
      t.equal((await server.status()).clients, 0, 'both have left');
      for (const id of [here.body.id, NOBODY, 'nonsense']) {
        t.strictSame(
          shape(await leave(server.transientPort, id)),
          shape(await leave(server.port, id))
        );
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
          const answer = await ask(server.transientPort, way, 'GET', target);
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
          shape(await ask(server.transientPort, 'whole', method, target)),
          shape(await ask(server.port, 'whole', method, target)),
          `${method} ${target}`
        );
      }
      await server.leaveNothing();
    }
  );

  t.test(
    'a poll parked on the main port is answered by a throw on the transient one',
    async (t) => {
      const id = await server.join();
      const { answer } = await server.park(id);
      const thrown = await ask(
        server.transientPort,
        'whole',
        'POST',
        `/throw/${id}/up`,
        '{"x":[1]}'
      );
      t.strictSame(thrown.body, { state: 'delivered' });
      t.strictSame((await answer).body, {
        seq: 1,
        sprites: [{ seq: 1, from: 'down', sprite: { x: [1] } }]
      });
      await server.leaveNothing();
    }
  );

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
      const here = await throwAt(server.transientPort, throwers[0], way);
      t.equal(problemOf(here), 'too-many-throws');
      t.strictSame(shape(here), shape(await throwAt(server.port, throwers[1], way)));
    }
    const joinAt = (port, way) => untilRefused(() => ask(port, way, 'POST', '/join'));
    for (const way of ['whole', 'chunked']) {
      const here = await joinAt(server.transientPort, way);
      t.equal(problemOf(here), 'too-many-joins');
      t.strictSame(shape(here), shape(await joinAt(server.port, way)));
    }
    const { joined } = await server.status();
    await untilRefused(() => ask(server.transientPort, 'whole', 'POST', '/join'));
    t.ok((await server.status()).joined < joined + 10, 'one allowance, not one a port');
    const elsewhere = await Wire.open(server.transientPort, '127.0.0.1', '127.0.0.9');
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

t.test('a bound holds for all workers together', async (t) => {
  const leave = ['POST', `/leave/${NOBODY}`];
  for (const [name, limit] of Object.entries({ connections: 8, 'address-connections': 3 })) {
    const server = await startWithWorkers(t, { [name]: limit });
    // Which worker a connection comes to is the kernel's choice.
    const statuses = await served(t, server.transientPort, 48, ...leave);
    t.strictSame(statuses, Array(limit).fill(204), `--${name} ${limit}`);
    await server.stop();
  }
});

t.test('of many at once each gets its own answer', async (t) => {
  const server = await startWithWorkers(t, { 'throw-rate': 0, 'address-joins': 0, mailbox: 65536 });
  const ids = await Promise.all(
    Array.from(
      { length: 40 },
      async () => (await ask(server.transientPort, 'whole', 'POST', '/join')).body.id
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
      .map((what) => ask(server.transientPort, ...what))
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

  const wire = await Wire.open(server.transientPort);
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

// ---- What is counted ----------------------------------------------------------------------------

t.test('what the workers count is in /status, each at once', async (t) => {
  const server = await startWithWorkers(t, { 'max-sprite': MAX_SPRITE });
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
  for (const [problem, way, target, body] of [
    ['bad-sprite', 'whole', `/throw/${id}/left`, '[]'],
    ['bad-sprite', 'chunked', `/throw/${id}/left`, '[]'],
    ['unknown-client', 'chunked', '/throw/nobody/left', '{}']
  ]) {
    const answer = await ask(server.transientPort, way, 'POST', target, body);
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

/** How often the threads of a process have gone to sleep so far. */
function sleepsOf(pid) {
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
  const routes = { headers: {}, mostBody: [], otherBody: 0, handle, failed() {} };
  const door = createDoor({ pool, limits, options, routes });
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

// ---- At rest ------------------------------------------------------------------------------------

/** How often a second the threads of a server with nothing to do are woken at the most, all together. */
const WAKINGS = [
  { of: 'a server', options: () => ({}), most: 8 },
  { of: 'one with a state', options: (t) => ({ state: join(t.testdir(), 'state') }), most: 8 },
  { of: 'one with workers', options: () => ({ workers: 2 }), most: 12 }
];

for (const { of, options, most } of WAKINGS) {
  t.test(`with nothing to do all threads sleep: ${of}`, async (t) => {
    const server = await startServer(t, { options: { drain: 0, ...options(t) } });
    await until(async () => {
      const [before, begin] = [sleepsOf(server.pid), performance.now()];
      await pause(500);
      const seconds = (performance.now() - begin) / 1000;
      return (sleepsOf(server.pid) - before) / seconds < most;
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
  const hear = async (workers) => {
    const server = await startServer(t, { options: { workers, hold: 1, drain: 0 } });
    const id = await server.join();
    const wire = await server.wire();
    for (const target of [`/poll/${id}`, '/feed/a?after=none']) {
      // It sleeps for longer by then.
      await pause(550);
      const begin = performance.now();
      wire.send(request('GET', target));
      t.equal((await server.read(wire)).status, 200);
      t.ok(performance.now() - begin >= 1000, `${target} with ${workers} workers`);
    }
    await server.stop();
  };
  await Promise.all([0, 1].map(hear));
});

// ---- The start ----------------------------------------------------------------------------------

t.test('a start that fails says why in one line', async (t) => {
  const taken = createServer().listen(0, '127.0.0.1');
  t.teardown(() => taken.close());
  await once(taken, 'listening');
  const { port } = taken.address();
  const failures = {
    'the transient port is taken': { port: 0, 'transient-port': port },
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
      const { code, errors } = await launchToEnd(t, { workers: 2, ...options });
      t.equal(code, 1);
      t.match(errors, /^sprites: [^\n]+\n$/, 'one line');
      if (why.includes('port')) t.match(errors, `127.0.0.1:${port} is taken`);
    });
  }
});
