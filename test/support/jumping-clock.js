import { STATELESS_POOL } from './feeds.js';

/** A wall clock that jumps, and a pool whose notes outlive a restart: for what ends by the clock. */

export const DAY = 86_400_000;

/**
 * Stops the clocks.
 *
 * @returns {(ahead: number, days?: number) => void} sets the wall clock so many milliseconds ahead, and both clocks so many days
 */
export function jumpingClock(t) {
  const { now } = Date;
  const { now: running } = performance;
  const [wallTime, runningTime] = [now(), Math.ceil(running.call(performance))];
  t.teardown(() => {
    Date.now = now;
    performance.now = running;
  });
  function setClock(ahead, days = 0) {
    Date.now = () => wallTime + ahead + days * DAY;
    performance.now = () => runningTime + days * DAY;
  }
  setClock(0);
  return setClock;
}

/** @returns {object} a pool with notes in the map `written` */
export function notingPool(written = new Map()) {
  return {
    ...STATELESS_POOL,
    written,
    notes: (prefix) => [...written].map(([name, end]) => [name.slice(prefix.length), end]),
    note: (name, end) => written.set(name, end),
    removeNote: (name) => written.delete(name)
  };
}
