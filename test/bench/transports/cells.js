/**
 * What the study measures, and when a contender counts as broken.
 */
import { figuresOf } from '../feed-figures.js';

/** Share of a document that changes from one to the next; only deltas make use of it. */
export const CHANGING = 0.05;

/** The cell with the work that is stepped up until it breaks. */
export const STEPPED_CELL = '165 KB a second to 120';

/** The work. `grow`: new ones a second while it is measured, so that in the end there are all. */
const WORKS = [
  { name: STEPPED_CELL, connections: 120, bytes: 165000, every: 1 },
  {
    ...{ name: '5 KB a second to 4,000, ten new ones a second', connections: 4000, bytes: 5000 },
    ...{ every: 1, grow: 10 }
  },
  { name: '10 KB a second to 2,000', connections: 2000, bytes: 10000, every: 1 },
  { name: '10 KB every two seconds to 4,000', connections: 4000, bytes: 10000, every: 2 }
];

/** How many of them a short run has. */
const SHORT = 2;

/** Each as it is, with a tenth that reads nothing, and with all cut off for two seconds. */
const CHANGES = [
  { suffix: '' },
  { suffix: ', a tenth stalled', stalled: 0.1 },
  { suffix: ', cut off for 2 s', cut: 2 }
];

/** Publications there must be for a cut: some before it, one while it lasts, two after. */
const OF_A_CUT = 6;
const SECONDS_OF_A_CUT = 8;

/**
 * @param {{short: boolean, plain: boolean, seconds: number}} options
 * @returns {object[]} the cells: options of the load generator, with a name
 */
export function cellsOf({ short, plain, seconds }) {
  const works = short ? WORKS.slice(0, SHORT) : WORKS;
  return works.flatMap((work) =>
    (short || plain ? CHANGES.slice(0, 1) : CHANGES).map(({ suffix, ...change }) => {
      const enough = change.cut
        ? Math.max(seconds, SECONDS_OF_A_CUT, OF_A_CUT * work.every)
        : Math.max(seconds, 2 * work.every);
      return { ...work, ...change, name: work.name + suffix, seconds: enough };
    })
  );
}

/** The work that is stepped up until it breaks. */
export const STEPPED = { bytes: 165000, every: 1, first: 120 };

/** By so many times a rung of the search has more clients than the one below it. */
const RUNG = 4 / 3;

/** Seconds for which the number that is found is held. */
export const HELD = 60;

/**
 * The figures of one contender in one cell.
 *
 * @param {object} of the cell
 * @param {object} result of the load generator
 * @param {object} [turns] as figuresOf has them
 * @returns {object} as figuresOf, and: `missed`, the share of documents that did not come and that no
 *     newer one replaced; `load`, the load generator's share of its core; `times`, what resident
 *     size grew to, as a multiple of what it was when the measuring began; `cut`, what each client got
 */
export function rowOf(of, result, turns) {
  const row = figuresOf(result, turns);
  const due = row.documents + row.skipped + row.missing;
  const { cutAll: all, cutNewest: newest, cutNext: next, cutWait } = result;
  const came = all + newest + next;
  return {
    ...row,
    missed: due > 0 ? row.missing / due : 1,
    load: result.loadCpu / result.seconds,
    times: result.residentPeak / result.residentWarm,
    ended: result.ended,
    ...(of.cut && { cut: { all, newest, next, wait: came > 0 ? cutWait / came / 1000 : null } })
  };
}

/** From here on it may be the load generator that is late, not the contender. */
const LOAD_LIMIT = 0.9;

/**
 * @param {object} row of `rowOf`, or {failed}
 * @returns {string | null} why a contender is broken, by what the issue of the study names
 */
export function whyBroken(row) {
  if (row.failed !== undefined) return row.failed;
  const load = row.load > LOAD_LIMIT ? ' (the load generator is at its limit)' : '';
  if (row.missed > 0.01) return `${(row.missed * 100).toFixed(1)}% missing${load}`;
  if (row.p99 === null) return 'nothing came';
  if (row.p99 > 1000) return `p99 ${(row.p99 / 1000).toFixed(1)} s late${load}`;
  if (row.times >= 2) return `resident size ${row.times.toFixed(1)} times`;
  return null;
}

/** The numbers of clients a search may try: each a third more than the one before, `most` the last. */
function rungsOf(first, most) {
  const rungs = [];
  for (let next = first; next < most; next = Math.round(next * RUNG)) rungs.push(next);
  return [...rungs, most];
}

/**
 * How many clients might be the most, for the search to begin there: with so many a core is full, going
 * by the CPU of a document to few.
 *
 * @param {object} [row] of `rowOf`, or {failed}
 * @returns {number | undefined}
 */
export const mostOf = (row) =>
  row?.cpu > 0 ? Math.round(1e6 / (row.cpu * STEPPED.every)) : undefined;

/**
 * Searches the number of clients at which one breaks. The numbers it tries are the same for all contenders,
 * each a third more than the one below. It begins where `guess` says, and goes up while it holds or down
 * while it breaks: what is found does not depend on the guess, unless one breaks with fewer and holds
 * with more. What is found must hold for a minute, else the next below is tried.
 *
 * @param {(connections: number, seconds: number) => Promise<object>} measure gives a row
 * @param {{first: number, most: number, seconds: number, held?: number, guess?: number}} options
 * @returns {Promise<{holds: number, breaks: number|null, why: string|null, steps: object[]}>} `holds`
 *     clients were served; at `breaks` it broke, where that is not beyond `most`
 */
export async function searchBreak(measure, { first, most, seconds, held = HELD, guess = first }) {
  const rungs = rungsOf(first, most);
  const steps = [];
  const attempt = async (connections, length) => {
    const row = await measure(connections, length);
    const why = whyBroken(row);
    steps.push({ connections, seconds: length, why, row });
    return why;
  };
  // Rungs are named by their place: `low` holds, -1 where none does; `high` breaks.
  let low = -1;
  let high = rungs.length;
  let why = null;
  let next = Math.max(
    0,
    rungs.findLastIndex((connections) => connections <= guess)
  );
  while (high - low > 1) {
    const failed = await attempt(rungs[next], seconds);
    if (failed === null) {
      low = next;
      next += 1;
    } else {
      [high, why] = [next, failed];
      next -= 1;
    }
  }
  for (; low >= 0; --low) {
    const failed = await attempt(rungs[low], held);
    if (failed === null) break;
    [high, why] = [low, `${failed}, within ${held} s`];
  }
  return { holds: rungs[low] ?? 0, breaks: rungs[high] ?? null, why, steps };
}

/**
 * What is made of several rounds of one cell. A machine's times change by half within minutes, so a
 * contender that is measured once is measured in one of its moods; rounds lie half an hour apart.
 */

/**
 * Of these the lowest round counts: what disturbs a machine only adds to them. Of all others it is the
 * highest: a server has to have room for its largest size, and a document that was missing once was
 * missing. (Rejected: the median of three rounds, with which a run would take two hours and a half; a
 * second one, to see whether it agrees, as long again.)
 */
const LOWEST = ['cpu', 'loadCpu', 'p50', 'p99', 'p999'];

/** Figures that are shown with the range of their rounds. */
const RANGED = ['cpu', 'p99', 'resident'];

/** By so much two contenders differ that are in an order. */
const TENTH = 1.1;

/** Where nothing came a figure is null, which is no lowest. */
const known = (values) => values.filter((value) => Number.isFinite(value));
const lowest = (values) => (known(values).length > 0 ? Math.min(...known(values)) : null);
const highest = (values) => (known(values).length > 0 ? Math.max(...known(values)) : null);

/** What each client got after a cut: clients of all rounds, and the shortest wait. */
function cutsTogether(cuts) {
  const sum = (name) => cuts.reduce((total, cut) => total + cut[name], 0);
  return {
    ...{ all: sum('all'), newest: sum('newest'), next: sum('next') },
    wait: lowest(cuts.map(({ wait }) => wait))
  };
}

/**
 * @param {object[]} rounds rows of one contender in one cell: `rowOf` of cells.js, or {failed}
 * @returns {object} a row; the first that failed where one did. `ranges`: the lowest and the highest
 *     round of its CPU, p99 and resident size
 */
export function together(rounds) {
  const failed = rounds.find((row) => row.failed !== undefined);
  if (failed !== undefined) return failed;
  const valuesOf = (name) => rounds.map((row) => row[name]);
  const figures = Object.keys(rounds[0])
    .filter((name) => name !== 'cut')
    .map((name) => [name, (LOWEST.includes(name) ? lowest : highest)(valuesOf(name))]);
  const ranges = RANGED.map((name) => [name, [lowest(valuesOf(name)), highest(valuesOf(name))]]);
  return {
    ...Object.fromEntries(figures),
    ...(rounds[0].cut && { cut: cutsTogether(valuesOf('cut')) }),
    ranges: Object.fromEntries(ranges)
  };
}

/**
 * Adds a round to a cell of a study; the cell's rows are those of all its rounds.
 *
 * @param {object[]} cells of a study: {name, rounds, rows} each, and what its work is
 * @param {object} of the work of the cell
 * @param {Record<string, object>} rows of this round, by contender
 * @returns {object} the cell
 */
export function addRound(cells, of, rows) {
  let cell = cells.find(({ name }) => name === of.name);
  if (cell === undefined) {
    cell = { ...of, rounds: [] };
    cells.push(cell);
  }
  cell.rounds.push(rows);
  cell.rows = Object.fromEntries(
    Object.keys(rows).map((name) => [name, together(cell.rounds.map((round) => round[name]))])
  );
  return cell;
}

/**
 * @param {[number, number]} one a range
 * @param {[number, number]} other a range
 * @returns {boolean} whether the rounds of two are more than a tenth apart: else they are in no order
 */
export const areApart = ([lowA, highA], [lowB, highB]) =>
  highA * TENTH < lowB || highB * TENTH < lowA;
