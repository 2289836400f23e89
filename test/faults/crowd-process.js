import { createInterface } from 'node:readline';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';

import { ReconnectingClient, Wire } from '../support/http.js';

/**
 * A crowd of clients in a separate process, which tests kill, stop and cut off.
 *
 * It reports its actions as JSON lines on stdout. It reports a received sprite before it acks the sprite: so the reader
 * knows every promise of the server, whenever this process is killed.
 *
 *   {"ready":true}               all clients have joined
 *   {"promised":KEY,"state":…}   a throw got 202
 *   {"open":KEY}                 a throw with unknown outcome: its thrower is gone
 *   {"tried":{"first":202,…}}    the outcome of a throw: its edge, its first answer (202 or a problem), whether it
 *                                got its 202 in the end, and the seconds until then
 *   {"got":[KEY,…]}              the sprites of one answer, in order
 *   {"gone":ID,"ack":9,…}        a 404: the client lost its place, and joins again. Its last received number, and its
 *                                last acks: each with the time of its first sending
 *   {"broken":TEXT}              the server broke its contract
 *   {"quiet":true}               no throw is under way (after "quiet" on stdin; "go": throw again)
 *
 * After "stop" on stdin it stops itself, as by SIGSTOP, but never between recording an ack and sending it.
 */

const { values } = parseArgs({
  options: {
    host: { type: 'string', default: '127.0.0.1' },
    port: { type: 'string' },
    name: { type: 'string' },
    clients: { type: 'string', default: '10' },
    pace: { type: 'string', default: '200' },
    doze: { type: 'string', default: '0' },
    edges: { type: 'string', default: 'left,right,up,down' },
    patience: { type: 'string', default: '9000' },
    transient: { type: 'string' },
    tls: { type: 'boolean', default: false },
    from: { type: 'string' },
    addresses: { type: 'string', default: '1' }
  }
});
const { host, name } = values;
const port = Number(values.port);
/** The port for joins and throws. */
const transientPort = Number(values.transient ?? values.port);
/** Milliseconds between two throws of a client; 0: the client only catches. */
const pace = Number(values.pace);
/** Milliseconds between an answer and the next poll. Meanwhile sprites for the client wait at the server. */
const doze = Number(values.doze);
/** Timeout of an answer in milliseconds, longer than a hold. After it the connection counts as dead. */
const patience = Number(values.patience);
/** The edges of the throws, in turn. */
const edges = values.edges.split(',');

/** Number of remembered acks. */
const MAX_ACKS = 8;

let isThrowing = pace > 0;
let isRunning = true;
let spriteCount = 0;

const report = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);

/** Returns the source address of the n-th client. */
function addressOf(n) {
  if (values.from === undefined) return undefined;
  const [, network, first] = /^(.*\.)(\d+)$/.exec(values.from);
  return `${network}${Number(first) + (n % Number(values.addresses))}`;
}

class Client {
  #polls;
  #throws;
  #joins;
  #ack = 0;
  /** The last acks, each with the time of its first sending, in milliseconds (Date.now). */
  #acks = [];
  #joinCount = 0;
  /** The number of the last throw, and the stay in which it was made. */
  #lastNumber = 0;
  #numberedJoin = 0;
  id = null;

  constructor(n) {
    const open = values.tls ? Wire.openTls : Wire.open;
    const line = (to) =>
      new ReconnectingClient(() => open.call(Wire, to, host, addressOf(n)), patience);
    this.#polls = line(port);
    this.#throws = line(transientPort);
    this.#joins = line(transientPort);
  }

  async join() {
    for (;;) {
      try {
        const { status, body } = await this.#joins.ask('POST', '/join');
        if (status === 201) {
          this.#ack = 0;
          this.#acks = [];
          this.#joinCount++;
          this.id = body.id;
          this.#joins.close();
          return;
        }
      } catch {
        /* the next try may succeed: faults are expected here */
      }
      await pause(100);
    }
  }

  #noteAck() {
    if (this.#acks.at(-1)?.[1] !== this.#ack) this.#acks.push([Date.now(), this.#ack]);
    if (this.#acks.length > MAX_ACKS) this.#acks.shift();
  }

  async keepPolling() {
    while (isRunning) {
      let answer;
      const target = `/poll/${this.id}?ack=${this.#ack}`;
      try {
        answer = await this.#polls.ask('GET', target, {}, () => this.#noteAck());
      } catch {
        await pause(50);
        continue;
      }
      const { status, body } = answer;
      if (status === 404) {
        report({ gone: this.id, ack: this.#ack, acks: this.#acks });
        await this.join();
      } else if (status !== 200) {
        report({ broken: `poll: ${status} ${JSON.stringify(body)}` });
        await pause(100);
      } else if (body.sprites.length > 0) {
        for (const { seq } of body.sprites) {
          if (seq !== this.#ack + 1) report({ broken: `sprite ${seq} came after ${this.#ack}` });
          this.#ack = seq;
        }
        report({ got: body.sprites.map(({ sprite }) => sprite.key) });
        await pause(doze);
      }
    }
  }

  async keepThrowing() {
    await pause(Math.random() * pace);
    while (isThrowing) {
      if (this.#numberedJoin !== this.#joinCount) this.#lastNumber = 0;
      this.#numberedJoin = this.#joinCount;
      this.#lastNumber++;
      await this.#throwOne(this.#joinCount, this.#lastNumber, `${name}.${++spriteCount}`);
      await pause(pace);
    }
  }

  /** Repeats a throw until its outcome is known, or the thrower's place is gone. */
  async #throwOne(joinCount, number, key) {
    const edge = edges[spriteCount % edges.length];
    const id = this.id;
    const begun = performance.now();
    let first;
    const reportTry = (done) =>
      report({ tried: { key, edge, first, done, seconds: (performance.now() - begun) / 1000 } });
    while (joinCount === this.#joinCount) {
      try {
        const { status, body } = await this.#throws.ask(
          'POST',
          `/throw/${id}/${edge}?n=${number}`,
          { body: JSON.stringify({ key }) }
        );
        first ??= status === 202 ? status : String(body.type).replace('urn:sprites:', '');
        if (status === 202) {
          reportTry(true);
          return report({ promised: key, state: body.state });
        }
        if (status === 404) break;
        if (status !== 429 && status !== 503) {
          return report({ broken: `throw: ${status} ${JSON.stringify(body)}` });
        }
      } catch (error) {
        // The outcome is unknown: a throw with the same number will tell it.
        first ??= error.code ?? 'no answer';
      }
      await pause(100);
    }
    reportTry(false);
    report({ open: key });
  }

  close() {
    this.#polls.close();
    this.#throws.close();
    this.#joins.close();
  }
}

const clients = Array.from({ length: Number(values.clients) }, (_, n) => new Client(n));
await Promise.all(clients.map((client) => client.join()));
report({ ready: true });
for (const client of clients) client.keepPolling();
let throws = clients.map((client) => isThrowing && client.keepThrowing());

createInterface({ input: process.stdin })
  .on('line', async (line) => {
    if (line === 'stop') {
      process.kill(process.pid, 'SIGSTOP');
    } else if (line === 'go') {
      isThrowing = pace > 0;
      throws = clients.map((client) => isThrowing && client.keepThrowing());
    } else if (line === 'quiet') {
      isThrowing = false;
      await Promise.all(throws);
      report({ quiet: true });
    }
  })
  .on('close', () => {
    isRunning = false;
    for (const client of clients) client.close();
    process.exit();
  });
