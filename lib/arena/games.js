import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { readFormat } from './format.js';

/**
 * The games, found at the start: each is a folder with `inputs.json`, `reduce.js`, `phone.js` and
 * `field.js`. README.md says what is in them.
 */

/** Those that come with the server. */
const OWN = fileURLToPath(new URL('games/', import.meta.url));

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** What each of them must have. */
const NEEDED = ['inputs.json', 'reduce.js', 'phone.js', 'field.js'];

/** The files that a browser may have, by their ending. */
const TYPES = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/json'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png']
]);

/** Bounds of one game: files that are served, and bytes of each; bytes of inputs.json. */
const FILES = 64;
const FILE_BYTES = 2 ** 20;
const FORMAT_BYTES = 2 ** 14;

/**
 * @typedef {object} Game
 * @property {string} name
 * @property {string} reduce the URL of its reducer
 * @property {Map<string, {type: string, body: Buffer}>} files what a browser may have, by name
 * @property {ReturnType<typeof readFormat>} format its inputs.json
 */

/** @returns {string[]} the names in a folder, in order */
function namesIn(folder) {
  return readdirSync(folder).toSorted();
}

/** @returns {Buffer} a file of at most `most` bytes */
function read(path, most) {
  const info = statSync(path);
  if (!info.isFile()) throw new Error(`${path}: it is no file`);
  if (info.size > most) throw new Error(`${path}: it has more than ${most} bytes`);
  return readFileSync(path);
}

/** @returns {Game} */
function readGame(name, folder) {
  for (const file of NEEDED) {
    if (!existsSync(join(folder, file))) throw new Error(`${folder}: it has no ${file}`);
  }
  const files = new Map();
  for (const file of namesIn(folder)) {
    const type = TYPES.get(extname(file));
    const path = join(folder, file);
    if (type === undefined || file === 'reduce.js' || !statSync(path).isFile()) continue;
    files.set(file, { type, body: read(path, FILE_BYTES) });
  }
  if (files.size > FILES) throw new Error(`${folder}: it has more than ${FILES} files to serve`);
  const path = join(folder, 'inputs.json');
  try {
    const format = readFormat(read(path, FORMAT_BYTES).toString());
    return { name, reduce: pathToFileURL(join(folder, 'reduce.js')).href, files, format };
  } catch (error) {
    throw new Error(`${path}: ${error.message}`, { cause: error });
  }
}

/**
 * Finds the games.
 *
 * @param {{arena: string[], games: string}} options
 * @returns {Map<string, Game>} by name, in order; none where there is no arena
 * @throws {Error} in one line, saying which folder or file is not as it must be
 */
export function findGames({ arena, games: more }) {
  const found = new Map();
  if (arena.length === 0) return found;
  for (const folder of more === 'none' ? [OWN] : [OWN, resolve(more)]) {
    let names;
    try {
      names = folder === OWN && !existsSync(OWN) ? [] : namesIn(folder);
    } catch (error) {
      throw new Error(`--games ${folder}: it can't be read (${error.code})`, { cause: error });
    }
    for (const name of names) {
      const path = join(folder, name);
      if (!statSync(path).isDirectory() || name.startsWith('.')) continue;
      if (!NAME.test(name)) {
        throw new Error(`${path}: a game's name is a-z, 0-9 and -, a letter first, 32 at most`);
      }
      found.set(name, readGame(name, path));
    }
  }
  return new Map([...found].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

/**
 * The game an arena begins with: the first by name that needs no part of the panel. One that does, as
 * `load`, is a tool of whoever has the token, and nothing for a room that just waits to play.
 *
 * @param {Map<string, Game>} games at least one
 * @returns {Game}
 */
export function firstGame(games) {
  const [first] = games.values();
  return [...games.values()].find(({ files }) => !files.has('panel.js')) ?? first;
}

/**
 * What GET /games says of them.
 *
 * @param {Map<string, Game>} games
 * @returns {object[]}
 */
export const describeGames = (games) =>
  [...games.values()].map(({ name, format, files }) => ({
    ...{ name, ...format },
    panel: files.has('panel.js')
  }));
