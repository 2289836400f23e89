/**
 * Shows figures over time as a line of text, and decides whether they grow.
 */

/** Node's options with which SIGPWR makes a process collect all garbage: then the heap has only live objects. */
export const GC_OPTIONS = [
  '--expose-gc',
  '--import',
  'data:text/javascript,process.on("SIGPWR",()=>globalThis.gc())'
];

const BARS = '▁▂▃▄▅▆▇█';

/**
 * @param {number[]} values
 * @param {number} width most characters; each shows the mean of its share of the values
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
 * Standard errors by which a line must rise to count as growth. The line through a few random values rises by chance,
 * too, but rarely by this many standard errors: with ten values that is three quarters of their scatter.
 */
const CHANCE = 5;

/**
 * Fewest values that are judged. Fewer look like growth by chance too often: of three that only scatter one series in 17,
 * of five one in 140, of ten one in 3,000.
 */
export const MIN_VALUES = 10;

/**
 * Fits a line by least squares through values at equal intervals.
 *
 * @param {number[]} values
 * @param {number} slack an allowed rise
 * @returns {{mean: number, rise?: number, verdict: 'flat' | 'GROWS' | 'too short'}} `rise`: of the line, from the first
 *     value to the last. The line is flat unless it rises by more than the slack, 5% of the mean, twice the scatter of
 *     the values around it, and a rise by chance
 */
export function trend(values, slack) {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (count < MIN_VALUES) return { mean, verdict: 'too short' };
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
  const isFlat = rise <= Math.max(slack, mean * 0.05, 2 * scatter, CHANCE * error);
  return { mean, rise, verdict: isFlat ? 'flat' : 'GROWS' };
}

/**
 * @param {string} name the name of a server's figure
 * @returns {number} the allowed rise
 */
export function slackOf(name) {
  return /size|heap/.test(name) ? 2 ** 20 : 16;
}
