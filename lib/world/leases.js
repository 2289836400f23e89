import { tagOf } from '../base/tag.js';
import { isLiving, isMember, MOST_NAMES, MOST_SERVERS } from './entry.js';
import { WorldError } from './world-error.js';

/**
 * What one server has seen of the others' leases. Pure: it is told the time.
 *
 * Clocks of two machines are never compared. A lease is renewed by writing the entry anew, which gives it a new revision;
 * a watcher notes by its own monotonic clock when it first saw a revision. The owner counts from before it sent the
 * write, the watchers from when they saw it, and they wait a little longer (`marginOf`): so the owner knows that its
 * lease has ended before any watcher does.
 *
 * A watcher that was out of touch (the broker was away, the machine slept, the process was stopped) has missed
 * renewals: it starts to watch anew (`watchAnew`).
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
  /** Until then no server is overdue: to look at a thousand leases at every tick would be most of what a server does for them. */
  #calmUntil = -Infinity;
  /** The servers that have left and come back. */
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

  /** Leases are counted from now on: renewals may have been missed. */
  watchAnew(now) {
    for (const seen of this.#seen.values()) seen.at = now;
  }

  /** @returns {boolean} whether a server that holds its name has not renewed it for longer than its lease */
  isOverdue(name, now) {
    const seen = this.#seen.get(name);
    return seen !== undefined && now > endOf(seen);
  }

  /** @returns {string[]} the names that are overdue */
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

/** When a server is overdue, by the clock of the watcher; a server that holds no name never is. */
function endOf({ entry, at }) {
  return isLiving(entry) ? at + entry.lease + marginOf(entry.lease) : Infinity;
}

const sameShape = ({ entry: before }, entry) =>
  ['rows', 'version', 'url'].every((name) => before?.[name] === entry?.[name]);

/**
 * The servers that have left in order and said that they come back: with a state, and with it their clients' places. Until
 * their grace is over the ids that they have made stay their own. Pure: it is told the time.
 *
 * A watcher counts the grace by its own clock, from when it first saw that the server leaves. A watcher that begins later
 * counts from then: it may wait for a server that has been away for long, but no longer than its grace.
 */
class Absences {
  /** @type {Map<string, {run: string, epoch: number, end: number}>} */
  #absent = new Map();

  /**
   * @param {string} name
   * @param {import('./entry.js').Entry | undefined} entry its newest
   * @param {number} now
   */
  see(name, entry, now) {
    if (!(entry?.grace > 0)) {
      this.#absent.delete(name);
      return;
    }
    const { run, epoch, grace } = entry;
    const known = this.#absent.get(name);
    if (known && known.run === run && known.epoch === epoch) return;
    if (!known && this.#absent.size >= MOST_NAMES) return;
    this.#absent.set(name, { run, epoch, end: now + grace });
  }

  /** @returns {boolean} whether a grace has ended since the last call */
  end(now) {
    const ended = [...this.#absent].filter(([, { end }]) => end <= now);
    for (const [name] of ended) this.#absent.delete(name);
    return ended.length > 0;
  }

  /** @returns {string[]} the servers that may still come back, in order */
  names(now) {
    const absent = [...this.#absent].filter(([, { end }]) => end > now);
    return absent.map(([name]) => name).toSorted();
  }
}

/**
 * Which server takes one out of the ring whose lease has ended: the next in the ring's order, then one after
 * the other, each waiting a little longer. So it is done once as a rule, and also where the next one is lost as well. Pure.
 */

/** How much longer each further server waits before it takes a lost one out, milliseconds. */
const turnOf = (lease) => Math.min(lease / 16, 500);

/**
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name the server that looks: a member
 * @param {number} self.version of the protocol that it speaks
 * @param {number} self.lease its own, milliseconds
 * @param {number} now
 * @returns {string[]} the servers that it has to take out now
 */
export function toTakeOut({ leases, name, version, lease }, now) {
  const overdue = leases.overdue(now);
  if (overdue.length === 0) return overdue;
  const able = [...leases.entries()]
    .filter(([one, { entry }]) => isMember(entry, version) && !leases.isOverdue(one, now))
    .map(([one]) => one)
    .toSorted();
  const isMyTurn = (lost) => {
    const next = able.findIndex((one) => one > lost);
    const turns = (able.indexOf(name) - Math.max(next, 0) + able.length) % able.length;
    const { at, entry } = leases.get(lost);
    return now - at > entry.lease + marginOf(entry.lease) + turns * turnOf(lease);
  };
  return overdue.filter(isMyTurn);
}

/**
 * Whether a server may be one of the ring, by what the store says of the others. Pure.
 *
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name the server's
 * @param {number} self.version of the protocol that it speaks
 * @param {number} now
 * @param {(other: import('./leases.js').Seen) => boolean} counts whether one that joins is there before it
 * @throws {WorldError} when there are servers in the world with which it makes no ring, or no more may be
 */
export function refuseOthers({ leases, name, version }, now, counts) {
  const others = [...leases.entries()].filter(
    ([other, { entry }]) => other !== name && isLiving(entry) && !leases.isOverdue(other, now)
  );
  const strange = others.find(([, seen]) => seen.entry.version !== version && counts(seen));
  if (strange) {
    const [other, { entry }] = strange;
    throw new WorldError(
      'other-version',
      `${other} speaks version ${entry.version} of the world's protocol, and this server version ${version}: run the same release on all`
    );
  }
  const alike = others.find(([other, seen]) => tagOf(other) === tagOf(name) && counts(seen));
  if (alike) {
    throw new WorldError(
      'same-tag',
      `ids of ${alike[0]} and of ${name} would begin alike: give this server another --name`
    );
  }
  if (others.length >= MOST_SERVERS) {
    throw new WorldError('world-full', `there are ${others.length} servers in the world`);
  }
}
