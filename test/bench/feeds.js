/**
 * One document to many, side by side: `npm run bench:feeds`; with --study the transport study.
 *
 *     node test/bench/feeds.js [--short] [--study] [--only ws,sprites-poll] [--cells 165] [--changes none,stalled,cut]
 *                              [--seconds 5] [--rounds 3] [--most CLIENTS] [--held SECONDS] [--no-break]
 *                              [--json FILE] [--strict]
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
 * - epoll-poll and epoll-stream, first in the study, else where --only names them: bare epoll in C, which is the limit
 * - where --only names them, all others of transports/contenders.js, which the study has
 *
 * One program (test/bench/watchers) publishes and watches. Each document carries its version and the time it was due,
 * so the program knows how late the last byte came and which versions were skipped. Where server and load have a core
 * each, the load does not sleep while documents are under way: waking a reader on the same machine costs the sender
 * CPU time, which a reader on another machine would not.
 *
 * Every cell is measured twice (--changes): with all watchers reading, and with a tenth of them reading nothing after their
 * first document. Lateness and missing documents are those of the watchers that read.
 *
 * CPU is what the kernel has counted for all processes of the server over the measured time. Resident size is that of
 * the same processes; its growth is from when all are connected to the highest. Sockets is the kernel's memory for
 * all sockets of this machine, both ends of each connection. A stall is the event loop's longest turn, by the wall
 * clock and by the thread's own CPU clock: where the first is longer, other processes had the core meanwhile. Load is the
 * load generator's share of its core. Where there are two cores the server has one and the load the other.
 *
 * The study has all contenders, a twentieth of each document changes, and each cell is measured once more with all
 * watchers cut off for two seconds. Then 165 KB a second go to more and more clients (up to --most) until a contender
 * breaks: 1% is missing, p99 is over a second, or resident size has doubled. The number that is found must hold for --held
 * seconds, a minute. It takes two hours, with --changes none one; --no-break leaves the search out.
 *
 * The lines under each table say which promises hold. Exit status: 0; 1 where a contender failed, or,
 * with --strict, where a figure does not hold; 2 on a wrong option.
 */
import { writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';

import { fileLimit } from '../../lib/base/file-limit.js';
import { canPin, measureFeed, namesIn, thoseHere } from './contenders.js';
import {
  breakTable,
  cellsOf,
  CHANGES,
  figuresOf,
  mostOf,
  searchBreak,
  STEPPED,
  summaryTable,
  table,
  together,
  verdicts
} from './feed-figures.js';
import { fail, inRounds, progress, tellHeld, whereOf } from './figures.js';
import { CHANGING, contenders, feedContenders } from './transports/contenders.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The servers that are measured without --only. */
const USUAL = ['sprites-poll', 'sprites-stream', 'ws', 'sse', 'nchan-stream'];

/** Files a server or the load needs besides its watchers' sockets. */
const SPARE_FILES = 2000;

/** More clients than this the load generator has no addresses for. */
const MOST = 60000;

/**
 * Seconds of load before the measured ones: V8 compiles the code, the server stops making patches that no client takes,
 * and V8 gives back unused heap, which it does 8 s after the start.
 */
const WARMUP = 10;

/**
 * The study's warm-up: V8 compiles what has run often, and heaps grow until they are collected first. So it is
 * hasty: publications make so many documents a second, but are at least `pace` seconds apart. At
 * 165 KB to 120 ws took 230 µs a document after 12 publications in 6 s, 95 and 100 after 60. And V8 shrinks its
 * heap when a process is some ten seconds old: a document of 10 KB took Sprites 23 to 33 µs after 6 s, 12 to 16 after 16.
 */
const HASTY = { seconds: 16, documents: 8000, pace: 0.15 };

/**
 * In a search it is as what is measured: more would break a contender that nearly breaks. A fresh connection's windows
 * grow with what comes: after 3 publications bare epoll breaks with fewer clients than after 5.
 */
const WARMUP_SEARCH = { warmup: 6 };

/** What the study does besides: a client whose connection was ended by the server comes again after a second. */
const STUDY = { changing: CHANGING, again: 1 };

/** What the study measures first: where they break, the load generator does. */
const BARE = ['epoll-poll', 'epoll-stream'];

const titleOf = (name) => feedContenders[name].title;

function readOptions() {
  const usage = (message) => refuseUsage(import.meta.url, message);
  const is = (name) => process.argv.includes(name);
  const [all, changes] = is('--study')
    ? [[...BARE, ...Object.keys(contenders)], Object.keys(CHANGES)]
    : [USUAL, ['none', 'stalled']];
  const options = takeValues(import.meta.url, {
    ...{ rounds: [1, 1, 100], seconds: [is('--short') ? 3 : 6, 0.1], held: [60, 0.1] },
    ...{ most: [MOST, 1], short: false, study: false, only: all.join(), changes: changes.join() },
    ...{ cells: '', 'no-break': false, json: '', strict: false }
  });
  const names = namesIn(options.only, feedContenders, import.meta.url);
  const most = Math.min(options.most, fileLimit() - SPARE_FILES, MOST);
  if (most < 1) usage('clients want as many files');
  const cells = cellsOf({
    ...options,
    changes: namesIn(options.changes, CHANGES, import.meta.url)
  }).filter(({ name }) => name.startsWith(options.cells));
  if (cells.length === 0) usage('there is no such cell');
  return { ...options, names, most, cells };
}

/** @returns {object} of the load: how many publications come before what is measured, and how far apart */
function warmupOf({ connections, every }, { study }) {
  if (!study) return { warmup: Math.ceil(WARMUP / every) };
  const apart = Math.max(HASTY.pace, connections / HASTY.documents);
  return { warmup: Math.ceil(HASTY.seconds / apart), 'warmup-every': apart };
}

/** Runs one contender in one cell. @returns {Promise<object>} its figures, {failed} where there are none */
async function measure(contender, of, pin, how) {
  const { connections, bytes, every, seconds, grow = 0, stalled = 0, cut = 0 } = of;
  try {
    const work = { connections, bytes, every, seconds, grow, stalled, cut, ...how };
    const { protocol } = contender;
    const [result, turns] = await measureFeed(contender, pin, { protocol, ...work });
    return figuresOf(result, turns);
  } catch (error) {
    return { failed: error.message.slice(0, 200) };
  }
}

/** The search for the number at which one breaks; `row` is of the same work with the first number. */
const search = (name, { most, seconds, held }, pin, row) =>
  searchBreak(
    (connections, length) => {
      progress(`${name}: ${connections} clients for ${length} s`);
      const rung = { ...STEPPED, connections, seconds: length };
      return measure(feedContenders[name], rung, pin, { ...STUDY, ...WARMUP_SEARCH });
    },
    { first: Math.min(STEPPED.connections, most), most, seconds, held, guess: mostOf(row) }
  );

function describe(pin, { seconds, rounds }) {
  const loads = loadavg().map((load) => load.toFixed(1));
  return `${rounds} × ${seconds} s a cell; ${whereOf(pin)} Load average ${loads.join(' ')}.`;
}

/** Measures a cell, and says what it has found. */
async function measureCell(of, names, pin, options) {
  const how = { ...(options.study && STUDY), ...warmupOf(of, options) };
  const rounds = await inRounds(
    names,
    options.rounds,
    (name) => measure(feedContenders[name], of, pin, how),
    `${of.name}, `
  );
  const rows = Object.fromEntries(names.map((name) => [name, together(rounds[name])]));
  // Clients that were cut off may have something twice.
  const held = of.cut ? [] : verdicts(of, rows);
  const cell = { ...of, rows, rounds, held };
  console.log(`\n## ${of.name}\n\n${table(cell, titleOf)}\n`);
  tellHeld(options, held);
  if (Object.values(rows).some(({ failed }) => failed !== undefined)) process.exitCode = 1;
  return cell;
}

async function main() {
  const { json: file, ...options } = readOptions();
  const pin = canPin();
  const names = thoseHere(options.names, feedContenders);
  const study = { cells: [], breaks: {}, most: options.most, held: options.held };
  // At once: what takes two hours may be ended before its end.
  const save = () => {
    study.about = describe(pin, options);
    if (file) writeFileSync(file, `${JSON.stringify(study, null, 2)}\n`);
  };
  for (const of of options.cells) {
    if (of.connections + SPARE_FILES > fileLimit()) {
      console.error(`bench: ${of.name} is left out: ulimit -n is ${fileLimit()}`);
      continue;
    }
    study.cells.push(await measureCell(of, names, pin, options));
    save();
  }
  for (const name of options.study && !options.noBreak ? names : []) {
    const row = study.cells.find((cell) => cell.name === STEPPED.name)?.rows[name];
    study.breaks[name] = await search(name, options, pin, row);
    save();
  }
  progress('');
  if (Object.keys(study.breaks).length > 0) {
    console.log(`\n## ${STEPPED.bytes / 1000} KB a second, until it breaks\n`);
    console.log(breakTable(study, titleOf));
  }
  if (options.study) {
    console.log(`\n## All in one: server CPU a document in µs; p99 in ms\n`);
    console.log(summaryTable(study, titleOf));
  }
  console.log(`\n${describe(pin, options)}`);
}

main().catch(fail);
