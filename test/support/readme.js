import { readFileSync } from 'node:fs';

/**
 * What one of the project's documents says.
 *
 * @param {string} path from the top of the project
 * @returns {string}
 */
export function documentAt(path) {
  return readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8');
}

/**
 * A program or a file as a document shows it.
 *
 * @param {string} path the document, from the top of the project
 * @param {string} after text of the document above it
 * @returns {string} the first indented block below that, without its indentation
 * @throws {Error} when there is none
 */
export function shown(path, after) {
  const text = documentAt(path);
  const at = text.indexOf(after);
  const [block] = (at >= 0 && /(?:^ {4}.*\n)+/m.exec(text.slice(at))) || [];
  if (!block) throw new Error(`${path} shows nothing below "${after}"`);
  return block.replace(/^ {4}/gm, '');
}
