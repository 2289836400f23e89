import { base } from './room.js';

/** What there is to play, as GET /games says: asked until it has answered, then when a game has another version. */

let asked = null;
let askedFor;

async function ask() {
  try {
    const response = await fetch(new URL('games', base));
    if (response.ok) return (await response.json()).games;
  } catch {
    // No contact, or a proxy's own words.
  }
  asked = null; // The next question asks again.
  return [];
}

/**
 * @param {string|null} [version] of the game that is played
 * @returns {Promise<object[]>}
 */
export function listGames(version = null) {
  if (version !== null && version !== askedFor) asked = null;
  askedFor = version ?? askedFor;
  asked ??= ask();
  return asked;
}

/**
 * @param {{game: string|null, version: string|null}|null} control
 * @returns {Promise<{title: string, about: string}>} empty where there is no game
 */
export async function describeGame(control) {
  const name = control?.game;
  if (!name) return { title: '', about: '' };
  const games = await listGames(control.version);
  return games.find((game) => game.name === name) ?? { title: name, about: '' };
}
