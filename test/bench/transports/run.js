/**
 * The transport study: one document to many, by every contender: `npm run bench:transports`.
 *
 *     node test/bench/transports/run.js [--short] [--plain] [--only ws,sprites-poll]
 *                                       [--cells 165] [--seconds 5] [--rounds 2] [--no-break]
 *                                       [--json FILE] [--resume] [--minutes 30]
 *                                       [--most CLIENTS] [--held SECONDS]
 *
 * The contenders run one after the other, each in a process of its own. One load generator
 * (test/bench/watchers) watches each with as many clients as a cell says (cells.js) and publishes to it,
 * then with more and more clients until it breaks. contenders.js has the contenders; those whose packages
 * are not installed are named and left out (npm install --prefix test/bench/transports).
 *
 * All cells are measured in one round, then all again in the next, --rounds of them (cells.js): a
 * machine that is slow for some minutes is so for some contenders in one round only.
 *
 * The load generator's own limit is measured first, with a server in C that does nothing else.
 * Every publisher does the same: the whole document, with a version and a time in it, by a request.
 * CPU is the kernel's account of all processes of a contender over the measured time.
 *
 * --seconds is how long a cell is measured, at least; --most bounds the clients, and --held is how
 * long the number must hold at which the search ends: a minute.
 *
 * --short takes some four minutes: two cells, none of them stalled or cut off, one round, and no search
 * for the number at which one breaks. --plain leaves out the cells that are stalled or cut off: an hour in place of two.
 *
 * What is measured is written to --json FILE as soon as it is. With --minutes no cell is begun after
 * so many, and with --resume a study goes on where FILE ends: two hours are longer than most machines
 * are left alone. A cell that was begun is measured to its end, all contenders one after the
 * other. Nothing else may have changed meanwhile: the file says on which machine, with which options
 * and at which commit it was begun, and another one is refused.
 *
 * Exit status: 0; 1 where a contender failed in a cell; 2 on a wrong option; 3 where --minutes ended
 * it before its end.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg, totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';

import { fileLimit } from '../../../lib/base/file-limit.js';
import { commandLine } from '../../../lib/report/words.js';
import { canPin, measureFeed, namesIn, thoseHere } from '../contenders.js';
import { answerHelp, refuseUsage, takeValues } from '../../support/documents.js';
import { fail, machineOf, progress } from '../figures.js';
import {
  addRound,
  cellsOf,
  CHANGING,
  HELD,
  mostOf,
  rowOf,
  searchBreak,
  STEPPED,
  STEPPED_CELL
} from './cells.js';
import { bare, barePoll, contenders } from './contenders.js';
import { breakTable, cellTable, limitText, summaryTable, verdict } from './tables.js';

answerHelp(import.meta.url);

/** Files a server or the load needs besides its clients' sockets. */
const SPARE_FILES = 2000;

/** More clients than this the load generator has no addresses for. */
const MOST = 60000;

/** What a study does where its options don't say otherwise: seconds a cell, and rounds. */
const LONG = { seconds: 5, rounds: 2 };
const SHORT = { seconds: 3, rounds: 1 };

/** A cell with no more clients than there may be; its name says so. */
function cappedAt(of, most) {
  if (of.connections <= most) return of;
  return { ...of, name: `${of.name} (but ${most})`, connections: most };
}

/**
 * Reads the options; ends the program with status 2 where one is wrong.
 *
 * @returns {object} `names` of contenders, `cells`, `seconds`, `rounds`, `most` clients, `held` and
 *     `minutes` as numbers, `search`: whether one is made; short, resume and json as they came
 */
function readOptions() {
  const usage = (message) => refuseUsage(import.meta.url, message);
  const usual = process.argv.includes('--short') ? SHORT : LONG;
  const {
    only,
    cells: begin,
    noBreak,
    ...options
  } = takeValues(import.meta.url, {
    ...{ seconds: [usual.seconds, 0.1], rounds: [usual.rounds, 1], most: [MOST, 1] },
    ...{ held: [HELD, 0.1], minutes: [Infinity, 0.01, Infinity] },
    ...{ short: false, plain: false, only: Object.keys(contenders).join(','), cells: '' },
    ...{ 'no-break': false, resume: false, json: '' }
  });
  const names = namesIn(only, contenders, import.meta.url);
  const most = Math.min(options.most, fileLimit() - SPARE_FILES, MOST);
  if (most < 1) usage('clients want as many files');
  if (options.resume && !options.json) usage('--resume wants the --json FILE to go on with');
  const cells = cellsOf(options)
    .filter(({ name }) => name.startsWith(begin))
    .map((of) => cappedAt(of, most));
  if (cells.length === 0) usage('there is no such cell');
  return { ...options, names, cells, most, search: !options.short && !noBreak };
}

/** Options that don't say what is measured: where it is written, and how much of it at a time. */
const ASIDE = ['--json', '--minutes'];

/**
 * @param {string[]} [all] arguments of run.js
 * @returns {string} the command that measures the same
 */
export function commandOf(all = process.argv.slice(2)) {
  const saying = all.filter(
    (one, i) =>
      one !== '--resume' && !ASIDE.includes(one.split('=')[0]) && !ASIDE.includes(all[i - 1])
  );
  const command = 'npm run bench:transports';
  return saying.length > 0 ? `${command} -- ${commandLine(saying)}` : command;
}

/** Seconds after which a client whose connection was ended by the server comes again. */
const AGAIN = 1;

/**
 * The warm-up: V8 compiles what has run often, and heaps grow until they are collected first. So it is
 * hasty: publications make so many documents a second, but are at least `pace` seconds apart. At
 * 165 KB to 120 ws took 230 µs a document after 12 publications in 6 s, 95 and 100 after 60. And V8 shrinks its
 * heap when a process is some ten seconds old: a document of 10 KB took Sprites 23 to 33 µs after 6 s, 12 to 16 after 16.
 */
const WARMUP = { seconds: 16, short: 2, documents: 8000, pace: 0.15 };

/**
 * In a search it is as what is measured: more would break a contender that nearly breaks. A fresh connection's windows
 * grow with what comes: after 3 publications bare epoll breaks with fewer clients than after 5.
 */
const WARMUP_SEARCH = { warmup: 6 };

/** @returns {{warmup: number, 'warmup-every': number}} publications, seconds: the load's options */
function warmupOf({ connections }, seconds) {
  const every = Math.max(WARMUP.pace, connections / WARMUP.documents);
  return { warmup: Math.ceil(seconds / every), 'warmup-every': every };
}

/** Runs one contender in one cell. @returns {Promise<object>} a row, {failed} where it could not */
async function measure(contender, of, { pin, warmup }) {
  try {
    const { protocol } = contender;
    const work = { ...of, ...warmup(of), protocol, changing: CHANGING, again: AGAIN };
    delete work.name;
    const [result, turns] = await measureFeed(contender, pin, work);
    return rowOf(of, result, turns);
  } catch (error) {
    return { failed: error.message.slice(0, 200) };
  }
}

/** The search for the number at which one breaks; `row` is of the same work with the first number. */
function search(contender, options, how, row, say) {
  const { first, ...of } = STEPPED;
  const { most, seconds, held } = options;
  return searchBreak(
    (connections, length) => {
      say(`${connections} clients for ${length} s`);
      const rung = { ...of, connections, seconds: length };
      return measure(contender, rung, { ...how, warmup: () => WARMUP_SEARCH });
    },
    { first: Math.min(first, most), most, seconds, held, guess: mostOf(row) }
  );
}

/** What was measured, and where. */
function machine(pin) {
  let commit = 'unknown';
  try {
    commit = execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim();
  } catch {
    // Not every copy is a clone.
  }
  return {
    date: new Date().toISOString().slice(0, 16).replace('T', ' '),
    ...machineOf(pin),
    memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
    commit,
    loadBefore: loadavg()[0]
  };
}

/** A study in which nothing was measured yet. */
function emptyStudy(options, pin, here, missing) {
  return {
    machine: machine(pin),
    command: commandOf(),
    versions: [...new Set(here.map((name) => contenders[name].version()))],
    missing,
    seconds: options.seconds,
    rounds: options.rounds,
    most: options.most,
    held: options.held,
    limit: {},
    cells: [],
    breaks: {},
    minutes: 0
  };
}

/** The study to go on with: the one in the file, where that was begun by the same means. */
function begunStudy(options, fresh) {
  if (!options.resume || !existsSync(options.json)) return fresh;
  const begun = JSON.parse(readFileSync(options.json, 'utf8'));
  const meansOf = ({ command, versions, machine: { processor, memory, system, pinned, commit } }) =>
    JSON.stringify([command, versions, processor, memory, system, pinned, commit], null, 2);
  if (meansOf(begun) !== meansOf(fresh)) {
    refuseUsage(
      import.meta.url,
      `${options.json} was begun otherwise:\n${meansOf(begun)}\nthis is:\n${meansOf(fresh)}\nbegin a new file`
    );
  }
  return begun;
}

/** All cells, as often as there are rounds. @returns {[number, object][]} the round, from 1, and the cell */
const roundsOf = ({ rounds, cells }) =>
  Array.from({ length: rounds }, (_, i) => cells.map((of) => [i + 1, of])).flat();

/** What is to be measured, in order; each step leaves its figures in the study. */
function* stepsOf(study, options, how, here) {
  for (const of of options.cells.filter(({ stalled, cut }) => !stalled && !cut)) {
    if (of.name in study.limit) continue;
    yield async () => {
      progress(`the load generator itself: ${of.name}`);
      const { cpu } = await measure(barePoll, of, how);
      study.limit[of.name] = { ...(await measure(bare, of, how)), poll: cpu };
    };
  }
  if (options.search && study.bareBreak === undefined) {
    yield async () => {
      const row = study.limit[STEPPED_CELL];
      study.bareBreak = await search(bare, options, how, row, (what) =>
        progress(`the load generator itself: ${what}`)
      );
    };
  }
  for (const [round, of] of roundsOf(options)) {
    if (study.cells.find(({ name }) => name === of.name)?.rounds.length >= round) continue;
    yield async () => {
      const rows = {};
      for (const name of here) {
        progress(`round ${round} of ${options.rounds}, ${of.name}: ${name}`);
        rows[name] = await measure(contenders[name], of, how);
      }
      const cell = addRound(study.cells, of, rows);
      progress('');
      if (round === options.rounds) console.log(cellTable(cell));
    };
  }
  for (const name of options.search ? here : []) {
    if (name in study.breaks) continue;
    yield async () => {
      const row = study.cells.find((cell) => cell.name === STEPPED_CELL)?.rows[name];
      study.breaks[name] = await search(contenders[name], options, how, row, (what) =>
        progress(`${name}: ${what}`)
      );
    };
  }
}

async function main() {
  const options = readOptions();
  const pin = canPin();
  const seconds = options.short ? WARMUP.short : WARMUP.seconds;
  const how = { pin, warmup: (of) => warmupOf(of, seconds) };
  const { here, missing } = thoseHere(options.names, contenders);
  const study = begunStudy(options, emptyStudy(options, pin, here, missing));

  const before = study.minutes;
  const began = Date.now();
  for (const step of stepsOf(study, options, how, here)) {
    if (study.minutes - before >= options.minutes) {
      progress('');
      console.log(`${study.minutes.toFixed(0)} minutes so far; go on with --resume`);
      process.exitCode = 3;
      return;
    }
    await step();
    study.minutes = before + (Date.now() - began) / 60000;
    if (options.json) writeFileSync(options.json, `${JSON.stringify(study, null, 2)}\n`);
  }
  progress('');
  console.log(limitText(study));
  if (options.search) console.log(breakTable(study));
  console.log(summaryTable(study));
  console.log(`\n${verdict(study)}`);
  study.machine.loadAfter = loadavg()[0];
  console.log(`\n${study.minutes.toFixed(0)} minutes; ${study.versions.join('; ')}`);
  console.log(Object.values(study.machine).join('; '));
  if (options.json) writeFileSync(options.json, `${JSON.stringify(study, null, 2)}\n`);
  const failed = study.cells.flatMap(({ rows }) => Object.values(rows)).filter((row) => row.failed);
  if (failed.length > 0) process.exitCode = 1;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main().catch(fail);
