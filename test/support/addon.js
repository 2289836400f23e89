import { createRequire } from 'node:module';

import { builtFile, buildWhenWanted } from '../../lib/swarm/build.js';

/** The tests' own addon: the torus and the strict readers as JavaScript has them. */
const ADDON = {
  name: "the tests' addon",
  home: 'test/native/addon',
  sources: [
    'native/flags.gypi',
    'native/addon',
    'native/base',
    'native/http',
    'native/torus',
    'test/native/addon'
  ],
  command: 'npx tap test/pool/torus.test.js'
};

/**
 * Loads the tests' addon, which is built when it is first asked for.
 *
 * @returns {object} its exports: the class Torus; the functions readHead, readRequest, readWatch, isJsonObject
 *     and takeTurns
 * @throws {Error} when it does not build; the compiler's words are on stderr
 */
export function loadTestAddon() {
  buildWhenWanted(ADDON);
  return createRequire(import.meta.url)(builtFile(ADDON, 'tests.node'));
}
