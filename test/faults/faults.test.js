import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import { plainEnvironment } from '../support/cpp-build.js';
import { trend } from './trend.js';

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
  let state = 1;
  return () => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return -Math.log(1 - state / 2 ** 31) * MEAN;
  };
}

const series = (count, value) => Array.from({ length: count }, (_, i) => value(i));

t.test('what only scatters is hardly ever said to grow, by ten values as by sixty', async (t) => {
  for (const count of [10, 60]) {
    const value = scattering();
    const grown = series(10_000, () => trend(series(count, value), 16)).filter(({ flat }) => !flat);
    t.ok(grown.length <= 10, `${grown.length} of 10,000 with ${count} values`);
  }
});

t.test('what grows is seen: steadily by few values, through its scatter by many', async (t) => {
  t.notOk(
    trend(
      [1, 3, 2, 4, 5, 7, 6, 8, 10, 9].map((one) => one * 1000),
      16
    ).flat
  );
  const value = scattering();
  const { rise, flat } = trend(
    series(60, (i) => value() + i * MEAN * 0.1),
    16
  );
  t.notOk(flat);
  t.ok(rise > 5 * MEAN && rise < 7 * MEAN, `a rise of ${rise}`);
});

t.test('what falls, stays or rises by less than its slack or 5% of its mean is flat', async (t) => {
  t.ok(
    trend(
      [9, 8, 7, 6, 5, 4].map((one) => one * 1000),
      16
    ).flat
  );
  t.ok(trend([5, 5, 5, 5, 5, 5], 16).flat);
  t.ok(trend([0, 3, 6, 9, 12, 15], 16).flat);
  t.notOk(trend([0, 3, 6, 9, 12, 17], 16).flat);
  t.ok(trend([1000, 1010, 1020, 1030, 1040, 1050], 16).flat);
  t.notOk(trend([1000, 1020, 1040, 1060, 1080, 1100], 16).flat);
});
