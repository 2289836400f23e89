import path from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

import t from 'tap';

import { loadAddon } from '../../lib/base/addon.js';
import { AddressLimits } from '../../lib/torus/address-limits.js';
import { createDoor } from '../../lib/http/door.js';
import { readOptions } from '../../lib/operator/options.js';
import { EDGES, Pool, Unanswerable } from '../../lib/torus/pool.js';
import { emptyFeeds } from '../support/feeds.js';
import { request, Wire } from '../support/http.js';
import { restoreState, makePool } from '../support/pool.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * The pool of clients, by its interface in JavaScript. test/native/pool_test.cc compares its mailboxes, numbers, holds
 * and leases with a model.
 */

function conserved(pool) {
  const status = pool.status();
  if (status.thrown !== status.acked + status.waiting + status.lost) {
    throw new Error(`not conserved: ${JSON.stringify(status)}`);
  }
  return status;
}

const sprite = (value) => Buffer.from(JSON.stringify(value));

/** Joins `count` clients. Returns their ids. */
function join(pool, count = 1) {
  return Array.from({ length: count }, () => {
    const { outcome, id } = pool.join();
    if (outcome !== 'ok') throw new Error(outcome);
    return id;
  });
}

/** Polls. Calls `onAnswer` with the answer, at once or later. */
function pollWith(pool, id, options, onAnswer) {
  const { body, ...result } = pool.poll(id, options, onAnswer);
  if (body !== undefined) onAnswer(body);
  return result;
}

/** Polls. Collects the parsed answers in `answers`. */
function poll(pool, id, options = {}) {
  const answers = [];
  let resolveNext;
  const next = new Promise((resolve) => {
    resolveNext = resolve;
  });
  const { outcome, cancel } = pollWith(pool, id, options, (body) => {
    const answer = JSON.parse(body);
    answers.push(answer);
    resolveNext(answer);
  });
  return { outcome, cancel, answers, next };
}

t.test('a poll is answered by its result, or later and once, or is taken back', async (t) => {
  const pool = makePool(t);
  const [id] = join(pool);
  t.equal(pool.throw(id, 'left', -1, sprite({ a: 1 })), 'queued');
  const { outcome, body, cancel } = pool.poll(id, {}, () => t.fail('answered twice'));
  t.equal(outcome, 'ok');
  t.strictSame(JSON.parse(body), {
    seq: 1,
    sprites: [{ seq: 1, from: 'right', sprite: { a: 1 } }]
  });
  cancel();
  const { answers } = poll(pool, id, { ack: 1 });
  t.equal(conserved(pool).parked, 1);
  t.equal(pool.throw(id, 'up', -1, sprite({})), 'delivered');
  t.equal(pool.throw(id, 'up', -1, sprite({})), 'queued');
  t.equal(answers.length, 1);
  poll(pool, id, { ack: 2 });
  const taken = poll(pool, id, { ack: 3 });
  taken.cancel();
  taken.cancel();
  t.equal(conserved(pool).parked, 0);
  t.equal(pool.throw(id, 'up', -1, sprite({})), 'queued');
  t.strictSame(taken.answers, []);
});

/** Most sprites that fly on between two ticks: see kFlyBudget in native/torus/pool.h. */
const FLY_BUDGET = 8192;

/** Returns a pool of two clients. `many` sprites wait for the second one, all thrown over `edge`. */
function fullMailbox(t, many) {
  const pool = makePool(t, { mailbox: many, mailboxBytes: 2 ** 30 });
  const [one, other] = join(pool, 2);
  const edge = EDGES.find(
    (name) => pool.throw(one, name, -1, sprite({ n: -1 })) && poll(pool, other).answers.length > 0
  );
  for (let n = 0; n < many - 1; n += 1) pool.throw(one, edge, -1, sprite({ n }));
  t.equal(pool.throw(one, edge, -1, sprite({})), 'neighbor-busy');
  return { pool, one, other, edge };
}

t.test('a leave sends a bounded share on at once, and the rest soon, in order', async (t) => {
  const many = 5 * FLY_BUDGET;
  const { pool, one, other, edge } = fullMailbox(t, many);
  const { flown, waiting } = conserved(pool);
  pool.leave(other);
  t.ok(conserved(pool).flown - flown <= FLY_BUDGET, 'no more than a share');
  t.equal(conserved(pool).waiting, waiting, 'nothing is lost');
  t.equal(pool.status().clients, 1, 'a client that has left is no client');
  t.equal(poll(pool, other).outcome, 'unknown-client');
  t.equal(pool.throw(one, edge, -1, sprite({ n: -2 })), 'queued', 'a throw passes it by');
  await until(() => pool.status().flown - flown >= many);
  t.equal(conserved(pool).waiting, waiting + 1);
  const numbers = [];
  for (let ack = 0; numbers.length < waiting + 1;) {
    const {
      answers: [answer],
      cancel
    } = poll(pool, one, { ack });
    cancel();
    numbers.push(...answer.sprites.map(({ sprite: { n } }) => n));
    ack = answer.seq;
  }
  const sorted = numbers.filter((n) => n >= 0);
  t.strictSame(
    sorted,
    Array.from({ length: many - 1 }, (_, n) => n),
    'each once, in order'
  );
});

t.test('when the last ones leave, all of it is lost, and counted', async (t) => {
  const { pool, one, other } = fullMailbox(t, 3 * FLY_BUDGET);
  const { waiting } = pool.status();
  pool.leave(other);
  pool.leave(one);
  t.equal(conserved(pool).clients, 0);
  await until(() => pool.status().waiting === 0);
  t.equal(conserved(pool).lost, waiting);
  t.equal(pool.status().mailboxBytes, 0);
});

t.test('a state kept while a client is leaving has all of it', async (t) => {
  const { pool, other } = fullMailbox(t, 3 * FLY_BUDGET);
  const { waiting } = pool.status();
  pool.leave(other);
  const file = path.join(t.testdir(), 'state');
  t.match(pool.save(file, 2 ** 30), { clients: 1, sprites: waiting });
  const next = makePool(t, { mailbox: 3 * FLY_BUDGET, mailboxBytes: 2 ** 30 });
  t.match(restoreState(next, file), { clients: 1, sprites: waiting });
});

t.test('what runs when an answer is given finds the pool whole', async (t) => {
  // The callback may do anything, even send more requests of the same client and of others.
  const pool = makePool(t, { hold: 5, lease: 1 });
  const [leaver, stayer] = join(pool, 2);
  for (const edge of EDGES) pool.throw(stayer, edge, -1, sprite({ edge }));
  const {
    answers: [{ seq }]
  } = poll(pool, stayer);
  t.equal(conserved(pool).waiting, 4);
  let thrown = 0;
  const received = new Promise((resolve) => {
    t.equal(
      pool.poll(stayer, { ack: seq }, (body) => {
        const { sprites } = JSON.parse(body);
        process.nextTick(() => {
          // `leaver` has left: every sprite that `stayer` throws now must come back to `stayer`.
          for (const edge of EDGES) {
            if (pool.throw(stayer, edge, -1, sprite({ late: edge })) === 'queued') thrown += 1;
          }
          t.equal(pool.throw(leaver, 'left', -1, sprite({})), 'unknown-client');
          resolve(sprites.length);
        });
      }).outcome,
      'ok'
    );
  });
  t.ok((await received) > 0, 'what waited for the one whose lease ended flew on');
  t.equal(conserved(pool).clients, 1);
  const { answers } = poll(pool, stayer);
  t.equal(thrown, 4);
  poll(pool, stayer, { ack: answers[0].seq });
  t.equal(conserved(pool).waiting, 0, 'none was put into the mailbox of the one that is gone');
});

t.test('a pool without address space says so', async (t) => {
  t.throws(() => new Pool({ ...readOptions([]), capacity: 4294967295 }), /address space/);
});

t.test('the collector does not take a pool in the middle of its tick', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let answers = 0;
  // Only its own timer references the pool, which answers this poll in a tick.
  (() => {
    const { Pool: Native } = loadAddon();
    const options = { ...readOptions([]), hold: 1, capacity: 10 };
    const pool = new Native(options, new AddressLimits(options).native, () => {
      collect();
      answers += 1;
    });
    const id = new Uint8Array(16);
    pool.join('', id);
    pool.poll(id, 0, 0, 1);
  })();
  await until(() => answers === 1);
  collect();
  t.pass('the process is still there');
});

t.test('what waits for the disk is settled when the state is kept, or closed', async (t) => {
  const { stateBytes, journalBytes, snapshotEvery, ...rest } = readOptions([]);
  const dir = t.testdir();
  const begin = (name) => {
    const pool = new Pool({ ...rest, capacity: 10 });
    const stateOptions = { stateBytes, journalBytes, snapshotEvery, sync: 'turn' };
    pool.openState({ path: path.join(dir, name), ...stateOptions });
    const joined = pool.join();
    // From now on nothing notifies the pool of writes to the disk.
    pool.close();
    return { pool, joined: Promise.race([joined, pause(1000, 'waits')]) };
  };
  const kept = begin('kept');
  kept.pool.finishState();
  t.match(await kept.joined, { outcome: 'ok' });
  kept.pool.closeState();
  const closed = begin('closed');
  closed.pool.closeState();
  t.ok((await closed.joined.catch((error) => error)) instanceof Unanswerable);
});

t.test('nor a front door while a request is handled', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let handled = 0;
  let nativeDoor;
  const port = await (async () => {
    const options = { ...readOptions([]), connections: 10, capacity: 10 };
    const limits = new AddressLimits(options);
    // Only its handles and the pool reference the front door.
    const door = createDoor({
      pool: new Pool(options, limits),
      feeds: emptyFeeds(),
      limits,
      options,
      routes: {
        headers: {},
        bodyLimits: [],
        handle() {
          collect();
          handled += 1;
          return { status: 204, headers: {} };
        }
      },
      refusals: { watchDoor: (native) => (nativeDoor = new WeakRef(native)) }
    });
    return door.listen({ host: '127.0.0.1', port: 0 });
  })();
  for (let n = 1; n <= 3; n += 1) {
    collect();
    await pause(0);
    const wire = await Wire.open(port);
    t.teardown(() => wire.destroy());
    wire.send(request('OPTIONS', '/join'));
    await until(() => handled === n);
  }
  t.pass('it goes on');
  nativeDoor.deref().close();
});

// ---- How long sprites wait (compared with the model in pool_test.cc) --------------------------------

const sumOf = (counts) => counts.reduce((all, one) => all + one, 0);

t.test('what a state has brought waits since the start', async (t) => {
  const file = `${t.testdir()}/state`;
  const first = makePool(t);
  const [id] = join(first);
  first.throw(id, 'left', -1, sprite({}));
  first.save(file, 1e6);
  const second = makePool(t);
  restoreState(second, file);
  await pause(60);
  second.poll(id, {}, () => {});
  const { sum, counts } = second.deliveryTimes();
  t.equal(sumOf(counts), 1);
  t.ok(sum >= 59 && sum < 20_000, `${sum} ms`);
});

t.test('the operator is told', async (t) => {
  const server = await startServer(t, { options: { 'admin-port': 0 } });
  const before = await server.adminStatus();
  t.match(before, { deliveryMsP50: null, deliveryMsP99: null }, 'nothing yet');
  const id = await server.join();
  await server.throw(id, 'left');
  await pause(60);
  await server.poll(id);
  const parked = await server.park(id, 'ack=1');
  await server.throw(id, 'left');
  await parked.answer;
  const { deliveryTimes, deliveryMsP50, deliveryMsP99 } = await server.adminStatus();
  t.equal(sumOf(deliveryTimes.counts), 2);
  t.ok(deliveryMsP50 <= deliveryMsP99 && deliveryMsP99 > 50, `${deliveryMsP50}, ${deliveryMsP99}`);
  t.notOk('deliveryTimes' in (await server.ask('GET', '/status')).body, 'strangers are not');

  const text = await (await fetch(`http://127.0.0.1:${server.adminPort}/metrics`)).text();
  t.match(text, '# TYPE sprites_delivery_seconds histogram');
  t.match(text, 'sprites_delivery_seconds_bucket{le="+Inf"} 2\n');
  t.match(text, 'sprites_delivery_seconds_count 2\n');
  t.match(text, `sprites_delivery_seconds_sum ${deliveryTimes.sum / 1000}\n`);
  const buckets = [...text.matchAll(/^sprites_delivery_seconds_bucket\{le="(.*)"\} (.*)$/gm)];
  t.same(
    buckets.slice(0, -1).map(([, le]) => Number(le) * 1000),
    deliveryTimes.bounds
  );
  t.equal(Number(buckets.find(([, le]) => le === '0.05')[2]), 1, 'one of them within 50 ms');
  await server.stop();
});
