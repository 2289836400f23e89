import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

import { readArguments } from '../../lib/base/option-help.js';

/**
 * Returns the text of one of the project's documents.
 *
 * @param {string} path from the project's root
 * @returns {string}
 */
export function documentAt(path) {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/**
 * Returns a program or a file that a document shows.
 *
 * @param {string} path the document, from the project's root
 * @param {string} after a text in the document above the block
 * @returns {string} the first indented block below that text, without its indentation
 * @throws {Error} when there is no such block
 */
export function shown(path, after) {
  const text = documentAt(path);
  const at = text.indexOf(after);
  const [block] = (at >= 0 && /(?:^ {4}.*\n)+/m.exec(text.slice(at))) || [];
  if (!block) throw new Error(`${path} shows nothing below "${after}"`);
  return block.replace(/^ {4}/gm, '');
}

/** A program's manual is the comment that opens its file: what it does, its options, its exit codes. */

/**
 * @param {string} url the program's own `import.meta.url`
 * @returns {string} the comment's text, without its asterisks
 */
export function openingComment(url) {
  const [, lines] = /^\/\*\*\n([^]*?)\n \*\/$/m.exec(readFileSync(fileURLToPath(url), 'utf8'));
  return `${lines.replace(/^ \* ?/gm, '')}\n`;
}

/**
 * Prints the program's manual and exits when --help is among its options. Does nothing when another program imports
 * the file.
 *
 * @param {string} url the program's own `import.meta.url`
 */
export function answerHelp(url) {
  if (process.argv[1] !== fileURLToPath(url) || !process.argv.includes('--help')) return;
  process.stdout.write(openingComment(url));
  process.exit(0);
}

/**
 * Ends the program with exit status 2, for wrong usage.
 *
 * @param {string} url the program's own `import.meta.url`
 * @param {string} message what is wrong
 */
export function refuseUsage(url, message) {
  const name = basename(fileURLToPath(url), '.js');
  process.stderr.write(`${name}: ${message}\n${name}: --help tells its options\n`);
  process.exit(2);
}

/**
 * Reads the options of the program that runs.
 *
 * @param {import('node:util').ParseArgsConfig['options']} options
 * @returns {Record<string, string | boolean | undefined>} the values by name
 * @throws {Error} of one line, when an option is unknown or lacks its value
 */
export function valuesOf(options) {
  const names = Object.keys(options);
  const isSwitch = (name) => options[name].type === 'boolean';
  const { values } = readArguments(process.argv.slice(2), {
    options: names
      .filter((name) => !isSwitch(name))
      .map((name) => ({ name, type: { expects: 'a value' } })),
    switches: names.filter(isSwitch)
  });
  const defaults = names.map((name) => [name, options[name].default]);
  return { ...Object.fromEntries(defaults), ...values };
}

/**
 * Reads a program's options. Ends the program by `refuseUsage` when an option is unknown or lacks its value.
 *
 * @param {string} url the program's own `import.meta.url`
 * @param {import('node:util').ParseArgsConfig['options']} options
 * @returns {Record<string, string | boolean | undefined>} the values by name
 */
export function takeOptions(url, options) {
  try {
    return valuesOf(options);
  } catch (error) {
    return refuseUsage(url, error.message);
  }
}

/**
 * Reads a program's options by a table of their defaults.
 *
 * @param {string} url the program's own `import.meta.url`
 * @param {Record<string, [usual: number, least?: number, most?: number] | string | boolean>} table defaults by
 *     name: a number with its bounds, a text, or a switch
 * @returns {Record<string, number | string | boolean>} the values, by name in camel case
 */
export function takeValues(url, table) {
  const types = Object.entries(table).map(([name, defaults]) => {
    const [first] = [defaults].flat();
    return [name, { type: typeof first === 'boolean' ? 'boolean' : 'string', default: first }];
  });
  const read = ([name, value]) => {
    if (!Array.isArray(table[name])) return value;
    const [, least = 0, most = 1e9] = table[name];
    const isNumber = Number(value) >= least && Number(value) <= most;
    return isNumber ? Number(value) : refuseUsage(url, `--${name} is ${least} to ${most}`);
  };
  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  const values = Object.entries(takeOptions(url, Object.fromEntries(types)));
  return Object.fromEntries(values.map((one) => [camel(one[0]), read(one)]));
}
