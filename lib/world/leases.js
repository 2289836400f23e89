import { Absences } from './absences.js';
import { isLiving, MOST_NAMES } from './entry.js';

/**
 * What one server has seen of the others' leases. Pure: it is told the time.
 *
 * Clocks of two machines are never compared. A lease is renewed by writing the entry anew, which gives it a new revision;
 * who watches notes by his own clock, which only goes forward, when he saw a revision first. The owner counts from
 * before he sent the write, the watchers from when they saw it, and they wait a little longer (`marginOf`): so the owner
 * knows that his lease has ended before anybody else finds so.
 *
 * Who was himself out of touch (the broker was away, the machine slept, the process was stopped) has seen nothing of
 * the renewals meanwhile: he starts to watch anew (`watchAnew`).
 */

/**
 * @param {number} lease milliseconds
 * @returns {number} what watchers wait beyond it, milliseconds: more than two ticks of membership.js
 */
export const marginOf = (lease) => Math.min(lease / 8, 1000);

/**
 * @typedef {object} Seen
 * @property {import('./entry.js').Entry | undefined} entry undefined for a name that is free, whatever is there
 * @property {number} revision the store's
 * @property {number} at when it was seen first, milliseconds
 * @property {number} renewals how often it was renewed by the same process since it is watched
 */

export class Leases {
  /** The longest not renewed first: where there are too many names that one is forgotten. @type {Map<string, Seen>} */
  #seen = new Map();
  /** Until then nobody is overdue: to look at a thousand leases at every tick would be most of what a server does for them. */
  #calmUntil = -Infinity;
  /** Who has left, and comes back. */
  absences = new Absences();

  /** @returns {Seen | undefined} */
  get(name) {
    return this.#seen.get(name);
  }

  /** @returns {IterableIterator<[string, Seen]>} */
  entries() {
    return this.#seen.entries();
  }

  /**
   * An entry was written; older ones than the newest seen change nothing.
   *
   * @param {string} name
   * @param {{entry: import('./entry.js').Entry | undefined, revision: number}} what
   * @param {number} now
   * @returns {boolean} whether it says something else than the one before: not where it is only renewed
   */
  see(name, { entry, revision }, now) {
    const before = this.#seen.get(name);
    if (before && before.revision >= revision) return false;
    const same = before?.entry?.run === entry?.run && before?.entry?.epoch === entry?.epoch;
    const renewals = before && same ? before.renewals + 1 : 0;
    const seen = { entry, revision, at: now, renewals };
    this.#seen.delete(name);
    this.#seen.set(name, seen);
    if (this.#seen.size > MOST_NAMES) this.#seen.delete(this.#seen.keys().next().value);
    this.absences.see(name, entry, now);
    this.#calmUntil = Math.min(this.#calmUntil, endOf(seen));
    return !(before && same && before.entry?.state === entry?.state && sameShape(before, entry));
  }

  /**
   * What is in the store, whole: it counts more than what was seen before it was asked for. The store may be a new one,
   * whose revisions begin anew.
   *
   * @param {Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>} all
   * @param {number} asked when it was asked for
   * @param {number} now
   */
  reload(all, asked, now) {
    const outdated = ([name, { revision, at }]) =>
      at < asked && !(all.get(name)?.revision >= revision);
    for (const [name] of [...this.#seen].filter(outdated)) this.#seen.delete(name);
    for (const [name, what] of all) this.see(name, what, now);
  }

  /**
   * The same for one name.
   *
   * @returns {boolean} as `see`
   */
  correct(name, what, asked, now) {
    const before = this.#seen.get(name);
    if (before && before.at < asked && before.revision > what.revision) this.#seen.delete(name);
    return this.see(name, what, now);
  }

  /** Nobody's time counts that was before now. */
  watchAnew(now) {
    for (const seen of this.#seen.values()) seen.at = now;
  }

  /** @returns {boolean} whether a server that holds its name has not renewed it for longer than its lease */
  isOverdue(name, now) {
    const seen = this.#seen.get(name);
    return seen !== undefined && now > endOf(seen);
  }

  /** @returns {string[]} those who are overdue */
  overdue(now) {
    if (now <= this.#calmUntil) return [];
    const names = [];
    let calm = Infinity;
    for (const [name, seen] of this.#seen) {
      const end = endOf(seen);
      if (now > end) names.push(name);
      calm = Math.min(calm, end);
    }
    this.#calmUntil = calm;
    return names;
  }
}

/** When somebody is overdue, by the clock of who has seen him: who holds no name never is. */
function endOf({ entry, at }) {
  return isLiving(entry) ? at + entry.lease + marginOf(entry.lease) : Infinity;
}

const sameShape = ({ entry: before }, entry) =>
  ['rows', 'version', 'url'].every((name) => before?.[name] === entry?.[name]);
