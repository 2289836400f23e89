import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { sbom } from '../../.github/pack.js';
import { released } from '../../.github/release.js';
import { runToEnd, temporary } from '../support/processes.js';
import { ROOT } from '../support/server.js';

/**
 * How .ci/run counts and reports the outcomes of its steps. A script stands in for npm.
 */

const script = readFileSync(join(ROOT, '.ci/run'), 'utf8');

/** The npm commands that run tests, and all other npm commands. */
const suites = [...script.matchAll(/^step suite (.*)$/gm)].map(([, name]) => name);
const steps = [...script.matchAll(/^ *step npm (.*)$/gm)].map(([, step]) => step);

/** Summary that tap prints when all tests pass. */
const PASSED_SUMMARY = '# { total: 3, pass: 3 }';

/**
 * Runs .ci/run with every tool installed, and with an npm whose outcomes the test sets.
 *
 * @param {import('tap').Test} t
 * @param {object} [how]
 * @param {Record<string, string>} [how.logs] output of the test commands, by name
 * @param {string[]} [how.failing] npm commands that fail, without `run --silent`
 * @param {string[]} [how.args] arguments of .ci/run
 * @returns {Promise<{code: number, out: string, last: string}>}
 */
async function runCi(t, { logs = {}, failing = [], args = [] } = {}) {
  const tree = temporary(t);
  const programs = join(tree, 'programs');
  mkdirSync(programs);
  cpSync(join(ROOT, '.ci'), join(tree, '.ci'), { recursive: true });
  for (const name of suites) writeFileSync(join(tree, name), `${logs[name] ?? PASSED_SUMMARY}\n`);
  const cases = failing.map((command) => `'${command}'|'run --silent ${command}') exit 1;;`);
  const scripts = {
    npm: `[ -f "${tree}/$3" ] && cat "${tree}/$3"\ncase "$*" in ${cases.join(' ')} esac\nexit 0`,
    'dpkg-query': 'echo install ok installed'
  };
  for (const [name, text] of Object.entries(scripts)) {
    writeFileSync(join(programs, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 });
  }
  const env = { ...process.env, PATH: `${programs}:${process.env.PATH}` };
  const { code, out } = await runToEnd(t, [join(tree, '.ci/run'), ...args], { env });
  return { code, out, last: out.trimEnd().split('\n').at(-1) };
}

const allTests = 3 * suites.length;

/** Files in which the version's digits always mean the version of Sprites. */
const ABOUT_VERSIONS = ['*.json', '*.yaml', '*CMakeLists.txt', 'native/**/version.h', ':!test'];

t.test('it runs every command of tests that there is', async (t) => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const named = [...suites, ...steps].join(' ');
  for (const name of Object.keys(scripts).filter((one) => /^test|^lint$/.test(one))) {
    const apart = ['test:all', 'test:nodes', 'test:quick'].includes(name);
    t.equal(named.split(' ').includes(name), !apart, name);
  }
});

t.test('all is well: the tests of all steps are counted', async (t) => {
  const { code, out, last } = await runCi(t);
  t.strictSame({ code, last }, { code: 0, last: `${allTests} passed, 0 failed` });
  const ran = [...out.matchAll(/^== (?!how long)(.*)$/gm)].map(([, step]) => step);
  const seconds = '\\n +\\d+ s, +\\d+ of CPU  ';
  const table = ran.map((step) => `${seconds}${step}`).join('');
  t.match(out, new RegExp(`== how long the steps took${table}${seconds}all\\n`));
  for (const step of ran)
    t.match(out, new RegExp(`== ${step}\n((?!==).*\n)*?${seconds.slice(2)}${step}\n`));
  const installed = await runCi(t, { args: ['--installed'], failing: ['install'] });
  t.strictSame([installed.code, installed.last], [0, last]);
  t.notMatch(installed.out, /== (tools|npm install)/);
});

t.test('a failing test of any step counts once, and is shown again', async (t) => {
  for (const name of suites) {
    const log = '    not ok 1 - one\nnot ok 2 - two\n# { total: 9, pass: 7, fail: 2 }';
    const { code, out, last } = await runCi(t, { logs: { [name]: log }, failing: [name] });
    t.strictSame({ code, last }, { code: 1, last: `${allTests + 4} passed, 2 failed` }, name);
    t.match(out, /== what failed in the tests\n +not ok 1 - one\n/);
  }
});

t.test('tests that fail without a failing one, or say nothing, count once', async (t) => {
  const failed = await runCi(t, { failing: ['test'] });
  t.strictSame([failed.code, failed.last], [1, `${allTests} passed, 1 failed`]);
  const silent = await runCi(t, { logs: { 'test:world': '' } });
  t.strictSame([silent.code, silent.last], [1, `${allTests - 3} passed, 1 failed`]);
});

t.test('every other step that fails counts once', async (t) => {
  for (const step of steps) {
    const command = step.replace('run --silent ', '');
    const { code, out, last } = await runCi(t, { failing: [command] });
    t.strictSame({ code, last }, { code: 1, last: `${allTests} passed, 1 failed` }, step);
    t.match(out, `FAILED: npm ${step}\n`);
  }
});

t.test('a skipped test is shown, and fails', async (t) => {
  const log = '    ok 2 - in the browser # SKIP no chromium\n# { total: 3, pass: 2, skip: 1 }';
  const { code, out, last } = await runCi(t, { logs: { 'test:browsers': log } });
  t.strictSame({ code, last }, { code: 1, last: `${allTests - 1} passed, 1 failed` });
  t.match(out, /== nothing_skipped\n +ok 2 - in the browser # SKIP no chromium\nFAILED/);
});

t.test(
  'a release changes the version in every file that has it, and names the changes',
  async (t) => {
    const read = (file) => readFileSync(join(ROOT, file), 'utf8');
    const { version } = JSON.parse(read('package.json'));
    const files = new Map(released('12.3.4', '2026-01-31', read));
    const naming = execFileSync('git', ['grep', '-lF', version, '--', ...ABOUT_VERSIONS], {
      cwd: ROOT
    });
    for (const file of naming.toString().trim().split('\n')) t.ok(files.has(file), file);
    for (const [file, text] of files) t.match(text, '12.3.4', file);
    t.match(
      files.get('CHANGELOG.md'),
      /^# Changes\n[^#]*\n## Unreleased\n\n## 12\.3\.4 \(2026-01-31\)\n\n\S/
    );
    const wrong = {
      12.3: 'is no version',
      'v12.3.4': 'is no version',
      [version]: 'does not come after',
      '0.0.9': 'does not come after'
    };
    for (const [one, why] of Object.entries(wrong)) {
      t.throws(() => released(one, '2026-01-31', read), new RegExp(why), one);
    }
    const readFile = (file) => files.get(file) ?? read(file);
    t.throws(() => released('12.3.5', '2026-01-31', readFile), /nothing is unreleased/);
    const help = spawnSync(process.execPath, [join(ROOT, '.github/release.js'), '--help']);
    t.match(help.stderr.toString(), /^npm run release -- VERSION, or: files FOLDER/);
  }
);

t.test(
  "a release's list of packages has all that npm installs, and no tool of the developers",
  (t) => {
    const { dependencies, devDependencies } = JSON.parse(
      readFileSync(join(ROOT, 'package.json'), 'utf8')
    );
    const { components } = JSON.parse(sbom());
    const names = components.map(({ group, name }) => (group ? `${group}/${name}` : name));
    for (const name of Object.keys(dependencies)) {
      t.equal(names.includes(name), name !== 'node-gyp', name); // npm brings its own node-gyp
    }
    t.strictSame(
      Object.keys(devDependencies).filter((name) => names.includes(name)),
      []
    );
    t.end();
  }
);

t.test('the linter of C++ names what is not installed', async (t) => {
  const tree = temporary(t);
  for (const folder of ['programs', 'test']) mkdirSync(join(tree, folder));
  cpSync(join(ROOT, 'test/lint-native'), join(tree, 'test/lint-native'));
  const play = (name, text) => {
    writeFileSync(join(tree, 'programs', name), `#!/bin/bash\n${text}\n`, { mode: 0o755 });
  };
  for (const name of ['bash', 'dirname']) {
    const real = execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim();
    symlinkSync(real, join(tree, 'programs', name));
  }
  const lint = async () => {
    const env = { ...process.env, PATH: join(tree, 'programs') };
    const { code, err } = await runToEnd(t, ['/bin/bash', join(tree, 'test/lint-native')], { env });
    return `${code} ${err}`;
  };
  const libraries = 'libcurl4-openssl-dev libsdl2-dev libsdl2-image-dev libpango1.0-dev';
  const all = `clang-format clang-tidy pkg-config ${libraries}`;
  t.equal(await lint(), `1 not installed: ${all}. On Debian: apt-get install ${all}\n`);
  play('clang-format', 'exit 0');
  play('clang-tidy', 'exit 0');
  play('pkg-config', '[[ $2 != sdl2 ]]');
  const one = 'libsdl2-dev';
  t.equal(await lint(), `1 not installed: ${one}. On Debian: apt-get install ${one}\n`);
  play('pkg-config', 'exit 0');
  t.match(await lint(), /^1 the addon is not built.*: npm install\n$/);
});
