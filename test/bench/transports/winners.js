/**
 * Who wins what, in words: the first thing the report says.
 */
import { contenders, isDelta, isOurs } from './contenders.js';
import { areApart } from './rounds.js';
import { count, number } from './tables.js';

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
 * @returns {{what: string, say: (value: number) => string, list: object[]}[]} for each figure, who was
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
  return [...figures, { what: 'the number of clients held for a minute', say, list: [clients] }];
}

const title = (name) => contenders[name].title;

/** @param {object} study @returns {string} the first paragraph of the report */
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
