import { join } from 'node:path';

import { TOKEN } from './feeds.js';

/**
 * What the tests of the arena share: games of their own, players and a panel.
 */

/** A game that gives back what it has been given. */
export const MIRROR = {
  'inputs.json': JSON.stringify({
    title: 'Mirror',
    pace: 60,
    pages: ['play', 'end'],
    inputs: { y: { min: 0, max: 1, start: 0.5 }, taps: { min: 0, max: 1000, integer: true } },
    settings: { seconds: { min: 10, max: 600, start: 60, integer: true } }
  }),
  'reduce.js': `export function reduce({ players, numbers, fresh, inputs, page, round, settings }, memory) {
    memory.times = (memory.times ?? 0) + 1;
    memory.came = (memory.came ?? 0) + fresh.reduce((sum, one) => sum + one, 0);
    const list = (column) => [...column];
    return { players, numbers: list(numbers), y: list(inputs.y), taps: list(inputs.taps), came: memory.came, page, round, settings };
  }`,
  'phone.js': 'export const start = () => ({ stop() {} });',
  'field.js': 'export const start = () => ({ stop() {} });'
};

/** Options of a server with the arena "hall" and games of the test's own, by name. */
export function arenaOptions(t, games = { mirror: MIRROR }) {
  const folder = t.testdir({ games, tokens: `${TOKEN}\n` });
  return {
    arena: 'hall',
    games: join(folder, 'games'),
    'publish-token-file': join(folder, 'tokens')
  };
}

export const BEARER = { Authorization: `Bearer ${TOKEN}` };
