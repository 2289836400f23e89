import { UsageError } from './errors.js';
import { n, size, time } from '../report/words.js';

/**
 * What a run has to keep to: bounds on its figures, which set the exit code. A figure that isn't known
 * keeps to nothing: a test that measured nothing must not pass.
 */

const UNITS = { us: 0.001, µs: 0.001, ms: 1, s: 1000 };

const BYTES = { '': 1, k: 1e3, M: 1e6, G: 1e9 };

function read(pattern, units) {
  return (text) => {
    const [, value, unit] = pattern.exec(text) ?? [];
    return value === undefined ? undefined : Number(value) * units[unit];
  };
}

/** Milliseconds: without its unit a time could be anything. */
const duration = {
  unit: 'TIME',
  read: read(/^([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s)$/, UNITS),
  expects: 'a time with its unit, as 800us, 5ms or 1.5s'
};

const bytes = {
  unit: 'BYTES',
  read: read(/^([0-9]+(?:\.[0-9]+)?)([kMG]?)$/, BYTES),
  expects: 'a size in bytes, as 300M or 1.5G'
};

const count = {
  unit: 'NUMBER',
  read: read(/^([0-9]+)()$/, { '': 1 }),
  expects: 'a whole number from 0'
};

/**
 * @typedef {object} Bound
 * @property {string} name of its option
 * @property {{unit: string, read: (text: string) => ?number, expects: string}} type
 * @property {string} help
 * @property {boolean} [least] the figure must be at least this; else at most
 * @property {'throwing' | 'storm'} [needs] without which there is no such figure
 * @property {(result: object) => ?number} value
 * @property {(value: number) => string} tell
 */

/** The times a sprite flies; the probe's, where there is one. */
const flight = (name, help) => ({
  ...{ name, help, type: duration, tell: time, needs: 'throwing' },
  value: ({ command, latency }) => latency[command === 'latency' ? 'probe' : 'arrival'][name]
});

/** Bounds of one type: the help, the figure, and what else. */
const of = (type, tell, all) =>
  Object.entries(all).map(([name, [help, value, more]]) => ({
    ...{ name, type, tell, help, value, ...more }
  }));

const needs = 'throwing';

/** @type {Bound[]} */
export const bounds = [
  flight('p50', 'half of the sprites arrive within this'),
  flight('p90', 'nine in ten do'),
  flight('p99', 'ninety-nine in a hundred do; of the probe where there is one'),
  flight('p99.9', 'all but one in a thousand do'),
  flight('max', 'all of them do'),
  ...of(count, n, {
    'per-second': [
      'so many sprites a second are accepted at the least',
      ({ throwing }) => throwing?.perSecond,
      { needs, least: true }
    ],
    missing: [
      'so many sprites may be missing; without this none may, which is a fault',
      ({ account }) => (account.complete ? account.missing : null),
      { needs }
    ],
    refused: ['so many throws may be refused', ({ account }) => account.refused, { needs }],
    broken: ['so many connections may break', ({ connections }) => connections.closed]
  }),
  ...of(duration, time, {
    back: [
      'storm: all are parked again within this',
      ({ storm }) => storm && storm.seconds[100] !== null && storm.seconds[100] * 1000,
      { needs: 'storm' }
    ],
    stall: [
      "the server's event loop is late by this at the most; needs --status-port",
      ({ server }) => server?.longestStallMs
    ],
    cpu: ['CPU time of the server for each sprite', ({ use }) => use?.perSpriteMs, { needs }]
  }),
  ...of(bytes, size, { memory: ["the server's resident size, as 300M", ({ use }) => use?.most] })
];

/**
 * @param {object} options of parse()
 * @throws {UsageError} when the command has no such figure
 */
export function checkBounds(options) {
  const has = { throwing: options.throwing !== 'none', storm: options.command === 'storm' };
  const lacking = { throwing: 'throws nothing', storm: 'is no storm' };
  for (const { name, needs } of bounds) {
    if (!(name in options) || !needs || has[needs]) continue;
    throw new UsageError(`--${name}: this ${options.command} ${lacking[needs]}`);
  }
}

/**
 * @param {object} result
 * @param {Record<string, number>} asked bounds by name
 * @returns {Array<{name: string, words: string, value: ?number, asked: number, holds: boolean}>}
 */
export function judge(result, asked) {
  return bounds
    .filter(({ name }) => name in asked)
    .map(({ name, least, value: read, tell }) => {
      const value = read(result);
      const known = typeof value === 'number';
      const limit = asked[name];
      const holds = known && (least ? value >= limit : value <= limit);
      const words =
        `${name} ${known ? tell(value) : 'is not known'}, ` +
        `${least ? 'at least' : 'at most'} ${tell(limit)} asked`;
      return { name, words, value: known ? value : null, asked: limit, holds };
    });
}

/** @param {object} options of parse() @returns {Record<string, number>} those that are bounds */
export function boundsIn(options) {
  return Object.fromEntries(
    bounds.filter(({ name }) => name in options).map(({ name }) => [name, options[name]])
  );
}
