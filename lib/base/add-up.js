/**
 * Adds up counts.
 *
 * @param {object[]} all numbers by name, and such objects by name
 * @returns {object} the sum for each name
 */
export function addUp(all) {
  const sums = {};
  for (const one of all) {
    for (const name of Object.keys(one)) {
      const value = one[name];
      sums[name] =
        typeof value === 'object' ? addUp([sums[name] ?? {}, value]) : (sums[name] ?? 0) + value;
    }
  }
  return sums;
}
