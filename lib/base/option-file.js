import { closeSync, constants, openSync, readSync, statSync } from 'node:fs';

/** Largest file of an option, in bytes: a device such as /dev/zero has no end. */
const MAX_BYTES = 16 * 2 ** 20;

/** Interval between two reads of an empty pipe, in milliseconds. */
const READ_INTERVAL = 10;

const errorWith = (code) => Object.assign(new Error(code), { code });

/** Reads into a buffer. Waits for the program that writes to a pipe: it may ask a person for a password. */
function readSome(fd, buffer) {
  for (;;) {
    try {
      return readSync(fd, buffer);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, READ_INTERVAL);
    }
  }
}

/** @returns {Buffer} the bytes up to the end of the file, or of the pipe */
function readToEnd(fd) {
  const buffer = Buffer.alloc(65536);
  const parts = [];
  for (let length = 0; length <= MAX_BYTES; length += parts.at(-1).length) {
    const bytes = readSome(fd, buffer);
    if (bytes === 0) return Buffer.concat(parts);
    parts.push(Buffer.from(buffer.subarray(0, bytes)));
  }
  throw errorWith(`it has more than ${MAX_BYTES} bytes`);
}

/** Reads a file, or a pipe, such as `<(program)` of a shell, or a FIFO. */
function readFile(file) {
  const isPipe = statSync(file).isFIFO();
  // An open that waits for a writer could wait permanently.
  const fd = openSync(file, constants.O_RDONLY | (isPipe ? constants.O_NONBLOCK : 0));
  try {
    const bytes = readToEnd(fd);
    if (isPipe && bytes.length === 0) throw errorWith('no program writes to this pipe');
    return bytes;
  } finally {
    closeSync(fd);
  }
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
    return readFile(file);
  } catch (error) {
    throw new Error(`--${name} ${file} can't be read (${error.code})`, { cause: error });
  }
}

/** Reads the file as text, without the byte order mark of some editors. @returns {string} */
export const readOptionText = (name, file) => new TextDecoder().decode(readOptionFile(name, file));
