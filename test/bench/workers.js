/**
 * What workers take off the main thread, and what they cost.
 *
 *     node test/bench/workers.js [--workers 1,2] [--rounds 5] [--seconds 4] [--clients 3000]
 *                                [--throwers 128] [--rate 8000] [--only full,rate,lone] [--json] [--strict]
 *
 * It measures without workers and with them, in turn and in several rounds; differences and
 * ratios are of neighbors in time. The load is bin/sprites-swarm on the main port, three times: at full
 * speed (`full`: --throwers closed loops that throw in the names of all --clients; where there are two
 * cores the main thread has one, and workers and load the other), with --rate sprites a second, and
 * with a lone sprite now and then (`lone`: 20 a second among 100 clients). CPU is the kernel's account, user and
 * system; late is how long a sprite was on its way from throw to arrival.
 *
 * Exit status: 0, or 1 where a sprite was missing or came twice or, with --strict, a figure is above what it is
 * held to; 2 on a wrong option.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { canPin, during, namesIn, startSprites } from './contenders.js';
import { inRounds, markdown, show, spreads } from './figures.js';
import { runSwarm } from './load.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { untilCounts } from '../support/until.js';
import { cpuOf, cpuSeconds, threadsOf } from './usage.js';

answerHelp(import.meta.url);

/** What workers are held to, in medians. */
const HELD = {
  /** The main thread's CPU a sprite with workers, as a multiple of that without. */
  main: 0.15,
  /** That of all threads together. */
  all: 1.15,
  /** By how many milliseconds a sprite may be later than without: 99 in 100 of --rate a second. */
  p99: 0.5,
  /** A lone one, at the median. */
  lone: 0.1
};

/** Milliseconds of load before the window opens: the rate has settled. */
const WARMUP = 1500;

/** A lone sprite: so many a second, among so many clients. */
const LONE = { rate: 20, clients: 100 };

/** Seconds the swarm may take for what is not throwing: opening, draining, leaving. */
const AROUND = 60;

/** The core of everything but the main thread, where that has its own. */
const REST = 1;

const usage = (message) => refuseUsage(import.meta.url, message);

function readOptions() {
  const { workers, only, ...options } = takeValues(import.meta.url, {
    ...{ rounds: [5, 1], seconds: [4, 1], clients: [3000, 1], throwers: [128, 1], rate: [8000, 1] },
    ...{ workers: '1,2', only: 'full,rate,lone', json: false, strict: false }
  });
  if (!/^[1-9](,[1-9])*$/.test(workers)) usage('--workers takes numbers from 1 to 9');
  const loads = loadsOf(options);
  const names = namesIn(only, loads, usage);
  return {
    ...options,
    workers: workers.split(','),
    loads: names.map((name) => [name, loads[name]])
  };
}

/** The loads, by name. */
const loadsOf = ({ clients, throwers, rate }) => ({
  full: { pinned: true, clients, throwers },
  rate: { pinned: false, clients, throwers, rate },
  lone: { pinned: false, ...LONE }
});

const pins = canPin();

/** Keeps the workers on the core of everything but the main thread. */
function pinWorkers(pid) {
  for (const thread of threadsOf(pid)) {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'utf8');
    if (!name.startsWith('worker')) continue;
    execFileSync('taskset', ['-p', '-c', String(REST), String(thread)]);
  }
}

/** Starts the swarm: with a `rate` by the clock; else so many throwers in closed loops, for all clients in turn. */
function startSwarm(port, { pinned, clients, throwers = 32, rate }, seconds) {
  const words = ['throw', clients, '--quiet', ...(rate ? [] : ['--every-client'])];
  const options = {
    throwers,
    time: seconds,
    host: '127.0.0.1',
    port,
    processes: 1,
    ...(rate && { rate })
  };
  const { child, result } = runSwarm(words, options, pinned ? REST : null);
  // A swarm that hangs must not hang the measurement.
  const patience = setTimeout(() => child.kill('SIGKILL'), (seconds + AROUND) * 1000);
  child.once('close', () => clearTimeout(patience));
  return result;
}

/**
 * @returns {Promise<{cpu: number, all: number, rate: number, p50: number, p99: number, faults: string[]}>}
 *     CPU in µs a sprite, of the main thread and of all; sprites a second; milliseconds on their way
 */
async function measure(workers, load, seconds) {
  const pin = load.pinned && pins;
  const options = { drain: 0, workers, 'log-level': 'warn', 'admin-port': 0 };
  return during(await startSprites(options, { pin, probed: false }), async (server) => {
    const [pid] = server.pids;
    if (pin) pinWorkers(pid);
    const result = startSwarm(server.port, load, seconds + Math.ceil(WARMUP / 1000) + 1);
    await untilCounts(server.status, ({ thrown }) => thrown > 0, AROUND);
    await pause(WARMUP);
    const look = async () => {
      const { thrown } = await server.status();
      return { thrown, main: cpuOf(pid), all: cpuSeconds([pid]), at: performance.now() };
    };
    const begin = await look();
    await pause(seconds * 1000);
    const end = await look();
    const { faults, latency } = await result;
    const thrown = end.thrown - begin.thrown;
    return {
      cpu: ((end.main - begin.main) * 1e6) / thrown,
      all: ((end.all - begin.all) * 1e6) / thrown,
      rate: (thrown / (end.at - begin.at)) * 1000,
      p50: latency.arrival.p50,
      p99: latency.arrival.p99,
      faults
    };
  });
}

/** What a load's rounds come to, for so many workers. */
const summarize = (load, workers, rounds, without) => ({
  ...{ load, workers },
  ...spreads(rounds, ['cpu', 'rate', 'p50', 'p99'], {
    main: (one, i) => one.cpu / without[i].cpu,
    all: (one, i) => one.all / without[i].all,
    later50: (one, i) => one.p50 - without[i].p50,
    later99: (one, i) => one.p99 - without[i].p99
  }),
  faults: rounds.flatMap(({ faults }) => faults)
});

/** The figures above their bounds, in words. A lone sprite's CPU is spent on waking up: it has no bound. */
function broken({ load, workers, main, all, later50, later99 }) {
  const bounds = {
    full: { main, all },
    rate: { main, all, p99: later99 },
    lone: { lone: later50 }
  };
  return Object.entries(workers > 0 ? bounds[load] : {})
    .filter(([name, { median }]) => median > HELD[name])
    .map(
      ([name, { median }]) =>
        `${load}, ${workers} workers: ${name} ${median.toFixed(2)}, held to at most ${HELD[name]}`
    );
}

async function main() {
  const options = readOptions();
  const kinds = ['0', ...options.workers];
  const summary = [];
  for (const [name, load] of options.loads) {
    const rounds = await inRounds(kinds, options.rounds, async (workers, i) => {
      const round = await measure(workers, load, options.seconds);
      const { cpu, all, rate, p50, p99, faults } = round;
      console.error(
        `${name}, round ${i + 1}, ${workers} workers: ${cpu.toFixed(2)} µs a sprite, ` +
          `${all.toFixed(2)} in all, ${rate.toFixed(0)} sprites/s, ` +
          `p50 ${p50} ms, p99 ${p99} ms${faults.map((fault) => `; ${fault}`).join('')}`
      );
      return round;
    });
    summary.push(...kinds.map((kind) => summarize(name, Number(kind), rounds[kind], rounds[0])));
  }
  if (options.json) {
    console.log(JSON.stringify({ held: HELD, pinned: pins, summary }));
  } else {
    const headings = [
      ...['load', 'workers', 'main thread, µs a sprite', 'of that without', 'all, of it'],
      ...['sprites/s', 'p50, ms', 'p99, ms', 'p50 later', 'p99 later']
    ];
    const rows = summary.map((one) => [
      ...[one.load, one.workers],
      ...[one.cpu, one.main, one.all].map((figure) => show(figure, 2)),
      show(one.rate, 0),
      ...[one.p50, one.p99, one.later50, one.later99].map((figure) => show(figure, 2))
    ]);
    console.log(markdown([headings, ...rows]));
  }
  const high = summary.flatMap(broken);
  for (const one of high) console.error(one);
  const faults = summary.flatMap((one) => one.faults);
  for (const fault of faults) console.error(`the swarm: ${fault}`);
  if (faults.length > 0 || (options.strict && high.length > 0)) process.exitCode = 1;
}

await main();
