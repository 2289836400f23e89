import { execFileSync } from 'node:child_process';
import {
  accessSync,
  constants,
  existsSync,
  readdirSync,
  readFileSync,
  statSync,
  utimesSync,
  writeFileSync
} from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { prebuilt } from '../base/addon.js';
import { UsageError } from '../base/option-help.js';

/**
 * Builds native programs that few users need: at their first use, and again when a source is newer or Node has
 * another version.
 *
 *     npm run build:swarm        builds the swarm's engine now: for a folder that its users may not write to
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SELF = fileURLToPath(import.meta.url);

/**
 * @typedef {object} Wanted
 * @property {string} name shown in messages
 * @property {string} home the folder of its binding.gyp, from the root of the repository
 * @property {string[]} sources source files, and folders of source files
 * @property {string} command the command that builds it, shown in messages
 */

/** @type {Wanted} the swarm's engine: a plain program, and an addon of Node for TLS */
export const ENGINE = {
  name: "the swarm's engine",
  home: 'native/swarm',
  sources: [
    'native/units.js',
    'native/flags.gypi',
    'native/base',
    'native/client/src',
    'native/swarm',
    'native/swarm/program',
    'native/swarm/tls'
  ],
  command: 'npm run build:swarm'
};

/** Returns whether this is a checkout: a package from the registry has prebuilt programs, and no sources. */
const hasSources = (wanted) => existsSync(join(ROOT, wanted.home));

/**
 * @param {Wanted} wanted
 * @param {string} product
 * @returns {string} the path of a product of the build
 */
export const builtFile = (wanted, product) =>
  hasSources(wanted) ? join(ROOT, wanted.home, 'build/Release', product) : prebuilt(product);

/** Path of the stamp: it holds the version of Node, and its time is the start of the build. */
const stampOf = (wanted) => join(ROOT, wanted.home, 'build/node-version');

function isFresh(wanted) {
  const stamp = stampOf(wanted);
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== process.version) return false;
  const built = statSync(stamp).mtimeMs;
  return wanted.sources.flatMap(filesAt).every((file) => statSync(file).mtimeMs < built);
}

function filesAt(source) {
  const path = join(ROOT, source);
  if (!statSync(path).isDirectory()) return [path];
  return readdirSync(path)
    .filter((file) => /\.(h|cc|gyp)$/.test(file))
    .map((file) => join(path, file));
}

/** Returns the option for the headers with which the server's addon was built here: this Node has the same. */
function nodeHeaders() {
  const config = join(ROOT, 'native/build/config.gypi');
  const home = existsSync(config) && /"nodedir": "(.*)"/.exec(readFileSync(config, 'utf8'))?.[1];
  return home ? [`--nodedir=${home}`] : [];
}

function build(wanted) {
  const began = new Date();
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const how = ['-C', join(ROOT, wanted.home), '-j', process.env.JOBS ?? 'max', '--loglevel=error'];
  execFileSync(process.execPath, [gyp, 'rebuild', ...how, ...nodeHeaders()], {
    stdio: ['ignore', 'ignore', 'inherit']
  });
  writeFileSync(stampOf(wanted), process.version);
  utimesSync(stampOf(wanted), began, began);
}

/**
 * Builds a program unless its build is up to date. Of several processes, the first one builds and the others wait.
 *
 * @param {Wanted} wanted
 * @param {(line: string) => void} [say] shows a message before a build
 * @throws {UsageError} when the build fails; the compiler's messages are on stderr
 */
export function buildWhenWanted(wanted, say = () => {}) {
  if (!hasSources(wanted)) return needPrebuilt(wanted);
  if (isFresh(wanted)) return;
  const home = join(ROOT, wanted.home);
  try {
    accessSync(home, constants.W_OK);
  } catch {
    throw new UsageError(
      `${wanted.name} is not built for this Node (${process.version}), and ${home} cannot be written to: ` +
        `run "${wanted.command}" as its owner`
    );
  }
  say(`building ${wanted.name} in ${home}, this once: some ten seconds`);
  try {
    const one = [process.execPath, SELF, JSON.stringify(wanted)];
    execFileSync('flock', [home, ...one], { stdio: 'inherit' });
  } catch (cause) {
    const why = cause.code === 'ENOENT' ? 'install flock (util-linux)' : 'see above';
    throw new UsageError(`${wanted.name} is not built: ${why}`, { cause });
  }
}

function needPrebuilt({ name }) {
  try {
    prebuilt('swarm');
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}`;
    throw new UsageError(`${name} is not built for ${platform}: run it in a checkout`, { cause });
  }
}

// With an argument buildWhenWanted has started this process, under its lock; without one, npm run build:swarm has.
if (process.argv[1] === SELF) {
  const wanted = JSON.parse(process.argv[2] ?? 'null');
  try {
    if (wanted === null) buildWhenWanted(ENGINE, console.log);
    else if (!isFresh(wanted)) build(wanted);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
