import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { loadAddon } from '../../lib/base/addon.js';
import { arenaOptions, controlOf, enter, MIRROR, tell, valueOf } from '../support/arena.js';
import { problemOf } from '../support/contract.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { get, durableFeedOptions, put, tryPut } from '../support/feeds.js';
import { limitFiles, noLimit as skip, temporary } from '../support/processes.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until, untilAnswer } from '../support/until.js';

/**
 * A disk that becomes unwritable after the server has decided on a request. The tests limit the length of the server's
 * files, and lift that limit later (native/store/state_store.h). test/native/stuck_test.cc has every case of the pool.
 */

const QUICK_OPTIONS = { drain: 0, lease: 600, 'throw-rate': 0, 'log-level': 'fatal' };

/** Returns whether `wire` is closed without an answer to the request. */
async function closedWithoutAnswer(wire) {
  try {
    await wire.read();
    return false;
  } catch {
    return true;
  }
}

for (const sync of ['second', 'turn']) {
  t.test(`--sync ${sync}: nothing unwritten is answered`, { skip }, async (t) => {
    const state = join(t.testdir(), 'state');
    const options = { ...QUICK_OPTIONS, state, sync };
    const begin = () => startServer(t, { options });
    const one = await begin();
    const [thrower, receiver] = [await one.join(), await one.join()];
    const { answer } = await one.park(receiver, 'ack=0');
    const aside = await one.wire();
    t.ok(limitFiles(one.pid, 1));

    // The throw is decided before the write fails. The server neither answers nor delivers it.
    const wire = await one.wire();
    wire.send(request('POST', `/throw/${thrower}/left?n=1`, { body: '{"key":1}' }));
    t.ok(await closedWithoutAnswer(wire), 'the connection is closed');
    t.equal(problemOf(await one.throw(thrower, 'left', '{"key":1}', 'n=1')), 'state-unwritable');
    t.equal(problemOf(await one.ask('POST', '/join')), 'state-unwritable');
    aside.send(request('POST', `/throw/${thrower}/left?n=2`, { body: '{"key":2}' }));
    t.equal(problemOf(await one.read(aside)), 'state-unwritable', 'over a connection that stays');
    const early = await Promise.race([answer, pause(300)]);
    t.equal(early, undefined, 'the sprite is held back');
    t.ok((await one.adminStatus()).parked === 1, 'and its poll parked');
    const ready = await fetch(`http://${one.host}:${one.adminPort}/readyz`);
    t.match(await ready.json(), { type: 'urn:sprites:state-unwritable', status: 503 });

    // The server recovers by itself.
    t.ok(limitFiles(one.pid, 'unlimited'));
    const { body } = await answer;
    t.strictSame(
      body.sprites.map(({ sprite }) => sprite.key),
      [1]
    );
    const again = await one.throw(thrower, 'left', '{"key":1}', 'n=1');
    t.strictSame([again.status, again.body.state], [202, 'duplicate']);

    // A server that is killed while it can't write has promised nothing.
    const next = await one.park(receiver, 'ack=1');
    t.ok(limitFiles(one.pid, 1));
    const last = await one.wire();
    last.send(request('POST', `/throw/${thrower}/left?n=3`, { body: '{"key":3}' }));
    t.ok(await closedWithoutAnswer(last));
    next.answer.catch(() => {});
    one.child.kill('SIGKILL');
    await one.ended();
    const two = await begin();
    t.strictSame((await two.throw(thrower, 'left', '{"key":3}', 'n=3')).status, 202);
    const { body: once } = await two.poll(receiver, 'ack=1');
    t.strictSame(
      once.sprites.map(({ seq, sprite }) => [seq, sprite.key]),
      [[2, 3]],
      'once'
    );
    await two.stop();
  });
}

t.test('a publication that would change nothing waits for the one before', { skip }, async (t) => {
  const server = await startServer(t, { options: { ...QUICK_OPTIONS, ...durableFeedOptions(t) } });
  await put(server, 'a', 1);
  t.ok(limitFiles(server.pid, 1));
  for (const value of [2, 1]) {
    t.equal(problemOf(await tryPut(server, 'a', `${value}`)), 'state-unwritable', `${value}`);
  }
  t.ok(limitFiles(server.pid, 'unlimited'));
  await until(async () => (await get(server, 'a')).body.value === 2);
  t.equal((await tryPut(server, 'a', '1')).status, 200);
  t.equal((await get(server, 'a')).body.value, 1);
});

t.test('a program that watches hears of what holds late', { skip }, (t) => {
  const at = (file) => JSON.stringify(new URL(file, import.meta.url));
  const program = `
    import { createServer } from ${at('../../server.js')};
    import { limitFiles } from ${at('../support/processes.js')};
    const state = process.argv[1];
    const server = await createServer({ port: 0, host: '127.0.0.1', drain: 0, state });
    const next = server.watch('a', (await server.publish('a', 1)).cursor);
    limitFiles(process.pid, 1);
    const why = await server.publish('a', 2).catch(({ problem }) => problem);
    limitFiles(process.pid, 'unlimited');
    console.log(why, (await next).value);
    await server.close();`;
  const args = ['--input-type=module', '-e', program, join(t.testdir(), 'state')];
  const how = { env: plainEnvironment(), encoding: 'utf8', timeout: 60_000 };
  const { stdout, stderr } = spawnSync(process.execPath, args, how);
  t.strictSame([stdout, stderr], ['state-unwritable 2\n', '']);
  t.end();
});

t.test('a poll that is held back keeps no server that ends', { skip }, async (t) => {
  const state = join(t.testdir(), 'state');
  const server = await startServer(t, { options: { ...QUICK_OPTIONS, state } });
  const [thrower, receiver] = [await server.join(), await server.join()];
  const { wire, answer } = await server.park(receiver, 'ack=0');
  t.ok(limitFiles(server.pid, 1));
  const other = await server.wire();
  other.send(request('POST', `/throw/${thrower}/left?n=1`, { body: '{"key":1}' }));
  t.ok(await closedWithoutAnswer(other));
  server.child.kill('SIGTERM');
  t.match((await answer).body, { sprites: [], retry: Number });
  wire.send(request('GET', `/poll/${receiver}?ack=0`));
  t.ok(await closedWithoutAnswer(wire));
  t.equal((await server.ended()).code, 1, 'its state is in the journal');
});

t.test('nor what a worker has asked for', { skip }, async (t) => {
  const state = join(t.testdir(), 'state');
  const server = await startServer(t, {
    options: { ...QUICK_OPTIONS, state, workers: 1, 'transient-port': 0 }
  });
  const thrower = await server.join();
  const receiver = await server.join();
  const { answer } = await server.park(receiver, 'ack=0');
  const worker = await Wire.open(server.transientPort, server.host);
  worker.send(request('POST', `/throw/${thrower}/left?n=1`, { body: '{"key":1}' }));
  t.equal((await worker.read()).status, 202);
  t.equal((await answer).body.sprites.length, 1);
  const { answer: later } = await server.park(receiver, 'ack=1');
  t.ok(limitFiles(server.pid, 1));
  worker.send(request('POST', `/throw/${thrower}/left?n=2`, { body: '{"key":2}' }));
  t.ok(await closedWithoutAnswer(worker), 'the connection is closed');
  const other = await Wire.open(server.transientPort, server.host);
  other.send(request('POST', `/throw/${thrower}/left?n=2`, { body: '{"key":2}' }));
  t.equal(problemOf(await other.read()), 'state-unwritable');
  t.ok(limitFiles(server.pid, 'unlimited'));
  t.equal((await later).body.sprites[0].sprite.key, 2);
  await until(
    async () => {
      other.send(request('POST', `/throw/${thrower}/left?n=2`, { body: '{"key":2}' }));
      return (await other.read()).body.state === 'duplicate';
    },
    () => 'it is taken once'
  );
  await other.destroy();
  await server.stop();
});

// ---- Files that are removed ---------------------------------------------------------------------

/** Throws until an answer has this status. Returns that answer. */
const throwUntil = (server, id, wanted) =>
  untilAnswer(
    () => server.throw(id, 'left', '{"key":1}'),
    ({ status }) => status === wanted
  );

t.test('a folder that goes, and comes back empty,', async (t) => {
  const folder = join(t.testdir({ kept: {} }), 'kept');
  const options = { ...QUICK_OPTIONS, state: join(folder, 'state') };
  const one = await startServer(t, { options });
  const [id, receiver] = [await one.join(), await one.join()];
  t.equal((await one.throw(id, 'left', '{"key":0}')).status, 202);
  rmSync(folder, { recursive: true });
  t.equal(problemOf(await throwUntil(one, id, 503)), 'state-unwritable');
  const { body } = await one.poll(receiver);
  t.equal(body.sprites[0].sprite.key, 0, 'a poll is answered');
  mkdirSync(folder);
  await throwUntil(one, id, 202);
  t.strictSame(readdirSync(folder).toSorted(), ['state', 'state.journal-1', 'state.lock']);
  const { thrown, waiting } = await one.status();
  one.child.kill('SIGKILL');
  await one.ended();
  const two = await startServer(t, { options });
  t.match(await two.status(), { thrown, waiting, clients: 2 });
  await two.stop();
  t.strictSame(readdirSync(folder), ['state']);
});

t.test('a state that another server has in the place of a lost one is not touched', async (t) => {
  const { takeFileLock, releaseFileLock } = loadAddon();
  const root = t.testdir({ kept: {}, other: { state: 'theirs' } });
  const [folder, other] = ['kept', 'other'].map((name) => join(root, name));
  const lock = takeFileLock(join(other, 'state.lock'));
  const options = { ...QUICK_OPTIONS, state: join(folder, 'state'), 'log-level': 'error' };
  const one = await startServer(t, { options });
  const id = await one.join();
  renameSync(folder, `${folder}.away`);
  renameSync(other, folder);
  t.equal(problemOf(await throwUntil(one, id, 503)), 'state-unwritable');
  await one.until(() => String(Buffer.concat(one.errors)).includes('another server has begun'));
  t.equal(readFileSync(join(folder, 'state'), 'latin1'), 'theirs');
  // When the other server has ended, and its state is gone, too, the place is free.
  rmSync(join(folder, 'state'));
  releaseFileLock(lock, join(folder, 'state.lock'));
  await throwUntil(one, id, 202);
  await one.stop();
});

for (const how of ['was written to', 'was not written to']) {
  t.test(`a server whose place another has ends beside it: its journal ${how}`, async (t) => {
    const { takeFileLock, releaseFileLock } = loadAddon();
    const theirs = { state: 'theirs', 'state.journal-0': 'theirs', 'state.journal-1': 'theirs' };
    const root = t.testdir({ kept: {}, other: theirs });
    const [folder, other] = ['kept', 'other'].map((name) => join(root, name));
    const state = join(folder, 'state');
    const first = await startServer(t, { options: { ...QUICK_OPTIONS, state } });
    const id = await first.join();
    await first.stop();
    const one = await startServer(t, { options: { ...QUICK_OPTIONS, state } });
    if (how === 'was written to') await one.join();
    const lock = takeFileLock(join(other, 'state.lock'));
    renameSync(folder, `${folder}.away`);
    renameSync(other, folder);
    await one.until(({ stateBlocked }) => stateBlocked === 1);
    one.child.kill('SIGTERM');
    t.equal((await one.ended()).code, 1);
    for (const name of Object.keys(theirs)) {
      t.equal(readFileSync(join(folder, name), 'latin1'), 'theirs', name);
    }
    releaseFileLock(lock, join(folder, 'state.lock'));

    const secondServer = await startServer(t, {
      options: { ...QUICK_OPTIONS, state: `${state}.${one.pid}` }
    });
    t.equal((await secondServer.ask('GET', `/place/${id}`)).status, 200, 'nothing is lost');
    await secondServer.stop();
  });
}

t.test('the lock is taken again where its file was removed', async (t) => {
  const folder = t.testdir();
  const options = { ...QUICK_OPTIONS, state: join(folder, 'state') };
  const one = await startServer(t, { options });
  await one.join();
  for (const name of readdirSync(folder)) rmSync(join(folder, name));
  await one.until(() => readdirSync(folder).includes('state.lock'));
  const second = startServer(t, { options: { ...options, 'state-wait': 0 } });
  await t.rejects(second, /is used by another server/);
  await one.stop();
  t.strictSame(readdirSync(folder), ['state']);
});

// ---- An arena

/** A game that a player can end. */
const ENDING_GAME = {
  ...MIRROR,
  'reduce.js': 'export const reduce = ({ inputs }) => ({ over: inputs.taps.includes(7) });'
};

t.test('a player whose join is unwritten is not told of it', { skip }, async (t) => {
  const options = { ...QUICK_OPTIONS, ...arenaOptions(t), state: join(temporary(t), 'state') };
  const one = await startServer(t, { options });
  t.ok(limitFiles(one.pid, 1));
  const wire = await one.wire();
  wire.send(request('POST', '/arena/hall'));
  t.ok(await closedWithoutAnswer(wire), 'the connection is closed');
  t.equal(problemOf(await one.ask('POST', '/arena/hall')), 'state-unwritable');
  t.ok(limitFiles(one.pid, 'unlimited'));
  await until(async () => (await one.ask('POST', '/arena/hall')).status === 201);
  await one.stop();
});

t.test(
  'a round that ends meanwhile has ended for its watchers, when it heals',
  { skip },
  async (t) => {
    const playing = arenaOptions(t, { 'a-ends': ENDING_GAME });
    const state = join(temporary(t), 'state');
    const options = { ...QUICK_OPTIONS, ...playing, state, 'log-level': 'error' };
    const one = await startServer(t, { options });
    const player = await enter(one);
    await tell(one, { running: true });
    await valueOf(one, ({ value }) => value !== null);
    t.ok(limitFiles(one.pid, 1));
    await one.until(({ stateBlocked }) => stateBlocked === 1);
    t.equal((await player.send({ taps: 7 })).status, 204);
    await one.until(() => String(Buffer.concat(one.errors)).includes('a control is not published'));
    t.ok(limitFiles(one.pid, 'unlimited'));
    t.equal((await controlOf(one, ({ running }) => !running)).round, 1);
    await one.stop();
  }
);
