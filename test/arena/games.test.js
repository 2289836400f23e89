import { renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { readFormat } from '../../lib/arena/format.js';
import { findGames, firstGame } from '../../lib/arena/games.js';
import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { contract } from '../support/server.js';
import { until } from '../support/until.js';

const format = JSON.parse(MIRROR['inputs.json']);
const withFormat = (change) => ({
  ...MIRROR,
  'inputs.json': JSON.stringify({ ...format, ...change })
});

/** Games of one's own in a folder, as options. */
const inFolder = (t, games) => ({ arena: ['hall'], games: t.testdir(games) });

/** The one folder of this file's servers. */
const watched = arenaOptions(t, {
  mirror: { ...MIRROR, 'a.svg': '<svg/>', more: { 'x.json': '1' } },
  other: { ...MIRROR }
});

contract(t, { options: { ...watched, arena: 'hall,yard' } }, (t, server) => {
  t.test('the list of games', async (t) => {
    const { status, body } = await server.ask('GET', '/games');
    t.equal(status, 200);
    const { name, title, pace, rate, inputs } = body.games.find(({ name }) => name === 'mirror');
    t.strictSame([name, title, pace, rate], ['mirror', 'Mirror', 60, 4]);
    t.strictSame(inputs.y, { min: 0, max: 1, start: 0.5, integer: false });
    t.strictSame(inputs.taps, { min: 0, max: 1000, start: 0, integer: true });
  });

  t.test('their files, but not the reducer, nor what is in folders', async (t) => {
    for (const [name, type] of [
      ['phone.js', 'text/javascript; charset=utf-8'],
      ['field.js', 'text/javascript; charset=utf-8'],
      ['inputs.json', 'application/json'],
      ['a.svg', 'image/svg+xml']
    ]) {
      const { status, headers } = await server.ask('GET', `/games/mirror/${name}`);
      t.strictSame([status, headers['content-type']], [200, type], name);
      t.match(headers['content-security-policy'], "default-src 'none'; script-src 'self'");
    }
    for (const name of ['reduce.js', 'more/x.json', 'x.json', '../mirror/phone.js']) {
      t.equal((await server.ask('GET', `/games/mirror/${name}`)).status, 404, name);
    }
    t.equal((await server.ask('POST', '/games/mirror/phone.js')).status, 405);
  });

  t.test('what the plots need', async (t) => {
    for (const name of ['/uplot.js', '/uplot.css']) {
      t.equal((await server.ask('GET', name)).status, 200, name);
    }
  });
});

contract(t, { options: watched }, (t, server) => {
  const put = (file, text) => {
    const path = join(watched.games, file);
    writeFileSync(`${path}.part`, text);
    renameSync(`${path}.part`, path);
  };
  const textAt = async (path) => (await server.ask('GET', path)).bytes.toString();
  const served = (version) => textAt(`/games/mirror~${version}/phone.js`);

  t.test('what changes in --games is taken, but of no game that is played', async (t) => {
    await tell(server, { game: 'mirror' });
    await tell(server, { settings: { seconds: 77 } });
    const first = await controlOf(server, ({ settings }) => settings.seconds === 77);
    t.match(first.version, /^[0-9a-f]{12}$/);
    t.equal(await served(first.version), MIRROR['phone.js']);

    put('mirror/phone.js', '// another\n');
    const second = await controlOf(server, ({ version }) => version !== first.version);
    t.strictSame({ ...second, version: '' }, { ...first, version: '' }, 'the settings stay');
    t.equal(await served(second.version), '// another\n');
    t.equal(await textAt('/games/mirror/phone.js'), '// another\n');
    t.equal((await server.ask('GET', `/games/mirror~${first.version}/phone.js`)).status, 404);

    await tell(server, { running: true });
    put('mirror/inputs.json', JSON.stringify({ ...format, title: 'New', settings: {} }));
    put('other/phone.js', `// while another is played, ${first.version}\n`);
    const titles = async () => {
      const { body } = await server.ask('GET', '/games');
      return Object.fromEntries(body.games.map(({ name, title }) => [name, title]));
    };
    await until(async () => /while/.test(await textAt('/games/other/phone.js')));
    t.match(await titles(), { mirror: 'Mirror', other: 'Mirror' });
    await tell(server, { running: false });
    const third = await controlOf(server, ({ version }) => version !== second.version);
    t.match(third, { page: 'lobby', round: second.round + 1, settings: {} });
    t.strictSame(third.settings, {}, 'a setting that there is not any more');
    t.match(await titles(), { mirror: 'New', other: 'Mirror' });
  });

  t.test('what is no game any more stays what it was, until it is one again', async (t) => {
    const before = await controlOf(server);
    put('mirror/inputs.json', '{');
    put('mirror/phone.js', '// with it\n');
    put('other/field.js', MIRROR['field.js']);
    rmSync(join(watched.games, 'other/phone.js'));
    put('mirror/inputs.json', MIRROR['inputs.json']);
    put('other/phone.js', MIRROR['phone.js']);
    const after = await controlOf(server, ({ version }) => version !== before.version);
    t.equal(await served(after.version), '// with it\n');
    put('mirror/phone.js', MIRROR['phone.js']);
  });

  t.test('a game that comes with the server has no version', async (t) => {
    await tell(server, { game: 'pong' });
    t.equal((await controlOf(server)).version, null);
    t.equal((await server.ask('GET', '/games/pong/phone.js')).status, 200);
    await tell(server, { game: null });
    t.equal((await controlOf(server)).version, null);
  });
});

contract(t, {}, (t, server) => {
  t.test('without an arena there is nothing of it', async (t) => {
    for (const path of ['/games', '/arena', '/uplot.js', '/play/hall', '/arena-pages/style.css']) {
      t.equal((await server.ask('GET', path)).status, 404, path);
    }
  });
});

t.test(
  'games are found, those of the operator before those that come with the server',
  async (t) => {
    const games = findGames(
      inFolder(t, { pong: { ...MIRROR }, 'a-1': { ...MIRROR }, 'note.txt': 'x', '.git': {} })
    );
    t.equal(games.get('pong').format.title, 'Mirror');
    const names = [...games.keys()];
    t.strictSame(names, names.toSorted());
    t.strictSame([...findGames({ arena: [], games: 'none' }).keys()], []);
  }
);

t.test('a folder that is no game says so in one line', async (t) => {
  const { 'field.js': field, ...rest } = MIRROR;
  t.ok(field);
  for (const [games, says] of [
    [{ one: rest }, /one: it has no field\.js$/],
    [{ One: MIRROR }, /One: a game's name is/],
    [{ one: { ...MIRROR, 'inputs.json': '{' } }, /inputs\.json: it is no JSON$/],
    [{ one: { ...MIRROR, 'inputs.json': ' '.repeat(17000) } }, /more than 16384 bytes$/],
    [{ one: { ...MIRROR, 'big.js': 'x'.repeat(2 ** 20 + 1) } }, /big\.js: it has more than/],
    [
      {
        one: {
          ...MIRROR,
          ...Object.fromEntries(Array.from({ length: 63 }, (_, i) => [`${i}.svg`, '']))
        }
      },
      /one: it has more than 64 files to serve$/
    ],
    [{ one: withFormat({ inputs: {} }) }, /one.inputs\.json: inputs must have 1 to 16 members$/]
  ]) {
    t.throws(() => findGames(inFolder(t, games)), says);
  }
  t.throws(
    () => findGames({ arena: ['hall'], games: '/nowhere/at/all' }),
    /can't be read \(ENOENT\)$/
  );
});

t.test('an arena begins with a game that plays without a part of the panel', async (t) => {
  const own = findGames({ arena: ['hall'], games: 'none' });
  t.ok(own.get('load').files.has('panel.js'));
  t.equal(firstGame(own).name, 'pong');
  t.equal(firstGame(new Map([['load', own.get('load')]])).name, 'load', 'unless there is no other');
});

t.test('inputs.json: what is not as it must be is said', async (t) => {
  const read = (change) => readFormat(JSON.stringify({ ...format, ...change }));
  t.strictSame(read({ pages: undefined }).pages, ['play']);
  const y = { min: 0, max: 1 };
  const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`n${i}`, y]));
  for (const [change, says] of [
    [{ title: '' }, /title must be/],
    [{ title: 'x'.repeat(61) }, /title must be/],
    [{ about: 'x'.repeat(201) }, /about must be/],
    [{ rate: 0 }, /rate must be/],
    [{ pace: 61 }, /pace must be/],
    [{ pace: 1.5 }, /pace must be/],
    [{ pages: [] }, /pages must be/],
    [{ pages: ['lobby'] }, /pages must be/],
    [{ pages: ['Play'] }, /pages must be/],
    [{ pages: Array.from({ length: 17 }, (_, i) => `p${i}`) }, /pages must be/],
    [{ inputs: many }, /1 to 16 members/],
    [{ settings: many }, /0 to 16 members/],
    [{ inputs: [] }, /inputs must be an object/],
    [{ inputs: { '1y': y } }, /must be letters/],
    [{ inputs: { 'y-z': y } }, /must be letters/],
    [{ inputs: { constructor: y } }, /must be letters/],
    [{ inputs: { ['x'.repeat(33)]: y } }, /must be letters/],
    [{ inputs: { y: { min: 1, max: 0 } } }, /min <= start <= max/],
    [{ inputs: { y: { min: 0, max: 1, start: 2 } } }, /min <= start <= max/],
    [{ inputs: { y: { min: 0 } } }, /must have min and max/],
    [{ inputs: { y: { min: 0, max: '1' } } }, /must have min and max/],
    [{ inputs: { y: { ...y, max: 0.5, integer: true } } }, /is an integer/],
    [{ inputs: { y: { ...y, integer: 1 } } }, /integer must be true or false/],
    [{ inputs: { y: { ...y, step: 1 } } }, /has "step"/],
    [{ input: {} }, /has "input"/]
  ]) {
    t.throws(() => read(change), says, JSON.stringify(change).slice(0, 60));
  }
  for (const text of ['', 'null', '[]', '1']) t.throws(() => readFormat(text), text);
});

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

  t.test(
    'a game that is at work does not turn back the page that the panel has turned',
    async (t) => {
      await tell(server, { game: 'slow', running: true });
      await valueOf(server, ({ game, value }) => game === 'slow' && value?.page === 'play');
      // By now the next one is under way.
      await pause(100);
      await tell(server, { page: 'end' });
      await valueOf(server, ({ value }) => value?.page === 'end');
      t.match(await controlOf(server), { page: 'end', running: true });
      await tell(server, { running: false });
    }
  );
});
