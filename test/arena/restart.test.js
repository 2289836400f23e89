import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

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
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';

/** A game that counts its reductions, and names all players. */
const COUNTER = {
  ...MIRROR,
  'reduce.js': `export function reduce({ numbers, inputs, round, content }, memory) {
    memory.times = (memory.times ?? 0) + 1;
    const [named, taps] = [[...numbers], [...inputs.taps]];
    return { times: memory.times, round, named, numbers: named, taps, content };
  }`
};

/** Returns a player's functions at another run of the server than the one it has joined. */
const resume = (player, server) => ({
  send: (input, query = '') =>
    server.ask('POST', `${player.path}${query}`, { body: JSON.stringify(input) })
});

for (const [how, end] of [
  ['an end in order', (server) => server.stop()],
  [
    'a crash',
    async (server) => {
      server.child.kill('SIGKILL');
      await server.ended();
    }
  ]
]) {
  t.test(`after ${how} the game goes on`, async (t) => {
    const options = {
      ...arenaOptions(t, { counter: COUNTER }),
      state: join(temporary(t), 'state'),
      drain: 0
    };
    const first = await startServer(t, { options });
    const players = [];
    for (const name of ['Ada', 'Bob', 'Eve']) {
      players.push(await enter(first));
      await first.ask('POST', `${players.at(-1).path}/name`, { body: JSON.stringify({ name }) });
    }
    await players.pop().leave();
    await authorized(first, 'PUT', '/arena/hall/names/2', { body: '{"away":true}' });
    await authorized(first, 'PUT', '/arena/hall/content/counter', { body: '["kept"]' });
    await tell(first, { running: true, rate: 9 });
    await players[0].send({ taps: 7 }, '?n=3');
    const before = await valueOf(first, ({ value }) => value?.taps[0] === 7 && value.times > 150);
    const control = await controlOf(first);
    await end(first);

    const second = await startServer(t, { options });
    t.strictSame(await controlOf(second), control);
    const after = await valueOf(second, ({ value }) => value?.numbers.length === 2);
    t.strictSame(after.value.numbers, before.value.numbers, 'the players are there');
    t.equal(after.value.taps[0], 7, 'with what they have sent');
    t.ok(
      after.value.times > 30,
      `its memory is there: ${after.value.times}, it was ${before.value.times}`
    );
    t.equal(after.round, before.round);
    t.ok(after.time > before.time / 2, 'its clock goes on');
    t.strictSame([after.value.content, after.names], [['kept'], { 1: 'Ada' }]);
    const { names } = (await authorized(second, 'GET', '/arena/hall/names')).body;
    t.strictSame(
      names.map(({ name, away }) => [name, away]),
      [
        ['Ada', false],
        ['Bob', true]
      ]
    );
    const { body } = await authorized(second, 'GET', '/arena/hall/content/counter');
    t.strictSame(body, { content: ['kept'] });
    const [one] = players.map((player) => resume(player, second));
    t.equal((await one.send({ taps: 1 }, '?n=3')).status, 204);
    t.equal((await second.status()).inputsRepeated, 1, 'and what came twice is known');
    t.equal((await one.send({ taps: 8 }, '?n=4')).status, 204);
    await valueOf(second, ({ value }) => value.taps[0] === 8);
    const { number } = await enter(second);
    t.equal(number, 4, 'a newcomer has a new number');
    await second.stop();
  });
}

t.test('a game that has other settings and pages in the next run has those', async (t) => {
  const options = { ...arenaOptions(t), state: join(temporary(t), 'state'), drain: 0 };
  const first = await startServer(t, { options });
  await tell(first, { running: true, page: 'end', settings: { seconds: 600 } });
  await first.stop();
  const format = JSON.parse(MIRROR['inputs.json']);
  format.settings.seconds.max = 300;
  format.settings.points = { min: 1, max: 9, start: 5 };
  format.pages = ['play'];
  writeFileSync(join(options.games, 'a-mirror', 'inputs.json'), JSON.stringify(format));
  const second = await startServer(t, { options });
  const { settings, running, page } = await controlOf(second);
  t.strictSame([settings, running, page], [{ seconds: 60, points: 5 }, true, 'lobby']);
  await second.stop();
});

t.test('in a run without arenas all players leave, and its logs go with it', async (t) => {
  const { arena, games, ...publishing } = arenaOptions(t);
  const playing = { arena, games };
  const rest = { ...publishing, state: join(temporary(t), 'state'), drain: 0 };
  const first = await startServer(t, { options: { ...rest, ...playing } });
  const player = await enter(first);
  await first.stop();
  const second = await startServer(t, { options: rest });
  for (const feed of ['/feed/arena/hall', '/feed/arena/hall/control']) {
    await authorized(second, 'DELETE', feed);
    t.equal((await authorized(second, 'POST', feed, { body: '1' })).status, 201);
  }
  await second.stop();
  const third = await startServer(t, { options: { ...rest, ...playing } });
  t.equal(problemOf(await resume(player, third).send({})), 'unknown-player');
  await controlOf(third);
  await valueOf(third, ({ players }) => players === 0);
  await third.stop();
});

t.test('without a state no player is known any more', async (t) => {
  const options = { ...arenaOptions(t), drain: 0 };
  const first = await startServer(t, { options });
  const player = await enter(first);
  await first.stop();
  const second = await startServer(t, { options });
  t.equal(problemOf(await resume(player, second).send({})), 'unknown-player');
  await second.stop();
});
