/**
 * The main program that the fuzzers share: duration, seed, planted bug, and report.
 */
import { basename } from 'node:path';
import { performance } from 'node:perf_hooks';
import process from 'node:process';
import { setImmediate as turn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { valuesOf } from '../support/documents.js';
import { freshSeed } from './random.js';

/** Inputs of a batch. After each batch the clock is read and the event loop turns. */
const BATCH = 64;

/**
 * Returns the condition under which a run goes on.
 *
 * @param {{count?: number, seconds?: number}} bounds the first bound that is reached ends the run; 10,000
 *     inputs without bounds
 * @returns {(runs: number) => boolean} whether to go on after this number of inputs
 */
function goesOnWithin({ count, seconds }) {
  const maxRuns = count ?? (seconds === undefined ? 10000 : Infinity);
  const endTime = seconds === undefined ? Infinity : performance.now() + seconds * 1000;
  return (runs) => runs < maxRuns && performance.now() < endTime;
}

/** Returns an input as the report shows it. */
const shownText = (bytes) => JSON.stringify(bytes.toString('latin1'));

/**
 * Tries inputs in batches, until a bound is reached or a fault is found.
 *
 * @param {{count?: number, seconds?: number}} bounds
 * @param {() => Tried | Promise<Tried>} tryOne makes an input and reads it. Returns `{bytes, good, what}`: the input,
 *     whether the reader accepted it, and the fault or null. The inputs of a batch are tried concurrently
 * @returns {Promise<{runs: number, good: number, failure: null|{what: string, input: string}}>}
 */
export async function tryInputs(bounds, tryOne) {
  const goesOn = goesOnWithin(bounds);
  let runs = 0;
  let good = 0;
  while (goesOn(runs)) {
    const batch = await Promise.all(Array.from({ length: BATCH }, tryOne));
    runs += BATCH;
    good += batch.filter((tried) => tried.good).length;
    const faulty = batch.find(({ what }) => what !== null);
    if (faulty)
      return { runs, good, failure: { what: faulty.what, input: shownText(faulty.bytes) } };
    await turn();
  }
  return { runs, good, failure: null };
}

/**
 * Runs a fuzzer from the command line. Prints its counts. Exits with 1 for a fault, and with 2 for wrong options.
 * Does nothing when another file imports the fuzzer.
 *
 * @param {string} url the fuzzer's own `import.meta.url`
 * @param {(options: object) => Promise<object>} fuzz
 * @param {string[]} plants the names that `--plant` accepts
 */
export async function main(url, fuzz, plants) {
  if (process.argv[1] !== fileURLToPath(url)) return;
  const name = basename(process.argv[1], '.js');
  const usage = `usage: node test/fuzz/${name}.js [--seconds N] [--count N] [--seed N] [--plant NAME]
bugs to plant: ${plants.join(', ')}`;
  let values;
  try {
    values = valuesOf({
      seconds: { type: 'string' },
      count: { type: 'string' },
      seed: { type: 'string' },
      plant: { type: 'string' },
      help: { type: 'boolean' }
    });
    for (const key of ['seconds', 'count', 'seed']) {
      if (values[key] !== undefined && !/^\d{1,10}$/.test(values[key])) {
        throw new TypeError(`--${key} wants a number`);
      }
    }
    if (values.plant !== undefined && !plants.includes(values.plant)) {
      throw new TypeError(`there is no bug named ${values.plant} to plant`);
    }
  } catch (error) {
    process.stderr.write(`${error.message}\n${usage}\n`);
    process.exitCode = 2;
    return;
  }
  if (values.help) {
    process.stdout.write(`${usage}\n`);
    return;
  }
  const number = (text) => (text === undefined ? undefined : Number(text));
  const seed = number(values.seed) ?? freshSeed();
  process.stdout.write(`${name}: seed ${seed}\n`);
  const started = process.hrtime.bigint();
  const { failure, ...counts } = await fuzz({
    seed,
    count: number(values.count),
    seconds: number(values.seconds),
    plant: values.plant
  });
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  process.stdout.write(`${name}: ${JSON.stringify(counts)} in ${seconds.toFixed(1)} s\n`);
  if (failure === null) return;
  process.stdout.write(`${name}: FOUND ${failure.what}\n${failure.input}\n`);
  process.exitCode = 1;
}
