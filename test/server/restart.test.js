import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync
} from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { crc32 } from 'node:zlib';

import t from 'tap';

import { EDGES } from '../../lib/torus/pool.js';
import { listening } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import { durableFeedOptions, get, put } from '../support/feeds.js';
import { request } from '../support/http.js';
import { launch, launchToEnd, SPRITES } from '../support/launch.js';
import { UNLIMITED_SIZE, restoreState, makePool } from '../support/pool.js';
import { until } from '../support/until.js';
import { durableCounts, startServer } from '../support/server.js';

// About forty starts of a server, on a machine that may be busy.
t.setTimeout(600_000);

/** Offsets and sizes in the file, in bytes. They repeat native/store/snapshot_format.h on purpose. */
const VERSION = 8;
const BYTE_ORDER = 12;
const THROWN = 72;
const LOST = 88;

/** Writes a state of six clients and a sprite; a record in front of theirs is free. @returns {string[]} their ids */
function writeState(t, path) {
  const pool = makePool(t, { capacity: 400 });
  const [departed, ...ids] = Array.from({ length: 7 }, () => pool.join().id);
  pool.leave(departed);
  pool.throw(ids[0], 'left', 1, Buffer.from(JSON.stringify({ a: 'x'.repeat(1000) })));
  pool.save(path, UNLIMITED_SIZE);
  return ids;
}

/** Corrects the checksum of the bytes. Returns them. */
function withChecksum(bytes) {
  const end = bytes.length - 4;
  if (end >= 0) bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  return bytes;
}

// ---- The server, restarted ----------------------------------------------------------------------

const QUICK_OPTIONS = { drain: 0, lease: 600, 'throw-rate': 0, 'log-level': 'warn' };

t.test('a restart changes nothing for any client', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const begin = () => startServer(t, { options: { ...QUICK_OPTIONS, state } });
  const one = await begin();
  t.equal((await one.status()).clients, 0, 'without a file it begins anew');
  t.strictSame(readdirSync(directory), ['state.journal-0', 'state.lock'], 'and a journal');
  const ids = [];
  for (let i = 0; i < 6; i += 1) ids.push(await one.join());
  for (const [i, id] of ids.entries()) {
    for (const edge of EDGES) {
      t.equal(
        (await one.throw(id, edge, `{"by":${i},"over":"${edge}"}`, `n=${10 + EDGES.indexOf(edge)}`))
          .status,
        202
      );
    }
  }
  // The first has read and acked two, the second and the last have read without an ack, the others nothing.
  const {
    body: { sprites }
  } = await one.poll(ids[0]);
  const acked = sprites[1].seq;
  const first = (await one.poll(ids[0], `ack=${acked}`)).body;
  const second = (await one.poll(ids[1])).body;
  await one.poll(ids[5]);
  const last = await one.status();
  await one.stop();
  t.strictSame(readdirSync(directory), ['state']);

  const two = await begin();
  t.strictSame(readdirSync(directory), ['state', 'state.journal-1', 'state.lock']);
  t.strictSame(durableCounts(await two.status()), durableCounts(last));
  t.equal(problemOf(await two.poll(ids[2], 'ack=1')), 'ack-ahead', 'none of its was ever sent');
  t.strictSame((await two.poll(ids[0], `ack=${acked}`)).body, first, 'the same with the same seq');
  t.strictSame((await two.poll(ids[1])).body, second, 'unacked, they come again');
  for (const id of ids) {
    const answer = await two.throw(id, 'up', '{"by":"again"}', 'n=12');
    t.strictSame([answer.status, answer.body.state], [202, 'duplicate']);
  }
  t.equal((await two.poll(ids[5], 'ack=1')).status, 200, 'what was sent may be acked');
  for (const id of ids.slice(2, 5)) {
    const { body } = await two.poll(id);
    t.strictSame(
      body.sprites.map(({ seq }) => seq),
      body.sprites.map((_, i) => i + 1)
    );
    for (const {
      from,
      sprite: { over }
    } of body.sprites) {
      t.equal(EDGES.indexOf(from), EDGES.indexOf(over) ^ 1);
    }
  }
  // A killed server has lost nothing either.
  const killed = await two.status();
  two.child.kill('SIGKILL');
  await two.ended();
  const three = await begin();
  t.strictSame(durableCounts(await three.status()), durableCounts(killed));
  const { body: again } = await three.poll(ids[1]);
  t.strictSame(again.sprites, second.sprites, 'unacked, they come again');
  await three.stop();
  t.strictSame(readdirSync(directory), ['state'], 'an end in order leaves no journal');
});

t.test('a client parked at SIGTERM is told when to come back', async (t) => {
  const drain = 3;
  const state = join(t.testdir(), 'state');
  const options = { ...QUICK_OPTIONS, drain, state };
  const one = await startServer(t, { options });
  const ids = [];
  const parked = [];
  for (let i = 0; i < 30; i += 1) {
    ids.push(await one.join());
    parked.push(await one.park(ids[i]));
  }
  const side = await one.wire();
  side.send(request('GET', '/status'));
  await one.read(side);
  one.child.kill('SIGTERM');
  await Promise.any(parked.map(({ answer }) => answer));
  // Over open connections throws are still accepted, and joins are not.
  side.send(request('POST', '/join'));
  t.equal(problemOf(await one.read(side)), 'draining');
  side.send(request('POST', `/throw/${ids[0]}/left`, { body: '{"last":1}' }));
  t.equal((await one.read(side)).status, 202);
  const answers = await Promise.all(parked.map(({ answer }) => answer));
  const retries = answers.map(({ body }) => body.retry);
  t.ok(
    retries.every((retry) => Number.isInteger(retry) && retry >= 0 && retry <= 2000 * drain + 1),
    `milliseconds: ${retries}`
  );
  t.ok(new Set(retries).size > 20, 'at moments of their own');
  t.ok(Math.max(...retries) - Math.min(...retries) > 500 * drain, 'spread');
  t.strictSame(await one.ended(), { code: 0, signal: null });

  const two = await startServer(t, { options: { ...options, drain: 0 } });
  const { clients, waiting } = await two.status();
  t.strictSame([clients, waiting], [ids.length, 1], 'what was thrown at the last moment waits');
  await two.stop();
});

t.test('a request that is under way at SIGTERM has its answer', async (t) => {
  const one = await startServer(t, { options: { ...QUICK_OPTIONS, drain: 0 } });
  const id = await one.join();
  const wires = await Promise.all(Array.from({ length: 3 }, () => one.wire()));
  const [cold, hot, idle] = wires;
  const head = `POST /throw/${id}/left HTTP/1.1\r\nHost: a\r\nContent-Length: 13\r\n`;
  cold.send(`${head}Expect: 100-continue\r\n\r\n`);
  t.equal((await cold.read()).status, 100);
  cold.send('{"last"');
  hot.send(`${head}\r\n{"last"`);
  await one.until(({ heldBytes }) => heldBytes > 2 * head.length);
  one.child.kill('SIGTERM');
  await idle.closed();
  // Sent slowly, so that the server checks a few times meanwhile whether it has answered all requests.
  for (const character of ':true}') {
    for (const wire of [cold, hot]) wire.send(character);
    await sleep(50);
  }
  for (const wire of [cold, hot]) t.equal((await wire.read()).status, 202);
  t.strictSame(await one.ended(), { code: 0, signal: null });
});

// ---- Two servers, one state ---------------------------------------------------------------------

t.test('a second server with the same state is refused, in time, and harms nothing', async (t) => {
  const directory = t.testdir();
  const options = { ...QUICK_OPTIONS, state: join(directory, 'state') };
  const one = await startServer(t, { options });
  const id = await one.join();
  const { errorText, code } = await startAndEnd(t, { ...options, 'state-wait': 0 });
  t.equal(code, 1);
  t.equal(
    errorText,
    `sprites: --state ${options.state} is used by another server (process ${one.pid}):` +
      ' end that one, or give this one a file of its own\n'
  );
  t.equal((await one.poll(id, 'hold=5&ack=1')).status, 400, 'the first still knows its client');
  await one.stop();
  t.strictSame(readdirSync(directory), ['state']);
});

t.test('a server that waits for the state ends when it is told to', async (t) => {
  const directory = t.testdir();
  const options = { ...QUICK_OPTIONS, state: join(directory, 'state') };
  const one = await startServer(t, { options });
  const { child, ended, listening } = launch(options);
  listening.catch(() => {});
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = await once(child.stderr, 'data');
  const waits = { msg: 'waits for the state of another server', holder: one.pid, seconds: 60 };
  t.match(JSON.parse(line), waits);
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
  await one.stop();
  t.strictSame(readdirSync(directory), ['state'], 'the lock was not its to remove');
});

t.test('a state that another has put there meanwhile is not written over', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const server = await startServer(t, { options: { ...QUICK_OPTIONS, state } });
  await server.join();
  // Like a server of a version without the lock.
  writeFileSync(state, 'of another');
  const { code, errorText } = await stopWithoutSaving(server);
  t.equal(code, 1);
  const aside = `${state}.${server.pid}`;
  t.match(errorText, `this one's lies at ${aside}`);
  t.equal(readFileSync(state, 'utf8'), 'of another');
  t.equal(restoreState(makePool(t), aside).clients, 1, 'nothing is lost');
});

t.test('no link is followed, neither to read a state nor to write one', async (t) => {
  const directory = t.testdir({ victim: 'precious', links: {} });
  const victim = join(directory, 'victim');
  const state = join(directory, 'links', 'state');
  const pool = makePool(t);
  pool.join();

  symlinkSync(victim, `${state}.new`);
  pool.save(state, UNLIMITED_SIZE);
  t.equal(restoreState(makePool(t), state).clients, 1);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE.new');

  rmSync(state);
  symlinkSync(victim, state);
  const read = await startAndEnd(t, { state });
  t.match(read.errorText, /is not used, and left as it is: it is a link/);
  t.throws(() => pool.save(state, UNLIMITED_SIZE), /another server has written/);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE');

  rmSync(state);
  symlinkSync(victim, `${state}.lock`);
  const locked = await startAndEnd(t, { state });
  t.strictSame([read.code, locked.code], [1, 1]);
  t.match(locked.errorText, /state\.lock can't be locked/);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE.lock');
});

// ---- What goes wrong at the start ---------------------------------------------------------------

/** Runs a server that can't start, by a command before it. Returns its exit code and its stderr. */
async function startAndEnd(t, options, command = []) {
  const { code, errors: errorText } = await launchToEnd(
    t,
    { ...QUICK_OPTIONS, ...options },
    { command: [...command, ...SPRITES] }
  );
  return { code, errorText };
}

/** Command that makes the permissions of files hold for root, too: it removes these capabilities. */
const WITHOUT_ROOT_RIGHTS =
  process.getuid() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];

t.test("a state that can't be used is refused in one line, and left as it is", async (t) => {
  const saved = join(t.testdir(), 'state');
  const ids = writeState(t, saved);
  const whole = readFileSync(saved);
  const change = (at, value) => {
    const bytes = Buffer.from(whole);
    bytes.writeUInt32LE(value, at);
    return withChecksum(bytes);
  };
  const wrapped = Buffer.from(whole);
  wrapped.writeBigUInt64LE(2n ** 64n - 1n, LOST);
  wrapped.writeBigUInt64LE(0n, THROWN);
  const swapped = Buffer.from(whole.subarray(0, whole.length & ~3)).swap32();
  whole.copy(swapped, 0, 0, VERSION);
  const cases = {
    'an empty file': [Buffer.alloc(0), /is no state of a Sprites server/],
    'a file of something else': [Buffer.from('{"clients":[]}\n'.repeat(20)), /is no state of/],
    'a file cut off in its header': [whole.subarray(0, 60), /is cut off/],
    'a file cut off later': [whole.subarray(0, whole.length - 1), /damaged or cut off/],
    'a file with a bit flipped': [Buffer.from(whole).fill(whole[500] ^ 4, 500, 501), /is damaged/],
    'a newer version': [change(VERSION, 7), /version 7, and this program reads up to 6: start the/],
    'a newer version with a checksum of its own': [
      Buffer.concat([change(VERSION, 7), Buffer.alloc(4)]),
      /version 7, and this program reads up to 6/
    ],
    'a version before the first': [change(VERSION, 2), /unknown version/],
    'counts that only add up by wrapping around': [withChecksum(wrapped), /counts do not add up/],
    'another byte order': [swapped, /another byte order/],
    'another byte order, and a checksum': [change(BYTE_ORDER, 0x04030201), /another byte order/],
    'more clients than there is room for': [whole, /larger --capacity/, { capacity: 5 }],
    'a record beyond the room there is': [whole, /larger --capacity/, { capacity: ids.length }],
    'more bytes than allowed': [
      whole,
      /has \d+ bytes, and --state-bytes allows 1024/,
      { 'state-bytes': 1024 }
    ],
    "a file that can't be read": [whole, /EACCES|ermission denied/, {}, 0o000]
  };
  for (const [name, [bytes, line, options = {}, mode = 0o600]] of Object.entries(cases)) {
    const directory = t.testdir({ state: bytes });
    const state = join(directory, 'state');
    chmodSync(state, mode);
    const user = mode === 0 ? WITHOUT_ROOT_RIGHTS : [];
    const { errorText, code } = await startAndEnd(t, { state, ...options }, user);
    t.equal(code, 1, name);
    t.match(
      errorText,
      new RegExp(`^sprites: --state ${state} is not used, and left as it is: .+\n$`),
      name
    );
    t.match(errorText, line, name);
    t.strictSame(readdirSync(directory), ['state'], name);
    chmodSync(state, 0o600);
    t.ok(readFileSync(state).equals(bytes), `${name} is left as it is`);
  }
});

t.test('a directory or a pipe in the place of the state is refused', async (t) => {
  const directory = t.testdir();
  mkdirSync(join(directory, 'folder'));
  execFileSync('mkfifo', [join(directory, 'pipe')]);
  for (const name of ['folder', 'pipe']) {
    const { errorText, code } = await startAndEnd(t, { state: join(directory, name) });
    t.equal(code, 1);
    t.match(
      errorText,
      /^sprites: --state \S+ is not used, and left as it is: it is no regular file\n$/
    );
  }
  t.strictSame(readdirSync(directory), ['folder', 'pipe']);
});

t.test('a start that fails later leaves the state for the next', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const ids = writeState(t, state);
  const bytes = readFileSync(state);
  const port = await listening(t, createServer());
  const { errorText, code } = await startAndEnd(t, { state, port });
  t.equal(code, 1);
  t.match(
    errorText,
    /^sprites: 127\.0\.0\.1:\d+ is taken by another program: choose another port by --port\n$/
  );
  t.strictSame(readdirSync(directory), ['state']);
  t.ok(readFileSync(state).equals(bytes));
  const server = await startServer(t, {
    options: { ...QUICK_OPTIONS, state, capacity: ids.length + 1 }
  });
  t.equal((await server.status()).clients, ids.length);
  await server.join(); // In the record that is free.
  await server.stop();
});

t.test(
  'a journal that was copied back may be an old one: values stay, epochs are new',
  async (t) => {
    const options = { ...durableFeedOptions(t), drain: 0 };
    const one = await startServer(t, { options });
    const { body: first } = await put(one, 'a', 1);
    await one.kill();
    const journal = `${options.state}.journal-0`;
    copyFileSync(journal, `${journal}.copy`);
    renameSync(`${journal}.copy`, journal);
    const two = await startServer(t, { options });
    const { body } = await get(two, 'a', `after=${first.cursor}&delta=1`);
    t.equal(body.value, 1);
    const epochOf = (cursor) => cursor.split('-')[0];
    t.not(epochOf(body.cursor), epochOf(first.cursor));
    await two.stop();
  }
);

t.test("a directory that can't be written to is found out at the start", async (t) => {
  const directory = t.testdir({ locked: {} });
  const missing = await startAndEnd(t, { state: join(directory, 'nowhere', 'state') });
  t.equal(missing.code, 1);
  t.match(
    missing.errorText,
    /^sprites: --state \S+: its directory can't be written to \(ENOENT\)\n$/
  );
  chmodSync(join(directory, 'locked'), 0o500);
  const locked = await startAndEnd(
    t,
    { state: join(directory, 'locked', 'state') },
    WITHOUT_ROOT_RIGHTS
  );
  chmodSync(join(directory, 'locked'), 0o700);
  t.equal(locked.code, 1);
  t.match(
    locked.errorText,
    /^sprites: --state \S+: its directory can't be written to \(EACCES\)\n$/
  );
});

// ---- What goes wrong at the end -----------------------------------------------------------------

/** Stops a server that can't keep its state. Returns its exit code, its signal and its stderr. */
async function stopWithoutSaving(server) {
  server.child.kill('SIGTERM');
  const { code, signal } = await server.ended();
  return { code, signal, errorText: String(Buffer.concat(server.errors)) };
}

const NOT_SAVED =
  /^sprites: --state \S+: no snapshot can be written \(.+\); the next start goes on .*\n$/;

t.test(
  'a state that grows too large for --state-bytes is said to be so, and stays in its journal',
  async (t) => {
    const directory = t.testdir();
    const options = { ...QUICK_OPTIONS, state: join(directory, 'state'), 'state-bytes': 1024 };
    const server = await startServer(t, { options });
    const id = await server.join();
    await server.join();
    await server.throw(id, 'left', JSON.stringify({ long: 'x'.repeat(2000) }));
    const { code, errorText } = await stopWithoutSaving(server);
    t.equal(code, 1);
    t.match(errorText, NOT_SAVED);
    t.match(errorText, /--state-bytes allows 1024/);
    t.strictSame(readdirSync(directory), ['state.journal-0']);
    const less = await startAndEnd(t, { ...options, capacity: 1 });
    t.match(
      less.errorText,
      /journal-0: it needs a larger --capacity: give as large a one as before\n$/
    );
    const larger = await startServer(t, { options: { ...options, 'state-bytes': '1M' } });
    t.equal((await larger.status()).waiting, 1, 'which the next start reads');
    await larger.stop();
  }
);

t.test('with nothing else to keep it alive it waits for the disk, and goes on', async (t) => {
  // No admin port, no TLS: while a turn waits for the disk nothing listens.
  const options = { ...QUICK_OPTIONS, state: join(t.testdir(), 'state'), sync: 'turn' };
  const server = launch(options);
  t.teardown(() => server.child.kill('SIGKILL'));
  const { port } = await server.listening;
  for (let i = 0; i < 20; i += 1) {
    const answer = await fetch(`http://127.0.0.1:${port}/join`, { method: 'POST' });
    t.equal(answer.status, 201);
  }
  server.child.kill('SIGTERM');
  t.strictSame(await server.ended, [0, null], String(Buffer.concat(server.errors)));
});

/** Mounts a small file system. Returns its folder, or null where none can be mounted. */
function smallDisk(t) {
  const directory = mkdtempSync(join(tmpdir(), 'sprites-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=6m', 'none', directory], { stdio: 'ignore' });
    t.teardown(() => {
      execFileSync('umount', [directory]);
      rmSync(directory, { recursive: true });
    });
    return directory;
  } catch {
    rmSync(directory, { recursive: true });
    return null;
  }
}

t.test('a disk that is full: nothing is promised, which is said, and it heals', async (t) => {
  const directory = smallDisk(t);
  if (directory === null) return t.skip('no file system can be mounted here');
  const options = { ...QUICK_OPTIONS, state: join(directory, 'state'), 'admin-port': 0 };
  const server = await startServer(t, { options });
  t.equal(problemOf(await server.ask('POST', '/join')), 'state-unwritable');
  // `df` still shows some.
  await until(() => server.logLines.some(({ needs }) => needs?.startsWith('8 MiB free')));
  execFileSync('mount', ['-o', 'remount,size=32m', directory]);
  await until(async () => (await server.ask('POST', '/join')).status === 201);
  const id = await server.join();
  t.equal((await server.throw(id, 'left', '{"a":1}')).status, 202);
  await server.stop();
});
