/** Signals at which a program may end in order. */
const NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Handles the signals that end a program. When `heard()` returns false the signal is sent again without a handler,
 * and so ends the program at once. (process.exit is no alternative: it waits for a pending DNS lookup.)
 *
 * @param {() => boolean} heard called at each signal; returns whether it handles the signal
 * @returns {() => void} removes the handlers
 */
export function onSignals(heard) {
  const listen = (name) => {
    if (heard()) return;
    stop();
    process.kill(process.pid, name);
  };
  const stop = () => {
    for (const name of NAMES) process.off(name, listen);
  };
  for (const name of NAMES) process.on(name, listen);
  return stop;
}
