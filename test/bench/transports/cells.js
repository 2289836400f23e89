/**
 * What the study measures, and when a contender counts as broken.
 */
import { figuresOf } from '../feed-figures.js';

/** Share of a document that changes from one to the next; only deltas make use of it. */
export const CHANGING = 0.05;

/** The work. `grow`: new ones a second while it is measured, so that in the end there are all. */
const WORKS = [
  { name: '165 KB a second to 120', connections: 120, bytes: 165000, every: 1 },
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
 * @param {{short: boolean, seconds: number}} options
 * @returns {object[]} the cells: options of the load generator, with a name
 */
export function cellsOf({ short, seconds }) {
  const works = short ? WORKS.slice(0, SHORT) : WORKS;
  return works.flatMap((work) =>
    (short ? CHANGES.slice(0, 1) : CHANGES).map(({ suffix, ...change }) => {
      const enough = change.cut
        ? Math.max(seconds, SECONDS_OF_A_CUT, OF_A_CUT * work.every)
        : Math.max(seconds, 2 * work.every);
      return { ...work, ...change, name: work.name + suffix, seconds: enough };
    })
  );
}

/** The work that is stepped up until it breaks. */
export const STEPPED = { bytes: 165000, every: 1, first: 120 };

/** By so many times a step has more clients than the one before: searching takes half of a study's time. */
const STEP = 4;

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
 *     size grew to, as a multiple of what it was when the measuring began; `cut`, who got what
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
export const LOAD_LIMIT = 0.9;

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

/**
 * Searches the number of clients at which one breaks: four times as many each time, then between the
 * last two, to an eighth; what is found must hold for a minute, else less is tried.
 *
 * @param {(connections: number, seconds: number) => Promise<object>} measure gives a row
 * @param {{first: number, most: number, seconds: number, held?: number}} options
 * @returns {Promise<{holds: number, breaks: number|null, why: string|null, steps: object[]}>} `holds`
 *     clients were served; at `breaks` it broke, where that is not beyond `most`
 */
export async function searchBreak(measure, { first, most, seconds, held = HELD }) {
  const steps = [];
  const attempt = async (connections, length) => {
    const row = await measure(connections, length);
    const why = whyBroken(row);
    steps.push({ connections, seconds: length, why, row });
    return why;
  };
  let holds = 0;
  let breaks = null;
  let why = null;
  for (let next = Math.min(first, most); breaks === null; next = Math.min(STEP * next, most)) {
    why = await attempt(next, seconds);
    if (why !== null) breaks = next;
    else holds = next;
    if (next === most) break;
  }
  const fine = () => Math.round((breaks - holds) / 2);
  while (breaks !== null && breaks > first && fine() >= breaks / 10) {
    const next = holds + fine();
    const failed = await attempt(next, seconds);
    if (failed === null) holds = next;
    else [breaks, why] = [next, failed];
  }
  while (holds > 0) {
    const failed = await attempt(holds, held);
    if (failed === null) break;
    [breaks, why] = [holds, `${failed}, within ${held} s`];
    holds = holds > first ? Math.max(first, Math.floor(holds * 0.75)) : 0;
  }
  return { holds, breaks, why, steps };
}
