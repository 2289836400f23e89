import { readFileSync } from 'node:fs';

/**
 * Reads the file that an option names.
 *
 * @param {string} name of the option, without its dashes
 * @param {string} file
 * @returns {Buffer}
 * @throws {Error} in one line that names both
 */
export function readOptionFile(name, file) {
  try {
    return readFileSync(file);
  } catch (error) {
    throw new Error(`--${name} ${file} can't be read (${error.code})`, { cause: error });
  }
}

/** The same of a text, without the byte order mark that some editors put in front. @returns {string} */
export const readOptionText = (name, file) => new TextDecoder().decode(readOptionFile(name, file));
