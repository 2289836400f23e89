import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { until } from '../support/until.js';
import { Scene, Skip, stopwatch } from './scene.js';

/**
 * Clients whose cable is pulled: no FIN, no reset, nothing.
 *
 *   a network of its own                      another
 *   server ─ near clients ─ 10.77.0.1 ══veth══ 10.77.0.2 ─ far clients
 *
 * Both networks belong to processes alone, and go with them.
 */

const UNSHARE = ['unshare', ...(process.getuid() === 0 ? [] : ['-r']), '--net'];
const SERVER = '10.77.0.1';
const FAR = 4;

/** Clients that may be between two polls when the link goes down: they have nothing to ack. */
const BETWEEN = 1;

/** Seconds; longer than TCP_USER_TIMEOUT, so that the one is told from the other. */
const IDLE = 50;

export const cut = {
  name: 'clients cut off without a FIN',
  promise:
    'unacked answers end the connection after 30 s (TCP_USER_TIMEOUT); back within the ' +
    'lease: the same place and every sprite',
  async run({ short }) {
    const [program, ...args] = UNSHARE;
    const works = spawnSync(program, [
      ...args,
      'sh',
      '-c',
      'ip link set lo up && ip link add sprites0 type veth peer name sprites1'
    ]);
    if (works.status !== 0) throw new Skip('no network may be made here (unshare, ip, veth)');
    const child = spawn(
      program,
      [...args, process.execPath, fileURLToPath(import.meta.url), ...(short ? ['--short'] : [])],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    );
    const said = [];
    child.stdout.on('data', (chunk) => said.push(chunk));
    await once(child, 'close');
    const { seen, failed } = JSON.parse(Buffer.concat(said).toString() || '{"failed":"no word"}');
    if (failed) throw new Error(failed);
    return seen;
  }
};

const sh = (line) => execFileSync('sh', ['-c', line], { encoding: 'utf8' });

/** Established connections of the server with the far side, as its kernel sees them. */
function connections() {
  return sh(`ss -Htn state established src ${SERVER}`).split('\n').filter(Boolean).length;
}

async function inside(scene) {
  sh('ip link set lo up');
  const other = spawn('unshare', ['--net', 'sleep', '600'], { stdio: 'ignore' });
  scene.teardown(() => other.kill('SIGKILL'));
  const own = sh('readlink /proc/self/ns/net');
  await until(() => sh(`readlink /proc/${other.pid}/ns/net`) !== own, 'the other network is there');
  const there = ['nsenter', '-t', String(other.pid), '--net'];
  sh(`ip link add sprites0 type veth peer name sprites1 netns ${other.pid}
      ip addr add ${SERVER}/24 dev sprites0 && ip link set sprites0 up
      ${there.join(' ')} ip addr add 10.77.0.2/24 dev sprites1
      ${there.join(' ')} ip link set sprites1 up`);
  const link = (state) => sh(`${there.join(' ')} ip link set sprites1 ${state}`);

  const server = await scene.server({ host: '0.0.0.0', hold: 5, lease: 90, 'idle-time': IDLE });
  server.host = '127.0.0.1';
  await scene.crowd(server, { clients: 12, pace: 250 });
  await scene.crowd(server, { clients: FAR, pace: 250, host: SERVER, patience: 7000 }, there);
  await pause(scene.short ? 1500 : 5000);

  const before = connections();
  assert.ok(before >= FAR, `${before} connections from afar`);
  const { expired } = await server.status();
  assert.equal(expired, 0);
  link('down');
  const took = stopwatch();
  await server.until((status) => status.parked <= 12, 15);
  const unparked = took();
  await until(
    () => connections() <= before - FAR + BETWEEN,
    'the connections with an unacked answer end',
    45
  );
  const ended = took();
  assert.ok(ended < IDLE - 2, `by the user timeout, not by --idle-time: after ${ended} s`);
  await until(() => connections() === 0, 'the idle ones end, too', 25);
  const closed = took();
  const { waiting, clients } = await server.status();
  assert.equal(clients, 12 + FAR, 'within the lease the cut off keep their places');
  link('up');
  await until(() => connections() >= FAR, 'they are back', 30);
  const account = await scene.account(server, 60);
  assert.equal(scene.ledger.gone, 0, 'each in its old place');
  return (
    `polls of the dead end within ${unparked} s, their connections after ${ended} s, idle ones ` +
    `of theirs (--idle-time ${IDLE}) after ${closed} s; ` +
    `${waiting} sprites waited for them; back at once in their places; ${account}`
  );
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const scene = new Scene({ short: process.argv.includes('--short') });
  let result;
  try {
    result = { seen: await inside(scene) };
  } catch (error) {
    result = { failed: error.stack };
  } finally {
    await scene.end();
  }
  process.stdout.write(JSON.stringify(result));
}
