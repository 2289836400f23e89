/**
 * How long after a publication the last of many watchers has its document, without workers and with them:
 *
 *     node test/bench/last-watcher.js [--workers 0,2] [--rounds 8] [--watchers 4000] [--bytes 5000] [--json] [--strict]
 *
 * The watchers, event streams of a process of their own, are stopped (SIGSTOP) before anything is published: what is sent
 * waits in their sockets, and every core is the server's. The last has its document when no thread that sends has more to
 * do: when it has had 97% of the CPU that it has in QUIET milliseconds.
 *
 * Exit status: 0, or 1 with --strict where two workers take more than HELD of the time without; 2 on a wrong option.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import net from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { during, feedContenders, TOKEN } from './contenders.js';
import { inRounds, markdown, show, spread, whereOf } from './figures.js';
import { cpuOf, threadsOf } from './usage.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

/** Two workers, of the time without. */
const HELD = 0.6;

/** Publications a round, and milliseconds in which each is long over. */
const PUBLICATIONS = 4;
const QUIET = 250;

/** Milliseconds between two looks: they take a core's time as well. */
const LOOK = 2;

/** Watchers that connect at the same time. */
const OPENING = 100;

const isWatchers = process.argv[2] === 'watchers';
if (!isWatchers) answerHelp(import.meta.url);

const request = (head) => `${head}\r\nHost: localhost\r\nAuthorization: Bearer ${TOKEN}\r\n`;

/** The other process: opens event streams, and says so once each has the value that there is. */
async function watch(port, watchers, bytes) {
  const open = async () => {
    const socket = net.connect(port, '127.0.0.1');
    socket.write(`${request('GET /feed/bench HTTP/1.1')}Accept: text/event-stream\r\n\r\n`);
    for (let got = 0; got < bytes;) got += (await once(socket, 'data'))[0].length;
  };
  for (let left = watchers; left > 0; left -= OPENING) {
    await Promise.all(Array.from({ length: Math.min(left, OPENING) }, open));
  }
  process.send('open');
}

/** @returns {number[]} the threads of a server that send: the main one and the workers */
const sendersOf = (pid) =>
  threadsOf(pid).filter((thread) => {
    const name = readFileSync(`/proc/${pid}/task/${thread}/comm`, 'latin1');
    return thread === pid || name.startsWith('worker');
  });

/** Publishes another value. @returns {Promise<number>} milliseconds until the last watcher had it */
async function publish(publisher, pid, bytes) {
  const threads = sendersOf(pid);
  const cpu = () => threads.map((thread) => cpuOf(pid, thread) * 1000);
  const body = JSON.stringify({ text: String(Math.random()).padEnd(bytes, 'x') });
  const head = `${request('PUT /feed/bench HTTP/1.1')}Content-Length: ${body.length}\r\n\r\n`;
  const before = cpu();
  const began = performance.now();
  publisher.write(head + body);
  const looks = [];
  for (let at = 0; at < QUIET;) {
    await pause(LOOK);
    at = performance.now() - began;
    looks.push({ at, cpu: cpu().map((now, i) => now - before[i]) });
  }
  const all = looks.at(-1).cpu;
  // A thread with less than half of the busiest one's CPU has sent nothing: the main one beside workers.
  const ends = all.map((own, i) => {
    if (own < Math.max(...all) / 2) return 0;
    return looks.find(({ cpu }) => cpu[i] >= 0.97 * own).at;
  });
  return Math.max(...ends);
}

/** @returns {Promise<number[]>} what each publication of a round took */
async function measure(workers, { watchers, bytes }) {
  const started = await feedContenders['sprites-stream'].start(false, { workers });
  return during(started, async ({ port, pids: [pid] }) => {
    const publisher = net.connect(port, '127.0.0.1').setNoDelay().resume();
    let child;
    try {
      await publish(publisher, pid, bytes);
      const args = ['watchers', port, watchers, bytes].map(String);
      child = fork(fileURLToPath(import.meta.url), args);
      await once(child, 'message');
      await pause(QUIET);
      child.kill('SIGSTOP');
      const took = [];
      for (let i = 0; i < PUBLICATIONS; i += 1) took.push(await publish(publisher, pid, bytes));
      return took;
    } finally {
      child?.kill('SIGKILL');
      publisher.destroy();
    }
  });
}

async function main() {
  const { workers, json, strict, ...numbers } = takeValues(import.meta.url, {
    // With fewer watchers a thread's ticks are more than a hundredth of what it does.
    ...{ rounds: [8, 1, 100], watchers: [4000, 2000, 9000], bytes: [5000, 100, 50000] },
    ...{ workers: '0,2', json: false, strict: false }
  });
  if (!/^\d(,\d)*$/.test(workers)) refuseUsage(import.meta.url, '--workers takes numbers to 9');
  const rounds = await inRounds(workers.split(','), numbers.rounds, (number) =>
    measure(Number(number), numbers)
  );
  const took = Object.fromEntries(
    Object.entries(rounds).map(([number, all]) => [number, all.flat()])
  );
  const rows = Object.entries(took).map(([number, all]) => [number, spread(all)]);
  const [without, two] = [took[0], took[2]].map((all) => all && spread(all).median);
  const holds = !(two / without > HELD);
  if (json) console.log(JSON.stringify({ held: HELD, holds, took }));
  else {
    const lines = rows.map(([number, all]) => [number, show(all, 1)]);
    console.log(markdown([['workers', 'the last has it after, ms'], ...lines]));
    console.log(`\n${whereOf(false)}`);
  }
  if (strict && !holds) process.exitCode = 1;
}

if (isWatchers) await watch(...process.argv.slice(3).map(Number));
else await main();
