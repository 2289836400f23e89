/**
 * One document to many, side by side: `npm run bench:feeds`.
 *
 *     node test/bench/feeds.js [--short] [--only ws,sprites-poll] [--cells 165] [--seconds 5]
 *                              [--rounds 3] [--stalled both|none|tenth] [--json FILE] [--strict]
 *
 * The contenders run one after the other, each in a process of its own. As many clients as the cell
 * says watch it, and a document is published to it every second or two. All of them run once, or as often as --rounds
 * says. Of several rounds the median counts; of lateness, growth, skipped documents and stalls the worst:
 *
 * - sprites-poll, sprites-stream: feeds of bin/sprites, by long poll and by event stream
 * - ws: today's ws; it is installed in a folder of its own (npm install --prefix
 *   test/bench/transports)
 * - sse: event streams over node:http, written the obvious way
 * - nchan-stream: nginx with nchan (and, where --only names them, nchan-ws and nchan-poll)
 * - where --only names it, sprites-poll-grant: a private feed, by one grant (with sprites-poll; the median of --rounds 5)
 * - where --only names them, epoll-poll and epoll-stream: bare epoll in C, which is the limit
 *
 * One program (test/bench/watchers) publishes and watches. Each document carries its version and the time it was due,
 * so the program knows how late the last byte came and which versions were skipped. Where server and load have a core
 * each, the load does not sleep while documents are under way: waking a reader on the same machine costs the sender
 * CPU time, which a reader on another machine would not.
 *
 * Every cell is measured twice: with all watchers reading, and with a tenth of them reading nothing after their first
 * document. Lateness and missing documents are those of the watchers that read.
 *
 * CPU is what the kernel has counted for all processes of the server over the measured time. Resident size is that of
 * the same processes; its growth is from when all are connected to the highest. Sockets is the kernel's memory for
 * all sockets of this machine, both ends of each connection. A stall is the event loop's longest turn, by the wall
 * clock and by the thread's own CPU clock: where the first is longer, other processes had the core meanwhile. Where there are two
 * cores the server has one and the load the other.
 *
 * The lines under each table say which promises hold. Exit status: 0; 1 where a contender failed, or,
 * with --strict, where a figure does not hold; 2 on a wrong option.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';

import { fileLimit } from '../../lib/base/file-limit.js';
import { canPin, measureFeed, namesIn, thoseHere } from './contenders.js';
import { CELLS, figuresOf, table, together, verdicts } from './feed-figures.js';
import { fail, inRounds, tellHeld, whereOf } from './figures.js';
import { feedContenders } from './transports/contenders.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The servers that are measured without --only. */
const USUAL = ['sprites-poll', 'sprites-stream', 'ws', 'sse', 'nchan-stream'];

/** Files a server or the load needs besides its watchers' sockets. */
const SPARE_FILES = 1000;

/**
 * Seconds of load before the measured ones: V8 compiles the code, the server stops making patches that no client takes,
 * and V8 gives back unused heap, which it does 8 s after the start.
 */
const WARMUP = 10;

const SHARES = { none: [0], tenth: [0.1], both: [0, 0.1] };

const usage = (message) => refuseUsage(import.meta.url, message);

function readOptions() {
  const options = takeValues(import.meta.url, {
    ...{ rounds: [1, 1, 100], seconds: [process.argv.includes('--short') ? 3 : 6, 0.1] },
    ...{ short: false, only: USUAL.join(','), cells: '', stalled: 'both', json: '', strict: false }
  });
  const names = namesIn(options.only, feedContenders, import.meta.url);
  if (!(options.stalled in SHARES)) usage('--stalled wants both, none or tenth');
  const cells = CELLS.filter(
    ({ name, short }) => name.startsWith(options.cells) && (short || !options.short)
  );
  if (cells.length === 0) usage('there is no such cell');
  return { ...options, names, cells, shares: SHARES[options.stalled] };
}

/** Runs one contender in one cell. @returns {Promise<object>} its figures */
async function measure(contender, of, { pin, seconds, share }) {
  const [result, turns] = await measureFeed(contender, pin, {
    protocol: of.patch ? contender.patches : contender.protocol,
    ...{ connections: of.connections, bytes: of.bytes, patch: of.patch ?? 0, every: of.every },
    warmup: Math.ceil(WARMUP / of.every),
    ...{ seconds: Math.max(seconds, 2 * of.every), stalled: share }
  });
  return figuresOf(result, turns);
}

function describe(pin, { seconds, rounds }) {
  const loads = loadavg().map((load) => load.toFixed(1));
  return `${rounds} × ${seconds} s a cell; ${whereOf(pin)} Load average ${loads.join(' ')}.`;
}

async function main() {
  const { json: file, ...options } = readOptions();
  const pin = canPin();
  const { here: names } = thoseHere(options.names, feedContenders);
  const results = [];
  for (const of of options.cells) {
    if (of.connections + SPARE_FILES > fileLimit()) {
      console.error(`bench: ${of.name} is left out: ulimit -n is ${fileLimit()}`);
      continue;
    }
    for (const share of options.shares) {
      const how = { pin, seconds: options.seconds, share };
      const all = await inRounds(
        names,
        options.rounds,
        (name) =>
          measure(feedContenders[name], of, how).catch(({ message }) => ({
            failed: message.slice(0, 200)
          })),
        `${of.name}, ${share * 100}% stalled, `
      );
      const rows = Object.fromEntries(names.map((name) => [name, together(all[name])]));
      const held = verdicts(of, rows);
      console.log(`\n## ${of.name}${share > 0 ? ', a tenth reads nothing' : ''}\n`);
      console.log(table(rows, (name) => feedContenders[name].title));
      console.log('');
      tellHeld(options, held);
      if (Object.values(rows).some(({ failed }) => failed !== undefined)) process.exitCode = 1;
      results.push({ cell: of.name, stalled: share, rows, rounds: all, held });
    }
  }
  const about = describe(pin, options);
  console.log(`\n${about}`);
  if (file) writeFileSync(file, JSON.stringify({ about, results }, null, 2));
}

main().catch(fail);
