import { execFile, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

import { fetchWheel } from '../../.github/pack.js';

/**
 * Builds the C++ parts with cmake, and runs the programs.
 */

/** The repository's root folder. */
export const ROOT = fileURLToPath(new URL('../../', import.meta.url));

/** Whether to build the C++ programs with clang++ and sanitizers: npm run test:sanitize sets this. */
export const SANITIZING = Boolean(process.env.SPRITES_TEST_SANITIZE);

/**
 * CMake variables that compile each target's files as one unit, in less than two thirds of the CPU seconds. For
 * AddressSanitizer the client's files are compiled one by one.
 */
export const UNITY = { CMAKE_UNITY_BUILD: 'ON', CMAKE_UNITY_BUILD_BATCH_SIZE: '0' };

const run = promisify(execFile);

/** Returns an environment for programs under test: without proxies and without the test runner's loader. */
export function plainEnvironment(more = {}) {
  const env = { ...process.env, ...more };
  for (const name of Object.keys(env)) {
    if (/^(https?|all|no)_proxy$/i.test(name) || name === 'NODE_OPTIONS') delete env[name];
  }
  return env;
}

/**
 * Returns the reason why a test can't run here. A run with the sanitizers skips nothing.
 *
 * @param {object} needs
 * @param {string[]} [needs.programs] programs on the PATH, found by `which`
 * @param {string[]} [needs.packages] pkg-config names
 * @returns {string | false} one line for tap's `skip`
 */
export function missing({ programs = [], packages = [] }) {
  if (SANITIZING) return false;
  const absent = programs.filter((name) => spawnSync('which', [name]).status !== 0);
  if (!absent.includes('pkg-config')) {
    absent.push(
      ...packages.filter((name) => spawnSync('pkg-config', ['--exists', name]).status !== 0)
    );
  }
  return absent.length > 0 && `not installed here: ${absent.join(', ')}`;
}

/**
 * Runs a program to its end.
 *
 * @param {string} program
 * @param {string[]} args
 * @param {object} [options] execFile's options
 * @returns {Promise<string>} its stdout
 * @throws {Error} with the end of its output, when the program fails
 */
export async function tool(program, args, options = {}) {
  try {
    const { stdout } = await run(program, args, {
      env: plainEnvironment(),
      maxBuffer: 2 ** 26,
      ...options
    });
    return stdout;
  } catch (error) {
    const outputText = `${error.stdout ?? ''}${error.stderr ?? ''}`;
    throw new Error(`${[program, ...args].join(' ')}\n${outputText.slice(-4000)}`, {
      cause: error
    });
  }
}

/**
 * Returns the build folder of this name. It is kept for the next test file and the next run: CMake rebuilds only the
 * changed files.
 */
export function sharedBuild(name) {
  return join(ROOT, 'native/build/cmake', name);
}

/**
 * Configures and builds a CMake project. When two test files build into one folder at the same time, the second waits.
 *
 * @param {object} what
 * @param {string} what.source its folder, from the root of the repository or absolute
 * @param {string} what.into the build folder; a folder that other test files use too comes from sharedBuild
 * @param {string} [what.preset] a preset of the project's CMakePresets.json
 * @param {Record<string, string>} [what.define] cache variables
 * @returns {Promise<string>} the build folder
 */
export async function cmakeBuild({ source, into, preset, define = {} }) {
  const folder = source.startsWith('/') ? source : join(ROOT, source);
  mkdirSync(dirname(into), { recursive: true });
  const cmake = (...args) => tool('flock', [`${into}.lock`, 'cmake', ...args]);
  const presets = preset ? ['--preset', preset] : [];
  const defines = Object.entries(define).map(([name, value]) => `-D${name}=${value}`);
  await cmake('-S', folder, '-B', into, ...presets, ...defines);
  await cmake('--build', into, '--parallel', String(availableParallelism()));
  return into;
}

/** The reason why the C++ client can't be built here, or false; for a test's `skip`. */
export const noClient = missing({
  programs: ['cmake', 'g++', 'pkg-config'],
  packages: ['libcurl']
});

/**
 * Builds the C++ client and its test programs; once for all test files.
 *
 * @param {'gcc' | 'asan' | 'tsan'} [preset] a preset of native/client/CMakePresets.json
 * @returns {Promise<string>} the folder with the programs
 */
export function buildClient(preset = 'gcc') {
  return cmakeBuild({ source: 'native/client', preset, into: sharedBuild(preset) });
}

/** Makes a folder with only libcurl's headers of this machine, to compile for Windows. @returns {Promise<string>} */
async function curlHeaders(folder) {
  mkdirSync(folder, { recursive: true });
  const flags = ['--cflags-only-I', '--keep-system-cflags', 'libcurl'];
  const [, include] = /-I(\S+)/.exec(await tool('pkg-config', flags));
  if (!existsSync(join(folder, 'curl'))) symlinkSync(join(include, 'curl'), join(folder, 'curl'));
  return folder;
}

const MINGW = 'x86_64-w64-mingw32-g++-posix';
const WINE = '/usr/lib/wine'; // the package wine64

/** The reason why the C++ client can't be built for Windows and run here, or false; for a test's `skip`. */
export const noWindows = noClient || missing({ programs: [MINGW, `${WINE}/wine64`, 'python3'] });

/**
 * Builds the C++ client's test programs for Windows, with the libcurl.dll of a Python package.
 *
 * @param {import('tap').Test} t its end ends the processes that Wine has started
 * @returns {Promise<string>} the folder with the scripts that run the programs under Wine
 */
export async function buildForWindows(t) {
  const into = sharedBuild('windows');
  const headers = await curlHeaders(join(into, 'include'));
  const wheel = fetchWheel('pymcurl', '8.23.0.2', 'win_amd64');
  const library = join(
    wheel,
    readdirSync(wheel).find((one) => /^libcurl.*\.dll$/.test(one))
  );
  await cmakeBuild({
    source: 'native/client',
    into,
    define: {
      CMAKE_SYSTEM_NAME: 'Windows',
      CMAKE_CXX_COMPILER: MINGW,
      CMAKE_EXE_LINKER_FLAGS: '-static',
      CURL_INCLUDE_DIR: headers,
      CURL_LIBRARY: library,
      SPRITES_TESTS: 'ON',
      SPRITES_WERROR: 'ON',
      ...UNITY
    }
  });
  copyFileSync(library, join(into, 'libcurl-4.dll')); // the name that the programs load
  const prefix = mkdtempSync(join(tmpdir(), 'sprites-wine-'));
  const env = plainEnvironment({ WINEPREFIX: prefix });
  t.teardown(async () => {
    await tool(`${WINE}/wineserver64`, ['--kill'], { env }).catch(() => {}); // Wine was never started
    await tool(`${WINE}/wineserver64`, ['--wait'], { env });
    rmSync(prefix, { recursive: true });
  });
  const wineVariables = `WINEPREFIX=${prefix} WINEPATH=${wheel} WINEDEBUG=-all WINEDLLOVERRIDES=mscoree,mshtml=`;
  for (const name of readdirSync(into).filter((one) => one.endsWith('.exe'))) {
    const text = `#!/bin/sh\nexec env -u DISPLAY ${wineVariables} ${WINE}/wine64 "$0.exe" "$@"\n`;
    writeFileSync(join(into, name.slice(0, -4)), text, { mode: 0o755 });
  }
  return into;
}
