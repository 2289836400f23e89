/**
 * One document to many, side by side: `npm run bench:feeds`; with --study the transport study.
 *
 *     node test/bench/feeds.js [--short] [--study] [--only ws,sprites-poll] [--cells 165] [--changes none,stalled,cut]
 *                              [--seconds 5] [--rounds 3] [--most CLIENTS] [--held SECONDS] [--no-break]
 *                              [--json FILE] [--strict]
 *
 * The contenders run one after the other, each in a process of its own. The clients of the cell watch it, and a
 * document is published every second or two. --rounds repeats all of them. Of several rounds the median counts, but
 * for lateness, growth, skipped documents and stalls the worst round counts:
 *
 * - sprites-poll, sprites-stream: feeds of bin/sprites, by long poll and by event stream
 * - ws: the current ws, which is installed in a folder of its own (npm install --prefix
 *   test/bench/transports)
 * - sse: event streams over node:http, written the obvious way
 * - nchan-stream: nginx with nchan (and, where --only names them, nchan-ws and nchan-poll)
 * - where --only names it, sprites-poll-grant: a private feed, by one grant (with sprites-poll; the median of --rounds 5)
 * - epoll-poll and epoll-stream, first in the study, else where --only names them: bare epoll in C, which is the limit
 * - where --only names them, all others of transports/contenders.js, which the study has
 *
 * One program (test/bench/watchers) publishes and watches. Each document carries its version and its due time, from
 * which the program knows the lateness of the last byte and the skipped versions. When server and load have a core
 * each, the load does not sleep while documents are under way: to wake a reader on the same machine costs the sender
 * CPU time, which a reader on another machine would not.
 *
 * Every cell is measured twice (--changes): with all watchers reading, and with a tenth of them reading nothing after their
 * first document. Lateness and missing documents are those of the watchers that read.
 *
 * CPU is the kernel's count for all processes of the server over the measured time. Resident size is of the same
 * processes; its growth is from the time when all are connected to the peak. Sockets is the kernel's memory for
 * all sockets of this machine, both ends of each connection. A stall is the event loop's longest turn, by the wall
 * clock and by the thread's CPU clock: if the first is longer, other processes had the core meanwhile. Load is the
 * load generator's share of its core. With two cores the server has one and the load the other.
 *
 * The study has all contenders, a twentieth of each document changes, and each cell is measured once more with all
 * watchers cut off for two seconds. Then 165 KB a second go to more and more clients (up to --most) until a contender
 * breaks: 1% is missing, p99 is over a second, or resident size has doubled. The number that is found must hold for --held
 * seconds, a minute. It takes two hours, with --changes none one; --no-break leaves the search out.
 *
 * The lines below each table show which bounds hold. Exit status: 0; 1 if a contender failed or, with --strict, a
 * bound does not hold; 2 for a wrong option.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';

import { fileLimit } from '../../lib/base/file-limit.js';
import { canPin, measureFeed, parseNames, availableNames } from './contenders.js';
import {
  breakTable,
  cellsOf,
  CHANGES,
  figuresOf,
  estimatedMost,
  searchBreak,
  SEARCH_WORK,
  summaryTable,
  table,
  combinedRounds,
  verdicts
} from './feed-figures.js';
import { fail, measureInRounds, progress, printVerdicts, describeMachine } from './figures.js';
import { CHANGING_SHARE, contenders, feedContenders } from './transports/contenders.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The servers measured without --only. */
const USUAL_CONTENDERS = ['sprites-poll', 'sprites-stream', 'ws', 'sse', 'nchan-stream'];

/** Open files of a server or the load beside its watchers' sockets. */
const SPARE_FILES = 2000;

/** Most clients for which the load generator has addresses. */
const MAX_CLIENTS = 60000;

/**
 * Warm-up, in seconds: V8 compiles the code, the server stops to make patches that no client takes, and V8 returns
 * unused heap, which it does 8 s after the start.
 */
const WARMUP = 10;

/**
 * The study's warm-up: V8 compiles code that has run often, and heaps grow until their first collection. So the
 * warm-up is fast: `documents` documents a second, with publications at least `pace` seconds apart. With 165 KB to 120
 * clients, ws took 230 µs a document after 12 publications in 6 s, and 95 to 100 µs after 60 publications. And V8
 * shrinks its heap when a process is some ten seconds old: a document of 10 KB took Sprites 23 to 33 µs after 6 s, and
 * 12 to 16 µs after 16 s.
 */
const FAST_WARMUP = { seconds: 16, documents: 8000, pace: 0.15 };

/**
 * A search warms up at the measured rate: a higher rate would break a contender that nearly breaks. A new connection's
 * windows grow with its traffic: after 3 publications bare epoll breaks with fewer clients than after 5.
 */
const WARMUP_SEARCH = { warmup: 6 };

/** What the study does besides: a client whose connection was ended by the server comes again after a second. */
const STUDY_OPTIONS = { changing: CHANGING_SHARE, again: 1 };

/** What the study measures first: where they break, the load generator does. */
const BARE_CONTENDERS = ['epoll-poll', 'epoll-stream'];

const titleOf = (name) => feedContenders[name].title;

function readOptions() {
  const refuse = (message) => refuseUsage(import.meta.url, message);
  const hasOption = (name) => process.argv.includes(name);
  const [usual, changes] = hasOption('--study')
    ? [[...BARE_CONTENDERS, ...Object.keys(contenders)], Object.keys(CHANGES)]
    : [USUAL_CONTENDERS, ['none', 'stalled']];
  const options = takeValues(import.meta.url, {
    ...{ rounds: [1, 1, 100], seconds: [hasOption('--short') ? 3 : 6, 0.1], held: [60, 0.1] },
    ...{
      most: [MAX_CLIENTS, 1],
      short: false,
      study: false,
      only: usual.join(),
      changes: changes.join()
    },
    ...{ cells: '', 'no-break': false, json: '', strict: false }
  });
  const names = parseNames(options.only, feedContenders, import.meta.url);
  const most = Math.min(options.most, fileLimit() - SPARE_FILES, MAX_CLIENTS);
  if (most < 1) refuse('clients want as many files');
  const cells = cellsOf({
    ...options,
    changes: parseNames(options.changes, CHANGES, import.meta.url)
  }).filter(({ name }) => name.startsWith(options.cells));
  if (cells.length === 0) refuse('there is no such cell');
  return { ...options, names, most, cells };
}

/** @returns {object} options of the load: the publications of the warm-up, and the seconds between them */
function warmupOf({ connections, every }, { study }) {
  if (!study) return { warmup: Math.ceil(WARMUP / every) };
  const interval = Math.max(FAST_WARMUP.pace, connections / FAST_WARMUP.documents);
  return { warmup: Math.ceil(FAST_WARMUP.seconds / interval), 'warmup-every': interval };
}

/** Measures one contender in one cell. @returns {Promise<object>} its figures, or {failed} */
async function measure(contender, cell, pin, loadOptions) {
  const { connections, bytes, every, seconds, grow = 0, stalled = 0, cut = 0 } = cell;
  try {
    const work = { connections, bytes, every, seconds, grow, stalled, cut, ...loadOptions };
    const { protocol } = contender;
    const [result, turns] = await measureFeed(contender, pin, { protocol, ...work });
    return figuresOf(result, turns);
  } catch (error) {
    return { failed: error.message.slice(0, 200) };
  }
}

/** Searches the number of clients at which a contender breaks; `row` has the figures with the first number. */
const search = (name, { most, seconds, held }, pin, row) =>
  searchBreak(
    (connections, length) => {
      progress(`${name}: ${connections} clients for ${length} s`);
      const cell = { ...SEARCH_WORK, connections, seconds: length };
      return measure(feedContenders[name], cell, pin, { ...STUDY_OPTIONS, ...WARMUP_SEARCH });
    },
    {
      first: Math.min(SEARCH_WORK.connections, most),
      most,
      seconds,
      held,
      guess: estimatedMost(row)
    }
  );

function describeRun(pin, { seconds, rounds }) {
  const loads = loadavg().map((load) => load.toFixed(1));
  return `${rounds} × ${seconds} s a cell; ${describeMachine(pin)} Load average ${loads.join(' ')}.`;
}

/** Measures a cell, and prints its findings. */
async function measureCell(cell, names, pin, options) {
  const how = { ...(options.study && STUDY_OPTIONS), ...warmupOf(cell, options) };
  const rounds = await measureInRounds(
    names,
    options.rounds,
    (name) => measure(feedContenders[name], cell, pin, how),
    `${cell.name}, `
  );
  const rows = Object.fromEntries(names.map((name) => [name, combinedRounds(rounds[name])]));
  // Clients that were cut off may have something twice.
  const cellVerdicts = cell.cut ? [] : verdicts(cell, rows);
  const findings = { ...cell, rows, rounds, held: cellVerdicts };
  console.log(`\n## ${cell.name}\n\n${table(findings, titleOf)}\n`);
  printVerdicts(options, cellVerdicts);
  if (Object.values(rows).some(({ failed }) => failed !== undefined)) process.exitCode = 1;
  return findings;
}

async function main() {
  const { json: file, ...options } = readOptions();
  const pin = canPin();
  const names = availableNames(options.names, feedContenders);
  const study = { cells: [], breaks: {}, most: options.most, held: options.held };
  // Saves after each step: a study of two hours may be interrupted.
  const save = () => {
    study.about = describeRun(pin, options);
    if (file) writeFileSync(file, `${JSON.stringify(study, null, 2)}\n`);
  };
  for (const cell of options.cells) {
    if (cell.connections + SPARE_FILES > fileLimit()) {
      console.error(`bench: ${cell.name} is left out: ulimit -n is ${fileLimit()}`);
      continue;
    }
    study.cells.push(await measureCell(cell, names, pin, options));
    save();
  }
  for (const name of options.study && !options.noBreak ? names : []) {
    const row = study.cells.find((cell) => cell.name === SEARCH_WORK.name)?.rows[name];
    study.breaks[name] = await search(name, options, pin, row);
    save();
  }
  progress('');
  if (Object.keys(study.breaks).length > 0) {
    console.log(`\n## ${SEARCH_WORK.bytes / 1000} KB a second, until it breaks\n`);
    console.log(breakTable(study, titleOf));
  }
  if (options.study) {
    console.log(`\n## All in one: server CPU a document in µs; p99 in ms\n`);
    console.log(summaryTable(study, titleOf));
  }
  console.log(`\n${describeRun(pin, options)}`);
}

main().catch(fail);
