import { playHistory } from '../support/feeds-history.js';
import { takeOptions } from '../support/documents.js';
import { Teardowns } from '../support/processes.js';
import { Random, freshSeed } from './random.js';

/**
 * Plays random histories of feeds, one after the other, with the JavaScript client and, with --program, the C++ client:
 * see test/support/feeds-history.js.
 *
 *     node test/fuzz/feeds.js --seconds 300 [--seed N] [--steps N] [--program BUILD/sprites_feeds_probe]
 *
 * Prints the seed and exits with 1 when a watcher saw a wrong value.
 */

const {
  seconds,
  seed: first,
  steps,
  program
} = takeOptions(import.meta.url, {
  seconds: { type: 'string', default: '60' },
  seed: { type: 'string', default: String(freshSeed()) },
  steps: { type: 'string', default: '120' },
  program: { type: 'string' }
});

const endTime = performance.now() + Number(seconds) * 1000;
const sums = { histories: 0, told: 0, patched: 0, restarts: 0 };
const faults = {};
for (let seed = Number(first); performance.now() < endTime; seed += 1) {
  const t = new Teardowns();
  try {
    const options = { random: new Random(seed), steps: Number(steps), program };
    const { faults: faultCounts, ...history } = await playHistory(t, options);
    sums.histories += 1;
    for (const [name, count] of Object.entries(history)) sums[name] += count;
    for (const [name, count] of Object.entries(faultCounts))
      faults[name] = (faults[name] ?? 0) + count;
  } catch (error) {
    console.log(`seed ${seed}: ${error.stack}`);
    process.exitCode = 1;
    break;
  } finally {
    await t.end();
  }
}
console.log(JSON.stringify({ ...sums, faults }));
