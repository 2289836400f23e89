import { randomUUID } from 'node:crypto';

import { Leases, checkCanJoin, namesToRemove } from './leases.js';
import { clock as systemClock } from './clock.js';
import { holdsName, nextEpoch, VERSION } from './entry.js';
import { viewOf } from './ring.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Membership of the ring, as one server sees it.
 *
 * Each server has one entry in a key-value store, under its name (entry.js). The entry is a lease, which its server renews
 * four times in the time of the lease. Every write is a compare-and-set on the entry's revision, so that all writes of one
 * entry are ordered. The ring is computed from the entries alone: servers that have seen the same revisions have the same
 * ring.
 *
 *     alone ──▶ joining ──▶ member ──▶ leaving ──▶ gone
 *       ▲          │▲          │▲
 *       └──────────┘│          ▼│
 *        refused,   └─────── cut-off      its lease has ended: it can't renew
 *       unreachable   taken out
 *
 * When a member's lease has ended by the clock of another server, that server writes `lost` over exactly the expired
 * revision. If the owner has renewed meanwhile, this write fails and changes nothing. If it succeeds, the owner's next
 * renewal fails, and the owner joins again with a higher epoch. So a member is never removed and renewed at the same time.
 *
 * namesToRemove() chooses the server that does this. A server that has not reached the store for half a lease restarts its
 * timers before it takes another server for lost.
 */

/** Renewals within the time of a lease. */
const RENEWALS = 4;

/** Most messages that are logged about one problem. */
const MAX_LOGGED = 8;

/** Interval of the loop, in milliseconds; shorter than `marginOf` for every lease. */
const tickOf = (lease) => Math.min(lease / 20, 400);

/** How long a leaving server waits for the store, in milliseconds. */
const leaveTimeoutOf = (lease) => Math.max(lease / 4, 2000);

/**
 * @typedef {object} Store the store of the entries: lib/world/broker.js, or a test's
 * @property {() => Promise<void>} open resolves when the store can be used; rejects with WorldError, and is then called again
 * @property {() => Promise<Map<string, {entry: object | undefined, revision: number}>>} readAll
 * @property {(name: string) => Promise<{entry: object | undefined, revision: number}>} get revision 0: there is no entry
 * @property {(name: string, entry: object, revision: number) => Promise<number>} put writes if the entry has
 *     this revision (0: there is no entry), and returns the new one; rejects with Conflict if not; after any other rejection
 *     the entry may have been written or not
 * @property {(watcher: {onEntry: (name: string, stored: object) => void, onMissed: () => void}) => void} watch `onEntry` is
 *     called for every write, and `onMissed` when some writes may have been missed
 * @property {() => Promise<void>} close
 *
 * @typedef {import('./ring.js').View} View
 */

/** Defaults of the constructor. */
const DEFAULTS = {
  prepare: async () => {},
  onChange() {},
  previousEpoch: 0,
  grace: 0,
  stopSending: () => false,
  clock: systemClock,
  version: VERSION
};

export class Membership {
  /** The options of the constructor, and `leases` for checkCanJoin(), namesToRemove() and viewOf(). */
  #options;
  #name;
  #leaseTime;
  #store;
  #clock;
  #runId = randomUUID();
  #leases = new Leases();

  #phase = 'alone';
  #problem;
  #epoch;
  /** The first epoch as a member, which is the life of the process for the others: see crossing.js. */
  #life = Infinity;
  /** End of the lease that the store has confirmed. */
  #leaseEnd = -Infinity;
  /** Cancels the timer for the end of the lease. */
  #cancelExpiry = () => {};
  /** Time of the last answer of the store. */
  #lastContact = -Infinity;
  /** Time of the last write of the entry. */
  #lastWrite = -Infinity;
  #mustReload = true;
  /** The preparation before this claim makes the server a member, once it has started. */
  #preparation;
  /** The phase that the server is moving to. */
  #targetPhase = 'member';
  /** The last reported state; undefined: report again. */
  #lastReported = { state: 'alone' };
  #loggedState = 'alone';
  /** Messages that were logged about the current problem: its reason may become known later. @type {Set<string>} */
  #loggedMessages = new Set();
  #wake = () => {};
  #loop;

  /**
   * @param {object} options
   * @param {string} options.name
   * @param {number} options.lease milliseconds
   * @param {Store} options.store
   * @param {() => {rows: number, clients?: number}} options.describe returns what the other servers must know of this one
   * @param {() => Promise<void>} [options.prepare] is called before the server becomes a member, at every join
   * @param {(membership: Membership) => void} [options.onChange] called when `view` has changed
   * @param {import('pino').Logger} options.log
   * @param {string} [options.instance] identifies the state: the same after a restart with --state
   * @param {number} [options.previousEpoch] an epoch in the state; the new epoch is higher
   * @param {number} [options.grace] how long the server keeps the ids of its clients after it has left in order, in
   *     milliseconds; 0: it does not come back with their places
   * @param {() => boolean} [options.stopSending] called before the server leaves for good: it sends nothing more to the
   *     others; returns whether its outboxes are empty
   * @param {typeof systemClock} [options.clock]
   * @param {number} [options.version]
   */
  constructor(options) {
    this.#options = { ...DEFAULTS, instance: randomUUID(), leases: this.#leases, ...options };
    const { name, lease, store, clock } = this.#options;
    this.#name = name;
    this.#leaseTime = lease;
    this.#store = store;
    this.#clock = clock;
    store.watch({
      onEntry: (server, published) => this.#receive(server, published),
      onMissed: () => this.#reloadSoon()
    });
  }

  /** Starts the loop. Returns at once. */
  start() {
    this.#loop = this.#runLoop();
  }

  /** @returns {View['state']} computed from the current time and the newest known entry */
  get state() {
    if (this.#phase !== 'member') return this.#phase;
    const entry = this.#leases.get(this.#name)?.entry;
    // The other servers already know the result of the write, or that this server is out of the ring.
    if (!this.#isOwnLease(entry)) return 'joining';
    if (entry.state !== 'member') return entry.state;
    return this.#clock.now() >= this.#leaseEnd ? 'cut-off' : 'member';
  }

  /** @returns {View} the current view */
  view() {
    const self = { state: this.state, problem: this.#problem, epoch: this.#epoch };
    return viewOf(this.#options, self, this.#clock.now());
  }

  /** @returns {number} clients of another server when it last wrote its entry; 0 where the entry does not say */
  clientsOf(name) {
    return this.#leases.get(name)?.entry?.clients ?? 0;
  }

  /**
   * Leaves in order: the neighbors connect to each other, then the waiting sprites are handed over, then the name is free.
   * The lease is renewed meanwhile. Without the store the server leaves anyway.
   *
   * @param {(view: View, left: number) => Promise<void>} [handOver] must end within `left` milliseconds
   * @param {number} [timeout] milliseconds, exceeded by two checks at most
   */
  async leave(handOver = async () => {}, timeout = Infinity) {
    const end = this.#clock.now() + timeout;
    const isHolding = ['joining', 'member'].includes(this.#phase);
    if (isHolding && (await this.#reachPhase('leaving', end))) {
      await handOver(this.view(), end - this.#clock.now());
      await this.#reachPhase('gone', end);
    }
    await this.close();
  }

  /** Ends at once. The name stays taken until the lease ends, unless the server has left. */
  async close() {
    this.#targetPhase = 'closed';
    this.#wake();
    // Requests of the loop to the store fail at once: nothing waits for their answers any more.
    await Promise.all([this.#store.close(), this.#loop]);
    this.#cancelExpiry();
  }

  /**
   * Waits until the server has reached a phase. Tries at least once.
   *
   * @param {'leaving' | 'gone'} phase
   * @param {number} latest time at which to give up
   * @returns {Promise<boolean>} whether the server reached the phase in time
   */
  async #reachPhase(phase, latest) {
    this.#targetPhase = phase;
    const pause = tickOf(this.#leaseTime) / 4;
    // The loop counts its checks, not the time: the process may stand still in between.
    let checksLeft = leaveTimeoutOf(this.#leaseTime) / pause;
    do {
      this.#wake();
      await new Promise((resolve) => this.#clock.after(pause, resolve));
      checksLeft -= 1;
    } while (this.#phase !== phase && checksLeft > 0 && this.#clock.now() < latest);
    return this.#phase === phase;
  }

  async #runLoop() {
    while (this.#targetPhase !== 'closed' && this.#phase !== 'gone') {
      try {
        await this.#step();
      } catch (error) {
        this.#handleFailure(error);
      }
      if (this.#leases.absences.removeEnded(this.#clock.now())) this.#lastReported = undefined;
      this.#report();
      await this.#sleep(tickOf(this.#leaseTime));
    }
  }

  #sleep(ms) {
    return new Promise((resolve) => {
      const cancel = this.#clock.after(ms, resolve);
      this.#wake = () => {
        cancel();
        resolve();
      };
    });
  }

  async #step() {
    await this.#store.open();
    if (this.#mustReload) {
      const askedAt = this.#clock.now();
      this.#mustReload = false;
      try {
        this.#leases.reload(await this.#store.readAll(), askedAt, this.#clock.now());
        this.#noteContact();
      } catch (error) {
        this.#mustReload = true;
        throw error;
      }
      this.#lastReported = undefined;
    }
    const seen = this.#leases.get(this.#name);
    if (this.#isOwnLease(seen?.entry)) await this.#maintain(seen);
    else if (this.#targetPhase === 'member') await this.#claim();
    else this.#enterPhase(this.#targetPhase);
    await this.#removeLost();
  }

  #isOwnLease(entry) {
    return holdsName(entry) && entry.run === this.#runId && entry.epoch === this.#epoch;
  }

  /** Takes the name if it is free. */
  async #claim() {
    if (this.#clock.now() - this.#lastContact >= this.#leaseTime / RENEWALS) {
      await this.#readStored(this.#name);
      this.#noteContact();
    }
    const seen = this.#leases.get(this.#name);
    checkCanJoin(this.#options, this.#clock.now(), () => true);
    if (!this.#isFree(seen)) return this.#enterPhase('joining');
    if (seen?.entry?.epoch > this.#life && seen.entry.run !== this.#runId) {
      throw new WorldError(
        'name-taken',
        `another server has had the name ${this.#name} meanwhile, so that the others take no sprites of this process: restart it`
      );
    }
    this.#epoch = nextEpoch(
      [seen?.entry?.epoch, this.#epoch, this.#options.previousEpoch].filter(Number.isSafeInteger)
    );
    this.#preparation = undefined;
    await this.#write('joining', seen);
    // The server must know all earlier writes before it is a member.
    this.#mustReload = true;
  }

  /**
   * @returns {boolean} whether the name may be taken now; false also while the name of an ended server is still leased
   * @throws {WorldError} when a living server has the name
   */
  #isFree(seen) {
    if (!holdsName(seen?.entry) || this.#isFromOwnState(seen.entry)) return true;
    if (this.#leases.isOverdue(this.#name, this.#clock.now())) return true;
    const isKnownToLive = this.#phase === 'member' || this.#problem?.code === 'name-taken';
    if (seen.renewals === 0 && !isKnownToLive) return false;
    const { url = 'another server' } = seen.entry;
    throw new WorldError(
      'name-taken',
      `${url} has the name ${this.#name} in this world: give each server its own by --name`
    );
  }

  /**
   * Returns whether an entry is this server's own: this process wrote it and has not heard of it yet, or an earlier process
   * with the same state did. That process has ended; otherwise the state could not have been opened.
   */
  #isFromOwnState({ run, instance }) {
    return run === this.#runId || (instance === this.#options.instance && !this.#epoch);
  }

  /** Does the next step while the server holds its name: renew, become a member, leave. */
  async #maintain(seen) {
    const { entry } = seen;
    if (this.#targetPhase === 'gone')
      return this.#write('gone', seen, 'gone', this.#options.stopSending());
    if (this.#targetPhase === 'leaving') return this.#renew('leaving', seen);
    if (entry.state === 'member') return this.#renew('member', seen);
    try {
      const since = sinceOf(seen);
      const isBefore = (other) => other.entry.state !== 'joining' || sinceOf(other) < since;
      checkCanJoin(this.#options, this.#clock.now(), isBefore);
    } catch (error) {
      await this.#write('gone', seen, 'alone');
      throw error;
    }
    this.#enterPhase('joining');
    this.#preparation ??= this.#prepare();
    if (this.#preparation.isDone) return this.#write('member', seen);
    return this.#renew('joining', seen);
  }

  #prepare() {
    const preparation = { isDone: false };
    this.#options.prepare().then(
      () => {
        preparation.isDone = true;
        this.#wake();
      },
      (error) => {
        this.#options.log.warn({ err: error }, 'what comes before joining the world has failed');
        if (this.#preparation === preparation) this.#preparation = undefined;
      }
    );
    return preparation;
  }

  /** Writes the entry when a renewal is due, or when the entry has changed. */
  async #renew(state, seen) {
    const isDue =
      this.#problem !== undefined ||
      this.#clock.now() - this.#lastWrite >= this.#leaseTime / RENEWALS;
    const { rows } = this.#options.describe();
    if (
      isDue ||
      seen.entry.state !== state ||
      seen.entry.rows !== rows ||
      this.state === 'cut-off'
    ) {
      await this.#write(state, seen);
    }
    this.#enterPhase(state);
  }

  async #write(state, seen, phase = state, empty = false) {
    const revision = seen?.revision ?? 0;
    const entry = {
      ...this.#options.describe(),
      version: this.#options.version,
      epoch: this.#epoch,
      state,
      lease: this.#leaseTime,
      instance: this.#options.instance,
      run: this.#runId,
      since: this.#isOwnLease(seen?.entry) ? sinceOf(seen) : undefined,
      // Only a server that ends in order comes back with its places, not a refused one.
      ...(this.#targetPhase !== 'member' &&
        this.#options.grace > 0 && { grace: this.#options.grace }),
      ...(empty && { empty })
    };
    const sent = this.#clock.now();
    this.#lastWrite = sent;
    const newRevision = await this.#put(this.#name, entry, revision);
    this.#noteContact();
    this.#leaseEnd = sent + this.#leaseTime;
    this.#cancelExpiry();
    // The loop may be waiting for the store at that time. A timer may fire a little early.
    this.#cancelExpiry = this.#clock.after(this.#leaseEnd - this.#clock.now() + 2, () =>
      this.#report()
    );
    this.#enterPhase(phase);
    this.#record(this.#name, { entry, revision: newRevision });
  }

  /** Notes that the store has answered. After a longer silence, renewals of other servers may have been missed. */
  #noteContact() {
    const now = this.#clock.now();
    if (now - this.#lastContact > this.#leaseTime / 2) this.#leases.restartTimers(now);
    this.#lastContact = now;
  }

  /** Writes an entry. On a conflict, reads the newer entry first. */
  async #put(name, entry, revision) {
    try {
      return await this.#store.put(name, entry, revision);
    } catch (error) {
      if (error instanceof Conflict) await this.#readStored(name);
      throw error;
    }
  }

  /** Removes servers with expired leases from the ring, if it is this server's turn. */
  async #removeLost() {
    const now = this.#clock.now();
    if (this.state !== 'member' || now - this.#lastContact > this.#leaseTime / 2) return;
    const names = namesToRemove(this.#options, now);
    if (names.length === 0) return;
    const removals = names.map(async (name) => {
      const { entry, revision } = this.#leases.get(name);
      const lost = { ...entry, state: 'lost', by: this.#name };
      const newRevision = await this.#put(name, lost, revision);
      this.#options.log.warn({ lost: name, epoch: entry.epoch }, 'a server of the world is lost');
      this.#record(name, { entry: lost, revision: newRevision });
    });
    const results = await Promise.allSettled(removals);
    const failure = results.find(
      ({ reason }) => reason !== undefined && !(reason instanceof Conflict)
    );
    if (failure) throw failure.reason;
  }

  /**
   * Takes a published entry. Every client of NATS can publish one. If it contradicts this server's own entry, or is older
   * than a known one, the store is asked.
   */
  #receive(name, published) {
    const known = this.#leases.get(name);
    const isContradicted = this.#isOwnLease(known?.entry) && !this.#isOwnLease(published.entry);
    if (published.revision < known?.revision) this.#mustReload = true;
    else if (name === this.#name && isContradicted) this.#reloadSoon();
    else this.#record(name, published);
  }

  #record(name, stored) {
    this.#handleChange(name, this.#leases.record(name, stored, this.#clock.now()));
  }

  /** Reads an entry from the store. */
  async #readStored(name) {
    const askedAt = this.#clock.now();
    const stored = await this.#store.get(name);
    this.#handleChange(name, this.#leases.recordRead(name, stored, askedAt, this.#clock.now()));
  }

  #handleChange(name, hasChanged) {
    if (!hasChanged) return;
    this.#lastReported = undefined;
    if (name === this.#name) this.#wake();
    this.#report();
  }

  #reloadSoon() {
    this.#mustReload = true;
    this.#wake();
  }

  #enterPhase(phase) {
    this.#phase = phase;
    if (phase === 'member') this.#life = Math.min(this.#life, this.#epoch);
    // The log notes the end of a problem, even if the server stayed a member.
    if (this.#problem !== undefined && phase === 'member') this.#loggedState = undefined;
    this.#loggedMessages.clear();
    this.#problem = undefined;
  }

  #handleFailure(error) {
    if (error instanceof Conflict) return;
    if (!(error instanceof WorldError)) this.#options.log.error({ err: error }, 'world');
    const { code = 'unreachable', message } = error;
    if (!this.#loggedMessages.has(message) && this.#loggedMessages.size < MAX_LOGGED) {
      this.#loggedMessages.add(message);
      this.#options.log.warn({ problem: code }, `world: ${message}`);
    }
    this.#problem = { code, message };
    if (this.state === 'joining' || code === 'name-taken') this.#phase = 'alone';
  }

  /** Reports the state if it has changed. */
  #report() {
    const { state } = this;
    const current = { state, problem: this.#problem?.code, epoch: this.#epoch };
    const last = this.#lastReported;
    if (
      last &&
      last.state === state &&
      last.problem === current.problem &&
      last.epoch === current.epoch
    ) {
      return;
    }
    if (this.#loggedState !== state) this.#options.log.info({ state, epoch: this.#epoch }, 'world');
    this.#loggedState = state;
    this.#lastReported = current;
    this.#options.onChange(this);
  }
}

/** Returns when a server began to join: the revision of its first write. */
const sinceOf = ({ entry, revision }) => entry.since ?? revision;
