import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, readFileSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { describeFileLimit } from '../../lib/base/file-limit.js';
import { helpText } from '../../lib/operator/options.js';
import { freePort } from '../support/addresses.js';
import { certificate } from '../support/certificate.js';
import { Wire } from '../support/http.js';
import { launch } from '../support/launch.js';
import { runToEnd, temporary } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';
import { start as startSwarm } from '../support/swarm.js';

const { version } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
const SPRITES = join(ROOT, 'bin/sprites');

/** Runs a command to its end. */
const run = (t, command, { env = {}, cwd = ROOT } = {}) =>
  runToEnd(t, ['env', '-u', 'NODE_OPTIONS', ...command], {
    cwd,
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe']
  });

/** Asserts that a program that can't start ends with one clear line. */
function refusedWith(t, { code, out, err }, expected, pattern) {
  t.equal(code, expected, 'the exit code');
  t.equal(out, '', 'nothing on stdout');
  t.match(err, /^sprites: [^\n]+\n$/, 'one line on stderr');
  t.match(err, pattern);
}

t.test('one that is ready takes clients', async (t) => {
  const options = { arena: 'hall', state: join(temporary(t), 'state'), drain: 0 };
  // The first server makes the state. A start from a state with an arena takes a while.
  for (let time = 0; time < 2; time += 1) {
    const [port, adminPort] = [await freePort(), await freePort()];
    const server = launch({ ...options, port, 'admin-port': adminPort });
    t.teardown(() => server.child.kill('SIGKILL'));
    const asks = async (at, path) => {
      const answer = await fetch(`http://127.0.0.1:${at}${path}`).catch(() => undefined);
      return answer?.status === 200;
    };
    const ended = server.ended.then(() => true);
    while (!(await asks(adminPort, '/readyz')) && !(await Promise.race([ended, pause(5)])));
    t.ok(await asks(port, '/status'));
    await server.listening;
    server.child.kill();
    t.same(await server.ended, [0, null]);
  }
});

t.test('it starts in every documented way, says where it listens, and serves', async (t) => {
  const node = [process.execPath, SPRITES];
  const ways = [
    [[SPRITES], 'SIGINT'],
    [node, 'SIGHUP'],
    [['npm', 'start', '--silent', '--'], 'SIGTERM']
  ];
  // V8 dropped the flag: from Node 24 on it is refused.
  if (parseInt(process.versions.node) < 24) {
    ways.push([node.toSpliced(1, 0, '--nouse-idle-notification'), 'SIGTERM']);
  }
  for (const [command, signal] of ways) {
    t.test(command.join(' '), async (t) => {
      const options = { capacity: 100, drain: 0, 'log-level': 'warn' };
      const server = await startServer(t, { command, options });
      t.equal(server.lines[0], `Sprites ${version} listens on http://127.0.0.1:${server.port}/`);
      t.equal((await server.status()).capacity, 100);
      const idle = await server.wire();
      await server.stop(signal);
      await idle.closed();
      t.equal(server.lines.at(-1), 'Answering every parked poll.');
      await t.rejects(Wire.open(server.port), { code: 'ECONNREFUSED' });
      t.equal(Buffer.concat(server.errors).toString(), '', 'nothing on stderr');
    });
  }
});

t.test('it says for how many clients it has room and how many the file limit allows', async (t) => {
  const command = ['sh', '-c', 'ulimit -n 512; exec "$@"', 'sh', process.execPath, SPRITES];
  const server = await startServer(t, { command, options: { capacity: 5000 } });
  const line = server.lines.slice(1).join('\n');
  t.match(line, /room for 5000 clients/);
  t.match(line, /file limit of 512 /);
  const [, allows] = /allows ([0-9]+)\b/.exec(line);
  t.ok(Number(allows) > 300 && Number(allows) < 512, allows);
  const [, files] = /ulimit -n ([0-9]+)/.exec(line);
  t.ok(Number(files) > 5000, 'the command that lifts it');
  await server.stop();
  t.equal(describeFileLimit(100, 512, 0), 'The file limit of 512 allows them all.');
});

t.test('--help and --version are printed', async (t) => {
  for (const [flag, out] of [
    ['--help', helpText()],
    ['--version', `${version}\n`]
  ]) {
    t.strictSame(await run(t, [SPRITES, flag]), { code: 0, out, err: '' }, flag);
  }
});

/** Listens on a free port, so that it is taken. Returns it. */
async function occupyPort(t, host) {
  const other = createServer();
  other.listen(0, host);
  await once(other, 'listening');
  t.teardown(() => other.close());
  return other.address().port;
}

t.test('a wrong option is exit code 2, and what can not be had 1', async (t) => {
  const [port, v6] = [await occupyPort(t, '127.0.0.1'), await occupyPort(t, '::')];
  const dir = temporary(t);
  const { 'tls-cert': cert, 'tls-key': key } = certificate(dir);
  const { 'tls-cert': other, 'tls-key': otherKey } = certificate(dir, 'other');
  const fifo = join(dir, 'fifo');
  execFileSync('mkfifo', [fifo]);
  const empty = join(dir, 'empty');
  writeFileSync(empty, '');
  const large = join(dir, 'large');
  writeFileSync(large, '');
  truncateSync(large, 2 ** 25);
  const listen = ['--port', '0', '--host', '127.0.0.1', '--tls-port', '0'];
  const tls = (one, two) => [...listen, '--tls-cert', one, '--tls-key', two];
  const withListenOptions = (...args) => ['--port', '0', '--host', '127.0.0.1', ...args];
  const world = (...args) => [
    '--world',
    'nats://127.0.0.1:1',
    '--name',
    'a',
    ...withListenOptions(...args)
  ];
  const noPair = /^sprites: --tls-cert \S+ and --tls-key \S+ are no certificate with its key/;
  const portTaken = (name, where = `127\\.0\\.0\\.1:${port}`) =>
    new RegExp(`^sprites: ${where} is taken .*choose another port by --${name}\\n`);
  for (const [args, pattern] of [
    [['--host', '127.0.0.1', '--port', `${port}`], portTaken('port')],
    [['--host', '::', '--port', `${v6}`], portTaken('port', `\\[::\\]:${v6}`)],
    [withListenOptions('--admin-port', `${port}`), portTaken('admin-port')],
    [[...tls(cert, key), '--tls-port', `${port}`], portTaken('tls-port')],
    [
      withListenOptions('--workers', '1', '--transient-port', `${port}`),
      portTaken('transient-port')
    ],
    [
      ['--host', '203.0.113.7', '--port', '0'],
      /^sprites: 203\.0\.113\.7:0 is no address of this host: .* --host/
    ],
    [['--host', '2001:db8::7', '--port', '0'], /^sprites: \[2001:db8::7\]:0 is .*--host/],
    [
      ['--host', 'nowhere.invalid', '--port', '0'],
      /^sprites: nowhere\.invalid:0 is an unknown name: .*--host/
    ],
    [
      withListenOptions('--admin-port', '0', '--admin-host', '203.0.113.7'),
      /^sprites: 203\.0\.113\.7:0 is no .*--admin-host/
    ],
    [tls(fifo, key), /^sprites: --tls-cert \S+ can't be read \(no program writes to this pipe\)\n/],
    [tls(large, key), /^sprites: --tls-cert \S+ can't be read \(it has more than 16777216 bytes\)/],
    [tls('/nope', key), /^sprites: --tls-cert \/nope can't be read \(ENOENT\)\n/],
    [tls(cert, '/nope'), /^sprites: --tls-key \/nope can't be read \(ENOENT\)\n/],
    [tls(SPRITES, key), noPair],
    [tls(other, key), noPair],
    [
      world('--world-credentials', '/nope'),
      /^sprites: --world-credentials \/nope can't be read \(ENOENT\)\n/
    ],
    [
      world('--world-credentials', key),
      /^sprites: --world-credentials \S+ can't be used \(it has no key of a user\)\n/
    ],
    [world('--world-ca', '/'), /^sprites: --world-ca \/ can't be read \(EISDIR\)\n/],
    [world('--world-ca', empty), /^sprites: --world-ca \S+ can't be used \(/],
    [
      world('--world-certificate', key, '--world-key', key),
      /^sprites: --world-certificate \S+ can't be used \(/
    ],
    [
      world('--world-certificate', cert, '--world-key', otherKey),
      /^sprites: --world-key \S+ can't be used \(/
    ]
  ]) {
    refusedWith(t, await run(t, [SPRITES, ...args]), 1, pattern);
  }
  const delayedKeyCommand = ['sh', '-c', '{ sleep 0.1; cat "$0"; } | "$@"', key, SPRITES];
  const byPipe = await run(t, [...delayedKeyCommand, ...tls(other, '/dev/stdin')]);
  refusedWith(t, byPipe, 1, /the key is not the certificate's/);
  const set = await run(t, [SPRITES], { env: { SPRITES_PORT: 'x' } });
  refusedWith(t, set, 2, /SPRITES_PORT/);
  refusedWith(t, await run(t, [SPRITES, '--prot', '1']), 2, /--prot.*did you mean --port\?/);
});

t.test('a port for the privileged only is one line and exit code 1', async (t) => {
  // Where every user may listen on every port, no port is refused.
  const file = '/proc/sys/net/ipv4/ip_unprivileged_port_start';
  if (Number(readFileSync(file, 'utf8')) < 2) return;
  const ordinary = process.getuid() === 0 ? ['setpriv', '--bounding-set=-net_bind_service'] : [];
  const failed = await run(t, [...ordinary, SPRITES, '--host', '127.0.0.1', '--port', '1']);
  refusedWith(t, failed, 1, /^sprites: 127\.0\.0\.1:1 takes a privilege: .*--port.*CAP_NET_BIND/);
});

t.test('a missing or broken addon is one line that says what to do', async (t) => {
  const tree = temporary(t);
  for (const name of ['bin', 'lib', 'server.js', 'package.json', 'deploy']) {
    cpSync(join(ROOT, name), join(tree, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(tree, 'node_modules'));
  const command = [process.execPath, join(tree, 'bin/sprites'), '--port', '0'];
  t.test('missing', async (t) => {
    refusedWith(t, await run(t, command, { cwd: tree }), 1, /not built.*npm run build/);
  });
  t.test('broken', async (t) => {
    mkdirSync(join(tree, 'native/build/Release'), { recursive: true });
    writeFileSync(join(tree, 'native/build/Release/sprites.node'), 'no addon at all\n'.repeat(999));
    refusedWith(t, await run(t, command, { cwd: tree }), 1, /does not load.*npm run build/);
  });
  t.test('--help and --version need none', async (t) => {
    t.equal((await run(t, [...command, '--help'], { cwd: tree })).code, 0);
    t.equal((await run(t, [...command, '--version'], { cwd: tree })).code, 0);
  });
});

t.test('as the first process of a container it ends at a signal while it is loaded', async (t) => {
  const tree = temporary(t);
  for (const name of ['bin/sprites', 'lib/base/no-inspector.js', 'package.json']) {
    cpSync(join(ROOT, name), join(tree, name));
  }
  const loads = 'process.stdout.write("."); await new Promise(() => setInterval(() => {}, 1e6));';
  mkdirSync(join(tree, 'lib/server'));
  writeFileSync(join(tree, 'lib/server/command-line.js'), loads);
  writeFileSync(join(tree, 'server.js'), '');
  const first = join(tree, 'first.cjs');
  writeFileSync(first, 'Object.defineProperty(process, "pid", { value: 1 });');
  for (const [signal, code] of Object.entries({ SIGTERM: 143, SIGQUIT: 131 })) {
    const child = spawn('env', [
      ...['-u', 'NODE_OPTIONS', process.execPath, '--require', first],
      join(tree, 'bin/sprites')
    ]);
    t.teardown(() => child.kill('SIGKILL'));
    const closed = once(child, 'close');
    await once(child.stdout, 'data');
    child.kill(signal);
    t.strictSame(await closed, [code, null]);
  }
});

t.test('signals that come to its very end change nothing of how it ends', async (t) => {
  const server = await startServer(t, { options: { drain: 0 } });
  const { child } = server;
  const again = setInterval(() => {
    for (const signal of ['SIGTERM', 'SIGUSR2', 'SIGHUP']) child.kill(signal);
  }, 1);
  t.strictSame(await server.ended(), { code: 0, signal: null });
  clearInterval(again);
});

t.test(
  'a signal and a failure end it, whatever Node still waits for in a thread of its own',
  async (t) => {
    // A FIFO whose other end is not opened keeps a thread of Node waiting, as a lookup of a name does.
    const folder = temporary(t);
    const fifo = join(folder, 'fifo');
    execFileSync('mkfifo', [fifo]);
    const waiting = join(folder, 'waiting.cjs');
    writeFileSync(waiting, `require('node:fs').open(${JSON.stringify(fifo)}, () => {});`);
    const command = [process.execPath, '--require', waiting, SPRITES];
    const server = await startServer(t, { command, options: { drain: 0 } });
    const taken = ['--host', '127.0.0.1', '--port', `${server.port}`];
    refusedWith(t, await run(t, [...command, ...taken]), 1, /is taken/);
    server.child.kill('SIGTERM');
    t.strictSame(await server.ended(), { code: 0, signal: null });
  }
);

t.test('IPv6 and names are listened on', async (t) => {
  for (const host of ['::1', 'localhost']) {
    const server = await startServer(t, { options: { host } }).catch((error) => error);
    if (/EADDRNOTAVAIL|EAFNOSUPPORT/.test(server.message)) continue;
    if (server instanceof Error) throw server;
    t.match(server.lines[0], host === '::1' ? 'http://[::1]:' : 'http://localhost:');
    await server.stop();
  }
});

t.test('a variable that is no option is named, and what was meant', async (t) => {
  const server = await startServer(t, {
    env: {
      ...{ SPRITES_PROT: '1', SPRITES_BOGUS: '2', SPRITES_HANDED_OVER: '3' },
      // As Kubernetes sets them.
      ...{ SPRITES_SERVICE_HOST: '10.0.0.1', SPRITES_SERVICE_PORT_HTTP: '80' },
      ...{ SPRITES_PORT: 'tcp://10.0.0.1:80', SPRITES_PORT_80_TCP_ADDR: '10.0.0.1' }
    }
  });
  await server.stop();
  t.match(server.logLines, [
    { level: 40, variable: 'SPRITES_PROT', meant: 'SPRITES_PORT' },
    { level: 40, variable: 'SPRITES_BOGUS', meant: undefined },
    { level: 40, variable: 'SPRITES_HANDED_OVER', instead: /--connections/ }
  ]);
});

/** SIGUSR1, at which Node by default opens its inspector to any program on this host. */

const NO_INSPECTOR_MESSAGE = 'SIGUSR1 opens no inspector here';

t.test('SIGUSR1 opens no inspector', async (t) => {
  const server = await startServer(t, { options: { drain: 0, workers: 2, 'transient-port': 0 } });
  process.kill(server.pid, 'SIGUSR1');
  const said = () => Buffer.concat(server.errors).toString();
  await server.until(() => said().split(NO_INSPECTOR_MESSAGE).length === 2);
  // An open inspector would have printed its address before.
  t.notMatch(said(), /Debugger|inspector.*ws:/);
  await server.stop();
});

t.test('nor does the swarm', async (t) => {
  const server = await startServer(t, { options: { drain: 0 } });
  const swarm = startSwarm(t, `park 2 --port ${server.port} --time 6`);
  await server.until(({ parked }) => parked === 2);
  swarm.kill('SIGUSR1');
  const { code, err } = await swarm.result();
  t.equal(code, 0, 'the signal is nothing to it');
  t.notMatch(err, /Debugger/);
  await server.stop();
});
