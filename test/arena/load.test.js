import { readFileSync } from 'node:fs';
import t from 'tap';

import { batchAt, batchOf, through } from '../../lib/arena/games/load/batches.js';
import { account } from '../../lib/arena/games/load/account.js';
import { reduce } from '../../lib/arena/games/load/reduce.js';
import { lawOf } from '../../lib/arena/games/load/report.js';
import { moment } from '../support/arena.js';

/** Load as a pure function: what is told of machines' and phones' reports. */

const { inputs } = JSON.parse(
  readFileSync(new URL('../../lib/arena/games/load/inputs.json', import.meta.url))
);
const NOTHING = Object.fromEntries(
  Object.entries(inputs).map(([name, { min, start = min }]) => [name, start])
);

/** A moment of the game: what each player has reported last, in this batch. */
const at = (batch, players, round = 1) => ({
  ...moment({
    time: (batch - 1) * 2000 + 500,
    columns: Object.keys(inputs),
    players: Object.fromEntries(
      Object.entries(players).map(([number, report]) => [
        number,
        { ...NOTHING, round: 1, batch, machine: 1, ...report }
      ])
    )
  }),
  round
});

t.test('batches: two seconds each; all up to one of them is a sum', async (t) => {
  t.strictSame([0, 1999, 2000, 60_000].map(batchAt), [1, 1, 2, 31]);
  const rows = [
    [3, 10, 9],
    [4, 5, 5],
    [5, 7, 0]
  ];
  t.strictSame(through(rows, 4), { accepted: 15, received: 14 });
  t.strictSame(through(rows, 2), { accepted: 0, received: 0 });
  t.strictSame(
    [0, 10.5, 14, 15, 2 ** 33, 1e30].map((batch) => batchOf(batch * 2 ** 20, 10)),
    [0, 10, 14, undefined, undefined, undefined],
    'of sprites whose numbers anybody may have written'
  );
});

t.test('sums of all, the median by weight, the slowest p99; phones apart', async (t) => {
  const value = reduce(
    at(2, {
      1: { connections: 100, members: 100, perSecond: 300, p50: 1, p99: 9 },
      2: { connections: 200, members: 201, perSecond: 100, p50: 5, p99: 40, bounded: 1 },
      3: { machine: 0, connections: 2, members: 2, perSecond: 1, p50: 20, p99: 33 }
    }),
    {}
  );
  t.match(value, { machines: 2, phones: 1, connections: 302, members: 303, perSecond: 401 });
  t.match(value, { p50: 1, p99: 40, phone50: 20, phone99: 33, missing: 0, torn: 0 });
  t.strictSame(
    value.list.map(({ number, bounded }) => [number, bounded]),
    [
      [1, 0],
      [2, 1],
      [3, 0]
    ]
  );
});

t.test('what one threw and another caught is not missing', async (t) => {
  const value = reduce(
    at(9, { 1: { accepted: 500, received: 100 }, 2: { accepted: 0, received: 400 } }),
    {}
  );
  t.match(value, { counted: 500, missing: 0 });
});

t.test('what nobody caught is missing, and heals when it comes late', async (t) => {
  const memory = {};
  t.match(reduce(at(9, { 1: { accepted: 500, received: 497 } }), memory), { missing: 3 });
  t.match(reduce(at(10, { 1: { accepted: 600, received: 600 } }), memory), { missing: 0 });
});

t.test('only one and the same batch is compared', async (t) => {
  const memory = {};
  reduce(at(9, { 1: { accepted: 500, received: 0 }, 2: { received: 500 } }), memory);
  const ahead = { 1: { batch: 10, accepted: 900, received: 0 }, 2: { batch: 9, received: 500 } };
  t.match(reduce(at(10, ahead), memory), { counted: 500, missing: 0 }, 'the other is not so far');
  const both = { 1: { batch: 10, accepted: 900 }, 2: { batch: 10, received: 899 } };
  t.match(reduce(at(10, both), memory), { counted: 900, missing: 1 });
});

t.test('who comes later has nothing before', async (t) => {
  const memory = {};
  for (const batch of [9, 10, 11]) reduce(at(batch, { 1: { accepted: 5, received: 5 } }), memory);
  const joined = { 1: { accepted: 5, received: 5, batch: 11 }, 2: { batch: 12 } };
  t.match(reduce(at(12, joined), memory), { counted: 5, missing: 0 });
});

t.test('who has said all of it stays in the sum; who is gone without a word is told', async (t) => {
  const memory = {};
  reduce(at(9, { 1: { accepted: 9, done: 1 }, 2: { received: 9 } }), memory);
  t.match(reduce(at(10, { 2: { received: 9 } }), memory), { counted: 9, missing: 0, torn: 0 });
  t.match(reduce(at(11, {}), memory), { counted: 9, missing: 0, torn: 1 });
});

t.test('who says nothing new is waited for no longer', async (t) => {
  const memory = {};
  reduce(at(9, { 1: { accepted: 9 }, 2: { received: 9 } }), memory);
  const later = { 1: { accepted: 20, received: 11 }, 2: { batch: 9, received: 9 } };
  t.match(reduce(at(30, later), memory), { counted: 20, missing: 0, torn: 1 });
});

t.test('of another round nothing counts', async (t) => {
  t.match(reduce(at(9, { 1: { accepted: 9 } }, 2), {}), { machines: 0, counted: 0 });
});

t.test('ten thousand phones: value and memory stay within their bounds', async (t) => {
  const memory = {};
  const phones = Array.from({ length: 10_000 }, (_, i) => [
    i + 1,
    { machine: 0, connections: 3, accepted: 1e6, received: 1e6, p50: 12.345, p99: 99.9 }
  ]);
  for (const batch of [9, 10]) reduce(at(batch, Object.fromEntries(phones)), memory);
  const value = reduce(at(11, Object.fromEntries(phones)), memory);
  t.match(value, { phones: 10_000, connections: 30_000, missing: 0 });
  t.ok(JSON.stringify(value).length < 8192);
  t.ok(JSON.stringify(memory).length < 1024);
});

t.test('in words: others’ desktops, and who went without a last report', async (t) => {
  const value = { missing: 0, counted: 1000, torn: 0, members: 50 };
  const now = { clients: 50, lost: 7 };
  const first = { lost: 7 };
  const says = (more, status = now) => account({ ...value, ...more }, status, first);
  t.match(says({}), { count: 0, is: 'good', words: 'Missing: 0 of 1,000 sprites' });
  t.match(says({ missing: 2 }), { count: 2, is: 'bad', words: 'Missing: 2 of' });
  t.match(says({ missing: 2, torn: 1 }), { count: 2, is: 'open', words: 'at most 2' });
  t.match(says({ missing: 2 }, { clients: 51, lost: 7 }), { count: 0, words: '2 sprites landed' });
  t.match(says({ missing: 2 }, { clients: 51, lost: 8 }), { count: 1, is: 'bad' });
  const crossed = { clients: 50, lost: 7, crossedOut: 3 };
  t.match(says({ missing: 2 }, crossed), { count: 0, words: '2 sprites landed' });
  t.match(account(null, now, first), { count: null, is: 'none' });
});

t.test('the law of a server, alone and in a world', async (t) => {
  const alone = { thrown: 10, acked: 7, waiting: 2, lost: 1 };
  t.strictSame(lawOf({ ...alone, clients: 5 }), { ...alone, holds: true });
  t.strictSame(lawOf({ ...alone, acked: 6 }).holds, false);
  const world = { ...alone, acked: 8, crossedIn: 6, crossedOut: 5 };
  t.strictSame(lawOf(world), { ...world, holds: true });
  t.strictSame(lawOf({ ...world, crossedIn: 7 }).holds, false);
});
