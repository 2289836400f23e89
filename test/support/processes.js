import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

/** What tests need of processes and folders. */

/**
 * @param {number} pid
 * @returns {number[]} the processes that a process has started and that are still there
 */
export function childrenOf(pid) {
  const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8');
  return text.split(' ').filter(Boolean).map(Number);
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

/** @returns {number} the TCP connections of this process, those that are being made among them */
export function openSockets() {
  return process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
}

/**
 * @param {number} pid
 * @returns {number} resident bytes of a process and its children, as the kernel accounts for them
 */
export function resident(pid) {
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1').split(' ');
  return [pid, ...children.filter(Boolean)]
    .map((one) => readFileSync(`/proc/${one}/status`, 'latin1'))
    .reduce((sum, status) => sum + Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1024, 0);
}

/** A disk that takes nothing more: a process that may not make any file longer, and later may again. */

/**
 * @param {number} pid
 * @param {number | 'unlimited'} bytes that each file which it writes may have
 * @returns {boolean} whether it could be done
 */
export const limitFiles = (pid, bytes) =>
  spawnSync('prlimit', ['--pid', String(pid), `--fsize=${bytes}:unlimited`]).status === 0;

/** What `t.test` is given where it can't be. */
export const noLimit = limitFiles(process.pid, 'unlimited') ? false : 'there is no prlimit here';
