import { randomUUID } from 'node:crypto';

import { Leases, refuseOthers, toTakeOut } from './leases.js';
import { clock as systemClock } from './clock.js';
import { isLiving, nextEpoch, VERSION } from './entry.js';
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
 * toTakeOut() chooses the server that does this. A server that has not reached the store for half a lease restarts its
 * timers before it takes another server for lost.
 */

/** Renewals within the time of a lease. */
const RENEWALS = 4;

/** Most messages that are logged about one problem. */
const MOST_SAID = 8;

/** Interval of the loop, in milliseconds; shorter than `marginOf` for every lease. */
const tickOf = (lease) => Math.min(lease / 20, 400);

/** How long a leaving server waits for the store, in milliseconds. */
const farewellOf = (lease) => Math.max(lease / 4, 2000);

/**
 * @typedef {object} Store the store of the entries: lib/world/broker.js, or a test's
 * @property {() => Promise<void>} open resolves when the store can be used; rejects with WorldError, and is then called again
 * @property {() => Promise<Map<string, {entry: object | undefined, revision: number}>>} all
 * @property {(name: string) => Promise<{entry: object | undefined, revision: number}>} get revision 0: there is no entry
 * @property {(name: string, entry: object, revision: number) => Promise<number>} put writes if the entry has
 *     this revision (0: there is no entry), and returns the new one; rejects with Conflict if not; after any other rejection
 *     the entry may have been written or not
 * @property {(watcher: {seen: (name: string, what: object) => void, missed: () => void}) => void} watch `seen` is called for
 *     every write, and `missed` when some writes may have been missed
 * @property {() => Promise<void>} close
 *
 * @typedef {import('./ring.js').View} View
 */

/** Defaults of the constructor. */
const USUAL = {
  prepare: async () => {},
  changed() {},
  epochBefore: 0,
  grace: 0,
  finish: () => false,
  clock: systemClock,
  version: VERSION
};

export class Membership {
  /** The options of the constructor, and `leases` for refuseOthers(), toTakeOut() and viewOf(). */
  #how;
  #name;
  #lease;
  #store;
  #clock;
  #run = randomUUID();
  #leases = new Leases();

  #phase = 'alone';
  #problem;
  #epoch;
  /** End of the lease that the store has confirmed. */
  #leaseEnd = -Infinity;
  /** Cancels the timer for the end of the lease. */
  #expiry = () => {};
  /** Time of the last answer of the store. */
  #contact = -Infinity;
  /** Time of the last write of the entry. */
  #sent = -Infinity;
  #mustReload = true;
  /** The preparation before this claim makes the server a member, once it has started. */
  #preparing;
  /** The phase that the server is moving to. */
  #target = 'member';
  /** The last reported state; undefined: report again. */
  #told = { state: 'alone' };
  #logged = 'alone';
  /** Messages that were logged about the current problem: its reason may become known later. @type {Set<string>} */
  #said = new Set();
  #wake = () => {};
  #loop;

  /**
   * @param {object} how
   * @param {string} how.name
   * @param {number} how.lease milliseconds
   * @param {Store} how.store
   * @param {() => {rows: number, clients?: number}} how.describe returns what the other servers must know of this one
   * @param {() => Promise<void>} [how.prepare] is called before the server becomes a member, at every join
   * @param {(membership: Membership) => void} [how.changed] called when `view` has changed
   * @param {import('pino').Logger} how.log
   * @param {string} [how.instance] identifies the state: the same after a restart with --state
   * @param {number} [how.epochBefore] an epoch in the state; the new epoch is higher
   * @param {number} [how.grace] how long the server keeps the ids of its clients after it has left in order, in
   *     milliseconds; 0: it does not come back with their places
   * @param {() => boolean} [how.finish] called before the server leaves for good: it sends nothing more to the others;
   *     returns whether its outboxes are empty
   * @param {typeof systemClock} [how.clock]
   * @param {number} [how.version]
   */
  constructor(how) {
    this.#how = { ...USUAL, instance: randomUUID(), leases: this.#leases, ...how };
    const { name, lease, store, clock } = this.#how;
    this.#name = name;
    this.#lease = lease;
    this.#store = store;
    this.#clock = clock;
    store.watch({ seen: (of, what) => this.#hear(of, what), missed: () => this.#missed() });
  }

  /** Starts the loop. Returns at once. */
  start() {
    this.#loop = this.#live();
  }

  /** @returns {View['state']} computed from the current time and the newest known entry */
  get state() {
    if (this.#phase !== 'member') return this.#phase;
    const entry = this.#leases.get(this.#name)?.entry;
    // The other servers already know the result of the write, or that this server is out of the ring.
    if (!this.#isOurs(entry)) return 'joining';
    if (entry.state !== 'member') return entry.state;
    return this.#clock.now() >= this.#leaseEnd ? 'cut-off' : 'member';
  }

  /** @returns {View} the current view */
  view() {
    const self = { state: this.state, problem: this.#problem, epoch: this.#epoch };
    return viewOf(this.#how, self, this.#clock.now());
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
   * @param {number} [within] time limit in milliseconds, exceeded by two checks at most
   */
  async leave(handOver = async () => {}, within = Infinity) {
    const end = this.#clock.now() + within;
    const held = ['joining', 'member'].includes(this.#phase);
    if (held && (await this.#reach('leaving', end))) {
      await handOver(this.view(), end - this.#clock.now());
      await this.#reach('gone', end);
    }
    await this.close();
  }

  /** Ends at once. The name stays taken until the lease ends, unless the server has left. */
  async close() {
    this.#target = 'closed';
    this.#wake();
    // Requests of the loop to the store fail at once: nothing waits for their answers any more.
    await Promise.all([this.#store.close(), this.#loop]);
    this.#expiry();
  }

  /**
   * Waits until the server has reached a phase. Tries at least once.
   *
   * @param {'leaving' | 'gone'} phase
   * @param {number} latest time at which to give up
   * @returns {Promise<boolean>} whether the server reached the phase in time
   */
  async #reach(phase, latest) {
    this.#target = phase;
    const pause = tickOf(this.#lease) / 4;
    // The loop counts its checks, not the time: the process may stand still in between.
    let looks = farewellOf(this.#lease) / pause;
    do {
      this.#wake();
      await new Promise((then) => this.#clock.after(pause, then));
      looks -= 1;
    } while (this.#phase !== phase && looks > 0 && this.#clock.now() < latest);
    return this.#phase === phase;
  }

  async #live() {
    while (this.#target !== 'closed' && this.#phase !== 'gone') {
      try {
        await this.#turn();
      } catch (error) {
        this.#failed(error);
      }
      if (this.#leases.absences.end(this.#clock.now())) this.#told = undefined;
      this.#tell();
      await this.#sleep(tickOf(this.#lease));
    }
  }

  #sleep(ms) {
    return new Promise((then) => {
      const cancel = this.#clock.after(ms, then);
      this.#wake = () => {
        cancel();
        then();
      };
    });
  }

  async #turn() {
    await this.#store.open();
    if (this.#mustReload) {
      const asked = this.#clock.now();
      this.#mustReload = false;
      try {
        this.#leases.reload(await this.#store.all(), asked, this.#clock.now());
        this.#touch();
      } catch (error) {
        this.#mustReload = true;
        throw error;
      }
      this.#told = undefined;
    }
    const seen = this.#leases.get(this.#name);
    if (this.#isOurs(seen?.entry)) await this.#keep(seen);
    else if (this.#target === 'member') await this.#claim();
    else this.#stand(this.#target);
    await this.#takeOut();
  }

  #isOurs(entry) {
    return isLiving(entry) && entry.run === this.#run && entry.epoch === this.#epoch;
  }

  /** Takes the name if it is free. */
  async #claim() {
    if (this.#clock.now() - this.#contact >= this.#lease / RENEWALS) {
      await this.#look(this.#name);
      this.#touch();
    }
    const seen = this.#leases.get(this.#name);
    refuseOthers(this.#how, this.#clock.now(), () => true);
    if (!this.#isFree(seen)) return this.#stand('joining');
    this.#epoch = nextEpoch(
      [seen?.entry?.epoch, this.#epoch, this.#how.epochBefore].filter(Number.isSafeInteger)
    );
    this.#preparing = undefined;
    await this.#write('joining', seen);
    // The server must know all earlier writes before it is a member.
    this.#mustReload = true;
  }

  /**
   * @returns {boolean} whether the name may be taken now; false also while the name of an ended server is still leased
   * @throws {WorldError} when a living server has the name
   */
  #isFree(seen) {
    if (!isLiving(seen?.entry) || this.#isOwn(seen.entry)) return true;
    if (this.#leases.isOverdue(this.#name, this.#clock.now())) return true;
    const knownToLive = this.#phase === 'member' || this.#problem?.code === 'name-taken';
    if (seen.renewals === 0 && !knownToLive) return false;
    throw new WorldError(
      'name-taken',
      `another server has the name ${this.#name} in this world: give each its own by --name`
    );
  }

  /**
   * Returns whether an entry is this server's own: this process wrote it and has not heard of it yet, or an earlier process
   * with the same state did. That process has ended; otherwise the state could not have been opened.
   */
  #isOwn({ run, instance }) {
    return run === this.#run || (instance === this.#how.instance && !this.#epoch);
  }

  /** Does the next step while the server holds its name: renew, become a member, leave. */
  async #keep(seen) {
    const { entry } = seen;
    if (this.#target === 'gone') return this.#write('gone', seen, 'gone', this.#how.finish());
    if (this.#target === 'leaving') return this.#renew('leaving', seen);
    if (entry.state === 'member') return this.#renew('member', seen);
    try {
      const since = sinceOf(seen);
      const isBefore = (other) => other.entry.state !== 'joining' || sinceOf(other) < since;
      refuseOthers(this.#how, this.#clock.now(), isBefore);
    } catch (error) {
      await this.#write('gone', seen, 'alone');
      throw error;
    }
    this.#stand('joining');
    this.#preparing ??= this.#beginPreparing();
    if (this.#preparing.done) return this.#write('member', seen);
    return this.#renew('joining', seen);
  }

  #beginPreparing() {
    const preparing = { done: false };
    this.#how.prepare().then(
      () => {
        preparing.done = true;
        this.#wake();
      },
      (error) => {
        this.#how.log.warn({ err: error }, 'what comes before joining the world has failed');
        if (this.#preparing === preparing) this.#preparing = undefined;
      }
    );
    return preparing;
  }

  /** Writes the entry when a renewal is due, or when the entry has changed. */
  async #renew(state, seen) {
    const due =
      this.#problem !== undefined || this.#clock.now() - this.#sent >= this.#lease / RENEWALS;
    const { rows } = this.#how.describe();
    if (due || seen.entry.state !== state || seen.entry.rows !== rows || this.state === 'cut-off') {
      await this.#write(state, seen);
    }
    this.#stand(state);
  }

  async #write(state, seen, phase = state, empty = false) {
    const revision = seen?.revision ?? 0;
    const entry = {
      ...this.#how.describe(),
      version: this.#how.version,
      epoch: this.#epoch,
      state,
      lease: this.#lease,
      instance: this.#how.instance,
      run: this.#run,
      since: this.#isOurs(seen?.entry) ? sinceOf(seen) : undefined,
      // Only a server that ends in order comes back with its places, not a refused one.
      ...(this.#target !== 'member' && this.#how.grace > 0 && { grace: this.#how.grace }),
      ...(empty && { empty })
    };
    const sent = this.#clock.now();
    this.#sent = sent;
    const written = await this.#put(this.#name, entry, revision);
    this.#touch();
    this.#leaseEnd = sent + this.#lease;
    this.#expiry();
    // The loop may be waiting for the store at that time. A timer may fire a little early.
    this.#expiry = this.#clock.after(this.#leaseEnd - this.#clock.now() + 2, () => this.#tell());
    this.#stand(phase);
    this.#see(this.#name, { entry, revision: written });
  }

  /** Notes that the store has answered. After a longer silence, renewals of other servers may have been missed. */
  #touch() {
    const now = this.#clock.now();
    if (now - this.#contact > this.#lease / 2) this.#leases.watchAnew(now);
    this.#contact = now;
  }

  /** Writes an entry. On a conflict, reads the newer entry first. */
  async #put(name, entry, revision) {
    try {
      return await this.#store.put(name, entry, revision);
    } catch (error) {
      if (error instanceof Conflict) await this.#look(name);
      throw error;
    }
  }

  /** Removes servers with expired leases from the ring, if it is this server's turn. */
  async #takeOut() {
    const now = this.#clock.now();
    if (this.state !== 'member' || now - this.#contact > this.#lease / 2) return;
    const mine = toTakeOut(this.#how, now);
    if (mine.length === 0) return;
    const taken = mine.map(async (name) => {
      const { entry, revision } = this.#leases.get(name);
      const lost = { ...entry, state: 'lost', by: this.#name };
      const written = await this.#put(name, lost, revision);
      this.#how.log.warn({ lost: name, epoch: entry.epoch }, 'a server of the world is lost');
      this.#see(name, { entry: lost, revision: written });
    });
    const results = await Promise.allSettled(taken);
    const failed = results.find(
      ({ reason }) => reason !== undefined && !(reason instanceof Conflict)
    );
    if (failed) throw failed.reason;
  }

  /**
   * Takes a published entry. Every client of NATS can publish one. If it contradicts this server's own entry, or is older
   * than a known one, the store is asked.
   */
  #hear(name, what) {
    const known = this.#leases.get(name);
    const isDenied = this.#isOurs(known?.entry) && !this.#isOurs(what.entry);
    if (what.revision < known?.revision) this.#mustReload = true;
    else if (name === this.#name && isDenied) this.#missed();
    else this.#see(name, what);
  }

  #see(name, what) {
    this.#changedIf(name, this.#leases.see(name, what, this.#clock.now()));
  }

  /** Reads an entry from the store. */
  async #look(name) {
    const asked = this.#clock.now();
    const what = await this.#store.get(name);
    this.#changedIf(name, this.#leases.correct(name, what, asked, this.#clock.now()));
  }

  #changedIf(name, isOther) {
    if (!isOther) return;
    this.#told = undefined;
    if (name === this.#name) this.#wake();
    this.#tell();
  }

  #missed() {
    this.#mustReload = true;
    this.#wake();
  }

  #stand(phase) {
    this.#phase = phase;
    // The log notes the end of a problem, even if the server stayed a member.
    if (this.#problem !== undefined && phase === 'member') this.#logged = undefined;
    this.#said.clear();
    this.#problem = undefined;
  }

  #failed(error) {
    if (error instanceof Conflict) return;
    if (!(error instanceof WorldError)) this.#how.log.error({ err: error }, 'world');
    const { code = 'unreachable', message } = error;
    if (!this.#said.has(message) && this.#said.size < MOST_SAID) {
      this.#said.add(message);
      this.#how.log.warn({ problem: code }, `world: ${message}`);
    }
    this.#problem = { code, message };
    if (this.state === 'joining' || code === 'name-taken') this.#phase = 'alone';
  }

  /** Reports the state if it has changed. */
  #tell() {
    const { state } = this;
    const now = { state, problem: this.#problem?.code, epoch: this.#epoch };
    const told = this.#told;
    if (told && told.state === state && told.problem === now.problem && told.epoch === now.epoch) {
      return;
    }
    if (this.#logged !== state) this.#how.log.info({ state, epoch: this.#epoch }, 'world');
    this.#logged = state;
    this.#told = now;
    this.#how.changed(this);
  }
}

/** Returns when a server began to join: the revision of its first write. */
const sinceOf = ({ entry, revision }) => entry.since ?? revision;
