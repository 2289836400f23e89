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
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string' },
    transient: { type: 'string' },
    admin: { type: 'string' },
    tls: { type: 'boolean', default: false },
    from: { type: 'string', default: '127.0.6.6' },
    connections: { type: 'string', default: '10000' },
    clients: { type: 'string', default: '6000' },
    holes: { type: 'string', default: '60' },
    bytes: { type: 'string', default: '100000000' },
    seconds: { type: 'string', default: '60' },
    lease: { type: 'string', default: '30' },
    name: { type: 'string', default: '' }
  }
});
const port = Number(values.port);
/** The port for joins, throws and leaves. */
const transient = Number(values.transient ?? values.port);
const mostOpen = Number(values.connections);
const mostBytes = Number(values.bytes);
/** The budget of bytes until now: a fifth at once, the rest spread over the attack's time. */
let begun = performance.now();
const mayHaveSent = () =>
  mostBytes *
  Math.min(1, 0.2 + ((performance.now() - begun) / 1000 / Number(values.seconds)) * 0.8);

/** The part of the budget that the settlers do not reserve. */
const OTHERS = 0.8;

const seen = { opened: 0, open: 0, most: 0, bytes: 0 };
const EDGES = ['left', 'right', 'up', 'down'];
const JSON_TYPE = 'application/json';

/** Opens a connection within the limit; null: the limit is reached. Calls `hear` with received text. */
function open(to = port, { hear = () => {}, reads = true } = {}) {
  if (seen.open >= mostOpen) return null;
  const raw = connect({ port: to, host: values.host, localAddress: values.from });
  seen.opened += 1;
  seen.open += 1;
  seen.most = Math.max(seen.most, seen.open);
  raw.on('error', () => {});
  raw.on('close', () => {
    seen.open -= 1;
  });
  const socket =
    values.tls && to === port ? secure({ socket: raw, rejectUnauthorized: false }) : raw;
  socket.on('error', () => {});
  if (reads) socket.on('data', (chunk) => hear(chunk.toString('latin1')));
  else socket.pause();
  socket.raw = raw;
  return socket;
}

/** Sends bytes within the budget. */
function send(socket, bytes, part = OTHERS) {
  if (socket === null || socket.destroyed) return false;
  if (seen.bytes + bytes.length > mayHaveSent() * part) return false;
  seen.bytes += bytes.length;
  socket.write(bytes);
  return true;
}

const many = (count, make) => Array.from({ length: count }, (_, i) => make(i));
const all = (requests) => Buffer.concat(requests);

/** A connection that is opened again whenever it has ended. */
class Line {
  #socket = null;

  constructor(to, hear) {
    this.to = to;
    this.hear = hear;
  }

  get open() {
    return this.#socket !== null && !this.#socket.destroyed;
  }

  send(bytes) {
    if (!this.open) this.#socket = open(this.to, { hear: this.hear });
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
const AT_ONCE = 200;

const ID = /"id":"([0-9a-f-]{36})"/g;
const BESIDE = { left: [0, -1], right: [0, 1], up: [-1, 0], down: [1, 0] };
const BACK = { left: 'right', right: 'left', up: 'down', down: 'up' };

/**
 * Hostile clients that stay. They receive sprites but never ack, so that their mailboxes stay full. They leave holes
 * between them: a client that joins there has hostile neighbors on all sides, which fill its mailbox.
 */
class Settlers {
  #all = [];
  #lanes;
  #joined = [];
  /** The clients by their places, "row,column". */
  #at = new Map();
  #rows = 1;
  #columns = 1;
  /** The free places for honest clients: [row, column]. */
  #holes = [];

  constructor(count) {
    const hear = (text) => {
      for (const [, id] of text.matchAll(ID)) this.#joined.push(id);
    };
    this.#lanes = many(10, () => new Line(transient, hear));
    this.#all = many(count, () => new Settler());
  }

  get count() {
    return this.#all.filter(({ id }) => id !== null).length;
  }

  get settled() {
    return this.#all.filter(({ place }) => place !== null).length;
  }

  /** Joins the settlers without an id, and asks for their places. */
  join() {
    const homeless = this.#all.filter(({ id }) => id === null);
    // Some at a time: the server closes a connection that sends too slowly.
    const some = homeless.splice(0, Math.min(AT_ONCE, this.#joined.length));
    for (const one of some) one.begin(this.#joined.pop());
    const missing = Math.min(AT_ONCE, homeless.length - this.#joined.length);
    const lane = this.#lanes[Math.floor(Math.random() * this.#lanes.length)];
    if (missing > 0) lane.send(all(many(missing, () => request('POST', '/join'))));
    for (const one of this.#all) {
      if (one.place === null) continue;
      const { row, column, rows, columns } = one.place;
      this.#at.set(`${row},${column}`, one);
      this.#rows = rows;
      this.#columns = columns;
    }
  }

  /** Makes some settlers leave, far from each other: the next clients to join get their places. */
  async dig(count) {
    const free = this.#all.filter(({ place }) => place !== null);
    for (let n = 0; n < count; n += 1) {
      const one = free[Math.floor(((n + 0.5) * free.length) / count)];
      this.#holes.push([one.place.row, one.place.column]);
      this.#lanes[0].send(request('POST', `/leave/${one.id}`));
      // This settler does not join again.
      this.#all.splice(this.#all.indexOf(one), 1);
      one.end();
    }
    await pause(500);
  }

  #beside([row, column], edge) {
    const [down, right] = BESIDE[edge];
    const place = [
      (row + down + this.#rows) % this.#rows,
      (column + right + this.#columns) % this.#columns
    ];
    return { place, one: this.#at.get(place.join(',')) };
  }

  /** Fills the mailboxes of the holes' neighbors by throws of their other neighbors. */
  fill(times) {
    for (const hole of this.#holes) {
      for (const toVictim of EDGES) {
        const victim = this.#beside(hole, toVictim);
        for (const edge of EDGES.filter((one) => one !== BACK[toVictim])) {
          const thrower = this.#beside(victim.place, edge).one;
          if (!thrower?.id) continue;
          const target = `/throw/${thrower.id}/${BACK[edge]}`;
          const body = () => (Math.random() < 0.01 ? picture() : small(times));
          const lane = this.#lanes[Math.floor(Math.random() * this.#lanes.length)];
          lane.send(all(many(times, () => request('POST', target, { body: body() }))));
        }
      }
    }
  }

  /** Makes all settlers poll, some at a time. */
  async askOn() {
    const parts = 20;
    for (let part = 0; ; part = (part + 1) % parts) {
      for (let at = part; at < this.#all.length; at += parts) this.#all[at].ask();
      await pause((Number(values.lease) * 300) / parts);
    }
  }
}

/** A hostile client that stays, with a connection for its polls. */
class Settler {
  id = null;
  place = null;
  #asked = false;
  #line = new Line(port, (text) => {
    const [, place] = /(\{"row":[^}]*\})/.exec(text) ?? [];
    if (place) this.place = JSON.parse(place);
    if (text.includes('"sprites"')) this.#asked = false;
    if (text.includes('urn:sprites:unknown-client')) this.end();
  });

  begin(id) {
    this.id = id;
    this.#asked = false;
    this.#line.send(request('GET', `/place/${id}`));
    this.ask();
  }

  ask() {
    if (this.id === null || (this.#asked && this.#line.open)) return;
    this.#asked = this.#line.send(request('GET', `/poll/${this.id}`));
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
    const sockets = many(count, () => open(to, { reads })).filter(Boolean);
    for (const socket of sockets) act(socket);
    await pause(seconds * 1000);
    for (const socket of sockets) socket.destroy();
  });
}

const settlers = new Settlers(Number(values.clients));
const share = Math.max(1, Math.round(mostOpen / 100));

const attacks = {
  fills: async () => {
    settlers.fill(24);
    await forever(1000, () => settlers.fill(4));
  },

  /** Crowds that join, throw as much as allowed, and leave, all at once. */
  crowds: () =>
    forever(3000, async () => {
      const ids = [];
      const line = new Line(transient, (text) => {
        for (const [, id] of text.matchAll(/"id":"([0-9a-f-]{36})"/g)) ids.push(id);
      });
      line.send(all(many(50, () => request('POST', '/join'))));
      await pause(500);
      for (const id of ids) {
        line.send(
          all(many(20, (n) => request('POST', `/throw/${id}/${EDGES[n % 4]}`, { body: small(n) })))
        );
      }
      await pause(500);
      line.send(all(ids.map((id) => request('POST', `/leave/${id}`))));
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
      for (const to of new Set([port, transient])) {
        const socket = open(to);
        send(socket, kinds[Math.floor(Math.random() * kinds.length)]);
        setTimeout(() => socket && resetSocket(socket.raw), Math.random() * 20);
      }
    }),

  /** Pipelined requests for JavaScript, whose answers are never read. */
  ahead: () =>
    wave(
      Math.min(40, share),
      6,
      (socket) => send(socket, 'GET /a HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(2200)),
      { reads: false }
    ),
  aheadOfWorkers: () =>
    wave(
      Math.min(20, share),
      6,
      (socket) => send(socket, 'GET /a HTTP/1.1\r\nHost:x\r\n\r\n'.repeat(2200)),
      { to: transient, reads: false }
    ),

  /** A parked poll with pipelined input behind it. */
  behind: () =>
    wave(share, 10, (socket) => {
      let joined = false;
      socket.on('data', (chunk) => {
        const [, id] = /"id":"([0-9a-f-]{36})"/.exec(chunk) ?? [];
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
      const sockets = many(10 * share, () => open()).filter(Boolean);
      for (let times = 0; times < 8; times += 1) {
        for (const socket of sockets) send(socket, 'OPTIONS /join HTTP/1.1\r\nHost: x\r\n\r\n');
        await pause(800);
      }
      for (const socket of sockets) socket.destroy();
    }),

  heads: () =>
    wave(share, 11, (socket) =>
      send(socket, `GET / HTTP/1.1\r\nHost: x\r\nX: ${'x'.repeat(15000)}`)
    ),

  /** Many requests for pages and feeds, whose answers are never read. */
  slowReaders: () =>
    wave(
      share,
      15,
      (socket) => {
        send(socket, all(many(40, () => request('GET', '/'))));
      },
      { reads: false }
    ),
  streams: () =>
    wave(
      2 * share,
      15,
      (socket) =>
        send(socket, request('GET', '/feed/scores', { headers: { Accept: 'text/event-stream' } })),
      { reads: false }
    ),
  watchers: () =>
    wave(5 * share, 20, (socket) => {
      const feeds = Object.fromEntries([['scores', ''], ...many(31, (n) => [`no/${n}`, ''])]);
      socket.on('data', () => {});
      send(socket, request('GET', '/feed/scores'));
      const body = JSON.stringify({ hold: 60, feeds });
      send(socket, request('POST', '/feeds', { body }));
      send(socket, request('GET', '/feed/scores?after=none-0'));
    }),
  publishers: () =>
    wave(4, 5, (socket) => {
      const head = `PUT /feed/scores HTTP/1.1\r\nHost: x\r\nContent-Type: ${JSON_TYPE}\r\n`;
      send(socket, `${head}Content-Length: 900000\r\n\r\n"${'x'.repeat(60000)}`);
    }),

  /** Idle connections, up to the limit. */
  silence: () =>
    forever(100, async () => {
      for (let n = 0; n < 100 && seen.open < mostOpen - 15 * share; n += 1) open();
    })
};

if (values.admin !== undefined) {
  attacks.admin = () =>
    wave(80, 8, (socket) => Math.random() < 0.3 && send(socket, 'GET /metrics HTTP/1.1\r\n'), {
      to: Number(values.admin)
    });
}

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

const wanted = Number(values.clients);
for (let tries = 0; tries < 600 && settlers.settled < wanted; tries += 1) {
  settlers.join();
  await pause(100);
}
settlers.join();
await settlers.dig(Number(values.holes));
forever(250, () => settlers.join());
settlers.askOn();
say({ ready: true, clients: settlers.count });

createInterface({ input: process.stdin })
  .on('line', (line) => {
    if (line === 'go') {
      begun = performance.now();
      for (const attack of Object.values(attacks)) attack();
    } else {
      say({ done: { ...seen, clients: settlers.count } });
      say({ quiet: true });
    }
  })
  .on('close', () => process.exit());
