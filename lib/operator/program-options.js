import { inspect } from 'node:util';

import { camelCase, REMOVED_OPTIONS, readAllOptions, optionTable } from './options.js';
import { suggest, UsageError, withoutPassword } from '../base/option-help.js';

/** Reads the options that a program gives to createServer: names in camel case, no environment. */

/** Options of a whole process, and options that start no server. */
const PROCESS_OPTIONS = { 'log-level': 'give a log', check: 'run "sprites" with it' };

/** Units of the options that a program may give as a number. */
const NUMBER_UNITS = ['number', 'seconds', 'bytes'];

/** The options of createServer. */
export const programOptionTable = optionTable.filter(({ name }) => !(name in PROCESS_OPTIONS));

/**
 * Reads the options of a program.
 *
 * @param {Record<string, string | number | undefined>} values values by names in camel case: numbers, or
 *     texts as on the command line; undefined for the default
 * @returns {object} all options, as readOptions returns them
 * @throws {UsageError} with a message of one line: the wrong option, and what it expects
 */
export function readProgramOptions(values) {
  const names = programOptionTable.map(({ name }) => camelCase(name));
  for (const [name, value] of Object.entries(values)) {
    const [, instead] =
      Object.entries({ ...PROCESS_OPTIONS, ...REMOVED_OPTIONS }).find(
        ([other]) => camelCase(other) === name
      ) ?? [];
    if (instead !== undefined) throw new UsageError(`${name} is no option here: ${instead}`);
    if (!names.includes(name)) {
      const suggestion = suggest(name, names);
      throw new UsageError(
        `there is no option ${name}${suggestion ? `; did you mean ${suggestion}?` : ''}`
      );
    }
    const { type } = programOptionTable.find((option) => camelCase(option.name) === name);
    const mayBeNumber = NUMBER_UNITS.includes(type.unit);
    if (!['string', 'undefined', ...(mayBeNumber ? ['number'] : [])].includes(typeof value)) {
      const shown = withoutPassword(inspect(value, { depth: 0, breakLength: Infinity }));
      throw new UsageError(`${name} takes ${type.expects}, not ${shown.slice(0, 60)}`);
    }
  }
  return readAllOptions((name) => {
    const value = values[camelCase(name)];
    return value === undefined ? undefined : [String(value), camelCase(name)];
  });
}

/**
 * @param {string} message with names of options as on the command line
 * @returns {string} the message with their names in a program: `--tls-cert` → `tlsCert`
 */
export const withProgramNames = (message) =>
  message.replace(/(?<![\w-])--([a-z]+(?:-[a-z]+)*)/g, (_, name) => camelCase(name));
