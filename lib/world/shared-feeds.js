import { PART_BYTES } from '../feeds/log-parts.js';
import { cursorText, LAST_VERSION, newEpoch, nextCursor, PRESENCE } from '../feeds/names.js';
import { clock as systemClock } from './clock.js';
import { FeedMarks, isNewer } from './feed-message.js';
import { FeedSettling } from './feed-settling.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Feeds that are published at one server of a world and exist at all servers.
 *
 *   PUT ─▶ thread ─▶ store: compare-and-set ─┬▶ table ─▶ watchers, 2xx
 *                      │                     └▶ Conflict: take the newest, and compute again
 *                      ▼ head
 *   the others: behind ─▶ get ─▶ thread ─▶ table ─▶ their watchers          (feed-settling.js)
 *
 * **One order.** A publication is written to the world's store over the revision that it was computed from, before any
 * watcher gets it. If another server's publication came first, the write fails. Then this server takes that version and
 * computes the publication again from it. So a patch is applied once, to the newest value, and a cursor means the same
 * value everywhere.
 *
 * **One rule.** Versions alone decide what is newer (feed-message.js), and a table only takes newer versions. So it does
 * not matter in which order a server gets versions, how often, or which it misses: `meet` compares one key here and in the
 * store, and takes or writes the newer version. News, a join, and a store that was away or has lost its content all end in
 * `meet`.
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
const TRIES = 32;

/** How long publications wait for the store after the start, in milliseconds. Then the server counts as alone. */
const PATIENCE = 5000;

/** Prefixes of keys that stay on their server: those of the arena, and presence. */
const LOCAL = ['arena/', PRESENCE];

const NOTHING = new Uint8Array(0);

/** Returns whether the table has taken a version, or will have it once the state is written. */
const holds = ({ problem, late }) => problem === undefined || late === true;

/** Answer to an append without the store. */
const NOT_NOW = {
  problem: 'publishing-busy',
  detail: 'The NATS server of this world does not answer: append the item later.'
};
const IN_DOUBT = {
  problem: 'publishing-busy',
  detail:
    'The NATS server of this world did not answer in time: the item may be in the log. Look before you append it again.'
};

/** Log message about two logs of one key that servers appended to apart from each other. */
const REPLACED = 'the log of another server takes the place of the one here, whose items are gone';

/** Answer to a patch of a value that this server has refused. */
const UNREAD = {
  problem: 'patch-conflict',
  detail:
    'Publish a whole value: the newest one in this world can not be taken here, so that no patch fits it.'
};

export class SharedFeeds {
  #feeds;
  #store;
  #marks;
  #settling;
  #clock;
  #log;
  /** Resolves when the store was reached for the first time, or when the wait for it has ended. */
  #begun;
  #begin;
  #patience = () => {};
  #counts = { in: 0, out: 0, overruled: 0 };
  /** Keys whose value is too large for a message. */
  #tooLarge = new Set();

  /**
   * @param {object} parts
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {number} parts.most most feeds
   * @param {import('pino').Logger} parts.log
   * @param {typeof systemClock} [parts.clock]
   */
  constructor({ feeds, store, most, log, clock = systemClock }) {
    this.#feeds = feeds;
    this.#store = store;
    this.#clock = clock;
    this.#log = log;
    this.#marks = new FeedMarks(most, (key, head) => feeds.noteDeleted(key, head));
    for (const [key, head] of feeds.shareBy(this)) {
      if (!this.shares(key)) continue;
      this.#marks.set(key, { ...head, revision: 0, stored: false, exposed: true });
    }
    this.#begun = new Promise((then) => (this.#begin = then));
    this.#settling = new FeedSettling({
      ...{ store, marks: this.#marks, most: 2 * most, clock, log },
      shares: (key) => this.shares(key),
      settle: (key, revision) => this.#settle(key, revision),
      reached: () => this.#begin()
    });
  }

  /** Starts the time that publications wait for the store. */
  start() {
    this.#patience = this.#clock.after(PATIENCE, this.#begin);
  }

  /**
   * Joins the world: publications go to the store.
   *
   * @returns {Promise<void>} resolves when this server has every current feed of the world, except for refused ones
   */
  join() {
    return this.#settling.open();
  }

  /** Leaves the world: publications stay on this server until it joins again. */
  part() {
    this.#settling.close();
  }

  /**
   * Waits, before leaving, until the store has all publications of this server.
   *
   * @param {number} within timeout in milliseconds
   */
  async handOver(within) {
    const end = this.#clock.now() + within;
    while (this.#marks.unstored > 0 && this.#clock.now() < end) {
      await new Promise((then) => this.#clock.after(20, then));
    }
  }

  close() {
    this.#settling.end();
    this.#patience();
    this.#begin();
  }

  /** @returns {boolean} whether a key is the world's */
  shares(key) {
    return !LOCAL.some((own) => key.startsWith(own));
  }

  /**
   * @returns {{in: number, out: number, overruled: number, refused: number, behind: number, unstored: number,
   *     reachable: boolean}} `in`: versions taken from other servers; `out`: versions written for them; `overruled`:
   *     versions of this server that a newer one replaced; `refused`: versions that this server could not take; `behind`: keys
   *     with a newer version elsewhere; `unstored`: keys whose version the store does not have; `reachable`: whether
   *     publications go to the store
   */
  status() {
    const { isReachable: reachable } = this.#settling;
    return {
      ...this.#counts,
      ...this.#settling.status(),
      ...{ unstored: this.#marks.unstored, reachable }
    };
  }

  // ---- Publishing. Feeds#inOrder calls these, one at a time for a key

  /** Publishes, as Feeds#publish does. */
  publish(key, kind, body) {
    return this.#repeat(() => this.#tryPublish(key, kind, body));
  }

  /** Appends an item, given as canonical text, as Feeds#append does. */
  append(key, item) {
    return this.#repeat(() => this.#tryAppend(key, item));
  }

  /** Deletes a feed, as Feeds#remove does. */
  remove(key) {
    return this.#repeat(() => this.#tryRemove(key));
  }

  /** Repeats a try until it has an answer. */
  async #repeat(attempt) {
    await this.#begun;
    for (let tries = 0; tries < TRIES; tries += 1) {
      try {
        const answer = await attempt();
        if (answer !== undefined) return answer;
      } catch (error) {
        if (error instanceof WorldError) this.#settling.lost(error);
        else if (!(error instanceof Conflict)) throw error;
      }
    }
    return { problem: 'publishing-busy' };
  }

  async #tryPublish(key, kind, body) {
    const next = this.#next(key);
    const { created, cursor, now, over } = next;
    if ((over ?? now)?.log) return this.#ifNewest(key, () => ({ problem: 'other-kind' }));
    if (over && kind !== 'value') return this.#ifNewest(key, () => UNREAD);
    if (created && kind !== 'value')
      return this.#ifNewest(key, () => ({ problem: 'unknown-feed' }));
    // An equal value is a new version all the same where the current one was fetched, or where the store has a newer one.
    const always = next.fetched || over !== undefined;
    const change = await this.#feeds.workOut(key, next, {
      ...{ kind, body, packed: true, digested: true, always },
      ...(now?.epoch !== cursor.epoch && { patched: false })
    });
    if (change.problem !== undefined) {
      return kind === 'value' ? change : this.#ifNewest(key, () => change);
    }
    if (change.unchanged || (now && !always && this.#feeds.holds(key, change.value))) {
      return this.#ifNewest(key, () => ({ created, ...this.#feeds.unchanged(key, now) }));
    }
    const problem = this.#feeds.roomFor(key, change);
    if (problem !== 'ok') return { problem };
    if (change.body.length > this.#store.room) return this.#refuseLarge();
    const head = { ...cursor, digest: change.digest, form: change.form };
    const place = await this.#write(key, next, head, change.body);
    if (place === undefined) return undefined;
    const taken = await this.#feeds.take(key, head, change);
    if (holds(taken)) this.#marks.set(key, { ...head, ...place, exposed: place.stored });
    else if (place.stored) this.#settling.see(key, place.revision);
    return taken.problem === undefined ? { created, ...taken } : taken;
  }

  async #tryAppend(key, item) {
    if (!this.#settling.isReachable) return NOT_NOW;
    const found = await this.#store.get(key);
    await this.#meet(key, found);
    const mark = this.#marks.get(key);
    const now = this.#feeds.find(key);
    if (now?.length > 0 && !now.log) return { problem: 'other-kind' };
    // This server can't take the newest version, or can't write its own; or it has just written another one.
    if (this.#settling.refused(key) || mark?.stored === false)
      return { problem: 'publishing-busy' };
    if ((mark?.revision ?? 0) !== (found?.revision ?? 0)) return undefined;
    const created = found?.digest === undefined;
    const version = (found?.version ?? 0) + 1;
    if (version > LAST_VERSION) return { problem: 'publishing-busy' };
    const cursor = { epoch: created ? newEpoch() : found.epoch, version };
    const part = await this.#feeds.growPart(created ? {} : found, item);
    const problem = this.#feeds.roomFor(key, { value: item, gzip: NOTHING });
    if (problem !== 'ok') return { problem };
    if (part.body.length > this.#store.room) return this.#refuseLarge('item-too-large');
    if (part.begun) await this.#store.putPart(key, found, found.body);
    const { digest, form, body, begun } = part;
    const { run } = this.#store;
    const head = { ...cursor, digest, form, run, log: created || begun ? version : found.log };
    let revision;
    try {
      revision = await this.#store.put(key, head, body, found?.revision ?? 0);
    } catch (error) {
      if (!(error instanceof WorldError)) throw error;
      this.#settling.lost(error);
      return IN_DOUBT;
    }
    this.#counts.out += 1;
    // Two successive parts together have more than PART_BYTES. Some parts may be left over from failed writes.
    const kept = 2 * Math.ceil(this.#feeds.keeps.bytes / PART_BYTES) + 8;
    if (begun) this.#forgetParts(key, cursor.epoch, kept);
    const taken = await this.#feeds.takeItem(key, cursor, item, created);
    // The world has the item, even if this server has no room for it.
    if (holds(taken)) this.#marks.set(key, { ...head, revision, stored: true, exposed: true });
    else this.#settling.see(key, revision);
    return { created, cursor: cursorText(cursor), watching: taken.watching ?? 0 };
  }

  #forgetParts(key, epoch, keep) {
    // After a failure the store just keeps more parts.
    this.#store.forgetParts(key, epoch, keep).catch((error) => this.#settling.lost(error));
  }

  /** Deletes the parts of a log that a version has replaced: no server writes parts of its epoch any more. */
  #forgetLog(key, over, { epoch, digest }) {
    const goesOn = digest !== undefined && over?.epoch === epoch;
    if (over?.log && !goesOn) this.#forgetParts(key, over.epoch, 0);
  }

  async #tryRemove(key) {
    const next = this.#next(key);
    if (!next.now && !next.over) return this.#ifNewest(key, () => ({ problem: 'unknown-feed' }));
    if (next.fetched) return this.#feeds.takeAway(key);
    const place = await this.#write(key, next, next.cursor, NOTHING);
    if (place === undefined) return undefined;
    const mark = this.#marks.get(key);
    // Marked before the table changes, so that one turn writes both.
    this.#bury(key, { ...next.cursor, ...place, exposed: place.stored });
    if (place.stored) this.#forgetLog(key, next.over ?? next.now, next.cursor);
    const taken = next.now ? await this.#feeds.takeAway(key) : {};
    if (holds(taken)) return taken;
    if (mark) this.#marks.set(key, mark);
    else this.#marks.forget(key);
    if (place.stored) this.#settling.see(key, place.revision);
    return taken;
  }

  /** Returns a feed's next version, and the version that it comes from. */
  #next(key) {
    const alone = !this.#settling.isReachable;
    const mark = this.#marks.get(key);
    const found = this.#feeds.find(key);
    const now = found !== null && found.length > 0 ? found : undefined;
    const refused = this.#settling.refused(key);
    // A version of the store that this server has refused: a whole value, or a deletion, may replace it.
    const over = refused && !(mark && isNewer(mark, refused)) ? refused : undefined;
    if (now && !now.upstream && mark && !over) {
      // If other servers may give this version to another value, it must have a new epoch.
      const forks = mark.exposed && (alone || mark.run !== this.#store.run);
      const { epoch, version } = nextCursor(mark);
      const cursor = { epoch: forks ? newEpoch() : epoch, version };
      return { created: false, cursor, now, alone };
    }
    const { version } = nextCursor(over ?? mark ?? { epoch: 0, version: 0 });
    const cursor = { epoch: newEpoch(), version };
    const fetched = now !== undefined && !over;
    return { created: !now, cursor, now, alone, over, fetched };
  }

  /**
   * Writes a version to the store, if it is reachable.
   *
   * @returns {Promise<{revision: number, stored: boolean, from?: number, run?: string} |
   *     undefined>} its place there; undefined: another version was
   *     newer, or the store has gone or come back, so that the version must be computed again
   * @throws {WorldError} when the version may have been written or not
   */
  async #write(key, { alone, over }, head, body) {
    if (alone === this.#settling.isReachable) return undefined;
    const mark = this.#marks.get(key);
    const revision = (over ?? mark)?.revision ?? 0;
    if (alone) {
      const goesOn = mark?.epoch === head.epoch;
      return { revision, stored: false, from: goesOn ? mark.from : head.version };
    }
    const { exposed } = mark ?? {};
    if (mark) mark.exposed = true;
    const { run } = this.#store;
    try {
      const written = await this.#store.put(key, { ...head, run }, body, revision);
      this.#counts.out += 1;
      this.#settling.accept(key);
      return { revision: written, stored: true, run };
    } catch (error) {
      if (!(error instanceof Conflict)) throw error;
      if (mark) mark.exposed = exposed;
      await this.#meet(key, await this.#store.get(key));
      return undefined;
    }
  }

  /** Returns an answer that holds only for the newest version; undefined where there was a newer one, which this server has now taken. */
  async #ifNewest(key, answer) {
    const found = this.#settling.isReachable ? await this.#store.get(key) : undefined;
    const mark = this.#marks.get(key);
    if (!found || (mark && !isNewer(found, mark))) return answer();
    const refused = this.#settling.refused(key)?.revision;
    await this.#meet(key, found);
    // A version that was already refused, and is refused again, changes nothing.
    const isSame = this.#marks.get(key) === mark;
    return isSame && this.#settling.refused(key)?.revision === refused ? answer() : undefined;
  }

  #refuseLarge(problem = 'feed-too-large') {
    const { room } = this.#store;
    return {
      problem,
      detail: `Publish less: compressed it is more than ${room} bytes, and the NATS server of this world takes no larger message (its max_payload).`
    };
  }

  // ---- One key, here and in the store

  /** Brings this server and the store to the same version of a key. Does nothing where this server has `revision` already. */
  #settle(key, revision) {
    return this.#feeds.inOrder(key, async () => {
      const mark = this.#marks.get(key);
      if (mark?.stored && mark.revision >= revision) return;
      await this.#meet(key, await this.#store.get(key));
    });
  }

  /** Takes the store's version or writes this server's, whichever is newer. */
  async #meet(key, found) {
    const mark = this.#marks.get(key);
    const refused = this.#settling.refused(key);
    // The refused version is not the newest any more: the key is tried again.
    if (!refused || refused.revision !== found?.revision) this.#settling.accept(key);
    if (found && (!mark || isNewer(found, mark))) return this.#take(key, found);
    if (!mark) return undefined;
    // The store remembers only so many deleted feeds.
    if (!found && mark.digest === undefined && mark.stored) return this.#marks.forget(key);
    if (!found) return this.#put(key, mark);
    if (isNewer(mark, found)) {
      const isOther = found.version >= mark.from;
      await this.#put(key, mark, found);
      if (isOther) this.#counts.overruled += 1;
      return undefined;
    }
    if (found.digest === mark.digest) {
      const { revision, run } = found;
      this.#marks.set(key, { ...mark, revision, run, stored: true, exposed: true });
      return undefined;
    }
    // The store has lost an accepted write, and has given its version to another value.
    if (found.log) return this.#take(key, found);
    return this.#fork(key, mark, found);
  }

  /** Takes a version of another server. */
  async #take(key, found) {
    const mark = this.#marks.get(key);
    const now = this.#feeds.find(key);
    const place = { revision: found.revision, stored: true, exposed: true };
    if (found.digest === undefined) {
      if (now !== null && now.length > 0 && !now.upstream) {
        const taken = await this.#feeds.takeAway(key);
        if (!holds(taken)) return this.#refuse(key, taken.problem, found);
        this.#counts.in += 1;
      }
    } else if (found.log) {
      if (!(await this.#takeLog(key, found))) return undefined;
      this.#counts.in += 1;
    } else {
      const follows =
        now?.length > 0 &&
        !now.log &&
        now.epoch === found.epoch &&
        now.version + 1 === found.version;
      const change = await this.#feeds.workOut(
        key,
        { cursor: found, now: now ?? undefined },
        {
          ...{ kind: 'value', body: found.body, form: found.form, digested: true, always: true },
          ...(!follows && { patched: false, before: undefined })
        }
      );
      if (change.problem !== undefined) return this.#refuse(key, change.problem, found);
      if (change.digest !== found.digest) return this.#refuse(key, 'bad-value', found);
      const taken = await this.#feeds.take(key, found, change);
      if (!holds(taken)) return this.#refuse(key, taken.problem, found);
      this.#counts.in += 1;
    }
    if (mark?.from && !mark.stored) this.#counts.overruled += 1;
    this.#settling.accept(key);
    this.#marks.set(key, { ...found, ...place });
    return undefined;
  }

  /**
   * Takes the items that this server does not have.
   *
   * @returns {Promise<boolean>} false: the items are refused, or the log has another epoch now
   */
  async #takeLog(key, found) {
    const { epoch, version, revision } = found;
    const now = this.#feeds.find(key);
    const have = now?.log && now.epoch === epoch ? now.version : 0;
    const items = await this.#itemsBack(key, found, have);
    if (items.length === 0) return this.#refuse(key, 'bad-value', found) ?? false;
    const first = version + 1 - items.length;
    if (have >= first && this.#feeds.newestItem(key).toString() !== items[have - first]) {
      // The store has lost accepted writes: old cursors do not describe the log any more, so that it gets a new epoch.
      const { parts } = await this.#feeds.splitLog(key, await this.#itemsBack(key, found, 0));
      const anew = { epoch: newEpoch(), version: Math.min(version + 1, LAST_VERSION) };
      await this.#putLog(key, { ...anew, run: this.#store.run }, parts, revision);
      this.#forgetParts(key, epoch, 0);
      this.#counts.overruled += 1;
      return false;
    }
    const goesOn = have > 0 && have + 1 >= first;
    for (let at = goesOn ? have + 1 : first; at <= version; at += 1) {
      const isFresh = !goesOn && at === first;
      const item = Buffer.from(items[at - first]);
      const taken = await this.#feeds.takeItem(key, { epoch, version: at }, item, isFresh);
      if (!holds(taken)) return this.#refuse(key, taken.problem, found) ?? false;
    }
    if (now?.log && have === 0) this.#log.warn({ feed: key }, REPLACED);
    return true;
  }

  /** @returns {Promise<string[]>} a log's items, back to version `have` or as many as are kept; none: they can't be read */
  async #itemsBack(key, found, have) {
    const { keeps } = this.#feeds;
    let items = [];
    let bytes = 0;
    let first = found.version + 1;
    for (let part = found; part?.log && part.version === first - 1;) {
      const read = await this.#feeds.readPart(part);
      if (read.items?.length !== part.version - part.log + 1) break;
      items = [...read.items, ...items];
      bytes += read.bytes;
      first = part.log;
      if (first <= have || items.length >= keeps.items || bytes >= keeps.bytes) break;
      part = await this.#store.getPart(key, found.epoch, first - 1);
    }
    return items;
  }

  /** Writes a whole log to the store. @returns {Promise<number>} its revision */
  async #putLog(key, { epoch, version, run }, parts, revision) {
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
    this.#settling.refuse(key, problem, { epoch, version, revision, log });
  }

  /** Writes this server's version to the store, over `over`. Writes nothing where a value is too large for a message. */
  async #put(key, mark, over) {
    const revision = over?.revision ?? 0;
    const isDeleted = mark.digest === undefined;
    // The store may have later versions of an epoch of an earlier run.
    const { exposed } = mark;
    const { run } = exposed ? mark : this.#store;
    mark.exposed = true;
    const parts = await this.#pack(key, isDeleted);
    if (parts.some(({ body }) => body.length > this.#store.room)) {
      if (!this.#tooLarge.has(key)) this.#log.error({ feed: key }, this.#refuseLarge().detail);
      this.#tooLarge.add(key);
      return;
    }
    let written;
    try {
      if (parts[0].count) written = await this.#putLog(key, { ...mark, run }, parts, revision);
      else {
        const [{ body, form }] = parts;
        written = await this.#store.put(key, { ...mark, form, run }, body, revision);
      }
    } catch (error) {
      // After a conflict the version was certainly not written.
      if (error instanceof Conflict) mark.exposed = exposed;
      throw error;
    }
    this.#counts.out += 1;
    this.#tooLarge.delete(key);
    this.#forgetLog(key, over, mark);
    this.#bury(key, { ...mark, revision: written, stored: true, run, from: undefined });
  }

  /** Returns this server's version as messages; those of a log have a count of items. */
  async #pack(key, isDeleted) {
    if (isDeleted) return [{ body: NOTHING }];
    if (!this.#feeds.find(key).log) return [await this.#feeds.pack(key)];
    return (await this.#feeds.splitLog(key)).parts;
  }

  /** Gives this server's value a version that no other server has. */
  async #fork(key, mark, found) {
    const fork = { ...mark, ...nextCursor(mark), epoch: newEpoch() };
    if (mark.digest !== undefined) {
      const value = this.#feeds.valueOf(key);
      const whole = { value, patch: NOTHING, gzip: NOTHING, digest: mark.digest };
      const taken = await this.#feeds.take(key, fork, whole);
      if (!holds(taken)) return this.#settling.refuse(key, taken.problem);
    }
    const { revision } = found;
    this.#marks.set(key, { ...fork, revision, stored: false, exposed: false });
    return this.#put(key, this.#marks.get(key), found);
  }

  /** Marks a written version. Removes a forgotten deleted feed from the store, too. */
  #bury(key, mark) {
    const [oldest, { revision, stored } = {}] = this.#marks.set(key, mark) ?? [];
    if (!stored || !this.#settling.isReachable) return;
    // After a failure the store keeps a message without a body.
    this.#store.forget(oldest, revision).catch((error) => this.#settling.lost(error));
  }
}
