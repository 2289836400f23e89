import { tagOf } from '../base/tag.js';
import { holdsName, isMember, MAX_NAMES, MAX_SERVERS } from './entry.js';
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
 * it restarts the time of all leases (`restartTimers`).
 */

/**
 * @param {number} lease milliseconds
 * @returns {number} how much longer watchers wait, in milliseconds: more than two ticks of membership.js
 */
export const marginOf = (lease) => Math.min(lease / 8, 1000);

/**
 * @typedef {object} SeenEntry
 * @property {import('./entry.js').Entry | undefined} entry undefined for a free name
 * @property {number} revision the store's
 * @property {number} seenAt time at which the revision was first seen, in milliseconds
 * @property {number} renewals renewals by the same process that this watcher has seen
 */

export class Leases {
  /** The least recently renewed first: with too many names that one is forgotten. @type {Map<string, SeenEntry>} */
  #byName = new Map();
  /** Until this time no server is overdue: a check of a thousand leases at every tick would be most of the work for them. */
  #noneOverdueUntil = -Infinity;
  /** Servers that have left and will come back. */
  absences = new Absences();

  /** @returns {SeenEntry | undefined} */
  get(name) {
    return this.#byName.get(name);
  }

  /** @returns {IterableIterator<[string, SeenEntry]>} */
  entries() {
    return this.#byName.entries();
  }

  /**
   * Takes a written entry. An older revision than the newest known one changes nothing.
   *
   * @param {string} name
   * @param {{entry: import('./entry.js').Entry | undefined, revision: number}} stored
   * @param {number} now
   * @returns {boolean} whether the entry differs from the one before; false for a renewal
   */
  record(name, { entry, revision }, now) {
    const before = this.#byName.get(name);
    if (before && before.revision >= revision) return false;
    const isSameLease = before?.entry?.run === entry?.run && before?.entry?.epoch === entry?.epoch;
    const renewals = before && isSameLease ? before.renewals + 1 : 0;
    const seen = { entry, revision, seenAt: now, renewals };
    this.#byName.delete(name);
    this.#byName.set(name, seen);
    if (this.#byName.size > MAX_NAMES) this.#byName.delete(this.#byName.keys().next().value);
    this.absences.record(name, entry, now);
    this.#noneOverdueUntil = Math.min(this.#noneOverdueUntil, overdueTime(seen));
    return !(
      before &&
      isSameLease &&
      before.entry?.state === entry?.state &&
      isSameDescription(before, entry)
    );
  }

  /**
   * Takes the whole content of the store. It replaces what was seen before the store was asked: the store may be a new
   * one, whose revisions start again.
   *
   * @param {Map<string, {entry: import('./entry.js').Entry | undefined, revision: number}>} storedEntries
   * @param {number} askedAt time at which the store was asked
   * @param {number} now
   */
  reload(storedEntries, askedAt, now) {
    const outdated = ([name, { revision, seenAt }]) =>
      seenAt < askedAt && !(storedEntries.get(name)?.revision >= revision);
    for (const [name] of [...this.#byName].filter(outdated)) this.#byName.delete(name);
    for (const [name, stored] of storedEntries) this.record(name, stored, now);
  }

  /**
   * Does the same for one name.
   *
   * @returns {boolean} as `record`
   */
  recordRead(name, stored, askedAt, now) {
    const before = this.#byName.get(name);
    if (before && before.seenAt < askedAt && before.revision > stored.revision)
      this.#byName.delete(name);
    return this.record(name, stored, now);
  }

  /** Restarts the time of all leases: renewals may have been missed. */
  restartTimers(now) {
    for (const seen of this.#byName.values()) seen.seenAt = now;
  }

  /** @returns {boolean} whether a server has not renewed its name for longer than its lease */
  isOverdue(name, now) {
    const seen = this.#byName.get(name);
    return seen !== undefined && now > overdueTime(seen);
  }

  /** @returns {string[]} the names that are overdue */
  overdue(now) {
    if (now <= this.#noneOverdueUntil) return [];
    const names = [];
    let firstEnd = Infinity;
    for (const [name, seen] of this.#byName) {
      const end = overdueTime(seen);
      if (now > end) names.push(name);
      firstEnd = Math.min(firstEnd, end);
    }
    this.#noneOverdueUntil = firstEnd;
    return names;
  }
}

/** Returns when a server becomes overdue, by the clock of the watcher; never for a server without its name. */
function overdueTime({ entry, seenAt }) {
  return holdsName(entry) ? seenAt + entry.lease + marginOf(entry.lease) : Infinity;
}

const isSameDescription = ({ entry: before }, entry) =>
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
  record(name, entry, now) {
    if (!(entry?.grace > 0)) {
      this.#absent.delete(name);
      return;
    }
    const { run, epoch, grace } = entry;
    const absence = this.#absent.get(name);
    if (absence && absence.run === run && absence.epoch === epoch) return;
    if (!absence && this.#absent.size >= MAX_NAMES) return;
    this.#absent.set(name, { run, epoch, end: now + grace });
  }

  /** @returns {boolean} whether a grace period has ended since the last call */
  removeEnded(now) {
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
const turnDelayOf = (lease) => Math.min(lease / 16, 500);

/**
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name this server, a member
 * @param {number} self.version its version of the protocol
 * @param {number} self.lease its own lease, in milliseconds
 * @param {number} now
 * @returns {string[]} the servers that this server must remove now
 */
export function namesToRemove({ leases, name, version, lease }, now) {
  const overdue = leases.overdue(now);
  if (overdue.length === 0) return overdue;
  const activeNames = [...leases.entries()]
    .filter(([member, { entry }]) => isMember(entry, version) && !leases.isOverdue(member, now))
    .map(([member]) => member)
    .toSorted();
  const isOwnTurn = (lost) => {
    const next = activeNames.findIndex((member) => member > lost);
    const turnsBefore =
      (activeNames.indexOf(name) - Math.max(next, 0) + activeNames.length) % activeNames.length;
    const { seenAt, entry } = leases.get(lost);
    return now - seenAt > entry.lease + marginOf(entry.lease) + turnsBefore * turnDelayOf(lease);
  };
  return overdue.filter(isOwnTurn);
}

/**
 * Refuses to join a ring with which this server cannot work, by the entries of the others. Pure.
 *
 * @param {object} self
 * @param {import('./leases.js').Leases} self.leases
 * @param {string} self.name this server
 * @param {number} self.version its version of the protocol
 * @param {number} now
 * @param {(other: import('./leases.js').SeenEntry) => boolean} hasPrecedence whether another server goes before this
 *     one
 * @throws {WorldError} when this server cannot make a ring with the others, or the world is full
 */
export function checkCanJoin({ leases, name, version }, now, hasPrecedence) {
  const others = [...leases.entries()].filter(
    ([other, { entry }]) => other !== name && holdsName(entry) && !leases.isOverdue(other, now)
  );
  const otherVersion = others.find(
    ([, seen]) => seen.entry.version !== version && hasPrecedence(seen)
  );
  if (otherVersion) {
    const [other, { entry }] = otherVersion;
    throw new WorldError(
      'other-version',
      `${other} speaks version ${entry.version} of the world's protocol, and this server version ${version}: run the same release on all`
    );
  }
  const sameTag = others.find(
    ([other, seen]) => tagOf(other) === tagOf(name) && hasPrecedence(seen)
  );
  if (sameTag) {
    throw new WorldError(
      'same-tag',
      `ids of ${sameTag[0]} and of ${name} would begin alike: give this server another --name`
    );
  }
  if (others.length >= MAX_SERVERS) {
    throw new WorldError('world-full', `there are ${others.length} servers in the world`);
  }
}
