import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

import { Wire } from '../support/http.js';
import { NO_ADDRESS_LIMITS } from '../support/launch.js';
import { until } from '../support/until.js';
import { Scene, Skip, stopwatch } from './scene.js';

/** Clients that are killed, clients that are stopped, and clients that take their time. */

export const killed = {
  name: 'clients killed (SIGKILL)',
  promise: 'their places are free after the lease; their sprites fly on; nothing promised is lost',
  async run(scene) {
    const server = await scene.server({ lease: 5, hold: 5 });
    const clients = scene.short ? 20 : 60;
    await scene.crowd(server, { clients });
    const victims = await scene.crowd(server, { clients });
    await pause(scene.short ? 1500 : 4000);
    const took = stopwatch();
    victims.signal('SIGKILL');
    await server.until((status) => status.clients === clients, 30);
    const goneAfter = took();
    const { expired } = await server.status();
    assert.equal(expired, clients, 'each of the killed has expired');
    assert.equal(scene.ledger.lostPlaces, 0, 'no survivor has lost its place');
    await pause(500);
    const account = await scene.account(server);
    const { flown } = await server.status();
    return `${clients} of ${2 * clients} killed, gone after ${goneAfter} s, ${flown} flew on; ${account}`;
  }
};

export const stopped = {
  name: 'clients stopped (SIGSTOP)',
  promise: 'shorter than a hold: the same places; longer than hold and lease: gone, joins again',
  async run(scene) {
    const clients = 15;
    const server = await scene.server({ lease: 6, hold: 5 });
    await scene.crowd(server, { clients });
    const frozen = await scene.crowd(server, { clients });
    await pause(800);
    frozen.signal('SIGSTOP');
    // A stopped client's poll that a sprite has answered is a lease from its end.
    await pause(1000);
    frozen.signal('SIGCONT');
    await pause(1500);
    const early = await server.status();
    assert.equal(scene.ledger.lostPlaces, 0, 'a short stop costs no client its place');
    assert.equal(early.clients, 2 * clients);
    frozen.signal('SIGSTOP');
    const took = stopwatch();
    await server.until((status) => status.expired === clients, 30);
    const gone = took();
    await pause(scene.short ? 500 : 3000);
    frozen.signal('SIGCONT');
    await until(() => scene.ledger.lostPlaces >= clients, 'all stopped clients are back', 20);
    await server.until((status) => status.clients === 2 * clients, 20);
    const account = await scene.account(server);
    return `1 s: all ${clients} kept; then gone after ${gone} s and back; ${account}`;
  }
};

export const silent = {
  name: 'a thousand connect and say nothing',
  promise: 'closed by --head-time; all others are served meanwhile',
  async run(scene) {
    const count = 1000;
    const server = await scene.server({ 'head-time': 10 });
    const took = stopwatch();
    const wires = await Promise.all(Array.from({ length: count }, () => Wire.open(server.port)));
    scene.teardown(() => Promise.all(wires.map((wire) => wire.destroy())));
    const { connections } = await server.status();
    assert.ok(connections >= count, `${connections} are held`);
    await scene.crowd(server, { clients: 20, pace: 50 });
    await Promise.all(wires.map((wire) => wire.closed()));
    const closed = took();
    assert.ok(closed >= 9.9, `closed before their time, after ${closed} s`);
    const account = await scene.account(server);
    return `${count} closed after ${closed} s; meanwhile ${account}`;
  }
};

export const storm = {
  name: 'reconnect storm',
  promise: 'all are parked again, in their old places; nothing thrown meanwhile is missing',
  async run(scene) {
    const clients = scene.short ? 2000 : 10000;
    const server = await scene.server({ ...NO_ADDRESS_LIMITS, 'throw-rate': 0 });
    const args = ['storm', clients, '--rate', 200, '--time', 60];
    const {
      storm,
      account,
      server: { law, after },
      connections
    } = await scene.swarm(server, args).result();
    assert.equal(storm.parked, clients);
    assert.equal(account.missing, 0);
    assert.ok(law.holds, JSON.stringify(law));
    assert.equal(connections.rejoined, 0, 'every client has kept its place');
    assert.equal(after.expired, 0);
    const { 99: nearlyAllAfter, 100: allAfter } = storm.seconds;
    return (
      `${clients} dropped and came back: 99% parked after ${nearlyAllAfter} s, all after ${allAfter} s; ` +
      `${account.accepted} promised, ${account.missing} missing`
    );
  }
};

/**
 * Clients whose cable is pulled: the server gets no FIN and no reset.
 *
 *   network namespace of the server           of the far clients
 *   server ─ near clients ─ 10.77.0.1 ══veth══ 10.77.0.2 ─ far clients
 *
 * Both network namespaces belong to processes, and end with them.
 */

const UNSHARE = ['unshare', ...(process.getuid() === 0 ? [] : ['-r']), '--net'];
const SERVER = '10.77.0.1';
const FAR_CLIENTS = 4;

/** Most clients that may be between two polls when the link goes down: they have nothing to ack. */
const MAX_BETWEEN_POLLS = 1;

/** --idle-time in seconds. Longer than TCP_USER_TIMEOUT, to tell the two timeouts apart. */
const IDLE = 50;

export const cut = {
  name: 'clients cut off without a FIN',
  promise:
    'unacked answers end the connection after 30 s (TCP_USER_TIMEOUT); back within the ' +
    'lease: the same place and every sprite',
  async run({ short }) {
    const [program, ...args] = UNSHARE;
    const probe = spawnSync(program, [
      ...args,
      'sh',
      '-c',
      'ip link set lo up && ip link add sprites0 type veth peer name sprites1'
    ]);
    if (probe.status !== 0) throw new Skip('no network may be made here (unshare, ip, veth)');
    const child = spawn(
      program,
      [...args, process.execPath, fileURLToPath(import.meta.url), ...(short ? ['--short'] : [])],
      { stdio: ['ignore', 'pipe', 'inherit'] }
    );
    const output = [];
    child.stdout.on('data', (chunk) => output.push(chunk));
    await once(child, 'close');
    const { seen, failed } = JSON.parse(Buffer.concat(output).toString() || '{"failed":"no word"}');
    if (failed) throw new Error(failed);
    return seen;
  }
};

const sh = (line) => execFileSync('sh', ['-c', line], { encoding: 'utf8' });

/** Returns the number of the server's established connections in its kernel. */
function connections() {
  return sh(`ss -Htn state established src ${SERVER}`).split('\n').filter(Boolean).length;
}

async function runInNamespace(scene) {
  sh('ip link set lo up');
  const other = spawn('unshare', ['--net', 'sleep', '600'], { stdio: 'ignore' });
  scene.teardown(() => other.kill('SIGKILL'));
  const own = sh('readlink /proc/self/ns/net');
  await until(() => sh(`readlink /proc/${other.pid}/ns/net`) !== own, 'the other network is there');
  const inOtherNamespace = ['nsenter', '-t', String(other.pid), '--net'];
  sh(`ip link add sprites0 type veth peer name sprites1 netns ${other.pid}
      ip addr add ${SERVER}/24 dev sprites0 && ip link set sprites0 up
      ${inOtherNamespace.join(' ')} ip addr add 10.77.0.2/24 dev sprites1
      ${inOtherNamespace.join(' ')} ip link set sprites1 up`);
  const link = (state) => sh(`${inOtherNamespace.join(' ')} ip link set sprites1 ${state}`);

  const server = await scene.server({ host: '0.0.0.0', hold: 5, lease: 90, 'idle-time': IDLE });
  server.host = '127.0.0.1';
  await scene.crowd(server, { clients: 12, pace: 250 });
  await scene.crowd(
    server,
    { clients: FAR_CLIENTS, pace: 250, host: SERVER, patience: 7000 },
    inOtherNamespace
  );
  await pause(scene.short ? 1500 : 5000);

  const before = connections();
  assert.ok(before >= FAR_CLIENTS, `${before} connections from afar`);
  const { expired } = await server.status();
  assert.equal(expired, 0);
  link('down');
  const took = stopwatch();
  await server.until((status) => status.parked <= 12, 15);
  const unparked = took();
  await until(
    () => connections() <= before - FAR_CLIENTS + MAX_BETWEEN_POLLS,
    'the connections with an unacked answer end',
    45
  );
  const ended = took();
  assert.ok(ended < IDLE - 2, `by the user timeout, not by --idle-time: after ${ended} s`);
  await until(() => connections() === 0, 'the idle ones end, too', 25);
  const closed = took();
  const { waiting, clients } = await server.status();
  assert.equal(clients, 12 + FAR_CLIENTS, 'within the lease the cut off keep their places');
  link('up');
  await until(() => connections() >= FAR_CLIENTS, 'they are back', 30);
  const account = await scene.account(server, 60);
  assert.equal(scene.ledger.lostPlaces, 0, 'each in its old place');
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
    result = { seen: await runInNamespace(scene) };
  } catch (error) {
    result = { failed: error.stack };
  } finally {
    await scene.end();
  }
  process.stdout.write(JSON.stringify(result));
}
