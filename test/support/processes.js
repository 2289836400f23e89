import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

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

/**
 * @param {import('tap').Test} t removes the folder at its end
 * @returns {string} a new folder
 */
export function temporary(t) {
  const folder = mkdtempSync(path.join(tmpdir(), 'sprites-test-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
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
 * @param {number | 'unlimited'} most bytes of each file that the process writes
 * @returns {boolean} whether prlimit succeeded
 */
export const limitFiles = (pid, bytes) =>
  spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]).status === 0;

/** For `t.test`'s `skip`: the reason where prlimit does not work. */
export const noLimit = limitFiles(process.pid, 'unlimited') ? false : 'there is no prlimit here';
