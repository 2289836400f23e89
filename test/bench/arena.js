/**
 * What an input of the arena costs: `npm run bench:arena -- [options]`.
 *
 * Starts bin/sprites on core 0 with a game that is reduced 20 times a second, has players join, and has wrk
 * (Debian's package) send their inputs over 64 connections from core 1. Prints inputs a second, the server's
 * CPU an input by the kernel's account, and the V8 heap before and after; and looks ten times a second
 * whether inputs = reduced + superseded + waiting. The exit status is 1 where what is promised does not hold:
 * 30,000 inputs a second, 12 µs each, a heap that does not move with them.
 *
 *   --players N    200
 *   --seconds S    8
 *   --rounds R     3
 *   --workers N    0: they hold the connections; CPU and heap are the main process's alone
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { launch, SPRITES } from '../support/launch.js';
import { answerHelp, takeOptions } from '../support/documents.js';
import { ask } from './server-memory.js';

answerHelp(import.meta.url);

const values = takeOptions(import.meta.url, {
  players: { type: 'string', default: '200' },
  seconds: { type: 'string', default: '8' },
  rounds: { type: 'string', default: '3' },
  workers: { type: 'string', default: '0' }
});
const PLAYERS = Number(values.players);
const SECONDS = Number(values.seconds);
const CONNECTIONS = 64;
const TOKEN = 'bench';
const PROMISED = { rate: 30000, micros: 12, heap: 500_000 };
const TICKS = 100;
const PROBE = new URL('probe.js', import.meta.url).href;

/** The mean of all, as pong has it. */
const GAME = {
  'inputs.json': JSON.stringify({ title: 'Mean', inputs: { y: { min: 0, max: 1, start: 0.5 } } }),
  'reduce.js':
    'export const reduce = ({ players, inputs: { y } }) => ({ y: y.reduce((a, b) => a + b, 0) / players });',
  'phone.js': '',
  'field.js': ''
};

/** What wrk asks, in turn: an input of each player. */
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

const cpuTicks = (pid) => {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ').pop().split(' ');
  return Number(fields[11]) + Number(fields[12]);
};

const pinned = cpus().length > 1;
const onCore = (core, command) => (pinned ? ['taskset', '-c', String(core), ...command] : command);

const folder = mkdtempSync(join(tmpdir(), 'sprites-arena-'));

async function open() {
  mkdirSync(join(folder, 'games/mean'), { recursive: true });
  for (const [name, text] of Object.entries(GAME)) {
    writeFileSync(join(folder, 'games/mean', name), text);
  }
  writeFileSync(join(folder, 'tokens'), `${TOKEN}\n`);
  const [node, ...program] = SPRITES;
  const { child, listening } = launch(
    {
      arena: 'hall',
      games: join(folder, 'games'),
      'arena-rate': 1000,
      'publish-token-file': join(folder, 'tokens'),
      'address-joins': 0,
      workers: values.workers,
      'log-level': 'warn'
    },
    { command: onCore(0, [node, '--expose-gc', '--import', PROBE, ...program]), ipc: true }
  );
  const { port } = await listening;
  return { child, url: `http://127.0.0.1:${port}` };
}

async function play(url) {
  const answer = await fetch(`${url}/feed/arena/hall/control`, {
    method: 'PUT',
    headers: { Authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ game: 'mean', running: true })
  });
  if (answer.status !== 200) throw new Error(await answer.text());
  const paths = [];
  for (let i = 0; i < PLAYERS; i += 1) {
    const { player } = await (await fetch(`${url}/arena/hall`, { method: 'POST' })).json();
    paths.push(`/arena/hall/${player}`);
  }
  writeFileSync(join(folder, 'inputs.lua'), script(paths));
}

async function statusOf(url) {
  const status = await (await fetch(`${url}/status`)).json();
  const { inputs, inputsReduced, inputsSuperseded, inputsWaiting } = status;
  if (inputs !== inputsReduced + inputsSuperseded + inputsWaiting) {
    throw new Error(`the law of inputs does not hold: ${JSON.stringify(status)}`);
  }
  return status;
}

async function load(url, seconds) {
  const args = [
    '-t',
    '1',
    '-c',
    CONNECTIONS,
    '-d',
    `${seconds}s`,
    '-s',
    join(folder, 'inputs.lua'),
    url
  ];
  const [command, ...rest] = onCore(1, ['wrk', ...args.map(String)]);
  const wrk = spawn(command, rest, { stdio: ['ignore', 'pipe', 'inherit'] });
  const text = wrk.stdout.toArray();
  const end = once(wrk, 'exit');
  let running = true;
  end.then(() => {
    running = false;
  });
  let looks = 0;
  while (running) {
    await statusOf(url);
    looks += 1;
    await pause(100);
  }
  const words = Buffer.concat(await text).toString();
  const [, refused = '0'] = /Non-2xx or 3xx responses: (\d+)/.exec(words) ?? [];
  return { looks, refused: Number(refused) };
}

/** A round: what is measured lies between two looks of the same kind. */
async function round({ child, url }) {
  const pid = child.pid;
  const { heapUsed: heapBefore } = await ask({ probe: child }, { collect: true });
  const before = await statusOf(url);
  const [cpuBefore, began] = [cpuTicks(pid), performance.now()];
  const { looks, refused } = await load(url, SECONDS);
  const [cpu, seconds] = [cpuTicks(pid) - cpuBefore, (performance.now() - began) / 1000];
  const after = await statusOf(url);
  const { heapUsed, longestStall } = await ask({ probe: child }, { collect: true });
  const inputs = after.inputs - before.inputs;
  return {
    inputs,
    rate: inputs / SECONDS,
    micros: ((cpu / TICKS) * 1e6) / inputs,
    heap: heapUsed - heapBefore,
    reductions: (after.reductions - before.reductions) / seconds,
    ...{ looks, refused, longestStall }
  };
}

const server = await open();
try {
  await play(server.url);
  await load(server.url, 1);
  const rounds = [];
  for (let i = 0; i < Number(values.rounds); i += 1) rounds.push(await round(server));
  console.log(
    '| inputs/s | CPU an input | V8 heap | reductions/s | longest stall | refused | looks at the law |'
  );
  console.log('| --- | --- | --- | --- | --- | --- | --- |');
  for (const one of rounds) {
    const cells = [
      Math.round(one.rate).toLocaleString('en'),
      `${one.micros.toFixed(1)} µs`,
      `${one.heap >= 0 ? '+' : ''}${(one.heap / 1000).toFixed(0)} kB`,
      one.reductions.toFixed(1),
      `${one.longestStall.toFixed(1)} ms`,
      ...[one.refused, one.looks]
    ];
    console.log(`| ${cells.join(' | ')} |`);
  }
  const middle = (name) =>
    rounds.map((one) => one[name]).toSorted((a, b) => a - b)[rounds.length >> 1];
  const holds =
    middle('rate') >= PROMISED.rate &&
    middle('micros') <= PROMISED.micros &&
    middle('heap') <= PROMISED.heap;
  console.log(`${holds ? 'holds' : 'does not hold'}: ${JSON.stringify(PROMISED)} at the median`);
  process.exitCode = holds ? 0 : 1;
} finally {
  server.child.kill('SIGTERM');
  await once(server.child, 'exit');
  rmSync(folder, { recursive: true });
}
