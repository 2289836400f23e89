import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import { buildIfStale, ENGINE } from '../../lib/swarm/build.js';
import { resultOf } from '../../lib/swarm/result.js';
import { Tally } from '../../lib/swarm/tally.js';
import { ROOT } from './server.js';
import { until } from './until.js';

/** Runs bin/sprites-swarm as a process, for tests. */

// The engine's build takes long in a fresh clone on a busy machine: build it before a test's timeout runs.
buildIfStale(ENGINE);

/** @returns {number} the bucket of an engine's histogram for a time in nanoseconds */
export function bucketOf(value) {
  if (value < 2048) return Math.floor(value);
  const shift = Math.floor(Math.log2(value)) - 10;
  return shift * 1024 + Math.floor(value / 2 ** shift);
}

const wordsOf = (args) => (typeof args === 'string' ? args.split(' ') : args);

/**
 * @param {import('tap').Test} t its end kills the process
 * @param {string | Array<string | number>} args the command line as text or as words
 * @param {{files?: number, bytes?: number, cwd?: string, env?: Record<string, string>}} [how] most open files; most
 *     bytes of a file; working directory; additions to the environment
 * @returns {import('node:child_process').ChildProcess} with `result()`, which resolves with `code`,
 *     `signal`, `out` and `err` when it has ended, and `says(pattern)`, which resolves when `err` matches
 */
export function start(t, args, { files, bytes, cwd, env } = {}) {
  const limits = [files && `ulimit -n ${files} && `, bytes && `ulimit -f ${bytes / 512} && `];
  const limit = limits.filter(Boolean).join('');
  const child = spawn(
    'env',
    [
      '-u',
      'NODE_OPTIONS',
      'sh',
      '-c',
      `${limit}exec "$0" "$@"`,
      process.execPath,
      join(ROOT, 'bin/sprites-swarm'),
      ...wordsOf(args).map(String)
    ],
    { cwd, env: { ...process.env, ...env }, stdio: ['ignore', 'pipe', 'pipe'] }
  );
  const out = text(child.stdout);
  let err = '';
  child.stderr.setEncoding('utf8').on('data', (piece) => {
    err += piece;
  });
  const ended = once(child, 'close');
  t.teardown(() => child.kill('SIGKILL'));
  child.result = async () => {
    const [code, signal] = await ended;
    return { code, signal, out: await out, err };
  };
  child.says = (pattern) =>
    until(
      () => pattern.test(err),
      () => `${pattern} in ${err}`
    );
  return child;
}

/** @returns {Promise<{code: number, err: string, result: ?object}>} the outcome of a run against `port` */
export async function swarm(t, port, args, how) {
  const all = [...wordsOf(args), '--port', port, '--json'];
  const { code, out, err } = await start(t, all, how).result();
  return { code, err, result: out ? JSON.parse(out) : null };
}

/** Runs the swarm against `port`, and asserts success. @returns {Promise<object>} the result */
export async function goodRun(t, port, args, how) {
  const { code, err, result } = await swarm(t, port, args, how);
  t.equal(code, 0, result?.faults.join() ?? err);
  return result;
}

/** Runs the swarm against `server`, and asserts success. @returns {Promise<string>} the report's file */
export async function reportFrom(t, server, args) {
  const cwd = t.testdir();
  const all = [...args, '--port', server.port, '--report', 'report.html'];
  const { code, out, err } = await start(t, all, { cwd }).result();
  t.equal(code, 0, `${out} ${err}`);
  return join(cwd, 'report.html');
}

/** @returns {object} the swarm's verdict on made-up `facts` and `more` members, without engines */
export const resultWith = (options, facts, more = {}) =>
  resultOf({
    options: { host: '127.0.0.1', ...options },
    facts: { phases: {}, plan: { engines: [1], sources: 0 }, throwing: {}, ...facts },
    tally: new Tally(10),
    account: { missing: 0, unconfirmed: 0, examples: [] },
    ...{
      engineDoubles: 0,
      interruptions: [],
      deaths: [],
      interrupted: false,
      isAccountComplete: true
    },
    ...more
  });
