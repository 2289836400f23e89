import { setTimeout as pause } from 'node:timers/promises';

import { loadAddon } from '../base/addon.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The sprites that cross between this server and the others of its world. Native code (native/torus/seams.h, crossings.h)
 * decides what crosses and when, and sees that no sprite is lost or arrives twice. This class gives it the names of the
 * other servers, and passes its frames to the sender.
 *
 *     membership ─view─▶ Crossing ─ring─▶ native
 *     pool: a throw over a seam ─▶ native ─wake─▶ Crossing ─frame─▶ send(name, bytes) … receive(name, bytes)
 *
 * When this process first becomes a member, its epoch becomes its `life`, by which the other servers know it. The life does
 * not change when the process is removed from the ring and joins again with a higher epoch: the process still knows which
 * sprites it has taken. Its `memory` outlives the process with a state: see native/torus/outbox.h.
 *
 * The state has a bounded number of names. For a further name it forgets one that is not needed (seams.h): a server out of
 * the ring for which no sprite waits, and from which none was taken that it still has. A server reports the latter when it
 * leaves in order, and sends nothing more (`stopSending`).
 *
 * A message is sent only after its turn is in the journal: a frame promises that its sprites are here, and an answer that
 * the acknowledged ones are. If the journal can't be written, the message is not sent, and the other server asks again.
 */

/** Most bytes of throws in the outbox for one server; sprites that fly on may exceed it. */
const OUTBOX_BYTES = 8 * 2 ** 20;

/** How long to wait for the acknowledgements of a server that has left the ring, in milliseconds. */
const ACK_WAIT = 60_000;

/** Interval between two checks whether the outboxes are empty, in milliseconds. */
const CHECK_INTERVAL = 50;

/** Most logged pairs of server and refusal: every client of NATS can publish frames under any name. */
const MAX_LOGGED = 1000;

export class Crossing {
  #pool;
  #name;
  #send;
  #log;
  #options;
  #native;
  #refusals;
  /** Identity of the last process: see Pool#enterWorld. */
  #previous;
  /** Native numbers of the servers, by name. @type {Map<string, number>} */
  #numbers = new Map();
  /** Numbers that the current ring needs, and the servers that have left with empty outboxes. */
  #neededNumbers = new Set();
  #drained = new Set();
  /** Whether all names are needed, so that a further one has no number. */
  #isFull = false;
  /** Logged pairs of server and refusal, at most MAX_LOGGED. @type {Set<string>} */
  #logged = new Set();
  #ring = { left: [], right: [], next: [-1, -1], peers: [] };
  /** Whether this server sends nothing any more. */
  #hasStoppedSending = false;
  /** Whether a pump is scheduled for this turn. */
  #isPumpScheduled = false;
  #isClosed = false;

  /**
   * @param {object} options
   * @param {import('../torus/pool.js').Pool} options.pool
   * @param {string} options.name this server's name
   * @param {(to: string, frame: Buffer) => void} options.send sends a frame to a server; the frame may get lost
   * @param {import('pino').Logger} options.log
   * @param {number} [options.outboxBytes]
   * @param {number} [options.doubt] milliseconds
   */
  constructor({ pool, name, send, log, outboxBytes = OUTBOX_BYTES, doubt = ACK_WAIT }) {
    this.#pool = pool;
    this.#name = name;
    this.#send = send;
    this.#log = log;
    this.#options = { outboxBytes, doubt };
    this.#previous = pool.enterWorld();
    this.#sendAfterTurn([]);
  }

  /** @returns {string} identifies the state: the same for all processes that continue it */
  get instance() {
    return this.#previous.memory.toString(36);
  }

  /** @returns {number} the life of the last process, which was its epoch; 0: unknown */
  get previousLife() {
    return this.#previous.life;
  }

  /** @returns {{rows: number, clients: number}} what the other servers must know of this one */
  describe() {
    return { rows: this.#pool.worldRows(), clients: this.#pool.status().clients };
  }

  /**
   * Takes a new view of the membership.
   *
   * @param {import('./ring.js').View} view
   */
  update(view) {
    const { state, epoch, epochs } = view;
    if (!this.#native) {
      if (state !== 'member' || this.#isClosed) return;
      this.#openNative(epoch);
    }
    if (state === 'leaving' || state === 'gone') {
      // The seams stay open to the outside, so that waiting sprites can be handed over; no sprite comes in.
      this.#sew({ ...this.#ring, accepted: [], epochs, open: false });
      return;
    }
    this.#applyRing(view);
    // Servers that have just left the ring may be forgotten now.
    if (this.#isFull) this.#applyRing(view);
    if (this.#isFull) this.#logUnnumbered(view);
  }

  #applyRing({ state, ring, peers, epochs, drained = [] }) {
    this.#neededNumbers.clear();
    this.#drained = new Set(drained);
    this.#isFull = false;
    const others = ring.members.filter(({ name }) => name !== this.#name);
    const numbers = others.map(({ name }) => this.#numberOf(name));
    const seams = ring.seams(this.#name, Math.max(0, ...others.map((other) => other.rows)));
    this.#ring = {
      peers: numbers,
      left: this.#seamPairs(seams.left),
      right: this.#seamPairs(seams.right),
      next: this.#neighbors(ring.members)
    };
    const accepted = [...peers.keys()].map((name) => this.#numberOf(name));
    this.#sew({ ...this.#ring, accepted, epochs, open: state === 'member' });
  }

  /**
   * Takes a message.
   *
   * @param {string} from the sender
   * @param {Uint8Array} frame
   */
  receive(from, frame) {
    if (!this.#native) return;
    // An unknown sender gets no number: there are only so many.
    const number = this.#numbers.get(from) ?? -1;
    const refusal = this.#native.receive(number, frame);
    if (refusal > 0) this.#logRefusal(from, this.#refusals[refusal]);
    if (this.#isPumpScheduled) return;
    // Messages that come at once share one turn. Parked polls get the landed sprites.
    this.#isPumpScheduled = true;
    Promise.resolve().then(() => {
      this.#isPumpScheduled = false;
      this.#pump();
    });
  }

  /**
   * Waits until every outbox is empty, or until the timeout. The caller has set the server to leaving before.
   *
   * @param {number} timeout milliseconds
   */
  async handOver(timeout) {
    const end = performance.now() + timeout;
    while (this.status().waiting > 0 && performance.now() < end) await pause(CHECK_INTERVAL);
  }

  /**
   * Stops sending: the server leaves.
   *
   * @returns {boolean} whether its outboxes are empty
   */
  stopSending() {
    this.#hasStoppedSending = true;
    return this.status().waiting === 0;
  }

  /**
   * @returns {{waiting: number, bytes: number, servers: {name: string, waiting: number}[],
   *     refused: Record<string, number>}} the sprites in the outboxes, by server; refused frames, here or there, by reason
   */
  status() {
    const { sprites, bytes, servers } = this.#pool.outboxes();
    const refused = this.#native?.status().refused ?? [];
    const byReason = refused.map((times, reason) => [this.#refusals[reason], times]);
    return {
      waiting: sprites,
      bytes,
      servers,
      refused: Object.fromEntries(byReason.filter(([, times]) => times > 0))
    };
  }

  /** Rows close on themselves again; what waits in outboxes is kept with the state. */
  close() {
    this.#isClosed = true;
    this.#native?.close();
    this.#native = undefined;
  }

  #openNative(life) {
    const addon = loadAddon();
    this.#refusals = addon.refusals;
    // The names of the last process keep their numbers.
    const { servers } = this.#pool.outboxes();
    this.#numbers = new Map(servers.map(({ name }, number) => [name, number]));
    this.#native = new addon.World(this.#pool.native, { ...this.#options, life }, () =>
      this.#pump()
    );
  }

  #sew({ peers, accepted, epochs, left, right, next, open }) {
    const toInt32s = (list) => Int32Array.from(list.filter((number) => number >= 0));
    const knownEpochs = [...epochs].filter(([name]) => this.#numbers.has(name));
    this.#native.setRing({
      ...{ left: Int32Array.from(left), right: Int32Array.from(right) },
      ...{ next: Int32Array.from(next), open },
      ...{ peers: toInt32s(peers), accepted: toInt32s(accepted) },
      epochPeers: Int32Array.from(knownEpochs.map(([name]) => this.#numbers.get(name))),
      epochs: Float64Array.from(knownEpochs.map(([, epoch]) => epoch))
    });
    this.#pump();
  }

  /** Returns seams as numbers: for each the row after its last, and the number of its server, or -1 for this one. */
  #seamPairs(seams) {
    return seams.flatMap(({ to, peer }) => [to, peer === this.#name ? -1 : this.#numberOf(peer)]);
  }

  /** Returns the numbers of the servers before and after this one in the ring. */
  #neighbors(members) {
    const own = members.findIndex(({ name }) => name === this.#name);
    if (own < 0 || members.length === 1) return [-1, -1];
    return [-1, 1].map((step) => this.#numberOf(members.at((own + step) % members.length).name));
  }

  #numberOf(name) {
    const number = this.#numbers.get(name) ?? this.#assignNumber(name);
    this.#neededNumbers.add(number);
    return number;
  }

  #assignNumber(name) {
    if (this.#isFull) return -1;
    const freeNumber = this.#native.add(name);
    const number = freeNumber < 0 ? this.#evictFor(name) : freeNumber;
    this.#isFull = number < 0;
    if (!this.#isFull) this.#numbers.set(name, number);
    return number;
  }

  /** Forgets a name for another one: the oldest that can be forgotten. */
  #evictFor(name) {
    for (const [oldName, number] of this.#numbers) {
      if (this.#neededNumbers.has(number)) continue;
      if (!this.#native.replace(number, name, this.#drained.has(oldName))) continue;
      this.#numbers.delete(oldName);
      return number;
    }
    return -1;
  }

  #logUnnumbered({ ring }) {
    for (const { name } of ring.members) {
      if (name === this.#name || this.#numbers.has(name)) continue;
      const text = `no sprite goes to ${name} or comes from it: the state knows too many servers that may come back. Give servers names that stay, and end them in order; or give this one a new state, when its clients have left`;
      this.#logOnce(`${name} too many`, () => this.#log.error({ server: name }, text));
    }
  }

  /** Sends the messages that are due. */
  #pump() {
    if (this.#native) this.#sendAfterTurn(this.#native.takeMessages());
  }

  /**
   * Ends a turn, and sends its messages once the journal has the turn; drops them if the journal can't be written.
   *
   * @param {(string | Buffer)[]} messages names of receivers, each followed by its message
   */
  #sendAfterTurn(messages) {
    const send = () => {
      if (this.#hasStoppedSending) return;
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
  #logRefusal(server, refusal) {
    const isUsual = ['not-in-ring', 'other-epoch'].includes(refusal);
    const log = () =>
      this.#log[isUsual ? 'debug' : 'warn']({ server, refusal }, 'a frame of the world is refused');
    this.#logOnce(`${server} ${refusal}`, log);
  }

  #logOnce(topic, log) {
    if (this.#logged.has(topic) || this.#logged.size >= MAX_LOGGED) return;
    this.#logged.add(topic);
    log();
  }
}
