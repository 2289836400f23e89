import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import { plainEnvironment } from '../support/cpp-build.js';

/** The runner of the fault suite, held to its word about what it could not show. */

const RUNNER = fileURLToPath(new URL('./run.js', import.meta.url));

/** Runs a case that this host cannot show: there is no program on its path. */
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
  t.equal(runSkipped('--short', '--only', 'disk full'), 0);
  t.equal(runSkipped('--short', '--only', 'disk full', '--strict'), 1);
});
