import { readFileSync } from 'node:fs';

/** @returns {string} the version in package.json */
export function version() {
  return JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')).version;
}
