import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { until } from '../support/until.js';
import { Beside } from './trend.js';
import { start } from './crash.js';
import { Skip, stopwatch } from './scene.js';

/** A signal in every few milliseconds of a start, and of a stop: each next start serves, with all that was promised. */

const SIGNALS = ['SIGKILL', 'SIGTERM', 'SIGHUP', 'SIGQUIT'];

/** Milliseconds between two moments, and the last moment of a start, of a stop. */
const STEP = 5;
const START = 600;
const STOP = 300;

/** Every so many signals a server is let through, and held to what was promised. */
const CHECKED = 5;

async function post(port, path, body) {
  const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method: 'POST', body });
  return answer.json();
}

async function run(scene) {
  const times = scene.short ? 60 : 2000;
  const folder = await scene.folder();
  const beside = new Beside(folder);
  const options = {
    ...{ host: '127.0.0.1', port: 0, state: join(folder, 'state'), lease: 300, drain: 0 },
    ...{ 'log-level': 'warn', 'journal-bytes': 1 << 16, ...beside.options }
  };
  let id;
  let thrown = 0;
  let moments = 0;
  for (let i = 0; i < times; i += 1) {
    const moment = ((i * STEP * 7) % START) + Math.random() * STEP;
    await start(scene, options, { signal: SIGNALS[i % SIGNALS.length], after: moment });
    moments += 1;
    if (i % CHECKED !== 0) continue;

    const server = await start(scene, options);
    await beside.check(server);
    id ??= (await post(server.port, '/join')).id;
    const poll = await fetch(`http://127.0.0.1:${server.port}/poll/${id}?ack=0&hold=5`);
    const { sprites = [] } = thrown > 0 ? await poll.json() : { sprites: [] };
    assert.equal(sprites.length, thrown, 'each sprite that was promised is there, once');
    if (thrown < 20) {
      // Alone it catches what it throws.
      await post(server.port, `/throw/${id}/left?n=${thrown + 1}`, `{"u":${thrown}}`);
      thrown += 1;
    }
    await beside.begin(server);
    await pause(20);
    server.child.kill(i % 2 === 0 ? 'SIGTERM' : 'SIGHUP');
    await pause(((i * STEP) % STOP) + Math.random() * STEP);
    server.child.kill(SIGNALS[(i / CHECKED) % 2 === 0 ? 0 : 3]);
    await server.ended;
    await beside.stop();
    moments += 1;
  }
  const server = await start(scene, options);
  await beside.check(server);
  return `${moments} signals; ${beside.published} publications and ${thrown} sprites promised, none missing`;
}

export const signals = {
  name: 'a signal at any moment of a start and of a stop',
  promise:
    'each next start serves, with every client, sprite, feed, player and ban that was promised',
  longest: 3600,
  run
};

/** The wall clock, set back under a running server. */

/**
 * Lies about the wall clock, and only about that, while a file is there. A time namespace would not
 * do: it shifts the monotonic clocks alone.
 */
const SHIM = `
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static long back(void) {
  const char* file = getenv("CLOCK_SET_BACK_WHILE");
  return file != NULL && syscall(SYS_access, file, F_OK) == 0 ? 3600 : 0;
}
int clock_gettime(clockid_t id, struct timespec* out) {
  const int result = syscall(SYS_clock_gettime, id, out);
  if (result == 0 && (id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE)) out->tv_sec -= back();
  return result;
}
int gettimeofday(struct timeval* restrict out, void* restrict zone) {
  const int result = syscall(SYS_gettimeofday, out, zone);
  if (result == 0) out->tv_sec -= back();
  return result;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != NULL) *out = now.tv_sec;
  return now.tv_sec;
}
`;

export const clock = {
  name: 'clock set back by an hour',
  promise: 'holds and leases take as long as ever; nothing promised is lost',
  async run(scene) {
    const folder = await scene.folder();
    const source = join(folder, 'clock.c');
    const shim = join(folder, 'clock.so');
    await writeFile(source, SHIM);
    const built = spawnSync('cc', ['-shared', '-fPIC', '-O1', '-o', shim, source]);
    if (built.status !== 0) throw new Skip(`no shim can be built here: ${built.stderr ?? 'no cc'}`);
    const flag = join(folder, 'set-back');
    const server = await scene.server(
      { hold: 5, lease: 3 },
      { env: { LD_PRELOAD: shim, CLOCK_SET_BACK_WHILE: flag } }
    );
    await scene.crowd(server, { clients: 10, pace: 100 });
    const holder = await server.join();
    const away = await server.join();
    const took = stopwatch();
    const dateBefore = await dateOf(server);
    const { answer } = await server.park(holder, 'ack=0');
    await writeFile(flag, '');
    // Node keeps the Date of its answers for a second.
    const shift = await until(
      async () => {
        const seconds = ((await dateOf(server)) - dateBefore) / 1000;
        return seconds < -3500 && seconds;
      },
      'the clock goes back',
      5
    );
    assert.ok(shift > -3700, `the clock went by ${shift} s`);
    await server.until((status) => status.expired >= 1, 20);
    const lease = took();
    assert.ok(lease >= 2.9 && lease < 12, `the lease took ${lease} s`);
    // The away one's neighbors may throw to the holder: whatever ends its poll, it ends in time.
    const { status } = await answer;
    const hold = took();
    assert.equal(status, 200);
    assert.ok(hold < 15, `the hold took ${hold} s`);
    assert.equal((await server.poll(away)).status, 404);
    for (const crowd of scene.crowds) await crowd.quiet();
    const seen = await undisturbedHold(scene, server);
    assert.ok(seen >= 4.9 && seen < 12, `an undisturbed hold took ${seen} s`);
    assert.equal(scene.ledger.gone, 0, 'no client that polls has lost its place');
    await server.leave(holder);
    const account = await scene.account(server);
    return (
      `Date went by ${Math.round(shift)} s; a lease of 3 s took ${lease} s, a hold of 5 s took ` +
      `${seen} s; ${account}`
    );
  }
};

async function dateOf(server) {
  return Date.parse((await server.ask('GET', '/status')).headers.date);
}

/** Polls of a client until one is answered by its hold's end; the seconds that took. */
async function undisturbedHold(scene, server) {
  const id = await server.join();
  let ack = 0;
  for (;;) {
    const took = stopwatch();
    const { body } = await server.poll(id, `ack=${ack}`);
    if (body.sprites.length === 0) {
      await server.leave(id);
      return took();
    }
    scene.ledger.take({ got: body.sprites.map(({ sprite }) => sprite.key) });
    ack = body.seq;
  }
}
