import t from 'tap';

import { longWords, readWorld, shortWords } from '../../lib/page/ring.js';
import { worldForAnybody } from '../../lib/server/status.js';

/** The ring of a world in words; its picture is in test/page/world.test.js. */

const seam = (peer, from, to) => ({ peer, from, to });
const world = (name, names, left, right, more = {}) => ({
  name,
  state: 'member',
  servers: [...names].map((one, at) => ({ name: one, rows: at + 1 })),
  seams: { left, right },
  ...more
});

t.test('one who is alone', async (t) => {
  const alone = readWorld(world('a', 'a', [], []));
  t.equal(shortWords(alone), 'server a, alone in its world');
  t.equal(
    longWords(alone),
    'This is server a, alone in its world: every row ends at its own other end.'
  );
});

t.test('one of a ring', async (t) => {
  const b = readWorld(world('b', 'abc', [seam('a', 0, 1), seam('c', 1, 2)], [seam('c', 0, 2)]));
  t.equal(shortWords(b), 'server b, one of 3');
  t.equal(
    longWords(b),
    'This is server b, one of 3 that are one torus, in this order: a with 1 row, b with 2 rows and' +
      ' c with 3 rows, and around. Off the right end of a row it goes on at c, off the left end' +
      ' at a in rows 1 to 1 and at c in rows 2 to 2.'
  );
  const off = { ...b, state: 'cut-off', seams: { left: [], right: [] } };
  t.equal(shortWords(off), 'server b, one of 3, cut off');
  t.match(longWords(off), /goes on at its own other end, .* no contact with the others now\.$/);
  t.match(longWords(b, 70), /one of 70 .* and 67 servers further away, and around/);
});

t.test('what is none is not shown', async (t) => {
  const good = world('a', 'ab', [seam('b', 0, 1)], []);
  t.ok(readWorld(good));
  const bad = [
    ...[undefined, null, 7, 'a', [], {}, { ...good, name: 'c' }, { ...good, name: '<b>' }],
    ...[
      { ...good, servers: null },
      { ...good, servers: [{ name: 'a' }] },
      { ...good, seams: {} }
    ],
    { ...good, servers: [{ name: 'a', rows: -1 }] },
    { ...good, seams: { left: [seam('x y', 0, 1)], right: [] } },
    { ...good, seams: { left: [null], right: [] } },
    { ...good, seams: { left: [seam('b', 0, '1')], right: [] } }
  ];
  for (const one of bad) t.equal(readWorld(one), null, JSON.stringify(one));
});

t.test('of a large world anybody is told of those around this server', async (t) => {
  const servers = Array.from({ length: 1000 }, (_, at) => ({
    ...{ name: `s${String(at).padStart(3, '0')}`, rows: 9 },
    ...{ tag: '123456', url: 'http://secret' }
  }));
  const whole = (name) => ({
    ...{ name, state: 'member', clients: 5, problem: null, epoch: 7, outboxes: [], refused: {} },
    ...{ servers, seams: { left: Array(100).fill(seam('x', 0, 1)), right: [seam('y', 0, 9)] } }
  });
  for (const [name, first] of [
    ['s000', 's000'],
    ['s500', 's468'],
    ['s999', 's936']
  ]) {
    const told = worldForAnybody(whole(name));
    t.equal(told.servers.length, 64);
    t.equal(told.servers[0].name, first);
    t.ok(told.servers.some((one) => one.name === name));
    t.ok(readWorld(told));
    t.strictSame(Object.keys(told), ['name', 'state', 'clients', 'servers', 'seams']);
    t.notMatch(JSON.stringify(told), /secret|123456/);
    t.ok(JSON.stringify(told).length < 8192);
  }
  t.equal(worldForAnybody(null), null);
});
