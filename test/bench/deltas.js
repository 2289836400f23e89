import { gzipSync } from 'node:zlib';
import { fileURLToPath } from 'node:url';

import { change, compress, wholeAnswer } from '../../lib/feeds/change.js';
import { Random } from '../fuzz/random.js';
import { answerHelp } from '../support/documents.js';
import { tableOf, tenth, whole } from './figures.js';

answerHelp(import.meta.url);

/**
 * Counts the bytes sent to a watcher of a football match for each version: whole values and patches, both plain and
 * compressed by gzip. It also measures the CPU time to compress a version, which is done once for all watchers. The
 * server compresses values in a worker thread, and patches as it answers: in polls patches of 1 KiB to 16 KiB. In an
 * event stream it compresses each event by itself, which takes 13 bytes less than here.
 *
 *     npm run bench:deltas
 */

const KEY = 'matchesfeed/8/matchcentre';

const VERSIONS = 301;

/** The settings of native/http/event_gzip.h. */
const NATIVE_GZIP = { windowBits: 13, memLevel: 6 };

/** Yields the versions of a match: 36 players with 43 numbers each, and all events; some 35 kB of JSON. */
function* playMatch(seed) {
  const random = new Random(seed);
  const numbers = () =>
    Object.fromEntries(Array.from({ length: 43 }, (_, at) => [`countOfThing${at}`, 0]));
  const players = Array.from({ length: 36 }, (_, number) => {
    const place = { x: random.below(100), y: random.below(100) };
    return { number, name: `Player ${number}`, rating: 6.4, place, numbers: numbers() };
  });
  const match = { seconds: 0, ball: { x: 50, y: 50 }, players, events: [] };
  for (let step = 1; step <= VERSIONS; step += 1) {
    match.seconds += 18;
    for (let changes = 20 + random.below(10); changes > 0; changes -= 1) {
      const { place, numbers } = random.pick(players);
      numbers[random.pick(Object.keys(numbers))] += 1;
      if (changes % 4 === 0) Object.assign(place, { x: random.below(100), y: random.below(100) });
    }
    random.pick(players).rating = random.below(100) / 10;
    match.ball = { ...random.pick(players).place };
    if (random.below(3) === 0) {
      match.events.unshift({ id: step, text: `${random.pick(players).name} shoots over the bar.` });
    }
    yield match;
  }
}

/**
 * Plays a match, and counts the bytes of the answers.
 *
 * @param {number} seed seed of the match
 * @returns {{versions: number, values: number, whole: number, wholeGzip: number, patches: number,
 *     patchesGzip: number, cpu: {wholeGzip: number, patchesGzip: number}}} sums of bytes of the answers' bodies;
 *     `values`: of the values alone; `cpu`: milliseconds of CPU. The first answer, which is always whole, does not
 *     count
 */
export function measure(seed) {
  const job = { key: KEY, cursor: '', kind: 'value', most: 2 ** 20, gzip: false };
  let before;
  const sums = { versions: 0, values: 0, whole: 0, wholeGzip: 0, patches: 0, patchesGzip: 0 };
  const cpu = { wholeGzip: 0, patchesGzip: 0 };
  const measureCompression = (name, compress) => {
    const before = process.cpuUsage();
    const { length } = compress();
    const { user, system } = process.cpuUsage(before);
    cpu[name] += (user + system) / 1000;
    sums[name] += length;
  };
  let version = 0;
  for (const match of playMatch(seed)) {
    version += 1;
    const cursor = `e1x2y3z4w5-${version}`;
    const { value, patch } = change({
      ...job,
      cursor,
      body: Buffer.from(JSON.stringify(match)),
      before
    });
    const isFirst = before === undefined;
    before = value;
    if (isFirst) continue;
    const answerHead = `{"feed":"${KEY}","from":"e1x2y3z4w5-${version - 1}","cursor":"${cursor}"`;
    const patchAnswer = Buffer.from(`${answerHead},"patch":[${Buffer.from(patch)}]}`);
    const valueAnswer = wholeAnswer(KEY, cursor, value);
    const isPatch = patch.length > 0 && patchAnswer.length < valueAnswer.length;
    sums.versions += 1;
    sums.values += value.length;
    sums.whole += valueAnswer.length;
    measureCompression('wholeGzip', () => compress(KEY, cursor, value));
    const sentAnswer = isPatch ? patchAnswer : valueAnswer;
    sums.patches += sentAnswer.length;
    measureCompression('patchesGzip', () => gzipSync(sentAnswer, NATIVE_GZIP));
  }
  return { ...sums, cpu };
}

function main() {
  const seed = Number(process.argv[2] ?? 1);
  const { versions, values, cpu, ...sums } = measure(seed);
  const number = whole.format;
  console.log(`Match ${seed}, ${versions} versions of ${number(values / versions)} bytes.\n`);
  const titles = {
    ...{ whole: 'whole', wholeGzip: 'whole, gzip' },
    ...{ patches: 'patches', patchesGzip: 'patches, gzip' }
  };
  const columns = {
    sent: (name) => titles[name],
    'bytes in all': (name) => number(sums[name]),
    'a version': (name) => number(sums[name] / versions),
    'of whole': (name) => `${tenth.format((100 * sums[name]) / sums.whole)}%`,
    'compressing a version': (name) =>
      name in cpu ? `${number((1000 * cpu[name]) / versions)} µs` : '-'
  };
  console.log(tableOf(columns, Object.keys(titles)));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) main();
