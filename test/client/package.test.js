import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';

import { plainEnvironment } from '../support/cpp-build.js';
import { startServer } from '../support/server.js';

/** The client as a package of its own: without a compiler, with TypeScript declarations. */

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const TSC = join(ROOT, 'node_modules/.bin/tsc');

t.setTimeout(300_000); // TypeScript is slow on a busy machine

/** Runs a program without the test runner's hooks, which every child process would inherit. */
async function run(command, args, cwd) {
  return promisify(execFile)(command, args, { cwd, env: plainEnvironment() });
}

const read = (path) => readFileSync(join(ROOT, path), 'utf8');

t.test('packed and installed elsewhere it throws, and TypeScript knows it', async (t) => {
  t.equal(
    JSON.parse(read('lib/client/package.json')).version,
    JSON.parse(read('package.json')).version
  );
  // There is no upstream server, so a feed has a problem.
  const server = await startServer(t, { options: { upstream: 'http://127.0.0.1:1/{key}' } });
  const folder = t.testdir({ 'package.json': '{"type":"module","private":true}' });
  const { stdout } = await run('npm', ['pack', join(ROOT, 'lib/client'), '--silent'], folder);
  await run('npm', ['install', '--offline', '--no-audit', `./${stdout.trim()}`], folder);
  const hello = `import { Client, EDGES, Feeds, feedStore, opposite, type Edge, type Outcome, type Resume } from 'sprites-client';
    import { readSprite, type Sprite } from 'sprites-client/sprite';
    import type { useFeed } from 'sprites-client/react';
    type Shown = ReturnType<typeof useFeed>['problem'];
    const options: Parameters<typeof useFeed>[1] = { base: 'http://127.0.0.1' };
    let kept: Resume | null = null;
    const client = new Client({
      base: 'http://127.0.0.1:${server.port}',
      limits: { backoffFirst: 20 },
      onSprite(value, { from, seq }) {
        const sprite: Sprite = readSprite(value);
        const onward: Edge = opposite(from);
        console.log(sprite.picture, from.toUpperCase(), seq + 0, onward);
      },
      onState: (state, { why }) => console.log(state === 'superseded' ? why : state),
      onResume: (resume) => { kept = resume; }
    });
    client.start();
    const sprite = { id: 'hello', picture: 'star', at: 0.5, speed: [1, 0] };
    const outcome: Outcome = await client.throw(EDGES[0] ?? opposite('up'), sprite);
    console.log(outcome.thrown, outcome.ticket.n, kept !== null);
    await client.leave();
    const feeds = new Feeds({ base: 'http://127.0.0.1:${server.port}' });
    const watch = feeds.watch('nobodys', (value, { key, cursor, problem }) => {
      console.log('feed', value?.list, key.toUpperCase(), cursor?.length, problem);
      console.log(feeds.state === 'online', watch.held?.cursor.length);
      watch.close();
    });
    const shown: Shown = feedStore(feeds, 'a').getSnapshot().problem;
    if (shown) console.log(shown);`;
  const wrong = {
    'an-edge-that-is-none': hello.replace('EDGES[0]', "'north'"),
    'a-number-that-is-a-word': hello.replace('backoffFirst: 20', "backoffFirst: 'soon'"),
    'a-state-that-is-none': hello.replace("=== 'superseded'", "=== 'lost'"),
    'a-state-of-feeds-that-is-none': hello.replace("'online'", "'joining'"),
    'a-watch-without-a-callback': hello.replace(/\('nobodys', [^]*?\n {4}\}\)/, "('nobodys')"),
    'a-cursor-that-is-a-number': hello.replace('cursor?.length', 'cursor * 2'),
    'an-option-of-use-feed-that-is-none': hello.replace('{ base:', '{ bse:'),
    'no-base': hello.replace(/base: .*,/, '')
  };
  const files = Object.entries({ hello, ...wrong });
  for (const [name, text] of files) writeFileSync(join(folder, `${name}.ts`), text);
  const strict = ['--strict', '--skipDefaultLibCheck', '--target', 'es2022'];
  const modern = ['--module', 'nodenext', '--lib', 'es2022,dom'];
  const names = files.map(([name]) => `${name}.ts`);
  const said = await run(TSC, [...strict, ...modern, ...names], folder).catch(({ stdout }) => ({
    stdout
  }));
  const complaints = said.stdout.match(/^.*(?=\.ts\(\d+,\d+\): error TS)/gm);
  t.same([...new Set(complaints)].sort(), Object.keys(wrong).sort(), said.stdout);

  const { stdout: ran } = await run(process.execPath, ['hello.js'], folder);
  const lines = ran.trim().split('\n').sort();
  t.same(
    lines,
    [
      'joining',
      'left',
      'online',
      'star RIGHT 1 left',
      'true 1 true',
      'feed undefined NOBODYS undefined upstream-failed',
      'true undefined'
    ].sort()
  );
  await server.assertNothingLeft();
});

t.test('the package of the server has it, too, and nothing else of its files', async (t) => {
  const resolved = (name) => import.meta.resolve(name).replace(/^.*(?=\/lib\/)/, '');
  for (const name of ['client', 'protocol']) {
    t.equal(resolved(`sprites-server/${name}`), '/lib/client/client.js');
  }
  t.equal(resolved('sprites-server/sprite'), '/lib/client/sprite.js');
  t.throws(
    () => import.meta.resolve('sprites-server/lib/client/client.js'),
    /PATH_NOT_EXPORTED|not defined by "exports"/
  );
});
