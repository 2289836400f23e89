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
  writeFileSync,
  writeSync
} from 'node:fs';

import { UsageError } from '../base/option-help.js';

/**
 * The file of a report. It is opened before the run: the program ends at once if the file is not writable, so that
 * no report is lost after a long run. An old report stays until the new one is written.
 */
export class ReportFile {
  #file;
  #isNew;
  #descriptor;
  #path;

  /**
   * @param {string} file
   * @throws {UsageError} when the file is not writable
   */
  constructor(file) {
    this.#file = file;
    this.#isNew = !existsSync(file);
    try {
      this.#descriptor = openSync(file, this.#isNew ? 'wx' : constants.O_WRONLY);
      // The path of a device or a pipe cannot be replaced.
      if (fstatSync(this.#descriptor).isFile()) this.#path = realpathSync(file);
    } catch (error) {
      throw new UsageError(`--report ${file} can't be written: ${error.message}`);
    }
  }

  /**
   * @param {string} text the whole report
   * @throws {UsageError} when writing fails
   */
  write(text) {
    const bytes = Buffer.from(text);
    try {
      const { mode } = fstatSync(this.#descriptor);
      // A file made for this run is replaced too: it may have been removed meanwhile.
      if (!this.#path || !replace(this.#path, bytes, mode)) this.#overwrite(bytes);
    } catch (error) {
      throw new UsageError(`--report ${this.#file} can't be written: ${error.message}`);
    }
    this.#isNew = false;
  }

  #overwrite(bytes) {
    if (this.#path) ftruncateSync(this.#descriptor);
    for (let written = 0; written < bytes.length;)
      written += writeSync(this.#descriptor, bytes, written);
  }

  /** Closes the file. Removes a new file that was never written. */
  close() {
    closeSync(this.#descriptor);
    if (this.#isNew) rmSync(this.#file, { force: true });
  }
}

/** Error codes of a folder that accepts no second file. */
const NO_SECOND_FILE_CODES = ['EACCES', 'EPERM', 'EROFS', 'EEXIST', 'ENAMETOOLONG'];

/** @returns {boolean} whether the file was replaced; false where no second file can be made or renamed */
function replace(file, bytes, mode) {
  const temporaryFile = `${file}.${process.pid}`;
  try {
    writeFileSync(temporaryFile, bytes, { flag: 'wx', mode });
  } catch (error) {
    if (NO_SECOND_FILE_CODES.includes(error.code)) return false;
    rmSync(temporaryFile, { force: true });
    throw error;
  }
  try {
    renameSync(temporaryFile, file);
    return true;
  } catch {
    rmSync(temporaryFile, { force: true });
    return false;
  }
}
