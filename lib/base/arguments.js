import { parseArgs } from 'node:util';

import { suggest } from './option-help.js';

/** A wrong command line: `message` is one line for a person. */
export class ArgumentError extends Error {}

/** What an option's value is, where none is there. */
function missing({ name, type }, next) {
  const instead = next === undefined ? 'and nothing follows it' : `not the option ${next}`;
  return new ArgumentError(`--${name} takes ${type.expects}, ${instead}`);
}

/**
 * Reads a command line. Node takes it apart; what is wrong with it is said here, in plain words. Of an option
 * that is there twice the last one counts, so that a script's own can be overruled behind it.
 *
 * @param {string[]} args without node and program
 * @param {object} known
 * @param {{name: string, type: {expects: string}, many?: boolean}[]} known.options that take a value; one that begins
 *     with a dash is a value, as long as it is not written like an option: then it has to be given as --name=value. Of
 *     one that may be there many times the values are a list
 * @param {string[]} known.switches that take none
 * @param {boolean} [known.words] whether there may be words besides
 * @param {Record<string, string>} [known.aliases] other names of options, of one letter too (-d), and whose they are
 * @param {Record<string, string>} [known.elsewhere] names of other programs' options, or of earlier versions', and what to do instead
 * @returns {{values: Record<string, string | string[] | true>, words: string[]}}
 * @throws {ArgumentError} on an option that is unknown, lacks its value or has one too many, and on a word too many
 */
export function readArguments(
  args,
  { options, switches, words: mayHaveWords = false, aliases = {}, elsewhere = {} }
) {
  const byName = new Map(options.map((option) => [option.name, option]));
  const names = [...byName.keys(), ...switches];
  const types = [...names, ...Object.keys(aliases)].map((name) => [
    name,
    { type: byName.has(aliases[name] ?? name) ? 'string' : 'boolean' }
  ]);
  const { tokens } = parseArgs({
    ...{ args, options: Object.fromEntries(types), tokens: true },
    ...{ strict: false, allowPositionals: true }
  });
  const values = {};
  const words = [];
  for (const { kind, name: given, rawName, value, inlineValue } of tokens) {
    if (kind === 'positional') words.push(value);
    if (kind !== 'option') continue;
    const name = Object.hasOwn(aliases, given) ? aliases[given] : given;
    if (!names.includes(name)) {
      if (Object.hasOwn(elsewhere, name)) {
        throw new ArgumentError(`there is no option ${rawName}: ${elsewhere[name]}`);
      }
      const meant = suggest(name, [
        ...names,
        ...Object.keys(aliases).filter(({ length }) => length > 1)
      ]);
      const advice = meant ? `did you mean --${meant}?` : 'see --help';
      throw new ArgumentError(`there is no option ${rawName}; ${advice}`);
    }
    const option = byName.get(name);
    if (option === undefined) {
      if (value !== undefined) throw new ArgumentError(`--${name} takes no value, not "${value}"`);
    } else if (value === undefined || (!inlineValue && value.startsWith('--'))) {
      throw missing(option, value);
    }
    values[name] = option?.many ? [...(values[name] ?? []), value] : (value ?? true);
  }
  if (words.length > 0 && !mayHaveWords) {
    throw new ArgumentError(`"${words[0]}" belongs to no option; see --help`);
  }
  return { values, words };
}
