import t from 'tap';

import { askFrom } from '../support/addresses.js';
import {
  arenaOptions,
  authorized,
  controlOf,
  enter,
  MIRROR,
  tell,
  valueOf
} from '../support/arena.js';
import { problemOf } from '../support/contract.js';
import { contract, refused } from '../support/server.js';

/** Some invalid inputs. test/native/arena_test.cc has the others. */
const BAD = ['', '[]', '{"y":0.5,"taps":2000}', '{"taps":0.5}', '{"z":0}'];

const NOBODY = '00000000-0000-8000-8000-000000000000';

const games = {
  'a-mirror': MIRROR,
  still: { ...MIRROR, 'reduce.js': 'export const reduce = () => 1;' },
  other: {
    ...MIRROR,
    'inputs.json': JSON.stringify({
      title: 'Other',
      inputs: { tilt: { min: -9, max: 9, start: -1 } }
    }),
    'reduce.js': 'export const reduce = ({ inputs: { tilt } }) => [...tilt];'
  }
};

const options = arenaOptions(t, games);

/** Tests of players and panels. */
function plays(t, server) {
  t.test('a player joins, plays, is watched, and leaves', async (t) => {
    const player = await enter(server);
    t.strictSame(
      { ...player, player: '', number: 0, path: '', send: 0, leave: 0 },
      {
        ...{ player: '', number: 0, path: '', send: 0, leave: 0 },
        ...{ rate: 4, lease: 30, feed: 'arena/hall', control: 'arena/hall/control' }
      }
    );
    t.match(player.player, /^[0-9a-f-]{36}$/);
    t.strictSame((await server.ask('GET', '/arena')).body, {
      arenas: [{ name: 'hall', game: 'a-mirror', players: 1 }]
    });
    const waits = await valueOf(server, ({ players }) => players === 1);
    t.strictSame([waits.game, waits.round, waits.value], ['a-mirror', 0, null], 'in the lobby');

    t.equal((await player.send({ taps: 7, y: 0.25 })).status, 204);
    t.equal((await server.status()).inputsWaiting, 1, 'without a game it waits');
    const started = await tell(server, { running: true });
    t.equal(started.status, 200);
    t.match(started.body, { cursor: String, watching: Number });
    const begun = await valueOf(server, ({ value }) => value?.players === 1);
    t.strictSame([begun.value.taps, begun.value.y], [[0], [0.5]], 'a round begins at the start');
    const counts = await server.status();
    t.strictSame(
      [counts.inputsSuperseded, counts.inputsWaiting],
      [1, 0],
      'what waited is of before'
    );
    t.equal((await player.send({ taps: 7, y: 0.25 })).status, 204);
    const first = await valueOf(server, ({ value }) => value?.taps[0] === 7);
    t.strictSame(first.value.y, [0.25]);
    t.strictSame(first.value.numbers, [player.number]);
    t.equal(first.value.came, 1, 'an input is fresh once');

    t.equal((await player.send({ taps: 8 })).status, 204);
    const next = await valueOf(server, ({ value }) => value.taps[0] === 8);
    t.strictSame(next.value.y, [0.25], 'what is not named stays');
    t.ok(next.time >= first.time);
    const { inputs, inputsWaiting } = await server.status();
    t.strictSame([inputs, inputsWaiting], [3, 0]);

    await tell(server, { running: false });
    await tell(server, { running: true });
    const again = await valueOf(server, ({ round, value }) => round === 2 && value !== null);
    t.strictSame([again.value.taps, again.value.y], [[0], [0.5]], 'and so does each one after it');

    t.equal((await player.leave()).status, 204);
    t.equal((await player.leave()).status, 204, 'also when repeated');
    await valueOf(server, ({ players, value }) => players === 0 && value.players === 0);
    t.equal(problemOf(await player.send({})), 'unknown-player');
    await tell(server, { running: false, page: 'lobby' });
  });

  t.test('a browser gets a page for an unknown arena, a program a problem', async (t) => {
    const accept = (type) => ({ headers: { Accept: type } });
    const browser = accept('text/html,application/xml;q=0.9,*/*;q=0.8');
    const refuses = (path, how) =>
      refused(t, server, 'not-found', () => server.ask('GET', path, how), path);
    for (const page of ['play', 'field', 'control']) {
      const { bytes } = await server.ask('GET', `/${page}/hall`);
      for (const name of ['yard', 'Hall', ''])
        t.strictSame((await server.ask('GET', `/${page}/${name}`, browser)).bytes, bytes, page);
      for (const how of [{}, accept('application/json')]) await refuses(`/${page}/yard`, how);
      for (const name of ['yard/more', '%00']) await refuses(`/${page}/${name}`, browser);
    }
    for (const path of ['/try/yard', '/play']) await refuses(path, browser);
  });

  t.test('bad inputs of every kind change nothing', async (t) => {
    // Waits until the changes of earlier tests are published.
    await valueOf(server, ({ players }) => players === 0);
    const player = await enter(server);
    await valueOf(server, ({ players }) => players === 1);
    for (const text of BAD) {
      await refused(t, server, 'bad-input', () => player.send(text), JSON.stringify(text));
    }
    const long = `{"y":0.5${' '.repeat(512)}}`;
    await refused(t, server, 'input-too-large', () => player.send(long));
    for (const query of ['?n=-1', '?n=x', '?n=', '?n=1&n=2', '?n=9007199254740992']) {
      await refused(t, server, 'bad-number', () => player.send({}, query), query);
    }
    const ask = (path) => () => server.ask('POST', path, { body: '{}' });
    await refused(t, server, 'unknown-player', ask(`/arena/hall/${NOBODY}`));
    await refused(t, server, 'unknown-player', ask('/arena/hall/nobody'));
    await refused(t, server, 'unknown-player', ask(player.path.slice(0, -1)));
    await refused(t, server, 'unknown-arena', ask('/arena/yard'));
    await refused(t, server, 'unknown-arena', ask(`/arena/yard/${player.player}`));
    await refused(t, server, 'unknown-arena', ask(`/arena/yard/${player.player}/leave`));
    await refused(t, server, 'not-found', ask(`${player.path}/jump`));
    t.equal((await server.ask('GET', player.path)).status, 404);
    t.equal((await server.ask('PUT', player.path)).status, 405);
    await player.leave();
  });

  t.test('a value that did not change keeps its version', async (t) => {
    const player = await enter(server);
    await tell(server, { game: 'still', running: true });
    const shown = await valueOf(server, ({ game, value }) => game === 'still' && value === 1);
    const { reductions, published } = await server.status();
    await server.until((status) => status.reductions > reductions + 20);
    t.strictSame(await valueOf(server, () => true), shown, 'its time, too');
    t.equal((await server.status()).published, published);
    await tell(server, { game: 'a-mirror' });
    await player.leave();
  });

  t.test('another game begins with inputs of its own', async (t) => {
    const player = await enter(server);
    t.equal((await player.send({ y: 0.125 })).status, 204);
    t.equal(problemOf(await player.send({ tilt: 3 })), 'bad-input');
    await tell(server, { game: 'other', running: true });
    t.equal((await server.status()).inputsWaiting, 0, 'what waited is of the game before');
    t.equal(problemOf(await player.send({ y: 0.125 })), 'bad-input');
    await valueOf(server, ({ game, value }) => game === 'other' && value?.[0] === -1);
    t.equal((await player.send({ tilt: 3 })).status, 204);
    await valueOf(server, ({ value }) => value[0] === 3);
    await tell(server, { game: 'a-mirror' });
    await player.leave();
  });

  t.test('the panel: what it may say', async (t) => {
    const began = await controlOf(server);
    t.strictSame(
      { ...began, round: 0, version: '' },
      {
        version: '',
        ...{ game: 'a-mirror', page: 'lobby', rate: 4, pace: 60, running: false, round: 0 },
        ...{ settings: { seconds: 60 }, begun: false, failed: null }
      }
    );
    t.equal((await tell(server, { rate: 7, pace: 30, settings: { seconds: 90 } })).status, 200);
    const set = await controlOf(server);
    t.strictSame([set.rate, set.pace, set.settings], [7, 30, { seconds: 90 }]);
    const { rate } = await enter(server).then(async (player) => {
      await player.leave();
      return player;
    });
    t.equal(rate, 7, 'a newcomer is told');

    await tell(server, { running: true });
    const runs = await controlOf(server);
    t.strictSame([runs.running, runs.page, runs.round], [true, 'play', began.round + 1]);
    const shown = await valueOf(server, ({ value }) => value?.page === 'play');
    t.strictSame(shown.value.settings, { seconds: 90 });
    await tell(server, { page: 'end' });
    await valueOf(server, ({ value }) => value?.page === 'end');
    await tell(server, { running: false, page: 'lobby' });
    t.equal((await valueOf(server, ({ value }) => value === null)).round, runs.round);
    const body = JSON.stringify({ rate: null, pace: null, settings: null });
    t.equal((await authorized(server, 'PUT', '/feed/arena/hall/control', { body })).status, 200);
    const back = await controlOf(server);
    t.strictSame([back.rate, back.pace, back.settings], [4, 60, { seconds: 60 }], 'by PUT, too');
    await tell(server, { game: null });
    t.equal((await controlOf(server)).game, null);
    await tell(server, { game: 'a-mirror' });
  });

  t.test('the panel: what it may not say changes nothing', async (t) => {
    const before = await controlOf(server);
    for (const bad of [
      ...['', '{', '[]', 'null', '1', '\xff', '{"rate":2,"rate":3}'],
      ...[{ rate: 0 }, { rate: 21 }, { rate: 1.5 }, { rate: '4' }, { pace: 0 }, { pace: 61 }],
      ...[{ game: 'nothing' }, { game: 1 }, { game: '__proto__' }, { game: null, running: true }],
      ...[{ page: 'nowhere' }, { page: 1 }, { running: 1 }, { running: null }],
      ...[{ settings: 1 }, { settings: [] }, { failed: null }, { round: 1 }, { rate: 5, what: 1 }],
      ...[{ other: 1 }, { seconds: 9 }, { seconds: 10.5 }, { constructor: 1 }].map((settings) => {
        return { settings };
      })
    ]) {
      const answer = await tell(server, bad);
      t.equal(problemOf(answer), 'bad-control', JSON.stringify(bad));
      t.ok(answer.body.detail.length > 10);
    }
    const large = await tell(server, ' '.repeat(5000));
    t.equal(problemOf(large), 'feed-too-large');
    t.strictSame(await controlOf(server), before);
  });

  t.test("the arena's feeds are its own", async (t) => {
    const feed = '/feed/arena/hall';
    const put = { body: '{}' };
    t.equal(problemOf(await server.ask('PUT', `${feed}/control`, put)), 'bad-token');
    t.equal(problemOf(await authorized(server, 'PUT', feed, put)), 'reserved-feed');
    t.equal(problemOf(await authorized(server, 'DELETE', feed)), 'reserved-feed');
    t.equal(problemOf(await authorized(server, 'DELETE', `${feed}/control`)), 'reserved-feed');
    const patch = { body: '[]', headers: { 'Content-Type': 'application/json-patch+json' } };
    const by = await authorized(server, 'PATCH', `${feed}/control`, patch);
    t.equal(problemOf(by), 'bad-media-type');
    t.equal(by.headers['accept-patch'], 'application/merge-patch+json');
    const other = await authorized(server, 'PUT', '/feed/arena/yard', put);
    t.equal(other.status, 201, 'a feed of another name is');
    await authorized(server, 'DELETE', '/feed/arena/yard');
  });

  t.test('what the panel plots needs the token', async (t) => {
    t.equal(problemOf(await server.ask('GET', '/arena/hall/status')), 'bad-token');
    const { status, body } = await authorized(server, 'GET', '/arena/hall/status');
    t.equal(status, 200);
    t.match(body, { cpuSeconds: Number, rss: Number, longestStallMs: Number, inputs: Number });
    const unknown = await authorized(server, 'GET', '/arena/yard/status');
    t.equal(problemOf(unknown), 'unknown-arena');
  });

  t.test('inputs are answered natively', async (t) => {
    const player = await enter(server);
    const { handled } = await server.status();
    for (let taps = 0; taps < 20; taps += 1) {
      t.equal((await player.send({ taps }, `?n=${taps}`)).status, 204);
    }
    // A worker's counts of the requests before arrive a little later.
    t.ok((await server.status()).handled < handled + 10);
    await player.leave();
  });
}

for (const workers of [0, 2]) contract(t, { options: { ...options, workers } }, plays);

const bounds = { 'address-joins': 1, 'address-clients': 2, 'arena-players': 2 };
contract(t, { options: { ...options, ...bounds } }, (t, server) => {
  const join = (address, target = '/arena/hall') => askFrom(server, { address }, 'POST', target);

  t.test('players count as clients of their address, and have so much room', async (t) => {
    const player = (await join('127.0.0.3')).body;
    const { id } = (await join('127.0.0.3', '/join')).body;
    for (const target of ['/arena/hall', '/join']) {
      t.equal(problemOf(await join('127.0.0.3', target)), 'too-many-clients', target);
    }
    t.equal((await join('127.0.0.4')).status, 201, 'another address is still welcome');
    t.equal(problemOf(await join('127.0.0.4')), 'arena-full');
    await server.ask('POST', `/arena/hall/${player.player}/leave`);
    t.equal((await join('127.0.0.3')).status, 201, 'a place that was given back');
    await server.leave(id);
  });

  t.test('joins from one source address', async (t) => {
    const refusals = [];
    // The limit is ten joins at once, and one more per second.
    while (refusals.at(-1) !== 'too-many-joins' && refusals.length < 40) {
      refusals.push(problemOf(await join('127.0.0.1')));
    }
    t.ok(refusals.length > 10, refusals.join());
    t.equal(problemOf(await join('127.0.0.2')), 'arena-full', 'another address is still heard');
  });
});
