/**
 * Fails a test that waits for an event that can't come.
 *
 * With a fake clock and a fake server, an unresolved promise leaves Node with nothing to do. The process then ends, and
 * tap reports this test and all later ones as unfinished. With this file the test fails under its own name, and the
 * next tests run.
 */

/** The running tests, the innermost last. */
const runningTests = [];

process.prependListener('beforeExit', () => {
  const test = runningTests.at(-1);
  test?.threw(new Error(`"${test.name}" waits for what never comes: no timer, no socket is left`));
});

/**
 * Watches the tests of a file. Call it once, before the first test.
 *
 * @param {import('tap').Test} t
 */
export function failWhenStuck(t) {
  t.beforeEach((t) => {
    runningTests.push(t);
    t.teardown(() => runningTests.splice(runningTests.indexOf(t), 1));
  });
}
