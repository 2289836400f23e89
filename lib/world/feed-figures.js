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
