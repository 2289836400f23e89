/** The standings, on phone and field: `[number, points, right, number, points, right, …]`, the best first. */

/**
 * @param {number[]} standings
 * @returns {{number: number, points: number, right: number, place: number}[]} equal points share a place
 */
export function readStandings(standings = []) {
  const list = [];
  for (let i = 0; i + 2 < standings.length; i += 3) {
    const [number, points, right] = standings.slice(i, i + 3);
    const previous = list.at(-1);
    const place = previous?.points === points ? previous.place : list.length + 1;
    list.push({ number, points, right, place });
  }
  return list;
}

const ENDINGS = new Intl.PluralRules('en', { type: 'ordinal' });
const SUFFIXES = { one: 'st', two: 'nd', few: 'rd', other: 'th' };

/** @returns {string} such as `1st`, `22nd`, `113th` */
export const ordinal = (place) => `${place}${SUFFIXES[ENDINGS.select(place)]}`;

/** @returns {string} such as `2,340` */
export const formatPoints = (points) => points.toLocaleString('en');

/**
 * Returns a player's name on the screen; `Player 7` for a player without a name, or with a hidden one. The characters
 * around a name keep one that is written from right to left from changing the order of points and names beside it.
 *
 * @param {{names?: Record<string, string>}} reduced the reduced feed, whose `named` has that number
 * @param {number} number the player's
 * @returns {string} untrusted: a text, and never HTML
 */
export const nameOf = ({ names = {} }, number) =>
  number in names ? `\u2068${names[number]}\u2069` : `Player ${number}`;
