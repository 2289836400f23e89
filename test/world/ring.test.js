import t from 'tap';

import { tagOf, tagOfId, tagText } from '../../lib/base/tag.js';
import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';
import { Directory } from '../../lib/world/directory.js';
import { MAX_SERVERS, publicUrl, readServerUrl } from '../../lib/world/entry.js';
import { Ring } from '../../lib/world/ring.js';
import { Random } from '../fuzz/random.js';
import { cellOf } from '../model/torus.js';
import { healingOf, leadsTo, nameOf, rowsOf, shareThatCrosses } from '../support/world-virtual.js';

/** A simple model of the ring: a row leads to the next server, in order, that has the row. */
class PlainRing {
  constructor(members) {
    this.members = members.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  }

  next(name, row, step) {
    const withRow = this.members.filter((one) => one.rows > row || one.name === name);
    const { length } = withRow;
    const place = withRow.findIndex((one) => one.name === name);
    return withRow[(place + step + length) % length].name;
  }
}

const NAMES = Array.from({ length: 40 }, (_, i) => `s${i}`);

/** Returns a random ring, with equal or very different numbers of rows. */
function randomMembers(random) {
  const names = NAMES.filter(() => random.below(10) < 3);
  if (names.length === 0) names.push('s0');
  const highest = 1 + random.below(12);
  return names
    .map((name) => ({ name, rows: random.below(highest + 1) }))
    .toSorted(() => random.below(2) - 0.5);
}

t.test('the next server, row by row', async (t) => {
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
  const walk = (row, from) => {
    const names = [from];
    do names.push(leadsTo(ring, 'right', names.at(-1), row));
    while (names.at(-1) !== from);
    return names.join('');
  };
  t.equal(walk(0, 'a'), 'abcda');
  t.equal(walk(3, 'a'), 'acda');
  t.equal(walk(6, 'c'), 'cc', 'the row ends at its own other end');
  t.equal(leadsTo(ring, 'right', 'b', 3), 'c', 'from a server without the row the way leads on');
  t.equal(leadsTo(ring, 'left', 'b', 3), 'a');
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

t.test('names are the order, not the time of coming; a name is there once', async (t) => {
  const ring = (...names) => new Ring(names.map((name) => ({ name, rows: 1 })));
  t.equal(leadsTo(ring('s2', 's10', 's1'), 'right', 's1', 0), 's10', 'character by character');
  t.strictSame(ring('b', 'a').members, ring('a', 'b').members);
  t.throws(() => ring('a', 'a'), RangeError);
  t.throws(() => ring('a').seams('b'), RangeError);
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
        const [right, left] = ['right', 'left'].map((side) => leadsTo(ring, side, name, row));
        if (right !== plain.next(name, row, 1)) t.fail(`right of ${name} in row ${row}`);
        if (left !== plain.next(name, row, -1)) t.fail(`left of ${name} in row ${row}`);
        if (row >= rows) continue;
        if (leadsTo(ring, 'left', right, row) !== name) t.fail(`left of right is not ${name}`);
        if (leadsTo(ring, 'right', left, row) !== name) t.fail(`right of left is not ${name}`);
      }
      checkSeams(t, plain, ring.seams(name), { name, rows });
      // Also for rows that the server does not have.
      checkSeams(t, plain, ring.seams(name, 14), { name, rows: 14 });
    }
    for (const { name, rows } of members) {
      const most = new Set(members.map((one) => one.rows)).size + 1;
      if (ring.seams(name).right.length > most) t.fail('more seams than heights');
      if (rows > 0) checkWalk(t, ring, name, rows - 1);
    }
  }
  t.pass('300 rings');
});

/** Checks that the seams cover all rows without a gap, and lead to the right servers. */
function checkSeams(t, plain, seams, { name, rows }) {
  for (const [side, step] of [
    ['left', -1],
    ['right', 1]
  ]) {
    let from = 0;
    for (const seam of seams[side]) {
      if (seam.from !== from) t.fail(`a gap in the seams of ${name}`);
      for (let row = from; row < seam.to; row++) {
        if (plain.next(name, row, step) !== seam.peer) t.fail(`seam of ${name}, row ${row}`);
      }
      from = seam.to;
    }
    if (from !== rows) t.fail(`the seams of ${name} end at ${from}, not at ${rows}`);
  }
}

/** Checks that a walk along a row meets every server with the row once. */
function checkWalk(t, ring, name, row) {
  const met = new Set();
  for (let at = name; !met.has(at); at = leadsTo(ring, 'right', at, row)) met.add(at);
  const expected = ring.members.filter(({ rows }) => rows > row).length;
  if (met.size !== expected) t.fail(`row ${row} from ${name} meets ${met.size} of ${expected}`);
}

/** The small form of `npm run simulate:world`: checks the promises of lib/world/README.md with small rings. */

const LEASE = 10_000;

t.test('of a million clients one throw in two thousand crosses', async (t) => {
  t.equal(shareThatCrosses(1_000_000), 1 / 2000);
  // Compares with the torus's model, which opens its slots one by one.
  let rows = 0;
  for (let clients = 1; clients <= 2000; clients++) {
    rows = Math.max(rows, cellOf(clients - 1).row + 1);
    if (rowsOf(clients) !== rows) t.equal(rowsOf(clients), rows, `${clients} clients`);
  }
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

/** The server of an id, and its address; tested without servers. */

t.test('a tag is the first 24 bits of the SHA-256 of the name', async (t) => {
  // printf a | sha256sum
  t.equal(tagText(tagOf('a')), 'ca9781');
  t.equal(tagOf('none'), undefined);
  t.equal(tagOf(undefined), undefined);
  t.equal(tagText(5), '000005');
  const tags = new Set(Array.from({ length: MAX_SERVERS }, (_, at) => tagOf(nameOf(at))));
  t.equal(tags.size, MAX_SERVERS, 'the servers of a simulation make one ring');
});

/** Returns a pool, to make ids. */
function poolOf(t, more) {
  const pool = new Pool({ ...readOptions([]), capacity: 2000, ...more });
  t.teardown(() => pool.close());
  return pool;
}

t.test('ids of a server in a world begin with its tag, and are as unguessable', async (t) => {
  const pool = poolOf(t, { name: 'a' });
  const ids = Array.from({ length: 1000 }, () => pool.join('10.0.0.1').id);
  for (const id of ids) {
    t.match(id, /^ca9781[0-9a-f]{2}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  }
  t.equal(tagOfId(ids[0]), tagOf('a'));
  t.equal(tagOfId(ids[0].toUpperCase()), tagOf('a'));
  // Each random character behind the tag has every value.
  const random = [6, 7, 9, 10, 11, 12, 15, 16, 17, 20, 21, 22, 24, 25, 26, 27];
  for (const at of random) t.equal(new Set(ids.map((id) => id[at])).size, 16, `character ${at}`);
  t.equal(new Set(ids.map((id) => id.slice(0, 28))).size, ids.length, 'none twice');
});

t.test('ids of a server without a world have no tag', async (t) => {
  const pool = poolOf(t, { name: 'none' });
  const ids = Array.from({ length: 200 }, () => pool.join('10.0.0.1').id);
  t.ok(new Set(ids.map((id) => id.slice(0, 6))).size > 190);
  t.equal(tagOfId('nonsense'), undefined);
  t.equal(tagOfId(`${ids[0].slice(0, 14)}4${ids[0].slice(15)}`), undefined, 'of another version');
});

t.test('where the clients of the others are', async (t) => {
  const directory = new Directory('a');
  const changes = [];
  directory.onChange(() => changes.push(directory.entries));
  const ofB = `${tagText(tagOf('b'))}00-0000-8000-8000-000000000000`;
  t.equal(directory.urlOf(ofB), undefined, 'no server is known');
  const members = [
    ...[{ name: 'c', url: 'http://c:1' }, { name: 'b', url: 'http://b:1' }, { name: 'd' }],
    { name: 'a', url: 'http://a:1' }
  ];
  const update = (redirectTargets, restarting = []) =>
    directory.update({ redirectTargets, restarting });
  update(members);
  update(members.toReversed());
  t.equal(directory.urlOf(ofB), 'http://b:1');
  t.equal(directory.urlOf(ofB.toUpperCase()), 'http://b:1');
  t.equal(directory.urlOf(`${tagText(tagOf('a'))}${ofB.slice(6)}`), undefined, 'its own');
  t.equal(directory.urlOf(`${tagText(tagOf('d'))}${ofB.slice(6)}`), undefined, 'without a URL');
  for (const id of ['', 'x', 'nonsense', ofB.slice(0, 13)]) t.equal(directory.urlOf(id), undefined);
  t.strictSame(
    changes,
    [
      [
        [tagOf('c'), 'http://c:1'],
        [tagOf('b'), 'http://b:1']
      ].toSorted(([a], [b]) => a - b)
    ],
    'told once, ascending'
  );
  update([members[0]], ['a', 'b', 'c']);
  t.equal(directory.urlOf(ofB), null, 'it restarts');
  t.equal(directory.urlOf(`${tagText(tagOf('c'))}${ofB.slice(6)}`), 'http://c:1', 'it is back');
  t.equal(directory.urlOf(`${tagText(tagOf('a'))}${ofB.slice(6)}`), undefined, 'its own still');
  update([]);
  t.equal(directory.urlOf(ofB), undefined, 'gone');
});

t.test('a URL of a server', async (t) => {
  const good = [
    ...['http://a', 'http://a:8080', 'https://a.example', 'http://127.0.0.1:1', 'http://[::1]:80'],
    'https://a.example:8443/'
  ];
  for (const text of good) {
    const read = readServerUrl(text);
    t.ok(read && new URL(read).href === new URL(text).href && !read.endsWith('/'), text);
  }
  const bad = [
    ...[undefined, null, 7, '', 'none', 'a', 'a:8080', '//a', 'ftp://a', 'javascript:alert(1)'],
    ...['http://', 'http://a/path', 'http://a?x', 'http://a/#x', 'http://user@a', 'http://u:p@a'],
    ...['http://a:99999', 'http://a\r\nSet-Cookie: x', 'http://ä', ` http://a`, 'http://a\t'],
    `http://${'a'.repeat(260)}`
  ];
  for (const text of bad) t.equal(readServerUrl(text), undefined, JSON.stringify(text));
});

t.test('what others are told of where a server is', async (t) => {
  const url = (host, worldUrl = 'none') => publicUrl({ host, worldUrl }, 8080);
  t.equal(url('127.0.0.1'), 'http://127.0.0.1:8080');
  t.equal(url('::1'), 'http://[::1]:8080');
  t.equal(url('a.example'), 'http://a.example:8080');
  t.equal(url('0.0.0.0', 'https://a.example'), 'https://a.example');
  for (const every of ['0.0.0.0', '::']) {
    t.equal(readServerUrl(url(every)), url(every), 'one address');
    t.notMatch(url(every), /0\.0\.0\.0|::/);
  }
});
