import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
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

import { readOptions } from '../../lib/operator/options.js';
import { EDGES, Pool } from '../../lib/torus/pool.js';
import { problemOf } from '../support/contract.js';
import { request } from '../support/http.js';
import { launch, launchToEnd, SPRITES } from '../support/launch.js';
import { ANY_SIZE, load, makePool } from '../support/pool.js';
import { lengthOf, until } from '../support/until.js';
import { lasting, startServer } from '../support/server.js';

// Some forty starts of a server, on a machine that may have other things to do.
t.setTimeout(600_000);

/** Where things are in the file, written down here a second time on purpose. */
const VERSION = 8;
const BYTE_ORDER = 12;
const HEADER = 120; // with what version 2 has added
const CLIENT = 56;
/** That there is no world, no feed and no note. */
const BESIDE = 4 + 16;
/** Of one client: an address in the table of one, the client's number in it, and the checksum. */
const TAIL = 4 + 16 + 4 + BESIDE + 4;

const ROOM = 400;

// ---- In process: the pool -----------------------------------------------------------------------

const newPool = (t, options) => makePool(t, { capacity: ROOM, lease: 3600, ...options });

/** What a poll says at once; null when it would be parked. */
function look(pool, id, ack) {
  const { outcome, body, cancel } = pool.poll(id, { ack }, () => {});
  cancel();
  if (outcome !== 'ok') return outcome;
  return body === undefined ? null : JSON.parse(body);
}

const sprite = (name) => Buffer.from(JSON.stringify({ name, text: 'ä"\\'.repeat(name % 7) }));

/** The same numbers at every run: below `most` each. */
function randomly(seed) {
  let state = seed;
  return (most) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * most);
  };
}

/** A pool with a past: holes in the torus, sprites read, unread and half read, throws numbered. */
function livedIn(t, clients = 200) {
  const pool = newPool(t);
  const random = randomly(clients);
  const all = Array.from({ length: clients }, () => pool.join().id);
  const acks = new Map(all.map((id) => [id, 0]));
  const ids = [...all];
  for (let i = 0; i < clients * 8; i += 1) {
    const id = ids[random(ids.length)];
    pool.throw(id, EDGES[random(4)], i % 3 === 0 ? -1 : i, sprite(i));
    const reader = ids[random(ids.length)];
    const said = look(pool, reader, acks.get(reader));
    if (said !== null && i % 2 === 0) acks.set(reader, said.seq);
    if (i % 20 === 0 && ids.length > clients / 2) {
      pool.leave(ids.splice(random(ids.length), 1)[0]);
    }
    if (i % 50 === 0) {
      const { id: newcomer } = pool.join();
      acks.set(newcomer, 0);
      ids.push(newcomer);
    }
  }
  // The last things before the end are throws, so that some have never been in any answer.
  for (let i = 0; i < clients; i += 1) {
    pool.throw(ids[random(ids.length)], EDGES[random(4)], 10000 + 2 * i, sprite(i));
  }
  return { pool, ids, acks, gone: all.filter((id) => !ids.includes(id)) };
}

function saved(t, pool) {
  const path = join(t.testdir(), 'state');
  pool.save(path, ANY_SIZE);
  return path;
}

function loaded(t, path, options) {
  const pool = newPool(t, options);
  load(pool, path);
  return pool;
}

t.test('a loaded pool has every id, place, count and byte of the saved one', async (t) => {
  const { pool, ids, gone } = livedIn(t);
  const before = pool.status();
  const path = saved(t, pool);
  t.strictSame(pool.status(), before, 'saving changes nothing');
  const after = loaded(t, path);
  t.strictSame(lasting(after.status()), lasting(before));
  t.ok(before.waiting > 100 && before.acked > 100 && before.flown > 10, 'there was something');
  assert.deepEqual(
    ids.map((id) => after.place(id)),
    ids.map((id) => pool.place(id))
  );
  t.ok(
    gone.length > 10 && gone.every((id) => after.place(id) === null),
    'a client that left is not back'
  );
  after.save(`${path}.again`, ANY_SIZE);
  t.ok(
    readFileSync(path).equals(readFileSync(`${path}.again`)),
    'saved again, it is the same file'
  );
});

t.test(
  'a loaded pool goes on as the saved one does, throw for throw and poll for poll',
  async (t) => {
    const { pool, ids, acks } = livedIn(t);
    const pools = [pool, loaded(t, saved(t, pool))];
    const same = (what, act) => {
      const [one, other] = pools.map(act);
      assert.deepEqual(other, one, what);
      return one;
    };
    const outcomes = new Set();
    for (const id of ids) {
      // What no answer has carried can't be acked, however much of it waits.
      outcomes.add(same('an ack ahead', (of) => look(of, id, acks.get(id) + 200)));
      for (let ack = acks.get(id) + 12; ack > acks.get(id); ack -= 1) {
        same('what may be acked', (of) => look(of, id, ack) === 'ack-ahead');
      }
      same('what waits, and its numbers', (of) => look(of, id, acks.get(id)));
    }
    for (const [i, id] of ids.entries()) {
      for (const edge of EDGES) same('a throw', (of) => of.throw(id, edge, -1, sprite(i)));
      for (let n = 9990; n < 10400; n += 1) {
        outcomes.add(same(`the number ${n}`, (of) => of.throw(id, 'left', n, sprite(n))));
      }
    }
    for (const id of ids)
      same('which client got them, by which edge', (of) => look(of, id, acks.get(id)));
    for (const outcome of ['ack-ahead', 'duplicate', 'queued', 'stale-number', 'neighbor-busy']) {
      t.ok(outcomes.has(outcome), `${outcome} was among the outcomes`);
    }
    for (const id of ids.filter((_, i) => i % 3 === 0)) same('a leave', (of) => of.leave(id));
    same('what flew on', (of) => ids.map((id) => [of.place(id), look(of, id, acks.get(id))]));
    same('every count', (of) => lasting(of.status()));
  }
);

t.test('a loaded pool has room again: records that were free are given out', async (t) => {
  const { pool, ids } = livedIn(t);
  const after = loaded(t, saved(t, pool));
  const newcomers = [];
  for (let it = after.join(); it.outcome === 'ok'; it = after.join()) newcomers.push(it.id);
  t.equal(newcomers.length, ROOM - ids.length);
  t.equal(new Set([...newcomers, ...ids]).size, ROOM);
  t.ok(ids.every((id) => after.place(id)));
});

t.test('leases start anew, and then they run', async (t) => {
  const pool = newPool(t, { lease: 1 });
  const { id } = pool.join();
  const path = saved(t, pool);
  pool.close();
  await sleep(2000);
  const after = loaded(t, path, { lease: 1 });
  t.ok(after.place(id), 'it is there, long after its lease would have been up');
  await until(() => !after.place(id));
  t.equal(after.status().expired, 1);
});

t.test('an empty pool is saved and loaded as well', async (t) => {
  const path = saved(t, newPool(t));
  t.equal(readFileSync(path).length, HEADER + 4 + BESIDE + 4, 'without addresses');
  const pool = loaded(t, path);
  t.equal(pool.status().clients, 0);
  t.equal(pool.join().outcome, 'ok');
});

t.test('no part of a state that is cut off or damaged is taken', async (t) => {
  const { pool, ids } = livedIn(t, 20);
  const path = saved(t, pool);
  const whole = readFileSync(path);
  const bad = `${path}.bad`;
  const refuse = (bytes, why) => {
    writeFileSync(bad, bytes);
    const fresh = new Pool({ ...readOptions([]), capacity: ROOM });
    try {
      assert.throws(
        () => load(fresh, bad),
        (error) => error.code === undefined && /^it (is|has) [ -~]+$/.test(error.message),
        why
      );
    } finally {
      fresh.close();
    }
    assert.ok(readFileSync(bad).equals(bytes), `${why}: the file is as it was`);
  };
  for (
    let length = 0;
    length < whole.length;
    length += length < 400 ? 1 : lengthOf({ short: 53, long: 13 })
  ) {
    refuse(whole.subarray(0, length), `cut off after ${length} bytes`);
  }
  for (
    let bit = 0;
    bit < whole.length * 8;
    bit += bit < 1000 ? 1 : lengthOf({ short: 163, long: 41 })
  ) {
    const bytes = Buffer.from(whole);
    bytes[bit >> 3] ^= 1 << (bit & 7);
    refuse(bytes, `bit ${bit} is flipped`);
  }
  refuse(Buffer.concat([whole, Buffer.from([0])]), 'a byte more');
  t.ok(
    ids.every((id) => loaded(t, path).place(id)),
    'the whole one is good'
  );
});

/** The same bytes with a checksum that holds. */
function signed(bytes) {
  const end = bytes.length - 4;
  if (end >= 0) bytes.writeUInt32LE(crc32(bytes.subarray(0, end)), end);
  return bytes;
}

t.test('a state larger than allowed is not written, and what was there stays', async (t) => {
  const pool = newPool(t);
  pool.join();
  const path = join(t.testdir({ state: 'old' }), 'state');
  t.throws(() => pool.save(path, HEADER + CLIENT + TAIL - 1), /has 224 bytes, .* allows 223/);
  t.equal(readFileSync(path, 'utf8'), 'old');
  rmSync(path);
  t.strictSame(pool.save(path, HEADER + CLIENT + TAIL), { clients: 1, sprites: 0, bytes: 224 });
  t.equal(readFileSync(path).length, 224);
});

// ---- The server, restarted ----------------------------------------------------------------------

const QUICK = { drain: 0, lease: 600, 'throw-rate': 0, 'log-level': 'warn' };

t.test('a restart changes nothing for any client', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const begin = () => startServer(t, { options: { ...QUICK, state } });
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
  // The first has read and acked two, the second has read without an ack, the others nothing.
  const {
    body: { sprites }
  } = await one.poll(ids[0]);
  const acked = sprites[1].seq;
  const first = (await one.poll(ids[0], `ack=${acked}`)).body;
  const second = (await one.poll(ids[1])).body;
  const last = await one.status();
  await one.stop();
  t.strictSame(readdirSync(directory), ['state']);

  const two = await begin();
  t.strictSame(readdirSync(directory), ['state', 'state.journal-1', 'state.lock']);
  t.strictSame(lasting(await two.status()), lasting(last));
  t.equal(problemOf(await two.poll(ids[2], 'ack=1')), 'ack-ahead', 'none of its was ever sent');
  t.strictSame((await two.poll(ids[0], `ack=${acked}`)).body, first, 'the same with the same seq');
  t.strictSame((await two.poll(ids[1])).body, second, 'unacked, they come again');
  for (const id of ids) {
    const answer = await two.throw(id, 'up', '{"by":"again"}', 'n=12');
    t.strictSame([answer.status, answer.body.state], [202, 'duplicate']);
  }
  for (const id of ids.slice(2)) {
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
  // Killed, it has lost nothing either.
  const killed = await two.status();
  two.child.kill('SIGKILL');
  await two.ended();
  const three = await begin();
  t.strictSame(lasting(await three.status()), lasting(killed));
  const { body: again } = await three.poll(ids[1]);
  t.strictSame(again.sprites, second.sprites, 'unacked, they come again');
  await three.stop();
  t.strictSame(readdirSync(directory), ['state'], 'an end in order leaves no journal');
});

t.test('a client parked at SIGTERM is told when to come back', async (t) => {
  const drain = 3;
  const state = join(t.testdir(), 'state');
  const options = { ...QUICK, drain, state };
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
  // Over connections that are there, throws are still taken, and joins no more.
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
  t.equal((await two.status()).clients, ids.length);
  const again = [];
  for (const [i, id] of ids.entries()) {
    const wire = await two.wire();
    wire.send(request('GET', `/poll/${id}?ack=${answers[i].body.seq}`));
    again.push(wire);
  }
  const { acked, waiting } = await two.until(({ polls }) => polls >= ids.length);
  t.equal(acked + waiting, 1, 'what was thrown at the last moment is acked, or waits');
  await two.stop();
  for (const wire of again) await wire.destroy();
});

t.test('a request that is under way at SIGTERM has its answer', async (t) => {
  const one = await startServer(t, { options: { ...QUICK, drain: 0 } });
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
  // Slowly: for some of the moments at which the server looks whether it has answered all.
  for (const character of ':true}') {
    for (const wire of [cold, hot]) wire.send(character);
    await sleep(50);
  }
  for (const wire of [cold, hot]) t.equal((await wire.read()).status, 202);
  t.strictSame(await one.ended(), { code: 0, signal: null });
});

t.test('workers are no hindrance: what came in by them is kept', async (t) => {
  const state = join(t.testdir(), 'state');
  const options = { ...QUICK, state, workers: 1, 'transient-port': 0 };
  const one = await startServer(t, { options });
  const id = await one.join();
  t.equal((await one.throw(id, 'left', '{"a":1}', 'n=5')).status, 202);
  await one.stop();
  const two = await startServer(t, { options });
  t.strictSame(
    (await two.poll(id)).body.sprites.map((it) => it.sprite),
    [{ a: 1 }]
  );
  t.equal((await two.throw(id, 'left', '{"a":1}', 'n=5')).body.state, 'duplicate');
  await two.stop();
});

// ---- Two servers, one state ---------------------------------------------------------------------

t.test('a server started while the one before is ending goes on with its state', async (t) => {
  const directory = t.testdir();
  // Longer than the next takes to start, on a busy machine too.
  const options = { ...QUICK, drain: 8, state: join(directory, 'state') };
  const one = await startServer(t, { options });
  const ids = [];
  for (let i = 0; i < 5; i += 1) ids.push(await one.join());
  t.equal((await one.throw(ids[0], 'left', '{"a":1}')).status, 202);
  const parked = [];
  for (const id of ids) parked.push(await one.park(id));
  const last = await one.status();
  one.child.kill('SIGTERM');
  const two = await startServer(t, { options });
  t.strictSame(await one.ended(), { code: 0, signal: null }, 'the one before has ended first');
  const waits = { msg: 'waits for the state of another server', holder: one.pid, seconds: 60 };
  t.match(two.logged, [waits], 'which is said');
  t.strictSame(lasting(await two.status()), lasting(last));
  for (const { answer } of parked) await answer.catch(() => {});
  await two.stop();
  t.strictSame(readdirSync(directory), ['state']);
  const three = await startServer(t, { options });
  t.strictSame(lasting(await three.status()), lasting(last), 'and so does the next');
  await three.stop();
});

t.test('a second server with the same state is refused, in time, and harms nothing', async (t) => {
  const directory = t.testdir();
  const options = { ...QUICK, state: join(directory, 'state') };
  const one = await startServer(t, { options });
  const id = await one.join();
  const { says, code } = await startAndEnd(t, { ...options, 'state-wait': 0 });
  t.equal(code, 1);
  t.equal(
    says,
    `sprites: --state ${options.state} is used by another server (process ${one.pid}):` +
      ' end that one, or give this one a file of its own\n'
  );
  t.equal((await one.poll(id, 'hold=5&ack=1')).status, 400, 'the first still knows its client');
  await one.stop();
  t.strictSame(readdirSync(directory), ['state']);
});

t.test('a server that waits for the state ends when it is told to', async (t) => {
  const directory = t.testdir();
  const options = { ...QUICK, state: join(directory, 'state') };
  const one = await startServer(t, { options });
  const { child, ended, listening } = launch(options);
  listening.catch(() => {});
  t.teardown(() => child.kill('SIGKILL'));
  const [line] = await once(child.stderr, 'data');
  t.match(String(line), /waits for the state/);
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
  await one.stop();
  t.strictSame(readdirSync(directory), ['state'], 'the lock was not its to remove');
});

t.test('a state that another has put there meanwhile is not written over', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const server = await startServer(t, { options: { ...QUICK, state } });
  await server.join();
  // As by a server of a version that knows no lock.
  writeFileSync(state, 'of another');
  const { code, says } = await stopInVain(server);
  t.equal(code, 1);
  const aside = `${state}.${server.pid}`;
  t.match(says, `this one's lies at ${aside}`);
  t.equal(readFileSync(state, 'utf8'), 'of another');
  const pool = newPool(t);
  t.equal(load(pool, aside).clients, 1, 'nothing is lost');
});

t.test('no link is followed, neither to read a state nor to write one', async (t) => {
  const directory = t.testdir({ victim: 'precious', links: {} });
  const victim = join(directory, 'victim');
  const state = join(directory, 'links', 'state');
  const pool = newPool(t);
  pool.join();

  symlinkSync(victim, `${state}.new`);
  pool.save(state, ANY_SIZE);
  t.equal(load(newPool(t), state).clients, 1);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE.new');

  rmSync(state);
  symlinkSync(victim, state);
  const read = await startAndEnd(t, { state });
  t.match(read.says, /is not used, and left as it is: it is a link/);
  t.throws(() => pool.save(state, ANY_SIZE), /another server has written/);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE');

  rmSync(state);
  symlinkSync(victim, `${state}.lock`);
  const locked = await startAndEnd(t, { state });
  t.strictSame([read.code, locked.code], [1, 1]);
  t.match(locked.says, /state\.lock can't be locked/);
  t.equal(readFileSync(victim, 'utf8'), 'precious', 'by FILE.lock');
});

t.test("a state's sprites, ids and numbers are checked like a stranger's", async (t) => {
  const pool = newPool(t);
  const { id } = pool.join();
  pool.throw(id, 'left', 1, Buffer.from('{"a":1}'));
  const whole = readFileSync(saved(t, pool));
  const client = HEADER;
  const text = HEADER + CLIENT + 8;
  const joined = 48;
  const cases = {
    'a sprite that is no JSON': [(bytes) => bytes.write('{"a":1]', text), /a sprite in it/],
    'a sprite with a line feed in a name': [
      (bytes) => bytes.write('{"\n":1}', text),
      /a sprite in it/
    ],
    'two objects for one': [(bytes) => bytes.write('{}{   }', text), /a sprite in it/],
    'an id of another form': [(bytes) => bytes.writeUInt8(0x41, client + 8 + 6), /a client in it/],
    'a throw number beyond the largest': [
      (bytes) => bytes.writeBigUInt64LE(2n ** 53n, client + 24),
      /a client in it/
    ],
    'a sequence beyond the largest': [
      (bytes) => bytes.writeBigUInt64LE(2n ** 53n, client + 40),
      /a client in it/
    ],
    'joins that do not add up': [
      (bytes) => bytes.writeBigUInt64LE(7n, joined),
      /its counts do not add up/
    ],
    'counts that only add up by wrapping around': [
      (bytes) => {
        bytes.writeBigUInt64LE(2n ** 64n - 1n, joined + 8 * 5); // lost
        bytes.writeBigUInt64LE(0n, joined + 8 * 3); // thrown
      },
      /its counts do not add up/
    ]
  };
  for (const [name, [change, why]] of Object.entries(cases)) {
    const bytes = Buffer.from(whole);
    change(bytes);
    const path = join(t.testdir({ changed: signed(bytes) }), 'changed');
    t.throws(() => load(newPool(t), path), why, name);
  }
});

// ---- What goes wrong at the start ---------------------------------------------------------------

/** Runs a server that can't start; `command` may come before it. */
async function startAndEnd(t, options, command = []) {
  const { code, errors: says } = await launchToEnd(
    t,
    { ...QUICK, ...options },
    { command: [...command, ...SPRITES] }
  );
  return { code, says };
}

/** Root is held to the permissions of files only without these. */
const AS_ANYBODY =
  process.getuid() === 0 ? ['setpriv', '--bounding-set=-dac_override,-dac_read_search'] : [];

t.test("a state that can't be used is refused in one line, and left as it is", async (t) => {
  const { pool, ids } = livedIn(t, 20);
  const whole = readFileSync(saved(t, pool));
  const change = (at, value) => {
    const bytes = Buffer.from(whole);
    bytes.writeUInt32LE(value, at);
    return signed(bytes);
  };
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
    'a version before the first': [change(VERSION, 0), /unknown version/],
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
    const user = mode === 0 ? AS_ANYBODY : [];
    const { says, code } = await startAndEnd(t, { state, ...options }, user);
    t.equal(code, 1, name);
    t.match(
      says,
      new RegExp(`^sprites: --state ${state} is not used, and left as it is: .+\n$`),
      name
    );
    t.match(says, line, name);
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
    const { says, code } = await startAndEnd(t, { state: join(directory, name) });
    t.equal(code, 1);
    t.match(says, /^sprites: --state \S+ is not used, and left as it is: it is no regular file\n$/);
  }
  t.strictSame(readdirSync(directory), ['folder', 'pipe']);
});

t.test('a start that fails later leaves the state for the next', async (t) => {
  const { pool, ids } = livedIn(t, 20);
  const directory = t.testdir();
  const state = join(directory, 'state');
  pool.save(state, ANY_SIZE);
  const bytes = readFileSync(state);
  const other = createServer().listen(0, '127.0.0.1');
  await once(other, 'listening');
  const { says, code } = await startAndEnd(t, { state, port: other.address().port });
  other.close();
  t.equal(code, 1);
  t.match(
    says,
    /^sprites: 127\.0\.0\.1:\d+ is taken by another program: choose another port by --port\n$/
  );
  t.strictSame(readdirSync(directory), ['state']);
  t.ok(readFileSync(state).equals(bytes));
  const server = await startServer(t, { options: { ...QUICK, state } });
  t.equal((await server.status()).clients, ids.length);
  await server.stop();
});

t.test("a directory that can't be written to is found out at the start", async (t) => {
  const directory = t.testdir({ locked: {} });
  const missing = await startAndEnd(t, { state: join(directory, 'nowhere', 'state') });
  t.equal(missing.code, 1);
  t.match(missing.says, /^sprites: --state \S+: its directory can't be written to \(ENOENT\)\n$/);
  chmodSync(join(directory, 'locked'), 0o500);
  const locked = await startAndEnd(t, { state: join(directory, 'locked', 'state') }, AS_ANYBODY);
  chmodSync(join(directory, 'locked'), 0o700);
  t.equal(locked.code, 1);
  t.match(locked.says, /^sprites: --state \S+: its directory can't be written to \(EACCES\)\n$/);
});

// ---- What goes wrong at the end -----------------------------------------------------------------

/** Stops a server that can't keep its state; gives what it says. */
async function stopInVain(server) {
  server.child.kill('SIGTERM');
  const { code, signal } = await server.ended();
  return { code, signal, says: String(Buffer.concat(server.errors)) };
}

const LOST =
  /^sprites: --state \S+: no snapshot can be written \(.+\); the next start goes on .*\n$/;

t.test(
  'a state that grows too large for --state-bytes is said to be so, and stays in its journal',
  async (t) => {
    const directory = t.testdir();
    const options = { ...QUICK, state: join(directory, 'state'), 'state-bytes': 1024 };
    const server = await startServer(t, { options });
    const id = await server.join();
    await server.join();
    await server.throw(id, 'left', JSON.stringify({ long: 'x'.repeat(2000) }));
    const { code, says } = await stopInVain(server);
    t.equal(code, 1);
    t.match(says, LOST);
    t.match(says, /--state-bytes allows 1024/);
    t.strictSame(readdirSync(directory), ['state.journal-0']);
    const less = await startAndEnd(t, { ...options, capacity: 1 });
    t.match(less.says, /journal-0: it needs a larger --capacity: give as large a one as before\n$/);
    const larger = await startServer(t, { options: { ...options, 'state-bytes': '1M' } });
    t.equal((await larger.status()).waiting, 1, 'which the next start reads');
    await larger.stop();
  }
);

t.test('with nothing else to keep it alive it waits for the disk, and goes on', async (t) => {
  // No admin port, no TLS: while a turn waits for the disk nothing listens.
  const options = { ...QUICK, state: join(t.testdir(), 'state'), sync: 'turn' };
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

/** A small file system, or null where none can be mounted. */
function smallDisk(t) {
  const directory = mkdtempSync(join(tmpdir(), 'sprites-disk-'));
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'none', directory], {
      stdio: 'ignore'
    });
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
  const options = { ...QUICK, state: join(directory, 'state'), 'admin-port': 0 };
  const server = await startServer(t, { options });
  t.equal(problemOf(await server.ask('POST', '/join')), 'state-unwritable');
  execFileSync('mount', ['-o', 'remount,size=32m', directory]);
  await until(async () => (await server.ask('POST', '/join')).status === 201);
  const id = await server.join();
  t.equal((await server.throw(id, 'left', '{"a":1}')).status, 202);
  await server.stop();
});
