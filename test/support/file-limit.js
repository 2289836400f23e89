import { spawnSync } from 'node:child_process';

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
