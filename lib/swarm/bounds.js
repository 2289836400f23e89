import { UsageError } from '../base/option-help.js';
import { number, size, time } from '../report/words.js';

/**
 * The bounds of a run's figures, which set the exit code. An unknown figure exceeds its bound: a test that
 * measured nothing must not pass.
 */

const UNITS = { us: 0.001, µs: 0.001, ms: 1, s: 1000 };

const BYTES = { '': 1, k: 1e3, M: 1e6, G: 1e9 };

function readerOf(pattern, units) {
  return (text) => {
    const [, value, unit] = pattern.exec(text) ?? [];
    return value === undefined ? undefined : Number(value) * units[unit];
  };
}

/** A time, read as milliseconds. The unit is mandatory, since a bare number would be ambiguous. */
const duration = {
  unit: 'TIME',
  read: readerOf(/^([0-9]+(?:\.[0-9]+)?)(us|µs|ms|s)$/, UNITS),
  expects: 'a time with its unit, as 800us, 5ms or 1.5s'
};

const bytes = {
  unit: 'BYTES',
  read: readerOf(/^([0-9]+(?:\.[0-9]+)?)([kMG]?)$/, BYTES),
  expects: 'a size in bytes, as 300M or 1.5G'
};

const count = {
  unit: 'NUMBER',
  read: readerOf(/^([0-9]+)()$/, { '': 1 }),
  expects: 'a whole number from 0'
};

/**
 * @typedef {object} Bound
 * @property {string} name name of the option
 * @property {{unit: string, read: (text: string) => ?number, expects: string}} type
 * @property {string} help
 * @property {boolean} [isLowerBound] a lower bound of the figure; else an upper one
 * @property {'throwing' | 'pace' | 'storm' | 'admin'} [needs] the kind of run that has the figure
 * @property {(result: object) => ?number} value reads the figure
 * @property {(value: number) => string} format formats the figure
 */

/** Returns a bound of the times from throw to arrival: the probe's times in a latency run. */
const arrivalBound = (name, help) => ({
  ...{ name, help, type: duration, format: time, needs: 'throwing' },
  value: ({ command, latency }) => latency[command === 'latency' ? 'probe' : 'arrival'][name]
});

/** Returns bounds of one type, from their help, their figure and further members. */
const boundsOfType = (type, format, figures) =>
  Object.entries(figures).map(([name, [help, value, extraMembers]]) => ({
    ...{ name, type, format, help, value, ...extraMembers }
  }));

const needs = 'throwing';

/** @type {Bound[]} */
export const bounds = [
  arrivalBound('p50', 'time within which half of the sprites arrive, at most'),
  arrivalBound('p90', 'time within which 90% of the sprites arrive, at most'),
  arrivalBound(
    'p99',
    'time for 99% of the sprites; in a latency run these times are those of its quiet clients'
  ),
  arrivalBound('p99.9', 'time for 99.9% of the sprites'),
  arrivalBound('max', 'time for all sprites'),
  ...boundsOfType(count, number, {
    'per-second': [
      'accepted sprites per second, at least',
      ({ throwing }) => throwing?.perSecond,
      { needs: 'pace', isLowerBound: true }
    ],
    missing: [
      'missing sprites, at most; without this option 0 (exit code 1)',
      ({ account }) => (account.complete ? account.missing : null),
      { needs }
    ],
    refused: ['refused throws, at most', ({ account }) => account.refused, { needs }],
    broken: ['broken connections, at most', ({ connections }) => connections.closed]
  }),
  ...boundsOfType(duration, time, {
    back: [
      'storm: time until all are parked again, at most',
      ({ storm }) => storm && storm.seconds[100] !== null && storm.seconds[100] * 1000,
      { needs: 'storm' }
    ],
    stall: [
      "longest stall of the server's event loop, at most; needs --status-port",
      ({ server }) => server?.longestStallMs,
      { needs: 'admin' }
    ],
    cpu: [
      'CPU time of the server for each sprite, at most',
      ({ use }) => use?.perSpriteMs,
      { needs: 'pace' }
    ]
  }),
  ...boundsOfType(bytes, size, {
    memory: ["the server's resident size, at most, such as 300M", ({ use }) => use?.most]
  })
];

/**
 * @param {object} options of parse()
 * @throws {UsageError} when the command lacks the figure of a bound
 */
export function checkBounds(options) {
  const [throwing, storm] = [options.throwing !== 'none', options.command === 'storm'];
  const hasFigures = { throwing, storm, pace: throwing && !storm, admin: options.statusPort };
  const lackWords = {
    ...{ throwing: 'throws nothing', storm: 'is no storm' },
    ...{ pace: 'has no sprites a second', admin: 'has no --status-port' }
  };
  for (const { name, needs } of bounds) {
    if (!(name in options) || !needs || hasFigures[needs]) continue;
    throw new UsageError(`--${name}: this ${options.command} ${lackWords[needs]}`);
  }
}

/**
 * @param {object} result
 * @param {Record<string, number>} limits bounds by name
 * @returns {Array<{name: string, words: string, value: ?number, asked: number, holds: boolean}>}
 */
export function judge(result, limits) {
  return bounds
    .filter(({ name }) => name in limits)
    .map(({ name, isLowerBound, value: readFigure, format }) => {
      const value = readFigure(result);
      const isKnown = typeof value === 'number';
      const limit = limits[name];
      const holds = isKnown && (isLowerBound ? value >= limit : value <= limit);
      const words =
        `${name} ${isKnown ? format(value) : 'is not known'}, ` +
        `${isLowerBound ? 'at least' : 'at most'} ${format(limit)} asked`;
      return { name, words, value: isKnown ? value : null, asked: limit, holds };
    });
}

/** @param {object} options of parse() @returns {Record<string, number>} the options that are bounds */
export function boundsIn(options) {
  return Object.fromEntries(
    bounds.filter(({ name }) => name in options).map(({ name }) => [name, options[name]])
  );
}
