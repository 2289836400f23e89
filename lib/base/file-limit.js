import { readFileSync } from 'node:fs';

/**
 * How many files this process may have open. Every connection is one, so this bounds them.
 */

/** Descriptors the program needs for itself: 64 for the admin port, 32 for refusals, the rest for loops, listeners and files. */
export const OWN_FILES = 128;

/** @returns {number} the same with so many workers, each of which has an event set and sockets that listen */
export const ownFiles = (workers) => OWN_FILES + 16 * workers;

/**
 * @returns {number} the soft limit (Node raises it to the hard limit at its start), Infinity where
 *     it cannot be read
 */
export function fileLimit() {
  try {
    const [, soft] = /^Max open files\s+(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8'));
    return Number(soft);
  } catch {
    return Infinity;
  }
}

/**
 * What a person should know of the file limit.
 *
 * @param {number} capacity clients there is room for
 * @param {number} limit files
 * @param {number} workers
 * @returns {string} one or two lines
 */
export function describeFileLimit(capacity, limit, workers) {
  const own = ownFiles(workers);
  if (limit - own >= capacity) return `The file limit of ${limit} allows them all.`;
  const wanted = capacity + own;
  return (
    `The file limit of ${limit} really allows ${Math.max(0, limit - own)}. To lift it:` +
    ` ulimit -n ${wanted}  (in systemd: LimitNOFILE=${wanted};` +
    ` above fs.nr_open: sysctl -w fs.nr_open=${wanted})`
  );
}
