import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import { Random } from '../fuzz/random.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { MIN_VALUES, trend } from './trend.js';

/** Tests the fault suite's runner: how it reports skipped cases. */

const RUNNER = fileURLToPath(new URL('./run.js', import.meta.url));

/** Runs a case that this host can't run: the PATH has no programs. */
function runSkipped(...args) {
  const { status, stdout } = spawnSync(process.execPath, [RUNNER, ...args], {
    env: { ...plainEnvironment(), PATH: '/nowhere' },
    encoding: 'utf8',
    timeout: 60_000
  });
  t.match(stdout, /^0 kept, 0 broken, 1 skipped/m);
  return status;
}

t.test('a fault that cannot be shown here is a failure where nothing may be missing', async (t) => {
  t.equal(runSkipped('--short', '--only', 'cut off without'), 0);
  t.equal(runSkipped('--short', '--only', 'cut off without', '--strict'), 1);
});

/** Tests `trend` with series whose growth is known. */

/** Mean of the bytes that wait in mailboxes at full load: mostly few, sometimes many. */
const MEAN = 13_000;

/** @returns {() => number} random values with the mean MEAN and without a trend, the same in every run */
function scattering() {
  const random = new Random(1);
  return () => -Math.log(1 - random.fraction()) * MEAN;
}

const series = (count, value) => Array.from({ length: count }, (_, i) => value(i));

t.test('what only scatters is hardly ever said to grow, by ten values as by sixty', async (t) => {
  for (const count of [10, 60]) {
    const value = scattering();
    const grown = series(10_000, () => trend(series(count, value), 16)).filter(
      ({ verdict }) => verdict === 'GROWS'
    );
    t.ok(grown.length <= 10, `${grown.length} of 10,000 with ${count} values`);
  }
});

t.test('what grows is seen: steadily by few values, through its scatter by many', async (t) => {
  const steady = [1, 3, 2, 4, 5, 7, 6, 8, 10, 9].map((one) => one * 1000);
  t.equal(trend(steady, 16).verdict, 'GROWS');
  const value = scattering();
  const { rise, verdict } = trend(
    series(60, (i) => value() + i * MEAN * 0.1),
    16
  );
  t.equal(verdict, 'GROWS');
  t.ok(rise > 5 * MEAN && rise < 7 * MEAN, `a rise of ${rise}`);
});

t.test('what falls, stays or rises by less than its slack or 5% of its mean is flat', async (t) => {
  for (const [verdict, first, step] of [
    ['flat', 9000, -1000],
    ['flat', 5, 0],
    ['flat', 0, 1.7],
    ['GROWS', 0, 2],
    ['flat', 1000, 5],
    ['GROWS', 1000, 10]
  ]) {
    const line = series(10, (i) => first + i * step);
    t.equal(trend(line, 16).verdict, verdict, `from ${first} by ${step}`);
  }
});

t.test('fewer than ten values are not judged, whatever they are', async (t) => {
  for (let count = 1; count < MIN_VALUES; count += 1)
    t.equal(
      trend(
        series(count, (i) => i * 1000),
        16
      ).verdict,
      'too short',
      `${count} values`
    );
  t.equal(
    trend(
      series(MIN_VALUES, (i) => i * 1000),
      16
    ).verdict,
    'GROWS'
  );
});
