import { connect } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { connect as secure } from 'node:tls';
import { parseArgs } from 'node:util';

import { request, resetSocket } from '../support/http.js';

/**
 * One hostile address with all attacks at once: it has as many clients as it may, which throw and receive but never
 * ack; it resets, holds and pipelines, reads nothing, joins and leaves in crowds. Its connections and bytes are
 * limited. At its end it reports its counts.
 *
 *   {"ready":true}      its clients have joined, and have left holes between them for honest clients
 *   {"done":{…}}        connections, most at once, bytes sent (after "quiet" on stdin)
 *
 * The attack begins with "go" on stdin.
 *
 * It reads only the answers that it needs, and ignores errors.
 */

const { values } = parseArgs({
  options: {
    port: { type: 'string' },
    transient: { type: 'string' },
    admin: { type: 'string' },
    tls: { type: 'boolean', default: false },
    connections: { type: 'string' },
    clients: { type: 'string' },
    holes: { type: 'string' },
    bytes: { type: 'string' },
    seconds: { type: 'string' },
    lease: { type: 'string' }
  }
});
/** The attacker's source address. */
const SOURCE_ADDRESS = '127.0.6.6';
const port = Number(values.port);
/** The port for joins, throws and leaves. */
const transientPort = Number(values.transient ?? values.port);
const maxOpen = Number(values.connections);
const maxBytes = Number(values.bytes);
/** The budget of bytes until now: a fifth at once, the rest spread over the attack's time. */
let startedAt = performance.now();
const byteBudget = () =>
  maxBytes *
  Math.min(1, 0.2 + ((performance.now() - startedAt) / 1000 / Number(values.seconds)) * 0.8);

/** The part of the budget that the settlers do not reserve. */
const OTHERS_SHARE = 0.8;

const counts = { opened: 0, open: 0, most: 0, bytes: 0 };
const EDGES = ['left', 'right', 'up', 'down'];

/** Opens a connection within the limit; null: the limit is reached. Calls `onText` with received text. */
function open(to = port, { onText = () => {}, reads = true } = {}) {
  if (counts.open >= maxOpen) return null;
  const raw = connect({ port: to, host: '127.0.0.1', localAddress: SOURCE_ADDRESS });
  counts.opened += 1;
  counts.open += 1;
  counts.most = Math.max(counts.most, counts.open);
  raw.on('error', () => {});
  raw.on('close', () => {
    counts.open -= 1;
  });
  const socket =
    values.tls && to === port ? secure({ socket: raw, rejectUnauthorized: false }) : raw;
  socket.on('error', () => {});
  if (reads) socket.on('data', (chunk) => onText(chunk.toString('latin1')));
  else socket.pause();
  socket.raw = raw;
  return socket;
}

/** Sends bytes within the budget. */
function send(socket, bytes, part = OTHERS_SHARE) {
  if (socket === null || socket.destroyed) return false;
  if (counts.bytes + bytes.length > byteBudget() * part) return false;
  counts.bytes += bytes.length;
  socket.write(bytes);
  return true;
}

const repeat = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const concat = (requests) => Buffer.concat(requests);

/** A connection that is opened again whenever it has ended. */
class Line {
  #socket = null;

  constructor(to, onText) {
    this.to = to;
    this.onText = onText;
  }

  get isOpen() {
    return this.#socket !== null && !this.#socket.destroyed;
  }

  send(bytes) {
    if (!this.isOpen) this.#socket = open(this.to, { onText: this.onText });
    return send(this.#socket, bytes, 1);
  }
}

/** A JPEG that is 16×16 to a reader with a wrong parser of markers, and 8,000×8,000 to a decoder. */
const BOMB = Buffer.from(
  'ffd8ff01' + '0011ffc0000b0800100010010111ff'.padEnd(60, '0') + 'ffc0000b081f401f4001011100ffd9',
  'hex'
);
const small = (n) => `{"junk":${n}}`;
const picture = () =>
  JSON.stringify({
    image: `data:image/jpeg;base64,${BOMB.toString('base64')}`,
    fill: 'x'.repeat(12000)
  });

/** Most settlers that join at a time. */
const MAX_JOINING = 200;

/** Returns the ids in answers to joins. */
const idsIn = (text) => [...text.matchAll(/"id":"([0-9a-f-]{36})"/g)].map(([, id]) => id);

const OFFSETS = { left: [0, -1], right: [0, 1], up: [-1, 0], down: [1, 0] };
const OPPOSITE = { left: 'right', right: 'left', up: 'down', down: 'up' };

/**
 * Hostile clients that stay. They receive sprites but never ack, so that their mailboxes stay full. They leave holes
 * between them: a client that joins there has hostile neighbors on all sides, which fill its mailbox.
 */
class Settlers {
  #settlers = [];
  #lines;
  #freeIds = [];
  /** The clients by their places, "row,column". */
  #byPlace = new Map();
  #rows = 1;
  #columns = 1;
  /** The free places for honest clients: [row, column]. */
  #holes = [];

  constructor(count) {
    const onText = (text) => {
      this.#freeIds.push(...idsIn(text));
    };
    this.#lines = repeat(10, () => new Line(transientPort, onText));
    this.#settlers = repeat(count, () => new Settler());
  }

  get count() {
    return this.#settlers.filter(({ id }) => id !== null).length;
  }

  get settled() {
    return this.#settlers.filter(({ place }) => place !== null).length;
  }

  /** Joins the settlers without an id, and asks for their places. */
  join() {
    const unjoined = this.#settlers.filter(({ id }) => id === null);
    // Some at a time: the server closes a connection that sends too slowly.
    const some = unjoined.splice(0, Math.min(MAX_JOINING, this.#freeIds.length));
    for (const one of some) one.settle(this.#freeIds.pop());
    const missing = Math.min(MAX_JOINING, unjoined.length - this.#freeIds.length);
    const lane = this.#lines[Math.floor(Math.random() * this.#lines.length)];
    if (missing > 0) lane.send(concat(repeat(missing, () => request('POST', '/join'))));
    for (const one of this.#settlers) {
      if (one.place === null) continue;
      const { row, column, rows, columns } = one.place;
      this.#byPlace.set(`${row},${column}`, one);
      this.#rows = rows;
      this.#columns = columns;
    }
  }

  /** Makes some settlers leave, far from each other: the next clients to join get their places. */
  async leaveHoles(count) {
    const free = this.#settlers.filter(({ place }) => place !== null);
    for (let n = 0; n < count; n += 1) {
      const one = free[Math.floor(((n + 0.5) * free.length) / count)];
      this.#holes.push([one.place.row, one.place.column]);
      this.#lines[0].send(request('POST', `/leave/${one.id}`));
      // This settler does not join again.
      this.#settlers.splice(this.#settlers.indexOf(one), 1);
      one.end();
    }
    await pause(500);
  }

  #neighborOf([row, column], edge) {
    const [down, right] = OFFSETS[edge];
    const place = [
      (row + down + this.#rows) % this.#rows,
      (column + right + this.#columns) % this.#columns
    ];
    return { place, one: this.#byPlace.get(place.join(',')) };
  }

  /** Fills the mailboxes of the holes' neighbors by throws of their other neighbors. */
  fillMailboxes(times) {
    for (const hole of this.#holes) {
      for (const toVictim of EDGES) {
        const victim = this.#neighborOf(hole, toVictim);
        for (const edge of EDGES.filter((one) => one !== OPPOSITE[toVictim])) {
          const thrower = this.#neighborOf(victim.place, edge).one;
          if (!thrower?.id) continue;
          const target = `/throw/${thrower.id}/${OPPOSITE[edge]}`;
          const body = () => (Math.random() < 0.01 ? picture() : small(times));
          const lane = this.#lines[Math.floor(Math.random() * this.#lines.length)];
          lane.send(concat(repeat(times, () => request('POST', target, { body: body() }))));
        }
      }
    }
  }

  /** Makes all settlers poll, some at a time. */
  async keepPolling() {
    const parts = 20;
    for (let part = 0; ; part = (part + 1) % parts) {
      for (let at = part; at < this.#settlers.length; at += parts) this.#settlers[at].poll();
      await pause((Number(values.lease) * 300) / parts);
    }
  }
}

/** A hostile client that stays, with a connection for its polls. */
class Settler {
  id = null;
  place = null;
  #isPolling = false;
  #line = new Line(port, (text) => {
    const [, place] = /(\{"row":[^}]*\})/.exec(text) ?? [];
    if (place) this.place = JSON.parse(place);
    if (text.includes('"sprites"')) this.#isPolling = false;
    if (text.includes('urn:sprites:unknown-client')) this.end();
  });

  settle(id) {
    this.id = id;
    this.#isPolling = false;
    this.#line.send(request('GET', `/place/${id}`));
    this.poll();
  }

  poll() {
    if (this.id === null || (this.#isPolling && this.#line.isOpen)) return;
    this.#isPolling = this.#line.send(request('GET', `/poll/${this.id}`));
  }

  end() {
    this.id = null;
    this.place = null;
  }
}

/** Repeats `act` until the process ends. */
async function forever(milliseconds, act) {
  for (;;) {
    await act();
    await pause(milliseconds);
  }
}

/** Opens `count` connections, calls `act` for each, and closes them after `seconds`; repeats that. */
function wave(count, seconds, act, { to = port, reads = true } = {}) {
  return forever(250, async () => {
    const sockets = repeat(count, () => open(to, { reads })).filter(Boolean);
    for (const socket of sockets) act(socket);
    await pause(seconds * 1000);
    for (const socket of sockets) socket.destroy();
  });
}

const settlers = new Settlers(Number(values.clients));
const onePercent = Math.max(1, Math.round(maxOpen / 100));

const attacks = {
  fills: async () => {
    settlers.fillMailboxes(24);
    await forever(1000, () => settlers.fillMailboxes(4));
  },

  /** Crowds that join, throw as much as allowed, and leave, all at once. */
  crowds: () =>
    forever(3000, async () => {
      const ids = [];
      const line = new Line(transientPort, (text) => {
        ids.push(...idsIn(text));
      });
      line.send(concat(repeat(50, () => request('POST', '/join'))));
      await pause(500);
      for (const id of ids) {
        line.send(
          concat(
            repeat(20, (n) => request('POST', `/throw/${id}/${EDGES[n % 4]}`, { body: small(n) }))
          )
        );
      }
      await pause(500);
      line.send(concat(ids.map((id) => request('POST', `/leave/${id}`))));
    }),

  /** Odd requests such as CONNECT, with resets at random moments. */
  resets: () =>
    forever(20, async () => {
      const kinds = [
        'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
        'GET / HTTP/1.1\r\nHost: x\r\n\r\n',
        'POST /join HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5',
        'OPTIONS /join HTTP/1.1\r\nHost: x\r\n\r\n',
        'PUT /feed/a HTTP/1.1\r\nHost: x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n'
      ];
      for (const to of new Set([port, transientPort])) {
        const socket = open(to);
        send(socket, kinds[Math.floor(Math.random() * kinds.length)]);
        setTimeout(() => socket && resetSocket(socket.raw), Math.random() * 20);
      }
    }),

  /** Pipelined requests for JavaScript, whose answers are never read. */
  ahead() {
    const requests = 'GET /a HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(2200);
    for (const [to, most] of [
      [port, 40],
      [transientPort, 20]
    ]) {
      const count = Math.min(most, onePercent);
      wave(count, 6, (socket) => send(socket, requests), { to, reads: false });
    }
  },

  /** A parked poll with pipelined input behind it. */
  behind: () =>
    wave(onePercent, 10, (socket) => {
      let joined = false;
      socket.on('data', (chunk) => {
        const [id] = idsIn(chunk.toString('latin1'));
        if (!id || joined) return;
        joined = true;
        send(socket, request('GET', `/poll/${id}`));
        send(socket, 'x'.repeat(15000));
      });
      send(socket, request('POST', '/join'));
    }),

  /** Requests for JavaScript, over and over. */
  cold: () =>
    forever(250, async () => {
      const sockets = repeat(10 * onePercent, () => open()).filter(Boolean);
      for (let times = 0; times < 8; times += 1) {
        for (const socket of sockets) send(socket, 'OPTIONS /join HTTP/1.1\r\nHost: x\r\n\r\n');
        await pause(800);
      }
      for (const socket of sockets) socket.destroy();
    }),

  heads: () =>
    wave(onePercent, 11, (socket) =>
      send(socket, `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15000)}`)
    ),

  /** Many requests for pages and feeds, whose answers are never read. */
  slowReaders: () =>
    wave(onePercent, 15, (socket) => send(socket, concat(repeat(40, () => request('GET', '/')))), {
      reads: false
    }),
  streams: () =>
    wave(
      2 * onePercent,
      15,
      (socket) =>
        send(socket, request('GET', '/feed/scores', { headers: { Accept: 'text/event-stream' } })),
      { reads: false }
    ),
  watchers: () =>
    wave(5 * onePercent, 20, (socket) => {
      const feeds = Object.fromEntries([['scores', ''], ...repeat(31, (n) => [`no/${n}`, ''])]);
      socket.on('data', () => {});
      send(socket, request('GET', '/feed/scores'));
      const body = JSON.stringify({ hold: 60, feeds });
      send(socket, request('POST', '/feeds', { body }));
      send(socket, request('GET', '/feed/scores?after=none-0'));
    }),
  publishers: () =>
    wave(4, 5, (socket) => {
      const head = `PUT /feed/scores HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n`;
      send(socket, `${head}Content-Length: 900000\r\n\r\n"${'x'.repeat(60000)}`);
    }),

  /** Idle connections, up to the limit. */
  silence: () =>
    forever(100, async () => {
      for (let n = 0; n < 100 && counts.open < maxOpen - 15 * onePercent; n += 1) open();
    })
};

if (values.admin !== undefined) {
  attacks.admin = () =>
    wave(80, 8, (socket) => Math.random() < 0.3 && send(socket, 'GET /metrics HTTP/1.1\r\n'), {
      to: Number(values.admin)
    });
}

const report = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const wantedSettlers = Number(values.clients);
for (let tries = 0; tries < 600 && settlers.settled < wantedSettlers; tries += 1) {
  settlers.join();
  await pause(100);
}
settlers.join();
await settlers.leaveHoles(Number(values.holes));
forever(250, () => settlers.join());
settlers.keepPolling();
report({ ready: true, clients: settlers.count });

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'go') {
      startedAt = performance.now();
      for (const attack of Object.values(attacks)) attack();
    } else {
      report({ done: { ...counts, clients: settlers.count } });
      report({ quiet: true });
    }
  })
  .on('close', () => process.exit());
