/**
 * Ends a test that waits for what can never come.
 *
 * Where time and the server are fakes, a promise that is not resolved leaves Node with nothing to do.
 * The process then ends, and tap reports this test and every one behind it as unfinished. With this
 * the test fails by itself, under its own name, and the next ones run.
 */

/** The tests that are running, the innermost last. */
const running = [];

process.prependListener('beforeExit', () => {
  const test = running.at(-1);
  test?.threw(new Error(`"${test.name}" waits for what never comes: no timer, no socket is left`));
});

/**
 * Watches over the tests of a file. To be called once, before the first of them.
 *
 * @param {import('tap').Test} t
 */
export function failWhenStuck(t) {
  t.beforeEach((t) => {
    running.push(t);
    t.teardown(() => running.splice(running.indexOf(t), 1));
  });
}
