import { execFileSync, spawnSync } from 'node:child_process';
import { closeSync, constants, mkdirSync, openSync, readSync, rmdirSync } from 'node:fs';
import { networkInterfaces } from 'node:os';
import { join } from 'node:path';

import t from 'tap';

import { createLog } from '../../lib/base/log.js';
import { freePort } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { launch, launchToEnd, SPRITES } from '../support/launch.js';
import { startServer } from '../support/server.js';
import { temporary } from '../support/processes.js';

/** The log, and a server whose log can't be written. */

/** Returns a command that runs the server with its descriptors redirected by the shell. */
const redirected = (how) => ['sh', '-c', `exec env -u NODE_OPTIONS "$@" ${how}`, 'sh', ...SPRITES];

/** Opens both ends of a pipe in this process. */
function pipe(t) {
  const path = join(t.testdir(), 'pipe');
  execFileSync('mkfifo', [path]);
  const ends = openSync(path, constants.O_RDWR);
  const reader = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  t.teardown(() => [ends, reader].forEach((fd) => closeSync(fd)));
  return {
    fd: ends,
    /** Reads all bytes in the pipe. */
    read() {
      const bytes = Buffer.alloc(1 << 20);
      try {
        return bytes.toString('latin1', 0, readSync(reader, bytes));
      } catch (error) {
        if (error.code === 'EAGAIN') return '';
        throw error;
      }
    }
  };
}

t.test(
  'a reader that stops costs lines, which are counted, and the server does not wait for it',
  async (t) => {
    const { fd, read } = pipe(t);
    const log = createLog('info', { name: 'a', fd });
    const most = 5000;
    // A write that waits would never return: nothing else empties the pipe.
    for (let n = 0; n < most; n += 1) log.info({ n }, 'a line of some length');
    let text = read();
    log.info({ n: most }, 'another line');
    log.info({ n: most + 1 }, 'another line');
    text += read();
    const lines = text
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line));
    const numbers = lines.filter(({ n }) => n !== undefined).map(({ n }) => n);
    const fittingLines = numbers.length - 2;
    t.ok(fittingLines > 100 && fittingLines < most, `${fittingLines} lines fit`);
    t.strictSame(
      numbers.slice(0, fittingLines),
      Array.from({ length: fittingLines }, (_, n) => n),
      'in order, whole'
    );
    t.strictSame(numbers.slice(fittingLines), [most, most + 1], 'and it goes on');
    t.match(lines[fittingLines], {
      level: 40,
      pid: process.pid,
      name: 'a',
      lost: most - fittingLines,
      msg: 'lines of this log could not be written'
    });
  }
);

for (const [name, how] of Object.entries({
  'a full disk under its log': { command: redirected('2>/dev/full') },
  'being started without a stderr': { command: redirected('2>&-') },
  'the readers of its log': {}
})) {
  t.test(`the server outlives ${name}`, async (t) => {
    const server = await startServer(t, how);
    for (const output of [server.child.stderr, server.child.stdout]) output.destroy();
    for (let i = 0; i < 3; i += 1) {
      server.child.kill('SIGUSR2');
      await server.status();
    }
    await server.stop();
  });
}

t.test('a server whose stdout is full serves all the same', async (t) => {
  const port = await freePort();
  const how = { command: redirected('>/dev/full 2>&1') };
  const { child, ended, listening } = launch({ port, drain: 0 }, how);
  listening.catch(() => {});
  t.teardown(() => child.kill('SIGKILL'));
  const listens = async () =>
    Wire.open(port).then(
      (wire) => wire.destroy().then(() => true),
      () => false
    );
  while (child.exitCode === null && !(await listens()));
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
});

t.test('what was asked for and could not be printed is an exit code of 1, without a trace', (t) => {
  const [shell, ...args] = redirected('>/dev/full');
  for (const flag of ['--help', '--version']) {
    const { status, stderr } = spawnSync(shell, [...args, flag], { encoding: 'utf8' });
    t.strictSame([status, stderr], [1, ''], flag);
  }
  t.end();
});

// ---- What it says -------------------------------------------------------------------------------

const NOBODY = '11111111-2222-8333-8444-000000000000';

/** Waits for a line of the log that has all of these members. */
async function untilLogged(server, wanted) {
  const fits = (line) => Object.entries(wanted).every(([name, value]) => line[name] === value);
  await server.until(() => server.logLines.some(fits));
}

t.test('it says that no snapshot can be made, and when one can', async (t) => {
  const state = join(temporary(t), 'state');
  const options = { state, 'journal-bytes': 65536, lease: 600, drain: 0 };
  const server = await startServer(t, { options });
  // A folder in the place of the new snapshot's file.
  mkdirSync(`${state}.new`);
  const id = await server.join();
  const sprite = JSON.stringify({ text: 'x'.repeat(12_000) });
  const fill = async () => {
    for (let n = 1; n <= 6; n += 1) await server.throw(id, 'left', sprite);
  };
  await fill();
  await untilLogged(server, { level: 50, msg: 'no snapshot of the state could be made' });
  rmdirSync(`${state}.new`);
  await fill();
  await untilLogged(server, { level: 30, msg: 'snapshots of the state can be made again' });
  await server.stop();
});

t.test('the address it prints can be opened, and others are told theirs', async (t) => {
  const server = await startServer(t, { options: { host: '0.0.0.0', drain: 0 } });
  t.match(server.lines[0], `listens on http://localhost:${server.port}/`);
  const others = Object.values(networkInterfaces())
    .flat()
    .filter(({ internal, family }) => !internal && family === 'IPv4');
  await server.until(() => server.lines.length > 1 + others.length);
  for (const { address } of others) {
    t.ok(server.lines.includes(`From elsewhere: http://${address}:${server.port}/`), address);
  }
  await server.stop();
});

/** Returns a command that runs the server on a machine whose addresses can't be read: the read throws this error. */
function withoutAddresses(members) {
  const error = `Object.assign(new Error('no addresses'), ${JSON.stringify(members)})`;
  const module = `
    import os from 'node:os';
    import { syncBuiltinESMExports } from 'node:module';
    os.networkInterfaces = () => { throw ${error}; };
    syncBuiltinESMExports();`;
  const [node, sprites] = SPRITES;
  return [node, '--import', `data:text/javascript,${encodeURIComponent(module)}`, sprites];
}

t.test(
  'a service that may not know its addresses serves, and ends when it is told to',
  async (t) => {
    const server = await startServer(t, {
      options: { host: '0.0.0.0', drain: 0 },
      // The error where RestrictAddressFamilies= of systemd allows no netlink socket.
      command: withoutAddresses({ code: 'ERR_SYSTEM_ERROR', syscall: 'uv_interface_addresses' })
    });
    t.match(server.lines[0], `listens on http://localhost:${server.port}/`);
    t.equal((await server.ask('GET', '/addresses')).status, 200);
    server.child.kill('SIGTERM');
    t.strictSame(await server.ended(), { code: 0, signal: null });
  }
);

t.test('what goes wrong once the ports are open ends the server', async (t) => {
  const options = { host: '0.0.0.0', drain: 0 };
  const { code, errors } = await launchToEnd(t, options, { command: withoutAddresses({}) });
  t.equal(code, 1);
  t.match(errors, /^sprites: no addresses$/m);
});

const ID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/;

for (const [name, workers] of Object.entries({ 'the main thread': 0, 'a worker': 1 })) {
  t.test(`it logs joins, and refusals with their reason, and no id: ${name}`, async (t) => {
    const state = join(temporary(t), 'state');
    const server = await startServer(t, {
      options: { workers, 'transient-port': 0, 'log-level': 'trace', drain: 0, state }
    });
    const from = '127.0.0.1';
    const first = await server.ask('POST', '/join');
    const { id, transient = server.port } = first.body;
    await untilLogged(server, { level: 20, msg: 'joined', from });
    for (const bytes of [
      request('POST', `/throw/${NOBODY}/left`, { body: '{}' }),
      request('POST', `/throw/${id}/left`, { body: '[]' }),
      request('GET', '/nothing/here'),
      'no HTTP\r\n\r\n'
    ]) {
      const wire = await Wire.open(transient);
      wire.send(bytes);
      t.ok((await wire.read()).status >= 400);
      await wire.destroy();
    }
    for (const why of ['unknown-client', 'bad-sprite', 'bad-request']) {
      await untilLogged(server, { level: 20, msg: 'refused', from, why });
    }
    await untilLogged(server, { msg: 'refused', why: 'misdirected' });

    for (const path of [`/poll/${id}?ack=99`, `/place/${id}`, `/page/${id}`, `/${id}`]) {
      await server.ask('GET', path);
    }
    await server.throw(id, 'nowhere');
    const { wire: parked } = await server.park(id);
    await parked.reset();
    const garbage = await server.wire();
    garbage.send(`POST /throw/${id}/left HTTP/1.1\r\nbad header\r\n\r\n`);
    await server.read(garbage);

    const wire = await Wire.open(transient);
    for (let i = 0; i < 300; i += 1) {
      wire.send(request('POST', `/throw/${NOBODY}/left`, { body: '{}' }));
      await wire.read();
    }
    await wire.destroy();
    await server.until(() => server.logLines.some(({ omitted }) => omitted > 0));
    const seconds = new Set(server.logLines.map(({ time }) => Math.floor(time / 1000))).size;
    const lines = server.logLines.filter(({ level }) => level === 20).length;
    // The limit is 50 lines in a second, and one line for the omitted ones. Two such seconds may overlap one of the
    // clock.
    t.ok(lines <= 2 * 52 * (seconds + 1), `${lines} lines in ${seconds} s`);
    await server.stop();
    const log = Buffer.concat(server.errors).toString();
    t.match(log, /"msg":"state kept"/);
    t.notMatch(log, ID);
    t.notOk(log.includes(id.replaceAll('-', '')), 'no id, however much is logged');
  });
}

for (const workers of [0, 1]) {
  t.test(`every refusal is counted once, by its problem; workers: ${workers}`, async (t) => {
    const options = { workers, arena: 'hall', 'head-bytes': '4K', drain: 0 };
    const server = await startServer(t, { options });
    const id = await server.join();
    const throwing = (to, body) => request('POST', `/throw/${to}/left`, { body });
    const expected = {};
    for (const [problem, ...all] of [
      ['unknown-client', throwing(NOBODY, '{}'), request('GET', '/poll/nobody')],
      ['bad-sprite', throwing(id, '[]')],
      ['ack-ahead', request('GET', `/poll/${id}?ack=7`)],
      ['unknown-arena', request('POST', '/arena/none')],
      ['unknown-player', request('POST', `/arena/hall/${NOBODY}`, { body: '{}' })],
      ['unknown-feed', request('GET', '/feed/none'), request('GET', '/feed/none?hold=5&delta=0')],
      ['publishing-closed', request('PUT', '/feed/none', { body: '1' })],
      ['not-found', request('GET', '/nothing/here')],
      ['bad-request', 'no HTTP\r\n\r\n', 'GET /status HTTP/1.1\r\nbad header\r\n\r\n'],
      ['expectation-failed', request('POST', '/join', { headers: { Expect: 'a miracle' } })],
      ['head-too-large', request('GET', `/${'x'.repeat(5000)}`)]
    ]) {
      for (const bytes of all) {
        const wire = await server.wire();
        wire.send(bytes);
        t.equal(problemOf(await server.read(wire)), problem);
        await wire.destroy();
      }
      expected[problem] = all.length;
    }
    // A worker reports its counts at the end of a turn.
    const last = ({ refused }) => refused['head-too-large'] > 0;
    t.strictSame((await server.until(last)).refused, expected);
    await server.stop();
  });
}

t.test('at debug it logs connections without a PROXY header', async (t) => {
  const server = await startServer(t, {
    options: { 'trust-proxy': 'proxy', 'log-level': 'debug', drain: 0 },
    greeting: 'PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\n'
  });
  const wire = await Wire.open(server.port);
  wire.send(request('POST', '/join'));
  await wire.closed();
  await untilLogged(server, {
    level: 20,
    msg: 'refused',
    from: '127.0.0.1',
    why: 'no PROXY header'
  });
  await server.stop();
});

t.test('where stderr is no terminal, the log says where it listens, and no refusal', async (t) => {
  const server = await startServer(t, { options: { 'log-level': 'info', drain: 0 } });
  await server.poll(NOBODY);
  await server.stop();
  t.match(server.logLines, [
    { level: 30, url: `http://127.0.0.1:${server.port}/`, msg: 'listens' },
    { msg: 'metrics are served' },
    { level: 30, capacity: 1000000, msg: 'room for clients' },
    { signal: 'SIGTERM', drain: 0, msg: 'answers every parked poll, and ends' }
  ]);
  t.equal(server.logLines.length, 4);
});
