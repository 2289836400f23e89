import { rmSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { findGames, firstGame } from '../../lib/arena/games.js';
import { readFormat } from '../../lib/arena/format.js';
import { arenaOptions, controlOf, MIRROR, writeAtomically, tell } from '../support/arena.js';
import { contract } from '../support/server.js';
import { until } from '../support/until.js';

const format = JSON.parse(MIRROR['inputs.json']);
const withFile = (name, content) => ({ ...MIRROR, [name]: content });
const withFormat = (change) => withFile('inputs.json', JSON.stringify({ ...format, ...change }));

/** Returns options with a folder of other games. */
const inFolder = (t, games) => ({ arena: ['hall'], games: t.testdir(games) });

/** The games' folder of this file's servers. A game may be a link to a folder elsewhere, and have a dangling link. */
const watched = arenaOptions(t, {
  mirror: {
    ...{ ...MIRROR, 'a.svg': '<svg/>', more: { 'x.json': '1' } },
    notes: t.fixture('symlink', 'nowhere')
  },
  other: t.fixture('symlink', '.other'),
  '.other': { ...MIRROR }
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
  const put = (file, text) => writeAtomically(join(watched.games, file), text);
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

t.test('games are found, the operator’s before the server’s own', async (t) => {
  const games = findGames(
    inFolder(t, { pong: { ...MIRROR }, 'a-1': { ...MIRROR }, 'note.txt': 'x', '.git': {} })
  );
  t.equal(games.get('pong').format.title, 'Mirror');
  const names = [...games.keys()];
  t.strictSame(names, names.toSorted());
  t.strictSame([...findGames({ arena: [], games: 'none' }).keys()], []);
});

t.test('a folder that is no game says so in one line', async (t) => {
  const { 'field.js': field, ...rest } = MIRROR;
  t.ok(field);
  for (const [games, says] of [
    [{ one: rest }, /one: it has no field\.js$/],
    [{ One: MIRROR }, /One: a game's name is/],
    [MIRROR, /^--games \/.*: it is a game itself: give the folder that has its folder$/],
    [{ one: withFile('inputs.json', '{') }, /inputs\.json: it is no JSON$/],
    [
      { one: withFile('inputs.json', ' '.repeat(17000)) },
      /^\S*inputs\.json: it has more than 16384 /
    ],
    [{ one: withFile('big.js', 'x'.repeat(2 ** 20 + 1)) }, /^\S*big\.js: it has more than/],
    [{ one: withFile('reduce.js', 'x'.repeat(2 ** 20 + 1)) }, /^\S*reduce\.js: it has more than/],
    [{ one: withFile('reduce.js', {}) }, /^\S*reduce\.js: it is no file$/],
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

t.test('what an editor has beside a file is no part of a game', async (t) => {
  const lock = t.fixture('symlink', 'me@here.4711:1795674706'); // as Emacs does while a file is edited
  const games = { a: { ...MIRROR, '.#phone.js': lock, '.phone.js': '' }, '.#a': lock };
  t.strictSame([...findGames(inFolder(t, games)).get('a').files.keys()].toSorted(), [
    'field.js',
    'inputs.json',
    'phone.js'
  ]);
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
