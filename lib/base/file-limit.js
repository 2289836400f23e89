import { readFileSync } from 'node:fs';

/**
 * The limit of open files of this process. Every connection is a file, so that this limit bounds the connections.
 */

/** Descriptors of the program itself: 64 for the admin port, 32 for refusals, the rest for loops, listeners and files. */
export const OWN_FILES = 128;

/** @returns {number} the same with workers: each has an event set and listening sockets */
export const ownFiles = (workers) => OWN_FILES + 16 * workers;

/**
 * @returns {number} the soft limit (Node raises it to the hard limit at its start), Infinity where the
 *     limit cannot be read
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
 * Describes the effect of the file limit, for a person.
 *
 * @param {number} capacity most clients
 * @param {number} limit most files
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
