/** The members of /status of a server without a world: see World#figures. */
const NOTHING = Object.freeze({
  ...{ world: null, worldMember: 0, worldServers: 0, worldSeams: 0 },
  ...{ outboxSprites: 0, outboxBytes: 0 },
  ...feedFigures({
    in: 0,
    out: 0,
    refused: 0,
    overruled: 0,
    behind: 0,
    unstored: 0,
    reachable: false
  })
});

/** What a server without `--world` has in place of one. */
const NONE = Object.freeze({
  start() {},
  unready: () => undefined,
  figures: () => NOTHING,
  async leave() {},
  close() {}
});

/**
 * Opens a server's part in a world, if it is to have one. Else nothing of it is loaded.
 *
 * @param {object} parts
 * @param {object} parts.options as lib/operator/options.js reads them
 * @param {import('../torus/pool.js').Pool} parts.pool
 * @param {import('../feeds/feeds.js').Feeds} parts.feeds
 * @param {import('../grants/open.js').Grants} parts.grants
 * @param {import('./directory.js').Directory} parts.directory is told where the clients of the others belong
 * @param {import('pino').Logger} parts.log
 * @returns {Promise<import('./world.js').World | typeof NONE>}
 * @throws {Error} when a file that an option names can't be read
 */
export async function openWorld(parts) {
  if (parts.options.world === 'none') return NONE;
  const { World } = await import('./world.js');
  return new World(parts);
}

/** What SharedFeeds counts, by its names in /status. */
export function feedFigures(counts) {
  return {
    worldFeedsIn: counts.in,
    worldFeedsOut: counts.out,
    worldFeedsOverruled: counts.overruled,
    worldFeedsRefused: counts.refused,
    worldFeedsReachable: counts.reachable ? 1 : 0,
    worldFeedsBehind: counts.behind,
    worldFeedsUnshared: counts.unstored
  };
}
