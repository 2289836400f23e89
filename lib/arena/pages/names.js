/**
 * What a player is called on the screen: by the name it has given itself, if the host has not put that away.
 *
 * @param {{names?: Record<string, string>}} reduced the reduced feed's value, whose `named` has that number
 * @param {number} number the player's
 * @returns {string} untrusted: a text, and never HTML
 */
export const nameOf = ({ names = {} }, number) => names[number] ?? `Player ${number}`;
