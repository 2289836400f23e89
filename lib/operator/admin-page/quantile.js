/**
 * A quantile of what was counted by buckets: for the server, and for the page at the admin port.
 *
 * @param {{bounds: number[], counts: number[]}} times the upper bounds of the buckets, ascending; what was
 *     counted in each of them, and last what was longer
 * @param {number} share such as 0.99
 * @returns {number | null} in the unit of the bounds, as if all in a bucket were spread evenly over it;
 *     the last bound where it lies beyond that; null where nothing was counted
 */
export function quantile({ bounds, counts }, share) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let below = 0;
  for (const [i, bound] of bounds.entries()) {
    const lowerBound = bounds[i - 1] ?? 0;
    if (counts[i] > 0 && below + counts[i] >= share * total) {
      return lowerBound + ((bound - lowerBound) * (share * total - below)) / counts[i];
    }
    below += counts[i];
  }
  return bounds.at(-1);
}

/** What was counted between two looks. */
export const countsBetween = (before, { bounds, counts }) => ({
  bounds,
  counts: counts.map((count, i) => count - before.counts[i])
});
