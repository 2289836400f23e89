import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { load, makePool } from '../support/pool.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * How long sprites wait: from the moment a throw is taken to the answer that first carries them.
 * The arithmetic of the stamps has a test in C++: test/native/delivery_times_test.cc.
 */

const SPRITE = Buffer.from('{}');

/** How many sprites have waited for at most so many milliseconds, and how many for longer. */
function split({ bounds, counts }, most) {
  const sum = (list) => list.reduce((all, one) => all + one, 0);
  const end = bounds.indexOf(most) + 1;
  return { upTo: sum(counts.slice(0, end)), beyond: sum(counts.slice(end)) };
}

const nothing = () => {};

t.test('a client that is parked has waited for nothing', (t) => {
  const pool = makePool(t);
  const { id } = pool.join();
  for (let i = 0; i < 20; i += 1) {
    pool.poll(id, { ack: i }, nothing);
    t.equal(pool.throw(id, 'left', -1, SPRITE), 'delivered');
  }
  const times = pool.deliveryTimes();
  t.same(split(times, 20), { upTo: 20, beyond: 0 });
  t.ok(times.counts[0] > 10, `most of them in the lowest bucket: ${times.counts}`);
  t.end();
});

t.test(
  'a client that is away is waited for, and a sprite counts when it is carried first',
  async (t) => {
    const pool = makePool(t);
    const { id } = pool.join();
    t.equal(pool.throw(id, 'left', -1, SPRITE), 'queued');
    await pause(120);
    t.same(split(pool.deliveryTimes(), 100), { upTo: 0, beyond: 0 }, 'not before it is delivered');
    const answers = [pool.poll(id, {}, nothing), pool.poll(id, {}, nothing)];
    t.equal(answers[0].body.toString(), answers[1].body.toString(), 'the same answer again');
    const times = pool.deliveryTimes();
    t.same(split(times, 100), { upTo: 0, beyond: 1 }, 'counts once');
    t.ok(times.sum >= 119 && times.sum < 20_000, `${times.sum} ms`);
  }
);

t.test('what flies on goes on waiting', async (t) => {
  const pool = makePool(t);
  const [thrower, receiver] = [pool.join().id, pool.join().id];
  t.equal(pool.throw(thrower, 'left', -1, SPRITE), 'queued');
  await pause(120);
  pool.poll(thrower, {}, nothing);
  pool.leave(receiver);
  await until(() => pool.status().flown === 1 && pool.status().parked === 0);
  t.same(split(pool.deliveryTimes(), 100), { upTo: 0, beyond: 1 });
});

t.test('what a state has brought waits since the start', async (t) => {
  const file = `${t.testdir()}/state`;
  const first = makePool(t);
  const { id } = first.join();
  first.throw(id, 'left', -1, SPRITE);
  first.save(file, 1e6);
  const second = makePool(t);
  load(second, file);
  await pause(60);
  second.poll(id, {}, nothing);
  const { sum, counts } = second.deliveryTimes();
  t.equal(
    counts.reduce((all, one) => all + one, 0),
    1
  );
  t.ok(sum >= 59 && sum < 20_000, `${sum} ms`);
});

t.test('the operator is told', async (t) => {
  const server = await startServer(t, { options: { 'admin-port': 0 } });
  const before = await server.inside();
  t.match(before, { deliveryMsP50: null, deliveryMsP99: null }, 'nothing yet');
  const id = await server.join();
  await server.throw(id, 'left');
  await pause(60);
  await server.poll(id);
  const parked = await server.park(id, 'ack=1');
  await server.throw(id, 'left');
  await parked.answer;
  const { deliveryTimes, deliveryMsP50, deliveryMsP99 } = await server.inside();
  t.equal(
    deliveryTimes.counts.reduce((all, one) => all + one, 0),
    2
  );
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
