import { setTimeout as pause } from 'node:timers/promises';

import { cut, killed, silent, stopped, storm } from './clients.js';
import { signals } from './signals.js';
import { crashes } from './crash.js';
import { hostile } from './hostile.js';
import { Scene, Skip, stopwatch } from './scene.js';
import { workers } from './workers.js';
import { world } from './world.js';
import { answerHelp, takeOptions } from '../support/documents.js';

/**
 * The fault suite: what happens when things go wrong, what was promised for it, and what was seen.
 *
 *   node test/faults/run.js [--short] [--only TEXT] [--strict] [--jobs 3]
 *
 * Ends with 1 when a promise was not kept. A case that this host does not allow is skipped, in so
 * many words; with --strict that is a failure too, for hosts where nothing is to be missing. The
 * short form takes some three minutes.
 */

answerHelp(import.meta.url);

const { short, only, jobs, strict } = takeOptions(import.meta.url, {
  short: { type: 'boolean', default: false },
  only: { type: 'string', default: '' },
  strict: { type: 'boolean', default: false },
  jobs: { type: 'string', default: '3' }
});

/** The cases with long waits come first, since some cases run at a time. */
const cases = [
  ...[...world, cut, stopped, storm, ...crashes, ...hostile],
  ...[signals, killed, silent],
  // This case needs the machine for itself: strace has to hold a thread.
  ...(short ? [] : [workers])
];

/** Timeout of a case, in seconds. A longer case has its own timeout, `longest`. */
const CASE_TIMEOUT = short ? 240 : 420;

/** Runs one case. @returns {Promise<{mark: string, seen: string}>} */
async function runCase(one) {
  const scene = new Scene({ short });
  const timeoutSeconds = (!short && one.longest) || CASE_TIMEOUT;
  const timeout = pause(timeoutSeconds * 1000, undefined, { ref: false }).then(() => {
    throw new Error(`not done within ${timeoutSeconds} s`);
  });
  try {
    return { mark: 'ok', seen: await Promise.race([one.run(scene), timeout]) };
  } catch (error) {
    if (error instanceof Skip) return { mark: 'skipped', seen: error.message };
    return { mark: 'FAILED', seen: error.stack };
  } finally {
    await scene.end();
  }
}

const wanted = cases.filter(({ name }) => name.includes(only));
const waiting = [...wanted];
const results = new Map();
const elapsed = stopwatch();

async function runCases() {
  for (let one; (one = waiting.shift());) {
    const caseElapsed = stopwatch();
    const result = await runCase(one);
    results.set(one, result);
    process.stdout.write(
      [
        `${result.mark.padEnd(7)} ${one.name} (${caseElapsed()} s)`,
        `  promised: ${one.promise}`,
        `  seen:     ${result.seen}`,
        '',
        ''
      ].join('\n')
    );
  }
}

await Promise.all(Array.from({ length: Number(jobs) }, runCases));

const outcomes = wanted.map((one) => results.get(one).mark);
const count = (mark) => outcomes.filter((one) => one === mark).length;
process.stdout.write(
  `${count('ok')} kept, ${count('FAILED')} broken, ${count('skipped')} skipped, ` +
    `in ${elapsed()} s\n`
);
const failed = count('FAILED') + (strict ? count('skipped') : 0);
process.exitCode = wanted.length === 0 || failed > 0 ? 1 : 0;
