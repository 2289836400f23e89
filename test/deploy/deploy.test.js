import { execFile, spawnSync } from 'node:child_process';
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';

import { readOptions, optionTable } from '../../lib/operator/options.js';
import { request, Wire } from '../support/http.js';
import { ROOT, SPRITES } from '../support/launch.js';
import { startServer } from '../support/server.js';
import { certificate } from '../support/certificate.js';
import { temporary } from '../support/processes.js';

/**
 * Checks the files of deploy/ against the program, and with the tools that read them. Without a tool, its tests are
 * skipped.
 */

const deployFile = (name) => readFileSync(path.join(ROOT, 'deploy', name), 'utf8');

/** Runs a program. @returns {{ status: number, output: string } | null} null: not installed */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 60_000, ...options });
  if (result.error?.code === 'ENOENT') return null;
  return { status: result.status, output: result.stdout + result.stderr };
}

/** Asserts that a tool exits with 0. Skips the test without the tool. */
function assertToolPasses(t, tool, args, options) {
  const result = run(tool, args, options);
  if (result === null) t.skip(`${tool} is not installed`);
  else t.equal(result.status, 0, result.output);
  return result;
}

/** Reads the files that cloud-config writes. @returns {Map<string, string>} path → text */
function writtenFiles(yaml) {
  const files = new Map();
  const entry = /^ {2}- path: (\S+)\n(?: {4}\w+: .*\n)*? {4}content: \|\n((?:(?: {6}.*)?\n)+)/gm;
  for (const [, name, block] of yaml.matchAll(entry)) {
    files.set(name, block.replace(/^ {6}/gm, '').trimEnd().concat('\n'));
  }
  return files;
}

const CLOUD_CONFIG = deployFile('cloud-init.yaml');
const FILES = writtenFiles(CLOUD_CONFIG);
const SWARM_UNIT = '/etc/systemd/system/sprites-swarm.service';
const SETUP_SCRIPT = '/usr/local/sbin/sprites-swarm-setup';
const RUN_SCRIPT = '/usr/local/bin/sprites-swarm-run';

t.test('the service unit', async (t) => {
  const unit = path.join(ROOT, 'deploy/sprites.service');
  t.test('passes systemd-analyze verify without a word', async (t) => {
    const result = assertToolPasses(t, 'systemd-analyze', ['verify', '--man=no', unit]);
    if (result) t.equal(result.output.trim(), '');
  });
  t.test('is exposed little', async (t) => {
    const result = assertToolPasses(t, 'systemd-analyze', ['security', '--offline=true', unit]);
    if (!result) return;
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(result.output);
    t.ok(Number(exposure) <= 1.5, `exposure ${exposure}`);
  });
  t.test('starts the server without a flag that some Node refuses', async (t) => {
    const [, command] = /^ExecStart=(.*)$/m.exec(deployFile('sprites.service'));
    t.equal(command, '/usr/bin/env node /opt/sprites/bin/sprites');
    t.match(deployFile('sprites.service'), /^Environment=.* SPRITES_STATE=%S\/%N\/state$/m);
    t.notMatch(deployFile('sprites.service'), /nouse-idle-notification|NODE_OPTIONS/);
  });
  t.test('is not started again with an option that is wrong', async (t) => {
    // As command-line.test.js has the exit codes.
    t.match(deployFile('sprites.service'), /^RestartPreventExitStatus=2$/m);
  });
  t.test('waits longer than the drain window', async (t) => {
    const { default: drain } = optionTable.find(({ name }) => name === 'drain');
    const [, stop] = /^TimeoutStopSec=(\d+)$/m.exec(deployFile('sprites.service'));
    t.ok(Number(stop) > Number(drain) + 60, `${stop} s for a drain of ${drain} s and the writing`);
  });
  t.test('allows the files of a million clients, and no more than an untuned kernel', async (t) => {
    const [, files] = /^LimitNOFILE=(\d+)$/m.exec(deployFile('sprites.service'));
    t.ok(Number(files) >= 1_000_064 && Number(files) <= 1_048_576);
    t.match(deployFile('limits.conf'), new RegExp(`^\\* +hard +nofile +${files}$`, 'm'));
  });
});

/** Reads which system calls the SystemCallFilter= lines of a unit allow. @returns {Set<string>} */
function allowedCalls(unit) {
  const members = new Map();
  const expand = (name) => {
    if (!name.startsWith('@')) return [name];
    if (!members.has(name)) {
      const { output } = run('systemd-analyze', ['--no-pager', 'syscall-filter', name]);
      members.set(
        name,
        output.match(/^ {4}[@\w-]+$/gm).flatMap((line) => expand(line.trim()))
      );
    }
    return members.get(name);
  };
  const allowed = new Set(expand('@default'));
  for (const [, not, names] of unit.matchAll(/^SystemCallFilter=(~?)(.+)$/gm)) {
    for (const call of names.split(' ').flatMap(expand)) {
      if (not) allowed.delete(call);
      else allowed.add(call);
    }
  }
  return allowed;
}

/** System calls that the unit does not allow, and that may fail. */
const TOLERATED_CALLS = {
  pkey_alloc: 'V8 looks whether the processor has memory protection keys, and does without'
};

t.test('the unit allows every call and socket of the server and its workers', async (t) => {
  const dir = temporary(t);
  const log = path.join(dir, 'calls');
  if (run('strace', ['-o', log, 'true'])?.status !== 0) {
    t.skip('strace is not installed, or may not trace here');
    return;
  }
  if (run('systemd-analyze', ['syscall-filter', '@default'])?.status !== 0) {
    t.skip('systemd-analyze is not installed');
    return;
  }
  if (run('openssl', ['version'])?.status !== 0) {
    t.skip('openssl is not installed');
    return;
  }
  const options = {
    ...{ workers: 1, 'transient-port': 0, 'tls-port': 0, drain: 0, ...certificate(dir) },
    ...{ host: '0.0.0.0', state: path.join(dir, 'state'), 'snapshot-every': 1 }
  };
  let traced = '';
  let id;
  // The first run writes the state, the second one reads it.
  for (const round of ['first', 'second']) {
    const command = ['strace', '-D', '-f', '-qq', '-o', log, ...SPRITES];
    const server = await startServer(t, { options, command });
    const post = (at, body) =>
      fetch(`http://127.0.0.1:${server.transientPort}${at}`, { method: 'POST', body });
    id ??= (await (await post('/join')).json()).id;
    t.equal((await post(`/throw/${id}/left`, '{}')).status, 202, round);
    t.ok((await server.poll(id)).body.sprites.length > 0);
    // Sprites enough for a snapshot.
    for (let i = 0; i < 8; i += 1) {
      await post(`/throw/${id}/left`, JSON.stringify({ text: 'x'.repeat(16_000) }));
    }
    await server.until(({ snapshots }) => snapshots > 0);
    t.equal((await fetch(`http://127.0.0.1:${server.port}/`)).status, 200);
    t.equal((await fetch(`http://127.0.0.1:${server.adminPort}/metrics`)).status, 200);
    const page = async () => {
      const wire = await Wire.openTls(server.tlsPort);
      const { status } = await wire.send(request('GET', '/')).read();
      await wire.destroy();
      return status;
    };
    t.equal(await page(), 200);
    server.child.kill('SIGUSR2');
    t.equal(await page(), 200, 'after a reload');
    if (round === 'first') {
      const threads = readdirSync(`/proc/${server.pid}/task`).length - options.workers;
      const most = optionTable.find(({ name }) => name === 'workers').type.expects.match(/\d+$/);
      const [, tasks] = /^TasksMax=(\d+)$/m.exec(deployFile('sprites.service'));
      t.ok(
        Number(tasks) >= (threads + Number(most)) * 1.1,
        `${tasks} tasks for ${most} workers beside ${threads} threads`
      );
    }
    await server.stop();
    traced += readFileSync(log, 'utf8');
  }
  const seen = new Set([...traced.matchAll(/^\d+ +(\w+)\(/gm)].map(([, call]) => call));
  t.ok(
    ['accept4', 'epoll_ctl', 'fsync', 'rename', 'clone3', 'execve'].filter((call) => seen.has(call))
      .length >= 4,
    `${[...seen].join(' ')} were seen`
  );
  const allowed = allowedCalls(deployFile('sprites.service'));
  t.same(
    [...seen].filter((call) => !allowed.has(call) && !TOLERATED_CALLS[call]),
    [],
    'none is refused'
  );

  const [families, ofTheSwarm] = ['sprites.service', 'cloud-init.yaml'].map((name) =>
    /^ *RestrictAddressFamilies=(.+)$/m.exec(deployFile(name))[1].split(' ')
  );
  t.strictSame(ofTheSwarm, families, 'the swarm asks for its addresses by the same call');
  const opened = new Set([...traced.matchAll(/ socket\((AF_\w+),/g)].map(([, family]) => family));
  t.ok(opened.has('AF_INET') && opened.has('AF_NETLINK'), [...opened].join(' '));
  for (const family of opened) t.ok(families.includes(family), family);

  const listens = traced.search(/rt_sigaction\(SIGUSR2, \{sa_handler=0x/);
  const loads = traced.indexOf('/lib/http/routes.js"');
  t.ok(listens > 0 && listens < loads, 'a reload that comes before the server is loaded is no end');
});

t.test('the cloud-init file', async (t) => {
  t.test('is cloud-config', async (t) => {
    const file = path.join(ROOT, 'deploy/cloud-init.yaml');
    assertToolPasses(t, 'cloud-init', ['schema', '--config-file', file]);
  });
  t.test('writes what its commands use', async (t) => {
    t.same([...FILES.keys()], ['/etc/sprites-swarm.env', SWARM_UNIT, RUN_SCRIPT, SETUP_SCRIPT]);
    t.match(
      CLOUD_CONFIG,
      /\[systemctl, enable, sprites-swarm\.service\]/,
      'and again after every boot'
    );
  });
  t.test('documents every parameter, and names no real host', async (t) => {
    const [comment, rest] = CLOUD_CONFIG.split('\nwrite_files:');
    const parameters = new Set(rest.match(/@[A-Z_]+@/g));
    t.same(
      [...parameters].sort().join(),
      '@GIT_REF@,@GIT_URL@,@SERVER_HOST@,@SERVER_PORT@,@SWARM@'
    );
    for (const name of parameters) {
      t.ok(comment.includes(`  ${name} `) || comment.includes(`and ${name} `), name);
      t.ok(comment.includes(`s|${name}|`), `${name} in the example`);
    }
    const hosts = CLOUD_CONFIG.match(/https?:\/\/[\w.-]+/g).filter(
      (host) => !/\.example$/.test(host)
    );
    t.same([...new Set(hosts)], ['https://nodejs.org'], 'but where Node itself comes from');
  });
  t.test('has an example that a server with its default options lets in', async (t) => {
    const [, example] = /s\|@SWARM@\|(.*?)\|'/.exec(CLOUD_CONFIG);
    // As an IPv6 address: all clients come from one address, like those of a swarm on its own machine.
    const host = '::ffff:127.0.0.1';
    const addresses = Object.values(os.networkInterfaces()).flat();
    if (addresses.every(({ address }) => address !== '::1')) {
      t.skip('no IPv6');
      return;
    }
    const server = await startServer(t, { options: { 'log-level': 'error' } });
    const words = example.replace(/--time \d+/, '--time 0.5').split(' ');
    const { stdout } = await promisify(execFile)('env', [
      ...['-u', 'NODE_OPTIONS', process.execPath, path.join(ROOT, 'bin/sprites-swarm')],
      ...[...words, '--host', host, '--port', `${server.port}`]
    ]);
    t.match(stdout, /the server counts 9,000/);
    t.notMatch(stdout, /too-many/);
    await server.stop();
  });
  t.test('has a unit that passes systemd-analyze verify', async (t) => {
    const dir = temporary(t);
    const unit = path.join(dir, 'sprites-swarm.service');
    writeFileSync(path.join(dir, 'run'), '#!/bin/sh\n', { mode: 0o755 });
    writeFileSync(
      unit,
      FILES.get(SWARM_UNIT)
        .replace(SETUP_SCRIPT, path.join(dir, 'run'))
        .replace(RUN_SCRIPT, path.join(dir, 'run'))
    );
    const result = assertToolPasses(t, 'systemd-analyze', ['verify', '--man=no', unit]);
    if (result) t.equal(result.output.trim(), '');
  });
  t.test('has scripts that shellcheck likes', async (t) => {
    const dir = temporary(t);
    for (const name of [SETUP_SCRIPT, RUN_SCRIPT]) {
      const script = path.join(dir, path.basename(name));
      writeFileSync(script, FILES.get(name));
      assertToolPasses(t, 'shellcheck', ['--shell=sh', script]);
    }
  });
});

const noSetup = ['git', 'curl', 'xz'].every((name) => run(name, ['--version']) !== null)
  ? false
  : 'git, curl or xz is not installed';

/**
 * Makes a folder that simulates a machine with only the most common programs. Its path has only links to programs and
 * fake programs. There is a repository with one commit.
 */
function bareMachine(t) {
  const dir = temporary(t);
  const [bin, origin] = [path.join(dir, 'bin'), path.join(dir, 'origin')];
  for (const name of ['bin', 'dist', 'tmp', 'origin', 'sysctl.d']) mkdirSync(path.join(dir, name));
  const write = (file, text) => writeFileSync(file, text, { mode: 0o755 });
  const link = (...names) => {
    for (const name of names) {
      const found = process.env.PATH.split(':')
        .map((folder) => path.join(folder, name))
        .find((file) => existsSync(file));
      symlinkSync(found, path.join(bin, name));
    }
  };
  const git = (...args) => {
    const own = ['-C', origin, '-c', 'user.name=t', '-c', 'user.email=t@example'];
    const { status, output } = run('git', [...own, ...args]);
    if (status !== 0) throw new Error(output);
  };
  const machine = {
    ...{ dir, bin, link, write },
    /** Adds a fake program, which records its calls. */
    fake: (name, script = '') =>
      write(path.join(bin, name), `#!/bin/sh\necho "${name} $*" >>"${dir}/calls"\n${script}\n`),
    /** Returns the calls of fake programs since the last calls(). */
    calls() {
      const file = path.join(dir, 'calls');
      const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
      rmSync(file, { force: true });
      return text.trim();
    },
    commit(message) {
      writeFileSync(path.join(origin, 'what'), message);
      git('add', '.');
      git('commit', '-q', '-m', message);
    },
    setup: (env = {}) =>
      run('/bin/sh', [path.join(dir, 'setup')], {
        env: {
          ...{ PATH: bin, HOME: dir, TMPDIR: path.join(dir, 'tmp') },
          ...{ GIT_REF: 'main', GIT_URL: origin, SPRITES_HOME: path.join(dir, 'home') },
          ...{ SYSCTL_DIR: path.join(dir, 'sysctl.d'), USR_LOCAL: path.join(dir, 'local') },
          NODE_DIST: `file://${dir}/dist`,
          ...env
        }
      })
  };
  writeFileSync(path.join(dir, 'setup'), FILES.get(SETUP_SCRIPT));
  link('sh', 'cat', 'grep', 'gzip', 'mkdir', 'mktemp', 'rm', 'sha256sum', 'tar');
  mkdirSync(path.join(origin, 'deploy'));
  copyFileSync(path.join(ROOT, 'deploy/sysctl.conf'), path.join(origin, 'deploy/sysctl.conf'));
  git('init', '-q', '-b', 'main');
  machine.commit('first');
  machine.fake('sysctl');
  return machine;
}

t.test("the swarm's setup, with a repository and a Node", { skip: noSetup }, async (t) => {
  const machine = bareMachine(t);
  const { dir, fake, commit } = machine;
  const home = path.join(dir, 'home');
  machine.link('git');
  for (const tool of ['g++', 'make', 'python3', 'curl', 'xz', 'npm']) fake(tool);
  fake('node', '[ "$1" = --version ] && echo v22.0.0; exit 0');
  const { setup, calls } = machine;

  await t.test('fetches and builds the code, and raises the limits', async (t) => {
    const { status, output } = setup();
    t.equal(status, 0, output);
    t.equal(readFileSync(path.join(home, 'what'), 'utf8'), 'first');
    // The setup builds what the swarm's unit may not write.
    const expectedCommands =
      /^npm ci --omit=dev.*\nnpm run build:swarm[^]*\nsysctl .*90-sprites-swarm\.conf/m;
    t.match(calls(), expectedCommands);
    const settings = readFileSync(path.join(dir, 'sysctl.d/90-sprites-swarm.conf'), 'utf8');
    t.match(settings, /^net\.ipv4\.ip_local_port_range = 1024 65535$/m);
    t.match(settings, /^fs\.nr_open = \d+$/m);
    t.notMatch(settings, /tcp_mem|swappiness/, 'and leaves the machine its memory');
  });
  await t.test('builds nothing again that is there', async (t) => {
    t.equal(setup().status, 0);
    t.notMatch(calls(), /^npm /m);
  });
  await t.test('takes the current code at the next boot', async (t) => {
    commit('second');
    t.equal(setup().status, 0);
    t.equal(readFileSync(path.join(home, 'what'), 'utf8'), 'second');
    t.match(calls(), /^npm ci/m);
  });
  await t.test('goes on with what is there when there is no network', async (t) => {
    const { status, output } = setup({ GIT_URL: path.join(dir, 'nowhere') });
    t.equal(status, 0, output);
    t.match(output, 'going on with the code that is here');
    calls();
  });
  await t.test('says so when there is nothing at all', async (t) => {
    const { status, output } = setup({
      GIT_URL: path.join(dir, 'nowhere'),
      SPRITES_HOME: path.join(dir, 'other')
    });
    t.not(status, 0);
    t.match(output, 'no code from');
  });
  await t.test('a build that fails is tried again', async (t) => {
    calls();
    fake('npm', 'exit 1');
    commit('third');
    t.not(setup().status, 0);
    fake('npm');
    calls();
    t.equal(setup().status, 0);
    t.match(calls(), /^npm ci/m);
  });
  await t.test('runs the swarm with the words it was given', async (t) => {
    writeFileSync(path.join(dir, 'run'), FILES.get(RUN_SCRIPT));
    const server = '--host server.example --port 8080';
    for (const [words, more] of [
      ['park 500 --time 60', ` ${server}`],
      // These words name the server, so no other is added.
      ['agent http://server.example:8080/play/hall --clients-max 100', ''],
      ['park 500 --url https://server.example', ''],
      ['park 500 --url=https://server.example', '']
    ]) {
      const { status } = run('sh', [path.join(dir, 'run')], {
        env: {
          ...{ PATH: `${machine.bin}:${process.env.PATH}`, SPRITES_HOME: home, SWARM: words },
          ...{ SERVER_HOST: 'server.example', SERVER_PORT: '8080' }
        }
      });
      t.equal(status, 0);
      t.equal(calls(), `node ${home}/bin/sprites-swarm ${words}${more}`);
    }
  });
});

t.test("the swarm's setup on a machine without Node", { skip: noSetup }, async (t) => {
  const machine = bareMachine(t);
  const { dir } = machine;
  machine.link('git', 'curl', 'xz');
  for (const tool of ['make', 'g++', 'python3']) machine.fake(tool);
  /** Packs a fake Node like a release of Node. Its npm records its calls. */
  const pack = (arch) => {
    const name = `node-v24.1.0-linux-${arch}`;
    const programs = path.join(dir, 'dist', name, 'bin');
    mkdirSync(programs, { recursive: true });
    machine.write(
      path.join(programs, 'node'),
      '#!/bin/sh\n' + '[ "$1" != --version ] || echo v24.1.0\n'
    );
    machine.write(
      path.join(programs, 'npm'),
      `#!/bin/sh\necho "${arch} npm $*" >>"${dir}/calls"\n`
    );
    run('tar', ['-cJf', `${name}.tar.xz`, name], { cwd: path.join(dir, 'dist') });
    rmSync(path.join(dir, 'dist', name), { recursive: true });
  };
  pack('x64');
  pack('arm64');
  const sums = path.join(dir, 'dist/SHASUMS256.txt');
  const checksums = ['x64', 'arm64']
    .map(
      (arch) =>
        run('sha256sum', [`node-v24.1.0-linux-${arch}.tar.xz`], { cwd: path.join(dir, 'dist') })
          .output
    )
    .join('');
  writeFileSync(sums, checksums);
  const reset = () => {
    for (const name of ['local', 'home', 'calls']) {
      rmSync(path.join(dir, name), { recursive: true, force: true });
    }
  };

  for (const [machineName, arch] of [
    ['x86_64', 'x64'],
    ['aarch64', 'arm64']
  ]) {
    await t.test(`installs the one for ${machineName}, and builds with it`, async (t) => {
      reset();
      machine.fake('uname', `echo ${machineName}`);
      const { status, output } = machine.setup();
      t.equal(status, 0, output);
      t.match(output, `installing node-v24.1.0-linux-${arch}\n`);
      t.ok(existsSync(path.join(dir, 'local/bin/node')));
      t.match(machine.calls(), `${arch} npm ci --omit=dev`);
      t.same(readdirSync(path.join(dir, 'tmp')), [], 'no download is left');
    });
  }
  await t.test('keeps the one it has installed', async (t) => {
    rmSync(sums);
    const { status, output } = machine.setup();
    t.equal(status, 0, output);
    t.notMatch(output, 'installing');
  });
  for (const [why, text] of [
    ['with another checksum', checksums.replace(/^[0-9a-f]{8}/gm, '00000000')],
    ['that is not listed', checksums.replaceAll('linux', 'darwin')]
  ]) {
    await t.test(`takes none ${why}`, async (t) => {
      reset();
      writeFileSync(sums, text);
      const { status } = machine.setup();
      t.not(status, 0);
      t.notOk(existsSync(path.join(dir, 'local')), 'nothing is unpacked');
      t.notOk(existsSync(path.join(dir, 'home')), 'and nothing built');
      t.same(readdirSync(path.join(dir, 'tmp')), [], 'no download is left');
    });
  }
});

t.test("the swarm's setup on a machine without tools", { skip: noSetup }, async (t) => {
  const managers = {
    'apt-get': /^apt-get update -q\napt-get install -y -q git make g\+\+ python3 curl xz-utils /m,
    dnf: /^dnf install -y git make gcc-c\+\+ python3 curl xz /m,
    zypper: /^zypper -n install git make gcc-c\+\+ python3 curl xz /m,
    pacman: /^pacman -Sy --noconfirm --needed git make gcc python curl xz /m
  };
  for (const [manager, calls] of Object.entries(managers)) {
    await t.test(`gets them by ${manager}`, async (t) => {
      const machine = bareMachine(t);
      const { dir } = machine;
      // The package manager puts these programs on the path.
      mkdirSync(path.join(dir, 'packages'));
      for (const tool of ['make', 'g++', 'python3', 'curl', 'xz', 'node', 'npm']) {
        machine.write(path.join(dir, 'packages', tool), '#!/bin/sh\n');
      }
      machine.link('cp', 'ln');
      const git = run('/bin/sh', ['-c', 'command -v git']).output.trim();
      machine.fake(manager, `cp "${dir}"/packages/* "${dir}/bin/"; ln -sf ${git} "${dir}/bin/git"`);
      const { status, output } = machine.setup();
      t.equal(status, 0, output);
      t.match(machine.calls(), calls);
      t.equal(machine.setup().status, 0);
      t.notMatch(machine.calls(), manager, 'once');
    });
  }
  await t.test('leaves a curl that is there, which the package may conflict with', async (t) => {
    const machine = bareMachine(t);
    machine.write(path.join(machine.dir, 'bin/curl'), '#!/bin/sh\n');
    machine.fake('dnf', 'exit 1');
    machine.setup();
    t.match(machine.calls(), /^dnf install -y git make gcc-c\+\+ python3 xz /m);
  });
  await t.test('names them where it knows no package manager', async (t) => {
    const machine = bareMachine(t);
    const { status, output } = machine.setup();
    t.equal(status, 1);
    t.match(output, 'no package manager known here: install git, make, g++, python3, curl and xz');
  });
  await t.test('knows only those of systems with systemd, which starts it', async (t) => {
    const known = [...FILES.get(SETUP_SCRIPT).matchAll(/command -v ([a-z-]+) >\/dev\/null; then/g)];
    t.same(
      known.map(([, name]) => name),
      Object.keys(managers)
    );
  });
});

t.test('the container file', async (t) => {
  const text = deployFile('Containerfile');
  const instructions = text
    .replace(/^#.*\n/gm, '')
    .replace(/\\\n/g, ' ')
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => /^([A-Z]+) +(.+)$/.exec(line)?.slice(1) ?? [line]);
  const all = (wanted) => instructions.filter(([name]) => name === wanted).map(([, rest]) => rest);
  const last = instructions.findLastIndex(([name]) => name === 'FROM');
  const final = Object.fromEntries(instructions.slice(last));
  const copied = all('COPY')
    .filter((rest) => !rest.startsWith('--from'))
    .flatMap((rest) => rest.split(/ +/).slice(0, -1));
  const { scripts, engines } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));

  t.test('has no instruction that there is not', async (t) => {
    const known =
      /^(ARG|FROM|WORKDIR|COPY|RUN|ENV|USER|VOLUME|EXPOSE|STOPSIGNAL|HEALTHCHECK|ENTRYPOINT)$/;
    t.same(
      instructions.filter(([name, rest]) => !known.test(name) || !rest),
      []
    );
  });
  t.test('copies what the server needs, from what a checkout has', async (t) => {
    for (const source of copied) {
      const listed = run('git', ['-C', ROOT, 'ls-files', '--', source]);
      if (listed?.status === 0) t.not(listed.output, '', `${source} is in the repository`);
      else t.ok(existsSync(path.join(ROOT, source)), source);
    }
    const needed = 'bin lib native server.js package.json package-lock.json deploy/sysctl.conf';
    for (const one of needed.split(' ')) t.ok(copied.includes(one), one);
    // The first stage builds before it has lib: the install script must not need lib.
    t.match(scripts.install, /^node-gyp rebuild -C native /);
    const built = all('RUN').findIndex((rest) => rest.includes('rm -rf native/swarm/build'));
    const swarm = all('RUN').findIndex((rest) => rest.includes('npm run build:swarm'));
    t.ok(built >= 0 && built < swarm, 'an engine that the checkout has is not taken for built');
  });
  t.test('is built on a Node that the program takes, and runs on nothing else', async (t) => {
    const buildArguments = new Map(all('ARG').map((arg) => arg.split('=')));
    const images = all('FROM').map((rest) =>
      rest.split(' ')[0].replace(/\$\{(\w+)\}/g, (_, name) => buildArguments.get(name))
    );
    t.equal(images.length, 2);
    t.equal(images[1], 'scratch');
    const [, version] = /\/node:(\d+)(?:\.\d+)*-/.exec(images[0]);
    const [, major] = /^>=(\d+)/.exec(engines.node);
    t.ok(Number(version) >= Number(major), `${version} is ${engines.node}`);
    t.equal(Number(version) % 2, 0, 'one that is supported for years');
  });
  t.test('runs the program, not as root', async (t) => {
    t.match(final.USER, /^[1-9]\d*$/);
    const [program, file] = JSON.parse(final.ENTRYPOINT);
    t.equal(program, 'node');
    t.ok(existsSync(path.join(ROOT, file)) && copied.includes(file.split('/')[0]), file);
    t.equal(final.COPY, '--from=build /image /');
    t.ok(text.includes(`mv ${final.WORKDIR} /image/opt/`), 'its folder is in the image');
  });

  const [, grace] = /^TimeoutStopSec=(\d+)$/m.exec(deployFile('sprites.service'));
  const { default: port } = optionTable.find(({ name }) => name === 'port');
  const [, admin] = /SPRITES_ADMIN_PORT=(\d+)/.exec(final.ENV);
  const { USER: user, VOLUME: volume } = final;
  const [chart, compose] = ['helm/templates/server.yaml', 'compose.yaml'];
  for (const [name, pattern, ...expected] of [
    ['Containerfile', /^STOPSIGNAL (.*)$/gm, 'SIGTERM'],
    ['Containerfile', /^# .*--stop-timeout (\d+)/gm, grace],
    ['Containerfile', /^EXPOSE (\d+)$/gm, port],
    ['Containerfile', /http:\/\/127\.0\.0\.1:(\d+)\/healthz/g, admin],
    ['Containerfile', /SPRITES_STATE=(\S+)\//g, volume],
    [compose, /dockerfile: (.*)/g, 'deploy/Containerfile'],
    [compose, /stop_grace_period: (\d+)s/g, grace],
    [compose, /^ +- '8080:(\d+)'$/gm, port],
    // Metrics are only for the host.
    [compose, /^ +- '127\.0\.0\.1:(\d+:\d+)'$/gm, `${admin}:${admin}`],
    [compose, /state:(\/\S+)$/gm, volume],
    [chart, /terminationGracePeriodSeconds: (\d+)/g, grace],
    [chart, /runAsUser: (\d+)/g, user],
    [chart, /mountPath: (\S+) /g, volume],
    [chart, /containerPort: (\d+)/g, port, admin],
    [chart, /path: (\/\w+), port: metrics/g, '/healthz', '/healthz', '/readyz']
  ]) {
    const found = [...deployFile(name).matchAll(pattern)].map(([, one]) => one);
    t.strictSame(found, expected, `${name} as the service unit and the image: ${pattern}`);
  }
});

t.test('the compose file opens the admin port to the host, as the README starts it', async (t) => {
  const text = deployFile('compose.yaml');
  const [, command] = /command: (.*)/.exec(text);
  t.equal(readOptions(JSON.parse(command.replaceAll("'", '"'))).adminHost, '0.0.0.0');
  const readme = readFileSync(path.join(ROOT, 'README.md'), 'utf8');
  t.ok(readme.includes(/docker compose [^\n]*--detach/.exec(text)[0]), 'the README has it');
  t.ok(deployFile('README.md').includes('docker build -t sprites -f deploy/Containerfile .'));
});

t.test('the chart sets options that there are, as texts', async (t) => {
  const text = deployFile('helm/templates/server.yaml');
  for (const [, name] of text.matchAll(/name: SPRITES_([A-Z_]+)/g)) {
    t.ok(
      optionTable.some((option) => option.name === name.toLowerCase().replaceAll('_', '-')),
      name
    );
  }
  t.match(
    text,
    'kindIs "string" $value | ternary $value (toJson $value | replace "true" "yes" | replace "false" "no") | quote',
    'JSON has other words for the & of a URL, and YAML reads yes and no as booleans'
  );
  t.match(text, 'if kindIs "string" .Values.state.storageClassName', '"" is the class of no class');
});

t.test('the dashboard and the alerts ask only for metrics there are', async (t) => {
  const server = await startServer(t, { options: { 'tls-port': 0, ...certificate(temporary(t)) } });
  await server.poll('nobody');
  await server.until(({ refused }) => 'unknown-client' in refused);
  const text = await (await fetch(`http://127.0.0.1:${server.adminPort}/metrics`)).text();
  await server.stop();
  const exported = new Set([...text.matchAll(/^\w+/gm)].map(([name]) => name));
  // This metric has no samples before the first garbage collection.
  t.match(text, '# TYPE nodejs_gc_duration_seconds histogram');
  for (const suffix of ['bucket', 'sum']) exported.add(`nodejs_gc_duration_seconds_${suffix}`);
  const dashboard = JSON.parse(deployFile('grafana.json'));
  const asked = [
    ...dashboard.panels.flatMap(({ targets = [] }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr),
    ...[...deployFile('prometheus-rules.yml').matchAll(/expr: (?:>-\n)?(.*)$/gm)].map(([, e]) => e)
  ];
  t.ok(asked.length > 30);
  const names = new Set(
    asked.flatMap((expr) => expr.match(/\b(?:sprites|process|nodejs)_[a-z_]+\b/g) ?? [])
  );
  for (const name of names) t.ok(exported.has(name), name);
});

t.test('the dashboard is laid out', async (t) => {
  const { panels, uid, templating } = JSON.parse(deployFile('grafana.json'));
  t.equal(uid, 'sprites');
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, 'every id once');
  const taken = new Set();
  const rows = panels.filter(({ type }) => type === 'row').map(({ title }) => title);
  const subjects = ['Feeds', 'Upstream', 'Arena', 'World', 'Workers', 'Store', 'TLS'];
  t.same(rows, ['Now', 'Sprites', 'Clients', 'Main thread', ...subjects]);
  for (const {
    type,
    title,
    description,
    gridPos: { x, y, w, h }
  } of panels) {
    t.ok(x + w <= 24, title);
    t.ok(type === 'row' || /\.$/.test(description), `${title} says what it shows`);
    t.notMatch(description ?? '', /[0-9] k?B/, 'and no figure, which would grow old here');
    for (let i = x; i < x + w; i++) {
      for (let j = y; j < y + h; j++) {
        if (taken.has(`${i},${j}`)) t.fail(`${title} lies over another`);
        taken.add(`${i},${j}`);
      }
    }
  }
  const variables = new Set(templating.list.map(({ name }) => name));
  for (const [, name] of deployFile('grafana.json').matchAll(/\$\{?([a-z]\w*)\}?/g)) {
    t.ok(variables.has(name) || name === '__rate_interval', name);
  }
});

t.test('promtool accepts the scrape example and the alerts', async (t) => {
  assertToolPasses(t, 'promtool', ['check', 'config', path.join(ROOT, 'deploy/prometheus.yml')]);
});

t.test('the manual has a chapter for each thing to do, and names every file', async (t) => {
  const manual = deployFile('README.md');
  const chapters = [...manual.matchAll(/^## (.*)$/gm)].map(([, title]) => title);
  for (const title of ['Installing', 'Upgrading', 'TLS', 'Proxies', 'A world of three servers']) {
    t.ok(chapters.includes(title), title);
  }
  t.equal(chapters.at(-1), 'When something is wrong');
  const links = [...manual.matchAll(/\(#([a-z-]+)\)/g)].map(([, anchor]) => anchor);
  const anchors = chapters.map((title) => title.toLowerCase().replaceAll(' ', '-'));
  t.same(links, anchors, 'all are at its head, in their order');
  const files = readdirSync(path.join(ROOT, 'deploy')).filter((name) => name !== 'README.md');
  for (const name of files) t.ok(manual.includes(name), name);
});

t.test('each alert says where to read on, and there it is', async (t) => {
  const rules = deployFile('prometheus-rules.yml').split('- alert: ').slice(1);
  const chapters = deployFile('alerts.md').split('\n## ').slice(1);
  t.same(
    rules.map((rule) => /^\w+/.exec(rule)[0]),
    chapters.map((chapter) => /^\w+/.exec(chapter)[0])
  );
  for (const [at, rule] of rules.entries()) {
    const [name] = /^\w+/.exec(rule);
    t.match(rule, `runbook: deploy/alerts.md#${name.toLowerCase()}\n`);
    t.match(rule, / summary: \w.{20,}\n/, 'what it means');
    t.match(chapters[at], /^\w+\n\n- \*\*Look at:\*\* .*\n- \*\*Do:\*\* /s);
  }
});

/** Returns a job's series. `counts` has, by metric, a constant, or the first value and its growth a minute. */
const series = (job, counts) =>
  Object.entries(counts).map(([name, value]) => ({
    series: `sprites_${name}{job="${job}"}`,
    values: Array.isArray(value) ? `${value[0]}+${value[1]}x40` : `${value}+0x40`
  }));

const LAW_COUNTS = { thrown_total: 10, acked_total: 7, waiting: 2, lost_total: 1 };
const ALONE = { ...LAW_COUNTS, crossed_in_total: 0, crossed_out_total: 0 };
const CROSSED = { ...LAW_COUNTS, acked_total: 8, crossed_in_total: 6, crossed_out_total: 5 };
const feeds = (memory) => ({ feed_memory: memory, feed_memory_limit: 1000 });
const fetches = (failed) => ({ fetches_total: [0, 10], fetches_failed_total: [0, failed] });
const member = (value, servers) => ({ world_member: value, world_servers: servers });
const reach = (value, servers) => ({ world_feeds_reachable: value, world_servers: servers });

/** By alert, the jobs for which it is silent, and the jobs for which it fires after half an hour. */
const ALERTS = {
  SpritesNotConserved: [
    { alone: ALONE, world: CROSSED },
    {
      'alone-missing': { ...ALONE, acked_total: 6 },
      'world-missing': { ...CROSSED, crossed_in_total: 7 }
    }
  ],
  SpritesFeedMemoryFull: [{ room: feeds(899) }, { full: feeds(901) }],
  SpritesFetchesFail: [
    { few: fetches(1), none: { fetches_total: 0, fetches_failed_total: 0 } },
    { many: fetches(5) }
  ],
  SpritesGameStopped: [
    { games: { games_stopped_total: 3 } },
    { failing: { games_stopped_total: [0, 1] } }
  ],
  SpritesWorldLeft: [{ member: member(1, 3), alone: member(0, 0) }, { left: member(0, 1) }],
  SpritesWorldFeedsAlone: [{ reached: reach(1, 3), alone: reach(0, 0) }, { cut: reach(0, 1) }]
};

t.test('alerts are silent when all is well, and speak when it is not', async (t) => {
  const rules = deployFile('prometheus-rules.yml').split('- alert: ');
  const tests = Object.entries(ALERTS).map(([alertname, [silent, loud]]) => {
    const rule = rules.find((one) => one.startsWith(alertname));
    const fieldOf = (name) => new RegExp(` ${name}: (.*)`).exec(rule)[1];
    const alerts = Object.keys(loud).map((job) => ({
      exp_labels: { severity: fieldOf('severity'), job },
      exp_annotations: { summary: fieldOf('summary'), runbook: fieldOf('runbook') }
    }));
    const given = Object.entries({ ...silent, ...loud });
    return {
      interval: '1m',
      input_series: given.flatMap(([job, counts]) => series(job, counts)),
      alert_rule_test: [{ eval_time: '30m', alertname, exp_alerts: alerts }]
    };
  });
  const file = path.join(t.testdir(), 'alerts.json');
  // JSON is YAML.
  writeFileSync(
    file,
    JSON.stringify({ rule_files: [path.join(ROOT, 'deploy/prometheus-rules.yml')], tests })
  );
  assertToolPasses(t, 'promtool', ['test', 'rules', file]);
});

t.test('a key that a command writes is readable for its user alone', async (t) => {
  const commands = ['haproxy.cfg', 'world/nats.conf'].flatMap((name) => [
    ...deployFile(name).matchAll(/^# +(.* > )\/etc\/\w+\/([\w.]+)(\)?)/gm)
  ]);
  t.same(
    commands.map(([, , file]) => file),
    ['sprites.pem', 'nats.creds']
  );
  const folder = temporary(t);
  for (const name of ['fullchain.pem', 'privkey.pem']) writeFileSync(path.join(folder, name), name);
  for (const [, write, file, end] of commands) {
    // A fake nsc is enough to check the permissions of the file.
    run('sh', ['-c', `umask 022; nsc() { echo key; }; ${write}${file}${end}`], { cwd: folder });
    t.equal(statSync(path.join(folder, file)).mode & 0o777, 0o600, file);
  }
});

t.test('the journal advice is a list of settings', async (t) => {
  for (const line of deployFile('journald.conf').split('\n')) {
    t.ok(line === '' || /^(#|\[Journal\]$|[A-Z]\w+=\S+$)/.test(line), line);
  }
  const [, filter] = /journalctl -u sprites -o cat \| (jq .*)$/m.exec(deployFile('journald.conf'));
  if (run('jq', ['--version']) === null) {
    t.skip('jq is not installed');
    return;
  }
  // A unit's journal also has lines of systemd, and the server's stdout.
  const journal = 'Started sprites.service - Sprites.\n{"level":30,"msg":"listens"}\nsprites: no\n';
  const { output } = assertToolPasses(t, 'bash', ['-c', filter], { input: journal });
  t.match(output, '"msg": "listens"');
  t.match(output, 'sprites: no');
});
