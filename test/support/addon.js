import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * The tests' own addon (test/native/addon): the torus and the strict readers as JavaScript has them.
 * It is built when it is first asked for, and again when it is older than what it is made of, or was
 * built for another Node.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const HOME = path.join(ROOT, 'test/native/addon');
const ADDON = path.join(HOME, 'build/Release/tests.node');
/** Says for which Node it was built. */
const STAMP = path.join(HOME, 'build/node-version');

/** The folders of what it is made of. */
const SOURCES = ['native/addon', 'native/base', 'native/door', 'native/pool', 'test/native/addon'];

/** @returns {string} the Node whose headers the server's addon was built with; this one has the same */
export function nodeHeaders() {
  const [, home] = /"nodedir": "(.*)"/.exec(
    readFileSync(path.join(ROOT, 'native/build/config.gypi'), 'utf8')
  );
  return home;
}

function isFresh() {
  if (!existsSync(ADDON) || !existsSync(STAMP)) return false;
  if (readFileSync(STAMP, 'utf8') !== process.version) return false;
  const built = statSync(ADDON).mtimeMs;
  return SOURCES.flatMap((folder) =>
    readdirSync(path.join(ROOT, folder))
      .filter((file) => /\.(h|cc|gyp)$/.test(file))
      .map((file) => statSync(path.join(ROOT, folder, file)).mtimeMs)
  ).every((changed) => changed < built);
}

function build() {
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const how = ['rebuild', '-C', HOME, `--nodedir=${nodeHeaders()}`, '--loglevel=error'];
  execFileSync(process.execPath, [gyp, ...how], { stdio: ['ignore', 'ignore', 'inherit'] });
  writeFileSync(STAMP, process.version);
}

/**
 * Loads the tests' addon.
 *
 * @returns {object} its exports: the class Torus; the functions readHead, readWatch, isJsonObject,
 *     watchTurns and takeTurns
 * @throws {Error} when it does not build; the compiler's words are on stderr
 */
export function loadTestAddon() {
  if (!isFresh()) {
    // Two test files may ask at the same time: the second one waits, and finds it built.
    const self = fileURLToPath(import.meta.url);
    execFileSync('flock', [HOME, process.execPath, self], { stdio: 'inherit' });
  }
  return createRequire(import.meta.url)(ADDON);
}

if (process.argv[1] === fileURLToPath(import.meta.url) && !isFresh()) build();
