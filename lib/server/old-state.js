import { createHash } from 'node:crypto';
import { closeSync, constants, fstatSync, openSync, readFileSync, renameSync } from 'node:fs';

import { isCanonical } from '../feeds/canonical.js';
import { isKey } from '../feeds/names.js';

/**
 * Reads the files in which version 0.1 kept feeds, arenas and bans beside FILE. The first start with this version reads
 * them once. Then the state itself has their content (native/store/feeds_and_notes.h), and they are renamed to
 * FILE.….previous.
 *
 *   FILE.feeds     sprites-feeds 2 RUN, heads and bytes, a checksum: after an end in order
 *   FILE.arena     sprites-arena 1 RUN SHA-256, JSON
 *   FILE.bans      {"bans":[{"address":"192.0.2.1","end":1763785200000}]}
 *   FILE.epochs    cursors without values: not used any more
 *
 * A file of another run than the state's is only renamed: it belongs to another state.
 */

const NEWLINE = 0x0a;

/** A player's note (native/arena/arena.h): newest input, address, number, count of values; then the values. */
const PLAYER_NOTE = 32;

const sha256Of = (bytes) => createHash('sha256').update(bytes).digest('hex');

class OldStateError extends Error {}

/** @returns {Buffer | undefined} the content of a file of at most `maxBytes` bytes; undefined when there is no file. Links are not followed */
function readWhole(path, maxBytes) {
  let fd;
  try {
    // NONBLOCK: the open of a pipe, which is refused below, must not wait for its other end.
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    const info = fstatSync(fd);
    check(info.isFile(), 'it is no regular file');
    check(info.size <= maxBytes, `it has more than ${maxBytes} bytes`);
    return readFileSync(fd);
  } finally {
    closeSync(fd);
  }
}

function check(holds, why = 'it is damaged') {
  if (!holds) throw new OldStateError(why);
}

const isCount = (number) => Number.isSafeInteger(number) && number >= 0;

/** Whether a feed's head is complete. */
function isHead({ key, epoch, version, patches = [], value, log }) {
  return (
    typeof key === 'string' &&
    isKey(key) &&
    [epoch, version, value, log].every(isCount) &&
    Array.isArray(patches) &&
    patches.every(
      (position, i) => isCount(position) && position < log && (i === 0 || position > patches[i - 1])
    )
  );
}

/** @returns {object[]} feeds for Feeds#restore; undefined: the file is of another run */
function readFeeds(bytes, run) {
  let offset = bytes.indexOf(NEWLINE) + 1;
  const head = bytes.toString('latin1', 0, offset);
  check(/^sprites-feeds 2 [0-9]+\n$/.test(head), 'it is no state of feeds');
  if (head !== `sprites-feeds 2 ${run}\n`) return undefined;
  const feeds = [];
  for (;;) {
    const end = bytes.indexOf(NEWLINE, offset);
    check(end >= 0);
    const entry = JSON.parse(bytes.toString('utf8', offset, end)) ?? {};
    if (entry.end !== undefined) {
      check(entry.end === feeds.length && entry.sha256 === sha256Of(bytes.subarray(0, offset)));
      return feeds;
    }
    check(isHead(entry));
    const value = bytes.subarray(end + 1, end + 1 + entry.value);
    const log = bytes.subarray(end + 1 + entry.value, end + 1 + entry.value + entry.log);
    check(value.length === entry.value && log.length === entry.log);
    feeds.push({ ...entry, value, log });
    offset = end + 1 + entry.value + entry.log;
  }
}

/** @returns {object | undefined} notes by arena; undefined: the file is of another run */
function readArenas(bytes, run) {
  const end = bytes.indexOf(NEWLINE);
  const [, runOfFile, checksum] =
    /^sprites-arena 1 ([0-9]+) ([0-9a-f]+)$/.exec(bytes.toString('latin1', 0, end)) ?? [];
  check(runOfFile !== undefined, 'it is no state of arenas');
  check(checksum === sha256Of(bytes.subarray(end + 1)));
  return runOfFile === String(run) ? JSON.parse(bytes.toString('utf8', end + 1)) : undefined;
}

/** @returns {{address: string, end: number}[]} */
function readBans(bytes) {
  let bans;
  try {
    bans = JSON.parse(bytes)?.bans;
  } catch (error) {
    throw new OldStateError('it is no list of bans', { cause: error });
  }
  const isBan = (ban) => typeof ban?.address === 'string' && isCount(ban.end);
  check(Array.isArray(bans) && bans.every(isBan), 'it is no list of bans');
  return bans;
}

/** Returns whether to restore a feed. Notes a deleted one. */
function acceptFeed({ key, epoch, version, value, deleted }, pool, log) {
  if (deleted) pool.note(`deleted/${key}`, JSON.stringify({ epoch, version }));
  // Version 0.1 accepted patches that turned a value into invalid JSON. Such a value is not restored, and can be published again.
  const isValid = isCanonical(value);
  if (!deleted && !isValid)
    log.error({ feed: key }, 'a feed of the last run is no JSON, and is left out');
  return !deleted && isValid;
}

/** Notes an arena and its players. Their addresses are not in the file. */
function noteArena(pool, name, { players, newest, ...control }) {
  pool.note(`control/${name}`, JSON.stringify(control));
  pool.note(`arena/${name}`, new Uint8Array(Uint32Array.of(newest).buffer));
  for (const player of players) {
    const content = Buffer.alloc(PLAYER_NOTE + 8 * player.values.length);
    content.writeBigUInt64LE(BigInt(player.newest), 0);
    content.writeUInt32LE(player.number, 24);
    content.writeUInt32LE(player.values.length, 28);
    for (const [i, value] of player.values.entries()) {
      content.writeDoubleLE(value, PLAYER_NOTE + 8 * i);
    }
    const id = Buffer.from(player.id.replaceAll('-', ''), 'hex');
    pool.note(Buffer.concat([Buffer.from(`player/${name}/`), id]), content);
  }
}

/**
 * @param {object} parts
 * @param {string} parts.path path of the state
 * @param {import('../torus/pool.js').Pool} parts.pool with an open state; arenas and bans are noted in it
 * @param {number} parts.maxBytes largest file, in bytes
 * @param {number} parts.runBefore number of the run that wrote the state
 * @param {import('pino').Logger} parts.log
 * @returns {{feeds?: object[], files: object[], retireFiles: () => void}} `feeds` for Feeds#restore; the caller
 *     calls `retireFiles` when the state has everything
 * @throws {Error} with a message of one line: a file can't be used; the file is not changed
 */
export function migrateOldState({ path, pool, maxBytes, runBefore, log }) {
  const files = [];
  const restored = {};
  /** `read` returns the step that takes over a file, to run after all files are read; or undefined. */
  const readOldFile = (extension, read) => {
    const file = `${path}.${extension}`;
    try {
      const bytes = readWhole(file, maxBytes);
      if (bytes !== undefined) files.push({ file, apply: read(bytes) });
    } catch (error) {
      throw new Error(`${file}: ${error.message}`, { cause: error });
    }
  };
  readOldFile('feeds', (bytes) => {
    const feeds = readFeeds(bytes, runBefore);
    if (feeds === undefined) return undefined;
    return () => {
      restored.feeds = feeds.filter((feed) => acceptFeed(feed, pool, log));
    };
  });
  readOldFile('arena', (bytes) => {
    const arenas = readArenas(bytes, runBefore);
    if (arenas === undefined) return undefined;
    return () => {
      for (const [name, arena] of Object.entries(arenas)) noteArena(pool, name, arena);
    };
  });
  readOldFile('bans', (bytes) => {
    const bans = readBans(bytes);
    return () => {
      for (const { address, end } of bans) pool.note(`ban/${address}`, String(end));
    };
  });
  readOldFile('epochs', () => undefined);
  for (const { file, apply } of files) {
    apply?.();
    log.warn({ file, used: apply !== undefined }, 'a file of the version before is taken over');
  }
  return {
    ...restored,
    files,
    retireFiles() {
      for (const { file } of files) renameSync(file, `${file}.previous`);
    }
  };
}
