/**
 * Measures the time from a publication until the last of many watchers has its document, without and with workers:
 *
 *     node test/bench/last-watcher.js [--workers 0,2] [--rounds 8] [--watchers 4000] [--bytes 5000] [--json]
 *     [--strict]
 *
 * The watchers, event streams of a separate process, are stopped (SIGSTOP) before the publications: the documents wait
 * in their sockets, and the server has all cores. The last watcher has its document when all sending threads are done:
 * when each has used 97% of the CPU time that it uses within QUIET_MS milliseconds.
 *
 * Exit status: 0; 1 with --strict if two workers take more than MAX_RATIO of the time without workers; 2 for a wrong
 * option.
 */
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';

import { withStarted, startLoad, TOKEN } from './contenders.js';
import {
  fine,
  measureInRounds,
  knownVerdicts,
  report,
  spreadCell,
  spread,
  tableOf,
  describeMachine
} from './figures.js';
import { feedContenders } from './transports/contenders.js';
import { cpuOf, threadsOf } from './usage.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** Bound: the time with two workers, as a share of the time without workers. */
const MAX_RATIO = 0.6;

/** Publications a round, and a time in which each is surely over, in milliseconds. */
const PUBLICATIONS = 4;
const QUIET_MS = 250;

/** Interval between two samples, in milliseconds: samples use CPU time, too. */
const SAMPLE_MS = 2;

/** @returns {number[]} the sending threads of a server: the main thread and the workers */
const sendingThreads = (pid) =>
  threadsOf(pid).filter((thread) => {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'latin1');
    return thread === pid || name.startsWith('worker');
  });

/** Publishes a new value. @returns {Promise<number>} time until the last watcher has the value, in milliseconds */
async function publish(publisher, pid, bytes) {
  const threads = sendingThreads(pid);
  const readCpu = () => threads.map((thread) => cpuOf(pid, thread) * 1000);
  const body = JSON.stringify({ text: String(Math.random()).padEnd(bytes, 'x') });
  const head =
    `PUT /feed/bench HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n` +
    `Content-Length: ${body.length}\r\n\r\n`;
  const before = readCpu();
  const publishedAt = performance.now();
  publisher.write(head + body);
  const samples = [];
  for (let elapsed = 0; elapsed < QUIET_MS;) {
    await pause(SAMPLE_MS);
    elapsed = performance.now() - publishedAt;
    samples.push({ at: elapsed, cpu: readCpu().map((now, i) => now - before[i]) });
  }
  const totalCpu = samples.at(-1).cpu;
  // A thread with less than half of the busiest thread's CPU has sent nothing, such as the main thread beside workers.
  const endTimes = totalCpu.map((threadCpu, i) => {
    if (threadCpu < Math.max(...totalCpu) / 2) return 0;
    return samples.find(({ cpu }) => cpu[i] >= 0.97 * threadCpu).at;
  });
  return Math.max(...endTimes);
}

/** @returns {Promise<number[]>} the time of each publication of a round, in milliseconds */
async function measure(workers, { watchers: connections, bytes }) {
  const { protocol, start } = feedContenders['sprites-stream'];
  return withStarted(await start(false, { workers }), async (server) => {
    const publisher = net.connect(server.port, '127.0.0.1').setNoDelay().resume();
    const options = { protocol, connections, bytes, token: TOKEN };
    const load = startLoad(server, false, options);
    try {
      await load.next('open');
      await pause(QUIET_MS);
      load.child.kill('SIGSTOP');
      const times = [];
      for (let i = 0; i < PUBLICATIONS; i += 1) {
        times.push(await publish(publisher, server.pids[0], bytes));
      }
      return times;
    } finally {
      load.child.kill('SIGKILL');
      publisher.destroy();
    }
  });
}

const { workers, json, strict, ...numbers } = takeValues(import.meta.url, {
  // With fewer watchers the ticks of a thread are more than 1% of its work.
  ...{ rounds: [8, 1, 100], watchers: [4000, 2000, 9000], bytes: [5000, 100, 50000] },
  ...{ workers: '0,2', json: false, strict: false }
});
if (!/^\d(,\d)*$/.test(workers)) refuseUsage(import.meta.url, '--workers takes numbers to 9');
const rounds = await measureInRounds(workers.split(','), numbers.rounds, (number) =>
  measure(Number(number), numbers)
);
const took = Object.fromEntries(
  Object.entries(rounds).map(([number, all]) => [number, all.flat()])
);
const rows = Object.entries(took).map(([number, all]) => ({ number, took: spread(all) }));
const [without, two] = [took[0], took[2]].map((all) => all && spread(all).median);
const ratio = without && two && two / without;
report(
  { json, strict },
  {
    table: tableOf(
      {
        workers: ({ number }) => number,
        'the last has it after, ms': (row) => spreadCell(row.took)
      },
      rows
    ),
    about: describeMachine(false),
    held: knownVerdicts([
      [`two workers take at most ${MAX_RATIO} of the time`, ratio, fine.format, ratio <= MAX_RATIO]
    ]),
    took
  }
);
