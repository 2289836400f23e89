import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import t from 'tap';

import { readOptions } from '../../lib/operator/options.js';
import { start } from '../../server.js';
import { problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { ROOT, startServer, WORKERS } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * What a socket can do to the front door: stop in the middle, stop reading, send ahead, vanish,
 * reset, and come in such numbers that no file is left. Afterwards nothing may be left of it.
 */

const LEAVE = request('POST', '/leave/00000000-0000-4000-8000-000000000000');

/** More than the kernel keeps for one connection: a sprite, and how many of them. */
const BIG = { 'max-sprite': '1M', 'mailbox-bytes': '64M', 'answer-bytes': '16M' };
const MEGABYTE = `{"x":"${'x'.repeat(2 ** 20 - 8)}"}`;
const MEGABYTES = 7;

/** Asks over a connection that is held for it. */
async function statusBy(server, wire) {
  wire.send(request('GET', '/status'));
  return { ...(await server.inside(wire.inside)), ...(await server.read(wire)).body };
}

/** A held connection by which statusBy looks, and another to the admin port. */
async function looker(server) {
  const wire = Object.assign(await server.wire(), { inside: await Wire.open(server.adminPort) });
  await statusBy(server, wire);
  return wire;
}

/** Looks by a held connection until `holds(status)`. */
function untilBy(server, wire, holds) {
  return until(async () => {
    const status = await statusBy(server, wire);
    return holds(status) && status;
  }, String(holds));
}

/** Runs one test against a server of its own, of which nothing may be left. */
function against(name, options, test) {
  t.test(name, async (t) => {
    const server = await startServer(t, { options });
    await test(t, server);
    await server.leaveNothing();
    const { connections, heldBytes } = await server.status();
    t.strictSame(
      { connections, heldBytes },
      { connections: 1, heldBytes: 0 },
      'only the connection that asks is left'
    );
    await server.stop();
  });
}

// ---- Sending ahead ------------------------------------------------------------------------------

against('however much is sent ahead, little is held and nothing lost', {}, async (t, server) => {
  const id = await server.join();
  const { wire, answer } = await server.park(id);
  const times = 20000;
  wire.send(Buffer.concat(Array.from({ length: times }, () => LEAVE)));
  const { heldBytes } = await server.until((status) => status.heldBytes >= 16384);
  // One read takes at most --head-bytes and 64 KiB, and at 16 KiB no other follows.
  t.ok(heldBytes <= 16384 + 65536, `${heldBytes} of ${times * LEAVE.length} bytes are held`);
  await server.throw(id, 'left');
  t.equal((await answer).status, 200);
  for (let i = 0; i < times; i++) {
    if ((await server.read(wire)).status !== 204) t.fail(`answer ${i}`);
  }
  t.equal(wire.leftOver.length, 0);
  t.equal((await server.status()).heldBytes, 0);
});

// ---- Not reading --------------------------------------------------------------------------------

/** A client for which more waits than the kernel takes at once. */
async function loaded(server) {
  const id = await server.join();
  for (let i = 0; i < MEGABYTES; i++) {
    const { status } = await server.throw(id, 'left', MEGABYTE);
    if (status !== 202) throw new Error(`a throw was answered ${status}`);
  }
  return id;
}

against(
  'a client that stops reading is closed, and the sprites wait for the next poll',
  { ...BIG, 'write-time': 3 },
  async (t, server) => {
    const id = await loaded(server);
    const wire = await server.wire();
    wire.pause();
    wire.send(request('GET', `/poll/${id}`));
    const { heldBytes } = await server.until((status) => status.heldBytes > 0);
    t.ok(heldBytes <= (MEGABYTES + 1) * 2 ** 20, `${heldBytes} bytes are held, one answer`);
    const { slowReaders } = await server.until((status) => status.heldBytes === 0);
    t.equal(slowReaders, 1);
    await server.noConnectionBut(0);
    const { body } = await server.poll(id);
    t.equal(body.sprites.length, MEGABYTES, 'all of them come again');
    t.equal((await server.status()).waiting, MEGABYTES);
  }
);

for (const [what, go, next] of [
  [
    'reads on in time',
    (wire) => wire.send(LEAVE),
    async (t, server, wire) => t.equal((await server.read(wire)).status, 204, 'and the next one')
  ],
  ['has ended only its own half', (wire) => wire.half(), (t, server, wire) => wire.closed()]
]) {
  against(`a client that ${what} gets the whole answer`, BIG, async (t, server) => {
    const id = await loaded(server);
    const wire = await server.wire();
    wire.pause();
    wire.send(request('GET', `/poll/${id}`));
    await server.until((status) => status.heldBytes > 0);
    go(wire);
    // What it has sent has come to the server before this has.
    await server.status();
    wire.resume();
    t.equal((await server.read(wire)).body.sprites.length, MEGABYTES);
    await next(t, server, wire);
  });
}

// ---- Going away ---------------------------------------------------------------------------------

against(
  'a reset, an end and a half-close at every moment leave nothing',
  BIG,
  async (t, server) => {
    // Alone, it has caught them all itself.
    const full = await loaded(server);
    const id = await server.join();
    const throwing = request('POST', `/throw/${id}/left`, { body: '{"a":1}' });
    const moments = {
      'before the head': async () => server.wire(),
      'in mid-head': async () => (await server.wire()).send(throwing.subarray(0, 30)),
      'in mid-body': async () =>
        (await server.wire()).send(throwing.subarray(0, throwing.length - 3)),
      'while parked': async () => (await server.park(id)).wire,
      'while parked, with more sent ahead': async () => {
        const { wire } = await server.park(id);
        wire.send(Buffer.concat([LEAVE, throwing.subarray(0, 30)]));
        await server.until(({ heldBytes }) => heldBytes > 0);
        return wire;
      },
      'while parked, with much sent ahead': async () => {
        const { wire } = await server.park(id, 'hold=5');
        wire.send(Buffer.concat(Array.from({ length: 500 }, () => LEAVE)));
        await server.until(({ heldBytes }) => heldBytes >= 16384);
        return wire;
      },
      'with an answer half read': async () => {
        const wire = await server.wire();
        wire.pause();
        wire.send(request('GET', `/poll/${full}`));
        await server.until(({ heldBytes }) => heldBytes >= 16384);
        return wire;
      },
      'after the answer': async () => {
        const wire = (await server.wire()).send(LEAVE);
        await server.read(wire);
        return wire;
      },
      "after an answer of JavaScript's": async () => {
        const wire = (await server.wire()).send(request('OPTIONS', '/status'));
        await server.read(wire);
        return wire;
      }
    };
    for (const [moment, reach] of Object.entries(moments)) {
      for (const go of ['reset', 'destroy', 'half']) {
        // The answer is written on to a client that has ended only its own half.
        if (go === 'half' && /half read/.test(moment)) continue;
        const wire = await reach();
        wire[go]();
        await server.until(
          ({ parked, connections, heldBytes = 0 }) =>
            parked === 0 && connections === 1 && heldBytes === 0
        );
        t.pass(`${moment}: ${go}`);
        await wire.destroy();
      }
    }
    t.equal((await server.poll(full)).body.sprites.length, MEGABYTES, 'no sprite was lost');
    t.equal((await server.status()).thrown, MEGABYTES, 'and nothing half-sent was thrown');
  }
);

// ---- Coming in numbers --------------------------------------------------------------------------

/** Starts the server with a file limit, which comes when its modules are loaded: the loader may have many files open at once. */
function limited(t, files, options = {}) {
  const limit = `
    import { execFileSync } from 'node:child_process';
    for (const name of ['server.js', 'lib/server/command-line.js']) await import('file://${ROOT}' + name);
    execFileSync('prlimit', ['--pid', String(process.pid), '--nofile=${files}']);
  `;
  const first = `data:text/javascript,${encodeURIComponent(limit)}`;
  return startServer(t, {
    options: { 'head-time': 60, 'body-time': 60, ...options },
    command: [process.execPath, '--import', first, `${ROOT}bin/sprites`]
  });
}

/** Processor time of a process so far, in seconds. */
function cpuOf(pid) {
  const stat = readFileSync(`/proc/${pid}/stat`, 'latin1');
  const [user, system] = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) / 100;
}

/**
 * A client that wants in: it asks, and when it is refused comes again a while later. In the end it
 * is served and stays connected, or is told to stop.
 */
class Knocker {
  refusals = 0;
  /** What came that was neither a service nor the refusal it ought to be. */
  odd = [];
  served = false;
  #socket;
  #timer;

  constructor(port, every) {
    const knock = () => {
      let text = '';
      this.#socket = connect({ port, host: '127.0.0.1' });
      this.#socket.on('connect', () => this.#socket.write(LEAVE));
      this.#socket.setEncoding('latin1');
      this.#socket.on('data', (more) => {
        text += more;
        this.served ||= text.startsWith('HTTP/1.1 204 ');
      });
      this.#socket.on('error', (error) => {
        if (error.code !== 'EPIPE' && error.code !== 'ECONNRESET') this.odd.push(error.code);
      });
      this.#socket.on('close', () => {
        if (this.stopped || this.served) return;
        if (/^HTTP\/1\.1 503 [^]*\r\nRetry-After: \d+\r\n[^]*too-many-connections/.test(text)) {
          this.refusals += 1;
        } else {
          this.odd.push(text);
        }
        this.#timer = setTimeout(knock, every);
      });
    };
    knock();
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.#timer);
    this.#socket.destroy();
  }
}

/** A thousand of them, until the test ends. */
function thousand(t, port) {
  const all = Array.from({ length: 1000 }, () => new Knocker(port, 1000));
  t.teardown(() => all.forEach((one) => one.stop()));
  return {
    served: () => all.filter(({ served }) => served).length,
    refusals: () => all.reduce((sum, { refusals }) => sum + refusals, 0),
    odd: () => all.flatMap(({ odd }) => odd),
    stop: () => all.forEach((one) => one.stop())
  };
}

/** Share of a core that a thousand connections in vain may cost. */
const MOST_OF_A_CORE = 0.1;

/** Waits until the server has accepted the connections that are gone: they stand in the queue before this one. */
async function untilAccepted(server) {
  const wire = await server.wire();
  // A refusal may be a reset: the server closes before it has read the request.
  await wire
    .send(LEAVE)
    .read()
    .catch(() => {});
  await wire.destroy();
}

/** Lets a thousand knock at a server whose table is full, then gives places free. */
async function knockAt(t, server, { status, parked, spare }) {
  const crowd = thousand(t, server.port);
  await untilBy(server, status, ({ connectionsRefused }) => connectionsRefused > 500);
  const servedBefore = crowd.served();
  const [cpu, since] = [cpuOf(server.pid), performance.now()];
  await pause(3000);
  const share = (cpuOf(server.pid) - cpu) / ((performance.now() - since) / 1000);
  t.comment(
    `${(share * 100).toFixed(1)}% of a core while a thousand knock, ` +
      `${crowd.refusals()} refusals so far`
  );
  t.ok(share < MOST_OF_A_CORE, 'they cost little');
  t.strictSame([...new Set(crowd.odd())].slice(0, 3), [], 'each of them is told 503 and why');
  t.ok(crowd.refusals() > 500);

  // Accepted connections are served meanwhile.
  const [{ id, answer }] = parked;
  parked[1].free.send(request('POST', `/throw/${id}/left`, { body: '{}' }));
  t.equal((await server.read(parked[1].free)).status, 202);
  await Promise.race(parked.map((one) => one.answer));
  t.ok(answer);

  // And others, as soon as places are free.
  await Promise.all(spare.map((wire) => wire.destroy()));
  const served = () => crowd.served() - servedBefore;
  await until(
    () => served() >= spare.length,
    () => `${served()} come in when ${spare.length} places are free`
  );
  crowd.stop();
}

/** Clients with a parked poll each, and a connection besides. */
async function parkSome(server, count) {
  const parked = [];
  for (let i = 0; i < count; i++) {
    const id = await server.join();
    const free = await server.wire();
    parked.push({ id, free, ...(await server.park(id)) });
  }
  return parked;
}

t.test('the places run out: 192 of 320 files, and a thousand clients more', async (t) => {
  // The server wants 16 more for each worker.
  const server = await limited(t, 320 + 16 * WORKERS);
  const status = await server.wire();
  await statusBy(server, status);
  const parked = await parkSome(server, 10);
  const spare = await Promise.all(Array.from({ length: 192 - 21 }, () => server.wire()));
  await untilBy(server, status, ({ connections }) => connections === 192);
  await knockAt(t, server, { status, parked, spare: spare.slice(0, 30) });
  t.equal((await statusBy(server, status)).outOfFiles, 0, 'the files did not');
  await status.destroy();
  await untilAccepted(server);
  await server.leaveNothing();
  await server.stop();
});

t.test('the files run out before the places do, and a thousand clients come', async (t) => {
  const server = await limited(t, 256);
  const status = await looker(server);
  const parked = await parkSome(server, 10);
  const held = [];
  for (let i = 0; i < 40; i++) {
    const wire = await server.wire();
    wire.send(request('GET', '/status'));
    await server.read(wire);
    held.push(wire);
  }
  // The server has looked at its limit already, and counts on more places than there are now.
  const files = server.descriptors() + 20;
  execFileSync('prlimit', ['--pid', String(server.pid), `--nofile=${files}:`]);
  const spare = await Promise.all(Array.from({ length: 60 }, () => server.wire()));
  await untilBy(server, status, (now) => now.outOfFiles > 0);
  held[39].send(request('GET', '/status'));
  t.equal((await server.read(held[39])).body.capacity, 1000000, 'those that are there are served');
  await knockAt(t, server, { status, parked, spare: held.slice(0, 30) });
  await Promise.all([status, status.inside, ...spare].map((wire) => wire.destroy()));
  await untilAccepted(server);
  await server.leaveNothing();
  await server.stop();
});

t.test('fewer files than the server wants for itself: one at a time is served', async (t) => {
  const server = await limited(t, 60);
  t.match(server.lines.join('\n'), /The file limit of 60 really allows 0\. To lift it: ulimit/);
  const wire = await server.wire();
  for (let i = 0; i < 3; i++) {
    wire.send(LEAVE);
    t.equal((await server.read(wire)).status, 204);
  }
  const second = await server.wire();
  t.equal(problemOf(await server.read(second)), 'too-many-connections');
  await Promise.all([wire.destroy(), second.destroy()]);
  await server.leaveNothing();
  await server.stop();
});

t.test('one address that comes again and again takes no places from others', async (t) => {
  const server = await startServer(t, { options: { 'address-connections': 5 } });
  const status = await server.wire();
  const one = await statusBy(server, status);
  t.equal(one.connections, 1);
  const wires = [];
  for (let i = 0; i < 1000; i += 100) {
    wires.push(...(await Promise.all(Array.from({ length: 100 }, () => Wire.open(server.port)))));
  }
  const { connections } = await untilBy(server, status, (now) => now.connectionsRefused === 996);
  t.ok(connections <= 5 + 256 * Math.max(1, WORKERS), `${connections} connections are open`);
  await untilBy(server, status, (now) => now.connections === 5);
  await Promise.all([status, ...wires].map((wire) => wire.destroy()));
  await server.leaveNothing();
  await server.stop();
});

// ---- Node's loop --------------------------------------------------------------------------------

for (const ownsProcess of [true, false]) {
  const where = ownsProcess ? 'sleeps in the door' : "is another program's";
  t.test(`a loop that ${where} and has an event in every turn takes requests too`, async (t) => {
    const options = readOptions(['--port', '0', '--host', '127.0.0.1'], {});
    const server = await start(options, undefined, undefined, { ownsProcess });
    const echo = createServer((socket) => socket.pipe(socket)).listen(0, '127.0.0.1');
    await once(echo, 'listening');
    const busy = connect(echo.address().port, '127.0.0.1');
    let over = false;
    const again = () => over || setImmediate(again);
    again();
    busy.on('data', (data) => (over ? busy.end() : busy.write(data))).write('and again');
    const wire = await Wire.open(server.port);
    for (let i = 0; i < 20; i++) {
      wire.send(LEAVE);
      t.equal((await wire.read()).status, 204);
    }
    over = true;
    await once(busy, 'close');
    echo.close();
    wire.destroy();
    await server.stop();
  });
}
