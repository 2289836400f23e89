import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  writeSync
} from 'node:fs';
import { dirname } from 'node:path';

/**
 * Files beside the state that are there whole or not at all, as the state itself: a new one takes
 * the place of the old by its name, when it is on the disk. No link is followed.
 */

const { O_RDONLY, O_WRONLY, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK, O_DIRECTORY } = constants;

/** Opens a file, and closes it when `act(fd)` is done. */
function withFile(path, flags, act) {
  const fd = openSync(path, flags, 0o600);
  try {
    return act(fd);
  } finally {
    closeSync(fd);
  }
}

/**
 * @param {string} path
 * @param {number} most bytes
 * @returns {Buffer | undefined} what is in the file; undefined when there is none
 * @throws {Error} when it can't be read, is a link (ELOOP), no file, or larger
 */
export function readWhole(path, most) {
  try {
    // Not to wait for the other end of a pipe, which is refused anyway.
    return withFile(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, (fd) => {
      const info = fstatSync(fd);
      if (!info.isFile()) throw new Error('it is no regular file');
      if (info.size > most) throw new Error(`it has more than ${most} bytes`);
      return readFileSync(fd);
    });
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/**
 * @param {string} path
 * @param {(put: (data: string | Uint8Array) => void) => void} write gives what is to be in the file
 * @throws {Error} when it can't be written; the file is what it was before
 */
export function writeWhole(path, write) {
  const fresh = `${path}.new`;
  // One that was cut short; or a link that somebody has put there.
  rmSync(fresh, { force: true });
  try {
    withFile(fresh, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, (fd) => {
      write((data) => {
        const bytes = Buffer.from(data);
        for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at);
      });
      fsyncSync(fd);
    });
    renameSync(fresh, path);
  } catch (error) {
    rmSync(fresh, { force: true });
    throw error;
  }
  withFile(dirname(path), O_RDONLY | O_DIRECTORY, fsyncSync);
}
