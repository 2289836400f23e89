import { readFileSync } from 'node:fs';

/** @returns {string} of the package, as package.json has it */
export function version() {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}
