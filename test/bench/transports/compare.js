/**
 * How far two runs of the transport study agree, in Markdown: for each figure in each cell, how many
 * of all pairs of contenders are in the same order in both, and how many of those pairs that both runs
 * tell apart: whose rounds are more than a tenth apart.
 *
 *     node test/bench/transports/compare.js FIRST.json [SECOND.json]
 *
 * The files are those of run.js --json, as they are or gzipped. With one file it is compared with
 * measured.json.gz beside this one, a run of an earlier version. Figures of one contender
 * that failed in one run are left out.
 *
 * Exit status: 0; 2 where a file is not of a study.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';

import { answerHelp, refuseUsage } from '../../support/documents.js';
import { tableOf } from '../figures.js';
import { areApart, STEPPED } from './cells.js';
import { contenders } from './contenders.js';
import { FIGURES } from './tables.js';

answerHelp(import.meta.url);

/** The run whose figures the READMEs print. */
export const MEASURED = fileURLToPath(new URL('measured.json.gz', import.meta.url));

/** All pairs of some. */
const pairsOf = (all) => all.flatMap((one, i) => all.slice(i + 1).map((other) => [one, other]));

const times = (a, b) => Math.max(a, b) / Math.min(a, b);

/**
 * Two runs' values of one figure.
 *
 * @param {Record<string, {value: number, range: [number, number]}>} first by contender; whose value is
 *     no number above 0 is left out
 * @param {Record<string, {value: number, range: [number, number]}>} second
 * @returns {{pairs: number, same: number, first: number, firstSame: number, both: number,
 *     bothSame: number, swapped: {pair: [string, string], times: number}[]}} `same`: pairs that are not
 *     in opposite orders: equal values are in no order. `first`, `both`: those that the first run, or
 *     both tell apart. `times`: by what factor the two differ, in the run in which they differ more; the
 *     farthest first
 */
export function agreement(first, second) {
  const names = Object.keys(first).filter(
    (name) => first[name].value > 0 && second[name]?.value > 0
  );
  const pairs = pairsOf(names);
  const difference = (run, [a, b]) => run[a].value - run[b].value;
  const isSame = (pair) => difference(first, pair) * difference(second, pair) >= 0;
  const factor = (run, [a, b]) => times(run[a].value, run[b].value);
  const isTold = (run, [a, b]) => areApart(run[a].range, run[b].range);
  const toldByFirst = pairs.filter((pair) => isTold(first, pair));
  const toldByBoth = toldByFirst.filter((pair) => isTold(second, pair));
  const swapped = pairs
    .filter((pair) => !isSame(pair))
    .map((pair) => ({ pair, times: Math.max(factor(first, pair), factor(second, pair)) }))
    .toSorted((one, other) => other.times - one.times);
  return {
    pairs: pairs.length,
    same: pairs.length - swapped.length,
    first: toldByFirst.length,
    firstSame: toldByFirst.filter(isSame).length,
    both: toldByBoth.length,
    bothSame: toldByBoth.filter(isSame).length,
    swapped
  };
}

/** What two runs both have. @returns {{what: string, where: string, values: object[]}[]} */
function figuresOf(studies) {
  const [first, second] = studies;
  const cells = first.cells.flatMap((cell) => {
    const twin = second.cells.find(({ name }) => name === cell.name);
    return twin ? [[cell, twin]] : [];
  });
  const inCells = FIGURES.flatMap(({ what, figure }) =>
    cells.map((twins) => ({
      what,
      where: twins[0].name,
      values: twins.map(({ rows }) => byName(rows, (row) => valueOf(row, figure)))
    }))
  );
  const holds = studies.map(({ breaks }) =>
    byName(breaks, ({ holds: value }) => ({ value, range: [value, value] }))
  );
  const where = `${STEPPED.bytes / 1000} KB a second`;
  return [...inCells, { what: 'clients until it breaks', where, values: holds }];
}

const valueOf = (row, figure) =>
  row.failed === undefined ? { value: row[figure], range: row.ranges[figure] } : { value: NaN };

const byName = (rows, of) =>
  Object.fromEntries(Object.entries(rows).map(([name, row]) => [name, of(row)]));

/**
 * @param {object[]} studies two, of run.js
 * @returns {string} a table, and what it sums up to
 */
export function comparison(studies) {
  const found = figuresOf(studies)
    .map(({ what, where, values }) => ({ what, where, ...agreement(...values) }))
    .filter(({ pairs }) => pairs > 0);
  const columns = {
    figure: ({ what }) => what,
    cell: ({ where }) => where,
    'pairs in the same order': ({ same, pairs }) => `${same} of ${pairs}`,
    'of those that both tell apart': ({ bothSame, both }) => `${bothSame} of ${both}`,
    'the farthest apart of the others': ({ swapped: [farthest] }) =>
      farthest
        ? `${farthest.pair.map((name) => contenders[name].title).join(' and ')}: ${farthest.times.toFixed(2)} times`
        : '-'
  };
  const sum = (of) => found.reduce((total, one) => total + of(one), 0);
  return (
    `${tableOf(columns, found)}\n\n` +
    `${sum(({ same }) => same)} of ${sum(({ pairs }) => pairs)} pairs are in the same order; of those ` +
    `that the first run tells apart, ${sum(({ firstSame }) => firstSame)} of ` +
    `${sum((one) => one.first)}; of those that both do, ${sum(({ bothSame }) => bothSame)} of ` +
    `${sum(({ both }) => both)}.`
  );
}

/**
 * @param {string} file of run.js --json, as it is or gzipped
 * @returns {object} the study in it
 * @throws {Error} where it can't be read, or is none
 */
export function studyIn(file) {
  const bytes = readFileSync(file);
  const study = JSON.parse(file.endsWith('.gz') ? gunzipSync(bytes) : bytes);
  if (!Array.isArray(study.cells) || !study.breaks) throw new Error('it is not a study');
  return study;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const files = process.argv.slice(2);
  if (files.length !== 1 && files.length !== 2)
    refuseUsage(import.meta.url, 'one file or two, please');
  if (files.length === 1) files.unshift(MEASURED);
  const studies = files.map((file) => {
    try {
      return studyIn(file);
    } catch (error) {
      return refuseUsage(import.meta.url, `${file}: ${error.message}`);
    }
  });
  console.log(comparison(studies));
}
