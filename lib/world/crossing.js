import { setTimeout as pause } from 'node:timers/promises';

import { loadAddon } from '../base/addon.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The sprites that cross between this server and the others of its world. What crosses, and that nothing is lost or
 * comes twice, is native (native/torus/seams.h, crossings.h), and so is when something is to be sent; this is what calls it:
 * it names the other servers, and hands frames to what sends them.
 *
 *     membership ─view─▶ Crossing ─ring─▶ native
 *     pool: a throw over a seam ─▶ native ─wake─▶ Crossing ─frame─▶ send(name, bytes) … received(name, bytes)
 *
 * The first time that this process is a member its epoch becomes its life, by which the others know it; it stays the same
 * when the process is taken out of the ring and joins again with a higher epoch, since it still knows what it has taken.
 * Its memory is what outlives it with a state: native/torus/outbox.h says what comes of both.
 *
 * The state knows so many names at the most. For one more a name is forgotten with which nothing is to be done (seams.h): it is
 * out of the ring, nothing waits for it, and nothing was taken from it, or nothing that it has still. A server says that of
 * itself when it leaves in order, and sends nothing from then on (`finish`).
 *
 * Nothing is sent before the turn that it comes of is written: a frame says that its sprites are here, and an answer that
 * those it acknowledges are. What could not be written is not sent, and the other server asks again.
 */

/** Bytes that throws may fill of the outbox for one server; what flies on is let in above it. */
const OUTBOX_BYTES = 8 * 2 ** 20;

/** How long a server that has left the ring may take to say what it has taken, milliseconds. */
const DOUBT = 60_000;

/** How often it looks whether all is handed over, milliseconds. */
const LOOK = 50;

/** Servers and refusals that are logged at the most: every client of NATS can publish frames under any name. */
const SAID = 1000;

export class Crossing {
  #pool;
  #name;
  #send;
  #log;
  #options;
  #native;
  #refusals;
  /** What is known of the process before: see Pool#enterWorld. */
  #before;
  /** The native numbers of servers, by their names. @type {Map<string, number>} */
  #numbers = new Map();
  /** Those that the ring of now needs, and the servers that have left with nothing in their outboxes. */
  #wanted = new Set();
  #emptied = new Set();
  /** Whether no name can be forgotten for one more. */
  #full = false;
  /** Servers and refusals that the log has already, SAID at the most. @type {Set<string>} */
  #said = new Set();
  #ring = { left: [], right: [], next: [-1, -1], peers: [] };
  /** Whether it sends nothing any more. */
  #finished = false;
  /** Whether it will send in this turn. */
  #pumps = false;
  #closed = false;

  /**
   * @param {object} how
   * @param {import('../torus/pool.js').Pool} how.pool
   * @param {string} how.name this server's
   * @param {(to: string, frame: Buffer) => void} how.send takes a frame to a server; it may get lost
   * @param {import('pino').Logger} how.log
   * @param {number} [how.outboxBytes]
   * @param {number} [how.doubt] milliseconds
   */
  constructor({ pool, name, send, log, outboxBytes = OUTBOX_BYTES, doubt = DOUBT }) {
    this.#pool = pool;
    this.#name = name;
    this.#send = send;
    this.#log = log;
    this.#options = { outboxBytes, doubt };
    this.#before = pool.enterWorld();
    this.#written([]);
  }

  /** @returns {string} whose state this is: the same for all processes that go on from one */
  get instance() {
    return this.#before.memory.toString(36);
  }

  /** @returns {number} the life of the process before, whose epoch it was; 0: none is known */
  get lifeBefore() {
    return this.#before.life;
  }

  /** @returns {{rows: number, clients: number}} what the others have to know of this server */
  describe() {
    return { rows: this.#pool.worldRows(), clients: this.#pool.status().clients };
  }

  /**
   * Takes what membership says from now on.
   *
   * @param {import('./ring.js').View} view
   */
  update(view) {
    const { state, epoch, epochs } = view;
    if (!this.#native) {
      if (state !== 'member' || this.#closed) return;
      this.#begin(epoch);
    }
    if (state === 'leaving' || state === 'gone') {
      // The way out stays as it was, so that what waits can be handed over; nothing comes in.
      this.#sew({ ...this.#ring, accepted: [], epochs, open: false });
      return;
    }
    this.#follow(view);
    // Those that were in the ring until now may be forgotten.
    if (this.#full) this.#follow(view);
    if (this.#full) this.#tooMany(view);
  }

  #follow({ state, ring, peers, epochs, emptied = [] }) {
    this.#wanted.clear();
    this.#emptied = new Set(emptied);
    this.#full = false;
    const others = ring.members.filter(({ name }) => name !== this.#name);
    const numbers = others.map(({ name }) => this.#numberOf(name));
    const seams = ring.seams(this.#name, Math.max(0, ...others.map((other) => other.rows)));
    this.#ring = {
      peers: numbers,
      left: this.#pairs(seams.left),
      right: this.#pairs(seams.right),
      next: this.#neighbors(ring.members)
    };
    const accepted = [...peers.keys()].map((name) => this.#numberOf(name));
    this.#sew({ ...this.#ring, accepted, epochs, open: state === 'member' });
  }

  /**
   * A message has come.
   *
   * @param {string} from the server that has sent it
   * @param {Uint8Array} frame
   */
  received(from, frame) {
    if (!this.#native) return;
    // A frame makes no server known: there are only so many numbers.
    const number = this.#numbers.get(from) ?? -1;
    const refusal = this.#native.receive(number, frame);
    if (refusal > 0) this.#refused(from, this.#refusals[refusal]);
    if (this.#pumps) return;
    // All that come at once have one turn. What has landed goes to the polls that are parked.
    this.#pumps = true;
    Promise.resolve().then(() => {
      this.#pumps = false;
      this.#pump();
    });
  }

  /**
   * Waits until every outbox is empty, or the time is over. To be called when the server has begun to leave.
   *
   * @param {number} within milliseconds
   */
  async handOver(within) {
    const end = performance.now() + within;
    while (this.status().waiting > 0 && performance.now() < end) await pause(LOOK);
  }

  /**
   * The server leaves, and sends nothing from now on.
   *
   * @returns {boolean} whether nothing waits in its outboxes
   */
  finish() {
    this.#finished = true;
    return this.status().waiting === 0;
  }

  /**
   * @returns {{waiting: number, bytes: number, servers: {name: string, waiting: number}[],
   *     refused: Record<string, number>}} what is in the outboxes, by server; frames refused, here or there, by the reason
   */
  status() {
    const { sprites, bytes, servers } = this.#pool.outboxes();
    const refused = this.#native?.status().refused ?? [];
    const reasons = refused.map((times, at) => [this.#refusals[at], times]);
    return {
      waiting: sprites,
      bytes,
      servers,
      refused: Object.fromEntries(reasons.filter(([, times]) => times > 0))
    };
  }

  /** Rows close on themselves again; what waits in outboxes is kept with the state. */
  close() {
    this.#closed = true;
    this.#native?.close();
    this.#native = undefined;
  }

  #begin(life) {
    const addon = loadAddon();
    this.#refusals = addon.refusals;
    // By those of the process before, too.
    const { servers } = this.#pool.outboxes();
    this.#numbers = new Map(servers.map(({ name }, number) => [name, number]));
    this.#native = new addon.World(this.#pool.native, { ...this.#options, life }, () =>
      this.#pump()
    );
  }

  #sew({ peers, accepted, epochs, left, right, next, open }) {
    const numbers = (list) => Int32Array.from(list.filter((number) => number >= 0));
    const told = [...epochs].filter(([name]) => this.#numbers.has(name));
    this.#native.set({
      ...{ left: Int32Array.from(left), right: Int32Array.from(right) },
      ...{ next: Int32Array.from(next), open },
      ...{ peers: numbers(peers), accepted: numbers(accepted) },
      told: Int32Array.from(told.map(([name]) => this.#numbers.get(name))),
      epochs: Float64Array.from(told.map(([, epoch]) => epoch))
    });
    this.#pump();
  }

  /** Seams as numbers: of each the row behind its last, and the server that it leads to, or -1 for this one. */
  #pairs(seams) {
    return seams.flatMap(({ to, peer }) => [to, peer === this.#name ? -1 : this.#numberOf(peer)]);
  }

  /** The numbers of the servers before and after this one in the ring. */
  #neighbors(members) {
    const at = members.findIndex(({ name }) => name === this.#name);
    if (at < 0 || members.length === 1) return [-1, -1];
    return [-1, 1].map((step) => this.#numberOf(members.at((at + step) % members.length).name));
  }

  #numberOf(name) {
    const number = this.#numbers.get(name) ?? this.#add(name);
    this.#wanted.add(number);
    return number;
  }

  #add(name) {
    if (this.#full) return -1;
    const next = this.#native.add(name);
    const number = next < 0 ? this.#forgetFor(name) : next;
    this.#full = number < 0;
    if (!this.#full) this.#numbers.set(name, number);
    return number;
  }

  /** Forgets a name for another one, that which is known the longest where it can be. */
  #forgetFor(name) {
    for (const [old, number] of this.#numbers) {
      if (this.#wanted.has(number)) continue;
      if (!this.#native.replace(number, name, this.#emptied.has(old))) continue;
      this.#numbers.delete(old);
      return number;
    }
    return -1;
  }

  #tooMany({ ring }) {
    for (const { name } of ring.members) {
      if (name === this.#name || this.#numbers.has(name)) continue;
      const text = `no sprite goes to ${name} or comes from it: the state knows too many servers that may come back. Give servers names that stay, and end them in order; or give this one a new state, when its clients have left`;
      this.#sayOnce(`${name} too many`, () => this.#log.error({ server: name }, text));
    }
  }

  /** Sends what is due. */
  #pump() {
    if (this.#native) this.#written(this.#native.take());
  }

  /**
   * Ends a turn, and sends what says what it has decided: when it is written, and not at all if it can't be.
   *
   * @param {(string | Buffer)[]} messages each behind the name of its receiver
   */
  #written(messages) {
    const send = () => {
      if (this.#finished) return;
      for (let at = 0; at < messages.length; at += 2) {
        this.#send(messages[at], messages[at + 1]);
      }
    };
    const drop = (error) => {
      if (!(error instanceof Unanswerable)) throw error;
    };
    try {
      const ended = this.#pool.endTurn();
      if (ended) ended.then(send, drop);
      else send();
    } catch (error) {
      drop(error);
    }
  }

  /** Logs a refusal, once for each server and reason. */
  #refused(server, refusal) {
    const usual = ['not-in-ring', 'other-epoch'].includes(refusal);
    const say = () =>
      this.#log[usual ? 'debug' : 'warn']({ server, refusal }, 'a frame of the world is refused');
    this.#sayOnce(`${server} ${refusal}`, say);
  }

  #sayOnce(what, say) {
    if (this.#said.has(what) || this.#said.size >= SAID) return;
    this.#said.add(what);
    say();
  }
}
