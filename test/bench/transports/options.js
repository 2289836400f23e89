/**
 * The options of run.js, whose opening comment tells what each is for.
 */
import { fileLimit } from '../../../lib/base/file-limit.js';
import { commandLine } from '../../../lib/report/words.js';
import { refuseUsage, takeValues } from '../../support/documents.js';
import { namesIn } from '../contenders.js';
import { cellsOf, HELD } from './cells.js';
import { contenders } from './contenders.js';

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
 * Reads them; ends the program with status 2 where one is wrong.
 *
 * @param {string} url run.js's own `import.meta.url`
 * @returns {object} `names` of contenders, `cells`, `seconds`, `rounds`, `most` clients, `held` and
 *     `minutes` as numbers, `search`: whether one is made; short, resume and json as they came
 */
export function readOptions(url) {
  const usage = (message) => refuseUsage(url, message);
  const usual = process.argv.includes('--short') ? SHORT : LONG;
  const {
    only,
    cells: begin,
    noBreak,
    ...options
  } = takeValues(url, {
    ...{ seconds: [usual.seconds, 0.1], rounds: [usual.rounds, 1], most: [MOST, 1] },
    ...{ held: [HELD, 0.1], minutes: [Infinity, 0.01, Infinity] },
    ...{ short: false, plain: false, only: Object.keys(contenders).join(','), cells: '' },
    ...{ 'no-break': false, resume: false, json: '' }
  });
  const names = namesIn(only, contenders, url);
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
