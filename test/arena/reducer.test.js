import { mock } from 'node:test';

import t from 'tap';

import { Reducer } from '../../lib/arena/reducer.js';
import { until } from '../support/until.js';

/** The bounds of one game's thread, with games that exceed them. The timers are mocked. */

mock.timers.enable({ apis: ['setTimeout'] });
t.teardown(() => mock.timers.reset());

/** Lets time pass for a running process. A single `tick` is a stall of the process. */
function pass(milliseconds) {
  for (let ms = 0; ms < milliseconds; ms += 1) mock.timers.tick(1);
}

/** Starts a reducer of this text, and collects its results and failures. */
function begin(t, text, memory = '{}') {
  const reports = { values: [], failed: [] };
  const reducer = new Reducer(
    {
      reduce: `data:text/javascript,${encodeURIComponent(text)}`,
      ...{ format: { inputs: { y: {} } }, content: 'null' }
    },
    memory,
    {
      onResult: (value) => reports.values.push(value),
      onFailure: (why) => reports.failed.push(why)
    }
  );
  t.teardown(() => reducer.close());
  const step = (players = 0) =>
    reducer.reduce(
      players,
      ({ numbers, values }) => {
        for (let i = 0; i < players; i += 1) [numbers[i], values[i]] = [i + 1, i / 10];
        return players;
      },
      { time: 0, step: 50, page: 'play', round: 1, settings: {}, remember: true }
    );
  const untilReported = (isSo) => until(isSo, () => JSON.stringify(reports));
  return {
    reducer,
    reports,
    step,
    ready: () => untilReported(() => reducer.isIdle),
    tells: (values) => untilReported(() => reports.values.length >= values),
    fails: () => untilReported(() => reports.failed.length > 0)
  };
}

t.test('a game that uses more memory than 64 MiB is stopped', async (t) => {
  const game = begin(
    t,
    'const all = []; export const reduce = () => { for (;;) all.push([all.length, 1, 2, 3]); };'
  );
  await game.ready();
  game.step();
  await game.fails();
  t.match(game.reports.failed, [{ why: 'threw', message: /memory limit/ }]);
  t.equal(game.reducer.isIdle, false, 'nothing is asked of it any more');
});

t.test('a game that stays below is not', async (t) => {
  const game = begin(
    t,
    'const all = new Array(4e6).fill(1.5); export const reduce = () => all.length;'
  );
  await game.ready();
  game.step();
  await game.tells(1);
  t.equal(game.reports.values[0].text, '4000000');
});

t.test('a module that is not loaded after ten seconds is given up', async (t) => {
  const game = begin(t, 'setInterval(() => {}, 1000); await new Promise(() => {});');
  pass(9999);
  t.strictSame(game.reports.failed, []);
  pass(1);
  t.strictSame(game.reports.failed, [{ why: 'not-loaded', message: 'it takes too long to load' }]);
});

t.test('a reduction that takes a second is the last, and nothing is told after it', async (t) => {
  const game = begin(t, 'export const reduce = () => { for (;;); };');
  await game.ready();
  game.step();
  pass(999);
  t.strictSame(game.reports.failed, []);
  pass(1);
  pass(10_000);
  t.match(game.reports, { values: [], failed: [{ why: 'too-slow' }] });
  t.equal(game.reports.failed.length, 1);
});

t.test('a game is not stopped because the server stood still', async (t) => {
  const game = begin(t, 'export const reduce = () => 7;');
  mock.timers.tick(600_000);
  await game.ready();
  game.step();
  mock.timers.tick(600_000);
  await game.tells(1);
  t.match(game.reports, { values: [{ text: '7' }], failed: [] });
});

t.test('columns grow with the players, and values are theirs', async (t) => {
  const game = begin(
    t,
    'export const reduce = ({ numbers, inputs: { y } }, memory) => { memory.times = (memory.times ?? 0) + 1; return { n: numbers.at(-1) ?? 0, y: y.at(-1) ?? 0, times: memory.times }; };',
    '{"times":40}'
  );
  await game.ready();
  for (const [i, players] of [0, 3, 64, 65, 1000, 2].entries()) {
    game.step(players);
    await game.tells(i + 1);
    const { text, memory } = game.reports.values[i];
    const y = players === 0 ? 0 : (players - 1) / 10;
    t.strictSame(JSON.parse(text), { n: players, y, times: 41 + i });
    t.equal(memory, `{"times":${41 + i}}`);
  }
});

t.test('names are asked for by a list of numbers, 100 at most, and by nothing else', async (t) => {
  const game = begin(
    t,
    `const tries = [[1, 2], 'x', [1.5], Array(101).fill(1), { length: 1 }];
    export const reduce = (now, memory) => ({ named: tries[(memory.at = (memory.at ?? -1) + 1)] });`
  );
  for (let times = 1; times <= 5; times += 1) {
    await game.ready();
    game.step();
    await game.tells(times);
  }
  const namedLists = game.reports.values.map(({ named }) => named);
  t.strictSame(namedLists, [[1, 2], [], [], [], []]);
});
