/**
 * The benchmark: `npm run bench`.
 *
 *     node test/bench/run.js [--only sprites,epoll] [--rounds 5] [--seconds 5] [--clients 5000]
 *                            [--throwers 64] [--memory-clients 18000] [--settle 10]
 *                            [--rate 8000 [--warmup 18]] [--json] [--strict]
 *
 * It measures these servers in turn, in several rounds and under the same load. A machine's speed changes, so each
 * ratio compares consecutive runs:
 *
 * - sprites: bin/sprites
 * - node-http: the same contract over node:http, written the obvious way (contenders/node-http.js)
 * - epoll: the limit, bare epoll in C that checks nothing (contenders/epoll.c)
 * - nchan: nginx with nchan, where it is installed (contenders/nchan.conf)
 *
 * and for each:
 *
 * - sprites/s: sprites that arrived, with --clients parked and --throwers closed loops that throw for all
 *   clients in turn. Every sprite is accounted for; a missing or repeated sprite is an error.
 * - server CPU per sprite: user and system time of all its processes over the same window, from the
 *   kernel. With two cores the server is pinned to one and the load to the other. The load needs about as
 *   much CPU for a sprite as the fastest servers. So their sprites/s is the limit of the load, and CPU per
 *   sprite tells them apart.
 * - bytes per parked client: growth of resident size (Rss of smaps_rollup) from 0 to --memory-clients
 *   parked clients, in a new process that was warmed by 64 clients which came, threw and left. V8 returns
 *   some megabytes of memory seconds after the start, which would make clients look smaller. So at both
 *   points a server with a heap rests until its size has made no new low for --settle seconds; then its
 *   garbage is collected, and the least size counts. The kernel's own memory does not count. Memory is
 *   measured in the first three rounds only, since it takes long.
 * - V8 heap in use at the same two points, and the event loop's longest stall under the throws, for
 *   servers that have them.
 *
 * With --rate that many sprites a second are thrown by the clock, and lateness is measured instead of memory:
 * percentiles of the time from throw to arrival. The last tenth of a percent of bare epoll shows the machine's own
 * share. In the first 15 seconds of a Node server's life V8 collects garbage three times, for 4 to 12 ms on one core:
 * --warmup 0 shows them.
 *
 * The table is Markdown: medians, with least and most in brackets. The lines below it show which bounds of sprites
 * hold. Exit status: 0; 1 if a sprite was lost or a server failed or, with --strict, a bound does not hold; 2 for a
 * wrong option.
 *
 * The load is the engine of bin/sprites-swarm (load.js). The engine and epoll are compiled on first use.
 */

import { fileLimit } from '../../lib/base/file-limit.js';
import { canPin, contenders, withStarted, parseNames, availableNames } from './contenders.js';
import {
  fail,
  measureInRounds,
  latenessTable,
  report,
  summarize,
  table,
  verdicts,
  describeMachine
} from './figures.js';
import { byClock, closedLoops, withLoad } from './load.js';
import { untilAtRest, memoryOf } from './usage.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The load that warms a server before its memory is measured. */
const WARMUP_LOAD = { clients: 64, throwers: 8, warmup: 0, seconds: 0.3 };

/** Open files of a server or the load beside its clients' sockets. */
const SPARE_FILES = 1000;

/** Number of rounds, from the first, in which memory is measured. */
const MEMORY_ROUNDS = 3;

const refuse = (message) => refuseUsage(import.meta.url, message);

function readOptions() {
  const options = takeValues(import.meta.url, {
    ...{ rounds: [5, 1, 100], seconds: [5, 0.1, 600], settle: [10, 0, 600] },
    ...{ clients: [5000, 1, 1e6], throwers: [64, 1, 1000], 'memory-clients': [18000, 0, 1e6] },
    ...{ rate: [0, 0, 1e6], warmup: [18, 0, 600] },
    ...{ only: Object.keys(contenders).join(), json: false, strict: false }
  });
  options.names = parseNames(options.only, contenders, import.meta.url);
  const mostClients = fileLimit() - SPARE_FILES;
  if (options.clients > mostClients) {
    refuse(`--clients ${options.clients} wants a higher \`ulimit -n\` than ${fileLimit()}`);
  }
  if (options.memoryClients > mostClients) {
    console.error(`bench: ${mostClients} clients parked for memory: \`ulimit -n\` allows no more`);
    options.memoryClients = mostClients;
  }
  return options;
}

/** Runs `work` with a load on the contender. */
const withLoadOn = ({ nchan }, { port }, pin, loadOptions, work) =>
  withLoad([closedLoops({ port, nchan, ...loadOptions })], pin, work);

const measureThrows = async (contender, pin, { clients, throwers, seconds }) =>
  withStarted(await contender.start(pin), (server) =>
    withLoadOn(contender, server, pin, { clients, throwers }, async (load) => {
      await untilAtRest(server.pids);
      return load.throwAll(server, { warmup: Math.min(1, seconds), seconds });
    })
  );

/** @returns {Promise<Record<string, number>>} lateness of sprites thrown by the clock: milliseconds by percentile */
const measureLateness = async ({ nchan = false, start }, pin, { clients, rate, ...how }) =>
  withStarted(await start(pin), (server) => {
    const part = byClock({ port: server.port, nchan: Number(nchan), clients, rate });
    return withLoad([part], pin, async (load) => (await load.throwAll(server, how)).late);
  });

async function measureMemory(contender, pin, options) {
  const { memoryClients: clients } = options;
  return withStarted(await contender.start(pin), async (server) => {
    await withLoadOn(contender, server, pin, WARMUP_LOAD, async (load) => {
      await load.throwAll(server, WARMUP_LOAD);
      if (!contender.nchan) await load.leave();
    });
    const before = await memoryOf(server, options);
    return withLoadOn(contender, server, pin, { clients, throwers: 1 }, async () => {
      const after = await memoryOf(server, options);
      return {
        bytesPerClient: (after.resident - before.resident) / clients,
        resident: after.resident,
        heapBefore: before.heap,
        heapAfter: after.heap
      };
    });
  });
}

const runRounds = (names, pin, options) =>
  measureInRounds(names, options.rounds, async (name, round) => {
    try {
      if (options.rate > 0) return await measureLateness(contenders[name], pin, options);
      const thrown = await measureThrows(contenders[name], pin, options);
      const hasMemory = options.memoryClients > 0 && round < MEMORY_ROUNDS;
      return { ...thrown, ...(hasMemory && (await measureMemory(contenders[name], pin, options))) };
    } catch (error) {
      throw new Error(`${name}, round ${round + 1}: ${error.message}`, { cause: error });
    }
  });

function describeRun(options, pin) {
  const { rounds, seconds, clients, throwers, rate } = options;
  const loadText = rate > 0 ? `${rate} sprites a second` : `${throwers} throwers`;
  return `${rounds} rounds of ${seconds} s, ${clients} parked clients, ${loadText}; ${describeMachine(pin)}`;
}

async function main() {
  const options = readOptions();
  const pin = canPin();
  options.names = availableNames(options.names, contenders);
  const rounds = await runRounds(options.names, pin, options);
  const summary = summarize(rounds);
  const titles = Object.fromEntries(options.names.map((name) => [name, contenders[name].title]));
  report(options, {
    table:
      options.rate > 0
        ? latenessTable(summary, titles)
        : table(summary, titles, options.memoryClients),
    about: describeRun(options, pin),
    held: verdicts(summary, options.memoryClients),
    ...{ summary, rounds }
  });
}

main().catch(fail);
