/**
 * The study as text, in Markdown.
 */
import { number, tableOf, tenth, whole } from '../figures.js';
import { areApart, STEPPED } from './cells.js';
import { contenders, isDelta, isOurs } from './contenders.js';

const MEGABYTE = 2 ** 20;

const count = (value) => number(value, whole);
const megabytes = (bytes) => tenth.format(bytes / MEGABYTE);
const percent = (share) => `${tenth.format(share * 100)}%`;

/** What the clients that were cut off got. */
function cutText({ all, newest, next, wait }) {
  const came = all + newest + next;
  if (came === 0) return 'nothing came';
  const parts = [
    [all, 'all they missed'],
    [newest, 'the newest'],
    [next, 'nothing before the next']
  ].filter(([clients]) => clients > 0);
  const texts = parts.map(([clients, what]) => `${percent(clients / came)} ${what}`);
  return `${texts.join(', ')}, after ${count(wait)} ms`;
}

/** From the lowest round to the highest. */
function ranged({ ranges }, figure) {
  const [low, high] = ranges[figure].map((value) => number(value));
  return low === high ? low : `${low}–${high}`;
}

/**
 * Of its core, what the load generator's work must take to be told from its waiting, which is subtracted: what takes less is
 * within the noise.
 */
const NOISE = 0.005;

/** What of a row is in a cell's table. */
const COLUMNS = {
  server: ({ name }) => contenders[name].title,
  'CPU a document': (row) => `${ranged(row, 'cpu')} µs`,
  'resident (growth)': (row) => `${megabytes(row.resident)} MB (+${megabytes(row.growth)})`,
  sockets: (row) => `${megabytes(row.sockets)} MB`,
  'late p50': (row) => `${number(row.p50)} ms`,
  p99: (row) => `${ranged(row, 'p99')} ms`,
  'p99.9': (row) => `${number(row.p999)} ms`,
  replaced: (row) => count(row.skipped),
  missed: (row) => `${count(row.missing)}${row.missing > 0 ? ` (${percent(row.missed)})` : ''}`,
  load: (row) => (row.load < NOISE ? `< ${percent(NOISE)}` : percent(row.load))
};
const CUT_COLUMN = { 'reconnected clients got': ({ cut }) => cutText(cut) };

const named = (rows) => Object.entries(rows).map(([name, row]) => ({ name, ...row }));

/** @param {{name: string, rows: Record<string, object>}} cell @returns {string} */
export function cellTable({ name, rows, cut }) {
  const columns = { ...COLUMNS, ...(cut && CUT_COLUMN) };
  return `\n## ${name}\n\n${tableOf(columns, named(rows))}`;
}

/** Where one broke, in words. */
const breaksAt = ({ breaks }, most) =>
  breaks === null ? `more than ${count(most)}` : count(breaks);

/** @returns {string} */
export function breakTable({ breaks, most, held }) {
  const columns = {
    server: COLUMNS.server,
    [`held for ${held} s`]: ({ holds }) => count(holds),
    'breaks at': (found) => breaksAt(found, most),
    by: ({ why }) => why ?? '-'
  };
  const title = `\n## ${STEPPED.bytes / 1000} KB a second, until it breaks\n`;
  return `${title}\n${tableOf(columns, named(breaks))}`;
}

/** What the load generator's work takes, and what it could do with a whole core. */
function loadText({ loadCpu, load }) {
  if (!(loadCpu > 0 && load >= NOISE)) {
    return `its own work is within the noise, less than ${percent(NOISE)} of its core, so that says no limit`;
  }
  return (
    `${number(loadCpu)} µs of its own a document, ${percent(load)} of its ` +
    `core: at most ${count(1e6 / loadCpu)} documents a second`
  );
}

/** @returns {string} what the load generator itself can do */
export function limitText({ limit, bareBreak, most }) {
  const lines = ['\n## The load generator itself, with bare epoll in C\n'];
  for (const [name, row] of Object.entries(limit)) {
    const told = () =>
      `${loadText(row)}; p99 ${number(row.p99)} ms, the server ${number(row.cpu)} µs` +
      (row.poll > 0 ? `, by long poll ${number(row.poll)}` : '');
    lines.push(`- ${name}: ${row.failed ?? told()}`);
  }
  if (bareBreak) {
    lines.push(
      `- ${STEPPED.bytes / 1000} KB a second: holds with ${count(bareBreak.holds)}, breaks at ` +
        `${breaksAt(bareBreak, most)}${bareBreak.why ? `: ${bareBreak.why}` : ''}`
    );
  }
  return lines.join('\n');
}

/**
 * One line a contender, over the cells without stalled or cut off clients: the table of test/README.md. Empty where
 * none of these was measured.
 */
export function summaryTable({ cells, breaks, most }) {
  const plain = cells.filter(({ stalled, cut }) => !stalled && !cut);
  if (plain.length === 0) return '';
  const ofCell = ({ name, rows }) => [
    name,
    ({ name }) => {
      const { failed, cpu, p99 } = rows[name];
      return failed ?? `${number(cpu)}; ${number(p99)}`;
    }
  ];
  const columns = {
    server: COLUMNS.server,
    ...Object.fromEntries(plain.map(ofCell)),
    ...(Object.keys(breaks).length > 0 && {
      'breaks at': ({ name }) => breaksAt(breaks[name], most)
    })
  };
  const names = Object.keys(plain[0].rows).map((name) => ({ name }));
  const title = '\n## All in one: server CPU a document in µs; p99 in ms\n';
  return `${title}\n${tableOf(columns, names)}`;
}

/** Which contender wins what, in words. */

/** What is compared in each cell: a figure of its rows, one with a range. */
export const FIGURES = [
  { what: 'CPU a document', figure: 'cpu', say: (value) => `${number(value)} µs` },
  { what: 'lateness at p99', figure: 'p99', say: (value) => `${number(value)} ms` },
  { what: 'resident size', figure: 'resident', say: (value) => `${number(value / 2 ** 20)} MB` }
];

/** By what factor one value is better than another. */
const smaller = (one, other) => other / one;
const larger = (one, other) => one / other;

/** The best of some, [name, value], or undefined. */
function best(values, wanted, gain) {
  return Object.entries(values)
    .filter(([name, value]) => Number.isFinite(value) && value > 0 && wanted(name))
    .toSorted(([, a], [, b]) => gain(b, a) - gain(a, b))[0];
}

/** Ours beside theirs, both sending whole documents; null where one of them has no figure. */
function compare(values, where, gain, rangeOf) {
  const ours = best(values, (name) => isOurs(name) && !isDelta(name), gain);
  const theirs = best(values, (name) => !isOurs(name), gain);
  if (!ours || !theirs) return null;
  const lead = gain(theirs[1], ours[1]);
  const leader = lead > 1 ? 'theirs' : 'ours';
  const winner = areApart(rangeOf(ours[0]), rangeOf(theirs[0])) ? leader : 'none';
  return { where, winner, lead, ours, theirs };
}

const successful = (rows) => Object.entries(rows).filter(([, row]) => row.failed === undefined);

/**
 * @param {object} study of run.js
 * @returns {{what: string, say: (value: number) => string, list: object[]}[]} for each figure, which was
 *     better in each cell
 */
function comparisons(study) {
  const figures = FIGURES.map(({ what, figure, say }) => ({
    what,
    say,
    list: study.cells
      .map(({ name, rows }) => {
        const values = successful(rows).map(([contender, row]) => [contender, row[figure]]);
        const rangeOf = (contender) => rows[contender].ranges[figure];
        return compare(Object.fromEntries(values), name, smaller, rangeOf);
      })
      .filter((found) => found !== null)
  }));
  const held = Object.entries(study.breaks).map(([name, { holds }]) => [name, holds]);
  const rangeOf = (name) => [study.breaks[name].holds, study.breaks[name].holds];
  const clients = compare(Object.fromEntries(held), 'the search', larger, rangeOf);
  if (clients === null) return figures;
  const say = (value) => `${count(value)} clients`;
  return [...figures, { what: 'the number of clients held', say, list: [clients] }];
}

const title = (name) => contenders[name].title;

/** @param {object} study @returns {string} where another one wins, and where Sprites does */
export function verdict(study) {
  const lost = [];
  const won = [];
  for (const { what, say, list } of comparisons(study)) {
    const cells = list.length;
    const theirs = list.filter(({ winner }) => winner === 'theirs');
    const ours = list.filter(({ winner }) => winner === 'ours').length;
    if (ours > 0) won.push(cells === 1 ? what : `${what} in ${ours} of ${cells} cells`);
    if (theirs.length === 0) continue;
    const names = [...new Set(theirs.map((found) => title(found.theirs[0])))].join(' or ');
    const [widest] = theirs.toSorted((a, b) => b.lead - a.lead);
    const example = `${say(widest.theirs[1])} to ${say(widest.ours[1])} of ${title(widest.ours[0])}`;
    lost.push(
      cells === 1
        ? `${what}: ${names}, ${example}`
        : `${what} in ${theirs.length} of ${cells} cells: ${names} (at the widest ${example}, in “${widest.where}”)`
    );
  }
  const first =
    lost.length > 0
      ? `Where another one wins: ${lost.join('; ')}.`
      : 'Nowhere is another one better than Sprites by more than a tenth.';
  const second =
    won.length > 0 ? ` Where Sprites wins: ${won.join('; ')}.` : ' Sprites wins nothing clearly.';
  return `${first}${second} Whole documents are compared with whole documents; two whose rounds are less than a tenth apart are not told apart.`;
}
