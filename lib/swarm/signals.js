/** Signals that end a program in order, as long as it sees to them. */
const NAMES = ['SIGINT', 'SIGTERM', 'SIGHUP'];

/**
 * Listens to the signals that end a program. A signal without a handler ends it at once,
 * whatever it waits for. (Not by process.exit, which waits for a name that is still being looked up.)
 *
 * @param {() => boolean} heard called at each signal; whether it is seen to
 * @returns {() => void} listens no more
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
