import { randomUUID } from 'node:crypto';

import { Leases, refuseOthers, toTakeOut } from './leases.js';
import { clock as systemClock } from './clock.js';
import { isLiving, nextEpoch, VERSION } from './entry.js';
import { viewOf } from './ring.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Which servers are in the ring, as one server sees it.
 *
 * Each server has one entry in a key-value store, under its name (entry.js): a lease, which it writes anew four times as
 * often as it ends. Every write is a compare-and-set on the entry's revision, so all writes of one entry are in one
 * order, and the ring is nothing but what the entries say: servers that have seen the same revisions have the same ring.
 *
 *     alone ──▶ joining ──▶ member ──▶ leaving ──▶ gone
 *       ▲          │▲          │▲
 *       └──────────┘│          ▼│
 *        refused,   └─────── cut-off      its lease has ended: it can't renew
 *       unreachable   taken out
 *
 * A member whose lease has ended by the clock of another one is taken out by that one writing `lost` over exactly the
 * revision whose time has passed. Where the owner has renewed meanwhile the write fails, and nothing has happened; where it
 * succeeds, the owner's next renewal fails, and it joins again with a higher epoch. So there is no moment at which a member
 * is out by one server's word and renewed by its own.
 *
 * toTakeOut() says whose turn that is. A server that has not reached the store for half a lease watches anew before it finds
 * another one lost.
 */

/** Renewals in a lease. */
const RENEWALS = 4;

/** What is logged of one problem at the most: messages. */
const MOST_SAID = 8;

/** How often it looks at the time, milliseconds; below `marginOf` for every lease. */
const tickOf = (lease) => Math.min(lease / 20, 400);

/** How long a server that leaves waits for the store, milliseconds. */
const farewellOf = (lease) => Math.max(lease / 4, 2000);

/**
 * @typedef {object} Store where entries are: lib/world/broker.js, or a test's
 * @property {() => Promise<void>} open until it can be used, if it is not; rejects with WorldError, and is tried again
 * @property {() => Promise<Map<string, {entry: object | undefined, revision: number}>>} all
 * @property {(name: string) => Promise<{entry: object | undefined, revision: number}>} get revision 0: there is none
 * @property {(name: string, entry: object, revision: number) => Promise<number>} put writes where that is the entry's
 *     revision (0: there is none), and gives the new one; rejects with Conflict where it is not; after any other rejection
 *     it may have been written or not
 * @property {(watcher: {seen: (name: string, what: object) => void, missed: () => void}) => void} watch `seen` is told of
 *     every write; `missed`: some may have been missed
 * @property {() => Promise<void>} close
 *
 * @typedef {import('./ring.js').View} View
 */

/** How a member is that is told nothing else. */
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
  /** As the constructor has it; with `leases` also what refuseOthers(), toTakeOut() and viewOf() go by. */
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
  /** When the lease ends that is known to be in the store. */
  #leaseEnd = -Infinity;
  /** Takes the telling of that back. */
  #expiry = () => {};
  /** When the store was last reached. */
  #contact = -Infinity;
  /** When the entry was last sent. */
  #sent = -Infinity;
  #mustReload = true;
  /** What is done before this claim makes it a member, once that has begun. */
  #preparing;
  /** What is to become of it: a phase. */
  #target = 'member';
  /** What was told last: undefined when it has to be told again. */
  #told = { state: 'alone' };
  #logged = 'alone';
  /** What the log has of the problem there is: why the store can't be reached again may be known later. @type {Set<string>} */
  #said = new Set();
  #wake = () => {};
  #loop;

  /**
   * @param {object} how
   * @param {string} how.name
   * @param {number} how.lease milliseconds
   * @param {Store} how.store
   * @param {() => {rows: number, clients?: number}} how.describe what the others must know of this server, now
   * @param {() => Promise<void>} [how.prepare] what must be done before it is one of the ring; done anew at every join
   * @param {(membership: Membership) => void} [how.changed] told whenever `view` is another one
   * @param {import('pino').Logger} how.log
   * @param {string} [how.instance] whose state this is: the same after a restart with --state
   * @param {number} [how.epochBefore] one that the state knows; its own is above it
   * @param {number} [how.grace] how long its clients' ids stay its own when it has left in order, milliseconds; 0: it does
   *     not come back with their places
   * @param {() => boolean} [how.finish] called when it is to be gone: from then on nothing is sent to the others; whether
   *     its state has nothing that was
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

  /** Begins; the caller need not wait for it. */
  start() {
    this.#loop = this.#live();
  }

  /** @returns {View['state']} by the time it is now, and by what the store is known to say */
  get state() {
    if (this.#phase !== 'member') return this.#phase;
    const entry = this.#leases.get(this.#name)?.entry;
    // The others know already what the answer to the write will say, or that it is out.
    if (!this.#isOurs(entry)) return 'joining';
    if (entry.state !== 'member') return entry.state;
    return this.#clock.now() >= this.#leaseEnd ? 'cut-off' : 'member';
  }

  /** @returns {View} of now */
  view() {
    const self = { state: this.state, problem: this.#problem, epoch: this.#epoch };
    return viewOf(this.#how, self, this.#clock.now());
  }

  /** @returns {number} clients that another server had when it last wrote its entry; 0 where that does not say */
  clientsOf(name) {
    return this.#leases.get(name)?.entry?.clients ?? 0;
  }

  /**
   * Leaves in order: the neighbors sew themselves together, then what waits is handed over, then the name is free. The
   * lease is renewed meanwhile. Without the store it ends all the same.
   *
   * @param {(view: View, left: number) => Promise<void>} [handOver] must end by itself, within `left` milliseconds
   * @param {number} [within] milliseconds that all of it may take, two looks more at most
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

  /** Ends at once. The name stays taken until the lease ends, unless it was left. */
  async close() {
    this.#target = 'closed';
    this.#wake();
    // What the loop still asks the store for fails at once: nothing waits for an answer any more.
    await Promise.all([this.#store.close(), this.#loop]);
    this.#expiry();
  }

  /**
   * Tries once at least.
   *
   * @param {'leaving' | 'gone'} phase
   * @param {number} latest when it is given up
   * @returns {Promise<boolean>} whether it got there before that, and before the patience ended
   */
  async #reach(phase, latest) {
    this.#target = phase;
    const pause = tickOf(this.#lease) / 4;
    // Looks are counted, not the time: it may stand still in between.
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

  /** Takes the name, where it is free. */
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
    // What was written before that must be known before it is a member.
    this.#mustReload = true;
  }

  /**
   * @returns {boolean} whether the name may be taken now; where it may not, it may be that of a server that has ended
   * @throws {WorldError} when another server has it, which lives
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
   * Whether an entry is no other server's: this process has written it and has not heard so, or the same state's process before
   * has, which has ended: the state could not have been opened else.
   */
  #isOwn({ run, instance }) {
    return run === this.#run || (instance === this.#how.instance && !this.#epoch);
  }

  /** Does with the name it holds what is to be done. */
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

  /** Writes the entry where it is time to, or it says something else. */
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
      // A server that is only refused does not come back so.
      ...(this.#target !== 'member' && this.#how.grace > 0 && { grace: this.#how.grace }),
      ...(empty && { empty })
    };
    const sent = this.#clock.now();
    this.#sent = sent;
    const written = await this.#put(this.#name, entry, revision);
    this.#touch();
    this.#leaseEnd = sent + this.#lease;
    this.#expiry();
    // A turn may wait for the store then. Timers may be a little early.
    this.#expiry = this.#clock.after(this.#leaseEnd - this.#clock.now() + 2, () => this.#tell());
    this.#stand(phase);
    this.#see(this.#name, { entry, revision: written });
  }

  /** The store has answered. A server that was out of touch has missed the others' renewals. */
  #touch() {
    const now = this.#clock.now();
    if (now - this.#contact > this.#lease / 2) this.#leases.watchAnew(now);
    this.#contact = now;
  }

  /** Writes an entry, and reads the newer one where another server has written. */
  async #put(name, entry, revision) {
    try {
      return await this.#store.put(name, entry, revision);
    } catch (error) {
      if (error instanceof Conflict) await this.#look(name);
      throw error;
    }
  }

  /** Takes those out of the ring whose leases have ended, where it is this server's turn. */
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
   * News have come. Every client of NATS can publish them: where they say that the entry of this server is another's by now, or
   * are older than what was heard before, the store is asked.
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

  /** Asks the store for an entry. */
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
    // The log says that it is over, also where the server has stayed a member.
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

  /** Tells what has changed, if anything has. */
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

/** When a server began to join: the revision of what it wrote first. */
const sinceOf = ({ entry, revision }) => entry.since ?? revision;
