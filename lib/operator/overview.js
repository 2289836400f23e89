import { statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { problems } from '../http/problems.js';
import { version } from '../base/version.js';
import { lawOf } from '../report/words.js';

/**
 * The content of the admin port's page in one document: the live counts, and details that are too long for them.
 */

/** Number of listed feeds: those with the most watchers. */
const LISTED_FEEDS = 12;

/**
 * @param {string} folder
 * @returns {() => Promise<{folder: string, free: number, size: number} | null>} returns the room on its disk. The
 *     request does not block the event loop, and there is one at a time, for a disk may hang; null: the folder is gone, or
 *     hidden
 */
function diskRoomReader(folder) {
  let pendingRead;
  const toRoom = ({ bavail, blocks, bsize }) => {
    return { folder, free: bavail * bsize, size: blocks * bsize };
  };
  return () =>
    (pendingRead ??= statfs(folder)
      .then(toRoom, () => null)
      .finally(() => (pendingRead = undefined)));
}

/**
 * @param {object} parts
 * @param {object} parts.options see lib/operator/options.js
 * @param {() => object} parts.status returns all live counts
 * @param {() => string | undefined} parts.readinessProblem returns the problem for which the server is not ready
 * @param {ReturnType<import('../http/door.js').createDoor>} parts.door
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} parts.arena
 * @returns {() => Promise<object>} returns the answer to GET /overview: `unready` is a problem's title, or null; for `law` see
 *     lawOf; `bounds` are bounded counts with their bounds; `disk` is null without --state
 */
export function createOverview({ options, status, readinessProblem, door, feeds, arena }) {
  const program = { version: version(), node: process.version, pid: process.pid };
  const { feedMemory, mailboxMemory, sync, state } = options;
  const file = state === 'none' ? null : state;
  const readDiskRoom = file === null ? () => null : diskRoomReader(dirname(file));
  let disk = null;
  return async () => {
    const timeout = pause(100, undefined, { ref: false });
    const room = await Promise.race([readDiskRoom(), timeout]);
    if (room !== undefined) disk = room;
    const problem = readinessProblem();
    const counts = status();
    return {
      ...program,
      at: Date.now(),
      unready: problem === undefined ? null : problems[problem].title,
      state: file && { file, sync },
      bounds: { feeds: options.feeds, feedMemory, mailboxMemory },
      status: counts,
      law: lawOf(counts),
      feeds: feeds.mostWatched(LISTED_FEEDS),
      arenas: arena.overview(),
      workers: door.workerCounts(),
      disk
    };
  };
}
