import { canonical } from '../../lib/feeds/canonical.js';
import { change } from '../../lib/feeds/change.js';
import { growPart, readPart, splitLog } from '../../lib/feeds/log-parts.js';
import { cursorText, LAST_VERSION } from '../../lib/feeds/names.js';
import { digestOf } from '../../lib/feeds/packing.js';
import { isNewer } from '../../lib/world/feed-message.js';
import { SharedFeeds } from '../../lib/world/shared-feeds.js';
import { Conflict, WorldError } from '../../lib/world/world-error.js';
import { PlayedStore, silent } from './world-virtual.js';

/**
 * Simulates servers that share feeds by a store, without sockets and in virtual time (world-virtual.js). The store is
 * slow, drops news, is away, hangs, loses all its data or its newest writes. Servers are cut off, killed, and come back
 * with or without their data. `Servers` checks the invariants at every step.
 */

/** Stands in for JetStream behind FeedStore. */
export class FeedsStore extends PlayedStore {
  messages = new Map();
  /** The messages of logs. */
  parts = new Map();
  last = 0;
  identity = 'first';
  /** Whether the store has lost acknowledged writes. */
  hasForgotten = false;
  /** Whether some news are delivered twice, and so out of order. */
  doubles = false;
  #kept;
  ends = new Set();

  constructor({ time, random, drops = 0 }) {
    super();
    Object.assign(this, { time, random, drops });
  }

  delay() {
    return 0.2 + this.random.below(30) / 10;
  }

  write(key, head, body, revision) {
    const before = this.messages.get(key)?.revision ?? 0;
    if (before !== revision) throw new Conflict(`it is ${before}`);
    this.last += 1;
    this.messages.set(key, { ...head, body: Uint8Array.from(body), revision: this.last });
    this.tell(key);
    return this.last;
  }

  tell(key, revision = this.last) {
    for (const end of this.ends) {
      end.tell(key, revision);
      if (this.doubles && this.random.oneIn(3)) end.tell(key, revision);
    }
  }

  start() {
    if (!super.start()) return;
    this.identity = `run ${this.random.below(1e9)}`;
    for (const end of this.ends) end.missed();
  }

  /** Loses all data. */
  forget() {
    this.hasForgotten = true;
    this.messages.clear();
    this.parts.clear();
    this.last = 0;
  }

  /** Writes the current data to the simulated disk. */
  sync() {
    this.#kept = { ...this, messages: new Map(this.messages), parts: new Map(this.parts) };
  }

  /** Simulates a machine's crash: the data since `sync` is lost, and later writes reuse its numbers. */
  loseTail() {
    if (!this.#kept) return;
    this.hasForgotten = true;
    this.messages = new Map(this.#kept.messages);
    this.parts = new Map(this.#kept.parts);
    this.last = this.#kept.last;
  }
}

/** One server's connection to the store, with FeedStore's members. */
class End {
  #store;
  #watcher = { onNews() {}, onMissed() {} };
  isCut = false;
  isDead = false;
  /** Whether its requests are executed but their answers are lost. */
  isDeaf = false;
  maxBodyBytes = 2 ** 20;

  constructor(store) {
    this.#store = store;
    store.ends.add(this);
  }

  get isConnected() {
    return !this.isDead && !this.isCut && !this.#store.away;
  }

  get isLost() {
    return !this.isConnected;
  }

  watch(watcher) {
    this.#watcher = watcher;
  }

  tell(key, revision) {
    const { time, random, drops } = this.#store;
    if (drops > 0 && random.below(100) < drops) return;
    time.after(this.#store.delay(), () => {
      if (this.isConnected) this.#watcher.onNews(key, revision);
    });
  }

  missed() {
    if (this.isConnected) this.#watcher.onMissed();
  }

  mend() {
    this.isCut = false;
    this.missed();
  }

  die() {
    this.isDead = true;
    this.#store.ends.delete(this);
  }

  get run() {
    return this.isConnected ? this.#store.identity : undefined;
  }

  open = () =>
    this.#ask(() => {
      const { identity, last, messages } = this.#store;
      return { identity, last, messages: messages.size };
    });
  readHeads = () => this.#ask(() => new Map(this.#store.messages));
  get = (key) => this.#ask(() => this.#store.messages.get(key));
  put = (key, { epoch, version, digest, form, log, run }, body, revision) => {
    const head = { epoch, version, digest, form, log, run };
    return this.#ask(() => this.#store.write(key, head, body, revision));
  };
  putPart = (key, head, body) =>
    this.#ask(() => {
      const part = { ...head, body: Uint8Array.from(body) };
      const name = `${key} ${cursorText(head)}`;
      this.#store.parts.delete(name);
      this.#store.parts.set(name, part);
    });
  getPart = (key, epoch, version) =>
    this.#ask(() => this.#store.parts.get(`${key} ${cursorText({ epoch, version })}`));
  removeParts = (key, epoch, keep) =>
    this.#ask(() => {
      const ofLog = `${key} ${cursorText({ epoch, version: '' })}`;
      const names = [...this.#store.parts.keys()].filter((name) => name.startsWith(ofLog));
      for (const name of names.toReversed().slice(keep)) this.#store.parts.delete(name);
    });
  removeDeleted = (key, revision) =>
    this.#ask(() => {
      if (this.#store.messages.get(key)?.revision === revision) this.#store.messages.delete(key);
    });

  #ask(what) {
    const { time } = this.#store;
    const lost = () => Promise.reject(new WorldError('unreachable', 'the connection is lost'));
    if (!this.isConnected) return time.pause(0).then(lost);
    return this.#store.ask(what, {
      reaches: () => this.isConnected,
      hears: (then) => !this.isDeaf && then(),
      late: (then) => time.after(2000, then)
    });
  }
}

const UNWRITABLE = { problem: 'state-unwritable' };

/** A simple table with threads: the members of lib/feeds/feeds.js that SharedFeeds needs. */
class PlainFeeds {
  table = new Map();
  shared;
  restored = new Map();
  /** Milliseconds that its threads take; default: random. */
  slow;
  /** `full`: refuses writes; `late`: writes are delayed, and no caller may get an answer before. */
  disk = 'well';
  #queues = new Map();

  constructor({ time, random, took, most = 1000 }) {
    Object.assign(this, { time, random, took, most });
  }

  shareBy(shared) {
    this.shared = shared;
    return this.restored;
  }

  async inOrder(key, act) {
    const before = this.#queues.get(key);
    const turn = (async () => {
      await before;
      return act();
    })();
    this.#queues.set(
      key,
      turn.catch(() => {})
    );
    return turn;
  }

  noteDeleted() {}

  find(key) {
    const feed = this.table.get(key);
    return feed ? { ...feed, length: 1, watching: 0, upstream: false } : null;
  }

  async workOut(key, { cursor }, what) {
    const before = this.table.get(key)?.value;
    const job = { key, cursor: cursorText(cursor), most: 1 << 20, gzip: false, patched: false };
    await this.time.pause(this.slow ?? this.random.below(4));
    return change({ ...job, ...(what.kind !== 'value' && { before }), ...what });
  }

  holds(key, value) {
    const feed = this.table.get(key);
    return feed !== undefined && !feed.log && Buffer.compare(feed.value, value) === 0;
  }

  unchanged = (key, { epoch, version }) => ({ cursor: cursorText({ epoch, version }) });
  roomFor = (key) => (this.table.has(key) || this.table.size < this.most ? 'ok' : 'too-many-feeds');
  valueOf = (key) => this.table.get(key).value;

  async pack(key) {
    const { value, digest } = this.table.get(key);
    return { body: value, form: 'plain', digest };
  }

  take(key, { epoch, version }, { value, digest }) {
    const problem = this.disk === 'full' ? UNWRITABLE.problem : this.roomFor(key);
    if (problem !== 'ok') return { problem };
    this.took(key, { epoch, version }, value, this.table.get(key));
    this.table.set(key, { epoch, version, value, digest });
    if (this.disk === 'late') return { ...UNWRITABLE, late: true };
    return { cursor: cursorText({ epoch, version }), watching: 0 };
  }

  // ---- Logs

  keeps = { items: 1000, bytes: 2 ** 20 };
  newestItem = (key) => Buffer.from(this.table.get(key).items.at(-1));
  growPart = (part, item) => this.#slowly(() => growPart({ ...part, item, most: 2 ** 20 }));
  readPart = (part) => this.#slowly(() => readPart({ ...part, most: 2 ** 20 }));
  splitLog = (key, items = [...this.table.get(key).items]) =>
    this.#slowly(() => splitLog({ items }));

  async #slowly(act) {
    await this.time.pause(this.slow ?? this.random.below(4));
    return act();
  }

  takeItem(key, { epoch, version }, item, isFresh = false) {
    const problem = this.roomFor(key);
    if (problem !== 'ok') return { problem };
    const before = this.table.get(key);
    const goesOn = before?.log && !isFresh;
    const follows = before?.epoch === epoch && before.version + 1 === version;
    if (goesOn && !follows)
      throw new Error(`${key}: ${version} is not behind ${cursorText(before)}`);
    // A log of another epoch is sent again from an older version on.
    const older = before?.epoch === epoch ? before : undefined;
    this.took(key, { epoch, version }, item, older, true);
    const text = Buffer.from(item).toString();
    const items = goesOn ? [...before.items, text] : [text];
    this.table.set(key, { epoch, version, log: true, items, digest: digestOf(text) });
    return { cursor: cursorText({ epoch, version }), watching: 0 };
  }

  async takeAway(key) {
    if (this.disk === 'full') return UNWRITABLE;
    return this.table.delete(key) ? {} : { problem: 'unknown-feed' };
  }
}

/** The servers of one world. */
export class Servers {
  all = new Map();
  /** The value of each cursor. */
  #meanings = new Map();
  #time;
  #random;
  #t;

  constructor({ t, time, random, store, log = silent }) {
    Object.assign(this, { store, log });
    this.#t = t;
    this.#time = time;
    this.#random = random;
  }

  /**
   * @param {string} name
   * @param {object} [how]
   * @param {Map} [how.kept] the table of an earlier run
   * @param {number} [how.most] most feeds
   */
  start(name, { kept = new Map(), most = 1000 } = {}) {
    const took = (...what) => this.#took(name, ...what);
    const feeds = new PlainFeeds({ time: this.#time, random: this.#random, took, most });
    for (const [key, feed] of kept) {
      feeds.table.set(key, feed);
      const { epoch, version, digest } = feed;
      feeds.restored.set(key, { epoch, version, digest });
    }
    const end = new End(this.store);
    const clock = { now: this.#time.now, after: this.#time.after };
    const shared = new SharedFeeds({ feeds, store: end, maxFeeds: most, log: this.log, clock });
    const server = { name, feeds, end, shared, isHere: false };
    this.all.set(name, server);
    shared.start();
    server.joined = shared.join().then(() => (server.isHere = true));
    return server;
  }

  kill(name) {
    const server = this.all.get(name);
    server.end.die();
    server.shared.close();
    this.all.delete(name);
    return server.feeds.table;
  }

  publish(name, key, kind, value) {
    const { feeds, shared } = this.all.get(name);
    const body = Buffer.from(JSON.stringify(value));
    return feeds.inOrder(key, () => shared.publish(key, kind, body));
  }

  append(name, key, item) {
    const { feeds, shared } = this.all.get(name);
    return feeds.inOrder(key, () => shared.append(key, Buffer.from(canonical(item))));
  }

  remove(name, key) {
    const { feeds, shared } = this.all.get(name);
    return feeds.inOrder(key, () => shared.remove(key));
  }

  #took(name, key, cursor, value, before, isItem = false) {
    const what = `${key} ${cursorText(cursor)}`;
    const text = Buffer.from(value).toString();
    const meaning = this.#meanings.get(what);
    // After a loss, a new item may have the cursor of a lost item, until the log gets a new epoch.
    const mayDiffer = isItem && this.store.hasForgotten;
    if (meaning !== undefined && meaning !== text && !mayDiffer) {
      this.#t.fail(`${what} at ${name} means two values: ${meaning} and ${text}`);
    }
    this.#meanings.set(what, text);
    const isLast = before?.version === LAST_VERSION && cursor.version === LAST_VERSION;
    if (before && !isLast && !isNewer(cursor, before)) {
      this.#t.fail(`${what} at ${name} after ${cursorText(before)}`);
    }
  }

  /** @returns {string[]} each server's table as text; in the end all are equal */
  tables() {
    return [...this.all.values()].map(({ feeds }) =>
      JSON.stringify(
        [...feeds.table]
          .map(([key, feed]) => [
            ...[key, cursorText(feed)],
            feed.items ?? Buffer.from(feed.value).toString()
          ])
          .toSorted(([a], [b]) => (a < b ? -1 : 1))
      )
    );
  }

  /** Whether all servers have the same feeds, and the store has them too. */
  isQuiet() {
    const [first, ...rest] = this.tables();
    const through = [...this.all.values()].every(({ shared }) => {
      const { behind, unstored } = shared.status();
      return behind === 0 && unstored === 0;
    });
    return through && rest.every((one) => one === first);
  }
}
