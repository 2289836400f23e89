import t from 'tap';

import { CONTENT_BYTES } from '../../lib/arena/content.js';
import { arenaOptions, authorized, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { problemOf } from '../support/contract.js';
import { contract, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Names of players, and content of games, from the requests to the reduced feed. */

const NAMED = {
  ...MIRROR,
  'content.json': '[ "the game’s own" ]',
  'reduce.js': `export const reduce = ({ numbers, content }) => ({ content, named: [...numbers] });`
};

const options = (t, more = {}) => ({
  ...arenaOptions(t, { named: NAMED, other: MIRROR }),
  ...more
});

const call = (server, { path }, name) =>
  server.ask('POST', `${path}/name`, {
    body: typeof name === 'object' ? JSON.stringify(name) : name
  });

/** Waits for the reduced feed with these names. */
const untilNamed = (server, names) =>
  valueOf(server, (now) => JSON.stringify(now.names) === JSON.stringify(names));

const put = (server, path, body) =>
  authorized(server, 'PUT', `/arena/hall/${path}`, { body: JSON.stringify(body) });

const listOf = async (server, query = '') => {
  const { status, body } = await authorized(server, 'GET', `/arena/hall/names${query}`);
  return status === 200 ? body : problemOf({ status, body });
};

/** Tests of players' names. */
function names(t, server) {
  t.test('a name is told with the value that names its player', async (t) => {
    await tell(server, { game: 'named', running: true });
    const [ada, other] = [await enter(server), await enter(server)];
    t.equal((await call(server, ada, { name: '  Ada   Lovelace ' })).status, 204);
    await untilNamed(server, { [ada.number]: 'Ada Lovelace' });
    t.equal((await call(server, ada, { name: 'Ada' })).status, 204, 'another one');
    t.equal((await call(server, other, { name: '👩‍🚀 Eve' })).status, 204);
    await untilNamed(server, { [ada.number]: 'Ada', [other.number]: '👩‍🚀 Eve' });

    const { version, names } = await listOf(server);
    t.strictSame(names.slice(-2), [
      { number: ada.number, name: 'Ada', away: false },
      { number: other.number, name: '👩‍🚀 Eve', away: false }
    ]);
    t.strictSame(await listOf(server, `?after=${version}`), { version }, 'nothing new');

    t.equal((await put(server, `names/${ada.number}`, { away: true })).status, 204);
    await untilNamed(server, { [other.number]: '👩‍🚀 Eve' });
    t.equal(
      (await call(server, ada, { name: 'Adah' })).status,
      204,
      'a player that is put away stays so'
    );
    await tell(server, { running: false });
    t.equal((await put(server, `names/${other.number}`, { away: true })).status, 204);
    await untilNamed(server, {});
    t.equal((await put(server, `names/${ada.number}`, { away: false })).status, 204, 'or not');
    await untilNamed(server, { [ada.number]: 'Adah' });
    await ada.leave();
    t.equal((await listOf(server)).names.length, 2, 'the podium still has it');
    t.equal(await problemOf(await call(server, ada, { name: 'Ada' })), 'unknown-player');
  });

  t.test('what is no name is refused in words, and changes nothing', async (t) => {
    const one = await enter(server);
    const { version } = await listOf(server);
    const none = [
      ...['', '   ', 'x'.repeat(25), 'a\tb', 'a\u0000', 'a\u202Eb', 'a\u2028b'],
      ...['\u200B', '\u3164', '\u2800', '\uD800']
    ];
    for (const body of [
      ...['', '{', 'null', '[]', '"Ada"', '{}', '{"name":"Ada","away":true}', '{"name":7}'],
      '{"name":"Ada","name":"Bo"}',
      ...none.map((name) => ({ name }))
    ]) {
      const answer = await call(server, one, body);
      t.equal(problemOf(answer), 'bad-name', encodeURIComponent(JSON.stringify(body)));
    }
    t.equal(problemOf(await call(server, one, { name: 'x'.repeat(600) })), 'input-too-large');
    t.equal((await listOf(server)).version, version);
    t.equal((await call(server, one, { name: 'é'.repeat(24) })).status, 204, '24 characters');
    const nobody = { path: one.path.slice(0, -1) };
    t.equal(problemOf(await call(server, nobody, { name: 'A' })), 'unknown-player');
    const nowhere = { path: one.path.replace('hall', 'yard') };
    t.equal(problemOf(await call(server, nowhere, { name: 'A' })), 'unknown-arena');
  });

  t.test('a name counts as an input: too many are too many', async () => {
    const one = await enter(server);
    await until(async () => {
      const calls = Array.from({ length: 60 }, (_, at) =>
        call(server, one, { name: `Name ${at}` })
      );
      const answers = await Promise.all(calls);
      return answers.some((one) => one.status === 429 && problemOf(one) === 'too-many-inputs');
    });
  });

  t.test('the host alone reads the names, and puts them away', async (t) => {
    for (const [method, path] of [
      ['GET', 'names'],
      ['PUT', 'names/1'],
      ['GET', 'content/named'],
      ['PUT', 'content/named']
    ]) {
      const answer = await server.ask(method, `/arena/hall/${path}`, { body: '{}' });
      t.equal(problemOf(answer), 'bad-token', path);
    }
    for (const path of ['names/0', 'names/x', 'names/4000000000']) {
      const answer = await put(server, path, { away: true });
      t.equal(problemOf(answer), 'unknown-player', path);
      t.match(answer.body.detail, 'No player of that number has a name');
    }
    for (const body of [{}, { away: 1 }, [true], null]) {
      t.equal(problemOf(await put(server, 'names/1', body)), 'bad-name');
    }
    t.equal(await listOf(server, '?after=x'), 'bad-number');
    const nowhere = await authorized(server, 'GET', '/arena/yard/names');
    t.equal(problemOf(nowhere), 'unknown-arena');
    t.equal(problemOf(await put(server, 'what/1', {})), 'not-found');
  });

  t.test('a game’s content: its own, or the host’s, in a running round too', async (t) => {
    const content = async () => (await authorized(server, 'GET', '/arena/hall/content/named')).body;
    const shown = (value) =>
      valueOf(server, (now) => JSON.stringify(now.value?.content) === JSON.stringify(value));
    t.equal((await server.ask('GET', '/games/named/content.json')).status, 404, 'no phone has it');
    t.strictSame(await content(), { content: ['the game’s own'] });
    await tell(server, { game: 'named', running: true });
    await shown(['the game’s own']);
    t.equal((await put(server, 'content/named', { other: [1] })).status, 204);
    await shown({ other: [1] });
    t.strictSame(await content(), { content: { other: [1] } });
    t.equal((await put(server, 'content/named', null)).status, 204);
    await shown(['the game’s own']);
    const answer = await authorized(server, 'GET', '/arena/hall/content/other');
    t.strictSame(answer.body, { content: null }, 'a game without');
    t.equal(problemOf(await put(server, 'content/nothing', [])), 'unknown-game');
    const deep = '['.repeat(66) + ']'.repeat(66);
    for (const body of [
      '',
      '{',
      '\xff',
      '{"a":1,"a":2}',
      deep,
      `"${'é'.repeat(CONTENT_BYTES / 2)}"`
    ]) {
      const answer = await authorized(server, 'PUT', '/arena/hall/content/named', { body });
      t.match(
        problemOf(answer),
        body.length > 100 && body !== deep ? 'content-too-large' : 'bad-content'
      );
    }
    t.strictSame(await content(), { content: ['the game’s own'] });
    await tell(server, { running: false });
  });
}

for (const workers of [0, 2]) contract(t, { options: options(t, { workers }) }, names);

t.test('there is room for the names of all players', async (t) => {
  const server = await startServer(t, { options: options(t, { 'arena-players': 2, drain: 0 }) });
  for (let i = 0; i < 6; i += 1) {
    const one = await enter(server);
    t.equal((await call(server, one, { name: `Player of round ${i}` })).status, 204);
    await one.leave();
  }
  const { names } = await listOf(server);
  t.ok(names.length <= 4, 'of players that have left not all stay');
  t.equal(names.at(-1).name, 'Player of round 5');
  await server.stop();
});
