import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Starting bin/sprites as a process of its own: the one way of all tests and benches. */

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The server as its users start it. */
export const SPRITES = [process.execPath, `${ROOT}bin/sprites`];

/** Options without the bounds for each source address: all clients of a test may have one address. */
export const UNBOUND = {
  'address-connections': 0,
  'address-joins': 0,
  'address-clients': 0,
  'address-memory': 0
};

/** The last line of a start that says where something is. */
const ROOM = /^There is room for /;

/** The lines before it, each with the port it names. */
const PORTS = {
  port: /^Sprites \S+ listens on http:\/\/(?:\[.*\]|[^:]*):([0-9]+)\/$/,
  tlsPort: /^TLS .*:([0-9]+)\//,
  transientPort: /^Joins, .*:([0-9]+)\//,
  adminPort: /^Metrics are on http:\/\/.*:([0-9]+)\/metrics$/
};

/** @returns {Record<string, number | undefined>} where it listens, by the names in PORTS */
function portsIn(lines) {
  const portOf = (pattern) => {
    const [, port] = lines.map((line) => pattern.exec(line)).find(Boolean) ?? [];
    return port && Number(port);
  };
  return Object.fromEntries(Object.entries(PORTS).map(([name, line]) => [name, portOf(line)]));
}

/**
 * Starts a server. The caller ends it, whatever becomes of `listening`.
 *
 * @param {Record<string, string | number>} [options] without the dashes; by default it listens on a
 *     free port of loopback
 * @param {object} [how]
 * @param {string[]} [how.command] what to run, with the arguments that are no options
 * @param {Record<string, string>} [how.env] added to the environment
 * @param {boolean} [how.ipc] whether messages can be sent to it
 * @param {boolean} [how.detached] whether it leads a process group of its own
 * @returns {{child: object, ended: Promise<[number | null, string | null]>, lines: string[],
 *     errors: Buffer[], listening: Promise<object>}} `ended`: its exit code and its signal; what it
 *     has printed; `listening`: its ports by name, once it listens, or an error with its own words
 */
export function launch(options = {}, how = {}) {
  const { command = SPRITES, env = {}, ipc = false, detached = false } = how;
  const all = { port: 0, host: '127.0.0.1', ...options };
  const flags = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]);
  // The test runner would have its loader ride along in every child; `env` drops it.
  const unset = ['-u', 'NODE_OPTIONS', '-u', 'SPRITES_TEST_DOORS'];
  const child = spawn('env', [...unset, ...command, ...flags], {
    cwd: ROOT,
    detached,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe', ...(ipc ? ['ipc'] : [])]
  });
  const ended = once(child, 'close');
  const errors = [];
  child.stderr.on('data', (chunk) => errors.push(chunk));
  const lines = [];
  const listening = new Promise((resolve, reject) => {
    createInterface({ input: child.stdout }).on('line', (line) => {
      lines.push(line);
      if (!ROOM.test(line)) return;
      const ports = portsIn(lines);
      if (ports.port) resolve(ports);
      else reject(new Error(`it does not say where it listens: ${lines.join('\n')}`));
    });
    ended.then(() => reject(new Error(`the server ended: ${Buffer.concat(errors)}`)), reject);
  });
  return { child, ended, lines, errors, listening };
}

/**
 * Starts a server that ends by itself, since its options are wrong for instance.
 *
 * @param {import('tap').Test} t whose end kills it if it still runs
 * @param {Record<string, string | number>} options see `launch`
 * @param {object} [how] see `launch`
 * @returns {Promise<{code: number | null, errors: string, pid: number}>} how it ended, and what it said on stderr
 */
export async function launchToEnd(t, options, how) {
  const { child, ended, errors, listening } = launch(options, how);
  t.teardown(() => child.kill('SIGKILL'));
  listening.catch(() => {});
  const [code] = await ended;
  return { code, errors: Buffer.concat(errors).toString(), pid: child.pid };
}
