import {
  closeSync,
  constants,
  existsSync,
  fstatSync,
  ftruncateSync,
  openSync,
  realpathSync,
  renameSync,
  rmSync,
  unlinkSync,
  writeFileSync,
  writeSync
} from 'node:fs';

import { UsageError } from './errors.js';

/**
 * The file of a report, opened before the run: where it can't be written, the program ends before a run whose
 * report would be lost. What is in it stays until there is something new.
 */
export class ReportFile {
  #file;
  #isNew;
  #descriptor;

  /**
   * @param {string} file
   * @throws {UsageError} when it can't be written
   */
  constructor(file) {
    this.#file = file;
    this.#isNew = !existsSync(file);
    try {
      this.#descriptor = openSync(file, this.#isNew ? 'wx' : constants.O_WRONLY);
    } catch (error) {
      throw new UsageError(`--report ${file} can't be written: ${error.message}`);
    }
  }

  /**
   * @param {string} text all of it
   * @throws {UsageError} when it can't be written after all
   */
  write(text) {
    const bytes = Buffer.from(text);
    try {
      const before = fstatSync(this.#descriptor);
      const isOver = !this.#isNew && before.isFile();
      if (!isOver || !replace(realpathSync(this.#file), bytes, before.mode)) this.#fill(bytes);
    } catch (error) {
      throw new UsageError(`--report ${this.#file} can't be written: ${error.message}`);
    }
    this.#isNew = false;
  }

  #fill(bytes) {
    // A device or a pipe has no length to cut.
    if (!this.#isNew) truncate(this.#descriptor);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#descriptor, bytes, at);
  }

  /** Closes it; a file that was made for nothing goes. */
  close() {
    closeSync(this.#descriptor);
    if (this.#isNew) unlinkSync(this.#file);
  }
}

/** Errors by which a folder takes no second file. */
const NO_ROOM = ['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'ENAMETOOLONG'];

/** @returns {boolean} whether the file is another one now; false where there can be none beside it */
function replace(file, bytes, mode) {
  const beside = `${file}.${process.pid}`;
  try {
    writeFileSync(beside, bytes, { flag: 'wx', mode });
  } catch (error) {
    if (NO_ROOM.includes(error.code)) return false;
    rmSync(beside, { force: true });
    throw error;
  }
  try {
    renameSync(beside, file);
    return true;
  } catch {
    rmSync(beside, { force: true });
    return false;
  }
}

function truncate(descriptor) {
  try {
    ftruncateSync(descriptor);
  } catch (error) {
    if (error.code !== 'EINVAL') throw error;
  }
}
