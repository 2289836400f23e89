import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { contract } from '../support/server.js';

/** Games that do what none should, each with what is told of it. */
const reducing = (text) => ({ ...MIRROR, 'reduce.js': text });
const nesting = (depth) =>
  reducing(
    `export const reduce = () => { let a = 1; for (let i = 0; i < ${depth}; i += 1) a = [a]; return a; };`
  );
const WRONG = {
  throws: [
    reducing(`export const reduce = () => { throw new Error('no ball\\nhere'); };`),
    { why: 'threw', message: 'no ball' }
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
  unreadable: [reducing('export const reduce = ('), { why: 'not-loaded' }],
  empty: [reducing('export const other = 1;'), { why: 'not-loaded' }],
  // The reduced feed has a level of its own around the value.
  deep: [nesting(64), { why: 'bad-value', message: /at most 64 deep/ }],
  leaver: [reducing('export const reduce = () => process.exit(1);'), { why: 'threw' }]
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
  for (const [name, [, failed]] of Object.entries(WRONG)) {
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
