import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { stopwatch } from './scene.js';
import { COLLECTS, residentOf, slackOf, trend } from './trend.js';
import { childrenOf } from '../support/processes.js';
import { ROOT } from '../support/server.js';
import { until } from '../support/until.js';

/** Workers killed, stopped and continued, under as many sprites as there may be. */

const WORKERS = 3;
const CLIENTS = 2000;
const THROWERS = 64;

/** Seconds of it. */
const LONG = 600;
const SHORT = 20;

/** Milliseconds between two looks, each of which may be followed by a fault. */
const LOOK = 500;

/** So many faults after each other are kills and short stops; then one is stopped for good. */
const ROUND = 12;

/** Milliseconds of a short stop, at the most: before a worker counts as one that hangs. */
const STOP = 2500;

/** Seconds until a worker that hangs is ended and replaced, on a machine that does other things as well. */
const REPLACED = 60;

/** Seconds a client keeps its place without a poll: whoever waits for a worker that hangs has none meanwhile. */
const LEASE = 2 * REPLACED;

/** What is seen at one look. */
async function sample(server, workers) {
  server.child.kill('SIGPWR');
  const {
    thrown,
    acked,
    waiting,
    lost,
    clients,
    parked,
    mailboxBytes,
    heapUsed,
    workerConnections
  } = await server.status();
  assert.equal(thrown, acked + waiting + lost, 'the law of sprites');
  assert.equal(lost, 0);
  assert.ok(parked <= clients, `${parked} parked of ${clients}`);
  return {
    'resident size': residentOf(server.pid),
    "workers' resident size": Math.max(0, ...workers.flatMap((pid) => sizeOf(pid))),
    'V8 heap': heapUsed,
    descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
    connections: workerConnections,
    clients,
    waiting,
    'mailbox bytes': mailboxBytes
  };
}

/** A worker's resident size; of one that has just gone, nothing. */
function sizeOf(pid) {
  try {
    return [residentOf(pid)];
  } catch {
    return [];
  }
}

/** Signals a worker; one that has just gone is as good as killed. */
function signal(pid, name) {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (error.code !== 'ESRCH') throw error;
  }
}

/** The figures over the second half, in words; fails when one of them grows. */
function held(samples) {
  const half = samples.slice(samples.length >> 1);
  const whole = (value) => Math.round(value).toLocaleString('en');
  return Object.keys(samples[0]).map((name) => {
    const { mean, rise, flat } = trend(
      half.map((one) => one[name]),
      slackOf(name)
    );
    assert.ok(flat, `${name} grows: by ${whole(rise)}, to ${whole(mean)}`);
    return `${name} ${whole(mean)} (${rise < 0 ? '' : '+'}${whole(rise)})`;
  });
}

export const workers = {
  name: 'workers killed, stopped and continued',
  promise:
    'under full load nothing is missing, only what was not acked comes again, all stays flat',
  longest: 900,
  async run(scene) {
    const server = await scene.server(
      {
        workers: WORKERS,
        drain: 0,
        'throw-rate': 0,
        lease: LEASE,
        'log-level': 'fatal',
        ...{ 'address-connections': 0, 'address-joins': 0 },
        ...{ 'address-clients': 0, 'address-memory': 0 }
      },
      { command: [process.execPath, ...COLLECTS, `${ROOT}bin/sprites`] }
    );
    const swarm = scene.swarm(server, [
      ...['throw', CLIENTS, '--throwers', THROWERS, '--every-client'],
      ...['--time', 3600, '--drain', 60, '--processes', 1]
    ]);
    await server.until(({ thrown }) => thrown > CLIENTS, 120);
    const done = { killed: 0, stopped: 0, hung: 0 };
    const ended = new Set();
    const samples = [];
    const took = stopwatch();
    for (let turn = 0; took() < (scene.short ? SHORT : LONG); turn += 1) {
      await pause(LOOK);
      assert.equal(swarm.over(), false, 'the swarm throws on');
      // One that was killed is there until the server has taken notice of it.
      const living = childrenOf(server.pid).filter((pid) => !ended.has(pid));
      samples.push(await sample(server, living));
      if (living.length < WORKERS) continue;
      const one = living[Math.floor(Math.random() * living.length)];
      const kind = turn % ROUND;
      if (kind === ROUND - 1) {
        signal(one, 'SIGSTOP');
        ended.add(one);
        done.hung += 1;
        await until(
          () => !childrenOf(server.pid).includes(one),
          'a worker that hangs is ended',
          REPLACED
        );
      } else if (kind % 3 === 0) {
        signal(one, 'SIGSTOP');
        done.stopped += 1;
        await pause(Math.random() * STOP);
        signal(one, 'SIGCONT');
      } else {
        signal(one, 'SIGKILL');
        ended.add(one);
        done.killed += 1;
      }
    }
    await server.until(
      (status) => status.workers === WORKERS && status.workerDeaths >= ended.size,
      REPLACED
    );
    const { account, connections, faults } = await swarm.end();
    assert.deepEqual(faults, [], JSON.stringify(account));
    assert.equal(account.missing, 0);
    // A poll answered as its worker died is answered again: its client had not acked.
    assert.ok(account.repeated <= account.excusedRepeats, `${account.repeated} came twice`);
    assert.equal(connections.rejoined, 0, 'everybody has kept the place');
    const after = await server.until(({ clients }) => clients === 0, 60);
    assert.equal(after.waiting, 0);
    assert.equal(after.mailboxBytes, 0);
    assert.equal(after.parked, 0);
    const figures = held(samples);
    return (
      `${done.killed} killed, ${done.stopped} stopped and continued, ${done.hung} stopped for good, in ` +
      `${took()} s; ${account.accepted} sprites promised, ${account.missing} missing, ` +
      `${account.repeated} came again unacked, ${account.duplicates} known again by their numbers; ${figures.join(', ')}`
    );
  }
};
