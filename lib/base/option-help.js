import { parseArgs } from 'node:util';

/**
 * Texts about options: the help text, in groups, and the name that a misspelt option probably means.
 */

/** Width of the help text, in columns. */
const WIDTH = 100;

/** Width of an option's name and unit, in columns; a longer name has its own line. */
const NAME_WIDTH = 28;

/**
 * @param {string} table one option a line, under the titles of groups, which begin with #; a line that begins with a
 *     space continues the line before
 * @returns {[group: string, options: string[]][]}
 */
export const parseGroups = (table) =>
  table
    .replaceAll(/\n +/g, ' ')
    .split('\n# ')
    .slice(1)
    .map((lines) => {
      const [group, ...options] = lines.trim().split('\n');
      return [group, options];
    });

/** Breaks words into lines of at most `width` columns. */
function wrap(words, width) {
  const lines = [''];
  for (const word of words) {
    const last = lines.length - 1;
    if (lines[last] === '') lines[last] = word;
    else if (lines[last].length + 1 + word.length <= width) lines[last] += ` ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** @returns {string[]} the lines of one option: name and unit, purpose, and default if it has one */
export function helpEntry(nameAndUnit, help, defaultValue) {
  const words = [
    ...help.split(' '),
    ...(defaultValue === undefined ? [] : [`(default ${defaultValue})`])
  ];
  const [first, ...rest] = wrap(words, WIDTH - NAME_WIDTH - 2);
  const indent = ' '.repeat(NAME_WIDTH + 2);
  const name = `  ${nameAndUnit}`;
  const head =
    name.length < NAME_WIDTH + 2
      ? [name.padEnd(NAME_WIDTH + 2) + first]
      : [name, `${indent}${first}`];
  return [...head, ...rest.map((line) => indent + line)];
}

/**
 * @param {import('../operator/options.js').Option[]} table
 * @param {{name: string, short: string[], help: string}[]} switches
 * @returns {string} the help text: at most 100 columns, in groups
 */
export function formatHelp(table, switches) {
  const groups = [...new Set(table.map(({ group }) => group))];
  return [
    'Usage: sprites [OPTION ...]',
    '       sprites play FOLDER [--bots COUNT] [OPTION ...]',
    '       sprites grant --grants FILE [--read KEYS] …  (sprites grant --help has the rest)',
    '',
    'A server for desktops that throw sprites at each other. With play it tries one game of the arena:',
    'field, phone and panel in one window, bots that play (default 5), and a new round whenever a file',
    'of the folder changes. With grant it prints a grant, and ends.',
    ...groups.flatMap((title) => [
      '',
      `${title}:`,
      ...table
        .filter(({ group }) => group === title)
        .flatMap(({ name, type, help, default: defaultValue }) =>
          helpEntry(`--${name} ${type.unit.toUpperCase()}`, help, defaultValue)
        )
    ]),
    '',
    ...switches.flatMap(({ name, short, help }) =>
      helpEntry([`--${name}`, ...short.map((letter) => `-${letter}`)].join(', '), help)
    ),
    '',
    'Every option can be given by the environment as well: SPRITES_PORT, SPRITES_MAX_SPRITE …',
    ''
  ].join('\n');
}

/** Returns how many insertions, deletions, changes or swaps of letters turn one word into the other. */
function distance(one, other) {
  const rows = [Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const cost = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + cost);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
      }
    }
    rows.push(row);
  }
  return rows[one.length][other.length];
}

/**
 * @param {string} word the unknown name
 * @param {string[]} names the known names
 * @returns {string | undefined} the name that is probably meant
 */
export function suggest(word, names) {
  const [nearest] = names
    .map((name) => ({ name, editDistance: distance(word, name) }))
    .sort((a, b) => a.editDistance - b.editDistance);
  const maxDistance = Math.max(1, Math.floor(word.length / 3));
  return nearest !== undefined && nearest.editDistance <= maxDistance ? nearest.name : undefined;
}

/** @returns {string} a text without the passwords of its URLs: messages about options get into logs */
export const withoutPassword = (text) => text.replace(/\/\/.*@/, '//…@');

/** An invalid option, or one that can't be fulfilled. `message` is for a person, with a line for each problem. */
export class UsageError extends Error {
  code = 'ERR_SPRITES_OPTION';
}

/** Value of an option that the command line does not give. */
function missingValueError({ name, type }, next) {
  const instead = next === undefined ? 'and nothing follows it' : `not the option ${next}`;
  return new UsageError(`--${name} takes ${type.expects}, ${instead}`);
}

/**
 * Reads a command line. Node splits it; this function explains its errors in plain words. The last of repeated options
 * counts, so that a user can override the options of a script.
 *
 * @param {string[]} args without node and program
 * @param {object} known
 * @param {{name: string, type: {expects: string}, many?: boolean}[]} known.options options with a value; a value that
 *     looks like an option must be given as --name=value; with `many` the values are a list
 * @param {string[]} known.switches options without a value
 * @param {boolean} [known.words] whether other words are allowed
 * @param {Record<string, string>} [known.aliases] other names of options, also of one letter (-d); a switch --help has -h
 * @param {Record<string, string>} [known.unknown] options of other programs or earlier versions, and what to use instead
 * @returns {{values: Record<string, string | string[] | true>, words: string[]}}
 * @throws {UsageError} for an unknown option, a missing or superfluous value, and a superfluous word
 */
export function readArguments(
  args,
  { options, switches, words: mayHaveWords = false, aliases: moreAliases = {}, unknown = {} }
) {
  const aliases = { h: 'help', ...moreAliases };
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
  for (const { kind, name: spelledName, rawName, value, inlineValue } of tokens) {
    if (kind === 'positional') words.push(value);
    if (kind !== 'option') continue;
    const name = Object.hasOwn(aliases, spelledName) ? aliases[spelledName] : spelledName;
    if (!names.includes(name)) {
      if (Object.hasOwn(unknown, name)) {
        throw new UsageError(`there is no option ${rawName}: ${unknown[name]}`);
      }
      const suggestion = suggest(name, [
        ...names,
        ...Object.keys(aliases).filter(({ length }) => length > 1)
      ]);
      const advice = suggestion ? `did you mean --${suggestion}?` : 'see --help';
      throw new UsageError(`there is no option ${rawName}; ${advice}`);
    }
    const option = byName.get(name);
    if (option === undefined) {
      if (value !== undefined) throw new UsageError(`--${name} takes no value, not "${value}"`);
    } else if (value === undefined || (!inlineValue && value.startsWith('--'))) {
      throw missingValueError(option, value);
    }
    values[name] = option?.many ? [...(values[name] ?? []), value] : (value ?? true);
  }
  if (words.length > 0 && !mayHaveWords) {
    throw new UsageError(`"${withoutPassword(words[0])}" belongs to no option; see --help`);
  }
  return { values, words };
}
