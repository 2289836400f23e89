import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import t from 'tap';

import { plainEnvironment } from '../support/cpp-build.js';

const STUCK = new URL('../support/stuck.js', import.meta.url);

t.test('a test that waits for ever fails by name, and those behind it run', async (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'stuck-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const file = path.join(folder, 'some.mjs');
  writeFileSync(
    file,
    `import t from ${JSON.stringify(import.meta.resolve('tap'))};
     import { failWhenStuck } from ${JSON.stringify(STUCK.href)};
     failWhenStuck(t);
     t.test('outer', async (t) => {
       await t.test('waits', () => new Promise(() => {}));
       t.pass('goes on');
     });
     t.test('next', async (t) => t.pass());`
  );
  const options = { env: plainEnvironment(), encoding: 'utf8' };
  const { stdout, status } = spawnSync(process.execPath, [file], options);
  t.not(status, 0);
  t.match(stdout, '"waits" waits for what never comes');
  t.match(stdout, /^ {4}not ok 1 - waits/m);
  t.match(stdout, /^ {4}ok 2 - goes on/m);
  t.match(stdout, /^ok 2 - next/m);
  t.notMatch(stdout, 'unfinished');
});
