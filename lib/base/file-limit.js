import { readFileSync } from 'node:fs';

/**
 * How many files this process may have open. Every connection is one, so this bounds them.
 */

/** Descriptors the program needs for itself: the loop, the listener, the log, a spare. */
export const OWN_FILES = 64;

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
 * @returns {string} one or two lines
 */
export function describeFileLimit(capacity, limit) {
  if (limit - OWN_FILES >= capacity) return `The file limit of ${limit} allows them all.`;
  const wanted = capacity + OWN_FILES;
  return (
    `The file limit of ${limit} really allows ${Math.max(0, limit - OWN_FILES)}. To lift it:` +
    ` ulimit -n ${wanted}  (in systemd: LimitNOFILE=${wanted};` +
    ` above fs.nr_open: sysctl -w fs.nr_open=${wanted})`
  );
}
