/**
 * One feed behind the caches of deploy/: the costs of few and of many watchers, and an estimate for a million.
 *
 *     node test/bench/cache.js [--only nginx,varnishd] [--watchers 15,15000] [--publications 8]
 *                              [--every 3] [--strict]
 *
 * It runs a server with --feed-cache 5, a cache of deploy/ in front of it, and watchers that poll as the clients do:
 * first for a value, then for newer versions. A document of 900 bytes is published through the cache every few
 * seconds.
 *
 * Polls are requests for the feed that reach the server: before the first measured publication, and after it. CPU is
 * the kernel's count for the server, and for the cache, from the first measured publication until the last watcher has
 * the last one. Lateness is the time from a document's due time to its last byte at a watcher. With two cores, server
 * and cache have one core and the watchers the other.
 *
 * The load of a million watchers is computed from these figures: their requests to the caches, and the caches'
 * requests to the server. The latter are then measured, without a cache. Exit status: 0; 1 if a cache failed or, with
 * --strict, a figure exceeds its bound; 2 for a wrong option.
 */
import { useOf } from '../../lib/swarm/server-watch.js';
import { freePort } from '../support/addresses.js';
import { CACHE_NAMES, reasonToSkip, startCache } from '../support/caches.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';
import { atExit, temporary } from '../support/processes.js';
import { canPin, pinningWords, SERVER_CORE, startLoad, TOKEN } from './contenders.js';
import { figuresOf } from './feed-figures.js';
import {
  fail,
  knownVerdicts,
  printVerdicts,
  progress,
  tableOf,
  tenth,
  describeMachine,
  whole
} from './figures.js';
import { feedContenders } from './transports/contenders.js';

answerHelp(import.meta.url);

const BYTES = 900;
const WARMUP = 2;
/** How long a cache may keep an answer, and the hold of a client's poll, in seconds. */
const CACHE_SECONDS = 5;
const HOLD = 55;
/** Number of source addresses of the watchers. */
const ADDRESSES = 4;

/** Bounds: polls a version, lateness in ms, and additional CPU of the server a version with many watchers, in ms. */
const BOUNDS = { polls: 2, p99: 100, cpu: 5 };

/** The computed load: watchers, watchers of one cache, seconds between two versions. */
const MILLION_LOAD = { watchers: 1e6, each: 15000, every: 10 };
const CACHES_OF_MILLION = Math.ceil(MILLION_LOAD.watchers / MILLION_LOAD.each);

/** No cache: the watchers poll the server. */
const NO_CACHE = 'none';

function readOptions() {
  const { only, watchers, ...options } = takeValues(import.meta.url, {
    ...{ publications: [8, 1], every: [3, 0.1] },
    ...{ only: CACHE_NAMES.join(','), watchers: '15,15000', strict: false }
  });
  const names = only.split(',');
  const counts = watchers.split(',').map(Number);
  const unknown = names.find((name) => !CACHE_NAMES.includes(name));
  if (unknown !== undefined) refuseUsage(import.meta.url, `there is no cache ${unknown}`);
  if (!counts.every((count) => count > 0)) {
    refuseUsage(import.meta.url, '--watchers are numbers above 0');
  }
  return { names, counts, ...options };
}

/** CPU time of a cache, in milliseconds; 0 without one. */
const cpuOf = (cache) => (cache ? useOf(cache.pid).cpu * 1000 : 0);

/** The running caches, which end with this program. */
const runningPids = new Set();
process.on('exit', () => {
  for (const pid of runningPids) process.kill(-pid, 'SIGKILL');
});

/** Measures one cache, or NO_CACHE, with this number of watchers. @returns {Promise<object>} the figures */
async function measure(name, watchers, { publications, every }) {
  const pin = canPin();
  const server = await feedContenders['sprites-poll'].start(pin, { 'feed-cache': CACHE_SECONDS });
  const ports = { port: name === NO_CACHE ? server.port : await freePort(), server: server.port };
  const readPolls = async () => (await server.status()).feedPolls;
  let cache;
  let load;
  try {
    if (name !== NO_CACHE) {
      cache = await startCache(name, temporary(atExit), ports, {
        commandPrefix: pinningWords(SERVER_CORE)
      });
      runningPids.add(cache.pid);
    }
    load = startLoad({ port: ports.port, pids: server.pids }, pin, {
      protocol: 'sprites-cached',
      connections: watchers,
      addresses: ADDRESSES,
      bytes: BYTES,
      every,
      warmup: WARMUP,
      seconds: publications * every,
      token: TOKEN
    });
    const before = {};
    const result = await load.measure(async () => {
      before.polls = await readPolls();
      before.cpu = cpuOf(cache);
    });
    return {
      ...figuresOf(result),
      ...{ name, watchers, opened: before.polls, polls: (await readPolls()) - before.polls },
      ...{ cpu: result.cpu * 1000, cacheCpu: cpuOf(cache) - before.cpu }
    };
  } finally {
    await load?.stop();
    await cache?.end();
    runningPids.delete(cache?.pid);
    await server.stop();
  }
}

const COLUMNS = {
  cache: ({ name }) => name,
  watchers: ({ watchers }) => whole.format(watchers),
  'polls at the server, at first': ({ opened }) => whole.format(opened),
  'and then': ({ polls }) => whole.format(polls),
  'server CPU, ms': ({ cpu }) => whole.format(cpu),
  'cache CPU a document, µs': ({ name, cacheCpu, documents }) =>
    name === NO_CACHE ? '-' : tenth.format((cacheCpu / documents) * 1000),
  'p50, ms': ({ p50 }) => tenth.format(p50),
  p99: ({ p99 }) => tenth.format(p99),
  max: ({ max }) => tenth.format(max),
  'missing, repeated': ({ missing, repeated }) => `${missing}, ${repeated}`
};

/** Compares a cache's rows with the bounds. @returns {{figure: string, value: string, holds: boolean}[]} */
function verdicts(rows, { publications }) {
  const [few] = rows;
  return rows.flatMap((row) => {
    const pollsPerVersion = row.polls / publications;
    const moreCpu = (row.cpu - few.cpu) / publications;
    const badCount = row.missing + row.repeated;
    const figures = {
      'polls a version': [pollsPerVersion, BOUNDS.polls],
      "ms more of the server's CPU a version": [moreCpu, BOUNDS.cpu],
      'ms until 99% have it': [row.p99, BOUNDS.p99],
      'miss what is newest, or go backwards': [badCount, 0]
    };
    return knownVerdicts(
      Object.entries(figures).map(([what, [value, most]]) => [
        `${row.name}, ${whole.format(row.watchers)}: at most ${most} ${what}`,
        ...[value, tenth.format, value <= most]
      ])
    );
  });
}

/** Computes the load of a million watchers on the caches, from the row with the most watchers. @returns {string} */
function cachesEstimate(row) {
  const { watchers, every } = MILLION_LOAD;
  // Each watcher sends a request for each version, and for each hold.
  const requests = watchers * (1 / every + 1 / HOLD);
  const cpuPerDocument = row.cacheCpu / row.documents;
  return [
    `A million behind ${row.name}: ${whole.format(requests)} requests a second at the caches,`,
    `${tenth.format((requests * cpuPerDocument) / 1000)} of their cores; with ${whole.format((watchers * cpuPerDocument) / BOUNDS.p99)}`,
    `cores each has a version within ${BOUNDS.p99} ms.`
  ].join(' ');
}

/** Computes the load of these caches on the server, from the row with as many polls. @returns {string} */
function serverEstimate(row, { publications, every }) {
  const { each } = MILLION_LOAD;
  const requests = row.watchers * (1 / MILLION_LOAD.every + 1 / HOLD);
  const coreShare = (row.cpu / 1000 / (publications * every)) * (every / MILLION_LOAD.every);
  return [
    `Their ${CACHES_OF_MILLION} caches of ${whole.format(each)}, with ${BOUNDS.polls} polls each, ask the server`,
    `${tenth.format(requests)} times a second: ${tenth.format(100 * coreShare)}% of a core.`
  ].join(' ');
}

async function main() {
  const options = readOptions();
  for (const name of options.names) {
    const missing = reasonToSkip(name);
    if (missing) {
      console.error(`bench: left out: ${missing}`);
      continue;
    }
    const rows = [];
    for (const watchers of options.counts) {
      progress(`${name}: ${watchers}`);
      rows.push(await measure(name, watchers, options));
    }
    progress('');
    console.log(`${tableOf(COLUMNS, rows)}\n`);
    printVerdicts(options, verdicts(rows, options));
    console.log(`\n${cachesEstimate(rows.at(-1))}\n`);
  }
  progress('the server of a million');
  const row = await measure(NO_CACHE, BOUNDS.polls * CACHES_OF_MILLION, options);
  progress('');
  console.log(`${tableOf(COLUMNS, [row])}\n\n${serverEstimate(row, options)}\n`);
  console.log(`${options.publications} versions; ${describeMachine(canPin())}`);
}

main().catch(fail);
