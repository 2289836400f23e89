/** What the server's resident size is held to, where there are a million clients or more. */
const MILLION = 1e6;
const MOST_RESIDENT = 600e6;

/**
 * Whether the server kept to its memory.
 *
 * @param {object} options of the run
 * @param {number} options.clients
 * @param {number} [options.mostResident] bytes; a bound that is given counts for any number of
 *     clients
 * @param {number} resident bytes, with all clients there
 * @returns {{resident: number, most: number, holds: boolean, counts: boolean}} a verdict that
 *     counts and does not hold fails the run
 */
export function verdictOf({ clients, mostResident }, resident) {
  const most = mostResident ?? MOST_RESIDENT;
  const counts = mostResident !== undefined || clients >= MILLION;
  return { resident, most, holds: resident <= most, counts };
}
