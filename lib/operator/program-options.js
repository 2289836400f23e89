import { inspect } from 'node:util';

import { camel, GONE, readEach, table } from './options.js';
import { suggest, UsageError, withoutPassword } from '../base/option-help.js';

/** Reads the options that a program gives to createServer: names in camel case, no environment. */

/** Options of a whole process, and options that start no server. */
const OF_THE_PROGRAM = { 'log-level': 'give a log', check: 'run "sprites" with it' };

/** The options of createServer. */
export const tableForPrograms = table.filter(({ name }) => !(name in OF_THE_PROGRAM));

/**
 * Reads the options of a program.
 *
 * @param {Record<string, string | number | undefined>} values values by names in camel case: numbers, or
 *     texts as on the command line; undefined for the default
 * @returns {object} all options, as readOptions returns them
 * @throws {UsageError} with a message of one line: the wrong option, and what it expects
 */
export function readProgramOptions(values) {
  const names = tableForPrograms.map(({ name }) => camel(name));
  for (const [name, value] of Object.entries(values)) {
    const [, instead] =
      Object.entries({ ...OF_THE_PROGRAM, ...GONE }).find(([other]) => camel(other) === name) ?? [];
    if (instead !== undefined) throw new UsageError(`${name} is no option here: ${instead}`);
    if (!names.includes(name)) {
      const meant = suggest(name, names);
      throw new UsageError(`there is no option ${name}${meant ? `; did you mean ${meant}?` : ''}`);
    }
    if (!['string', 'number', 'undefined'].includes(typeof value)) {
      const { type } = tableForPrograms.find((option) => camel(option.name) === name);
      const shown = withoutPassword(inspect(value, { depth: 0, breakLength: Infinity }));
      throw new UsageError(`${name} takes ${type.expects}, not ${shown.slice(0, 60)}`);
    }
  }
  return readEach((name) => {
    const value = values[camel(name)];
    return value === undefined ? undefined : [String(value), camel(name)];
  });
}

/**
 * @param {string} message with names of options as on the command line
 * @returns {string} the message with their names in a program: `--tls-cert` → `tlsCert`
 */
export const withProgramNames = (message) =>
  message.replace(/(?<![\w-])--([a-z]+(?:-[a-z]+)*)/g, (_, name) => camel(name));
