import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import { each, lengthOf } from '../support/until.js';
import { request } from '../support/http.js';
import { startServer } from '../support/server.js';

/**
 * The first law, with a hundred clients and more of flesh and sockets: whatever they do to themselves and
 * to their connections, a sprite that got its 202 is received once, waits, or is counted lost.
 */

const CLIENTS = lengthOf({ short: 150, long: 500 });
const THROWS = 8;
const LEASE = 6;
const EDGES = ['left', 'right', 'up', 'down'];

/** Chance, the same in every run (a linear congruential generator; Numerical Recipes). */
function makeChance(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

class Client {
  #server;
  #chance;
  #throwing;
  #ack = 0;
  #seen = new Map();
  #stop = false;
  number;
  id;
  /** Will vanish without a word at some moment. */
  vanishes;
  gone = false;
  ackSent = 0;
  /** What it caught: [sequence number, sprite]. */
  caught = [];
  /** What it threw and got a 202 for. */
  accepted = [];
  /** What it threw last without ever learning the answer. */
  unknown = null;
  did = { twice: 0, cameBack: 0, stoppedReading: 0, repeated: 0, duplicates: 0, superseded: 0 };

  constructor({ server, chance, number, vanishes }) {
    this.#server = server;
    this.#chance = chance;
    this.number = number;
    this.vanishes = vanishes;
  }

  async join() {
    this.#throwing = await this.#server.wire();
    this.#throwing.send(request('POST', '/join'));
    this.id = (await this.#server.read(this.#throwing)).body.id;
  }

  // ---- catching ----

  /** Polls over a connection of its own or one that is there. */
  async #ask(over) {
    const wire = over ?? (await this.#server.wire());
    this.ackSent = this.#ack;
    wire.send(request('GET', `/poll/${this.id}?ack=${this.#ack}&hold=${5 + this.#chance(3)}`));
    const asked = { wire };
    asked.answer = this.#server.read(wire).then(
      (read) => ({ asked, read }),
      (error) => ({ asked, error })
    );
    return asked;
  }

  #take({ status, body }) {
    if (status === 404) {
      this.gone = true;
      return;
    }
    if (status !== 200) throw new Error(`a poll was answered ${status} ${body?.type}`);
    if (body.superseded) {
      this.did.superseded += 1;
      return;
    }
    for (const { seq, sprite } of body.sprites) {
      if (this.#seen.has(seq)) {
        if (this.#seen.get(seq) !== sprite.uid) throw new Error(`another sprite as ${seq}`);
      } else {
        if (seq !== this.#seen.size + 1) throw new Error(`${seq} after ${this.#seen.size}`);
        this.#seen.set(seq, sprite.uid);
        this.caught.push([seq, sprite.uid]);
      }
    }
    if (body.seq > this.#ack) this.#ack = body.seq;
  }

  async catchAll() {
    let asked = await this.#ask();
    for (let round = 0; ; round += 1) {
      const chance = this.#chance(100);
      if (this.vanishes && round > 3 && chance < 40) this.vanish();
      if (this.gone || this.#stop) break;
      let others = [];
      if (chance < 8) {
        this.did.twice += 1;
        others = [await this.#ask()];
      } else if (chance < 14) {
        this.did.cameBack += 1;
        await (chance % 2 ? asked.wire.destroy() : asked.wire.reset());
        await pause(this.#chance(300));
        asked = await this.#ask();
      } else if (chance < 18) {
        this.did.stoppedReading += 1;
        asked.wire.pause();
        await pause(this.#chance(300));
        await asked.wire.destroy();
        asked = await this.#ask();
      }
      const answered = await Promise.race([asked, ...others].map(({ answer }) => answer));
      if (answered.error) throw answered.error;
      this.#take(answered.read);
      const [other] = [asked, ...others].filter((one) => one !== answered.asked);
      if (other === undefined) {
        if (!this.#stop && !this.gone) asked = await this.#ask(asked.wire);
      } else {
        // The other one is parked in its place, or has its answer on the way.
        await answered.asked.wire.destroy();
        asked = other;
      }
    }
    await asked.wire.destroy();
  }

  // ---- throwing ----

  async throwAll() {
    for (let n = 1; n <= THROWS && !this.gone; n += 1) {
      await pause(this.#chance(200));
      if (this.gone) return;
      await this.#throwOne(n, this.number * 1000 + n);
    }
  }

  async #throwOne(n, uid) {
    const edge = EDGES[this.#chance(4)];
    const bytes = request('POST', `/throw/${this.id}/${edge}?n=${n}`, { body: `{"uid":${uid}}` });
    this.unknown = uid;
    while (!this.gone) {
      const wires = [this.#throwing];
      // As libcurl does on a connection that was reset: again, and nobody knows which came first.
      if (this.#chance(100) < 10) {
        this.did.repeated += 1;
        wires.push(await this.#server.wire());
      }
      for (const wire of wires) wire.send(bytes);
      const answers = await Promise.all(
        wires.map((wire) => this.#server.read(wire).catch((error) => ({ error })))
      );
      if (wires.length > 1) await wires[1].destroy();
      if (this.gone) return;
      const taken = answers.filter(({ status }) => status === 202);
      this.did.duplicates += taken.filter(({ body }) => body.state === 'duplicate').length;
      if (taken.filter(({ body }) => body.state !== 'duplicate').length > 1) {
        throw new Error('one number was taken twice');
      }
      if (taken.length > 0) {
        this.accepted.push(uid);
        this.unknown = null;
        return;
      }
      const [first] = answers;
      if (first.error) throw first.error;
      if (problemOf(first) === 'unknown-client') {
        this.unknown = null;
        this.gone = true;
        return;
      }
      if (problemOf(first) !== 'neighbor-busy') throw new Error(`a throw got ${first.body?.type}`);
      await pause(20);
    }
  }

  // ---- going ----

  vanish() {
    this.gone = true;
    this.#throwing.destroy();
  }

  async leave() {
    this.#stop = true;
    this.#throwing.send(request('POST', `/leave/${this.id}`));
    await this.#server.read(this.#throwing);
  }
}

t.test(`${CLIENTS} clients`, { timeout: 300000 }, async (t) => {
  const server = await startServer(t, {
    options: { lease: LEASE, hold: 30, 'throw-rate': 0, mailbox: 16 }
  });
  const chance = makeChance(20);
  const clients = Array.from(
    { length: CLIENTS },
    (_, number) => new Client({ server, chance, number, vanishes: number % 10 === 3 })
  );
  const catching = [];
  await each(clients, 50, async (client) => {
    await client.join();
    catching.push(client.catchAll());
  });

  let looks = 0;
  let over = false;
  const looking = (async () => {
    // Every look asserts the law.
    for (; !over; looks += 1) {
      await server.status();
      await pause(50);
    }
  })();
  await Promise.all(clients.map((client) => client.throwAll()));
  // Who has not vanished yet does so now; then all leases end, and all sprites arrive.
  for (const client of clients) if (client.vanishes && !client.gone) client.vanish();
  const stay = clients.filter(({ gone }) => !gone);
  t.ok(stay.length >= CLIENTS * 0.85, `${stay.length} stay`);
  const end = await server.until(
    (status) => status.clients === stay.length && status.waiting === 0,
    90
  );
  over = true;
  await looking;
  t.ok(looks > 20, `${looks} looks`);

  t.test('they did what they were here for', async (t) => {
    const did = {};
    for (const client of clients) {
      for (const [name, times] of Object.entries(client.did)) {
        did[name] = (did[name] ?? 0) + times;
      }
    }
    t.comment(did, { flown: end.flown, expired: end.expired, looks });
    for (const [name, times] of Object.entries(did))
      t.ok(times > CLIENTS / 30, `${name}: ${times}`);
    t.ok(end.expired >= CLIENTS / 10, 'a tenth vanished');
    t.ok(end.flown > 0, 'sprites flew on');
  });

  t.test('every accepted sprite was received exactly once', async (t) => {
    const receipts = new Map();
    for (const client of clients) {
      for (const [seq, uid] of client.caught) {
        if (!receipts.has(uid)) receipts.set(uid, { stayed: 0, acked: 0, seen: 0 });
        const receipt = receipts.get(uid);
        if (!client.gone) receipt.stayed += 1;
        else if (seq <= client.ackSent) receipt.acked += 1;
        else receipt.seen += 1;
      }
    }
    const accepted = clients.flatMap((client) => client.accepted);
    const twice = [];
    const never = [];
    for (const uid of accepted) {
      const { stayed, acked } = receipts.get(uid) ?? { stayed: 0, acked: 0 };
      if (stayed > 1) twice.push(uid);
      // One who vanished may have acked it: then it was received there.
      if (stayed === 0 && acked === 0) never.push(uid);
    }
    t.strictSame({ twice, never, lost: end.lost }, { twice: [], never: [], lost: 0 });
    const known = new Set(accepted);
    const unknown = clients.map((client) => client.unknown).filter((uid) => uid !== null);
    t.equal(accepted.length, known.size);
    t.ok(
      end.thrown >= known.size && end.thrown <= known.size + unknown.length,
      `${end.thrown} thrown, ${known.size} accepted, ${unknown.length} in doubt`
    );
    t.strictSame(
      [...receipts.keys()].filter((uid) => !known.has(uid) && !unknown.includes(uid)),
      [],
      'nothing came that nobody threw'
    );
    t.equal(end.acked, end.thrown);
  });

  await t.test('and nothing is left when they have gone', async (t) => {
    await each(stay, 50, (client) => client.leave());
    await Promise.all(catching);
    await server.leaveNothing();
    t.equal((await server.status()).lost, 0);
    await server.stop();
  });
});
