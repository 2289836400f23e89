import { gzipSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';

import { change, compress, wholeAnswer } from '../../lib/feeds/change.js';
import { Match, STEPS } from '../../lib/football/match.js';
import { answerHelp } from '../support/opening-comment.js';

answerHelp(import.meta.url);

/**
 * Counts the bytes that a watcher of the football match is sent for each version: whole values and patches, both
 * plain and compressed by gzip. The server compresses whole values only: patches are short, and watchers may need
 * different ones.
 *
 *     npm run bench:deltas
 */

const KEY = 'matchesfeed/8/matchcentre';

/**
 * Plays a match and counts what the answers would be.
 *
 * @param {number} seed of the match
 * @returns {{versions: number, values: number, whole: number, wholeGzip: number, patches: number,
 *     patchesGzip: number}} sums of bytes of the answers' bodies; `values` of the values alone. The
 *     first answer, which is whole for all, is in none of them
 */
export function measure(seed) {
  const match = new Match(seed);
  const bytes = () => Buffer.from(JSON.stringify(match.value));
  const job = { key: KEY, cursor: '', kind: 'value', most: 2 ** 20, gzip: false };
  let { value: before } = change({ ...job, body: bytes() });
  const sums = { versions: 0, values: 0, whole: 0, wholeGzip: 0, patches: 0, patchesGzip: 0 };
  for (let version = 2; !match.isOver; version += 1) {
    match.step();
    const cursor = `e1x2y3z4w5-${version}`;
    const { value, patch } = change({ ...job, cursor, body: bytes(), before });
    const from = `{"feed":"${KEY}","from":"e1x2y3z4w5-${version - 1}","cursor":"${cursor}"`;
    const short = Buffer.from(`${from},"patch":[${Buffer.from(patch)}]}`);
    const whole = wholeAnswer(KEY, cursor, value);
    const isPatch = patch.length > 0 && short.length < whole.length;
    sums.versions += 1;
    sums.values += value.length;
    sums.whole += whole.length;
    sums.wholeGzip += compress(KEY, cursor, value).length;
    sums.patches += isPatch ? short.length : whole.length;
    sums.patchesGzip += gzipSync(isPatch ? short : whole).length;
    before = value;
  }
  return sums;
}

function main() {
  const seed = Number(process.argv[2] ?? 1);
  const { versions, values, ...sums } = measure(seed);
  const number = (value, digits = 0) =>
    value.toLocaleString('en', { maximumFractionDigits: digits, minimumFractionDigits: digits });
  console.log(`Match ${seed}, ${versions} versions of ${number(values / versions)} bytes.\n`);
  console.log('| sent | bytes in all | a version | of whole |');
  console.log('| --- | --- | --- | --- |');
  const names = {
    whole: 'whole',
    wholeGzip: 'whole, gzip',
    patches: 'patches',
    patchesGzip: 'patches, gzip (the server sends them as they are)'
  };
  for (const [name, title] of Object.entries(names)) {
    const share = number((100 * sums[name]) / sums.whole, 1);
    const each = number(sums[name] / versions);
    console.log(`| ${title} | ${number(sums[name])} | ${each} | ${share}% |`);
  }
  if (versions !== STEPS) throw new Error(`a match has ${STEPS} steps`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
