/**
 * What workers take off the main process, and that they may die.
 *
 *     node test/bench/workers.js [--workers 1,2] [--rounds 5] [--seconds 4] [--clients 5000]
 *                                [--throwers 128] [--json] [--strict]
 *     node test/bench/workers.js --kill [--workers 2] [--seconds 20] [--clients 1000]
 *
 * The first measures the main process's CPU (user and system, from the kernel) per sprite, without
 * workers and with them, in turn and in several rounds: the ratio is of neighbors in time. The load
 * is bin/sprites-swarm: --clients parked, --throwers closed loops that throw in the names of all
 * of them. Where there are two cores the main process has one, and workers and load the other.
 *
 * The second kills a worker every second under load, and prints the swarm's account of the sprites.
 *
 * Exit status: 0, or 1 where a sprite was missing or came twice, a worker was not started again or,
 * with --strict, the ratio is above what it is held to; 2 on a wrong option.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

import { canPin } from './contenders.js';
import { spread } from './figures.js';
import { spritesArgs } from './sprites.js';
import { childrenOf } from '../support/processes.js';
import { answerHelp, refuseUsage } from '../support/opening-comment.js';

answerHelp(import.meta.url);

const SWARM = fileURLToPath(new URL('../../bin/sprites-swarm', import.meta.url));

/** The main process's CPU per sprite with workers, as a multiple of that without, at most. */
const HELD = 0.2;

/** That of the main process and all workers together. */
const HELD_ALL = 1.3;

/** Milliseconds of load before the window opens: the rate has settled. */
const WARMUP = 1500;

/** The core of the main process, and that of everything else. */
const CORES = { main: 0, rest: 1 };

/** Seconds the swarm may take for what is not throwing: opening, draining, leaving. */
const AROUND = 60;

const tick = 1 / Number(execFileSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }));
const pins = canPin();

const usage = (message) => refuseUsage(import.meta.url, message);

function readOptions() {
  const text = { type: 'string' };
  let values;
  try {
    ({ values } = parseArgs({
      options: {
        workers: text,
        rounds: text,
        seconds: text,
        clients: text,
        throwers: text,
        kill: { type: 'boolean' },
        json: { type: 'boolean' },
        strict: { type: 'boolean' }
      }
    }));
  } catch (error) {
    usage(error.message);
  }
  const usual = values.kill
    ? { workers: '2', rounds: '1', seconds: '20', clients: '1000', throwers: '128' }
    : { workers: '1,2', rounds: '5', seconds: '4', clients: '5000', throwers: '128' };
  const all = { ...usual, ...values };
  const whole = (name) =>
    /^[1-9]\d{0,5}$/.test(all[name]) ? Number(all[name]) : usage(`--${name} takes a number`);
  if (!/^[1-9](,[1-9])*$/.test(all.workers)) usage('--workers takes numbers from 1 to 9');
  const [rounds, seconds, clients, throwers] = ['rounds', 'seconds', 'clients', 'throwers'].map(
    whole
  );
  return {
    workers: all.workers.split(',').map(Number),
    rounds,
    seconds,
    clients,
    throwers,
    kill: all.kill,
    json: all.json,
    strict: all.strict
  };
}

/** What a program prints, line by line, and its end. */
function run(core, args) {
  const command = [process.execPath, ...args];
  if (pins && core !== undefined) command.unshift('taskset', '-c', String(core));
  const child = spawn(command[0], command.slice(1), {
    stdio: ['ignore', 'pipe', 'inherit', 'ipc']
  });
  const lines = [];
  let woken = () => {};
  createInterface({ input: child.stdout }).on('line', (line) => {
    lines.push(line);
    woken();
  });
  const ended = once(child, 'close').then(([code]) => {
    woken();
    return code;
  });
  return {
    child,
    lines,
    ended,
    /** @returns {Promise<string>} the first line that matches */
    async line(pattern) {
      for (;;) {
        const found = lines.find((line) => pattern.test(line));
        if (found !== undefined) return found;
        if (child.exitCode !== null) throw new Error('it has ended');
        await new Promise((resolve) => {
          woken = resolve;
        });
      }
    }
  };
}

/** Keeps a process, all threads of it, on the core of everything but the main process. */
function pin(pid) {
  if (pins) execFileSync('taskset', ['-ap', '-c', String(CORES.rest), String(pid)]);
}

async function startServer(workers) {
  const server = run(CORES.main, spritesArgs({ drain: 0, workers, 'admin-port': 0 }));
  await server.line(/room for/);
  const [port, adminPort] = ['Sprites ', 'Metrics '].map((begin) =>
    Number(/:(\d+)\//.exec(server.lines.find((line) => line.startsWith(begin)) ?? '')?.[1])
  );
  const { pid } = server.child;
  for (const worker of childrenOf(pid)) pin(worker);
  return {
    pid,
    port,
    async status() {
      return (await fetch(`http://127.0.0.1:${adminPort}/status`)).json();
    },
    /** Seconds of a processor: the main process's, and those of all of them together. */
    cpu() {
      const of = (one) => {
        const fields = readFileSync(`/proc/${one}/stat`, 'latin1').split(') ')[1].split(' ');
        return (Number(fields[11]) + Number(fields[12])) * tick;
      };
      const main = of(pid);
      return { main, all: childrenOf(pid).reduce((sum, worker) => sum + of(worker), main) };
    },
    async stop() {
      server.child.kill('SIGTERM');
      const code = await server.ended;
      if (code !== 0) throw new Error(`the server ended with ${code}`);
    }
  };
}

/** The swarm against a server; `result` is its account. */
function startSwarm(server, { clients, throwers, seconds }) {
  const swarm = run(
    CORES.rest,
    [
      SWARM,
      'throw',
      clients,
      '--throwers',
      throwers,
      '--every-client',
      '--time',
      seconds,
      '--host',
      '127.0.0.1',
      '--port',
      server.port,
      '--processes',
      1,
      '--json',
      '--quiet'
    ].map(String)
  );
  // A swarm that hangs must not hang the measurement.
  const patience = setTimeout(() => swarm.child.kill('SIGKILL'), (seconds + AROUND) * 1000);
  const result = swarm.ended.then((code) => {
    clearTimeout(patience);
    if (swarm.lines.length === 0) throw new Error(`the swarm ended with ${code} and no result`);
    return JSON.parse(swarm.lines.join('\n'));
  });
  result.catch(() => {});
  return { result };
}

/** Waits until the load is there. */
async function untilThrown(server) {
  for (let looks = 0; looks < AROUND * 10; looks += 1) {
    if ((await server.status()).thrown > 0) return;
    await pause(100);
  }
  throw new Error('nothing is thrown');
}

/** @returns {Promise<{cpu: number, rate: number, faults: string[]}>} cpu in µs per sprite */
async function measure(workers, options) {
  const server = await startServer(workers);
  try {
    const { seconds } = options;
    const swarm = startSwarm(server, {
      ...options,
      seconds: seconds + Math.ceil(WARMUP / 1000) + 1
    });
    await untilThrown(server);
    await pause(WARMUP);
    const look = async () => {
      const { thrown } = await server.status();
      return { thrown, cpu: server.cpu(), at: performance.now() };
    };
    const begin = await look();
    await pause(seconds * 1000);
    const end = await look();
    const { faults } = await swarm.result;
    const thrown = end.thrown - begin.thrown;
    return {
      cpu: ((end.cpu.main - begin.cpu.main) * 1e6) / thrown,
      all: ((end.cpu.all - begin.cpu.all) * 1e6) / thrown,
      rate: (thrown / (end.at - begin.at)) * 1000,
      faults
    };
  } finally {
    await server.stop();
  }
}

const show = ({ median, min, max }, digits) =>
  `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;

async function compare(options) {
  const kinds = [0, ...options.workers];
  const rounds = [];
  for (let i = 0; i < options.rounds; i += 1) {
    const round = {};
    // The other way round every second time: what comes first meets another machine.
    for (const workers of i % 2 ? kinds.toReversed() : kinds) {
      round[workers] = await measure(workers, options);
      const { cpu, all, rate, faults } = round[workers];
      console.error(
        `round ${i + 1}, ${workers} workers: ${cpu.toFixed(2)} µs a sprite, ` +
          `${all.toFixed(2)} in all, ` +
          `${rate.toFixed(0)} sprites/s${faults.map((fault) => `; ${fault}`).join('')}`
      );
    }
    rounds.push(round);
  }
  const summary = kinds.map((workers) => ({
    workers,
    cpu: spread(rounds.map((round) => round[workers].cpu)),
    rate: spread(rounds.map((round) => round[workers].rate)),
    ratio: spread(rounds.map((round) => round[workers].cpu / round[0].cpu)),
    whole: spread(rounds.map((round) => round[workers].all / round[0].all)),
    faults: rounds.flatMap((round) => round[workers].faults)
  }));
  if (options.json) {
    console.log(JSON.stringify({ held: HELD, pinned: pins, summary }));
  } else {
    console.log(
      '| workers | main process, µs a sprite | of that without | all, of it | sprites/s |'
    );
    console.log(
      '|--------:|--------------------------:|----------------:|-----------:|----------:|'
    );
    for (const { workers, cpu, ratio, whole, rate } of summary) {
      const cells = [show(cpu, 2), show(ratio, 2), show(whole, 2), show(rate, 0)];
      console.log(`| ${workers} | ${cells.join(' | ')} |`);
    }
  }
  const high = summary.filter(
    ({ workers, ratio, whole }) => workers > 0 && (ratio.median > HELD || whole.median > HELD_ALL)
  );
  for (const { workers, ratio, whole } of high) {
    console.error(
      `with ${workers} workers ${ratio.median.toFixed(2)} and ${whole.median.toFixed(2)} in all,` +
        ` held to at most ${HELD} and ${HELD_ALL}`
    );
  }
  const faults = summary.flatMap((one) => one.faults);
  for (const fault of faults) console.error(`the swarm: ${fault}`);
  if (faults.length > 0 || (options.strict && high.length > 0)) process.exitCode = 1;
}

async function killing(options) {
  const [workers] = options.workers;
  const server = await startServer(workers);
  try {
    const swarm = startSwarm(server, options);
    await untilThrown(server);
    let over = false;
    const result = swarm.result.finally(() => {
      over = true;
    });
    result.catch(() => {});
    const killed = new Set();
    const end = performance.now() + (options.seconds - 1) * 1000;
    while (!over && performance.now() < end) {
      await pause(1000);
      // The one that has lived longest; the others serve meanwhile.
      const [oldest] = childrenOf(server.pid).filter((pid) => !killed.has(pid));
      if (oldest === undefined) continue;
      process.kill(oldest, 'SIGKILL');
      killed.add(oldest);
    }
    const { account, connections, faults } = await result;
    const seen = await server.status();
    console.log(
      JSON.stringify(
        {
          workers,
          killed: killed.size,
          workerDeaths: seen.workerDeaths,
          startedAgain: seen.workers,
          account,
          resends: connections.resends,
          faults
        },
        null,
        options.json ? 0 : 2
      )
    );
    if (
      faults.length > 0 ||
      account.missing !== 0 ||
      account.repeated !== account.excusedRepeats ||
      !account.complete ||
      seen.workerDeaths !== killed.size
    )
      process.exitCode = 1;
  } finally {
    await server.stop();
  }
}

const options = readOptions();
await (options.kill ? killing : compare)(options);
