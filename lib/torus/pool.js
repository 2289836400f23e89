import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { tagOf } from '../base/tag.js';

/**
 * The pool of clients, for the routes. Here ids are texts, outcomes are names, and a parked poll is a
 * callback for the answer. The pool itself is native (native/torus/pool.h).
 */

/** The edges of a desktop, in the order of native/torus/torus.h. */
export const EDGES = ['left', 'right', 'up', 'down'];

/** `cancel` of a poll that is not parked. */
const NOT_PARKED = () => {};

/** Results of the native `commit`: TurnEnd of native/server/turn.h. */
const TURN_END = { send: 0, wait: 1, drop: 2 };

/**
 * Thrown when a decision could not be written. It is unknown whether the decision survives a crash, so that the request
 * may not be answered at all. Its connection is closed, as at the end of the process, and the client asks again.
 */
export class Unanswerable extends Error {}

/** The values of --sync, by their numbers in native/store/state_store.h. */
const SYNC_VALUES = ['never', 'second', 'turn'];

/** Outcomes of a throw that promise the delivery of the sprite. */
const PROMISES = new Set(['delivered', 'queued', 'duplicate']);

export class Pool {
  /** The native pool, for the native front door. */
  native;
  #outcomes;
  /** Polls parked by JavaScript: token → callback for the answer. */
  #parked = new Map();
  #lastToken = 0;
  /** With --sync turn: callbacks of requests that wait for the disk. @type {((end: number) => void)[]} */
  #awaitingDisk = [];

  /**
   * @param {object} options capacity, hold, lease, maxSprite, mailbox, mailboxBytes,
   *     mailboxMemory, answerBytes, throwRate, throwBurst, pollRate, pollBurst, and in a world name:
   *     see lib/operator/options.js
   * @param {import('./address-limits.js').AddressLimits} [limits] limits of each source
   *     address; by default none
   * @throws {Error} when there is no addon, or no address space for the capacity
   */
  constructor(options, limits) {
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    const nativeOptions = { ...options, tag: tagOf(options.name) };
    this.native = new addon.Pool(nativeOptions, limits?.native, (token, body) => {
      const answer = this.#parked.get(token);
      this.#parked.delete(token);
      answer(body);
    });
  }

  /**
   * Joins a new client, and gives it a place in the torus.
   *
   * @param {string} [address] the client's address
   * @returns {{outcome: string, id?: string} | Promise<{outcome: string, id?: string}>} `ok` and its
   *     id, or `torus-full`, `draining`, `too-many-joins`, `too-many-clients` or `state-unwritable`
   * @throws {Unanswerable} here, or as a rejection
   */
  join(address = '') {
    const bytes = new Uint8Array(16);
    const outcome = this.#outcomes[this.native.join(address, bytes)];
    if (outcome !== 'ok') return { outcome };
    return this.#committed({ outcome, id: stringify(bytes) });
  }

  /**
   * Ends a turn that JavaScript has begun: writes its decisions to the journal, if there is one, before they are
   * answered.
   *
   * @template T
   * @param {T} result
   * @returns {T | Promise<T>} a promise with --sync turn, until the disk has the journal
   * @throws {Unanswerable} here, or as a rejection
   */
  #committed(result) {
    const settle = (end) => {
      if (end === TURN_END.drop) throw new Unanswerable();
      return result;
    };
    const end = this.native.commit();
    if (end !== TURN_END.wait) return settle(end);
    return new Promise((resolve) => {
      this.#awaitingDisk.push(resolve);
    }).then(settle);
  }

  #settleWaiting(end) {
    for (const settle of this.#awaitingDisk.splice(0)) settle(end);
  }

  /**
   * Answers a poll at once, or parks it.
   *
   * @param {string} id
   * @param {{ack?: number, hold?: number}} how the ack, by default 0; the hold in seconds, by
   *     default the server's
   * @param {(body: Buffer) => void} answer called once with the JSON text when a parked poll is
   *     answered, and not after `cancel`
   * @returns {{outcome: string, body?: Buffer, cancel: () => void}} `ok`, `unknown-client`, `bad-hold`,
   *     `ack-ahead`, `too-many-polls` or `state-unwritable`; `body` is the answer if there is one at once,
   *     else an `ok` poll is parked; `cancel` unparks the poll when its connection is gone
   */
  poll(id, { ack = 0, hold = 0 }, answer) {
    if (!validate(id)) return { outcome: 'unknown-client', cancel: NOT_PARKED };
    const bytes = parse(id);
    const token = (this.#lastToken = (this.#lastToken + 1) >>> 0);
    const result = this.native.poll(bytes, ack, hold, token);
    if (result instanceof Buffer) return { outcome: 'ok', body: result, cancel: NOT_PARKED };
    const outcome = this.#outcomes[result];
    if (outcome !== 'ok') return { outcome, cancel: NOT_PARKED };
    this.#parked.set(token, answer);
    this.native.commit();
    return {
      outcome,
      cancel: () => {
        if (this.#parked.delete(token)) this.native.drop(bytes, token);
      }
    };
  }

  /**
   * Throws a sprite.
   *
   * @param {string} id the thrower
   * @param {string} edge one of EDGES
   * @param {number} number the thrower's own counter, or -1
   * @param {Uint8Array} sprite its JSON text
   * @returns {string | Promise<string>} `delivered`, `queued`, `duplicate`, or the name of a problem
   * @throws {Unanswerable} here, or as a rejection
   */
  throw(id, edge, number, sprite) {
    if (!validate(id)) return 'unknown-client';
    const outcome =
      this.#outcomes[this.native.throw(parse(id), EDGES.indexOf(edge), number, sprite)];
    return PROMISES.has(outcome) ? this.#committed(outcome) : outcome;
  }

  /**
   * Removes a client. Does nothing when there is no such client.
   *
   * @param {string} id
   * @returns {string | Promise<string>} `ok`, or `state-unwritable`
   * @throws {Unanswerable} here, or as a rejection
   */
  leave(id) {
    if (!validate(id)) return 'ok';
    return this.#committed(this.#outcomes[this.native.leave(parse(id))]);
  }

  /**
   * Looks at one client, for an operator.
   *
   * @param {string} id
   * @returns {{row: number, column: number, parked: boolean, waiting: number, unsent: number,
   *     bytes: number, sequence: number, address: string | null} | null} null: no such client;
   *     `address` is null after a restart
   */
  inspect(id) {
    return validate(id) ? this.native.inspect(parse(id)) : null;
  }

  /**
   * @param {string} id
   * @returns {{row: number, column: number, rows: number, columns: number} | null}
   */
  place(id) {
    return validate(id) ? this.native.place(parse(id)) : null;
  }

  /** @returns {object} the live counts: see lib/server/README.md */
  status() {
    return this.native.status();
  }

  /**
   * Ends a turn that was not begun by a request.
   *
   * @returns {undefined | Promise<undefined>} a promise with --sync turn; clients may be told of the turn's decisions once
   *     it has resolved
   * @throws {Unanswerable} here, or as a rejection: the journal could not be written, and no client may be told
   */
  endTurn() {
    return this.#committed(undefined);
  }

  /**
   * Creates this server's identity in a world, if it has none yet: see native/torus/seams.h. The caller ends the turn.
   *
   * @returns {{memory: number, life: number}} `memory` is the same for all processes that continue one state; `life` is
   *     that of the last process, or 0
   */
  enterWorld() {
    return this.native.enterWorld();
  }

  /**
   * Leaves the world for good: sprites in the outboxes land here, as if each row were closed on itself.
   *
   * @returns {number} how many sprites landed; another server may have some of them, too
   */
  endWorld() {
    const sprites = this.native.endWorld();
    this.native.commit();
    return sprites;
  }

  /** @returns {{sprites: number, bytes: number, servers: {name: string, waiting: number}[]}} the sprites that wait to cross */
  outboxes() {
    return this.native.outboxes();
  }

  /** @returns {number} the rows that this server has in a world: see native/torus/seams.h */
  worldRows() {
    return this.native.worldRows();
  }

  /**
   * @returns {{bounds: number[], counts: number[], sum: number}} a histogram of the times from a throw to the first
   *     answer with the sprite, in milliseconds; each count is of the sprites up to its bound and above the one before,
   *     the last count of those above all bounds
   */
  deliveryTimes() {
    return this.native.deliveryTimes();
  }

  /**
   * Answers every parked poll, and refuses joins from now on: see Pool::drain in native/torus/pool.h.
   *
   * @param {number} window milliseconds within which every parked poll is answered
   */
  drain(window) {
    this.native.drain(window);
  }

  /**
   * Restores the state of the last run into the pool, which must be new, and journals every change from now on: see
   * native/store/state_store.h.
   *
   * @param {{path: string, stateBytes: number, journalBytes: number, snapshotEvery: number,
   *     sync: string}} options
   * @returns {{clients: number, sprites: number, bytes: number, journals: number, records: number,
   *     torn: number, runBefore: number, doubtful: boolean}} what was restored; `torn` is the number of bytes cut from
   *     the end of a partly written journal; `runBefore` is the number of the run that wrote the state last, 0 if unknown;
   *     `doubtful`: clients may have seen versions of feeds that the state does not have
   * @throws {Error} naming the file and the problem; the files are not changed
   */
  openState(options) {
    const sync = SYNC_VALUES.indexOf(options.sync);
    const restored = this.native.openState({ ...options, sync }, (end) => this.#settleWaiting(end));
    this.native.startState();
    return restored;
  }

  /**
   * Ends a run in order: writes one whole state and removes the journal.
   *
   * @returns {{clients: number, sprites: number, bytes: number}}
   * @throws {Error} when the state can't be written; the journal still has everything
   */
  finishState() {
    const result = this.native.finishState();
    // A closed pool gets no callback from the disk any more, and the disk has everything.
    this.#settleWaiting(TURN_END.send);
    return result;
  }

  /** Stops writing the state, after `finishState` or after a failed start. */
  closeState() {
    this.native.closeState();
    this.#settleWaiting(TURN_END.drop);
  }

  /**
   * Writes the whole state again from memory, after its files were lost: see native/store/state_store.h.
   *
   * @throws {Error} when the state can't be written
   */
  rescueState() {
    this.native.rescueState();
  }

  /**
   * @returns {{blocked: number, lost: number, journalBytes: number, journalRoom: number, unsyncedBytes: number,
   *     backlogBytes: number, unsafe: number, snapshots: number, snapshotsFailed: number, longestWrite: number,
   *     problem: string} | null} the state of the journal, null without --state; `blocked`: errno of the failure for which
   *     promises are refused, or 0; `lost`: 1 when a start would not find the state, until `rescueState`; `journalRoom`:
   *     free bytes that the journal wants; `unsafe`: milliseconds since the disk had everything; `longestWrite` in
   *     microseconds; `problem`: why the last snapshot failed
   */
  stateStatus() {
    return this.native.stateStatus();
  }

  // ---- What the state keeps beside the pool

  /**
   * Restores the feeds of the last run into a new table, and journals its changes from now on.
   *
   * @param {object} feeds the native table
   * @throws {Error} naming the first feed without room
   */
  attachFeeds(feeds) {
    this.native.attachFeeds(feeds);
  }

  /**
   * Does the same for the arenas, after their games are chosen.
   *
   * @param {object} [arena] the native arenas; undefined: this run has none, and their players leave
   */
  attachArena(arena) {
    this.native.attachArena(arena);
  }

  /**
   * Stores a note that outlives the process, in place of the note of the same name. The journal has it when the caller has
   * ended the turn. Without --state the note lives until the end of the process.
   *
   * @param {string | Buffer} name at most 256 bytes
   * @param {string | Uint8Array} content at most 4 MiB
   * @returns {boolean} false: the journal can't be written, and nothing has changed
   */
  note(name, content) {
    return this.native.note(name, Buffer.from(content));
  }

  /** Removes a note. Returns as `note` does. */
  removeNote(name) {
    return this.native.removeNote(name);
  }

  /**
   * @param {string} prefix
   * @returns {[string, Buffer][]} the notes whose names begin with the prefix: the rest of each name, and the content
   */
  notes(prefix) {
    return this.native.notes(prefix);
  }

  /**
   * Writes the whole state to a file: see native/store/snapshot.h.
   *
   * @param {string} path
   * @param {number} maxBytes largest file, in bytes
   * @returns {{clients: number, sprites: number, bytes: number}}
   * @throws {Error} when the file can't be written, or would be too large; the old file is not changed
   */
  save(path, maxBytes) {
    return this.native.save(path, maxBytes);
  }

  /** Stops the pool's clock, so that the process can end. */
  close() {
    this.native.close();
  }
}
