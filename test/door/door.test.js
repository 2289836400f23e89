import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';

import { readOptions } from '../../lib/operator/options.js';
import { useOf } from '../../lib/swarm/server-watch.js';
import { start } from '../../server.js';
import { listening } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { ROOT, startServer, DEFAULT_WORKERS } from '../support/server.js';
import { until, untilAnswer } from '../support/until.js';

/**
 * Many sockets at the front door: so many that no file descriptor is left, or new ones again and again.
 * test/native/door_test.cc tests a single socket: it stops in the middle, stops reading, sends ahead, vanishes, resets.
 */

const LEAVE = request('POST', '/leave/00000000-0000-4000-8000-000000000000');

/** Returns the status, read over a connection that is kept open for that. */
async function readStatus(server, wire) {
  wire.send(request('GET', '/status'));
  return { ...(await server.adminStatus(wire.adminWire)), ...(await server.read(wire)).body };
}

/** Opens a connection for readStatus, with another one to the admin port. */
async function openStatusWire(server) {
  const wire = Object.assign(await server.wire(), { adminWire: await Wire.open(server.adminPort) });
  await readStatus(server, wire);
  return wire;
}

/** Reads the status over a kept connection until `holds(status)`. */
const untilStatus = (server, wire, holds) => untilAnswer(() => readStatus(server, wire), holds);

// ---- Many connections ---------------------------------------------------------------------------

/**
 * Starts the server with a limit of open files. The limit is set after its modules are loaded, since the loader may
 * open many files at once.
 */
function startWithFileLimit(t, files) {
  const limit = `
    import { execFileSync } from 'node:child_process';
    for (const name of ['server.js', 'lib/server/command-line.js']) await import('file://${ROOT}' + name);
    execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=${files}']);
  `;
  const first = `data:text/javascript,${encodeURIComponent(limit)}`;
  return startServer(t, {
    options: { 'head-time': 60, 'body-time': 60 },
    command: [process.execPath, '--import', first, `${ROOT}bin/sprites`]
  });
}

/**
 * A client that connects, sends a request, and retries a while after each refusal. When it is served, it stays
 * connected until stop().
 */
class RetryingClient {
  refusals = 0;
  /** Answers that are neither a service nor the expected refusal, and unexpected error codes. */
  unexpected = [];
  isServed = false;
  #socket;
  #timer;

  constructor(port, retryMilliseconds) {
    const connectOnce = () => {
      let text = '';
      this.#socket = connect({ port, host: '127.0.0.1' });
      this.#socket.on('connect', () => this.#socket.write(LEAVE));
      this.#socket.setEncoding('latin1');
      this.#socket.on('data', (more) => {
        text += more;
        this.isServed ||= text.startsWith('HTTP/1.1 204 ');
      });
      this.#socket.on('error', (error) => {
        if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') this.unexpected.push(error.code);
      });
      this.#socket.on('close', () => {
        if (this.stopped || this.isServed) return;
        if (/^HTTP\/1\.1 503 [^]*\r\nRetry-After: \d+\r\n[^]*too-many-connections/.test(text)) {
          this.refusals += 1;
        } else {
          this.unexpected.push(text);
        }
        this.#timer = setTimeout(connectOnce, retryMilliseconds);
      });
    };
    connectOnce();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }
}

/** Largest share of a core that a thousand refused clients may cost. */
const MAX_CORE_SHARE = 0.1;

t.test('the files run out before the places do, and a thousand clients come', async (t) => {
  const server = await startWithFileLimit(t, 256);
  const status = await openStatusWire(server);
  // Clients, each with a parked poll and a second connection.
  const parked = [];
  for (let i = 0; i < 10; i++) {
    const id = await server.join();
    const free = await server.wire();
    parked.push({ id, free, ...(await server.park(id)) });
  }
  const openWires = [];
  for (let i = 0; i < 40; i++) {
    const wire = await server.wire();
    wire.send(request('GET', '/status'));
    await server.read(wire);
    openWires.push(wire);
  }
  // The server has read its limit before, and now assumes more connections than there can be.
  const files = server.descriptors() + 20;
  execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${files}:`]);
  const spare = await Promise.all(Array.from({ length: 60 }, () => server.wire()));
  await untilStatus(server, status, (now) => now.outOfFiles > 0);
  openWires[39].send(request('GET', '/status'));
  t.equal(
    (await server.read(openWires[39])).body.capacity,
    1000000,
    'those that are there are served'
  );

  const crowd = Array.from({ length: 1000 }, () => new RetryingClient(server.port, 1000));
  const stop = () => crowd.forEach((one) => one.stop());
  t.teardown(stop);
  const servedCount = () => crowd.filter((one) => one.isServed).length;
  const refusals = () => crowd.reduce((sum, one) => sum + one.refusals, 0);
  await untilStatus(server, status, ({ connectionsRefused }) => connectionsRefused > 500);
  const servedBefore = servedCount();
  const [cpu, since] = [useOf(server.pid).cpu, performance.now()];
  await pause(3000);
  const coreShare = (useOf(server.pid).cpu - cpu) / ((performance.now() - since) / 1000);
  t.comment(
    `${(coreShare * 100).toFixed(1)}% of a core while a thousand knock, ${refusals()} refusals so far`
  );
  t.ok(coreShare < MAX_CORE_SHARE, 'they cost little');
  const unexpected = crowd.flatMap((one) => one.unexpected);
  t.strictSame([...new Set(unexpected)].slice(0, 3), [], 'each of them is told 503 and why');
  t.ok(refusals() > 500);

  // Accepted connections are served meanwhile.
  const [{ id }, { free }] = parked;
  free.send(request('POST', `/throw/${id}/left`, { body: '{}' }));
  t.equal((await server.read(free)).status, 202);
  await Promise.race(parked.map(({ answer }) => answer));

  // New clients are served as soon as connections are free.
  const closedWires = openWires.slice(0, 30);
  await Promise.all(closedWires.map((wire) => wire.destroy()));
  await until(
    () => servedCount() - servedBefore >= closedWires.length,
    () => `${servedCount() - servedBefore} come in when ${closedWires.length} places are free`
  );
  stop();
  await Promise.all([status, status.adminWire, ...spare].map((wire) => wire.destroy()));
  // When this connection is served, the server has also accepted the closed ones, which are before it in the queue.
  const lastWire = await server.wire();
  // A refusal may be a reset: the server closes before it has read the request.
  await lastWire
    .send(LEAVE)
    .read()
    .catch(() => {});
  await lastWire.destroy();
  await server.assertNothingLeft();
  await server.stop();
});

t.test('fewer files than the server wants for itself: one at a time is served', async (t) => {
  const server = await startWithFileLimit(t, 60);
  t.match(server.lines.join('\n'), /The file limit of 60 really allows 0\. To lift it: ulimit/);
  const wire = await server.wire();
  for (let i = 0; i < 3; i++) {
    wire.send(LEAVE);
    t.equal((await server.read(wire)).status, 204);
  }
  const second = await server.wire();
  t.equal(problemOf(await server.read(second)), 'too-many-connections');
  await Promise.all([wire.destroy(), second.destroy()]);
  await server.assertNothingLeft();
  await server.stop();
});

t.test('one address that comes again and again takes no places from others', async (t) => {
  const server = await startServer(t, { options: { 'address-connections': 5 } });
  const status = await server.wire();
  const one = await readStatus(server, status);
  t.equal(one.connections, 1);
  const wires = [];
  for (let i = 0; i < 1000; i += 100) {
    wires.push(...(await Promise.all(Array.from({ length: 100 }, () => Wire.open(server.port)))));
  }
  const { connections } = await untilStatus(
    server,
    status,
    (now) => now.connectionsRefused === 996
  );
  t.ok(
    connections <= 5 + 256 * Math.max(1, DEFAULT_WORKERS),
    `${connections} connections are open`
  );
  await untilStatus(server, status, (now) => now.connections === 5);
  await Promise.all([status, ...wires].map((wire) => wire.destroy()));
  await server.assertNothingLeft();
  await server.stop();
});

// ---- Node's loop --------------------------------------------------------------------------------

for (const ownsProcess of [true, false]) {
  const owner = ownsProcess ? 'sleeps in the door' : "is another program's";
  t.test(`a loop that ${owner} and has an event in every turn takes requests too`, async (t) => {
    const options = readOptions(['--port', '0', '--host', '127.0.0.1'], {});
    const server = await start(options, undefined, undefined, { ownsProcess });
    const echo = createServer((socket) => socket.pipe(socket));
    const busy = connect(await listening(t, echo), '127.0.0.1');
    let isOver = false;
    const keepTurning = () => isOver || setImmediate(keepTurning);
    keepTurning();
    busy.on('data', (data) => (isOver ? busy.end() : busy.write(data))).write('and again');
    const wire = await Wire.open(server.port);
    for (let i = 0; i < 20; i++) {
      wire.send(LEAVE);
      t.equal((await wire.read()).status, 204);
    }
    isOver = true;
    await once(busy, 'close');
    wire.destroy();
    await server.stop();
  });
}
