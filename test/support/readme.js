import { readFileSync } from 'node:fs';

/** What the README says. */
export const readme = readFileSync(new URL('../../README.md', import.meta.url), 'utf8');

/**
 * A program or a file as the README shows it.
 *
 * @param {string} after text of the README above it
 * @returns {string} the first indented block below that, without its indentation
 * @throws {Error} when there is none
 */
export function shown(after) {
  const at = readme.indexOf(after);
  const [block] = (at >= 0 && /(?:^ {4}.*\n)+/m.exec(readme.slice(at))) || [];
  if (!block) throw new Error(`the README shows nothing below "${after}"`);
  return block.replace(/^ {4}/gm, '');
}
