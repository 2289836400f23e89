/**
 * The cost of an input of the arena: `npm run bench:arena -- [options]`.
 *
 * Starts bin/sprites on core 0 with a game that is reduced 20 times a second, has players join, and has wrk
 * (Debian's package) send their inputs over 64 connections from core 1. Prints inputs a second, the server's
 * CPU an input by the kernel's account, and the growth of the V8 heap; and checks ten times a second
 * whether inputs = reduced + superseded + waiting. The exit status is 1 if a bound does not hold: 30,000 inputs
 * a second, 12 µs each, a heap that does not grow with the inputs.
 *
 *   --players N    200
 *   --seconds S    8
 *   --rounds R     3
 *   --workers N    0       threads that hold the connections; the heap is of the main thread alone
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { answerHelp, takeValues } from '../support/documents.js';
import { atExit, temporary } from '../support/processes.js';
import { arenaOptions, publishSettings, joinArena, checkedStatus, wrk } from './arena-rig.js';
import { canPin, withStarted, startSprites } from './contenders.js';
import {
  knownVerdicts,
  report,
  spread,
  tableOf,
  tenth,
  describeMachine,
  whole
} from './figures.js';
import { askProbe, cpuSeconds } from './usage.js';

answerHelp(import.meta.url);

const values = takeValues(import.meta.url, {
  ...{ players: [200, 1], seconds: [8, 1], rounds: [3, 1], workers: [0, 0, 64] }
});
const { players: PLAYERS, seconds: SECONDS } = values;
const CONNECTIONS = 64;
const BOUNDS = { rate: 30000, micros: 12, heap: 500_000 };

/** A game that reduces the inputs to their mean, like pong. */
const GAME = {
  'inputs.json': JSON.stringify({ title: 'Mean', inputs: { y: { min: 0, max: 1, start: 0.5 } } }),
  'reduce.js':
    'export const reduce = ({ players, inputs: { y } }) => ({ y: y.reduce((a, b) => a + b, 0) / players });',
  'phone.js': '',
  'field.js': ''
};

/** Returns wrk's script, which sends an input of each player in turn. */
const script = (paths) => `
local paths = {${paths.map((path) => `"${path}"`).join(',')}}
local requests = {}
local at = 0
init = function()
  for i, path in ipairs(paths) do
    requests[i] = wrk.format("POST", path, {}, string.format('{"y":%.3f}', i / #paths))
  end
end
request = function()
  at = at % #requests + 1
  return requests[at]
end
`;

const folder = temporary(atExit);

async function startServer() {
  mkdirSync(join(folder, 'games/mean'), { recursive: true });
  for (const [name, text] of Object.entries(GAME)) {
    writeFileSync(join(folder, 'games/mean', name), text);
  }
  const options = arenaOptions(join(folder, 'games'), join(folder, 'tokens'));
  const { workers } = values;
  const server = await startSprites({ ...options, 'arena-rate': 1000, workers }, { pin: canPin() });
  return { ...server, url: `http://127.0.0.1:${server.port}` };
}

async function preparePlayers(url) {
  await publishSettings(url, { game: 'mean', running: true });
  const paths = [];
  for (let i = 0; i < PLAYERS; i += 1) paths.push(await joinArena(url));
  writeFileSync(join(folder, 'inputs.lua'), script(paths));
}

async function load(url, seconds) {
  const options = { connections: CONNECTIONS, seconds, script: join(folder, 'inputs.lua') };
  let isRunning = true;
  const finished = wrk(url, { ...options, core: 1 }).finally(() => {
    isRunning = false;
  });
  let checks = 0;
  for (; isRunning; checks += 1) {
    await checkedStatus(url);
    await pause(100);
  }
  return { looks: checks, ...(await finished) };
}

/** Measures a round: the figures are differences of the same samples before and after. */
async function measureRound(server) {
  const { pids, url } = server;
  const { heapUsed: heapBefore } = await askProbe(server, { collect: true });
  const before = await checkedStatus(url);
  const [cpuBefore, began] = [cpuSeconds(pids), performance.now()];
  const { looks, refused } = await load(url, SECONDS);
  const [cpu, seconds] = [cpuSeconds(pids) - cpuBefore, (performance.now() - began) / 1000];
  const after = await checkedStatus(url);
  const { heapUsed, longestStall } = await askProbe(server, { collect: true });
  const inputs = after.inputs - before.inputs;
  return {
    inputs,
    rate: inputs / SECONDS,
    micros: (cpu * 1e6) / inputs,
    heap: heapUsed - heapBefore,
    reductions: (after.reductions - before.reductions) / seconds,
    ...{ looks, refused, longestStall }
  };
}

const COLUMNS = {
  'inputs/s': ({ rate }) => whole.format(rate),
  'CPU an input': ({ micros }) => `${tenth.format(micros)} µs`,
  'V8 heap': ({ heap }) => `${heap >= 0 ? '+' : ''}${whole.format(heap / 1000)} kB`,
  'reductions/s': ({ reductions }) => tenth.format(reductions),
  'longest stall': ({ longestStall }) => `${tenth.format(longestStall)} ms`,
  refused: ({ refused }) => refused,
  'looks at the law': ({ looks }) => looks
};

async function main(server) {
  await preparePlayers(server.url);
  await load(server.url, 1);
  const rounds = [];
  for (let i = 0; i < values.rounds; i += 1) rounds.push(await measureRound(server));
  const medianOf = (name) => spread(rounds.map((one) => one[name])).median;
  const [rate, micros, heap] = ['rate', 'micros', 'heap'].map(medianOf);
  report(
    { strict: true },
    {
      table: tableOf(COLUMNS, rounds),
      about: describeMachine(canPin()),
      held: knownVerdicts([
        [`at least ${BOUNDS.rate} inputs/s`, rate, whole.format, rate >= BOUNDS.rate],
        [`at most ${BOUNDS.micros} µs each`, micros, tenth.format, micros <= BOUNDS.micros],
        [`heap grows by at most ${BOUNDS.heap}`, heap, whole.format, heap <= BOUNDS.heap]
      ])
    }
  );
}

await withStarted(await startServer(), main);
