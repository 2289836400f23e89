import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { launch, NO_ADDRESS_LIMITS, ROOT } from '../support/launch.js';
import { endProcess } from '../support/processes.js';
import { until, untilAnswer } from '../support/until.js';
import { SideLoad } from './side-load.js';

/** Kills the server under load, again and again, and restarts it as its systemd unit does. */

const CLIENTS = 1000;
const RATE = 2500;

/** Pause before the unit restarts the server, in seconds. */
const BACKOFF = Number(
  /^RestartSec=(\d+)$/m.exec(readFileSync(`${ROOT}deploy/sprites.service`, 'utf8'))[1]
);

/** Parked clients that are enough: some clients are just being answered. */
const NEARLY_ALL = 0.98 * CLIENTS;

/** Seconds from listening until nearly all clients must be parked, on an idle machine. */
const PROMISED_SECONDS = 2;

/** Seconds from listening until all clients must be parked again, on a busy machine. */
const MAX_WAIT = 60;

/** A small journal, so that many kills come while a snapshot is made. */
const JOURNAL = { 'journal-bytes': 1 << 20, 'snapshot-every': 2 };

/**
 * Starts a server, and returns it once it listens. With `signal` the server gets that signal `after` milliseconds, and
 * the function waits for its end.
 */
export async function start(scene, options, { signal, after } = {}) {
  const { child, ended, errors, listening } = launch(options);
  scene.teardown(() => endProcess(child, 'SIGKILL'));
  if (signal === undefined) {
    return { child, ended, ...(await listening), listeningSince: performance.now() };
  }
  listening.catch(() => {});
  await pause(after);
  child.kill(signal);
  await ended;
  const text = Buffer.concat(errors).toString();
  assert.doesNotMatch(text, /is not used|no room|Error/, 'the start is not refused');
  return undefined;
}

async function statusOf({ port }) {
  const answer = await fetch(`http://127.0.0.1:${port}/status`);
  const status = await answer.json();
  const { thrown, acked, waiting, lost } = status;
  assert.equal(thrown, acked + waiting + lost, 'the law of sprites');
  assert.equal(lost, 0);
  return status;
}

/** Returns the seconds from listening until nearly all clients are parked, each in its old place. */
async function parkedAgain(server) {
  const areParked = ({ parked }) => parked >= NEARLY_ALL;
  const status = await untilAnswer(() => statusOf(server), areParked, MAX_WAIT);
  assert.equal(status.clients, CLIENTS, 'every client has kept its place');
  assert.equal(status.expired, 0);
  return (performance.now() - server.listeningSince) / 1000;
}

/** @param {{workers: number, sync: string}} how options of the server */
async function killAgainAndAgain(scene, { workers, sync }) {
  const kills = scene.short ? 4 : 30;
  const folder = await scene.folder();
  const sideLoad = new SideLoad(scene);
  const options = {
    ...{ port: 0, state: join(folder, 'state'), ...sideLoad.options },
    ...{ 'throw-rate': 0, 'log-level': 'fatal' },
    ...NO_ADDRESS_LIMITS,
    ...{ ...JOURNAL, sync },
    ...(workers > 0 && { workers, 'transient-port': 0 })
  };
  let server = await start(scene, options);
  options.port = server.port;
  if (workers > 0) options['transient-port'] = server.transientPort;
  const swarm = scene.swarm(server, [
    ...['throw', CLIENTS, '--rate', RATE, '--time', 3600, '--drain', 30],
    ...(workers > 0 ? ['--transient-port', server.transientPort] : [])
  ]);
  await until(
    async () => (await statusOf(server)).clients === CLIENTS,
    'all clients have joined',
    MAX_WAIT
  );
  await parkedAgain(server);
  const seconds = [];
  for (let i = 0; i < kills; i += 1) {
    // Kill at a random moment after sprites fly again.
    const { thrown } = await statusOf(server);
    await until(
      async () => (await statusOf(server)).thrown > thrown + RATE / 4,
      'the swarm throws',
      60
    );
    await sideLoad.start(server);
    await pause(Math.random() * 1000);
    server.child.kill('SIGKILL');
    await server.ended;
    await sideLoad.stop();
    await pause(BACKOFF * 1000);
    server = await start(scene, options);
    seconds.push(await parkedAgain(server));
    await sideLoad.check(server);
  }
  await pause(1000);
  const { account, connections, faults } = await swarm.end();
  assert.deepEqual(faults, [], JSON.stringify(account));
  assert.equal(account.missing, 0);
  assert.equal(account.repeated, 0);
  assert.equal(connections.rejoined, 0);
  const { thrown, acked, waiting } = await statusOf(server);
  assert.ok(thrown >= account.accepted, 'it counts what it has promised');
  seconds.sort((a, b) => a - b);
  const inTime = seconds.filter((one) => one <= PROMISED_SECONDS).length;
  return (
    `${kills} times; ${sideLoad.published} publications promised, none missing; ${account.accepted} sprites promised, ${account.missing} missing, ` +
    `${account.repeated} twice, ${account.duplicates} known again by their numbers; parked again ` +
    `after ${seconds[kills >> 1].toFixed(2)} s at the median, ${seconds.at(-1).toFixed(2)} s at the ` +
    `most, ${inTime} times within ${PROMISED_SECONDS} s; thrown ${thrown} = acked ${acked} + waiting ${waiting}`
  );
}

const promise =
  'every sprite with a 202 is received, none twice; each client has its place, and is parked within ' +
  'two seconds of listening; every version of a feed, player and ban that was promised is there';

const variants = [
  { name: '', workers: 0, sync: 'second' },
  { name: ', with workers', workers: 2, sync: 'second' },
  { name: ', each answer waits for the disk', workers: 0, sync: 'turn' }
];

export const crashes = variants.map(({ name, ...how }) => ({
  name: `server killed (SIGKILL)${name}`,
  promise,
  longest: 900,
  run: (scene) => killAgainAndAgain(scene, how)
}));
