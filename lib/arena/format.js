import { isObject } from '../client/answers.js';

/**
 * Reads and checks a game's inputs.json. README.md has an example.
 */

const NAME = /^[a-zA-Z][a-zA-Z0-9_]{0,31}$/;
const PAGE = /^[a-z][a-z0-9-]{0,31}$/;

/** Most inputs, most settings and most pages of one game. */
const MAX_MEMBERS = 16;

/** Throws an Error with words for the author of an inputs.json, unless `condition`. */
function check(condition, message) {
  if (!condition) throw new Error(message);
}

/** Refuses unknown members: most of them are misspelt names. */
function checkMembers(value, known, what) {
  check(isObject(value), `${what} must be an object`);
  for (const name of Object.keys(value)) {
    check(
      known.includes(name),
      `${what} has ${JSON.stringify(name)}, and may have ${known.join(', ')}`
    );
  }
}

function readText(value, maxLength, what) {
  const isValid = typeof value === 'string' && value.length > 0 && value.length <= maxLength;
  check(isValid, `${what} must be a text of 1 to ${maxLength} characters`);
  return value;
}

function readRate(value, what) {
  check(
    Number.isInteger(value) && value >= 1 && value <= 60,
    `${what} must be a whole number from 1 to 60`
  );
  return value;
}

/** Reads the range of one input or setting. */
function readRange(value, what) {
  checkMembers(value, ['min', 'max', 'start', 'integer', 'title'], what);
  const { min, max, start = min, integer = false, title } = value;
  for (const number of [min, max, start]) {
    check(Number.isFinite(number), `${what} must have min and max, and start if any, as numbers`);
    check(
      integer !== true || Number.isSafeInteger(number),
      `${what} is an integer: min, max and start must be`
    );
  }
  check(min <= start && start <= max, `${what} must have min <= start <= max`);
  check(typeof integer === 'boolean', `${what}: integer must be true or false`);
  if (title !== undefined) readText(title, 60, `${what}: title`);
  return { min, max, start, integer, ...(title !== undefined && { title }) };
}

function readRanges(value, minMembers, what) {
  check(isObject(value), `${what} must be an object`);
  const entries = Object.entries(value);
  check(
    entries.length >= minMembers && entries.length <= MAX_MEMBERS,
    `${what} must have ${minMembers} to ${MAX_MEMBERS} members`
  );
  return Object.fromEntries(
    entries.map(([name, member]) => {
      const isValid = NAME.test(name) && name !== 'constructor' && name !== 'prototype';
      check(
        isValid,
        `${what}: ${JSON.stringify(name)} must be letters, digits and _, a letter first, 32 at most`
      );
      return [name, readRange(member, `${what}.${name}`)];
    })
  );
}

/**
 * @param {string} text of an inputs.json
 * @returns {{title: string, about: string, rate: number, pace: number, pages: string[],
 *     inputs: Record<string, {min: number, max: number, start: number, integer: boolean}>,
 *     settings: Record<string, object>}}
 * @throws {Error} with the first mistake, in one line
 */
export function readFormat(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error('it is no JSON', { cause: error });
  }
  checkMembers(value, ['title', 'about', 'rate', 'pace', 'pages', 'inputs', 'settings'], 'it');
  const { title, about = '', rate = 4, pace = 20, pages = ['play'], inputs, settings = {} } = value;
  if (about !== '') readText(about, 200, 'about');
  const isPageList = Array.isArray(pages) && pages.length > 0 && pages.length <= MAX_MEMBERS;
  check(
    isPageList &&
      pages.every((page) => typeof page === 'string' && PAGE.test(page) && page !== 'lobby'),
    `pages must be 1 to ${MAX_MEMBERS} names of a-z, 0-9 and -, none of them lobby`
  );
  return {
    title: readText(title, 60, 'title'),
    about,
    rate: readRate(rate, 'rate'),
    pace: readRate(pace, 'pace'),
    pages,
    inputs: readRanges(inputs, 1, 'inputs'),
    settings: readRanges(settings, 0, 'settings')
  };
}
