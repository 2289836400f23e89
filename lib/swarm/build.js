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

import { findPrebuilt } from '../base/addon.js';
import { UsageError } from '../base/option-help.js';

/**
 * Builds native programs that few users need: at their first use, and again when a source is newer or Node has
 * another version.
 *
 *     npm run build:swarm        builds the swarm's engine now: for a folder that its users may not write to
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const THIS_FILE = fileURLToPath(import.meta.url);

/**
 * @typedef {object} NativeProgram
 * @property {string} name shown in messages
 * @property {string} home the folder of its binding.gyp, from the root of the repository
 * @property {string[]} sources source files, and folders of source files
 * @property {string} command the command that builds it, shown in messages
 */

/** @type {NativeProgram} the swarm's engine: a plain program, and an addon of Node for TLS */
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
const hasSources = (program) => existsSync(join(ROOT, program.home));

/**
 * @param {NativeProgram} program
 * @param {string} product
 * @returns {string} the path of a product of the build
 */
export const builtFile = (program, product) =>
  hasSources(program) ? join(ROOT, program.home, 'build/Release', product) : findPrebuilt(product);

/** Path of the stamp: it holds the version of Node, and its time is the start of the build. */
const stampOf = (program) => join(ROOT, program.home, 'build/node-version');

function isFresh(program) {
  const stamp = stampOf(program);
  if (!existsSync(stamp) || readFileSync(stamp, 'utf8') !== process.version) return false;
  const builtAt = statSync(stamp).mtimeMs;
  return program.sources.flatMap(filesAt).every((file) => statSync(file).mtimeMs < builtAt);
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
  const headersFolder =
    existsSync(config) && /"nodedir": "(.*)"/.exec(readFileSync(config, 'utf8'))?.[1];
  return headersFolder ? [`--nodedir=${headersFolder}`] : [];
}

function build(program) {
  const startedAt = new Date();
  const gyp = createRequire(import.meta.url).resolve('node-gyp/bin/node-gyp.js');
  const gypOptions = ['-C', join(ROOT, program.home), '-j', process.env.JOBS ?? 'max'];
  const options = [...gypOptions, '--loglevel=error', ...nodeHeaders()];
  execFileSync(process.execPath, [gyp, 'rebuild', ...options], {
    stdio: ['ignore', 'ignore', 'inherit']
  });
  writeFileSync(stampOf(program), process.version);
  utimesSync(stampOf(program), startedAt, startedAt);
}

/**
 * Builds a program unless its build is up to date. Of several processes, the first one builds and the others wait.
 *
 * @param {NativeProgram} program
 * @param {(line: string) => void} [showMessage] shows a message before a build
 * @throws {UsageError} when the build fails; the compiler's messages are on stderr
 */
export function buildIfStale(program, showMessage = () => {}) {
  if (!hasSources(program)) return requirePrebuilt(program);
  if (isFresh(program)) return;
  const home = join(ROOT, program.home);
  try {
    accessSync(home, constants.W_OK);
  } catch {
    throw new UsageError(
      `${program.name} is not built for this Node (${process.version}), and ${home} cannot be written to: ` +
        `run "${program.command}" as its owner`
    );
  }
  showMessage(`building ${program.name} in ${home}, this once: some ten seconds`);
  try {
    const builderCommand = [process.execPath, THIS_FILE, JSON.stringify(program)];
    execFileSync('flock', [home, ...builderCommand], { stdio: 'inherit' });
  } catch (cause) {
    const why = cause.code === 'ENOENT' ? 'install flock (util-linux)' : 'see above';
    throw new UsageError(`${program.name} is not built: ${why}`, { cause });
  }
}

function requirePrebuilt({ name }) {
  try {
    findPrebuilt('swarm');
  } catch (cause) {
    const platform = `${process.platform} ${process.arch}`;
    throw new UsageError(`${name} is not built for ${platform}: run it in a checkout`, { cause });
  }
}

// With an argument buildIfStale has started this process, under its lock; without one, npm run build:swarm has.
if (process.argv[1] === THIS_FILE) {
  const program = JSON.parse(process.argv[2] ?? 'null');
  try {
    if (program === null) buildIfStale(ENGINE, console.log);
    else if (!isFresh(program)) build(program);
  } catch (error) {
    console.error(error.message);
    process.exitCode = 1;
  }
}
