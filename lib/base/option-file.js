import { closeSync, constants, openSync, readFileSync, readSync, statSync } from 'node:fs';

/** Interval between two reads of an empty pipe, in milliseconds. */
const READ_INTERVAL = 10;

/** Reads a pipe to its end, such as `<(program)` of a shell, or a FIFO. An open that waits for a writer could wait permanently. */
function readPipe(file) {
  const fd = openSync(file, constants.O_RDONLY | constants.O_NONBLOCK);
  const buffer = Buffer.alloc(65536);
  const parts = [];
  try {
    for (;;) {
      try {
        const bytes = readSync(fd, buffer);
        if (bytes === 0) break;
        parts.push(Buffer.from(buffer.subarray(0, bytes)));
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;
        // The program has not written yet: it may ask a person for a password.
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, READ_INTERVAL);
      }
    }
  } finally {
    closeSync(fd);
  }
  if (parts.length === 0) {
    const code = 'no program writes to this pipe';
    throw Object.assign(new Error(code), { code });
  }
  return Buffer.concat(parts);
}

/**
 * Reads the file that an option names.
 *
 * @param {string} name name of the option, without its dashes
 * @param {string} file
 * @returns {Buffer}
 * @throws {Error} with a message of one line that names option and file
 */
export function readOptionFile(name, file) {
  try {
    return statSync(file).isFIFO() ? readPipe(file) : readFileSync(file);
  } catch (error) {
    throw new Error(`--${name} ${file} can't be read (${error.code})`, { cause: error });
  }
}

/** Reads the file as text, without the byte order mark of some editors. @returns {string} */
export const readOptionText = (name, file) => new TextDecoder().decode(readOptionFile(name, file));
