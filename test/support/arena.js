import assert from 'node:assert/strict';
import { renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { TOKEN } from './feeds.js';
import { until } from './until.js';

/**
 * Helpers of the arena's tests: games, players and a panel.
 */

/** A game whose reducer returns its own arguments. */
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

/** Writes a game's file atomically: the server never reads half a file. */
export function writeAtomically(path, text) {
  writeFileSync(`${path}.part`, text);
  renameSync(`${path}.part`, path);
}

/** Returns the options of a server with the arena "hall"; `games`: the test's games, by name. */
export function arenaOptions(t, games = { 'a-mirror': MIRROR }) {
  const folder = t.testdir({ games, tokens: `${TOKEN}\n` });
  return {
    arena: 'hall',
    games: join(folder, 'games'),
    'publish-token-file': join(folder, 'tokens')
  };
}

const BEARER = { Authorization: `Bearer ${TOKEN}` };

/** Sends a request with the publisher's token. */
export const authorized = (server, method, target, { headers, ...more } = {}) =>
  server.ask(method, target, { ...more, headers: { ...BEARER, ...headers } });

/** Sends a command to an arena, as the panel does. */
export const tell = (server, command) =>
  authorized(server, 'PATCH', '/feed/arena/hall/control', {
    body: typeof command === 'string' ? command : JSON.stringify(command),
    headers: { 'Content-Type': 'application/merge-patch+json' }
  });

/** Enters an arena. Returns the player and its actions. */
export async function enter(server) {
  const { status, body } = await server.ask('POST', '/arena/hall');
  assert.equal(status, 201);
  const path = `/arena/hall/${body.player}`;
  return {
    ...body,
    path,
    send: (input, query = '') =>
      server.ask('POST', `${path}${query}`, {
        body: typeof input === 'string' ? input : JSON.stringify(input)
      }),
    leave: () => server.ask('POST', `${path}/leave`)
  };
}

/** Polls one of an arena's feeds until `holds` accepts its value, and returns the value. */
export async function valueOf(server, holds, feed = 'arena/hall') {
  let value;
  await until(
    async () => {
      const { body } = await server.ask('GET', `/feed/${feed}`);
      ({ value } = body);
      return value !== undefined && holds(value);
    },
    () => `${holds} in ${JSON.stringify(value)}`
  );
  return value;
}

export const controlOf = (server, holds = () => true) =>
  valueOf(server, holds, 'arena/hall/control');

/** Hand-made arguments of an arena's reducer. lib/arena/README.md describes their members. */

/**
 * @param {object} how
 * @param {Record<number, Record<string, number>>} how.players the players' inputs, by the players' numbers
 * @param {string[]} how.columns the inputs' names
 * @returns {object} the first argument of `reduce`
 */
export function reducerArguments({ players, columns, ...more }) {
  const entries = Object.entries(players);
  return {
    players: entries.length,
    numbers: Uint32Array.from(entries, ([number]) => Number(number)),
    fresh: new Uint8Array(entries.length).fill(1),
    inputs: Object.fromEntries(
      columns.map((name) => [name, Float64Array.from(entries, ([, input]) => input[name])])
    ),
    time: 0,
    step: 50,
    page: 'play',
    round: 1,
    settings: {},
    ...more
  };
}

/**
 * Calls a reducer every 50 ms of simulated time.
 *
 * @param {object} memory the game's memory. After each call it goes through JSON and back
 * @param {number} ms
 * @param {(time: number, last: object|undefined) => object|undefined} reduceAt ends the loop when it returns undefined
 */
export function runReducer(memory, ms, reduceAt) {
  let last;
  for (let time = 0; time <= ms; time += 50) {
    last = reduceAt(time, last);
    const memoryCopy = JSON.parse(JSON.stringify(memory));
    for (const name of Object.keys(memory)) delete memory[name];
    Object.assign(memory, memoryCopy);
    if (last === undefined) return;
  }
}
