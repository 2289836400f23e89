import { parseArgs } from 'node:util';

/**
 * What a person is told of the options: the help text, in groups, and what a misspelt name may have
 * been meant to be.
 */

/** Columns of the help text. */
const WIDTH = 100;

/** Columns of an option's name and unit; a longer one has a line of its own. */
const NAMES = 28;

/**
 * @param {string} table a line an option, under the titles of their groups, which begin with #; a line that begins with a
 *     space goes on with the one before
 * @returns {[group: string, options: string[]][]}
 */
export const inGroups = (table) =>
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

/** @returns {string[]} one option's lines: its name and unit, what it is for, and its default where it has one */
export function entry(left, help, usual) {
  const words = [...help.split(' '), ...(usual === undefined ? [] : [`(default ${usual})`])];
  const [first, ...rest] = wrap(words, WIDTH - NAMES - 2);
  const indent = ' '.repeat(NAMES + 2);
  const name = `  ${left}`;
  const head =
    name.length < NAMES + 2 ? [name.padEnd(NAMES + 2) + first] : [name, `${indent}${first}`];
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
        .flatMap(({ name, type, help, default: usual }) =>
          entry(`--${name} ${type.unit.toUpperCase()}`, help, usual)
        )
    ]),
    '',
    ...switches.flatMap(({ name, short, help }) =>
      entry([`--${name}`, ...short.map((letter) => `-${letter}`)].join(', '), help)
    ),
    '',
    'Every option can be given by the environment as well: SPRITES_PORT, SPRITES_MAX_SPRITE …',
    ''
  ].join('\n');
}

/** How many letters must be put in, left out, changed or swapped to make one word of the other. */
function distance(one, other) {
  const rows = [Array.from({ length: other.length + 1 }, (_, j) => j)];
  for (let i = 1; i <= one.length; i += 1) {
    const row = [i];
    for (let j = 1; j <= other.length; j += 1) {
      const same = one[i - 1] === other[j - 1] ? 0 : 1;
      row[j] = Math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + same);
      if (i > 1 && j > 1 && one[i - 1] === other[j - 2] && one[i - 2] === other[j - 1]) {
        row[j] = Math.min(row[j], rows[i - 2][j - 2] + 1);
      }
    }
    rows.push(row);
  }
  return rows[one.length][other.length];
}

/**
 * @param {string} word what was given
 * @param {string[]} names what there is
 * @returns {string | undefined} the name that was probably meant
 */
export function suggest(word, names) {
  const [best] = names
    .map((name) => ({ name, far: distance(word, name) }))
    .sort((a, b) => a.far - b.far);
  const near = Math.max(1, Math.floor(word.length / 3));
  return best !== undefined && best.far <= near ? best.name : undefined;
}

/** @returns {string} a text that may have URLs, without the passwords in them: what is said of an option gets into logs */
export const withoutPassword = (text) => text.replace(/\/\/.*@/, '//…@');

/** A wrong option, or what it asks for can't be had: `message` is for a person, a line for each thing. */
export class UsageError extends Error {
  code = 'ERR_SPRITES_OPTION';
}

/** What an option's value is, where none is there. */
function missing({ name, type }, next) {
  const instead = next === undefined ? 'and nothing follows it' : `not the option ${next}`;
  return new UsageError(`--${name} takes ${type.expects}, ${instead}`);
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
 * @param {Record<string, string>} [known.aliases] other names of options, of one letter too (-d), and whose they are; -h is
 *     that of a switch --help
 * @param {Record<string, string>} [known.unknown] names of other programs' options, or of earlier versions', and what to do instead
 * @returns {{values: Record<string, string | string[] | true>, words: string[]}}
 * @throws {UsageError} on an option that is unknown, lacks its value or has one too many, and on a word too many
 */
export function readArguments(
  args,
  { options, switches, words: mayHaveWords = false, aliases: more = {}, unknown = {} }
) {
  const aliases = { h: 'help', ...more };
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
      if (Object.hasOwn(unknown, name)) {
        throw new UsageError(`there is no option ${rawName}: ${unknown[name]}`);
      }
      const meant = suggest(name, [
        ...names,
        ...Object.keys(aliases).filter(({ length }) => length > 1)
      ]);
      const advice = meant ? `did you mean --${meant}?` : 'see --help';
      throw new UsageError(`there is no option ${rawName}; ${advice}`);
    }
    const option = byName.get(name);
    if (option === undefined) {
      if (value !== undefined) throw new UsageError(`--${name} takes no value, not "${value}"`);
    } else if (value === undefined || (!inlineValue && value.startsWith('--'))) {
      throw missing(option, value);
    }
    values[name] = option?.many ? [...(values[name] ?? []), value] : (value ?? true);
  }
  if (words.length > 0 && !mayHaveWords) {
    throw new UsageError(`"${withoutPassword(words[0])}" belongs to no option; see --help`);
  }
  return { values, words };
}
