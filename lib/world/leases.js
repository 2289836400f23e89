import { tagOf } from '../base/tag.js';
import { isLiving, isMember, MOST_NAMES, MOST_SERVERS } from './entry.js';
import { WorldError } from './world-error.js';

/**
 * The leases of the other servers, as one server has seen them. Pure: callers pass the time.
 *
 * Clocks of two machines are never compared. A renewal writes the entry again, which gives it a new revision. A watcher
 * notes by its own monotonic clock when it first saw a revision. The owner counts from before it sent the write, the
 * watchers from when they saw it, and they wait a little longer (`marginOf`): so the owner knows that its lease has ended
 * before any watcher does.
 *
 * A watcher that was disconnected (the broker was away, the machine slept, the process was stopped) has missed renewals:
 * it restarts the time of all leases (`watchAnew`).
 */

/**
 * @param {number} lease milliseconds
 * @returns {number} how much longer watchers wait, in milliseconds: more than two ticks of membership.js
 */
export const marginOf = (lease) => Math.min(lease / 8, 1000);

/**
 * @typedef {object} Seen
 * @property {import('./entry.js').Entry | undefined} entry undefined for a free name
 * @property {number} revision the store's
 * @property {number} at time at which the revision was first seen, in milliseconds
 * @property {number} renewals renewals by the same process that this watcher has seen
 */

export class Leases {
  /** The least recently renewed first: with too many names that one is forgotten. @type {Map<string, Seen>} */
  #seen = new Map();
  /** Until this time no server is overdue: a check of a thousand leases at every tick would be most of the work for them. */
  #calmUntil = -Infinity;
  /** Servers that have left and will come back. */
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
   * Takes a written entry. An older revision than the newest known one changes nothing.
   *
   * @param {string} name
   * @param {{entry: import('./entry.js').Entry | undefined, revision: number}} what
   * @param {number} now
   * @returns {boolean} whether the entry differs from the one before; false for a renewal
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
   * Takes the whole content of the store. It replaces what was seen before the store was asked: the store may be a new
   * one, whose revisions start again.
   *
   * @param {Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>} all
   * @param {number} asked time at which the store was asked
   * @param {number} now
   */
  reload(all, asked, now) {
    const outdated = ([name, { revision, at }]) =>
      at < asked && !(all.get(name)?.revision >= revision);
    for (const [name] of [...this.#seen].filter(outdated)) this.#seen.delete(name);
    for (const [name, what] of all) this.see(name, what, now);
  }

  /**
   * Does the same for one name.
   *
   * @returns {boolean} as `see`
   */
  correct(name, what, asked, now) {
    const before = this.#seen.get(name);
    if (before && before.at < asked && before.revision > what.revision) this.#seen.delete(name);
    return this.see(name, what, now);
  }

  /** Restarts the time of all leases: renewals may have been missed. */
  watchAnew(now) {
    for (const seen of this.#seen.values()) seen.at = now;
  }

  /** @returns {boolean} whether a server has not renewed its name for longer than its lease */
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

/** Returns when a server becomes overdue, by the clock of the watcher; never for a server without its name. */
function endOf({ entry, at }) {
  return isLiving(entry) ? at + entry.lease + marginOf(entry.lease) : Infinity;
}

const sameShape = ({ entry: before }, entry) =>
  ['rows', 'version', 'url'].every((name) => before?.[name] === entry?.[name]);

/**
 * The servers that have left in order and said that they come back: with a state, and with it their clients' places. Until
 * their grace is over the ids that they have made stay their own. Pure: it is told the time.
 *
 * A watcher counts the grace period by its own clock, from when it first saw that the server leaves. A watcher that starts
 * later counts from its start: it may wait for a server that left long ago, but at most for the grace period.
 */
class Absences {
  /** @type {Map<string, {run: string, epoch: number, end: number}>} */
  #absent = new Map();

  /**
   * @param {string} name
   * @param {import('./entry.js').Entry | undefined} entry its newest entry
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

  /** @returns {boolean} whether a grace period has ended since the last call */
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
 * The choice of the server that removes a server with an expired lease from the ring: first the next one in the order of
 * the ring, then the others in turn, each after a little longer wait. So usually one server does it, and another one does
 * it if that server is lost, too. Pure.
 */

/** How much longer each further server waits before it removes a lost one, in milliseconds. */
const turnOf = (lease) => Math.min(lease / 16, 500);

/**
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name this server, a member
 * @param {number} self.version its version of the protocol
 * @param {number} self.lease its own lease, in milliseconds
 * @param {number} now
 * @returns {string[]} the servers that this server must remove now
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
 * Refuses to join a ring with which this server cannot work, by the entries of the others. Pure.
 *
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name this server
 * @param {number} self.version its version of the protocol
 * @param {number} now
 * @param {(other: import('./leases.js').Seen) => boolean} counts whether another server goes before this one
 * @throws {WorldError} when this server cannot make a ring with the others, or the world is full
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
