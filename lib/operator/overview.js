import { statfs } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';

import { problems } from '../http/problems.js';
import { version } from '../base/version.js';

/**
 * What the admin port's page shows, in one document: the live counts, and what is too much, or too long, for them.
 */

/** Feeds that are listed: those with the most watchers. */
const FEEDS = 12;

/** The room on the disk that the state is on: asked for beside the event loop, as a disk may hang. */
class Disk {
  #folder;
  #asked = false;
  /** @type {{folder: string, free: number, size: number} | null} null: not known, or no state is kept */
  room = null;

  /** @param {string} file of --state, or none */
  constructor(file) {
    this.#folder = file === 'none' ? undefined : dirname(resolve(file));
  }

  /** Has it looked; the answer is there at one of the next calls. */
  async look() {
    if (this.#folder === undefined || this.#asked) return;
    this.#asked = true;
    try {
      const { bavail, blocks, bsize } = await statfs(this.#folder);
      this.room = { folder: this.#folder, free: bavail * bsize, size: blocks * bsize };
    } catch {
      // Gone, or not to be seen: what the state itself says of it counts.
      this.room = null;
    }
    this.#asked = false;
  }
}

/**
 * @param {object} parts
 * @param {object} parts.options see lib/operator/options.js
 * @param {() => object} parts.status all of the live counts
 * @param {() => string | undefined} parts.unready the problem that keeps the server from being ready
 * @param {ReturnType<import('../http/door.js').createDoor>} parts.door
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @returns {() => Promise<object>} GET /overview: `unready` is a problem's title, or null; `bounds` what has one; `disk`
 *     null where no state is kept
 */
export function createOverview({ options, status, unready, door, feeds, arena }) {
  const disk = new Disk(options.state);
  const program = { version: version(), node: process.version, pid: process.pid };
  const { feedMemory, mailboxMemory, sync, state } = options;
  return async () => {
    await Promise.race([disk.look(), new Promise((go) => setTimeout(go, 100).unref())]);
    const problem = unready();
    return {
      ...program,
      at: Date.now(),
      unready: problem === undefined ? null : problems[problem].title,
      state: state === 'none' ? null : { file: resolve(state), sync },
      bounds: { feeds: options.feeds, feedMemory, mailboxMemory },
      status: status(),
      feeds: feeds.most(FEEDS),
      arenas: arena.overview(),
      workers: door.each(),
      disk: disk.room
    };
  };
}
