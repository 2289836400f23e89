import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

/** Starts bin/sprites as a process. All tests and benchmarks start it this way. */

export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** The command that starts the server. */
export const SPRITES = [process.execPath, `${ROOT}bin/sprites`];

/** Options that lift the limits of a source address: all clients of a test may have the same address. */
export const NO_ADDRESS_LIMITS = {
  'address-connections': 0,
  'address-joins': 0,
  'address-clients': 0,
  'address-memory': 0
};

/** The line after the lines with ports. */
const READY_LINE = /^There is room for /;

/** The lines before READY_LINE, each with its port. */
const PORT_LINES = {
  port: /^Sprites \S+ listens on http:\/\/(?:\[.*\]|[^:]*):([0-9]+)\/$/,
  tlsPort: /^TLS .*:([0-9]+)\//,
  transientPort: /^Joins, .*:([0-9]+)\//,
  adminPort: /^Metrics are on http:\/\/.*:([0-9]+)\/metrics$/
};

/** @returns {Record<string, number | undefined>} the server's ports, by the names in PORT_LINES */
function portsIn(lines) {
  const portOf = (pattern) => {
    const [, port] = lines.map((line) => pattern.exec(line)).find(Boolean) ?? [];
    return port && Number(port);
  };
  return Object.fromEntries(Object.entries(PORT_LINES).map(([name, line]) => [name, portOf(line)]));
}

/**
 * Starts a server. The caller must end it, also when `listening` fails.
 *
 * @param {Record<string, string | number>} [options] names without the dashes; by default the server
 *     listens on a free port of loopback
 * @param {object} [how]
 * @param {string[]} [how.command] the program, with its arguments that are no options
 * @param {Record<string, string>} [how.env] added to the environment
 * @param {boolean} [how.ipc] whether to open an IPC channel
 * @param {boolean} [how.detached] whether the process leads a process group
 * @returns {{child: object, ended: Promise<[number | null, string | null]>, lines: string[],
 *     errors: Buffer[], listening: Promise<object>}} `ended`: exit code and signal; `lines`:
 *     its stdout; `errors`: its stderr; `listening`: its ports by name once it listens, or an error with its output
 */
export function launch(options = {}, how = {}) {
  const { command = SPRITES, env = {}, ipc = false, detached = false } = how;
  const all = { port: 0, host: '127.0.0.1', ...options };
  const flags = Object.entries(all).flatMap(([name, value]) => [`--${name}`, String(value)]);
  // `env` drops the test runner's loader, which every child would inherit.
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
      if (!READY_LINE.test(line)) return;
      const ports = portsIn(lines);
      if (ports.port) resolve(ports);
      else reject(new Error(`it does not say where it listens: ${lines.join('\n')}`));
    });
    ended.then(() => reject(new Error(`the server ended: ${Buffer.concat(errors)}`)), reject);
  });
  return { child, ended, lines, errors, listening };
}

/**
 * Starts a server that ends by itself, for example because of wrong options.
 *
 * @param {import('tap').Test} t its end kills the server if it still runs
 * @param {Record<string, string | number>} options see `launch`
 * @param {object} [how] see `launch`
 * @returns {Promise<{code: number | null, errors: string, pid: number}>} exit code, stderr and process id
 */
export async function launchToEnd(t, options, how) {
  const { child, ended, errors, listening } = launch(options, how);
  t.teardown(() => child.kill('SIGKILL'));
  listening.catch(() => {});
  const [code] = await ended;
  return { code, errors: Buffer.concat(errors).toString(), pid: child.pid };
}
