import { createHash } from 'node:crypto';
import { renameSync } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { resolve } from 'node:path';

import { readWhole, writeWhole } from '../server/whole-file.js';

/**
 * The arenas from one run to the next, in FILE.arena beside the pool's own state. It is written every
 * second in which something has changed, so that a crash loses no more than that, and at the end.
 *
 *   sprites-arena 1 2868909213 9f86d0…     the run of the server that writes it; SHA-256 of what follows
 *   {"hall":{"control":{…},"players":[…],…}}
 *
 * It is taken from no run but the last, which the state beside it names: with another one players
 * would come back whose ids and numbers have been given up, or given to others. So a run writes it
 * anew when it has really started with it.
 */

const MAGIC = 'sprites-arena 1';
const NEWLINE = 0x0a;

/** Milliseconds between two writings: at least, and for each player. */
const EVERY = 1000;
const PLAYER = 0.5;

const NOTHING = { kept: undefined, taken() {}, changed() {}, keep() {}, close() {} };

/** A file that is no state of arenas, or not of the last run. */
class StateError extends Error {}

const sumOf = (text) => createHash('sha256').update(text).digest('hex');

/** @returns {string} what is in the file of a run */
function textOf(arenas, run) {
  const text = JSON.stringify(arenas);
  return `${MAGIC} ${run} ${sumOf(text)}\n${text}`;
}

/** @returns {object} what the last run has kept */
function read(bytes, runBefore) {
  const end = bytes.indexOf(NEWLINE);
  const [magic, run, sum] =
    /^(.*) (.*) (.*)$/.exec(bytes.toString('latin1', 0, end))?.slice(1) ?? [];
  if (magic !== MAGIC) throw new StateError('it is no state of arenas');
  const text = bytes.subarray(end + 1);
  if (sum !== sumOf(text)) throw new StateError('it is damaged');
  if (run !== String(runBefore) || run === '0') {
    throw new StateError(
      'it was kept beside another state than the one that is there: put back all of one backup, or ' +
        'move this file away'
    );
  }
  return JSON.parse(text.toString());
}

/**
 * @param {object} parts
 * @param {{arena: string[], state: string, stateBytes: number}} parts.options
 * @param {{run: number, runBefore: number}} parts.runs see lib/server/state.js
 * @param {() => object} parts.all what there is to keep, as JSON has it
 * @param {() => number} parts.players how many there are
 * @param {import('pino').Logger} parts.log
 * @returns {{kept?: object, taken: () => void, changed: () => void, keep: () => void, close: () => void}}
 *     `kept`: what the last run has left; `taken` is to be called when the server has really started
 *     with it, `changed` when there is something new to keep; `keep` writes it for the last time
 * @throws {Error} in one line, when it can't be used; the file is left as it is
 */
export function openArenaState({ options, runs, all, players, log }) {
  const { arena, state, stateBytes } = options;
  if (state === 'none') return NOTHING;
  const path = `${resolve(state)}.arena`;
  const fails = (what, error) =>
    new Error(`${what} (${path}: ${error.code ?? error.message})`, { cause: error });
  if (arena.length === 0) return { ...NOTHING, taken: () => setAside(path) };
  let kept;
  try {
    const bytes = readWhole(path, stateBytes);
    if (bytes !== undefined) kept = read(bytes, runs.runBefore);
  } catch (error) {
    throw fails('the arenas of the last run are not used', error);
  }
  let dirty = false;
  let timer;
  let closed = false;

  async function write() {
    const fresh = `${path}.next`;
    try {
      const text = textOf(all(), runs.run);
      await rm(fresh, { force: true });
      await writeFile(fresh, text, { flag: 'wx', mode: 0o600, flush: true });
      // At once: nothing of it may be under way when it is written for the last time.
      if (!closed) renameSync(fresh, path);
    } catch (error) {
      log.error({ err: error }, 'the arenas are not kept');
    }
  }

  function next() {
    timer = setTimeout(
      async () => {
        if (dirty) {
          dirty = false;
          await write();
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

  function writeNow() {
    try {
      writeWhole(path, (put) => put(textOf(all(), runs.run)));
    } catch (error) {
      throw fails("the arenas can't be kept", error);
    }
  }

  return {
    kept,
    taken() {
      writeNow();
      next();
    },
    changed() {
      dirty = true;
    },
    keep() {
      close();
      writeNow();
    },
    close
  };
}

/** A run without arenas: what an earlier one has left is not that of the last any more. */
function setAside(path) {
  try {
    renameSync(path, `${path}.previous`);
  } catch (error) {
    if (error.code !== 'ENOENT') throw error;
  }
}
