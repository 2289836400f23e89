/**
 * bin/sprites as it is measured: on loopback, on a free port, without the bounds for each source address, since here
 * all clients have the same one. A connection costs the same with these bounds and without.
 */
import { fileURLToPath } from 'node:url';

const PROGRAM = fileURLToPath(new URL('../../bin/sprites', import.meta.url));
const PROBE = new URL('probe.js', import.meta.url).href;

/** For a Node server that answers probe.js's questions; it needs an IPC channel. */
export const PROBED = ['--expose-gc', '--import', PROBE];

const OPTIONS = {
  host: '127.0.0.1',
  port: 0,
  'throw-rate': 0,
  'address-connections': 0,
  'address-joins': 0,
  'address-clients': 0,
  'address-memory': 0
};

/**
 * @param {Record<string, string|number>} options of bin/sprites, without their dashes
 * @returns {string[]} arguments for `node`
 */
export function spritesArgs(options) {
  return [
    ...PROBED,
    PROGRAM,
    ...Object.entries({ ...OPTIONS, ...options }).flatMap(([name, value]) => [
      `--${name}`,
      String(value)
    ])
  ];
}

/** @param {string} line the server printed @returns {number|null} the port it says it listens on */
export function portOf(line) {
  const match = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line);
  return match && Number(match[1]);
}
