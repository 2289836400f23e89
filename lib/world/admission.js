import { isLiving, MOST_SERVERS } from './entry.js';
import { tagOf } from '../base/tag.js';
import { WorldError } from './world-error.js';

/**
 * Whether a server may be one of the ring, by what the store says of the others. Pure.
 *
 * @param {object} who
 * @param {import('./leases.js').Leases} who.leases
 * @param {string} who.name the server's
 * @param {number} who.version of the protocol that it speaks
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
