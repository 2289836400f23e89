/**
 * The cost of a world of several servers, beside one server with the same clients and load: `npm run bench:world`.
 *
 *     node test/bench/world-cost.js [--servers 3] [--rounds 5] [--seconds 4] [--warmup 10] [--clients 3000]
 *                                   [--throwers 96] [--rate 6000] [--only full|rate] [--json] [--strict]
 *
 * It measures in turn, in several rounds: one server (`one`), --servers servers of one world with a real nats-server
 * (`world`), and as many independent servers (`apart`: the cost of several servers without a world). Ratios are of
 * consecutive runs. The load is the engine of bin/sprites-swarm, in --servers processes: each loads its own server, or
 * all load the same one. It runs at full speed (`full`: --throwers closed loops that throw for all clients in turn),
 * and with --rate sprites a second in all (`rate`). With two cores the servers share one, and load and nats-server the
 * other. CPU is the kernel's account, user and system, of all servers together; nats-server's CPU is listed
 * separately. Late is the time from throw to arrival, of sprites that crossed to another server and of those that did
 * not. The load runs for --warmup seconds before the measurement: the NATS client, which only a world has, is compiled
 * late, since it runs only a few hundred times a second.
 *
 * Exit status: 0; 1 if a sprite was missing or came twice or, with --strict, a figure exceeds its bound; 2 for a wrong
 * option.
 */
import { startNats } from '../support/nats.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { Teardowns } from '../support/processes.js';
import { until } from '../support/until.js';
import { canPin, startSprites } from './contenders.js';
import {
  compareKinds,
  fine,
  knownVerdicts,
  report,
  spreadCell,
  tableOf,
  describeMachine,
  whole
} from './figures.js';
import { pinToLoad, withLoad } from './load.js';
import { cpuSeconds } from './usage.js';

answerHelp(import.meta.url);

const canPinCores = canPin();

/** Bound of the CPU a sprite of all servers of a world together, as a multiple of one server's: medians. */
const MAX_RATIO = 1.1;

/** Clients that the load opens a second, in all. */
const RAMP = 3000;

const values = takeValues(import.meta.url, {
  ...{ servers: [3, 2, 9], rounds: [5, 1], seconds: [4, 1], warmup: [10, 1] },
  ...{ clients: [3000, 1], throwers: [96, 1], rate: [6000, 1] },
  ...{ only: '', json: false, strict: false }
});
const { servers, rounds, seconds, warmup, clients, throwers, rate } = values;
const LOADS = ['full', 'rate'].filter((name) => name.includes(values.only));
if (LOADS.length === 0) refuseUsage(import.meta.url, '--only takes full or rate');
const KIND_TITLES = { one: '1', apart: `${servers}, apart`, world: `${servers}, one world` };

/** @returns {Promise<{all: object[], nats?: object}>} the servers of a kind; those of a world have joined it */
async function startServers(kind, teardowns) {
  const start = async (options) => {
    const commonOptions = { drain: 0, 'log-level': 'warn', 'admin-port': 0 };
    const server = await startSprites(
      { ...commonOptions, ...options },
      { pin: canPinCores, probed: false }
    );
    teardowns.teardown(() => server.stop());
    return server;
  };
  if (kind === 'one') return { all: [await start({})] };
  if (kind === 'apart') {
    return { all: await Promise.all(Array.from({ length: servers }, () => start({}))) };
  }
  const nats = await startNats(teardowns);
  // The broker runs on the load's core, since it could run on another machine.
  pinToLoad(nats.pid);
  const members = [];
  for (let i = 0; i < servers; i++) members.push(await start({ world: nats.url, name: `s${i}` }));
  await untilOneRing(members);
  return { all: members, nats };
}

const untilOneRing = (ringServers) =>
  until(async () => {
    const statuses = await Promise.all(ringServers.map((one) => one.status()));
    return statuses.every(
      ({ worldMember, worldServers }) => worldMember && worldServers === ringServers.length
    );
  }, 'the servers are one ring');

/** Returns the engines' options: an engine for each part of the clients. */
function partsOf(targets, load) {
  const clientsPerEngine = Math.floor(clients / servers);
  const throwingOptions =
    load === 'rate'
      ? { throwing: 'rate', rate: rate / servers }
      : { throwing: 'closed', 'every-client': 1 };
  return Array.from({ length: servers }, (_, i) => ({
    ...{
      ...throwingOptions,
      port: targets[i % targets.length].port,
      apart: targets.length > 1 ? 1 : 0
    },
    ...{
      clients: clientsPerEngine,
      'first-client': i * clientsPerEngine,
      ramp: RAMP / servers,
      phase: i / servers
    },
    lanes: Math.max(1, Math.floor(throwers / servers))
  }));
}

const sum = (numbers) => numbers.reduce((total, one) => total + one, 0);

/** Measures one kind under one load. */
async function measure(kind, load) {
  const teardowns = new Teardowns();
  try {
    const { all, nats } = await startServers(kind, teardowns);
    const readFigures = async () => ({
      crossed: sum(await Promise.all(all.map(async (one) => (await one.status()).crossedOut))),
      nats: nats ? cpuSeconds([nats.pid]) : 0
    });
    const pids = all.flatMap((server) => server.pids);
    return await withLoad(partsOf(all, load), canPinCores, async (swarm) => {
      // Checks again after the joins that the servers are one ring.
      if (kind === 'world') await untilOneRing(all);
      const outcome = await swarm.throwAll({ pids }, { warmup, seconds, look: readFigures });
      const { sprites, grown, late } = outcome;
      const crossing = swarm.tally.probe.summary();
      return {
        ...{ cpu: outcome.cpuPerSprite, nats: (grown.nats * 1e6) / sprites, rate: outcome.rate },
        ...{ crossed: grown.crossed / sprites, p50: late.p50, p99: late.p99 },
        ...{ p50Crossing: crossing.p50 ?? 0, p99Crossing: crossing.p99 ?? 0 }
      };
    });
  } finally {
    await teardowns.end();
  }
}

const summary = await compareKinds({
  ...{
    kinds: Object.keys(KIND_TITLES),
    loads: Object.fromEntries(LOADS.map((load) => [load, load]))
  },
  ...{ rounds, measure },
  figures: ['cpu', 'nats', 'rate', 'crossed', 'p50', 'p99', 'p50Crossing', 'p99Crossing'],
  ratios: ({ one, apart }) => ({
    ofOne: ({ cpu }, i) => cpu / one[i].cpu,
    ofApart: ({ cpu }, i) => cpu / apart[i].cpu
  })
});

/** Columns of the table, from a row of compareKinds(). */
const COLUMNS = {
  load: ({ load }) => load,
  servers: ({ kind }) => KIND_TITLES[kind],
  'CPU a sprite, all servers, µs': ({ cpu }) => spreadCell(cpu, fine),
  'of one server': ({ ofOne }) => spreadCell(ofOne, fine),
  'of as many apart': ({ kind, ofApart }) => (kind === 'world' ? spreadCell(ofApart, fine) : '–'),
  "nats-server's, µs": ({ nats }) => spreadCell(nats, fine),
  'sprites/s': (row) => spreadCell(row.rate, whole),
  'that cross': ({ crossed }) => `${fine.format(100 * crossed.median)}%`,
  'p50 and p99, ms': ({ p50, p99 }) => `${spreadCell(p50, fine)}, ${spreadCell(p99, fine)}`,
  'of those that cross': ({ crossed, p50Crossing, p99Crossing }) =>
    crossed.median > 0 ? `${spreadCell(p50Crossing, fine)}, ${spreadCell(p99Crossing, fine)}` : '–'
};
report(values, {
  table: tableOf(COLUMNS, summary),
  about: describeMachine(canPinCores),
  held: knownVerdicts(
    summary
      .filter(({ kind }) => kind === 'world')
      .map(({ load, ofOne: { median } }) => [
        `${load}: CPU at most ${MAX_RATIO} times one server's`,
        ...[median, fine.format, median <= MAX_RATIO]
      ])
  ),
  summary
});
