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
 * Native programs that only some need are built when they are first wanted, and again when they are older than what
 * they are made of, or were built for another Node.
 *
 *     npm run build:swarm        builds the swarm's now: for a folder that its users may not write to
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SELF = fileURLToPath(import.meta.url);

/**
 * @typedef {object} Wanted
 * @property {string} name for a person
 * @property {string} home the folder of its binding.gyp, from the root of the repository
 * @property {string[]} sources files it is made of, and folders whose files it is made of
 * @property {string} command what builds it, for a person
 */

/** @type {Wanted} the swarm's engine: a plain program, and one inside Node for TLS */
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

/** Sources of programs are in a checkout alone: what was installed from the registry has them built. */
const hasSources = (wanted) => existsSync(join(ROOT, wanted.home));

/**
 * @param {Wanted} wanted
 * @param {string} product
 * @returns {string} the path of a file that the build makes
 */
export const builtFile = (wanted, product) =>
  hasSources(wanted) ? join(ROOT, wanted.home, 'build/Release', product) : prebuilt(product);

/** Says for which Node it was built; as old as the beginning of the build. */
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

/** The headers with which the server's addon was built here; this Node has the same. */
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
 * Builds what is wanted, unless it is there. Where several processes want it at once, one builds and the others wait.
 *
 * @param {Wanted} wanted
 * @param {(line: string) => void} [say] is told when it takes a while
 * @throws {UsageError} when it can't be built; a compiler's words are on stderr
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

// With an argument it is buildWhenWanted's own, which holds the lock; without, npm run build:swarm.
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
