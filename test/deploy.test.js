import { spawnSync } from 'node:child_process';
import {
  chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync,
  writeFileSync
} from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';

import { createMetrics } from '../lib/metrics.js';

/**
 * The files of deploy/, held to what the program has and to what the tools that read them say. A
 * tool that is not installed skips its test.
 */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const deployed = (name) => readFileSync(path.join(ROOT, 'deploy', name), 'utf8');

/** Runs a program. @returns {{ status: number, output: string } | null} null: not installed */
function run(command, args, options = {}) {
  const result = spawnSync(command, args, { encoding: 'utf8', timeout: 60_000, ...options });
  if (result.error?.code === 'ENOENT') return null;
  return { status: result.status, output: result.stdout + result.stderr };
}

function temporary(t) {
  const dir = mkdtempSync(path.join(os.tmpdir(), 'sprites-deploy-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Asserts that a tool is content, or skips. */
function contented(t, tool, args, options) {
  const result = run(tool, args, options);
  if (result === null) t.skip(`${tool} is not installed`);
  else t.equal(result.status, 0, result.output);
  return result;
}

/** The files that cloud-config writes: path → text. @returns {Map<string, string>} */
function writtenFiles(yaml) {
  const files = new Map();
  const entry = /^ {2}- path: (\S+)\n(?: {4}\w+: .*\n)*? {4}content: \|\n((?:(?: {6}.*)?\n)+)/gm;
  for (const [, name, block] of yaml.matchAll(entry)) {
    files.set(name, block.replace(/^ {6}/gm, '').trimEnd().concat('\n'));
  }
  return files;
}

const CLOUD = deployed('cloud-init.yaml');
const FILES = writtenFiles(CLOUD);
const SWARM_UNIT = '/etc/systemd/system/sprites-swarm.service';
const SETUP = '/usr/local/sbin/sprites-swarm-setup';
const RUN = '/usr/local/bin/sprites-swarm-run';

t.test('the service unit', async (t) => {
  const unit = path.join(ROOT, 'deploy/sprites.service');
  t.test('passes systemd-analyze verify without a word', async (t) => {
    const result = contented(t, 'systemd-analyze', ['verify', '--man=no', unit]);
    if (result) t.equal(result.output.trim(), '');
  });
  t.test('is exposed little', async (t) => {
    const result = contented(t, 'systemd-analyze', ['security', '--offline=true', unit]);
    if (!result) return;
    const [, exposure] = /Overall exposure level for \S+: ([\d.]+)/.exec(result.output);
    t.ok(Number(exposure) <= 1.5, `exposure ${exposure}`);
  });
  t.test('starts the server without a flag that some Node refuses', async (t) => {
    const [, command] = /^ExecStart=(.*)$/m.exec(deployed('sprites.service'));
    t.match(command, /^\/usr\/bin\/env node \/opt\/sprites\/bin\/sprites --state /);
    t.notMatch(deployed('sprites.service'), /nouse-idle-notification|NODE_OPTIONS/);
  });
  t.test('waits longer than the drain window', async (t) => {
    const help = run('env', ['-u', 'NODE_OPTIONS', process.execPath,
      path.join(ROOT, 'bin/sprites'), '--help']).output;
    const [, drain] = /--drain SECONDS.*\(default (\d+)\)/.exec(help);
    const [, stop] = /^TimeoutStopSec=(\d+)$/m.exec(deployed('sprites.service'));
    t.ok(Number(stop) > Number(drain) + 60, `${stop} s for a drain of ${drain} s and the writing`);
  });
  t.test('allows the files of a million clients, and no more than an untuned kernel', async (t) => {
    const [, files] = /^LimitNOFILE=(\d+)$/m.exec(deployed('sprites.service'));
    t.ok(Number(files) >= 1_000_064 && Number(files) <= 1_048_576);
    t.match(deployed('limits.conf'), new RegExp(`^\\* +hard +nofile +${files}$`, 'm'));
  });
});

t.test('the cloud-init file', async (t) => {
  t.test('is cloud-config', async (t) => {
    contented(t, 'cloud-init', ['schema', '--config-file',
      path.join(ROOT, 'deploy/cloud-init.yaml')]);
  });
  t.test('writes what its commands use', async (t) => {
    t.same([...FILES.keys()], ['/etc/sprites-swarm.env', SWARM_UNIT, RUN, SETUP]);
    t.match(CLOUD, /\[systemctl, enable, sprites-swarm\.service\]/, 'and again after every boot');
  });
  t.test('documents every parameter, and names no host of anybody\'s', async (t) => {
    const [comment, rest] = CLOUD.split('\nwrite_files:');
    const parameters = new Set(rest.match(/@[A-Z_]+@/g));
    t.same([...parameters].sort(),
      ['@GIT_REF@', '@GIT_URL@', '@SERVER_HOST@', '@SERVER_PORT@', '@SWARM@']);
    for (const name of parameters) {
      t.ok(comment.includes(`  ${name} `) || comment.includes(`and ${name} `), name);
      t.ok(comment.includes(`s|${name}|`), `${name} in the example`);
    }
    const hosts = CLOUD.match(/https?:\/\/[\w.-]+/g).filter((host) => !/\.example$/.test(host));
    t.same([...new Set(hosts)], ['https://nodejs.org'], 'but where Node itself comes from');
  });
  t.test('has a unit that passes systemd-analyze verify', async (t) => {
    const dir = temporary(t);
    const unit = path.join(dir, 'sprites-swarm.service');
    writeFileSync(path.join(dir, 'run'), '#!/bin/sh\n');
    chmodSync(path.join(dir, 'run'), 0o755);
    writeFileSync(unit, FILES.get(SWARM_UNIT)
      .replace(SETUP, path.join(dir, 'run'))
      .replace(RUN, path.join(dir, 'run')));
    const result = contented(t, 'systemd-analyze', ['verify', '--man=no', unit]);
    if (result) t.equal(result.output.trim(), '');
  });
  t.test('has scripts that shellcheck likes', async (t) => {
    const dir = temporary(t);
    for (const name of [SETUP, RUN]) {
      const script = path.join(dir, path.basename(name));
      writeFileSync(script, FILES.get(name));
      contented(t, 'shellcheck', ['--shell=sh', script]);
    }
  });
});

t.test('the swarm\'s setup, with a repository and a Node of the test\'s', async (t) => {
  if (run('git', ['--version']) === null) {
    t.skip('git is not installed');
    return;
  }
  const dir = temporary(t);
  const [origin, home, bin, sysctls] = ['origin', 'home', 'bin', 'sysctl.d']
    .map((name) => path.join(dir, name));
  for (const folder of [origin, bin, sysctls]) mkdirSync(folder);
  const git = (...args) => {
    const { status, output } = run('git', ['-C', origin, '-c', 'user.name=t', '-c',
      'user.email=t@example', ...args]);
    if (status !== 0) throw new Error(output);
  };
  const commit = (what) => {
    writeFileSync(path.join(origin, 'what'), what);
    git('add', '.');
    git('commit', '-q', '-m', what);
  };
  mkdirSync(path.join(origin, 'deploy'));
  copyFileSync(path.join(ROOT, 'deploy/sysctl.conf'), path.join(origin, 'deploy/sysctl.conf'));
  git('init', '-q', '-b', 'main');
  commit('first');
  /** Stands in for a program: says how it was called. */
  const fake = (name, script = '') => {
    const file = path.join(bin, name);
    writeFileSync(file, `#!/bin/sh\necho "${name} $*" >>"${dir}/calls"\n${script}\n`);
    chmodSync(file, 0o755);
  };
  fake('npm');
  fake('sysctl');
  for (const tool of ['g++', 'make', 'python3', 'curl', 'xz']) fake(tool);
  fake('node', '[ "$1" = --version ] && echo v22.0.0; exit 0');
  writeFileSync(path.join(dir, 'setup'), FILES.get(SETUP));
  const setup = (env = {}) => run('sh', [path.join(dir, 'setup')], {
    env: {
      PATH: `${bin}:${process.env.PATH}`, HOME: dir, GIT_URL: origin, GIT_REF: 'main',
      SPRITES_HOME: home, SYSCTL_DIR: sysctls, USR_LOCAL: path.join(dir, 'local'), ...env
    }
  });
  const calls = () => {
    const file = path.join(dir, 'calls');
    if (!existsSync(file)) return [];
    const lines = readFileSync(file, 'utf8').trim().split('\n');
    rmSync(file);
    return lines.filter((line) => /^(npm|sysctl) /.test(line));
  };

  await t.test('fetches and builds the code, and raises the limits', async (t) => {
    const { status, output } = setup();
    t.equal(status, 0, output);
    t.equal(readFileSync(path.join(home, 'what'), 'utf8'), 'first');
    const made = calls();
    t.match(made[0], /^npm ci --omit=dev/);
    t.match(made[1], /^sysctl .*90-sprites-swarm\.conf/);
    const settings = readFileSync(path.join(sysctls, '90-sprites-swarm.conf'), 'utf8');
    t.match(settings, /^net\.ipv4\.ip_local_port_range = 1024 65535$/m);
    t.match(settings, /^fs\.nr_open = \d+$/m);
    t.notMatch(settings, /tcp_mem|swappiness/, 'and leaves the machine its memory');
  });
  await t.test('builds nothing again that is there', async (t) => {
    t.equal(setup().status, 0);
    t.notMatch(calls().join('\n'), /npm/);
  });
  await t.test('takes the current code at the next boot', async (t) => {
    commit('second');
    t.equal(setup().status, 0);
    t.equal(readFileSync(path.join(home, 'what'), 'utf8'), 'second');
    t.match(calls()[0], /^npm ci/);
  });
  await t.test('goes on with what is there when there is no network', async (t) => {
    const { status, output } = setup({ GIT_URL: path.join(dir, 'nowhere') });
    t.equal(status, 0, output);
    t.match(output, 'going on with the code that is here');
    calls();
  });
  await t.test('says so when there is nothing at all', async (t) => {
    const { status, output } = setup({
      GIT_URL: path.join(dir, 'nowhere'), SPRITES_HOME: path.join(dir, 'other')
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
    t.match(calls()[0], /^npm ci/);
  });
  await t.test('runs the swarm with the words it was given', async (t) => {
    writeFileSync(path.join(dir, 'run'), FILES.get(RUN));
    const { status } = run('sh', [path.join(dir, 'run')], {
      env: {
        PATH: `${bin}:${process.env.PATH}`, SPRITES_HOME: home, SWARM: 'park 500 --time 60',
        SERVER_HOST: 'server.example', SERVER_PORT: '8080'
      }
    });
    t.equal(status, 0);
    t.match(readFileSync(path.join(dir, 'calls'), 'utf8'), `node ${home}/bin/sprites-swarm `
      + 'park 500 --time 60 --host server.example --port 8080');
  });
});

t.test('the container file copies what the server needs', async (t) => {
  const text = deployed('Containerfile');
  const copied = [...text.matchAll(/^COPY (?!--from)(.+) \S+$/gm)]
    .flatMap(([, sources]) => sources.split(' '));
  for (const source of copied) t.ok(existsSync(path.join(ROOT, source)), source);
  for (const needed of ['bin', 'lib', 'native', 'server.js', 'package.json', 'deploy/sysctl.conf']) {
    t.ok(copied.includes(needed), needed);
  }
  // The first stage builds before it has lib: the install script must do without.
  const { scripts } = JSON.parse(readFileSync(path.join(ROOT, 'package.json'), 'utf8'));
  t.equal(scripts.install, 'node-gyp rebuild -C native');
  t.match(text, /^STOPSIGNAL SIGTERM$/m);
  t.match(text, /^USER node$/m);
});

t.test('the dashboard and the alerts ask only for metrics there are', async (t) => {
  const counts = {
    lostReasons: { alone: 1 }, refused: { 'bad-sprite': 1 }
  };
  const front = {
    connections: 1, accepted: 1, connectionsRefused: 0, handedOver: 1, requests: 1, timedOut: 0,
    slowReaders: 0, outOfFiles: 0, heldBytes: 0
  };
  const metrics = createMetrics({ status: () => counts, front: () => front });
  t.teardown(() => metrics.close());
  const exported = new Set();
  for (const [, name, type] of (await metrics.text()).matchAll(/^# TYPE (\S+) (\S+)$/gm)) {
    const suffixes = type === 'histogram' ? ['_bucket', '_sum', '_count'] : [''];
    for (const suffix of suffixes) exported.add(name + suffix);
  }
  const dashboard = JSON.parse(deployed('grafana.json'));
  const asked = [
    ...dashboard.panels.flatMap(({ targets }) => targets.map(({ expr }) => expr)),
    ...dashboard.annotations.list.map(({ expr }) => expr),
    ...[...deployed('prometheus-rules.yml').matchAll(/expr: (?:>-\n)?(.*)$/gm)].map(([, e]) => e)
  ];
  t.ok(asked.length > 30);
  const names = new Set(asked.flatMap((expr) => (
    expr.match(/\b(?:sprites|process|nodejs)_[a-z_]+\b/g) ?? [])));
  for (const name of names) t.ok(exported.has(name), name);
});

t.test('the dashboard is laid out', async (t) => {
  const { panels, uid, templating } = JSON.parse(deployed('grafana.json'));
  t.equal(uid, 'sprites');
  t.equal(new Set(panels.map(({ id }) => id)).size, panels.length, 'every id once');
  const taken = new Set();
  for (const { title, gridPos: { x, y, w, h } } of panels) {
    t.ok(x + w <= 24, title);
    for (let i = x; i < x + w; i++) {
      for (let j = y; j < y + h; j++) {
        if (taken.has(`${i},${j}`)) t.fail(`${title} lies over another`);
        taken.add(`${i},${j}`);
      }
    }
  }
  const variables = new Set(templating.list.map(({ name }) => name));
  for (const [, name] of deployed('grafana.json').matchAll(/\$\{?([a-z]\w*)\}?/g)) {
    t.ok(variables.has(name) || name === '__rate_interval', name);
  }
});

t.test('promtool accepts the scrape example and the alerts', async (t) => {
  contented(t, 'promtool', ['check', 'config', path.join(ROOT, 'deploy/prometheus.yml')]);
});

t.test('the journal advice is a list of settings', async (t) => {
  for (const line of deployed('journald.conf').split('\n')) {
    t.ok(line === '' || /^(#|\[Journal\]$|[A-Z]\w+=\S+$)/.test(line), line);
  }
});

t.test('no file of deploy/ is forgotten here', async (t) => {
  t.same(readdirSync(path.join(ROOT, 'deploy')).sort(), [
    'Containerfile', 'cloud-init.yaml', 'grafana.json', 'haproxy.cfg', 'journald.conf',
    'limits.conf', 'nginx.conf', 'prometheus-rules.yml', 'prometheus.yml', 'sprites.service',
    'sysctl.conf'
  ]);
});
