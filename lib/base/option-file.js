import { closeSync, constants, openSync, readSync, statSync } from 'node:fs';

/** Largest file of an option, in bytes: a device such as /dev/zero has no end. */
const MAX_BYTES = 16 * 2 ** 20;

/** Interval between two reads of an empty pipe, in milliseconds. */
const READ_INTERVAL = 10;

/** Longest wait for a pipe that is read again, in milliseconds: the server's clients wait meanwhile. */
const REREAD_TIME = 1000;

/** The files that were read. */
const readFiles = new Set();

const errorWith = (code) => Object.assign(new Error(code), { code });

/** Reads into a buffer. Waits until `deadline` for the program that writes to a pipe. */
function readSome(fd, buffer, deadline) {
  for (;;) {
    try {
      return readSync(fd, buffer);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      if (performance.now() >= deadline) throw errorWith('the program that writes to it is silent');
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, READ_INTERVAL);
    }
  }
}

/** @returns {Buffer} the bytes up to the end of the file, or of the pipe */
function readToEnd(fd, deadline) {
  const buffer = Buffer.alloc(65536);
  const parts = [];
  for (let length = 0; length <= MAX_BYTES; length += parts.at(-1).length) {
    const bytes = readSome(fd, buffer, deadline);
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
  // At the start the program that writes may ask a person for a password.
  const deadline = readFiles.has(file) ? performance.now() + REREAD_TIME : Infinity;
  try {
    const bytes = readToEnd(fd, deadline);
    readFiles.add(file);
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
