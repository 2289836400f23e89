import { readdirSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { ReconnectingClient, Wire } from '../support/http.js';
import { answerHelp, takeOptions } from '../support/documents.js';
import { useOf } from '../../lib/swarm/server-watch.js';
import { Teardowns } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';
import { chart, GC_OPTIONS, MIN_VALUES, slackOf, trend } from './trend.js';
import { NO_ADDRESS_LIMITS } from '../support/launch.js';

/**
 * The soak: thousands of clients that come, throw, leave and vanish, for minutes; and whether
 * anything of the server grows meanwhile.
 *
 *   node test/faults/soak.js [--minutes 10] [--clients 10000] [--churn 1] [--rate 300]
 *                            [--every 5]
 *
 * Each second `churn` per cent of the clients are replaced or interrupted: a third leaves, a third
 * vanishes without a word and expires, a third loses its connection and polls again. Ends with 1
 * when a figure grows, a promised sprite is missing, or something is left when all have gone. Growth is judged by the
 * second half of the run, if that has ten samples: 100 s with the defaults.
 */

answerHelp(import.meta.url);

const values = takeOptions(import.meta.url, {
  minutes: { type: 'string', default: '10' },
  clients: { type: 'string', default: '10000' },
  churn: { type: 'string', default: '1' },
  rate: { type: 'string', default: '300' },
  every: { type: 'string', default: '5' }
});
const [minutes, clients, churn, rate, every] = ['minutes', 'clients', 'churn', 'rate', 'every'].map(
  (name) => Number(values[name])
);

const LEASE = 10;
const HOLD = 30;
const EDGES = ['left', 'right', 'up', 'down'];

const teardowns = new Teardowns();
const server = await startServer(teardowns, {
  options: { hold: HOLD, lease: LEASE, 'log-level': 'error', ...NO_ADDRESS_LIMITS },
  command: [process.execPath, ...GC_OPTIONS, `${ROOT}bin/sprites`]
});

const account = { promised: new Set(), received: new Set(), refused: 0, unanswered: 0, wrong: [] };
const events = { joined: 0, left: 0, vanished: 0, dropped: 0 };
const members = [];
let isRunning = true;

const newLine = () => new ReconnectingClient(() => Wire.open(server.port));

/** @returns {Promise<object>} the answer; status 0 when the connection ended first */
const ask = (line, ...what) =>
  line.ask(...what).catch((error) => {
    if (error.code !== 'ERR_ASSERTION' && error.syscall === undefined) throw error;
    return { status: 0 };
  });

/** A client: an id, and a connection with a parked poll. */
class Member {
  #line = newLine();
  #ack = 0;
  #hasLeft = false;

  async join() {
    const { status, body } = await ask(this.#line, 'POST', '/join');
    if (status !== 201) throw new Error(`join: ${status} ${JSON.stringify(body)}`);
    this.id = body.id;
    events.joined++;
    members.push(this);
    this.#keepPolling();
  }

  async #keepPolling() {
    while (!this.#hasLeft) {
      const { status, body } = await ask(this.#line, 'GET', `/poll/${this.id}?ack=${this.#ack}`);
      if (this.#hasLeft) return;
      if (status === 200) {
        for (const { seq, sprite } of body.sprites) {
          if (seq !== this.#ack + 1) account.wrong.push(`sprite ${seq} after ${this.#ack}`);
          this.#ack = seq;
          account.received.add(sprite.key);
        }
      } else if (status !== 0) {
        account.wrong.push(`poll: ${status} ${JSON.stringify(body)}`);
        return;
      }
    }
  }

  /** Breaks the connection. The client polls again at once. */
  drop() {
    events.dropped++;
    this.#line.close();
  }

  /** Disappears without a leave. */
  vanish() {
    events.vanished++;
    this.#hasLeft = true;
    this.#line.close();
  }

  async leave(over) {
    this.#hasLeft = true;
    const { status } = await ask(over, 'POST', `/leave/${this.id}`);
    if (status !== 204) account.wrong.push(`leave: ${status}`);
    events.left++;
    this.#line.close();
  }
}

const randomMember = () => members[Math.floor(Math.random() * members.length)];

/** Removes a random member from the list, and returns it. */
function removeRandom() {
  const at = Math.floor(Math.random() * members.length);
  const member = members[at];
  members[at] = members.at(-1);
  members.pop();
  return member;
}

/** Calls `act` this many times a second, as evenly as timers allow, while the soak runs. */
async function repeatAtRate(perSecond, act) {
  let dueCount = 0;
  let last = performance.now();
  while (isRunning) {
    await pause(50);
    const now = performance.now();
    dueCount += ((now - last) / 1000) * perSecond;
    last = now;
    const acts = [];
    for (; dueCount >= 1; dueCount--) acts.push(act());
    await Promise.all(acts);
  }
}

const idleLines = [];
/** Lends a connection for one request. */
async function withLine(use) {
  const line = idleLines.pop() ?? newLine();
  try {
    return await use(line);
  } finally {
    idleLines.push(line);
  }
}

let lastKey = 0;
function throwOne() {
  const member = randomMember();
  const key = ++lastKey;
  return withLine(async (line) => {
    const body = JSON.stringify({ key, fill: 'x'.repeat(key % 400) });
    const { status } = await ask(line, 'POST', `/throw/${member.id}/${EDGES[key % 4]}`, { body });
    if (status === 202) account.promised.add(key);
    else if (status === 0) account.unanswered++;
    else account.refused++; // 404: the thrower has just left; 429, 503: limits
  });
}

let churnCount = 0;
async function churnOne() {
  const kind = churnCount++ % 3;
  if (kind === 0) return randomMember().drop();
  const member = removeRandom();
  if (kind === 1) member.vanish();
  else await withLine((line) => member.leave(line));
  await new Member().join();
}

const samples = [];
async function sample() {
  server.child.kill('SIGPWR');
  const { clients, parked, mailboxBytes, heldBytes, waiting, connections, heapUsed } =
    await server.status();
  samples.push({
    'resident size': useOf(server.pid).memory,
    'V8 heap': heapUsed,
    descriptors: readdirSync(`/proc/${server.pid}/fd`).length,
    connections,
    clients,
    parked,
    waiting,
    'mailbox bytes': mailboxBytes,
    'held bytes': heldBytes
  });
}

const started = performance.now();
const secondsPassed = () => Math.round((performance.now() - started) / 1000);
while (members.length < clients) {
  const batch = Math.min(200, clients - members.length);
  await Promise.all(Array.from({ length: batch }, () => new Member().join()));
}
process.stdout.write(
  `${clients} clients after ${secondsPassed()} s; ${minutes} minutes of churn: ` +
    `${(clients * churn) / 100} a second, and ${rate} sprites a second\n`
);
const work = [repeatAtRate((clients * churn) / 100, churnOne), repeatAtRate(rate, throwOne)];
const end = performance.now() + minutes * 60_000;
while (performance.now() < end) {
  await pause(every * 1000);
  await sample();
}
isRunning = false;
await Promise.all(work);

let grownCount = 0;
const secondHalf = samples.slice(Math.floor(samples.length / 2));
const judged =
  secondHalf.length < MIN_VALUES
    ? `not judged, since the second half has fewer than ${MIN_VALUES} marks`
    : 'flat or not: the second half';
process.stdout.write(`\nA mark every ${every} s; ${judged}\n\n`);
for (const name of Object.keys(samples[0])) {
  const { mean, rise, verdict } = trend(
    secondHalf.map((one) => one[name]),
    slackOf(name)
  );
  if (verdict === 'GROWS') grownCount++;
  const round = (value) => Math.round(value).toLocaleString('en');
  const change = rise === undefined ? '' : `${rise < 0 ? '' : '+'}${round(rise)}`;
  const line = chart(
    samples.map((one) => one[name]),
    60
  );
  process.stdout.write(
    `${name.padEnd(14)} ${line} ${round(mean).padStart(12)} ${change.padEnd(11)} ${verdict}\n`
  );
}

// Sprites under way arrive; then all clients leave, and the server must keep nothing of them.
const seconds = LEASE + 30;
await server
  .until(({ waiting }) => waiting === 0, seconds)
  .catch((error) => {
    account.wrong.push(error.message);
  });
const missing = [...account.promised].filter((key) => !account.received.has(key));
const busiest = await server.status();
await Promise.all(
  Array.from({ length: 32 }, async () => {
    for (let member; (member = members.pop());) await withLine((line) => member.leave(line));
  })
);
for (const line of idleLines) line.close();
const last = await server.until((status) => status.clients === 0, seconds);
await server.untilDisconnected();
const leftovers = ['clients', 'parked', 'waiting', 'mailboxBytes', 'heldBytes'].filter(
  (name) => last[name] !== 0
);
await server.stop();

process.stdout.write(
  [
    '',
    `${events.joined} joined, ${events.left} left, ${events.vanished} vanished, ` +
      `${events.dropped} lost their connection and came back`,
    `${account.promised.size} sprites promised, ${missing.length} missing; ${account.refused} refused,` +
      ` ${account.unanswered} unanswered; the server: thrown ${last.thrown} = acked ${last.acked}` +
      ` + waiting ${last.waiting} + lost ${last.lost}, ${last.flown} flew on`,
    `longest stall ${busiest.longestStallMs} ms`,
    leftovers.length === 0
      ? 'nothing is left when all have gone: clients, polls, bytes, descriptors'
      : `LEFT when all have gone: ${leftovers.join(', ')}`,
    ...account.wrong.slice(0, 10).map((line) => `WRONG: ${line}`),
    ''
  ].join('\n')
);
process.exitCode =
  grownCount > 0 || missing.length > 0 || leftovers.length > 0 || account.wrong.length > 0 ? 1 : 0;
await teardowns.end();
