import { canonical } from '../../lib/feeds/canonical.js';
import { change } from '../../lib/feeds/change.js';
import { cursorText, LAST_VERSION } from '../../lib/feeds/names.js';
import { digestOf, growPart, readPart, splitLog } from '../../lib/feeds/packing.js';
import { isNewer } from '../../lib/world/feed-message.js';
import { SharedFeeds } from '../../lib/world/shared-feeds.js';
import { Conflict, WorldError } from '../../lib/world/world-error.js';
import { SimulatedStore, silent } from './world-virtual.js';

/**
 * Simulates servers that share feeds by a store, without sockets and in virtual time (world-virtual.js). The store is
 * slow, drops news, is away, hangs, loses all its data or its newest writes. Servers are cut off, killed, and come back
 * with or without their data. `Servers` checks the invariants at every step.
 */

/** Stands in for JetStream behind FeedStore. */
export class SimulatedFeedStore extends SimulatedStore {
  messages = new Map();
  /** The messages of logs. */
  parts = new Map();
  lastRevision = 0;
  identity = 'first';
  /** Whether the store has lost acknowledged writes. */
  hasForgotten = false;
  /** Whether some news are delivered twice, and so out of order. */
  doublesNews = false;
  #saved;
  connections = new Set();

  constructor({ time, random, lossPercent = 0 }) {
    super();
    Object.assign(this, { time, random, lossPercent });
  }

  delay() {
    return 0.2 + this.random.below(30) / 10;
  }

  write(key, head, body, revision) {
    const before = this.messages.get(key)?.revision ?? 0;
    if (before !== revision) throw new Conflict(`it is ${before}`);
    this.lastRevision += 1;
    this.messages.set(key, { ...head, body: Uint8Array.from(body), revision: this.lastRevision });
    this.publishNews(key);
    return this.lastRevision;
  }

  publishNews(key, revision = this.lastRevision) {
    for (const connection of this.connections) {
      connection.receiveNews(key, revision);
      if (this.doublesNews && this.random.oneIn(3)) connection.receiveNews(key, revision);
    }
  }

  start() {
    if (!super.start()) return;
    this.identity = `run ${this.random.below(1e9)}`;
    for (const connection of this.connections) connection.reportMissed();
  }

  /** Loses all data. */
  loseAll() {
    this.hasForgotten = true;
    this.messages.clear();
    this.parts.clear();
    this.lastRevision = 0;
  }

  /** Writes the current data to the simulated disk. */
  sync() {
    this.#saved = { ...this, messages: new Map(this.messages), parts: new Map(this.parts) };
  }

  /** Simulates a machine's crash: the data since `sync` is lost, and later writes reuse its numbers. */
  loseUnsynced() {
    if (!this.#saved) return;
    this.hasForgotten = true;
    this.messages = new Map(this.#saved.messages);
    this.parts = new Map(this.#saved.parts);
    this.lastRevision = this.#saved.lastRevision;
  }
}

/** One server's connection to the store, with FeedStore's members. */
class SimulatedConnection {
  #store;
  #watcher = { onNews() {}, onMissed() {} };
  isCut = false;
  isDead = false;
  /** Whether its requests are executed but their answers are lost. */
  isDeaf = false;
  maxBodyBytes = 2 ** 20;

  constructor(store) {
    this.#store = store;
    store.connections.add(this);
  }

  get isConnected() {
    return !this.isDead && !this.isCut && !this.#store.isAway;
  }

  get isLost() {
    return !this.isConnected;
  }

  watch(watcher) {
    this.#watcher = watcher;
  }

  receiveNews(key, revision) {
    const { time, random, lossPercent } = this.#store;
    if (lossPercent > 0 && random.below(100) < lossPercent) return;
    time.after(this.#store.delay(), () => {
      if (this.isConnected) this.#watcher.onNews(key, revision);
    });
  }

  reportMissed() {
    if (this.isConnected) this.#watcher.onMissed();
  }

  reconnect() {
    this.isCut = false;
    this.reportMissed();
  }

  die() {
    this.isDead = true;
    this.#store.connections.delete(this);
  }

  get run() {
    return this.isConnected ? this.#store.identity : undefined;
  }

  open = () =>
    this.#request(() => {
      const { identity, lastRevision, messages } = this.#store;
      return { identity, last: lastRevision, messages: messages.size };
    });
  readHeads = () => this.#request(() => new Map(this.#store.messages));
  get = (key) => this.#request(() => this.#store.messages.get(key));
  put = (key, { epoch, version, digest, form, log, run }, body, revision) => {
    const head = { epoch, version, digest, form, log, run };
    return this.#request(() => this.#store.write(key, head, body, revision));
  };
  putPart = (key, head, body) =>
    this.#request(() => {
      const part = { ...head, body: Uint8Array.from(body) };
      const name = `${key} ${cursorText(head)}`;
      this.#store.parts.delete(name);
      this.#store.parts.set(name, part);
    });
  getPart = (key, epoch, version) =>
    this.#request(() => this.#store.parts.get(`${key} ${cursorText({ epoch, version })}`));
  removeParts = (key, epoch, keep) =>
    this.#request(() => {
      const ofLog = `${key} ${cursorText({ epoch, version: '' })}`;
      const names = [...this.#store.parts.keys()].filter((name) => name.startsWith(ofLog));
      for (const name of names.toReversed().slice(keep)) this.#store.parts.delete(name);
    });
  removeDeleted = (key, revision) =>
    this.#request(() => {
      if (this.#store.messages.get(key)?.revision === revision) this.#store.messages.delete(key);
    });

  #request(execute) {
    const { time } = this.#store;
    const lost = () => Promise.reject(new WorldError('unreachable', 'the connection is lost'));
    if (!this.isConnected) return time.pause(0).then(lost);
    return this.#store.request(execute, {
      isReachable: () => this.isConnected,
      deliver: (callback) => !this.isDeaf && callback(),
      onTimeout: (callback) => time.after(2000, callback)
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

  constructor({ time, random, onVersion, most = 1000 }) {
    Object.assign(this, { time, random, onVersion, most });
  }

  attachShared(shared) {
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

  async computeChange(key, { cursor }, what) {
    const before = this.table.get(key)?.value;
    const job = { key, cursor: cursorText(cursor), most: 1 << 20, gzip: false, patched: false };
    await this.time.pause(this.slow ?? this.random.below(4));
    return change({ ...job, ...(what.kind !== 'value' && { before }), ...what });
  }

  valueEquals(key, value) {
    const feed = this.table.get(key);
    return feed !== undefined && !feed.log && Buffer.compare(feed.value, value) === 0;
  }

  countUnchanged = (key, { epoch, version }) => ({ cursor: cursorText({ epoch, version }) });
  roomFor = (key) => (this.table.has(key) || this.table.size < this.most ? 'ok' : 'too-many-feeds');
  copyValue = (key) => this.table.get(key).value;

  async pack(key) {
    const { value, digest } = this.table.get(key);
    return { body: value, form: 'plain', digest };
  }

  storeVersion(key, { epoch, version }, { value, digest }) {
    const problem = this.disk === 'full' ? UNWRITABLE.problem : this.roomFor(key);
    if (problem !== 'ok') return { problem };
    this.onVersion(key, { epoch, version }, value, this.table.get(key));
    this.table.set(key, { epoch, version, value, digest });
    if (this.disk === 'late') return { ...UNWRITABLE, late: true };
    return { cursor: cursorText({ epoch, version }), watching: 0 };
  }

  // ---- Logs

  logBounds = { items: 1000, bytes: 2 ** 20 };
  newestItem = (key) => Buffer.from(this.table.get(key).items.at(-1));
  growPart = (part, item) => this.#slowly(() => growPart({ ...part, item, most: 2 ** 20 }));
  readPart = (part) => this.#slowly(() => readPart({ ...part, most: 2 ** 20 }));
  splitLog = (key, items = [...this.table.get(key).items]) =>
    this.#slowly(() => splitLog({ items }));

  async #slowly(act) {
    await this.time.pause(this.slow ?? this.random.below(4));
    return act();
  }

  storeItem(key, { epoch, version }, item, isFresh = false) {
    const problem = this.roomFor(key);
    if (problem !== 'ok') return { problem };
    const before = this.table.get(key);
    const goesOn = before?.log && !isFresh;
    const follows = before?.epoch === epoch && before.version + 1 === version;
    if (goesOn && !follows)
      throw new Error(`${key}: ${version} is not behind ${cursorText(before)}`);
    // A log of another epoch is sent again from an older version on.
    const older = before?.epoch === epoch ? before : undefined;
    this.onVersion(key, { epoch, version }, item, older, true);
    const text = Buffer.from(item).toString();
    const items = goesOn ? [...before.items, text] : [text];
    this.table.set(key, { epoch, version, log: true, items, digest: digestOf(text) });
    return { cursor: cursorText({ epoch, version }), watching: 0 };
  }

  async deleteFeed(key) {
    if (this.disk === 'full') return UNWRITABLE;
    return this.table.delete(key) ? {} : { problem: 'unknown-feed' };
  }
}

/** The servers of one world. */
export class Servers {
  all = new Map();
  /** The value of each cursor. */
  #valuesByCursor = new Map();
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
    const onVersion = (...what) => this.#checkVersion(name, ...what);
    const feeds = new PlainFeeds({ time: this.#time, random: this.#random, onVersion, most });
    for (const [key, feed] of kept) {
      feeds.table.set(key, feed);
      const { epoch, version, digest } = feed;
      feeds.restored.set(key, { epoch, version, digest });
    }
    const connection = new SimulatedConnection(this.store);
    const clock = { now: this.#time.now, after: this.#time.after };
    const shared = new SharedFeeds({
      feeds,
      store: connection,
      maxFeeds: most,
      log: this.log,
      clock
    });
    const server = { name, feeds, connection, shared, isHere: false };
    this.all.set(name, server);
    shared.start();
    server.joined = shared.join().then(() => (server.isHere = true));
    return server;
  }

  kill(name) {
    const server = this.all.get(name);
    server.connection.die();
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

  #checkVersion(name, key, cursor, value, before, isItem = false) {
    const versionText = `${key} ${cursorText(cursor)}`;
    const text = Buffer.from(value).toString();
    const knownValue = this.#valuesByCursor.get(versionText);
    // After a loss, a new item may have the cursor of a lost item, until the log gets a new epoch.
    const mayDiffer = isItem && this.store.hasForgotten;
    if (knownValue !== undefined && knownValue !== text && !mayDiffer) {
      this.#t.fail(`${versionText} at ${name} means two values: ${knownValue} and ${text}`);
    }
    this.#valuesByCursor.set(versionText, text);
    const isLast = before?.version === LAST_VERSION && cursor.version === LAST_VERSION;
    if (before && !isLast && !isNewer(cursor, before)) {
      this.#t.fail(`${versionText} at ${name} after ${cursorText(before)}`);
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
    const isSettled = [...this.all.values()].every(({ shared }) => {
      const { behind, unstored } = shared.status();
      return behind === 0 && unstored === 0;
    });
    return isSettled && rest.every((one) => one === first);
  }
}
