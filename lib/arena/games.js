import { createHash } from 'node:crypto';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join, resolve } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';

import { CONTENT_BYTES, readContent } from './content.js';
import { readFormat } from './format.js';

/**
 * The games, found at the start. Each game is a folder with `inputs.json`, `reduce.js`, `phone.js` and `field.js`.
 * README.md describes them. The folder of `--games` is checked for changes all the time.
 */

/** Folder of the games that come with the server. */
const BUILT_IN_FOLDER = fileURLToPath(new URL('games/', import.meta.url));

const NAME = /^[a-z][a-z0-9-]{0,31}$/;

/** Files that every game must have. */
const REQUIRED_FILES = ['inputs.json', 'reduce.js', 'phone.js', 'field.js'];

/** Files that are not served: the reducer, the content, and the bots' code. */
const PRIVATE_FILES = ['reduce.js', 'content.json', 'bot.js'];

/** Media types of the served files, by extension. */
const MEDIA_TYPES = new Map([
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/json'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png']
]);

/** Bounds of one game: served files, size of each in bytes, size of inputs.json in bytes. */
const MAX_FILES = 64;
const MAX_FILE_BYTES = 2 ** 20;
const MAX_FORMAT_BYTES = 2 ** 14;

/** Interval of looks at the folder of `--games`, in milliseconds. */
const LOOK_INTERVAL = 500;

/**
 * @typedef {object} Game
 * @property {string} name
 * @property {string} reduce the URL of its reducer
 * @property {Map<string, {type: string, body: Buffer}>} files the served files, by name
 * @property {ReturnType<typeof readFormat>} format its inputs.json
 * @property {string} content its content.json, as JSON; `null` without one
 * @property {string|null} version hash of its files, which may change; null for a game that comes with the server
 */

/** Returns false for names with a leading dot: files of editors or the system, which may be dangling links. */
const isVisible = (name) => !name.startsWith('.');

/** @returns {string[]} the sorted names in a folder */
function listNames(folder) {
  return readdirSync(folder).filter(isVisible).toSorted();
}

/** @returns {Buffer} a file of at most `maxBytes` bytes */
function readBounded(path, maxBytes) {
  const info = statSync(path);
  if (!info.isFile()) throw new Error(`${path}: it is no file`);
  if (info.size > maxBytes) throw new Error(`${path}: it has more than ${maxBytes} bytes`);
  return readFileSync(path);
}

/** @param {Array<string|{body: Buffer}>} parts names and files @returns {string} */
function versionOf(parts) {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part.body ?? `\0${part}\0`);
  return hash.digest('hex').slice(0, 12);
}

/** @returns {string} a game's content, as JSON */
function readGameContent(folder) {
  const path = join(folder, 'content.json');
  if (!existsSync(path)) return 'null';
  const bytes = readBounded(path, CONTENT_BYTES);
  try {
    return readContent(bytes);
  } catch (error) {
    throw new Error(`${path}: ${error.message}`, { cause: error });
  }
}

function checkName(name, path) {
  if (NAME.test(name)) return;
  throw new Error(`${path}: a game's name is a-z, 0-9 and -, a letter first, 32 at most`);
}

/** @returns {Game} */
function readGame(name, folder) {
  for (const file of REQUIRED_FILES) {
    if (!existsSync(join(folder, file))) throw new Error(`${folder}: it has no ${file}`);
  }
  const files = new Map();
  for (const file of listNames(folder)) {
    const type = MEDIA_TYPES.get(extname(file));
    const path = join(folder, file);
    if (type === undefined || PRIVATE_FILES.includes(file) || !statSync(path).isFile()) continue;
    files.set(file, { type, body: readBounded(path, MAX_FILE_BYTES) });
  }
  if (files.size > MAX_FILES)
    throw new Error(`${folder}: it has more than ${MAX_FILES} files to serve`);
  const content = readGameContent(folder);
  const path = join(folder, 'inputs.json');
  const text = readBounded(path, MAX_FORMAT_BYTES).toString();
  const reduce = join(folder, 'reduce.js');
  const version = versionOf([
    ...[...files].flat(),
    content,
    { body: readBounded(reduce, MAX_FILE_BYTES) }
  ]);
  try {
    const format = readFormat(text);
    return { name, reduce: pathToFileURL(reduce).href, files, format, content, version };
  } catch (error) {
    throw new Error(`${path}: ${error.message}`, { cause: error });
  }
}

/**
 * Reads one game, for `sprites play`.
 *
 * @param {string} folder
 * @returns {Game}
 * @throws {Error} with the first mistake in the folder, in one line
 */
export function findGame(folder) {
  const path = resolve(folder);
  const name = basename(path);
  if (!existsSync(path) || !statSync(path).isDirectory())
    throw new Error(`${path}: it is no folder`);
  checkName(name, path);
  return readGame(name, path);
}

/**
 * Finds the games.
 *
 * @param {{arena: string[], games: string, play?: {folder: string}}} options with `play`, only that game is found
 * @returns {Map<string, Game>} sorted by name; empty without an arena
 * @throws {Error} with the first folder or file that has a mistake, in one line
 */
export function findGames({ arena, games: extraFolder, play }) {
  const games = new Map();
  if (arena.length === 0) return games;
  if (play) {
    const game = findGame(play.folder);
    return games.set(game.name, game);
  }
  for (const folder of extraFolder === 'none'
    ? [BUILT_IN_FOLDER]
    : [BUILT_IN_FOLDER, extraFolder]) {
    let names;
    try {
      names = folder === BUILT_IN_FOLDER && !existsSync(BUILT_IN_FOLDER) ? [] : listNames(folder);
    } catch (error) {
      throw new Error(`--games ${folder}: it can't be read (${error.code})`, { cause: error });
    }
    if (names.includes('inputs.json')) {
      throw new Error(
        `--games ${folder}: it is a game itself: give the folder that has its folder`
      );
    }
    for (const name of names) {
      const path = join(folder, name);
      if (!statSync(path).isDirectory()) continue;
      checkName(name, path);
      const game = readGame(name, path);
      games.set(name, folder === BUILT_IN_FOLDER ? { ...game, version: null } : game);
    }
  }
  return sortedByName(games);
}

const sortedByName = (games) => new Map([...games].toSorted(([a], [b]) => (a < b ? -1 : 1)));

/** @returns {Promise<{path: string, info?: import('node:fs').Stats}[]>} the entries of a folder; `info`
 *     follows links, and is undefined for a dangling link */
async function listEntries(folder) {
  const names = (await readdir(folder)).filter(isVisible);
  return Promise.all(
    names.map(async (name) => {
      const path = join(folder, name);
      const info = await stat(path).catch((error) => {
        if (error.code !== 'ENOENT') throw error; // A dangling link.
      });
      return { path, info };
    })
  );
}

/** @returns {Promise<string>} a fingerprint of all files of games that may change */
async function fingerprintOf({ games, play }) {
  const entries = play ? [] : await listEntries(games);
  const folders = entries.filter(({ info }) => info?.isDirectory()).map(({ path }) => path);
  if (play) folders.push(resolve(play.folder));
  const files = (await Promise.all(folders.map(listEntries))).flat();
  return files
    .map(({ path, info }) => `${path} ${info?.mtimeMs} ${info?.size} ${info?.ino}`)
    .join('\n');
}

/**
 * Loads changes in the folder of `--games`, when two looks have seen the same files. A game whose round runs is loaded
 * after the round. A folder with a mistake is logged, and all games stay as they were. A removed folder's game stays.
 *
 * The folder is polled. Rejected: the system's notifications, since no watch of nested folders, also on network file
 * systems, works everywhere. A look costs some dozen system calls in another thread.
 *
 * @param {object} parts
 * @param {{arena: string[], games: string}} parts.options
 * @param {Map<string, Game>} parts.games the result of `findGames`, updated in place
 * @param {(name: string) => boolean} parts.isPlayed
 * @param {(names: string[]) => void} parts.onChange
 * @param {import('pino').Logger} parts.log
 * @returns {{close: () => void}}
 */
export function watchGames({ options, games, isPlayed, onChange, log }) {
  const canChange = options.play !== undefined || options.games !== 'none';
  if (options.arena.length === 0 || !canChange) return { close() {} };
  /**
   * `lastFingerprint`: of the last look. `readFingerprint`: of the last games that were read. `pendingGames`: those
   * games, while some of them wait for the end of a round.
   */
  let lastFingerprint;
  let readFingerprint;
  let pendingGames;
  let timer;
  let isClosed = false;

  function applyChanges() {
    const changedGames = [...pendingGames].filter(
      ([name, { version }]) => games.get(name)?.version !== version
    );
    const applicable = changedGames.filter(([name]) => !isPlayed(name));
    if (applicable.length === changedGames.length) pendingGames = undefined;
    if (applicable.length === 0) return;
    const all = sortedByName([...games, ...applicable]);
    games.clear();
    for (const [name, game] of all) games.set(name, game);
    const names = applicable.map(([name]) => name);
    log.info({ games: names }, 'games have changed');
    onChange(names);
  }

  async function checkForChanges() {
    const before = lastFingerprint;
    lastFingerprint = await fingerprintOf(options);
    // The first look reads the games again: files may have changed since `findGames`.
    if (
      before === undefined ||
      (readFingerprint !== lastFingerprint && before === lastFingerprint)
    ) {
      readFingerprint = lastFingerprint;
      pendingGames = findGames(options);
    }
    if (pendingGames !== undefined) applyChanges();
  }

  async function checkRepeatedly() {
    try {
      await checkForChanges();
    } catch (error) {
      const { message } = error;
      // A file may vanish during a look: the next look sees the new state.
      if (error.code !== 'ENOENT') log.warn({ why: message }, 'games stay as they were');
    }
    if (!isClosed) timer = setTimeout(checkRepeatedly, LOOK_INTERVAL).unref();
  }
  checkRepeatedly();
  return {
    close() {
      isClosed = true;
      clearTimeout(timer);
    }
  };
}

/**
 * Returns the game with which an arena starts: the first by name without panel.js. A game with panel.js (`load`) is a
 * tool for the holder of the token, and not for a room that waits to play.
 *
 * @param {Map<string, Game>} games at least one
 * @returns {Game}
 */
export function firstGame(games) {
  const [first] = games.values();
  return [...games.values()].find(({ files }) => !files.has('panel.js')) ?? first;
}

/**
 * Returns the games as GET /games answers them.
 *
 * @param {Map<string, Game>} games
 * @returns {object[]}
 */
export const describeGames = (games) =>
  [...games.values()].map(({ name, format, files }) => ({
    ...{ name, ...format },
    panel: files.has('panel.js')
  }));
