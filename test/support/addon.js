import { createRequire } from 'node:module';

import { builtFile, buildIfStale } from '../../lib/swarm/build.js';

/** The tests' own addon: makes the torus and the strict readers callable from JavaScript. */
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
 * Loads the tests' addon. The first call builds it.
 *
 * @returns {object} its exports: the class Torus; the functions readHead, readRequest, readWatch, isJsonObject
 *     and takeTurns
 * @throws {Error} when the build fails; the compiler's output is on stderr
 */
export function loadTestAddon() {
  buildIfStale(ADDON);
  return createRequire(import.meta.url)(builtFile(ADDON, 'tests.node'));
}
