/**
 * The wire contract over node:http, the obvious way: a Map of clients, each with its parked response object and a
 * timer for its hold. It is what a good Node developer writes in a day, and the native server is compared with it.
 * Bodies are parsed and checked for shape and size. The rest of the contract (statuses, CORS, duplicates) is left out:
 * it costs nothing on the way of a sprite.
 *
 *     node test/bench/contenders/node-http.js [port]
 */
import { randomUUID } from 'node:crypto';
import http from 'node:http';

const HOLD = 120;
const LEASE = 30;
const MAX_SPRITE = 16384;
const MAX_WAITING = 256;
const OPPOSITE = { left: 'right', right: 'left', up: 'down', down: 'up' };

/** Clients by id. A client is {id, place, seq, mailbox, res, timer, seen}. */
const clients = new Map();

/** The torus: rows of clients, nearly square. The last client fills the hole of a leaver. */
const places = [];

function neighbor(client, edge) {
  const columns = Math.max(1, Math.floor(Math.sqrt(places.length)));
  const steps = { left: -1, right: 1, up: -columns, down: columns };
  return places[(client.place + steps[edge] + places.length) % places.length];
}

function answer(res, status, value) {
  const body = JSON.stringify(value);
  res.writeHead(status, {
    'Content-Type': status < 400 ? 'application/json' : 'application/problem+json',
    'Content-Length': Buffer.byteLength(body),
    'Cache-Control': 'no-store'
  });
  res.end(body);
}

function refuse(res, status, name, detail) {
  answer(res, status, { type: `urn:sprites:${name}`, title: name, status, detail });
}

function answerPoll(client, extra = {}) {
  const { res } = client;
  clearTimeout(client.timer);
  client.res = null;
  client.seen = Date.now();
  answer(res, 200, { seq: client.seq, sprites: client.mailbox, ...extra });
}

function join(res) {
  const client = {
    id: randomUUID(),
    place: places.length,
    seq: 0,
    mailbox: [],
    res: null,
    timer: null,
    seen: Date.now()
  };
  clients.set(client.id, client);
  places.push(client);
  answer(res, 201, { id: client.id, hold: HOLD, lease: LEASE, maxSprite: MAX_SPRITE });
}

function leave(client) {
  clients.delete(client.id);
  const last = places.pop();
  if (last !== client) {
    places[client.place] = last;
    last.place = client.place;
  }
  if (client.res) answerPoll(client);
}

function poll(client, query, res) {
  const ack = Number(query.get('ack') ?? 0);
  if (!(ack <= client.seq)) {
    refuse(res, 400, 'ack-ahead', 'Ask with the seq of the last answer.');
    return;
  }
  if (client.res) answerPoll(client, { superseded: true });
  while (client.mailbox.length > 0 && client.mailbox[0].seq <= ack) client.mailbox.shift();
  client.res = res;
  if (client.mailbox.length > 0) {
    answerPoll(client);
    return;
  }
  client.timer = setTimeout(answerPoll, HOLD * 1000, client);
  res.on('close', () => {
    if (client.res !== res) return;
    clearTimeout(client.timer);
    client.res = null;
    client.seen = Date.now();
  });
}

function throwSprite(client, edge, req, res) {
  const chunks = [];
  let length = 0;
  req.on('data', (chunk) => {
    length += chunk.length;
    if (length <= MAX_SPRITE) chunks.push(chunk);
  });
  req.on('end', () => {
    if (length > MAX_SPRITE) {
      refuse(res, 413, 'sprite-too-large', `Send at most ${MAX_SPRITE} bytes.`);
      return;
    }
    let sprite;
    try {
      sprite = JSON.parse(Buffer.concat(chunks));
    } catch {
      refuse(res, 400, 'bad-sprite', 'Send one JSON object.');
      return;
    }
    const receiver = neighbor(client, edge);
    if (receiver.mailbox.length >= MAX_WAITING) {
      refuse(res, 503, 'neighbor-busy', 'Throw again later.');
      return;
    }
    receiver.seq += 1;
    receiver.mailbox.push({ seq: receiver.seq, from: OPPOSITE[edge], sprite });
    const state = receiver.res ? 'delivered' : 'queued';
    if (receiver.res) answerPoll(receiver);
    answer(res, 202, { state });
  });
}

const server = http.createServer((req, res) => {
  const url = new URL(req.url, 'http://localhost');
  const [, route, id, edge] = url.pathname.split('/');
  const client = clients.get(id);
  if (req.method === 'POST' && route === 'join') {
    join(res);
  } else if (!client) {
    refuse(res, 404, 'unknown-client', 'Join again.');
  } else if (req.method === 'GET' && route === 'poll') {
    poll(client, url.searchParams, res);
  } else if (req.method === 'POST' && route === 'throw' && OPPOSITE[edge]) {
    throwSprite(client, edge, req, res);
  } else if (req.method === 'POST' && route === 'leave') {
    leave(client);
    res.writeHead(204).end();
  } else {
    refuse(res, 404, 'not-found', 'There is join, poll, throw and leave.');
  }
});

setInterval(() => {
  const oldestSeen = Date.now() - LEASE * 1000;
  for (const client of clients.values()) {
    if (!client.res && client.seen < oldestSeen) leave(client);
  }
}, 5000);

server.listen({ port: Number(process.argv[2] ?? 0), host: '127.0.0.1', backlog: 65535 }, () => {
  console.log(`http://127.0.0.1:${server.address().port}`);
});
