/**
 * The study as text, in Markdown.
 */
import { STEPPED } from './cells.js';
import { contenders } from './contenders.js';

const MEGABYTE = 2 ** 20;

const whole = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const tenth = new Intl.NumberFormat('en-US', {
  minimumFractionDigits: 1,
  maximumFractionDigits: 1
});

/** A number as people read it: - where there is none. */
export const number = (value, format = tenth) =>
  value === null || value === undefined || Number.isNaN(value) ? '-' : format.format(value);
export const count = (value) => number(value, whole);
const megabytes = (bytes) => tenth.format(bytes / MEGABYTE);
export const percent = (share) => `${tenth.format(share * 100)}%`;

/** Of those that were cut off: who got what. */
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

/** The columns of a cell: a heading, and what of a row is under it. */
const COLUMNS = [
  ['CPU a document', (row) => `${ranged(row, 'cpu')} µs`],
  ['resident (growth)', (row) => `${megabytes(row.resident)} MB (+${megabytes(row.growth)})`],
  ['sockets', (row) => `${megabytes(row.sockets)} MB`],
  ['late p50', (row) => `${number(row.p50)} ms`],
  ['p99', (row) => `${ranged(row, 'p99')} ms`],
  ['p99.9', (row) => `${number(row.p999)} ms`],
  ['replaced', (row) => count(row.skipped)],
  ['missed', (row) => `${count(row.missing)}${row.missing > 0 ? ` (${percent(row.missed)})` : ''}`],
  ['load', (row) => (row.load < NOISE ? `< ${percent(NOISE)}` : percent(row.load))]
];
const CUT_COLUMN = ['who came again got', (row) => cutText(row.cut)];

/** @returns {(string | function)[][]} */
export const columnsOf = (cell) => (cell.cut ? [...COLUMNS, CUT_COLUMN] : COLUMNS);

const line = (cells) => `| ${cells.join(' | ')} |`;

/** @param {{name: string, rows: Record<string, object>}} cell @returns {string} */
export function cellTable(cell) {
  const columns = columnsOf(cell);
  const lines = [
    `\n## ${cell.name}\n`,
    line(['server', ...columns.map(([heading]) => heading)]),
    line(['---', ...columns.map(() => '---')])
  ];
  for (const [name, row] of Object.entries(cell.rows)) {
    const { title } = contenders[name];
    const told = row.failed !== undefined;
    const none = columns.slice(1).map(() => '');
    lines.push(line([title, ...(told ? [row.failed, ...none] : columns.map(([, of]) => of(row)))]));
  }
  return lines.join('\n');
}

/** Where one broke, in words. */
export const breaksAt = ({ breaks }, most) =>
  breaks === null ? `more than ${count(most)}` : count(breaks);

/** @returns {string} */
export function breakTable({ breaks, most }) {
  const lines = [
    `\n## ${STEPPED.bytes / 1000} KB a second, until it breaks\n`,
    line(['server', 'held for a minute', 'breaks at', 'by']),
    line(['---', '---', '---', '---'])
  ];
  for (const [name, found] of Object.entries(breaks)) {
    const { title } = contenders[name];
    lines.push(line([title, count(found.holds), breaksAt(found, most), found.why ?? '-']));
  }
  return lines.join('\n');
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
      `${loadText(row)}; p99 ${number(row.p99)} ms, the server ${number(row.cpu)} µs`;
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
 * One line a contender, over the cells in which nobody is stalled or cut off: the README's. Empty where
 * none of these was measured.
 */
export function summaryTable({ cells, breaks, most }) {
  const plain = cells.filter(({ stalled, cut }) => !stalled && !cut);
  if (plain.length === 0) return '';
  const searched = Object.keys(breaks).length > 0;
  const lines = [
    '\n## All in one: server CPU a document, and p99\n',
    line(['server', ...plain.map(({ name }) => name), ...(searched ? ['breaks at'] : [])]),
    line(['---', ...plain.map(() => '---'), ...(searched ? ['---'] : [])])
  ];
  for (const name of Object.keys(plain[0].rows)) {
    const figures = plain.map(({ rows }) => {
      const row = rows[name];
      return row.failed === undefined ? `${number(row.cpu)} µs, ${number(row.p99)} ms` : row.failed;
    });
    const broken = searched ? [breaksAt(breaks[name], most)] : [];
    lines.push(line([contenders[name].title, ...figures, ...broken]));
  }
  return lines.join('\n');
}
