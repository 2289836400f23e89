import { createHash } from 'node:crypto';
import {
  closeSync,
  fstatSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync
} from 'node:fs';
import { crc32 } from 'node:zlib';

import { readWhole } from '../server/whole-file.js';
import { cursorText, isKey } from './names.js';

/**
 * Which version each feed has come to, in FILE.epochs beside the state, so that its cursors go on
 * after a crash:
 *
 *   sprites-epochs 2 6f3a… 2868909213 131847   boot of the machine, run of the server, the file's inode
 *   9c1d04aa ["scores",123,43,"47DEQp…"]       epoch, version, SHA-256 of the value; before it CRC-32
 *
 * A line is written before anybody hears of the version. A crash of the process loses none, so the
 * next run may go on in the epoch: with the next version, or, where the value that is published
 * first is the one there was, with the same version, and no watcher is sent a value that he has. A
 * crash of the machine may lose lines, and a version would be used twice: so a file of an earlier
 * boot is not used, nor is one that is damaged or could not be written, nor an older one that somebody
 * has put back: the journal beside it names the run that has crashed, and a copy has another inode.
 * Then epochs are new, and every watcher gets the whole value: correct as well, only more to send. (A
 * copy of the same run, written over the very file, is not noticed: deploy/README.md says so.)
 *
 * Cost: a write of some 100 bytes a version. Rejected: records in the journal of the pool (a
 * damaged one would take the places and sprites with it, and it need not be read), values and
 * patches as well (a disk would write what a million are sent, for a few seconds' worth of
 * patches), a version now and then and a gap after a crash (the same value would be sent again).
 */

const FORM = 'sprites-epochs 2';

/** A file of this many bytes is written anew, when most of it is versions of before. */
const WORTH_WRITING_ANEW = 1 << 20;

/** A file of more bytes is none of ours: all feeds twice, with the longest keys. */
const LARGEST = 2 ** 30;

/** Milliseconds before a file that could not be written is tried again. */
const RETRY = 10_000;

function readBoot() {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'latin1').trim();
  } catch {
    // The system does not tell: every start counts as one after a reboot.
    return '';
  }
}

const sumOf = (text) => crc32(text).toString(16).padStart(8, '0');

function lineOf(key, { epoch, version, digest }) {
  const text = JSON.stringify([key, epoch, version, digest]);
  return `${sumOf(text)} ${text}\n`;
}

/** @returns {[string, {epoch: number, version: number, digest: string}]} @throws when it is damaged */
function markIn(line) {
  const text = line.slice(9);
  if (line !== `${sumOf(text)} ${text}`) throw new SyntaxError('a line is damaged');
  const [key, epoch, version, digest] = JSON.parse(text);
  if (!isKey(key) || !Number.isSafeInteger(epoch) || !Number.isSafeInteger(version)) {
    throw new SyntaxError('a line makes no sense');
  }
  return [key, { epoch, version, digest }];
}

/** @param {Uint8Array} value @returns {string} what tells values apart */
export const digestOf = (value) => createHash('sha256').update(value).digest('base64url');

/** The epochs of a server that keeps no state: nothing is known. */
export const NO_EPOCHS = { kept: false, lost: () => undefined, note: () => true };

export class Epochs {
  kept = true;
  #path;
  #log;
  #most;
  #boot;
  /** Number of this run of the server, and of the last. @type {{run: number, runBefore: number}} */
  #runs;
  /** Key → the line of its newest version, in this run or before. @type {Map<string, string>} */
  #lines = new Map();
  /** Key → the version of a feed that a crash has taken, until it is published again. */
  #lost = new Map();
  /** Descriptor of the file; undefined while there is none that can be written on. */
  #file;
  #bytes = 0;
  #bytesAnew = 0;
  #retryAt = 0;
  #failed = false;
  #ended = false;

  /**
   * @param {object} parts
   * @param {string} parts.path
   * @param {number} parts.most feeds there may be
   * @param {{run: number, runBefore: number}} parts.runs see lib/server/state.js
   * @param {import('pino').Logger} parts.log
   * @param {string} [parts.boot] of the machine
   */
  constructor({ path, most, runs, log, boot = readBoot() }) {
    this.#path = path;
    this.#most = most;
    this.#log = log;
    this.#boot = boot;
    this.#runs = runs;
  }

  /** Reads what the last run has left, if it has crashed. */
  read() {
    let bytes;
    let inode;
    try {
      bytes = readWhole(this.#path, LARGEST);
      if (bytes !== undefined) ({ ino: inode } = statSync(this.#path, { bigint: true }));
    } catch (error) {
      return this.#sayNew(error.code ?? error.message);
    }
    if (bytes === undefined) return;
    // What follows the last line feed was being written: nobody has heard of it.
    const [head, ...lines] = bytes.toString().split('\n').slice(0, -1);
    const [form, boot, run, of] = /^(.*) (.*) (.*) (.*)$/.exec(head)?.slice(1) ?? [];
    if (form !== FORM) return this.#sayNew('it is none of this version');
    if (boot !== this.#boot || boot === '') {
      return this.#log.info('the machine was restarted: epochs of feeds are new');
    }
    if (run !== String(this.#runs.runBefore) || run === '0') {
      return this.#sayNew('it is not of the last run');
    }
    if (of !== String(inode)) return this.#sayNew('it is a copy, and may be an older one');
    try {
      const marks = new Map(lines.map(markIn));
      for (const [key, mark] of [...marks].slice(-this.#most)) {
        this.#lost.set(key, mark);
        this.#lines.set(key, lineOf(key, mark));
      }
      this.#log.info({ feeds: this.#lost.size }, 'epochs of feeds taken');
    } catch (error) {
      this.#sayNew(error.message);
    }
  }

  #sayNew(why) {
    this.#log.warn({ file: this.#path, why }, 'epochs of feeds are new: their file is not used');
  }

  /** A feed that has come back with its value. */
  know(key, mark) {
    this.#lines.set(key, lineOf(key, mark));
  }

  /** Begins the file of this run, if there is anything to say. */
  begin() {
    if (this.#lines.size > 0) this.#writeAnew();
  }

  /**
   * @param {string} key
   * @returns {{epoch: number, version: number, digest: string, cursor: string} | undefined} where a
   *     feed was that a crash has taken
   */
  lost(key) {
    const mark = this.#lost.get(key);
    return mark && { ...mark, cursor: cursorText(mark) };
  }

  /**
   * Writes which version a feed will have: to be called before anybody hears of it.
   *
   * @param {string} key
   * @param {{epoch: number, version: number, digest: string}} mark
   * @returns {boolean} whether it may be published: not where the file can neither be written on nor
   *     removed, since what it says would be wrong after a crash
   */
  note(key, mark) {
    if (this.#ended) return false;
    const line = lineOf(key, mark);
    this.#lost.delete(key);
    this.#lines.delete(key);
    // The oldest goes. Its feed is gone, since there are never more feeds than that.
    if (this.#lines.size >= 2 * this.#most) this.#lines.delete(this.#lines.keys().next().value);
    this.#lines.set(key, line);
    const grown = this.#bytes > Math.max(WORTH_WRITING_ANEW, 2 * this.#bytesAnew);
    if (this.#file === undefined || grown) return this.#writeAnew();
    return this.#try(() => this.#put(line));
  }

  #put(text) {
    const bytes = Buffer.from(text);
    for (let at = 0; at < bytes.length;) at += writeSync(this.#file, bytes, at);
    this.#bytes += bytes.length;
  }

  /** Does what writes; where that fails, a file that is not right any more goes. */
  #try(act) {
    try {
      act();
      if (this.#failed) this.#log.info('epochs of feeds can be written again');
      this.#failed = false;
      return true;
    } catch (error) {
      this.#close();
      this.#retryAt = performance.now() + RETRY;
      if (!this.#failed) {
        this.#log.error(
          { code: error.code },
          "epochs of feeds can't be written: a crash begins new ones"
        );
      }
      this.#failed = true;
      return this.#remove();
    }
  }

  #writeAnew() {
    if (this.#file === undefined && performance.now() < this.#retryAt) return this.#remove();
    return this.#try(() => {
      this.#close();
      const fresh = `${this.#path}.new`;
      rmSync(fresh, { force: true });
      this.#file = openSync(fresh, 'wx', 0o600);
      this.#bytes = 0;
      const { ino } = fstatSync(this.#file, { bigint: true });
      const head = [FORM, this.#boot, this.#runs.run, ino].join(' ');
      this.#put(`${head}\n${[...this.#lines.values()].join('')}`);
      this.#bytesAnew = this.#bytes;
      renameSync(fresh, this.#path);
    });
  }

  #close() {
    if (this.#file !== undefined) closeSync(this.#file);
    this.#file = undefined;
  }

  #remove() {
    try {
      rmSync(this.#path, { force: true });
      return true;
    } catch {
      // Said already; publications are refused.
      return false;
    }
  }

  /** Ends in order, when the feeds themselves are kept: nothing was lost. */
  end() {
    this.#ended = true;
    this.#close();
    this.#remove();
  }

  /** Lets go of the file, and leaves it. */
  close() {
    this.#close();
  }
}
