/**
 * Node opens its inspector at SIGUSR1, and whoever may connect to that runs what he likes in this
 * process; unless the program listens to the signal itself. To be imported before everything else:
 * what is left to the signal are the milliseconds in which Node itself starts.
 */

process.on('SIGUSR1', () => {});

/**
 * Has it said that the signal came: who sent it may wait for an inspector.
 *
 * @param {import('pino').Logger} log
 */
export function tellOfNoInspector(log) {
  process.on('SIGUSR1', () => log.warn('SIGUSR1 opens no inspector here'));
}
