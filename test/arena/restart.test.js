import { join } from 'node:path';

import t from 'tap';

import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { problemOf } from '../support/contract.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';

/** A game that counts its reductions. */
const COUNTER = {
  ...MIRROR,
  'reduce.js': `export function reduce({ numbers, inputs, round }, memory) {
    memory.times = (memory.times ?? 0) + 1;
    return { times: memory.times, round, numbers: [...numbers], taps: [...inputs.taps] };
  }`
};

/** What a player does with another server than the one it has joined. */
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
    const players = [await enter(first), await enter(first)];
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
    const [one] = players.map((player) => resume(player, second));
    t.equal((await one.send({ taps: 1 }, '?n=3')).status, 204);
    t.equal((await second.status()).inputsRepeated, 1, 'and what came twice is known');
    t.equal((await one.send({ taps: 8 }, '?n=4')).status, 204);
    await valueOf(second, ({ value }) => value.taps[0] === 8);
    const { number } = await enter(second);
    t.equal(number, 3, 'a newcomer has a new number');
    await second.stop();
  });
}

t.test('in a run without arenas all players leave', async (t) => {
  const { arena, ...rest } = { ...arenaOptions(t), state: join(temporary(t), 'state'), drain: 0 };
  const first = await startServer(t, { options: { ...rest, arena } });
  const player = await enter(first);
  await first.stop();
  const second = await startServer(t, { options: rest });
  await second.stop();
  const third = await startServer(t, { options: { ...rest, arena } });
  t.equal(problemOf(await resume(player, third).send({})), 'unknown-player');
  await third.stop();
});

t.test('without a state nobody is known any more', async (t) => {
  const options = { ...arenaOptions(t), drain: 0 };
  const first = await startServer(t, { options });
  const player = await enter(first);
  await first.stop();
  const second = await startServer(t, { options });
  t.equal(problemOf(await resume(player, second).send({})), 'unknown-player');
  await second.stop();
});
