import { PART_BYTES } from '../feeds/log-parts.js';
import { cursorText, LAST_VERSION, newEpoch, nextCursor, PRESENCE } from '../feeds/names.js';
import { clock as systemClock } from './clock.js';
import { FeedMarks, isNewer } from './feed-message.js';
import { FeedSettling } from './feed-settling.js';
import { Conflict, WorldError } from './world-error.js';

/**
 * Feeds that are published at one server of a world and are at all.
 *
 *   PUT ─▶ thread ─▶ store: compare-and-set ─┬▶ table ─▶ watchers, 2xx
 *                      │                     └▶ Conflict: take the newest, and work it out anew
 *                      ▼ head
 *   the others: behind ─▶ get ─▶ thread ─▶ table ─▶ their watchers          (feed-settling.js)
 *
 * **One order.** A publication is written to the world's store over the revision that it was worked out from, before any
 * watcher hears of it. Where another server's came first the write fails, that version is taken, and the publication is
 * worked out from it: so a patch is applied once, to the newest value, and a cursor means the same value everywhere.
 *
 * **One rule.** What is newer is decided by versions alone (feed-message.js), and a table only takes what is newer than
 * what it has. So it does not matter in which order a server hears of versions, how often, or which it misses: `meet`
 * compares one key here and in the store, and takes or writes the newer one. Everything comes down to it: news, a
 * join, a store that was away, or has lost what it had.
 *
 * **Logs.** The head has the newest items; when they are PART_BYTES it is kept as a part, and the head begins anew. So an
 * item is written by the same compare-and-set, a server a little behind gets what it lacks with the head, and one further
 * behind goes back part by part. Without the store nothing is appended: two orders could not become one.
 *
 * **Alone.** While the store is out of reach a publication counts at its own server, and is written when it is back. Its
 * epoch is a new one, since others may give the same version to another value meanwhile; versions go on from where they
 * were. A write of which no answer came may have been done: what follows has a new epoch, too. So has the next version of
 * each feed when the NATS server was restarted: JetStream may forget what it has promised.
 *
 * Rejected: a server that orders a key for all (it dies, or the ring changes, with publications on their way), versions by
 * gossip (two patches at once, and one is lost), refusing publications without the store (a server that can reach its
 * own watchers, and doesn't).
 */

/** How often a publication is worked out anew because others have come before it. */
const TRIES = 32;

/** How long publications wait for the store after the start, milliseconds. Then the server counts as alone. */
const PATIENCE = 5000;

/** What the arena publishes, and whatever else is under its keys, stays on its server. */
const LOCAL = ['arena/', PRESENCE];

const NOTHING = new Uint8Array(0);

/** Whether the table has what it was given, or will have it as soon as the state is written. */
const holds = ({ problem, late }) => problem === undefined || late === true;

/** What is answered where nothing can be appended. */
const NOT_NOW = {
  problem: 'publishing-busy',
  detail: 'The NATS server of this world does not answer: append the item later.'
};
const IN_DOUBT = {
  problem: 'publishing-busy',
  detail:
    'The NATS server of this world did not answer in time: the item may be in the log. Look before you append it again.'
};

/** What the log says of two logs of one key that were appended to apart. */
const REPLACED = 'the log of another server takes the place of the one here, whose items are gone';

/** What a patch is told where the newest value is none that this server can take. */
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
  /** Resolves when the store was reached for the first time, or is not to be waited for any more. */
  #begun;
  #begin;
  #patience = () => {};
  #counts = { in: 0, out: 0, overruled: 0 };
  /** Keys whose value no message has room for. */
  #tooLarge = new Set();

  /**
   * @param {object} parts
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('./feed-store.js').FeedStore} parts.store
   * @param {number} parts.most feeds there may be
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

  /** Begins: publications wait for the store from now on, but not for long. */
  start() {
    this.#patience = this.#clock.after(PATIENCE, this.#begin);
  }

  /**
   * This server is one of the world, or becomes one.
   *
   * @returns {Promise<void>} when every feed that the world has at this moment is here, but those that this server refuses
   */
  join() {
    return this.#settling.open();
  }

  /** It is none: what is published here stays here, until it joins. */
  part() {
    this.#settling.close();
  }

  /**
   * Before leaving: waits until the store has everything that was published here.
   *
   * @param {number} within milliseconds that this may take
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

  /** @returns {boolean} whether what is published under a key is the world's */
  shares(key) {
    return !LOCAL.some((own) => key.startsWith(own));
  }

  /**
   * @returns {{in: number, out: number, overruled: number, refused: number, behind: number, unstored: number,
   *     reachable: boolean}} versions taken from other servers, and written for them; those published here that a newer one
   *     was put in place of, and those that this server could not take; keys of which there is a newer version, and of which
   *     the store has not ours; whether what is published goes to the store
   */
  status() {
    const { isReachable: reachable } = this.#settling;
    return {
      ...this.#counts,
      ...this.#settling.status(),
      ...{ unstored: this.#marks.unstored, reachable }
    };
  }

  // ---- Publishing. Always in the key's turn: Feeds#inOrder

  /** As Feeds#publish. */
  publish(key, kind, body) {
    return this.#repeat(() => this.#tryPublish(key, kind, body));
  }

  /** As Feeds#append, of the item as canonical text. */
  append(key, item) {
    return this.#repeat(() => this.#tryAppend(key, item));
  }

  /** As Feeds#remove. */
  remove(key) {
    return this.#repeat(() => this.#tryRemove(key));
  }

  /** Tries until there is an answer. */
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
    // What was fetched is no version of the world, nor is what it has a newer one of, whatever the value is.
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
    // This server can't take the newest, or write what is here; or it has just written another.
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
    // Two parts, one behind the other, have more than PART_BYTES; and some may have been written for nothing.
    const kept = 2 * Math.ceil(this.#feeds.keeps.bytes / PART_BYTES) + 8;
    if (begun) this.#forgetParts(key, cursor.epoch, kept);
    const taken = await this.#feeds.takeItem(key, cursor, item, created);
    // The world has it, whether this server has room for it or not.
    if (holds(taken)) this.#marks.set(key, { ...head, revision, stored: true, exposed: true });
    else this.#settling.see(key, revision);
    return { created, cursor: cursorText(cursor), watching: taken.watching ?? 0 };
  }

  #forgetParts(key, epoch, keep) {
    // Where that fails more is kept.
    this.#store.forgetParts(key, epoch, keep).catch((error) => this.#settling.lost(error));
  }

  /** A version has taken the place of another one: where that was a log's, no server writes parts of its epoch any more. */
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
    // Before, so that one turn writes both.
    this.#bury(key, { ...next.cursor, ...place, exposed: place.stored });
    if (place.stored) this.#forgetLog(key, next.over ?? next.now, next.cursor);
    const taken = next.now ? await this.#feeds.takeAway(key) : {};
    if (holds(taken)) return taken;
    if (mark) this.#marks.set(key, mark);
    else this.#marks.forget(key);
    if (place.stored) this.#settling.see(key, place.revision);
    return taken;
  }

  /** A feed's next version, and what it comes from. */
  #next(key) {
    const alone = !this.#settling.isReachable;
    const mark = this.#marks.get(key);
    const found = this.#feeds.find(key);
    const now = found !== null && found.length > 0 ? found : undefined;
    const refused = this.#settling.refused(key);
    // What the store has, and could not be taken here: a whole value, or a deletion, is written over it.
    const over = refused && !(mark && isNewer(mark, refused)) ? refused : undefined;
    if (now && !now.upstream && mark && !over) {
      // Others may give this version to another value, or have given it: then it must be of another epoch.
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
   * Writes a version to the store, where that can be reached.
   *
   * @returns {Promise<{revision: number, stored: boolean, from?: number, run?: string} |
   *     undefined>} its place there; undefined: another version was
   *     newer, or the store has gone or come back, so the version has to be worked out anew
   * @throws {WorldError} when it may have been written or not
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

  /** Answers what holds only for the newest version; undefined where there was a newer one, which is here now. */
  async #ifNewest(key, answer) {
    const found = this.#settling.isReachable ? await this.#store.get(key) : undefined;
    const mark = this.#marks.get(key);
    if (!found || (mark && !isNewer(found, mark))) return answer();
    const refused = this.#settling.refused(key)?.revision;
    await this.#meet(key, found);
    // Where it can't be taken, and that was known, nothing is another.
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

  /** Has this server and the store have the same version of a key; does nothing where it has `revision` already. */
  #settle(key, revision) {
    return this.#feeds.inOrder(key, async () => {
      const mark = this.#marks.get(key);
      if (mark?.stored && mark.revision >= revision) return;
      await this.#meet(key, await this.#store.get(key));
    });
  }

  /** Takes what the store has, or writes what is here, whichever is newer. */
  async #meet(key, found) {
    const mark = this.#marks.get(key);
    const refused = this.#settling.refused(key);
    // Where no version of the store was refused, but what came of it, that is tried anew.
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
    // The store has forgotten what it had promised, and given its version to another value.
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
   * Takes the items that are not here.
   *
   * @returns {Promise<boolean>} false: they are refused, or the log has another epoch now
   */
  async #takeLog(key, found) {
    const { epoch, version, revision } = found;
    const now = this.#feeds.find(key);
    const have = now?.log && now.epoch === epoch ? now.version : 0;
    const items = await this.#itemsBack(key, found, have);
    if (items.length === 0) return this.#refuse(key, 'bad-value', found) ?? false;
    const first = version + 1 - items.length;
    if (have >= first && this.#feeds.newestItem(key).toString() !== items[have - first]) {
      // The store has forgotten what it had promised: no cursor of before says any more what there is.
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

  /** @returns {Promise<string[]>} a log's items: back to version `have`, or as many as are kept; none: they can't be taken */
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

  /** Writes a log to the store, all of it. @returns {Promise<number>} its revision */
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

  /** Writes the version that is here to the store, over what that has; nothing where no message has room for it. */
  async #put(key, mark, over) {
    const revision = over?.revision ?? 0;
    const isDeleted = mark.digest === undefined;
    // An epoch of an earlier run may have gone further there.
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
      // Then it was surely not written.
      if (error instanceof Conflict) mark.exposed = exposed;
      throw error;
    }
    this.#counts.out += 1;
    this.#tooLarge.delete(key);
    this.#forgetLog(key, over, mark);
    this.#bury(key, { ...mark, revision: written, stored: true, run, from: undefined });
  }

  /** What is here as messages; those of a log have a count of items. */
  async #pack(key, isDeleted) {
    if (isDeleted) return [{ body: NOTHING }];
    if (!this.#feeds.find(key).log) return [await this.#feeds.pack(key)];
    return (await this.#feeds.splitLog(key)).parts;
  }

  /** Gives what is here a version that no other server has. */
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

  /** Notes a version that was written; the store forgets what is forgotten for it. */
  #bury(key, mark) {
    const [oldest, { revision, stored } = {}] = this.#marks.set(key, mark) ?? [];
    if (!stored || !this.#settling.isReachable) return;
    // Where that fails it stays there: a message without a body.
    this.#store.forget(oldest, revision).catch((error) => this.#settling.lost(error));
  }
}
