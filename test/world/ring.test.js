import t from 'tap';

import { Ring } from '../../lib/world/ring.js';
import { Random } from '../fuzz/random.js';

/** The ring as its rule says it: of those who have the row, the next in order. */
class PlainRing {
  constructor(members) {
    this.members = members.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  next(name, row, step) {
    const having = this.members.filter((one) => one.rows > row || one.name === name);
    const { length } = having;
    const place = having.findIndex((one) => one.name === name);
    return having[(place + step + length) % length].name;
  }
}

const NAMES = Array.from({ length: 40 }, (_, i) => `s${i}`);

/** A random ring, with equal heights and very different ones. */
function randomMembers(random, most = NAMES.length) {
  const names = NAMES.filter(() => random.below(10) < 3).slice(0, most);
  if (names.length === 0) names.push('s0');
  const highest = 1 + random.below(12);
  return names
    .map((name) => ({ name, rows: random.below(highest + 1) }))
    .toSorted(() => random.below(2) - 0.5);
}

t.test('who comes after whom, row by row', async (t) => {
  const ring = new Ring([
    { name: 'c', rows: 7 },
    { name: 'a', rows: 5 },
    { name: 'd', rows: 5 },
    { name: 'b', rows: 2 }
  ]);
  t.strictSame(
    ring.members.map(({ name }) => name),
    ['a', 'b', 'c', 'd']
  );
  const way = (row, from) => {
    const names = [from];
    do names.push(ring.right(names.at(-1), row));
    while (names.at(-1) !== from);
    return names.join('');
  };
  t.equal(way(0, 'a'), 'abcda');
  t.equal(way(3, 'a'), 'acda');
  t.equal(way(6, 'c'), 'cc', 'the row ends at its own other end');
  t.equal(ring.right('b', 3), 'c', 'from a server without the row the way leads on');
  t.equal(ring.left('b', 3), 'a');
  t.strictSame(ring.seams('a'), {
    left: [{ from: 0, to: 5, peer: 'd' }],
    right: [
      { from: 0, to: 2, peer: 'b' },
      { from: 2, to: 5, peer: 'c' }
    ]
  });
  t.strictSame(ring.seams('c').right, [
    { from: 0, to: 5, peer: 'd' },
    { from: 5, to: 7, peer: 'c' }
  ]);
});

t.test('one server alone, and one without rows', async (t) => {
  const alone = new Ring([{ name: 'a', rows: 3 }]);
  t.equal(alone.right('a', 0), 'a');
  t.equal(alone.left('a', 2), 'a');
  t.strictSame(alone.seams('a').left, [{ from: 0, to: 3, peer: 'a' }]);
  const empty = new Ring([
    { name: 'a', rows: 0 },
    { name: 'b', rows: 2 }
  ]);
  t.strictSame(empty.seams('a'), { left: [], right: [] });
  t.equal(empty.right('b', 0), 'b');
});

t.test('names are the order, whoever came first; a name is there once', async (t) => {
  const ring = (...names) => new Ring(names.map((name) => ({ name, rows: 1 })));
  t.equal(ring('s2', 's10', 's1').right('s1', 0), 's10', 'character by character');
  t.strictSame(ring('b', 'a').members, ring('a', 'b').members);
  t.throws(() => ring('a', 'a'), RangeError);
  t.throws(() => ring('a').right('b', 0), RangeError);
  t.throws(() => ring('a').seams('b'), RangeError);
  t.ok(ring('a').has('a'));
  t.notOk(ring('a').has('b'));
  t.equal(ring().size, 0);
});

t.test('random rings are the plain model, and the laws hold over every seam', async (t) => {
  const random = new Random(15);
  for (let round = 0; round < 300; round++) {
    const members = randomMembers(random);
    const ring = new Ring(members);
    const plain = new PlainRing(members);
    for (const { name, rows } of members) {
      for (let row = 0; row < 14; row++) {
        const [right, left] = [ring.right(name, row), ring.left(name, row)];
        if (right !== plain.next(name, row, 1)) t.fail(`right of ${name} in row ${row}`);
        if (left !== plain.next(name, row, -1)) t.fail(`left of ${name} in row ${row}`);
        if (row >= rows) continue;
        if (ring.left(right, row) !== name) t.fail(`left of right is not ${name}`);
        if (ring.right(left, row) !== name) t.fail(`right of left is not ${name}`);
      }
      checkSeams(t, ring, ring.seams(name), { name, rows });
      // Of rows that it has not, too.
      checkSeams(t, ring, ring.seams(name, 14), { name, rows: 14 });
    }
    for (const { name, rows } of members) {
      const most = new Set(members.map((one) => one.rows)).size + 1;
      if (ring.seams(name).right.length > most) t.fail('more seams than heights');
      if (rows > 0) walkOnce(t, ring, name, rows - 1);
    }
  }
  t.pass('300 rings');
});

/** Seams have all rows, without a gap, and lead where each row does. */
function checkSeams(t, ring, seams, { name, rows }) {
  for (const side of ['left', 'right']) {
    let from = 0;
    for (const seam of seams[side]) {
      if (seam.from !== from) t.fail(`a gap in the seams of ${name}`);
      for (let row = from; row < seam.to; row++) {
        if (ring[side](name, row) !== seam.peer) t.fail(`seam of ${name}, row ${row}`);
      }
      from = seam.to;
    }
    if (from !== rows) t.fail(`the seams of ${name} end at ${from}, not at ${rows}`);
  }
}

/** From a row's end once around: everybody who has the row is met once. */
function walkOnce(t, ring, name, row) {
  const met = new Set();
  for (let at = name; !met.has(at); at = ring.right(at, row)) met.add(at);
  const expected = ring.members.filter(({ rows }) => rows > row).length;
  if (met.size !== expected) t.fail(`row ${row} from ${name} meets ${met.size} of ${expected}`);
}

t.test('in a ring of equal heights one who comes or goes concerns two others', async (t) => {
  const of = (names) => new Ring(names.map((name) => ({ name, rows: 1000 })));
  const all = NAMES.toSorted();
  for (const name of all) {
    const [ring, without] = [of(all), of(all.filter((one) => one !== name))];
    const concerned = all.filter(
      (one) =>
        one !== name && JSON.stringify(ring.seams(one)) !== JSON.stringify(without.seams(one))
    );
    const neighbors = [ring.left(name, 0), ring.right(name, 0)];
    if (concerned.toSorted().join() !== neighbors.toSorted().join()) t.fail(concerned.join());
  }
  t.pass('each of 40');
});
