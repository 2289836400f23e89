import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { contract, ROOT } from '../support/server.js';

/** Games that do what none should, each with what is told of it. */
const reducing = (text) => ({ ...MIRROR, 'reduce.js': text });
const PORT = "import { parentPort } from 'node:worker_threads';";
/** One that sends by itself what no reducer does, at a reduction. */
const sending = (what) =>
  reducing(`${PORT} export const reduce = () => { parentPort.postMessage(${what}); return 1; };`);
const NOT_ONE = { why: 'bad-value', message: 'it has sent a message that is none of a reducer’s' };
const nesting = (depth) =>
  reducing(
    `export const reduce = () => { let a = 1; for (let i = 0; i < ${depth}; i += 1) a = [a]; return a; };`
  );
const WRONG = {
  throws: [
    {
      ...reducing(`import { deep } from './deep.js';\nexport function reduce() {\n  deep();\n}`),
      'deep.js': `export function deep() {\n\n  throw new Error('no ball\\nhere');\n}`
    },
    {
      ...{ why: 'threw', message: 'no ball', at: /^deep\.js:3$/ },
      stack: ['deep (deep.js:3:9)', 'reduce (reduce.js:3:3)']
    }
  ],
  endless: [reducing('export const reduce = () => { for (;;); };'), { why: 'too-slow' }],
  nothing: [reducing('export const reduce = () => undefined;'), { why: 'bad-value' }],
  promises: [
    reducing('export const reduce = async () => 1;'),
    { why: 'bad-value', message: /async/ }
  ],
  circle: [
    reducing('export const reduce = () => { const a = {}; a.a = a; return a; };'),
    { why: 'bad-value' }
  ],
  large: [reducing("export const reduce = () => 'x'.repeat(70000);"), { why: 'bad-value' }],
  forgetful: [
    reducing("export const reduce = (now, memory) => { memory.a = 'x'.repeat(70000); return 1; };"),
    { why: 'bad-value' }
  ],
  unreadable: [reducing('\nexport const reduce = ('), { why: 'not-loaded', at: /^reduce\.js:2$/ }],
  thoughtless: [
    reducing('setTimeout(() => {\n  null.x;\n}); export const reduce = () => 1;'),
    { why: 'threw', at: /^reduce\.js:2$/, stack: [/^Timeout.* \(reduce\.js:2:8\)$/] }
  ],
  lonely: [
    reducing("import './nothing.js'; export const reduce = () => 1;"),
    { why: 'not-loaded', message: /^Cannot find module '[^/]*nothing\.js'/ }
  ],
  empty: [reducing('export const other = 1;'), { why: 'not-loaded' }],
  leaver: [reducing('export const reduce = () => process.exit(1);'), { why: 'threw' }],
  kills: [
    reducing('export const reduce = () => process.kill(process.pid, 0);'),
    { why: 'threw', message: 'process.kill() is not supported in games' }
  ],
  'leaves-early': [reducing('process.exit(0);'), { why: 'threw' }],
  closes: [
    reducing(`${PORT} export const reduce = () => { parentPort.close(); return 1; };`),
    { why: 'threw' }
  ],
  // The reduced feed has a level of its own around the value.
  deep: [nesting(64), { why: 'bad-value', message: /at most 64 deep/ }],
  null: [sending('null'), NOT_ONE],
  undefined: [sending('undefined'), NOT_ONE],
  number: [sending('{ text: 7 }'), NOT_ONE],
  long: [sending("{ text: ' '.repeat(70000) }"), NOT_ONE],
  'memory-object': [sending("{ text: '1', memory: {} }"), NOT_ONE],
  'no-json': [sending("{ text: '}' }"), { why: 'bad-value' }],
  'no-words': [sending("{ failed: { why: 'threw', message: { toString: 0 } } }"), { why: 'threw' }],
  'early-null': [reducing(`${PORT} parentPort.postMessage(null);`), NOT_ONE],
  'later-null': [
    reducing('setTimeout(() => { throw null; }); export const reduce = () => 1;'),
    { why: 'threw', message: 'null' }
  ],
  'later-object': [
    reducing('setTimeout(() => { throw { message: 5 }; }); export const reduce = () => 1;'),
    { why: 'threw', message: '{ message: 5 }' }
  ],
  rejects: [
    reducing("Promise.reject(new Error('no hope')); export const reduce = () => 1;"),
    { why: 'threw', message: 'no hope' }
  ],
  recursive: [reducing('export const reduce = () => reduce();'), { why: 'threw' }],
  waits: [
    reducing(
      'export const reduce = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);'
    ),
    { why: 'too-slow' }
  ]
};

const games = {
  mirror: MIRROR,
  'deep-enough': nesting(63),
  ender: reducing("export const reduce = ({ time }) => ({ page: 'end', over: time > 100 });"),
  slow: reducing(
    'export const reduce = ({ page }) => { const end = Date.now() + 300; while (Date.now() < end); return { page }; };'
  ),
  ...Object.fromEntries(Object.entries(WRONG).map(([name, [game]]) => [name, game]))
};

contract(t, { options: arenaOptions(t, games) }, (t, server) => {
  const played = Object.entries(WRONG);
  for (const [name, [, failed]] of played) {
    t.test(`${name}: it is stopped alone, and the panel is told`, async (t) => {
      await tell(server, { game: name, running: true });
      const control = await controlOf(server, (now) => now.failed !== null);
      t.match(control, { running: false, game: name, failed: { game: name, ...failed } });
      t.ok(control.failed.message.length > 0 && !control.failed.message.includes('\n'));
      t.notMatch(control.failed.message, ROOT, 'no path of the server');
      const player = await enter(server);
      t.equal((await player.send({ y: 1 })).status, 204, 'inputs are taken all the same');
      await player.leave();
    });
  }

  t.test('another game is played after it', async (t) => {
    await tell(server, { game: 'mirror', running: true });
    t.equal((await controlOf(server)).failed, null);
    t.equal((await server.inside()).gamesStopped, played.length);
    await valueOf(server, ({ game, value }) => game === 'mirror' && value !== null);
    await tell(server, { running: false });
  });

  t.test('a value as deep as a feed takes, with the level around it, is published', async () => {
    await tell(server, { game: 'deep-enough', running: true });
    await valueOf(server, ({ game, value }) => game === 'deep-enough' && value !== null);
    await tell(server, { running: false });
  });

  t.test('a game turns the page, and ends by itself', async (t) => {
    await tell(server, { game: 'ender', running: true });
    const control = await controlOf(server, (now) => now.round > 0 && !now.running);
    t.match(control, { game: 'ender', page: 'end', running: false, failed: null });
  });

  t.test('a game at work does not turn back the page that the panel has turned', async (t) => {
    await tell(server, { game: 'slow', running: true });
    await valueOf(server, ({ game, value }) => game === 'slow' && value?.page === 'play');
    // By now the next one is under way.
    await pause(100);
    await tell(server, { page: 'end' });
    await valueOf(server, ({ value }) => value?.page === 'end');
    t.match(await controlOf(server), { page: 'end', running: true });
    await tell(server, { running: false });
  });
});
