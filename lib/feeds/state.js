import { createHash } from 'node:crypto';
import { renameSync } from 'node:fs';
import { resolve } from 'node:path';

import { readWhole, writeWhole } from '../server/whole-file.js';
import { isCanonical } from './canonical.js';
import { digestOf, Epochs } from './epochs.js';
import { isKey } from './names.js';

/**
 * The feeds from one run to the next, in FILE.feeds beside the pool's own state: values, epochs,
 * versions and patches, so that watchers go on with patches.
 *
 *   sprites-feeds 2 2868909213     the run of the server that has kept them, as the state beside it says
 *   {"key":…,"epoch":…,"version":…,"patches":[…],"upstream":false,"value":4711,"log":120}
 *   4711 bytes, 120 bytes          … and so on …
 *   {"end":2,"sha256":"…"}         of everything before
 *
 * In a world of many servers a feed that was deleted is there as well, with `"deleted":true` and no bytes: so that it
 * stays deleted where others still have it.
 *
 * It is taken once: after a crash it would bring back versions whose numbers have been used for
 * other values since; and from no run but the last, which has ended in order. What a crash leaves is FILE.epochs (lib/feeds/epochs.js).
 */

const MAGIC = 'sprites-feeds 2';

/** The first line in the version before, which names no run. */
const OLD_MAGIC = 'sprites-feeds 1';
const NEWLINE = 0x0a;
const NOTHING = { taken() {}, keep() {}, close() {} };

/** A file that is no state, or not all of one. */
class StateError extends Error {}

/** @returns {number} where the feeds in a state begin, if it is that of the last run */
function readHead(bytes, { runBefore, ended }) {
  const end = bytes.indexOf(NEWLINE) + 1;
  const head = bytes.subarray(0, end).toString('latin1');
  if (head === `${OLD_MAGIC}\n`) return end;
  if (!head.startsWith(`${MAGIC} `)) throw new StateError('it is no state of feeds');
  if (head !== `${MAGIC} ${runBefore}\n` || !ended) {
    throw new StateError(
      'it was kept beside another state than the one that is there: put back all of one backup, or ' +
        'move this file away'
    );
  }
  return end;
}

const isCount = (number) => Number.isSafeInteger(number) && number >= 0;

/** Whether a head has what a feed's must have. */
function isHead({ key, epoch, version, patches = [], value, log }) {
  return (
    typeof key === 'string' &&
    isKey(key) &&
    [epoch, version, value, log].every(isCount) &&
    Array.isArray(patches) &&
    patches.every((at, i) => isCount(at) && at < log && (i === 0 || at > patches[i - 1]))
  );
}

/** @returns {object[]} the feeds in a state */
function read(bytes, runs) {
  const damaged = () => new StateError('it is damaged');
  const feeds = [];
  for (let at = readHead(bytes, runs); ;) {
    const end = bytes.indexOf(NEWLINE, at);
    if (end < 0) throw damaged();
    let head;
    try {
      head = JSON.parse(bytes.subarray(at, end).toString()) ?? {};
    } catch (error) {
      throw new StateError('it is damaged', { cause: error });
    }
    if (head.end !== undefined) {
      const sum = createHash('sha256').update(bytes.subarray(0, at)).digest('hex');
      if (head.end !== feeds.length || head.sha256 !== sum || end !== bytes.length - 1) {
        throw damaged();
      }
      return feeds;
    }
    if (!isHead(head)) throw damaged();
    const value = bytes.subarray(end + 1, end + 1 + head.value);
    const log = bytes.subarray(end + 1 + head.value, end + 1 + head.value + head.log);
    if (log.length !== head.log) throw damaged();
    feeds.push({ ...head, value, log });
    at = end + 1 + head.value + head.log;
  }
}

/** Writes the feeds to a file: all of them, or the file is what it was before. */
function write(path, feeds, run, most) {
  writeWhole(path, (write) => {
    const hash = createHash('sha256');
    let written = 0;
    let count = 0;
    const put = (data) => {
      hash.update(data);
      write(data);
      written += Buffer.byteLength(data);
      if (written > most) throw new StateError(`it would be larger than --state-bytes ${most}`);
    };
    put(`${MAGIC} ${run}\n`);
    feeds.save(({ value, log, ...head }) => {
      put(`${JSON.stringify({ ...head, value: value.length, log: log.length })}\n`);
      put(value);
      put(log);
      count += 1;
    });
    write(`${JSON.stringify({ end: count, sha256: hash.digest('hex') })}\n`);
  });
}

/**
 * Takes over the feeds of the last run, if there are any.
 *
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds new
 * @param {{state: string, stateBytes: number, feeds: number}} parts.options
 * @param {{run: number, runBefore: number, ended: boolean}} parts.runs see lib/server/state.js
 * @param {import('pino').Logger} parts.log
 * @returns {{taken: () => void, keep: () => void, close: () => void}} `taken` is to be called when the
 *     server has really started with them, `keep` when nothing changes them any more, `close` at last
 * @throws {Error} in one line, when they can't be used; the file is left as it is
 */
export function openFeedState({ feeds, options: { state, stateBytes, feeds: most }, runs, log }) {
  if (state === 'none') return NOTHING;
  const path = `${resolve(state)}.feeds`;
  const fails = (what, error) =>
    new Error(`${what} (${path}: ${error.code ?? error.message})`, { cause: error });
  const epochs = new Epochs({ path: `${resolve(state)}.epochs`, most, runs, log });
  feeds.keepEpochs(epochs);
  let found = false;
  try {
    const bytes = readWhole(path, stateBytes);
    found = bytes !== undefined;
    for (const feed of found ? read(bytes, runs) : []) {
      // What an earlier version has let in is not served, and may be published anew.
      if (!feed.deleted && !isCanonical(feed.value)) {
        log.error({ feed: feed.key }, 'a feed of the last run is no JSON, and is left out');
        continue;
      }
      const digest = digestOf(feed.value);
      const outcome = feeds.restore(feed, digest);
      if (outcome !== 'ok') throw new StateError(`${outcome} at ${feed.key}`);
      if (!feed.deleted) epochs.know(feed.key, { ...feed, digest });
    }
  } catch (error) {
    throw fails('the feeds of the last run are not used', error);
  }
  // After an end in order it would only say what is there.
  if (!found) epochs.read();
  return {
    taken() {
      epochs.begin();
      if (found) renameSync(path, `${path}.previous`);
    },
    keep() {
      try {
        // Who publishes nothing has no second file.
        if (feeds.status().feeds > 0 || feeds.hasDeleted) {
          write(path, feeds, runs.run, stateBytes);
          log.info({ feeds: feeds.status().feeds }, 'feeds kept');
        }
      } catch (error) {
        throw fails('the feeds are lost', error);
      }
      epochs.end();
    },
    close: () => epochs.close()
  };
}
