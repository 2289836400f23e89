/** Signals at which a program may end in order. */
const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Handles the signals that end a program. When `heard()` returns false the signal is sent again without a handler,
 * and so ends the program at once. (process.exit is no alternative: it waits for a pending DNS lookup.)
 *
 * @param {() => boolean} handle called at each signal; returns whether it handles the signal
 * @returns {() => void} removes the handlers
 */
export function onSignals(handle) {
  const onSignal = (name) => {
    if (handle()) return;
    removeHandlers();
    process.kill(process.pid, name);
  };
  const removeHandlers = () => {
    for (const name of SIGNALS) process.off(name, onSignal);
  };
  for (const name of SIGNALS) process.on(name, onSignal);
  return removeHandlers;
}
