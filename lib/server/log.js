import pino from 'pino';

/**
 * The log: JSON lines on stderr, of what an operator may have to act on. Nothing on the way of a
 * sprite logs, and no id is ever logged in full.
 *
 * @param {string} level trace, debug, info, warn, error, fatal or silent
 * @returns {import('pino').Logger}
 */
export function createLog(level) {
  // Written at once: a log that is lost in a crash is of no use.
  return pino({ level, base: { pid: process.pid } }, pino.destination({ fd: 2, sync: true }));
}
