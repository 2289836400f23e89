import { base } from './room.js';

/** What there is to play, as GET /games says: asked until it has answered, then never again. */

let asked = null;

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

/** @returns {Promise<object[]>} */
export function listGames() {
  asked ??= ask();
  return asked;
}

/**
 * @param {string|null|undefined} name
 * @returns {Promise<{title: string, about: string}>} empty where there is no game
 */
export async function describeGame(name) {
  if (!name) return { title: '', about: '' };
  const games = await listGames();
  return games.find((game) => game.name === name) ?? { title: name, about: '' };
}
