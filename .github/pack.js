import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, parse, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/**
 * Makes the packages of a release, as npm publishes them, and SHA256SUMS:
 *
 *     npm run pack:all -- FOLDER                       sprites-server, sprites-client, and this machine's platform
 *     npm run pack:all -- FOLDER --all                 with every platform
 *     npm run pack:all -- FOLDER linux-arm64-musl …    with the platforms named
 *
 * A platform's package has the addon for each ABI of Node, and the engine of bin/sprites-swarm. Zig builds them for any
 * platform on this one, with its C++ library inside, so that they want a glibc as old as Node itself does. Zig comes from
 * PyPI, Node's headers from npm, each once, into a folder that is kept.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const ZIG = '0.17.1';

/** The Nodes that are built for and tested. */
export const NODES = ['20', '22', '24', '26'];

/** The platforms, each with what its package says to npm, and what zig calls it. */
export const PLATFORMS = {
  'linux-x64': { cpu: 'x64', libc: 'glibc', target: 'x86_64-linux-gnu.2.28' },
  'linux-arm64': { cpu: 'arm64', libc: 'glibc', target: 'aarch64-linux-gnu.2.28' },
  'linux-x64-musl': { cpu: 'x64', libc: 'musl', target: 'x86_64-linux-musl' },
  'linux-arm64-musl': { cpu: 'arm64', libc: 'musl', target: 'aarch64-linux-musl' }
};

/** Provenance wants it; only where a release is made is it known. */
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const REPOSITORY = GITHUB_REPOSITORY && `git+${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}.git`;

/** What is built, by the folder of its binding.gyp. lib/base/addon.js finds it. */
const PRODUCTS = { native: ['sprites.node'], 'native/swarm': ['swarm', 'swarm_tls.node'] };

/**
 * In the place of the C++ library's own, a sixth of an addon, which only the last words of a process that ends by an
 * exception use: they have the exception's name as the compiler writes it.
 */
const DEMANGLE = `char* __cxa_demangle(const char* name, char* to, unsigned long* size, int* status) {
  if (status) *status = -1;
  return 0;
}
`;

/** What is downloaded is kept here between runs, outside the working tree. */
export const KEPT = process.env.SPRITES_NODES ?? join(tmpdir(), 'sprites-nodes');

/** What npm sets for its own scripts must not reach another npm. */
const environment = () =>
  Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));

const run = (command, args, options = {}) =>
  execFileSync(command, args, {
    cwd: ROOT,
    env: environment(),
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 26,
    ...options
  });

/**
 * Fetches a Node once, from the npm package that carries the binary and its headers, so that no header of another Node
 * slips in.
 *
 * @param {string} version
 * @param {string} [cpu]
 * @returns {string} the folder with bin/ and include/: node-gyp's nodedir
 */
export function fetchNode(version, cpu = process.arch) {
  const name = `node-linux-${cpu}`;
  const prefix = join(KEPT, cpu === process.arch ? version : `${version}-${cpu}`);
  const home = join(prefix, 'node_modules', name);
  if (existsSync(join(home, 'bin/node'))) return home;
  mkdirSync(prefix, { recursive: true });
  // A package of another CPU is wanted for its files.
  const how = ['--no-save', '--no-audit', '--no-fund', '--ignore-scripts', '--force', '--silent'];
  run('npm', ['install', ...how, '--prefix', prefix, `${name}@${version}`], { cwd: prefix });
  return home;
}

/** Copies the working tree as it stands, without what git ignores. @param {string} to */
export function copyTree(to) {
  const how = ['ls-files', '-z', '--cached', '--others', '--exclude-standard'];
  for (const file of run('git', how).split('\0').filter(Boolean)) {
    if (!existsSync(join(ROOT, file))) continue; // deleted, not yet committed
    mkdirSync(dirname(join(to, file)), { recursive: true });
    copyFileSync(join(ROOT, file), join(to, file));
  }
}

/**
 * Fetches a package of PyPI once.
 *
 * @param {string} name
 * @param {string} version
 * @param {string} [platform] another than this machine's, as PyPI calls it
 * @returns {string} the folder with what is in it
 */
export function fetchWheel(name, version, platform) {
  const home = join(KEPT, [name, version, platform].filter(Boolean).join('-'));
  if (existsSync(home)) return home;
  const python = join(KEPT, 'python');
  if (!existsSync(join(python, 'bin/pip'))) run('python3', ['-m', 'venv', '--clear', python]);
  const where = platform ? ['--platform', platform, '--only-binary', ':all:'] : [];
  const part = mkdtempSync(`${home}-`);
  const how = ['--quiet', '--no-deps', '--target', part, ...where];
  run(join(python, 'bin/pip'), ['install', ...how, `${name}==${version}`]);
  renameSync(part, home);
  return home;
}

function hasCcache() {
  try {
    return run('ccache', ['--version']) !== '';
  } catch {
    return false; // it only saves time
  }
}

/** With ccache, what reads the same of two Nodes' headers, or none of them, is compiled once; this run alone keeps it. */
const compileOnce = ({ CC, CXX }, work) => ({
  ...{ CC: `ccache ${CC}`, CXX: `ccache ${CXX}` },
  ...{ CCACHE_DIR: join(work, 'ccache'), CCACHE_COMPILERTYPE: 'clang' },
  CCACHE_COMPILERCHECK: 'content'
});

/**
 * The environment in which node-gyp builds for a platform. What V8's headers or another compiler than ours warn of stops
 * no release. All that an addon has is its own but the function that Node calls, because the C++ library inside must not
 * be mixed with Node's.
 */
function toolsFor(target, work) {
  const zig = join(fetchWheel('ziglang', ZIG), 'ziglang/zig');
  const flags = '-ffunction-sections -fdata-sections -fvisibility=hidden -g0 -Wno-error';
  const [CC, CXX] = ['cc', 'c++'].map((name) => {
    const file = join(work, `${name}-${target}`);
    const text = `#!/bin/sh\nexec ${zig} ${name} -target ${target} "$@" ${flags}\n`;
    writeFileSync(file, text, { mode: 0o755 });
    return file;
  });
  const exported = join(work, 'exported');
  writeFileSync(exported, '{ global: node_register_module_v*; local: *; };\n');
  const demangle = join(work, `demangle-${target}`);
  writeFileSync(`${demangle}.c`, DEMANGLE);
  // Without -O zig adds checks, and what they need.
  run(CC, ['-O2', '-fPIC', '-c', `${demangle}.c`, '-o', `${demangle}.o`]);
  const LDFLAGS = `${demangle}.o -Wl,-s -Wl,--gc-sections -Wl,--version-script=${exported}`;
  const tools = { CC, CXX, LINK: CXX, AR: `${zig} ar`, LDFLAGS };
  return { ...environment(), ...tools, ...(hasCcache() && compileOnce(tools, work)) };
}

/** Builds a platform's package in its folder. */
function buildPlatform(name, { tree, folder, version }) {
  const { cpu, libc, target } = PLATFORMS[name];
  mkdirSync(folder);
  const env = toolsFor(target, dirname(folder));
  const gyp = join(ROOT, 'node_modules/node-gyp/bin/node-gyp.js');
  // By one name, so that two Nodes' headers read the same.
  const home = join(dirname(folder), 'node');
  for (const node of NODES) {
    rmSync(home, { force: true });
    symlinkSync(fetchNode(node), home);
    const abi = /NODE_MODULE_VERSION (\d+)/.exec(
      readFileSync(join(home, 'include/node/node_version.h'), 'utf8')
    )[1];
    console.error(`building ${name} for Node ${node} (ABI ${abi})`);
    const how = ['-j', process.env.JOBS ?? 'max', '--loglevel=error', `--arch=${cpu}`];
    for (const [room, products] of Object.entries(PRODUCTS)) {
      const here = ['-C', join(tree, room), `--nodedir=${home}`];
      // A program is the same for each Node.
      const missing = products.filter((product) => !existsSync(join(folder, product)));
      const steps = ['clean', 'configure', 'build', ...missing.map((one) => parse(one).name)];
      run(process.execPath, [gyp, ...here, ...how, ...steps], { env });
      for (const product of missing) {
        const named = product.replace('.node', `-${abi}.node`);
        copyFileSync(join(tree, room, 'build/Release', product), join(folder, named));
      }
    }
  }
  copyFileSync(join(ROOT, 'LICENSE'), join(folder, 'LICENSE'));
  const manifest = {
    name: `sprites-server-${name}`,
    version,
    description: `What sprites-server has in C++, built for ${name}`,
    license: 'MIT',
    os: ['linux'],
    cpu: [cpu],
    libc: [libc],
    repository: REPOSITORY,
    preferUnplugged: true
  };
  writeFileSync(join(folder, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

/**
 * The list of what npm installs with the server, as CycloneDX. It is made of the manifest that is published: of a
 * checkout's `npm sbom --omit dev` leaves out whatever a tool of the developers needs as well.
 *
 * @returns {string}
 */
export function sbom() {
  const work = mkdtempSync(join(tmpdir(), 'sprites-sbom-'));
  try {
    const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
    writeFileSync(join(work, 'package.json'), JSON.stringify(published(manifest)));
    copyFileSync(join(ROOT, 'package-lock.json'), join(work, 'package-lock.json'));
    const how = ['--package-lock-only', '--ignore-scripts', '--offline', '--silent'];
    run('npm', ['install', ...how], { cwd: work });
    return run('npm', ['sbom', '--package-lock-only', '--sbom-format', 'cyclonedx'], { cwd: work });
  } finally {
    rmSync(work, { recursive: true });
  }
}

/**
 * package.json as it is published: without an install script, which npm 12 would not run, and with the platforms. npm has
 * a node-gyp of its own for the scripts that it runs, so that `npm run build` needs none beside it.
 */
function published(manifest) {
  const { scripts, version } = manifest;
  const platforms = Object.keys(PLATFORMS).map((name) => [`sprites-server-${name}`, version]);
  return {
    ...manifest,
    private: undefined,
    repository: REPOSITORY,
    scripts: { start: scripts.start, build: scripts.build },
    dependencies: { ...manifest.dependencies, 'node-gyp': undefined },
    devDependencies: undefined,
    optionalDependencies: Object.fromEntries(platforms)
  };
}

/**
 * @param {string} to the folder for the packages
 * @param {string[]} platforms
 * @returns {string[]} their files
 */
export function pack(to, platforms) {
  const out = resolve(to);
  mkdirSync(out, { recursive: true });
  const work = mkdtempSync(join(tmpdir(), 'sprites-pack-'));
  try {
    const tree = join(work, 'tree');
    copyTree(tree);
    symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
    run('npm', ['run', '--silent', 'types'], { cwd: tree });
    const manifest = JSON.parse(readFileSync(join(tree, 'package.json'), 'utf8'));
    const made = platforms.map((name) => {
      const folder = join(work, name);
      buildPlatform(name, { tree, folder, version: manifest.version });
      return folder;
    });
    const text = JSON.stringify(published(manifest), null, 2);
    writeFileSync(join(tree, 'package.json'), `${text}\n`);
    const folders = [tree, join(tree, 'lib/client'), ...made];
    const how = ['--json', '--ignore-scripts', '--pack-destination', out];
    const said = run('npm', ['pack', ...how, ...folders]);
    return JSON.parse(said).map(({ filename }) => filename);
  } finally {
    rmSync(work, { recursive: true });
  }
}

/** Writes SHA256SUMS of a folder's files. @param {string} folder */
export function writeSums(folder) {
  const files = readdirSync(folder).filter((name) => name !== 'SHA256SUMS');
  const lines = files.map((name) => {
    const sum = createHash('sha256')
      .update(readFileSync(join(folder, name)))
      .digest('hex');
    return `${sum}  ${name}\n`;
  });
  writeFileSync(join(folder, 'SHA256SUMS'), lines.join(''));
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [folder, ...rest] = process.argv.slice(2);
  const all = Object.keys(PLATFORMS);
  const platforms =
    rest.length > 0 ? rest.filter((one) => one !== '--all') : [`linux-${process.arch}`];
  if (rest.includes('--all')) platforms.push(...all);
  const unknown = platforms.filter((name) => !all.includes(name));
  if (!folder || unknown.length > 0) {
    console.error(`npm run pack:all -- FOLDER [--all | ${all.join(' | ')}]`);
    process.exitCode = 2;
  } else {
    console.log(pack(folder, [...new Set(platforms)]).join('\n'));
    writeSums(folder);
  }
}
