import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { load, makePool } from '../support/pool.js';
import { startServer } from '../support/server.js';

/**
 * How long sprites wait, over a restart and as the operator is told; else see test/native/pool_test.cc.
 */

t.test('what a state has brought waits since the start', async (t) => {
  const file = `${t.testdir()}/state`;
  const first = makePool(t);
  const { id } = first.join();
  first.throw(id, 'left', -1, Buffer.from('{}'));
  first.save(file, 1e6);
  const second = makePool(t);
  load(second, file);
  await pause(60);
  second.poll(id, {}, () => {});
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
