import { readFileSync } from 'node:fs';

const LINES = readFileSync(new URL('seeds.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n');

/**
 * What the fuzzers begin with, also those in C++ (test/native/fuzz.h): real requests and bodies, as they came over the
 * wire from the clients they are named after.
 *
 * @param {string} kind http, json or watch
 * @returns {{name: string, bytes: Buffer}[]}
 */
export const seedsOf = (kind) =>
  LINES.map((line) => JSON.parse(line))
    .filter(([its]) => its === kind)
    .map(([, name, text]) => ({ name, bytes: Buffer.from(text) }));
