import { execFileSync } from 'node:child_process';
import {
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

import { pack, PLATFORMS, sbom, writeSums } from './pack.js';

/**
 * A release is one command:
 *
 *     npm run release -- 0.2.0              the version in every file, the changelog, one commit, its tag
 *     npm run release -- files FOLDER       what is published, of the tree as it is: packages of npm for each platform,
 *                                           SBOM, Debian package of the C++ client, SHA256SUMS. Publishes nothing
 *
 * `git push --follow-tags` then has .github/workflows/release.yml make the files, try them, and publish them.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));

/** Where the version is, and what is before it. The first in each file is meant. */
const VERSIONS = {
  'package.json': '"version": "',
  'lib/client/package.json': '"version": "',
  'native/client/include/sprites/version.h': 'SPRITES_VERSION "',
  'native/client/vcpkg/vcpkg.json': '"version": "',
  'native/desktop/CMakeLists.txt': 'project(sprites-desktop VERSION ',
  'deploy/helm/Chart.yaml': 'version: '
};

const UNRELEASED = '## Unreleased\n';

class UsageError extends Error {}

const run = (command, args, options = {}) =>
  execFileSync(command, args, {
    cwd: ROOT,
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...options
  });

const read = (file) => readFileSync(join(ROOT, file), 'utf8');

const numbers = (version) => version.split('.').map(Number);

/** @returns {boolean} whether a version comes after another */
function isAfter(one, other) {
  const [a, b] = [numbers(one), numbers(other)];
  const at = a.findIndex((number, i) => number !== b[i]);
  return at >= 0 && a[at] > b[at];
}

/**
 * What each file becomes by a release.
 *
 * @param {string} version
 * @param {string} day as 2026-01-31
 * @param {(file: string) => string} textOf
 * @returns {[string, string][]} files and their texts
 * @throws {UsageError} when there is nothing to release, or the version is none that may follow
 */
export function released(version, day, textOf) {
  if (!/^\d+\.\d+\.\d+$/.test(version))
    throw new UsageError(`${version} is no version: 0.2.0 is one`);
  const { version: before } = JSON.parse(textOf('package.json'));
  if (!isAfter(version, before)) throw new UsageError(`${version} does not come after ${before}`);
  const changes = textOf('CHANGELOG.md');
  const [, rest] = changes.split(UNRELEASED);
  if (!rest || /^\s*(##|$)/.test(rest)) throw new UsageError('CHANGELOG.md: nothing is unreleased');
  const files = Object.entries(VERSIONS).map(([file, words]) => {
    const text = textOf(file);
    if (!text.includes(words + before)) throw new Error(`${file} has no "${words}${before}"`);
    return [file, text.replace(words + before, words + version)];
  });
  const lock = JSON.parse(textOf('package-lock.json'));
  lock.version = version;
  lock.packages[''].version = version;
  return [
    ...files,
    ['package-lock.json', `${JSON.stringify(lock, null, 2)}\n`],
    ['CHANGELOG.md', changes.replace(UNRELEASED, `${UNRELEASED}\n## ${version} (${day})\n`)]
  ];
}

function release(version) {
  if (run('git', ['status', '--porcelain'])) throw new UsageError('commit your changes first');
  const files = released(version, new Date().toISOString().slice(0, 10), read);
  for (const [file, text] of files) writeFileSync(join(ROOT, file), text);
  run('git', [
    'commit',
    '--quiet',
    '--message',
    `Release ${version}`,
    ...files.map(([file]) => file)
  ]);
  run('git', ['tag', '--annotate', '--message', `Sprites ${version}`, `v${version}`]);
  console.log(`v${version} is tagged. What publishes it: git push --follow-tags`);
}

/** The Debian package of the C++ client. */
function packClient(folder) {
  const build = mkdtempSync(join(tmpdir(), 'sprites-deb-'));
  try {
    const define = ['-DCMAKE_INSTALL_PREFIX=/usr'];
    run('cmake', ['-S', 'native/client', '-B', build, ...define]);
    run('cmake', ['--build', build, '--parallel', process.env.JOBS ?? '2']);
    run('cpack', ['-G', 'DEB'], { cwd: build });
    const made = readdirSync(build).filter((name) => name.endsWith('.deb'));
    for (const name of made) copyFileSync(join(build, name), join(folder, name));
    return made;
  } finally {
    rmSync(build, { recursive: true });
  }
}

function makeFiles(to, platforms) {
  const folder = resolve(to);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'sprites-server.cdx.json'), sbom());
  const made = [...packClient(folder), ...pack(folder, platforms)];
  writeSums(folder);
  console.log(['sprites-server.cdx.json', ...made, 'SHA256SUMS'].join('\n'));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [what, folder, ...platforms] = process.argv.slice(2);
  const all = Object.keys(PLATFORMS);
  try {
    if (what === 'files' && folder) makeFiles(folder, platforms.length > 0 ? platforms : all);
    else if (what && what !== 'files' && !what.startsWith('-')) release(what);
    else throw new UsageError('npm run release -- VERSION, or: files FOLDER [PLATFORM …]');
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(error.message);
    process.exitCode = 2;
  }
}
