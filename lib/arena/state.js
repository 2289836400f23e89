import { rename, rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { readWhole, writeWhole } from '../server/whole-file.js';

/**
 * The arenas from one run to the next, in FILE.arena beside the pool's own state. It is written every
 * second in which something has changed, so that a crash loses no more than that, and at the end.
 */

/** Milliseconds between two writings: at least, and for each player. */
const EVERY = 1000;
const PLAYER = 0.5;

const NOTHING = { kept: undefined, changed() {}, start() {}, keep() {}, close() {} };

/**
 * @param {object} parts
 * @param {{state: string, stateBytes: number}} parts.options
 * @param {() => object} parts.all what there is to keep, as JSON has it
 * @param {() => number} parts.players how many there are
 * @param {import('pino').Logger} parts.log
 * @returns {{kept?: object, changed: () => void, start: () => void, keep: () => void, close: () => void}}
 *     `kept`: what the last run has left; `keep` writes it for the last time
 * @throws {Error} in one line, when it can't be used; the file is left as it is
 */
export function openArenaState({ options: { state, stateBytes }, all, players, log }) {
  if (state === 'none') return NOTHING;
  const path = `${resolve(state)}.arena`;
  let kept;
  try {
    const bytes = readWhole(path, stateBytes);
    if (bytes !== undefined) kept = JSON.parse(bytes.toString());
  } catch (error) {
    const why = error instanceof SyntaxError ? 'it is damaged' : (error.code ?? error.message);
    throw new Error(`the arenas of the last run are not used (${path}: ${why})`, { cause: error });
  }
  let dirty = false;
  let timer;
  let writing = Promise.resolve();
  let closed = false;

  async function write() {
    const fresh = `${path}.next`;
    try {
      await rm(fresh, { force: true });
      await writeFile(fresh, JSON.stringify(all()), { flag: 'wx', mode: 0o600, flush: true });
      if (!closed) await rename(fresh, path);
    } catch (error) {
      log.error({ err: error }, 'the arenas are not kept');
    }
  }

  function next() {
    timer = setTimeout(
      async () => {
        if (dirty) {
          dirty = false;
          writing = write();
          await writing;
        }
        if (!closed) next();
      },
      EVERY + PLAYER * players()
    ).unref();
  }

  function close() {
    closed = true;
    clearTimeout(timer);
  }

  return {
    kept,
    changed() {
      dirty = true;
    },
    start: next,
    keep() {
      close();
      writeWhole(path, (put) => put(JSON.stringify(all())));
    },
    close
  };
}
