import { readFileSync } from 'node:fs';

/**
 * Figures over time: as a line of text, and whether they grow.
 */

/** Node's options by which SIGPWR has a process collect all garbage: what the heap holds then is really held. */
export const COLLECTS = [
  '--expose-gc',
  '--import',
  'data:text/javascript,process.on("SIGPWR",()=>globalThis.gc())'
];

const BARS = '▁▂▃▄▅▆▇█';

/**
 * @param {number[]} values
 * @param {number} width characters at most; each shows the mean of its share of the values
 * @returns {string} a line of bars from 0 to the highest value
 */
export function chart(values, width) {
  const count = Math.min(width, values.length);
  const means = Array.from({ length: count }, (_, i) => {
    const share = values.slice(
      Math.floor((i * values.length) / count),
      Math.floor(((i + 1) * values.length) / count)
    );
    return share.reduce((sum, value) => sum + value, 0) / share.length;
  });
  const high = Math.max(...means, 1);
  return means.map((value) => BARS[Math.min(7, Math.floor((value / high) * 7.999))]).join('');
}

/**
 * The line through a few values that only scatter rises, too, by chance: by so many times its standard
 * error hardly ever. With ten values, of any height, that takes three quarters of what they scatter.
 */
const CHANCE = 5;

/**
 * The line of least squares through values taken at equal intervals.
 *
 * @param {number[]} values three or more
 * @param {number} slack a rise that nobody minds
 * @returns {{mean: number, rise: number, flat: boolean}} `rise`: of that line, from the first value
 *     to the last. It is flat unless it rises by more than the slack, 5% of the mean, twice what the
 *     values scatter around it, and what so few values may rise by chance
 */
export function trend(values, slack) {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const middle = (count - 1) / 2;
  let above = 0;
  let below = 0;
  values.forEach((value, i) => {
    above += (i - middle) * (value - mean);
    below += (i - middle) ** 2;
  });
  const slope = above / below;
  const scatter = Math.sqrt(
    values.reduce((sum, value, i) => sum + (value - mean - slope * (i - middle)) ** 2, 0) /
      (count - 2)
  );
  const rise = slope * (count - 1);
  const error = (scatter * (count - 1)) / Math.sqrt(below);
  return { mean, rise, flat: rise <= Math.max(slack, mean * 0.05, 2 * scatter, CHANCE * error) };
}

/**
 * @param {string} name of a figure of a server
 * @returns {number} the rise that nobody minds
 */
export function slackOf(name) {
  return /size|heap/.test(name) ? 2 ** 20 : 16;
}

/** @returns {number} bytes that a process has resident */
export function residentOf(pid) {
  return 1024 * /^VmRSS:\s+([0-9]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1];
}
