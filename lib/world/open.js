/** The counts of SharedFeeds, and their names in /status. */
const FEEDS = Object.entries({
  ...{ in: 'worldFeedsIn', out: 'worldFeedsOut', overruled: 'worldFeedsOverruled' },
  ...{ refused: 'worldFeedsRefused', reachable: 'worldFeedsReachable' },
  ...{ behind: 'worldFeedsBehind', unstored: 'worldFeedsUnshared' }
});

export const feedFigures = (counts) =>
  Object.fromEntries(FEEDS.map(([name, shown]) => [shown, Number(counts[name] ?? 0)]));

/** The members of /status of a server without a world: see World#figures. */
const NOTHING = Object.freeze({
  ...{ world: null, worldMember: 0, worldServers: 0, worldSeams: 0 },
  ...{ outboxSprites: 0, outboxBytes: 0, ...feedFigures({}) }
});

/** The world of a server without `--world`. */
const NONE = Object.freeze({
  start() {},
  readinessProblem: () => undefined,
  figures: () => NOTHING,
  async leave() {},
  close() {}
});

/**
 * Opens a server's part in a world. Without --world nothing of it is loaded.
 *
 * @param {object} parts
 * @param {object} parts.options as lib/operator/options.js reads them
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../grants/open.js').Grants} parts.grants
 * @param {import('./directory.js').Directory} parts.directory gets the servers of other clients
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<import('./world.js').World | typeof NONE>}
 * @throws {Error} when a file that an option names can't be read
 */
export async function openWorld(parts) {
  if (parts.options.world === 'none') return NONE;
  const { World } = await import('./world.js');
  return new World(parts);
}
