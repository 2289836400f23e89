/**
 * The options of run.js, whose opening comment tells what each is for.
 */
import { fileLimit } from '../../../lib/base/file-limit.js';
import { refuseUsage, takeOptions } from '../../support/documents.js';
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
 *     `minutes` as numbers, `search`: whether one is made; short, resume, json and report as they came
 */
export function readOptions(url) {
  const usage = (message) => refuseUsage(url, message);
  const values = takeOptions(url, {
    short: { type: 'boolean', default: false },
    only: { type: 'string', default: Object.keys(contenders).join(',') },
    cells: { type: 'string', default: '' },
    seconds: { type: 'string' },
    rounds: { type: 'string' },
    most: { type: 'string' },
    held: { type: 'string', default: String(HELD) },
    'no-break': { type: 'boolean', default: false },
    resume: { type: 'boolean', default: false },
    minutes: { type: 'string', default: 'Infinity' },
    json: { type: 'string' },
    report: { type: 'string' }
  });
  const { short, resume, json, report } = values;
  const usual = short ? SHORT : LONG;
  const names = values.only.split(',');
  const unknown = names.find((name) => !(name in contenders));
  if (unknown !== undefined) usage(`there is no contender ${unknown}`);
  const seconds = Number(values.seconds ?? usual.seconds);
  if (!(seconds > 0)) usage('--seconds wants a number');
  const rounds = Number(values.rounds ?? usual.rounds);
  if (!(Number.isInteger(rounds) && rounds >= 1)) usage('--rounds wants a whole number');
  const most = Math.min(Number(values.most ?? Infinity), fileLimit() - SPARE_FILES, MOST);
  if (!(most >= 1)) usage('--most wants a number of clients, and as many files');
  const held = Number(values.held);
  if (!(held > 0)) usage('--held wants seconds');
  const minutes = Number(values.minutes);
  if (!(minutes > 0)) usage('--minutes wants a number');
  if (resume && !json) usage('--resume wants the --json FILE to go on with');
  const cells = cellsOf({ short, seconds })
    .filter(({ name }) => name.startsWith(values.cells))
    .map((of) => cappedAt(of, most));
  if (cells.length === 0) usage('there is no such cell');
  const search = !short && !values['no-break'];
  return {
    names,
    cells,
    seconds,
    rounds,
    most,
    held,
    minutes,
    search,
    short,
    resume,
    json,
    report
  };
}

/** Options that don't say what is measured: where it is written, and how much of it at a time. */
const ASIDE = ['--json', '--report', '--minutes'];

/** What a shell takes apart stands in quotes. */
const quoted = (one) => (/^[\w.,=:/-]+$/.test(one) ? one : `'${one}'`);

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
  return saying.length > 0 ? `${command} -- ${saying.map(quoted).join(' ')}` : command;
}
