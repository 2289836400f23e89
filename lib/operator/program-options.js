import { inspect } from 'node:util';

import { camel, GONE, readEach, table } from './options.js';
import { suggest, UsageError, withoutPassword } from '../base/option-help.js';

/** The options as another program gives them to a server within it: names in camel case, no environment. */

/** Options that say something of a whole process, or ask for something else than a server. */
const OF_THE_PROGRAM = { 'log-level': 'give a log', check: 'run "sprites" with it' };

/** The others. */
export const tableForPrograms = table.filter(({ name }) => !(name in OF_THE_PROGRAM));

/**
 * Reads options that a program gives.
 *
 * @param {Record<string, string | number | undefined>} given camel-case names to values: numbers, or what
 *     one would type; undefined for the default
 * @returns {object} all options, as from readOptions
 * @throws {UsageError} saying in one line which option is wrong and what it expects
 */
export function takeOptions(given) {
  const names = tableForPrograms.map(({ name }) => camel(name));
  for (const [name, value] of Object.entries(given)) {
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
    const value = given[camel(name)];
    return value === undefined ? undefined : [String(value), camel(name)];
  });
}

/**
 * @param {string} message that names options as on the command line
 * @returns {string} the same with their names in a program: `--tls-cert` → `tlsCert`
 */
export const asInPrograms = (message) =>
  message.replace(/(?<![\w-])--([a-z]+(?:-[a-z]+)*)/g, (_, name) => camel(name));
