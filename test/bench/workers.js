/**
 * What workers take off the main thread, and what they cost.
 *
 *     node test/bench/workers.js [--workers 1,2] [--rounds 5] [--seconds 4] [--clients 3000]
 *                                [--throwers 128] [--rate 8000] [--only full,rate,lone] [--json] [--strict]
 *     node test/bench/workers.js --parked [--workers 2] [--clients 15000] [--rate 500] [--seconds 40]
 *
 * The first measures without workers and with them, in turn and in several rounds; differences and
 * ratios are of neighbors in time. The load is bin/sprites-swarm on the main port, three times: at full
 * speed (`full`: --throwers closed loops that throw in the names of all --clients; where there are two
 * cores the main thread has one, and workers and load the other), with --rate sprites a second, and
 * with a lone sprite now and then (`lone`: 20 a second among 100 clients). CPU is the kernel's account, user and
 * system; late is how long a sprite was on its way from throw to arrival.
 *
 * The second parks --clients and throws among them, without workers and with them. It prints what a parked client
 * takes in user space: by how much the resident size has grown, each time after a collection of garbage.
 *
 * Exit status: 0, or 1 where a sprite was missing or came twice or, with --strict, a figure is above what it is
 * held to; 2 on a wrong option.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { fileLimit } from '../../lib/base/file-limit.js';
import { namesIn } from './contenders.js';
import { markdown, show, spread } from './figures.js';
import { answerHelp, refuseUsage, takeNumbers } from '../support/documents.js';
import { residentBytes } from './usage.js';
import { pins, startServer, startSwarm, untilThrown } from './workers-rig.js';

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

/** Lets a signal collect all garbage: what is resident then is what is really held. */
const COLLECTS = 'data:text/javascript,process.on("SIGPWR",()=>globalThis.gc())';

/** Clients that come and go before memory counts: all code has run once. */
const BEFORE = 200;

/** So many collections, a second each, without less resident by so many bytes: it stays so. */
const SETTLED = 5;
const NEW_LOW = 64 * 1024;

const usage = (message) => refuseUsage(import.meta.url, message);

function readOptions() {
  const flag = { type: 'boolean', default: false };
  const usual = process.argv.includes('--parked')
    ? { workers: '2', rounds: 1, seconds: 40, clients: 15000, rate: 500 }
    : { workers: '1,2', rounds: 5, seconds: 4, clients: 3000, rate: 8000 };
  const { workers, only, ...options } = takeNumbers(
    import.meta.url,
    {
      ...{ rounds: [usual.rounds, 1], seconds: [usual.seconds, 1], clients: [usual.clients, 1] },
      ...{ throwers: [128, 1], rate: [usual.rate, 1] }
    },
    {
      workers: { type: 'string', default: usual.workers },
      only: { type: 'string', default: 'full,rate,lone' },
      ...{ parked: flag, json: flag, strict: flag }
    }
  );
  if (!/^[1-9](,[1-9])*$/.test(workers)) usage('--workers takes numbers from 1 to 9');
  const loads = loadsOf(options);
  const names = namesIn(only, loads, usage);
  return {
    ...options,
    workers: workers.split(',').map(Number),
    loads: names.map((name) => [name, loads[name]])
  };
}

/** The loads, by name. */
const loadsOf = ({ clients, throwers, rate }) => ({
  full: { pinned: true, clients, throwers },
  rate: { pinned: false, clients, throwers, rate },
  lone: { pinned: false, ...LONE }
});

/**
 * @returns {Promise<{cpu: number, all: number, rate: number, p50: number, p99: number, faults: string[]}>}
 *     CPU in µs a sprite, of the main thread and of all; sprites a second; milliseconds on their way
 */
async function measure(workers, { pinned, ...load }, seconds) {
  const server = await startServer(workers, { pinned });
  try {
    const swarm = startSwarm(server, { ...load, seconds: seconds + Math.ceil(WARMUP / 1000) + 1 });
    await untilThrown(server);
    await pause(WARMUP);
    const look = async () => {
      const { thrown } = await server.status();
      return { thrown, cpu: server.cpu(), at: performance.now() };
    };
    const begin = await look();
    await pause(seconds * 1000);
    const end = await look();
    const { faults, latency } = await swarm.result;
    const thrown = end.thrown - begin.thrown;
    return {
      cpu: ((end.cpu.main - begin.cpu.main) * 1e6) / thrown,
      all: ((end.cpu.all - begin.cpu.all) * 1e6) / thrown,
      rate: (thrown / (end.at - begin.at)) * 1000,
      p50: latency.arrival.p50,
      p99: latency.arrival.p99,
      faults
    };
  } finally {
    await server.stop();
  }
}

/** What a load's rounds come to, for so many workers. */
function summarize(load, workers, rounds) {
  const of = (pick) => spread(rounds.map((round) => pick(round[workers], round[0])));
  return {
    load,
    workers,
    cpu: of((one) => one.cpu),
    rate: of((one) => one.rate),
    main: of((one, without) => one.cpu / without.cpu),
    all: of((one, without) => one.all / without.all),
    p50: of((one) => one.p50),
    p99: of((one) => one.p99),
    later50: of((one, without) => one.p50 - without.p50),
    later99: of((one, without) => one.p99 - without.p99),
    faults: rounds.flatMap((round) => round[workers].faults)
  };
}

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

async function compare(options) {
  const kinds = [0, ...options.workers];
  const summary = [];
  for (const [name, load] of options.loads) {
    const rounds = [];
    for (let i = 0; i < options.rounds; i += 1) {
      const round = {};
      // The other way round every second time: what comes first meets another machine.
      for (const workers of i % 2 ? kinds.toReversed() : kinds) {
        round[workers] = await measure(workers, load, options.seconds);
        const { cpu, all, rate, p50, p99, faults } = round[workers];
        console.error(
          `${name}, round ${i + 1}, ${workers} workers: ${cpu.toFixed(2)} µs a sprite, ` +
            `${all.toFixed(2)} in all, ${rate.toFixed(0)} sprites/s, ` +
            `p50 ${p50} ms, p99 ${p99} ms${faults.map((fault) => `; ${fault}`).join('')}`
        );
      }
      rounds.push(round);
    }
    summary.push(...kinds.map((workers) => summarize(name, workers, rounds)));
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

// ---- Parked -------------------------------------------------------------------------------------

/** Bytes resident in a process, when collecting its garbage makes that no less any more. */
async function residentOf(pid) {
  let least = Infinity;
  for (let since = 0; since < SETTLED; since += 1) {
    process.kill(pid, 'SIGPWR');
    await pause(1000);
    const now = residentBytes([pid]);
    if (now < least - NEW_LOW) since = 0;
    least = Math.min(least, now);
  }
  return least;
}

/** @returns {Promise<object>} what a parked client takes with so many workers, and the swarm's account */
async function parkAt(workers, { clients, rate, seconds }) {
  const server = await startServer(workers, { pinned: false, collects: COLLECTS });
  try {
    await startSwarm(server, { clients: BEFORE, rate: BEFORE, seconds: 1 }).result;
    const before = await residentOf(server.pid);
    const swarm = startSwarm(server, { clients, rate, seconds, processes: 'auto' });
    let over = false;
    const result = swarm.result.finally(() => {
      over = true;
    });
    result.catch(() => {});
    let bytesAClient;
    while (!over && bytesAClient === undefined) {
      const { parked, thrown } = await server.status();
      // Some are just being answered.
      if (parked > 0.99 * clients && thrown > BEFORE)
        bytesAClient = Math.round(((await residentOf(server.pid)) - before) / clients);
      await pause(200);
    }
    const { account, faults } = await result;
    return { workers, clients, bytesAClient, account, faults };
  } finally {
    await server.stop();
  }
}

async function parking({ workers, json, ...load }) {
  const all = [];
  for (const some of [0, ...workers]) all.push(await parkAt(some, load));
  console.log(JSON.stringify({ fileLimit: fileLimit(), all }, null, json ? 0 : 2));
  const whole = ({ account, faults, bytesAClient }) =>
    faults.length === 0 && account.missing === 0 && account.complete && bytesAClient !== undefined;
  if (!all.every(whole)) process.exitCode = 1;
}

const options = readOptions();
await (options.parked ? parking : compare)(options);
