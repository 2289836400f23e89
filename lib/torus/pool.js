import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { tagOf } from '../base/tag.js';

/**
 * The pool of clients for the routes: ids are text, outcomes are names, and a parked poll is a
 * function that is called with the answer. The pool itself is native (native/torus/pool.h).
 */

/** The edges of a desktop, in the order of native/torus/torus.h. */
export const EDGES = ['left', 'right', 'up', 'down'];

/** The `cancel` of a poll that is not parked. */
const NOTHING_TO_CANCEL = () => {};

/** What `commit` of the native pool gives: TurnEnd of native/server/turn.h. */
const TURN_END = { send: 0, wait: 1, drop: 2 };

/**
 * What was decided could not be written: it is not known whether it holds, so the request may not be
 * answered at all. Its connection is to be closed, as when the process ends; the client asks again.
 */
export class Unanswerable extends Error {}

/** When what is written must be on the disk: the values of --sync, in native/store/state_store.h's order. */
const SYNC = ['never', 'second', 'turn'];

/** The outcomes of a throw that make the server answerable for it. */
const PROMISES = new Set(['delivered', 'queued', 'duplicate']);

export class Pool {
  #native;
  #outcomes;
  /** Polls that JavaScript has parked: token → the function that takes the answer. */
  #parked = new Map();
  #lastToken = 0;
  /** With --sync turn: what waits for the disk. @type {((end: number) => void)[]} */
  #waiting = [];

  /**
   * @param {object} options capacity, hold, lease, maxSprite, mailbox, mailboxBytes,
   *     mailboxMemory, answerBytes, throwRate, throwBurst, pollRate, pollBurst, and in a world name:
   *     see lib/operator/options.js
   * @param {import('./address-limits.js').AddressLimits} [limits] what each source address may
   *     have; by default anything
   * @throws {Error} when there is no addon, or no address space for the capacity
   */
  constructor(options, limits) {
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    const own = { ...options, tag: tagOf(options.name) };
    this.#native = new addon.Pool(own, limits?.native, (token, body) => {
      const answer = this.#parked.get(token);
      this.#parked.delete(token);
      answer(body);
    });
  }

  /** The native pool, for the native front door. */
  get native() {
    return this.#native;
  }

  /**
   * Counts a request that is refused before the pool sees it.
   *
   * @param {string} outcome the name of the problem, one that the pool knows
   * @returns {string} that name
   */
  refuse(outcome) {
    this.#native.refuse(this.#outcomes.indexOf(outcome));
    return outcome;
  }

  /**
   * Makes a new client, with a place in the torus.
   *
   * @param {string} [address] where it comes from
   * @returns {{outcome: string, id?: string} | Promise<{outcome: string, id?: string}>} `ok` and its
   *     id, or `torus-full`, `draining`, `too-many-joins`, `too-many-clients` or `state-unwritable`
   * @throws {Unanswerable} here, or as a rejection
   */
  join(address = '') {
    const bytes = new Uint8Array(16);
    const outcome = this.#outcomes[this.#native.join(address, bytes)];
    if (outcome !== 'ok') return { outcome };
    return this.#committed({ outcome, id: stringify(bytes) });
  }

  /**
   * Ends a turn that JavaScript has begun: what was decided is written to the journal, where there is
   * one, before it is answered.
   *
   * @template T
   * @param {T} result
   * @returns {T | Promise<T>} a promise while the disk is waited for
   * @throws {Unanswerable} here, or as a rejection
   */
  #committed(result) {
    const settle = (end) => {
      if (end === TURN_END.drop) throw new Unanswerable();
      return result;
    };
    const end = this.#native.commit();
    if (end !== TURN_END.wait) return settle(end);
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
    }).then(settle);
  }

  #settle(end) {
    for (const settle of this.#waiting.splice(0)) settle(end);
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
   *     else an `ok` poll is parked; `cancel` takes a parked poll back when its connection is gone
   */
  poll(id, { ack = 0, hold = 0 }, answer) {
    if (!validate(id)) {
      return { outcome: this.refuse('unknown-client'), cancel: NOTHING_TO_CANCEL };
    }
    const bytes = parse(id);
    const token = (this.#lastToken = (this.#lastToken + 1) >>> 0);
    const result = this.#native.poll(bytes, ack, hold, token);
    if (result instanceof Buffer) return { outcome: 'ok', body: result, cancel: NOTHING_TO_CANCEL };
    const outcome = this.#outcomes[result];
    if (outcome !== 'ok') return { outcome, cancel: NOTHING_TO_CANCEL };
    this.#parked.set(token, answer);
    this.#native.commit();
    return {
      outcome,
      cancel: () => {
        if (this.#parked.delete(token)) this.#native.drop(bytes, token);
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
    if (!validate(id)) return this.refuse('unknown-client');
    const outcome =
      this.#outcomes[this.#native.throw(parse(id), EDGES.indexOf(edge), number, sprite)];
    return PROMISES.has(outcome) ? this.#committed(outcome) : outcome;
  }

  /**
   * Takes a client out; does nothing when there is no such client.
   *
   * @param {string} id
   * @returns {string | Promise<string>} `ok`, or `state-unwritable`
   * @throws {Unanswerable} here, or as a rejection
   */
  leave(id) {
    if (!validate(id)) return 'ok';
    return this.#committed(this.#outcomes[this.#native.leave(parse(id))]);
  }

  /**
   * Looks at one client, for an operator.
   *
   * @param {string} id
   * @returns {{row: number, column: number, parked: boolean, waiting: number, unsent: number,
   *     bytes: number, sequence: number, address: string | null} | null} null: no such client;
   *     `address` is null after a restart
   */
  look(id) {
    return validate(id) ? this.#native.look(parse(id)) : null;
  }

  /**
   * @param {string} id
   * @returns {{row: number, column: number, rows: number, columns: number} | null}
   */
  place(id) {
    return validate(id) ? this.#native.place(parse(id)) : null;
  }

  /** @returns {object} the live counts: see lib/server/README.md */
  status() {
    return this.#native.status();
  }

  /**
   * Ends a turn that something else than a request has begun.
   *
   * @returns {undefined | Promise<undefined>} a promise while the disk is waited for; what the turn has decided may be
   *     told to others from then on
   * @throws {Unanswerable} here, or as a rejection: it could not be written, and no client may be told
   */
  endTurn() {
    return this.#committed(undefined);
  }

  /**
   * Makes what a world and this server know of each other, where there is nothing yet: see native/torus/seams.h. The turn
   * is to be ended.
   *
   * @returns {{memory: number, life: number}} `memory`: the same for all processes that go on from one state; `life`:
   *     that of the process before, or 0
   */
  enterWorld() {
    return this.#native.enterWorld();
  }

  /**
   * There is no world any more: what a process before has left in outboxes lands here, as if rows had closed on themselves.
   *
   * @returns {number} how many sprites; some of them another server may have, too
   */
  endWorld() {
    const sprites = this.#native.endWorld();
    this.#native.commit();
    return sprites;
  }

  /** @returns {{sprites: number, bytes: number, servers: {name: string, waiting: number}[]}} what waits to cross */
  outboxes() {
    return this.#native.outboxes();
  }

  /** @returns {number} the rows that this server has in a world: see native/torus/seams.h */
  worldRows() {
    return this.#native.worldRows();
  }

  /**
   * @returns {{bounds: number[], counts: number[], sum: number}} how long sprites have waited from
   *     their throw to the answer that first carried them, in milliseconds: how many up to each
   *     bound and not up to the one before, and last how many longer
   */
  deliveryTimes() {
    return this.#native.deliveryTimes();
  }

  /**
   * Answers every parked poll, and refuses joins from now on: see Pool::drain in native/torus/pool.h.
   *
   * @param {number} window milliseconds within which every parked poll is answered
   */
  drain(window) {
    this.#native.drain(window);
  }

  /**
   * Brings the pool, which must be new, to where the last run has promised to be, and has every step
   * from now on written: see native/store/state_store.h.
   *
   * @param {{path: string, stateBytes: number, journalBytes: number, snapshotEvery: number,
   *     sync: string}} options
   * @returns {{clients: number, sprites: number, bytes: number, journals: number, records: number,
   *     torn: number, runBefore: number, doubtful: boolean}} what was found; `torn`: bytes cut from the end
   *     of a journal that was being written; `runBefore`: the number of the run that has written the last of
   *     it, 0 if that is not known; `doubtful`: versions of feeds may have been told that are not in it
   * @throws {Error} saying of which file it is and what is wrong with it; the files are as they were
   */
  openState(options) {
    const sync = SYNC.indexOf(options.sync);
    const found = this.#native.openState({ ...options, sync }, (end) => this.#settle(end));
    this.#native.startState();
    return found;
  }

  /**
   * Ends a run in order: one whole state, no journal.
   *
   * @returns {{clients: number, sprites: number, bytes: number}}
   * @throws {Error} when it can't be written; the journal is still there, and has all of it
   */
  finishState() {
    const result = this.#native.finishState();
    // A closed pool is not told of the disk any more, and all is on it.
    this.#settle(TURN_END.send);
    return result;
  }

  /** Ends the writing of the state, after `finishState` or after a start that has failed. */
  closeState() {
    this.#native.closeState();
    this.#settle(TURN_END.drop);
  }

  /**
   * Writes the whole state anew, from memory, where its files are lost: see native/store/state_store.h.
   *
   * @throws {Error} when it can't be written
   */
  rescueState() {
    this.#native.rescueState();
  }

  /**
   * @returns {{blocked: number, lost: number, journalBytes: number, unsyncedBytes: number, backlogBytes: number,
   *     unsafe: number, snapshots: number, snapshotsFailed: number, longestWrite: number, problem: string} | null} how
   *     the writing of the state fares; `blocked`: errno of what keeps promises from being made, or 0; `lost`: 1 when a
   *     start would not find the state, until `rescueState`; `unsafe`: milliseconds since all was on the disk;
   *     `longestWrite` in microseconds; `problem`: why the last snapshot was not made; null where no state is kept
   */
  stateStatus() {
    return this.#native.stateStatus();
  }

  // ---- Beside the pool: what is written with it

  /**
   * Gives a table of feeds, which must be new, what the last run has left, and has what becomes of them written.
   *
   * @param {object} feeds native
   * @throws {Error} naming the first feed that there is no room for
   */
  attachFeeds(feeds) {
    this.#native.attachFeeds(feeds);
  }

  /**
   * The same for the arenas, whose games are chosen.
   *
   * @param {object} [arena] native; undefined: there are none in this run, and their players have left
   */
  attachArena(arena) {
    this.#native.attachArena(arena);
  }

  /**
   * Notes something that is to outlive the process, in place of what was noted under that name; it is written with the
   * turn, which is to be ended. Where no state is kept it is known until the end.
   *
   * @param {string | Buffer} name at most 256 bytes
   * @param {string | Uint8Array} content at most 4 MiB
   * @returns {boolean} false: it can't be written, and nothing has changed
   */
  note(name, content) {
    return this.#native.note(name, Buffer.from(content));
  }

  /** Forgets what is noted under a name; returns as `note`. */
  unnote(name) {
    return this.#native.unnote(name);
  }

  /**
   * @param {string} prefix
   * @returns {[string, Buffer][]} what is noted under the names that begin so: the rest of the name, and the content
   */
  notes(prefix) {
    return this.#native.notes(prefix);
  }

  /**
   * Writes the whole state to a file: see native/store/snapshot.h.
   *
   * @param {string} path
   * @param {number} most bytes it may have
   * @returns {{clients: number, sprites: number, bytes: number}}
   * @throws {Error} when it can't be written, or would be larger; the file is what it was before
   */
  save(path, most) {
    return this.#native.save(path, most);
  }

  /** Stops the pool's clock, so that the process can end. */
  close() {
    this.#native.close();
  }
}
