/**
 * What a world of several servers costs beside one server with the same clients and the same load: `npm run bench:world`.
 *
 *     node test/bench/world-cost.js [--servers 3] [--rounds 5] [--seconds 4] [--warmup 10] [--clients 3000]
 *                                   [--throwers 96] [--rate 6000] [--only full|rate] [--json FILE] [--strict]
 *
 * One server (`one`), --servers of one world with a real nats-server (`world`), and as many that know nothing of each other
 * (`apart`: what it costs to be several, without a world), in turn and in several rounds; ratios are of neighbors in time. The
 * load is that of bin/sprites-swarm, in --servers processes: each has a server of its own, or all have the same one. At full speed (`full`: --throwers closed loops that throw in the names of all clients), and with --rate
 * sprites a second in all. Where there are two cores the servers share one, and load and nats-server have the other. CPU is
 * the kernel's account, user and system, of all servers together; nats-server's is told apart. Late is how long a sprite was on
 * its way from throw to arrival: of those that crossed, and of those that did not. For --warmup seconds the load goes before
 * the window opens: what only a world has, the NATS client, is compiled late, as it runs a few hundred times a second.
 *
 * Exit status: 0, or 1 where a sprite was missing or came twice or, with --strict, a figure is above what it is held to; 2
 * on a wrong option.
 */
import { writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { startNats } from '../support/nats.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { until } from '../support/until.js';
import { canPin, startSprites } from './contenders.js';
import { inRounds, markdown, show, spreads } from './figures.js';
import { Load, pinToLoad } from './load.js';
import { cpuOf, cpuSeconds } from './usage.js';

answerHelp(import.meta.url);

const pins = canPin();

/** CPU a sprite of all servers of a world together, as a multiple of one server's: medians. */
const HELD = 1.1;

/** Clients that the load opens in a second, in all. */
const RAMP = 3000;

const KINDS = ['one', 'apart', 'world'];

const values = takeValues(import.meta.url, {
  ...{ servers: [3, 2, 9], rounds: [5, 1], seconds: [4, 1], warmup: [10, 1] },
  ...{ clients: [3000, 1], throwers: [96, 1], rate: [6000, 1], only: '', json: '', strict: false }
});
const { servers, rounds, seconds, warmup, clients, throwers, rate } = values;
const LOADS = ['full', 'rate'].filter((name) => name.includes(values.only));
if (LOADS.length === 0) refuseUsage(import.meta.url, '--only takes full or rate');

/** @returns {Promise<{all: object[], nats?: object}>} the servers of a kind, joined where they make a world */
async function startServers(kind, endings) {
  const start = async (options) => {
    const usual = { drain: 0, 'log-level': 'warn', 'admin-port': 0 };
    const server = await startSprites({ ...usual, ...options }, { pin: pins, probed: false });
    endings.teardown(() => server.stop());
    return server;
  };
  if (kind === 'one') return { all: [await start({})] };
  if (kind === 'apart') {
    return { all: await Promise.all(Array.from({ length: servers }, () => start({}))) };
  }
  const nats = await startNats(endings);
  // The broker runs on the core of the load: it may be on another machine, too.
  pinToLoad(nats.pid);
  const all = [];
  for (let i = 0; i < servers; i++) all.push(await start({ world: nats.url, name: `s${i}` }));
  await untilSewn(all);
  return { all, nats };
}

const untilSewn = (all) =>
  until(async () => {
    const looks = await Promise.all(all.map((one) => one.status()));
    return looks.every(
      ({ worldMember, worldServers }) => worldMember && worldServers === all.length
    );
  }, 'the servers are one ring');

/** The load: an engine for each part of the clients. */
function startLoad(all, load) {
  const each = Math.floor(clients / servers);
  const how =
    load === 'rate'
      ? { throwing: 'rate', rate: rate / servers }
      : { throwing: 'closed', 'every-client': 1 };
  const parts = Array.from({ length: servers }, (_, i) => ({
    ...{ ...how, port: all[i % all.length].port, apart: all.length > 1 ? 1 : 0 },
    ...{ clients: each, 'first-client': i * each, ramp: RAMP / servers, phase: i / servers },
    lanes: Math.max(1, Math.floor(throwers / servers))
  }));
  return new Load(parts, pins);
}

/** CPU seconds, sprites and time so far. */
async function look({ all, nats }) {
  const looks = await Promise.all(all.map((one) => one.status()));
  const sum = (name) => looks.reduce((total, one) => total + one[name], 0);
  return {
    at: performance.now(),
    thrown: sum('thrown'),
    crossed: sum('crossedOut'),
    cpu: all.reduce((total, { pids: [pid] }) => total + cpuOf(pid), 0),
    nats: nats ? cpuSeconds([nats.pid]) : 0
  };
}

/** One kind under one load. */
async function measure(kind, load) {
  const ends = [];
  // As tap's: what takes a test to end with takes this. The last begun is ended first.
  const endings = { teardown: (end) => ends.unshift(end) };
  try {
    const world = await startServers(kind, endings);
    const swarm = startLoad(world.all, load);
    endings.teardown(() => swarm.stop());
    await swarm.park();
    // The others know of all rows, and nothing is compiled any more that is needed for it.
    if (kind === 'world') await untilSewn(world.all);
    swarm.tell(`throw ${(warmup + seconds + 5) * 1000}`);
    await pause(warmup * 1000);
    const begin = await look(world);
    await pause(seconds * 1000);
    const end = await look(world);
    await swarm.finish();
    const thrown = end.thrown - begin.thrown;
    const [late, crossing] = [swarm.tally.arrival, swarm.tally.probe].map((one) => one.summary());
    return {
      cpu: ((end.cpu - begin.cpu) * 1e6) / thrown,
      nats: ((end.nats - begin.nats) * 1e6) / thrown,
      rate: (thrown / (end.at - begin.at)) * 1000,
      crossed: (end.crossed - begin.crossed) / thrown,
      ...{ p50: late.p50, p99: late.p99 },
      ...{ p50Crossing: crossing.p50 ?? 0, p99Crossing: crossing.p99 ?? 0 }
    };
  } finally {
    for (const end of ends) await end();
  }
}

const FIGURES = ['cpu', 'nats', 'rate', 'crossed', 'p50', 'p99', 'p50Crossing', 'p99Crossing'];

/** A load's rounds. */
function summarize(load, all) {
  const ratio = (kind, to) => (_, i) => all[kind][i].cpu / all[to][i].cpu;
  const ratios = {
    ...{ ratio: ratio('world', 'one'), ratioApart: ratio('apart', 'one') },
    ratioToApart: ratio('world', 'apart')
  };
  const kinds = KINDS.map((kind) => [kind, spreads(all[kind], FIGURES)]);
  return { load, ...Object.fromEntries(kinds), ...spreads(all.one, [], ratios) };
}

const summary = [];
for (const load of LOADS) {
  const all = await inRounds(KINDS, rounds, async (kind, i) => {
    const round = await measure(kind, load);
    console.error(`${load}, round ${i + 1}, ${kind}: ${JSON.stringify(round)}`);
    return round;
  });
  summary.push(summarize(load, all));
}

const headings = [
  ...['load', 'servers', 'CPU a sprite, all servers, µs', 'of one server', "nats-server's, µs"],
  ...['sprites/s', 'that cross', 'p50 and p99, ms', 'of those that cross']
];
const rowOf = (load, [name, kind, ofOne]) => [
  ...[load, name, show(kind.cpu, 2), ofOne ? show(ofOne, 2) : '1', show(kind.nats, 2)],
  ...[show(kind.rate, 0), `${(100 * kind.crossed.median).toFixed(2)}%`],
  `${show(kind.p50, 2)}, ${show(kind.p99, 2)}`,
  ofOne && kind.crossed.median > 0
    ? `${show(kind.p50Crossing, 2)}, ${show(kind.p99Crossing, 2)}`
    : '–'
];
const rows = summary.flatMap(({ load, one, apart, world, ratio, ratioApart }) =>
  [
    ['1', one],
    [`${servers}, apart`, apart, ratioApart],
    [`${servers}, one world`, world, ratio]
  ].map((kind) => rowOf(load, kind))
);
console.log(markdown([headings, ...rows]));
for (const { load, ratioToApart } of summary) {
  console.log(
    `${load}: a world takes ${show(ratioToApart, 2)} times what the same servers take apart`
  );
}
if (values.json) writeFileSync(values.json, JSON.stringify({ held: HELD, pinned: pins, summary }));
const high = summary.filter(({ ratio }) => ratio.median > HELD);
for (const { load, ratio } of high) {
  console.error(`${load}: ${ratio.median.toFixed(2)} times one server's CPU, held to ${HELD}`);
}
if (values.strict && high.length > 0) process.exitCode = 1;
