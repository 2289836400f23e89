import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { contract, ROOT } from '../support/server.js';

const BAD = { why: 'bad-value' };
const THREW = { why: 'threw' };
const SLOW = { why: 'too-slow' };
const UNLOADED = { why: 'not-loaded' };
const NOT_ONE = { ...BAD, message: 'it has sent a message that is none of a reducer’s' };
const NO_KILL = { ...THREW, message: 'process.kill() is not supported in games' };

const nesting = (depth) => `let a = 1; for (let i = 0; i < ${depth}; i += 1) a = [a]; return a;`;
const sending = (what) => `parentPort.postMessage(${what}); return 1;`;
const later = (what) => `setTimeout(() => { ${what} }); export const reduce = () => 1;`;

/** Reducers that fail, each with the reported failure. */
const REDUCERS = {
  endless: ['for (;;);', SLOW],
  waits: ['Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);', SLOW],
  nothing: ['return undefined;', BAD],
  circle: ['const a = {}; a.a = a; return a;', BAD],
  large: ["return 'x'.repeat(70000);", BAD],
  forgetful: ["memory.a = 'x'.repeat(70000); return 1;", BAD],
  // The reduced feed adds one level around the value.
  deep: [nesting(64), { ...BAD, message: /at most 64 deep/ }],
  leaver: ['process.exit(1);', THREW],
  kills: ['process.kill(process.pid, 0);', NO_KILL],
  closes: ['parentPort.close(); return 1;', THREW],
  recursive: ['return reduce();', THREW],
  null: [sending('null'), NOT_ONE],
  undefined: [sending('undefined'), NOT_ONE],
  number: [sending('{ text: 7 }'), NOT_ONE],
  long: [sending("{ text: ' '.repeat(70000) }"), NOT_ONE],
  'memory-object': [sending("{ text: '1', memory: {} }"), NOT_ONE],
  'no-json': [sending("{ text: '}' }"), BAD],
  'no-words': [sending("{ failed: { why: 'threw', message: { toString: 0 } } }"), THREW]
};

/** Modules that fail, each with the reported failure. */
const MODULES = {
  unreadable: ['\nexport const reduce = (', { ...UNLOADED, at: /^reduce\.js:2$/ }],
  lonely: [
    "import './nothing.js';",
    { ...UNLOADED, message: /^Cannot find module '[^/]*nothing\.js'/ }
  ],
  empty: ['export const other = 1;', UNLOADED],
  promises: ['export const reduce = async () => 1;', { ...BAD, message: /async/ }],
  'leaves-early': ['process.exit(0);', THREW],
  'early-null': ["(await import('node:worker_threads')).parentPort.postMessage(null);", NOT_ONE],
  thoughtless: [
    later('\n  null.x;\n'),
    { ...THREW, at: /^reduce\.js:2$/, stack: [/^Timeout.* \(reduce\.js:2:8\)$/] }
  ],
  'later-null': [later('throw null;'), { ...THREW, message: 'null' }],
  'later-object': [later('throw { message: 5 };'), { ...THREW, message: '{ message: 5 }' }],
  rejects: [
    "Promise.reject(new Error('no hope')); export const reduce = () => 1;",
    { ...THREW, message: 'no hope' }
  ],
  throws: [
    `import { deep } from './deep.js';\nexport function reduce() {\n  deep();\n}`,
    {
      ...{ ...THREW, message: 'no ball', at: /^deep\.js:3$/ },
      stack: ['deep (deep.js:3:9)', 'reduce (reduce.js:3:3)']
    }
  ]
};

const reducing = (text) => ({
  ...{ ...MIRROR, 'reduce.js': text },
  'deep.js': `export function deep() {\n\n  throw new Error('no ball\\nhere');\n}`
});
const doing = (body) =>
  reducing(`import { parentPort } from 'node:worker_threads';
    export function reduce({ page, time }, memory) { ${body} }`);

const WRONG = { ...REDUCERS, ...MODULES };
const games = {
  mirror: MIRROR,
  'deep-enough': doing(nesting(63)),
  ender: doing("return { page: 'end', over: time > 100 };"),
  slow: doing('const end = Date.now() + 300; while (Date.now() < end); return { page };'),
  ...Object.fromEntries(Object.entries(REDUCERS).map(([name, [body]]) => [name, doing(body)])),
  ...Object.fromEntries(Object.entries(MODULES).map(([name, [text]]) => [name, reducing(text)]))
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
    t.equal((await server.adminStatus()).gamesStopped, played.length);
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
    // By then the next reduction is running.
    await pause(100);
    await tell(server, { page: 'end' });
    await valueOf(server, ({ value }) => value?.page === 'end');
    t.match(await controlOf(server), { page: 'end', running: true });
    await tell(server, { running: false });
  });
});
