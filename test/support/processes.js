import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';

import { until } from './until.js';

/** Helpers for processes and folders. */

/**
 * @param {number} pid
 * @returns {number[]} the live children of the process
 */
export function childrenOf(pid) {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
}

/** In place of a test of tap, for programs: collects the teardown functions of helpers. */
export class Teardowns {
  #ends = [];

  teardown(end) {
    this.#ends.push(end);
  }

  /** Calls the functions, the last one first. */
  async end() {
    for (const end of this.#ends.reverse()) await end();
  }
}

/** The same, with functions that are called at the program's exit, and may not be async. */
export const atExit = { teardown: (end) => exitEnds.push(end) };
const exitEnds = [];
process.once('exit', () => exitEnds.forEach((end) => end()));

/**
 * @param {import('tap').Test} t removes the folder at its end
 * @returns {string} a new folder
 */
export function temporary(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sprites-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Ends a process that may have ended already, and waits for its end. */
export async function endProcess(child, signal = 'SIGTERM') {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const ended = once(child, 'exit');
  child.kill(signal);
  await ended;
}

/** Runs a program to its end. @returns {Promise<{code: ?number, out: string, err: string}>} */
export async function runToEnd(t, [program, ...args], options) {
  const child = spawn(program, args, options);
  t.teardown(() => child.kill('SIGKILL'));
  const output = [text(child.stdout), text(child.stderr)];
  const [[code], out, err] = await Promise.all([once(child, 'close'), ...output]);
  return { code, out, err };
}

/**
 * Starts a program. The test's end stops it and waits for it. When the test is killed, `timeout` ends the program.
 *
 * @returns {import('node:child_process').ChildProcess & {said: string, gone: Promise<unknown>}} `said`: its output so far
 */
export function startProgram(t, command, args) {
  const child = spawn('timeout', ['--kill-after=5', '300', command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe']
  });
  child.said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      child.said += text;
    });
  }
  child.gone = once(child, 'exit');
  t.teardown(async () => {
    const killTimer = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await endProcess(child);
    clearTimeout(killTimer);
  });
  return child;
}

/** @returns {number} the number of this process's TCP connections, including pending ones */
export function openSockets() {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

/** Waits until a process stands still after SIGSTOP. */
export const untilStopped = (pid) =>
  until(() => / T /.test(readFileSync(`/proc/${pid}/stat`, 'utf8')));

/** Simulates a full disk: limits the size of a process's files, and lifts the limit later. */

/**
 * @param {number} pid
 * @param {number | 'unlimited'} bytes of each file that the process writes
 * @returns {boolean} whether prlimit succeeded
 */
export const limitFiles = (pid, bytes) =>
  spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]).status === 0;

/** For `t.test`'s `skip`: the reason where prlimit does not work. */
export const noLimit = limitFiles(process.pid, 'unlimited') ? false : 'there is no prlimit here';
