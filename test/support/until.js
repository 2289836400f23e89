import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';

/**
 * Poll interval in milliseconds: first and most. Between these bounds it is a tenth of the wait so far: each poll costs
 * CPU time, also the server's, and after seconds of waiting some milliseconds don't matter.
 */
const POLL_INTERVAL = { first: 10, most: 150 };

/**
 * Asks until `holds` accepts the answer, such as a server's counts.
 *
 * @template T
 * @param {() => Promise<T>} ask
 * @param {(answer: T) => unknown} holds
 * @param {number} [seconds] see `until`
 * @param {unknown} [what] what it waits for, for the error's message
 * @returns {Promise<T>} the accepted answer
 */
export async function untilAnswer(ask, holds, seconds, what = holds) {
  let answer;
  const isAccepted = async () => {
    answer = await ask();
    return holds(answer);
  };
  await until(isAccepted, () => `${what} in ${inspect(answer, { depth: 4 })}`, seconds);
  return answer;
}

/**
 * Polls until `holds` returns a true value. Tests wait with this function, never for a fixed time.
 *
 * @template T
 * @param {() => T | Promise<T>} holds
 * @param {string | (() => string)} [what] the error's message after the timeout
 * @param {number} [seconds] timeout; generous, for busy machines
 * @returns {Promise<T>} the first true value
 */
export async function until(holds, what = String(holds), seconds = 45) {
  const begin = performance.now();
  for (;;) {
    const result = await holds();
    if (result) return result;
    const waited = performance.now() - begin;
    if (waited > seconds * 1000) {
      throw new Error(`not within ${seconds} s: ${typeof what === 'function' ? what() : what}`);
    }
    await pause(Math.min(POLL_INTERVAL.most, Math.max(POLL_INTERVAL.first, waited / 10)));
  }
}

/** The running tests, the innermost last. */
const runningTests = [];

/**
 * Fails a test of a file that waits for an event that can't come. Call it once, before the first test.
 *
 * With a fake clock and a fake server, an unresolved promise leaves Node with nothing to do. The process then ends, and
 * tap reports this test and all later ones as unfinished. With this function the test fails under its own name, and the
 * next tests run.
 *
 * @param {import('tap').Test} t
 */
export function failWhenStuck(t) {
  process.prependListener('beforeExit', () => {
    const test = runningTests.at(-1);
    const message = `"${test?.name}" waits for what never comes: no timer, no socket is left`;
    test?.threw(new Error(message));
  });
  t.beforeEach((t) => {
    runningTests.push(t);
    t.teardown(() => runningTests.splice(runningTests.indexOf(t), 1));
  });
}

/**
 * Whether random histories have their long form (TEST_LONG=1, `npm run test:all`). The short form finds defects like
 * the earlier ones.
 */
const IS_LONG_RUN = process.env.TEST_LONG === '1';

/** @returns {number} the length of a history */
export const lengthOf = ({ short, long }) => (IS_LONG_RUN ? long : short);
