import { digits, time } from '../swarm/words.js';

/** Formats figures for people: `count`, `time` in milliseconds, `cores`, `bytes`. */

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const wholeNumber = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });

/** The formats of each unit: on an axis, and in text. */
const UNITS = {
  count: [(value) => compact.format(value), (value) => wholeNumber.format(value)],
  time: [time, time],
  cores: [(value) => `${digits(value * 100)} %`, (value) => `${wholeNumber.format(value * 100)} %`],
  bytes: [
    (value) => `${compact.format(value / 2 ** 20)} MB`,
    (value) => `${wholeNumber.format(value / 2 ** 20)} MB`
  ]
};

/** @returns {boolean} */
export const isNumber = (value) => typeof value === 'number' && Number.isFinite(value);

/** @param {string} unit @param {?number} value @returns {string} */
export const formatText = (unit, value) => (isNumber(value) ? UNITS[unit][1](value) : '–');

/** @param {string} unit @param {number} value @returns {string} the format for an axis */
export const formatAxis = (unit, value) => UNITS[unit][0](value);

/** @param {number} count @param {string} word @returns {string} 1 machine, 2 machines */
export const plural = (count, word) => `${count} ${word}${count === 1 ? '' : 's'}`;
