import { PART_BYTES } from '../feeds/packing.js';
import { cursorText, LAST_VERSION, newEpoch, nextCursor, PRESENCE } from '../feeds/names.js';
import { clock as systemClock } from './clock.js';
import { FeedMarks, isNewer } from './feed-message.js';
import { FeedReconciler } from './feed-reconciler.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Feeds that are published at one server of a world and exist at all servers.
 *
 *   PUT ─▶ thread ─▶ store: compare-and-set ─┬▶ table ─▶ watchers, 2xx
 *                      │                     └▶ Conflict: take the newest, and compute again
 *                      ▼ head
 *   the others: behind ─▶ get ─▶ thread ─▶ table ─▶ their watchers          (feed-reconciler.js)
 *
 * **One order.** A publication is written to the world's store over the revision that it was computed from, before any
 * watcher gets it. If another server's publication came first, the write fails. Then this server takes that version and
 * computes the publication again from it. So a patch is applied once, to the newest value, and a cursor means the same
 * value everywhere.
 *
 * **One rule.** Versions alone decide what is newer (feed-message.js), and a table only takes newer versions. So it does
 * not matter in which order a server gets versions, how often, or which it misses: `#reconcile` compares one key here and in
 * the store, and takes or writes the newer version. News, a join, and a store that was away or has lost its content all end in
 * `#reconcile`.
 *
 * **Logs.** The message of a log has the newest items. When these reach PART_BYTES, the message is kept as a part, and a new
 * message begins. So an item is written by the same compare-and-set. A server that lags a little gets the missing items
 * with the message; one that lags more reads back part by part. Without the store nothing is appended: two orders could
 * not become one.
 *
 * **Alone.** While the store is unreachable, a publication counts at its own server, and is written when the store is back.
 * Its epoch is a new one, since other servers may give the same version to another value meanwhile; the versions continue.
 * A write without an answer may have succeeded: the next version has a new epoch, too. The same holds for the next version
 * of each feed after a restart of the NATS server: JetStream may forget accepted writes.
 *
 * Rejected: one server that orders a key for all (it may die, or the ring may change, with publications on their way);
 * versions by gossip (of two concurrent patches one is lost); refusing publications without the store (the server can
 * still reach its own watchers).
 */

/** Most tries of a publication that others overtake. */
const MAX_TRIES = 32;

/** How long publications wait for the store after the start, in milliseconds. Then the server counts as alone. */
const MAX_STORE_WAIT = 5000;

/** Prefixes of keys that stay on their server: those of the arena, and presence. */
const LOCAL_PREFIXES = ['arena/', PRESENCE];

const NO_BYTES = new Uint8Array(0);

/** Returns whether the table has taken a version, or will have it once the state is written. */
const wasTaken = ({ problem, late }) => problem === undefined || late === true;

/** Answer to an append without the store. */
const STORE_AWAY = {
  problem: 'publishing-busy',
  detail: 'The NATS server of this world does not answer: append the item later.'
};
const APPEND_UNCERTAIN = {
  problem: 'publishing-busy',
  detail:
    'The NATS server of this world did not answer in time: the item may be in the log. Look before you append it again.'
};

/** Log message about two logs of one key that servers appended to apart from each other. */
const LOG_REPLACED =
  'the log of another server takes the place of the one here, whose items are gone';

/** Answer to a patch of a value that this server has refused. */
const VALUE_REFUSED = {
  problem: 'patch-conflict',
  detail:
    'Publish a whole value: the newest one in this world can not be taken here, so that no patch fits it.'
};

export class SharedFeeds {
  #feeds;
  #store;
  #marks;
  #reconciler;
  #clock;
  #log;
  /** Resolves when the store was reached for the first time, or when the wait for it has ended. */
  #storeWait;
  #endStoreWait;
  #cancelStoreTimer = () => {};
  #counts = { in: 0, out: 0, overruled: 0 };
  /** Keys whose value is too large for a message. */
  #tooLarge = new Set();

  /**
   * @param {object} parts
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {number} parts.maxFeeds most feeds
   * @param {import('pino').Logger} parts.log
   * @param {typeof systemClock} [parts.clock]
   */
  constructor({ feeds, store, maxFeeds, log, clock = systemClock }) {
    this.#feeds = feeds;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#marks = new FeedMarks(maxFeeds, (key, head) => feeds.noteDeleted(key, head));
    for (const [key, head] of feeds.attachShared(this)) {
      if (!this.isShared(key)) continue;
      this.#marks.set(key, { ...head, revision: 0, stored: false, exposed: true });
    }
    this.#storeWait = new Promise((resolve) => (this.#endStoreWait = resolve));
    this.#reconciler = new FeedReconciler({
      ...{ store, marks: this.#marks, maxBehind: 2 * maxFeeds, clock, log },
      isShared: (key) => this.isShared(key),
      reconcile: (key, revision) => this.#reconcileInOrder(key, revision),
      onReached: () => this.#endStoreWait()
    });
  }

  /** Starts the time that publications wait for the store. */
  start() {
    this.#cancelStoreTimer = this.#clock.after(MAX_STORE_WAIT, this.#endStoreWait);
  }

  /**
   * Joins the world: publications go to the store.
   *
   * @returns {Promise<void>} resolves when this server has every current feed of the world, except for refused ones
   */
  join() {
    return this.#reconciler.open();
  }

  /** Leaves the world: publications stay on this server until it joins again. */
  leave() {
    this.#reconciler.close();
  }

  /**
   * Waits, before leaving, until the store has all publications of this server.
   *
   * @param {number} timeout milliseconds
   */
  async handOver(timeout) {
    const end = this.#clock.now() + timeout;
    while (this.#marks.unstoredCount > 0 && this.#clock.now() < end) {
      await new Promise((resolve) => this.#clock.after(20, resolve));
    }
  }

  close() {
    this.#reconciler.end();
    this.#cancelStoreTimer();
    this.#endStoreWait();
  }

  /** @returns {boolean} whether a key is the world's */
  isShared(key) {
    return !LOCAL_PREFIXES.some((prefix) => key.startsWith(prefix));
  }

  /**
   * @returns {{in: number, out: number, overruled: number, refused: number, behind: number, unstored: number,
   *     reachable: boolean}} `in`: versions taken from other servers; `out`: versions written for them; `overruled`:
   *     versions of this server that a newer one replaced; `refused`: versions that this server could not take; `behind`: keys
   *     with a newer version elsewhere; `unstored`: keys whose version the store does not have; `reachable`: whether
   *     publications go to the store
   */
  status() {
    const { isReachable: reachable } = this.#reconciler;
    return {
      ...this.#counts,
      ...this.#reconciler.status(),
      ...{ unstored: this.#marks.unstoredCount, reachable }
    };
  }

  // ---- Publishing. Feeds#inOrder calls these, one at a time for a key

  /** Publishes, as Feeds#publish does. */
  publish(key, kind, body) {
    return this.#retry(() => this.#tryPublish(key, kind, body));
  }

  /** Appends an item, given as canonical text, as Feeds#append does. */
  append(key, item) {
    return this.#retry(() => this.#tryAppend(key, item));
  }

  /** Deletes a feed, as Feeds#remove does. */
  remove(key) {
    return this.#retry(() => this.#tryRemove(key));
  }

  /** Repeats a try until it has an answer. */
  async #retry(attempt) {
    await this.#storeWait;
    for (let tries = 0; tries < MAX_TRIES; tries += 1) {
      try {
        const answer = await attempt();
        if (answer !== undefined) return answer;
      } catch (error) {
        if (error instanceof WorldError) this.#reconciler.noteFailure(error);
        else if (!(error instanceof Conflict)) throw error;
      }
    }
    return { problem: 'publishing-busy' };
  }

  async #tryPublish(key, kind, body) {
    const next = this.#nextVersion(key);
    const { created, cursor, now, replaced } = next;
    if ((replaced ?? now)?.log) return this.#answerIfNewest(key, () => ({ problem: 'other-kind' }));
    if (replaced && kind !== 'value') return this.#answerIfNewest(key, () => VALUE_REFUSED);
    if (created && kind !== 'value')
      return this.#answerIfNewest(key, () => ({ problem: 'unknown-feed' }));
    // An equal value is a new version all the same where the current one was fetched, or where the store has a newer one.
    const always = next.isFetched || replaced !== undefined;
    const change = await this.#feeds.computeChange(key, next, {
      ...{ kind, body, packed: true, digested: true, always },
      ...(now?.epoch !== cursor.epoch && { patched: false })
    });
    if (change.problem !== undefined) {
      return kind === 'value' ? change : this.#answerIfNewest(key, () => change);
    }
    if (change.unchanged || (now && !always && this.#feeds.valueEquals(key, change.value))) {
      return this.#answerIfNewest(key, () => ({
        created,
        ...this.#feeds.countUnchanged(key, now)
      }));
    }
    const problem = this.#feeds.roomFor(key, change);
    if (problem !== 'ok') return { problem };
    if (change.body.length > this.#store.maxBodyBytes) return this.#tooLargeAnswer();
    const head = { ...cursor, digest: change.digest, form: change.form };
    const storeState = await this.#write(key, next, head, change.body);
    if (storeState === undefined) return undefined;
    const result = await this.#feeds.storeVersion(key, head, change);
    if (wasTaken(result))
      this.#marks.set(key, { ...head, ...storeState, exposed: storeState.stored });
    else if (storeState.stored) this.#reconciler.noteNewer(key, storeState.revision);
    return result.problem === undefined ? { created, ...result } : result;
  }

  async #tryAppend(key, item) {
    if (!this.#reconciler.isReachable) return STORE_AWAY;
    const storeHead = await this.#store.get(key);
    await this.#reconcile(key, storeHead);
    const mark = this.#marks.get(key);
    const now = this.#feeds.find(key);
    if (now?.length > 0 && !now.log) return { problem: 'other-kind' };
    // This server can't take the newest version, or can't write its own; or it has just written another one.
    if (this.#reconciler.refusedHead(key) || mark?.stored === false)
      return { problem: 'publishing-busy' };
    if ((mark?.revision ?? 0) !== (storeHead?.revision ?? 0)) return undefined;
    const created = storeHead?.digest === undefined;
    const version = (storeHead?.version ?? 0) + 1;
    if (version > LAST_VERSION) return { problem: 'publishing-busy' };
    const cursor = { epoch: created ? newEpoch() : storeHead.epoch, version };
    const part = await this.#feeds.growPart(created ? {} : storeHead, item);
    const problem = this.#feeds.roomFor(key, { value: item, gzip: NO_BYTES });
    if (problem !== 'ok') return { problem };
    if (part.body.length > this.#store.maxBodyBytes) return this.#tooLargeAnswer('item-too-large');
    if (part.begun) await this.#store.putPart(key, storeHead, storeHead.body);
    const { digest, form, body, begun } = part;
    const { run } = this.#store;
    const head = { ...cursor, digest, form, run, log: created || begun ? version : storeHead.log };
    let revision;
    try {
      revision = await this.#store.put(key, head, body, storeHead?.revision ?? 0);
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      this.#reconciler.noteFailure(error);
      return APPEND_UNCERTAIN;
    }
    this.#counts.out += 1;
    // Two successive parts together have more than PART_BYTES. Some parts may be left over from failed writes.
    const partsToKeep = 2 * Math.ceil(this.#feeds.logBounds.bytes / PART_BYTES) + 8;
    if (begun) this.#removeParts(key, cursor.epoch, partsToKeep);
    const result = await this.#feeds.storeItem(key, cursor, item, created);
    // The world has the item, even if this server has no room for it.
    if (wasTaken(result)) this.#marks.set(key, { ...head, revision, stored: true, exposed: true });
    else this.#reconciler.noteNewer(key, revision);
    return { created, cursor: cursorText(cursor), watching: result.watching ?? 0 };
  }

  #removeParts(key, epoch, keep) {
    // After a failure the store just keeps more parts.
    this.#store.removeParts(key, epoch, keep).catch((error) => this.#reconciler.noteFailure(error));
  }

  /** Deletes the parts of a log that a version has replaced: no server writes parts of its epoch any more. */
  #removeReplacedLog(key, replaced, { epoch, digest }) {
    const continuesLog = digest !== undefined && replaced?.epoch === epoch;
    if (replaced?.log && !continuesLog) this.#removeParts(key, replaced.epoch, 0);
  }

  async #tryRemove(key) {
    const next = this.#nextVersion(key);
    if (!next.now && !next.replaced)
      return this.#answerIfNewest(key, () => ({ problem: 'unknown-feed' }));
    if (next.isFetched) return this.#feeds.deleteFeed(key);
    const storeState = await this.#write(key, next, next.cursor, NO_BYTES);
    if (storeState === undefined) return undefined;
    const mark = this.#marks.get(key);
    // Marked before the table changes, so that one turn writes both.
    this.#markWritten(key, { ...next.cursor, ...storeState, exposed: storeState.stored });
    if (storeState.stored) this.#removeReplacedLog(key, next.replaced ?? next.now, next.cursor);
    const result = next.now ? await this.#feeds.deleteFeed(key) : {};
    if (wasTaken(result)) return result;
    if (mark) this.#marks.set(key, mark);
    else this.#marks.remove(key);
    if (storeState.stored) this.#reconciler.noteNewer(key, storeState.revision);
    return result;
  }

  /** Returns a feed's next version, and the version that it comes from. */
  #nextVersion(key) {
    const isAlone = !this.#reconciler.isReachable;
    const mark = this.#marks.get(key);
    const feed = this.#feeds.find(key);
    const now = feed !== null && feed.length > 0 ? feed : undefined;
    const refused = this.#reconciler.refusedHead(key);
    // A version of the store that this server has refused: a whole value, or a deletion, may replace it.
    const replaced = refused && !(mark && isNewer(mark, refused)) ? refused : undefined;
    if (now && !now.upstream && mark && !replaced) {
      // If other servers may give this version to another value, it must have a new epoch.
      const needsNewEpoch = mark.exposed && (isAlone || mark.run !== this.#store.run);
      const { epoch, version } = nextCursor(mark);
      const cursor = { epoch: needsNewEpoch ? newEpoch() : epoch, version };
      return { created: false, cursor, now, isAlone };
    }
    const { version } = nextCursor(replaced ?? mark ?? { epoch: 0, version: 0 });
    const cursor = { epoch: newEpoch(), version };
    const isFetched = now !== undefined && !replaced;
    return { created: !now, cursor, now, isAlone, replaced, isFetched };
  }

  /**
   * Writes a version to the store, if it is reachable.
   *
   * @returns {Promise<{revision: number, stored: boolean, firstOfEpoch?: number, run?: string} |
   *     undefined>} its state there; undefined: another version was
   *     newer, or the store has gone or come back, so that the version must be computed again
   * @throws {WorldError} when the version may have been written or not
   */
  async #write(key, { isAlone, replaced }, head, body) {
    if (isAlone === this.#reconciler.isReachable) return undefined;
    const mark = this.#marks.get(key);
    const revision = (replaced ?? mark)?.revision ?? 0;
    if (isAlone) {
      const continuesEpoch = mark?.epoch === head.epoch;
      return {
        revision,
        stored: false,
        firstOfEpoch: continuesEpoch ? mark.firstOfEpoch : head.version
      };
    }
    const { exposed } = mark ?? {};
    if (mark) mark.exposed = true;
    const { run } = this.#store;
    try {
      const newRevision = await this.#store.put(key, { ...head, run }, body, revision);
      this.#counts.out += 1;
      this.#reconciler.accept(key);
      return { revision: newRevision, stored: true, run };
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      if (mark) mark.exposed = exposed;
      await this.#reconcile(key, await this.#store.get(key));
      return undefined;
    }
  }

  /** Returns an answer that holds only for the newest version; undefined where there was a newer one, which this server has now taken. */
  async #answerIfNewest(key, makeAnswer) {
    const storeHead = this.#reconciler.isReachable ? await this.#store.get(key) : undefined;
    const mark = this.#marks.get(key);
    if (!storeHead || (mark && !isNewer(storeHead, mark))) return makeAnswer();
    const refusedRevision = this.#reconciler.refusedHead(key)?.revision;
    await this.#reconcile(key, storeHead);
    // A version that was already refused, and is refused again, changes nothing.
    const isSame = this.#marks.get(key) === mark;
    return isSame && this.#reconciler.refusedHead(key)?.revision === refusedRevision
      ? makeAnswer()
      : undefined;
  }

  #tooLargeAnswer(problem = 'feed-too-large') {
    const { maxBodyBytes } = this.#store;
    return {
      problem,
      detail: `Publish less: compressed it is more than ${maxBodyBytes} bytes, and the NATS server of this world takes no larger message (its max_payload).`
    };
  }

  // ---- One key, here and in the store

  /** Brings this server and the store to the same version of a key. Does nothing where this server has `revision` already. */
  #reconcileInOrder(key, revision) {
    return this.#feeds.inOrder(key, async () => {
      const mark = this.#marks.get(key);
      if (mark?.stored && mark.revision >= revision) return;
      await this.#reconcile(key, await this.#store.get(key));
    });
  }

  /** Takes the store's version or writes this server's, whichever is newer. */
  async #reconcile(key, storeHead) {
    const mark = this.#marks.get(key);
    const refused = this.#reconciler.refusedHead(key);
    if (storeHead && (!mark || isNewer(storeHead, mark))) return this.#takeVersion(key, storeHead);
    // The refused version is not the newest any more: the key is tried again.
    if (!refused || refused.revision !== storeHead?.revision) this.#reconciler.accept(key);
    if (!mark) return undefined;
    // The store remembers only so many deleted feeds.
    if (!storeHead && mark.digest === undefined && mark.stored) return this.#marks.remove(key);
    if (!storeHead) return this.#writeOwn(key, mark);
    if (isNewer(mark, storeHead)) {
      const overrules = storeHead.version >= mark.firstOfEpoch;
      await this.#writeOwn(key, mark, storeHead);
      if (overrules) this.#counts.overruled += 1;
      return undefined;
    }
    if (storeHead.digest === mark.digest) {
      const { revision, run } = storeHead;
      this.#marks.set(key, { ...mark, revision, run, stored: true, exposed: true });
      return undefined;
    }
    // The store has lost an accepted write, and has given its version to another value.
    if (storeHead.log) return this.#takeVersion(key, storeHead);
    return this.#fork(key, mark, storeHead);
  }

  /** Takes a version of another server. */
  async #takeVersion(key, storeHead) {
    const mark = this.#marks.get(key);
    const now = this.#feeds.find(key);
    const storeState = { revision: storeHead.revision, stored: true, exposed: true };
    if (storeHead.digest === undefined) {
      if (now !== null && now.length > 0 && !now.upstream) {
        const result = await this.#feeds.deleteFeed(key);
        if (!wasTaken(result)) return this.#refuse(key, result.problem, storeHead);
        this.#counts.in += 1;
      }
    } else if (storeHead.log) {
      if (!(await this.#takeLog(key, storeHead))) return undefined;
      this.#counts.in += 1;
    } else {
      const isSuccessor =
        now?.length > 0 &&
        !now.log &&
        now.epoch === storeHead.epoch &&
        now.version + 1 === storeHead.version;
      const change = await this.#feeds.computeChange(
        key,
        { cursor: storeHead, now: now ?? undefined },
        {
          ...{
            kind: 'value',
            body: storeHead.body,
            form: storeHead.form,
            digested: true,
            always: true
          },
          ...(!isSuccessor && { patched: false, before: undefined })
        }
      );
      if (change.problem !== undefined) return this.#refuse(key, change.problem, storeHead);
      if (change.digest !== storeHead.digest) return this.#refuse(key, 'bad-value', storeHead);
      const result = await this.#feeds.storeVersion(key, storeHead, change);
      if (!wasTaken(result)) return this.#refuse(key, result.problem, storeHead);
      this.#counts.in += 1;
    }
    if (mark?.firstOfEpoch && !mark.stored) this.#counts.overruled += 1;
    this.#reconciler.accept(key);
    this.#marks.set(key, { ...storeHead, ...storeState });
    return undefined;
  }

  /**
   * Takes the items that this server does not have.
   *
   * @returns {Promise<boolean>} false: the items are refused, or the log has another epoch now
   */
  async #takeLog(key, storeHead) {
    const { epoch, version, revision } = storeHead;
    const now = this.#feeds.find(key);
    const ownVersion = now?.log && now.epoch === epoch ? now.version : 0;
    const items = await this.#readItemsSince(key, storeHead, ownVersion);
    if (items.length === 0) return this.#refuse(key, 'bad-value', storeHead) ?? false;
    const first = version + 1 - items.length;
    if (
      ownVersion >= first &&
      this.#feeds.newestItem(key).toString() !== items[ownVersion - first]
    ) {
      // The store has lost accepted writes: old cursors do not describe the log any more, so that it gets a new epoch.
      const { parts } = await this.#feeds.splitLog(
        key,
        await this.#readItemsSince(key, storeHead, 0)
      );
      const newCursor = { epoch: newEpoch(), version: Math.min(version + 1, LAST_VERSION) };
      await this.#writeLog(key, { ...newCursor, run: this.#store.run }, parts, revision);
      this.#removeParts(key, epoch, 0);
      this.#counts.overruled += 1;
      return false;
    }
    const continuesLog = ownVersion > 0 && ownVersion + 1 >= first;
    for (
      let itemVersion = continuesLog ? ownVersion + 1 : first;
      itemVersion <= version;
      itemVersion += 1
    ) {
      const isFresh = !continuesLog && itemVersion === first;
      const item = Buffer.from(items[itemVersion - first]);
      const result = await this.#feeds.storeItem(
        key,
        { epoch, version: itemVersion },
        item,
        isFresh
      );
      if (!wasTaken(result)) return this.#refuse(key, result.problem, storeHead) ?? false;
    }
    if (now?.log && ownVersion === 0) this.#log.warn({ feed: key }, LOG_REPLACED);
    return true;
  }

  /** @returns {Promise<string[]>} a log's items, back to `ownVersion` or as many as are kept; none: they can't be read */
  async #readItemsSince(key, storeHead, ownVersion) {
    const { logBounds } = this.#feeds;
    let items = [];
    let bytes = 0;
    let first = storeHead.version + 1;
    for (let part = storeHead; part?.log && part.version === first - 1;) {
      const unpacked = await this.#feeds.readPart(part);
      if (unpacked.items?.length !== part.version - part.log + 1) break;
      items = [...unpacked.items, ...items];
      bytes += unpacked.bytes;
      first = part.log;
      if (first <= ownVersion || items.length >= logBounds.items || bytes >= logBounds.bytes) break;
      part = await this.#store.getPart(key, storeHead.epoch, first - 1);
    }
    return items;
  }

  /** Writes a whole log to the store. @returns {Promise<number>} its revision */
  async #writeLog(key, { epoch, version, run }, parts, revision) {
    let log = version + 1 - parts.reduce((sum, { count }) => sum + count, 0);
    const last = parts.pop();
    for (const { count, digest, form, body } of parts) {
      await this.#store.putPart(key, { epoch, version: log + count - 1, digest, form, log }, body);
      log += count;
    }
    const { digest, form, body } = last;
    return this.#store.put(key, { epoch, version, digest, form, log, run }, body, revision);
  }

  #refuse(key, problem, { epoch, version, revision, log }) {
    this.#reconciler.refuse(key, problem, { epoch, version, revision, log });
  }

  /** Writes this server's version to the store, over `replaced`. Writes nothing where a value is too large for a message. */
  async #writeOwn(key, mark, replaced) {
    const revision = replaced?.revision ?? 0;
    const isDeleted = mark.digest === undefined;
    // The store may have later versions of an epoch of an earlier run.
    const { exposed } = mark;
    const { run } = exposed ? mark : this.#store;
    mark.exposed = true;
    const parts = await this.#packMessages(key, isDeleted);
    if (parts.some(({ body }) => body.length > this.#store.maxBodyBytes)) {
      if (!this.#tooLarge.has(key)) this.#log.error({ feed: key }, this.#tooLargeAnswer().detail);
      this.#tooLarge.add(key);
      return;
    }
    let newRevision;
    try {
      if (parts[0].count)
        newRevision = await this.#writeLog(key, { ...mark, run }, parts, revision);
      else {
        const [{ body, form }] = parts;
        newRevision = await this.#store.put(key, { ...mark, form, run }, body, revision);
      }
    } catch (error) {
      // After a conflict the version was certainly not written.
      if (error instanceof Conflict) mark.exposed = exposed;
      throw error;
    }
    this.#counts.out += 1;
    this.#tooLarge.delete(key);
    this.#removeReplacedLog(key, replaced, mark);
    this.#markWritten(key, {
      ...mark,
      revision: newRevision,
      stored: true,
      run,
      firstOfEpoch: undefined
    });
  }

  /** Returns this server's version as messages; those of a log have a count of items. */
  async #packMessages(key, isDeleted) {
    if (isDeleted) return [{ body: NO_BYTES }];
    if (!this.#feeds.find(key).log) return [await this.#feeds.pack(key)];
    return (await this.#feeds.splitLog(key)).parts;
  }

  /** Gives this server's value a version that no other server has. */
  async #fork(key, mark, storeHead) {
    const fork = { ...mark, ...nextCursor(mark), epoch: newEpoch() };
    if (mark.digest !== undefined) {
      const value = this.#feeds.copyValue(key);
      const change = { value, patch: NO_BYTES, gzip: NO_BYTES, digest: mark.digest };
      const result = await this.#feeds.storeVersion(key, fork, change);
      if (!wasTaken(result)) return this.#reconciler.refuse(key, result.problem);
    }
    const { revision } = storeHead;
    this.#marks.set(key, { ...fork, revision, stored: false, exposed: false });
    return this.#writeOwn(key, this.#marks.get(key), storeHead);
  }

  /** Marks a written version. Removes a forgotten deleted feed from the store, too. */
  #markWritten(key, mark) {
    const [oldest, { revision, stored } = {}] = this.#marks.set(key, mark) ?? [];
    if (!stored || !this.#reconciler.isReachable) return;
    // After a failure the store keeps a message without a body.
    this.#store
      .removeDeleted(oldest, revision)
      .catch((error) => this.#reconciler.noteFailure(error));
  }
}
