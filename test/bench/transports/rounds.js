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

/** Those of which one wants to know how far the rounds were apart. */
const RANGED = ['cpu', 'p99', 'resident'];

/** By so much two differ that are in an order. */
const TENTH = 1.1;

/** Where nothing came a figure is null, which is no lowest. */
const known = (values) => values.filter((value) => Number.isFinite(value));
const lowest = (values) => (known(values).length > 0 ? Math.min(...known(values)) : null);
const highest = (values) => (known(values).length > 0 ? Math.max(...known(values)) : null);

/** Who got what after a cut: clients of all rounds, and the shortest wait. */
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
