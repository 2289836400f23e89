/** Formats figures for the terminal and for reports. */

/** The number format, made at first use: it takes some 10 ms, also of the server's start, which imports this module. */
let numberFormat;

/** @param {number} value @returns {string} the number, such as 12,345 */
export function number(value) {
  numberFormat ??= new Intl.NumberFormat('en-US');
  return numberFormat.format(value);
}

/** @param {string} text @returns {string} the text, escaped for HTML */
export function escape(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/** @param {Record<string, number>} counts @returns {string} counts and names, such as `3 throttled, 2 gone` */
export const countsText = (counts) =>
  Object.entries(counts)
    .map(([name, count]) => `${number(count)} ${name}`)
    .join(', ');

/** @param {number} value seconds @returns {number} the seconds, rounded to the millisecond */
export const roundedToMs = (value) => Math.round(value * 1000) / 1000;

/** @param {number} value @returns {string} the value with three digits */
export function digits(value) {
  return Number(value.toPrecision(3)).toString();
}

/**
 * @param {?number} ms
 * @returns {string} the time with a fitting unit: 85 µs, 1.2 ms, 3 s
 */
export function time(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms > 0 && ms < 1) return `${digits(ms * 1000)} µs`;
  return ms < 1000 ? `${digits(ms)} ms` : `${digits(ms / 1000)} s`;
}

/** @param {?number} value bytes @returns {string} the size with a fitting unit: 85 kB, 1.2 MB, 3 GB */
export function size(value) {
  if (value === null || value === undefined) return '–';
  if (value < 1000) return `${value} bytes`;
  const unit = value < 1e6 ? [1e3, 'kB'] : value < 1e9 ? [1e6, 'MB'] : [1e9, 'GB'];
  return `${digits(value / unit[0])} ${unit[1]}`;
}

/**
 * @param {string[]} args
 * @returns {string} the arguments, quoted for a shell
 */
export function commandLine(args) {
  return args
    .map((arg) => (/^[\w@%+=:,./-]+$/.test(arg) ? arg : `'${arg.replaceAll("'", "'\\''")}'`))
    .join(' ');
}

/**
 * The law of sprites: thrown = acked + waiting + lost; in a world thrown + crossedIn = acked + waiting + lost + crossedOut.
 *
 * @param {?object} status
 * @returns {?{thrown: number, acked: number, waiting: number, lost: number, crossedIn?: number, crossedOut?: number,
 *     holds: boolean}} the counts of crossed sprites only if there are any; null where a count
 *     is missing
 */
export function lawOf(status) {
  const names = ['thrown', 'acked', 'waiting', 'lost'];
  if (!status || !names.every((name) => name in status)) return null;
  const { thrown, acked, waiting, lost, crossedIn = 0, crossedOut = 0 } = status;
  const holds = thrown + crossedIn === acked + waiting + lost + crossedOut;
  const crossed = crossedIn + crossedOut > 0 ? { crossedIn, crossedOut } : {};
  return { thrown, acked, waiting, lost, ...crossed, holds };
}

/** Returns the x coordinate of a percentile in a chart: 90, 99, 99.9 … are equal steps. */
export const nines = (percent) => -Math.log10(1 - percent / 100);

/** A smaller difference counts as none, in percent. */
export const SAME_PERCENT = 1;

/** @param {?number} change percent @returns {string} words for a change from one run to another */
export function changeWords(change) {
  if (change === null) return 'from nothing';
  if (Math.abs(change) < SAME_PERCENT) return 'the same';
  if (change >= 100) return `${digits(1 + change / 100)} times`;
  return `${change > 0 ? '+' : '−'}${Math.abs(change).toFixed(Math.abs(change) < 10 ? 1 : 0)}%`;
}
