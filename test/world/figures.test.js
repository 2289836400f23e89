import t from 'tap';

import { Random } from '../fuzz/random.js';
import {
  healingOf,
  hopsOf,
  messages,
  shapeOf,
  shareThatCrosses
} from '../support/world-figures.js';
import { cellOf } from '../model/torus.js';

/** The small form of `npm run simulate:world`: what lib/world/README.md promises, for rings that are played quickly. */

const LEASE = 10_000;

t.test(
  'the torus of a million has a thousand rows, and one throw in two thousand crosses',
  async (t) => {
    t.strictSame(shapeOf(1_000_000), { rows: 1000, columns: 1000 });
    t.equal(shareThatCrosses(1_000_000), 1 / 2000);
    // As the model of the torus opens its slots.
    let rows = 0;
    let columns = 0;
    for (let clients = 1; clients <= 2000; clients++) {
      const { row, column } = cellOf(clients - 1);
      rows = Math.max(rows, row + 1);
      columns = Math.max(columns, column + 1);
      const shape = shapeOf(clients);
      if (shape.rows !== rows || shape.columns !== columns) t.strictSame(shape, { rows, columns });
    }
  }
);

t.test('messages: sprites grow with the servers, membership with their square', async (t) => {
  const of = (servers) => messages({ servers, clients: 1_000_000, throws: 10_000, lease: 10 });
  t.equal(of(3).crossing, 15);
  t.equal(of(300).sprites, 100 * of(3).sprites);
  t.ok(of(1000).members > 90 * of(100).members);
});

t.test('a sprite goes straight to the next server that has its row', async (t) => {
  const random = new Random(7);
  const clients = [10_000, 1_000_000];
  const exact = hopsOf({ servers: 100, random, clients, drift: 0 });
  t.equal(exact.most, 1);
  t.ok(exact.blind > 1.5, `${exact.blind} without knowing the rows`);
  const late = hopsOf({ servers: 100, random, clients, drift: 20 });
  t.ok(late.hops < 1.1 && late.most <= 5, `${late.hops}, at most ${late.most}`);
  const few = hopsOf({ servers: 3, random, clients, drift: 5 });
  t.ok(few.own > 0 && few.own < 1);
});

t.test('a ring is whole again within the lease and two seconds', async (t) => {
  for (const [servers, losses, neighbors] of [
    [3, 1, false],
    [10, 3, true],
    [10, 9, false],
    [30, 10, true]
  ]) {
    const random = new Random(servers + losses);
    const { healed } = await healingOf({ servers, losses, lease: LEASE, random, neighbors });
    t.ok(healed <= LEASE + 2000, `${losses} of ${servers}: ${healed} ms`);
    t.ok(healed > LEASE / 2, 'not before the leases have ended');
  }
});
