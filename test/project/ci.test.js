import { execFile, execFileSync } from 'node:child_process';
import {
  chmodSync,
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import t from 'tap';

import { ROOT } from '../support/server.js';

/**
 * What .ci/run makes of the outcome of its steps; npm is played by a script.
 */

/**
 * Runs .ci/run with every tool installed and an npm that ends as told.
 *
 * @param {import('tap').Test} t
 * @param {{log?: string, failing?: string[]}} how what `npm test` prints, and the commands of npm
 *     that fail
 * @returns {Promise<{code: number, out: string, last: string}>}
 */
function ci(t, { log = '# { total: 3, pass: 3 }', failing = [] }) {
  const tree = mkdtempSync(join(tmpdir(), 'sprites-ci-'));
  t.teardown(() => rmSync(tree, { recursive: true }));
  const programs = join(tree, 'programs');
  mkdirSync(programs);
  cpSync(join(ROOT, '.ci'), join(tree, '.ci'), { recursive: true });
  writeFileSync(join(tree, 'log'), `${log}\n`);
  const cases = failing.map((command) => `'${command}') exit 1;;`).join(' ');
  const scripts = {
    npm: `[ "$1" = test ] && cat '${tree}/log'\ncase "$*" in ${cases} esac\nexit 0`,
    'dpkg-query': 'echo install ok installed'
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`);
    chmodSync(join(programs, name), 0o755);
  }
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
  return new Promise((resolve) => {
    execFile(join(tree, '.ci/run'), { env }, (error, out) => {
      resolve({ code: error?.code ?? 0, out, last: out.trimEnd().split('\n').at(-1) });
    });
  });
}

t.test('all is well', async (t) => {
  const { code, out, last } = await ci(t, {});
  t.strictSame({ code, last }, { code: 0, last: '3 passed, 0 failed' });
  const steps = [...out.matchAll(/^== (?!how long)(.*)$/gm)].map(([, step]) => step);
  const seconds = '\\n +\\d+ s  ';
  const table = steps.map((step) => `${seconds}${step}`).join('');
  t.match(out, new RegExp(`== how long the steps took${table}${seconds}all\\n`));
  for (const step of steps)
    t.match(out, new RegExp(`== ${step}\n((?!==).*\n)*? +\\d+ s  ${step}\n`));
});

t.test('a failing test counts once, and is shown again', async (t) => {
  const { code, out, last } = await ci(t, {
    log: '    not ok 1 - one\nnot ok 2 - two\n# { total: 9, pass: 7, fail: 2 }',
    failing: ['test']
  });
  t.strictSame({ code, last }, { code: 1, last: '7 passed, 2 failed' });
  t.match(out, /== what failed in the tests\n +not ok 1 - one\n/);
});

t.test('a test run that fails without a failing test counts once', async (t) => {
  const { code, last } = await ci(t, { failing: ['test'] });
  t.strictSame({ code, last }, { code: 1, last: '3 passed, 1 failed' });
});

t.test('a test run that says nothing has failed', async (t) => {
  const { code, last } = await ci(t, { log: '' });
  t.strictSame({ code, last }, { code: 1, last: '0 passed, 1 failed' });
});

t.test('every other step that fails counts once', async (t) => {
  const script = readFileSync(join(ROOT, '.ci/run'), 'utf8');
  const steps = [...script.matchAll(/^step npm (.*)$/gm)].map(([, step]) => step);
  for (const what of ['install', 'lint', 'test:sanitize', 'test:faults']) {
    t.ok(
      steps.some((step) => step.includes(what)),
      what
    );
  }
  for (const step of steps) {
    const { code, out, last } = await ci(t, { failing: [step] });
    t.strictSame({ code, last }, { code: 1, last: '3 passed, 1 failed' }, step);
    t.match(out, `FAILED: npm ${step}\n`);
  }
  const { last } = await ci(t, {
    log: 'not ok 1 - one\n# { total: 3, pass: 2, fail: 1 }',
    failing: ['test', ...steps]
  });
  t.equal(last, `2 passed, ${1 + steps.length} failed`);
});

t.test('a skipped test is shown, and fails', async (t) => {
  const { code, out, last } = await ci(t, {
    log: '    ok 2 - in the browser # SKIP no chromium\n# { total: 3, pass: 2, skip: 1 }'
  });
  t.strictSame({ code, last }, { code: 1, last: '2 passed, 1 failed' });
  t.match(out, /== nothing_skipped\n +ok 2 - in the browser # SKIP no chromium\nFAILED/);
});

t.test('the linter of C++ names what is not installed', async (t) => {
  const tree = mkdtempSync(join(tmpdir(), 'sprites-lint-'));
  t.teardown(() => rmSync(tree, { recursive: true }));
  for (const folder of ['programs', 'test']) mkdirSync(join(tree, folder));
  cpSync(join(ROOT, 'test/lint-native'), join(tree, 'test/lint-native'));
  const play = (name, text) => {
    writeFileSync(join(tree, 'programs', name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  };
  for (const name of ['bash', 'dirname']) {
    const real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    symlinkSync(real, join(tree, 'programs', name));
  }
  const lint = () =>
    new Promise((resolve) => {
      const env = { ...process.env, PATH: join(tree, 'programs') };
      const args = [join(tree, 'test/lint-native')];
      execFile('/bin/bash', args, { env }, ({ code }, out, err) => resolve(`${code} ${err}`));
    });
  const libraries = 'libcurl4-openssl-dev libsdl2-dev libsdl2-image-dev libpango1.0-dev';
  const all = `clang-format clang-tidy pkg-config ${libraries}`;
  t.equal(await lint(), `1 not installed: ${all}. On Debian: apt-get install ${all}\n`);
  play('clang-format', 'exit 0');
  play('clang-tidy', 'exit 0');
  const some = `pkg-config ${libraries}`;
  t.equal(await lint(), `1 not installed: ${some}. On Debian: apt-get install ${some}\n`);
  play('pkg-config', '[[ $2 != sdl2 ]]');
  const one = 'libsdl2-dev';
  t.equal(await lint(), `1 not installed: ${one}. On Debian: apt-get install ${one}\n`);
  play('pkg-config', 'exit 0');
  t.match(await lint(), /^1 the addon is not built.*: npm install\n$/);
});
