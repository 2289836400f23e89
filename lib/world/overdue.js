import { isMember } from './entry.js';
import { marginOf } from './leases.js';

/**
 * Who takes a server out of the ring whose lease has ended. The first in the ring's order after it does, then one after
 * the other, each waiting a little longer: so it is done once as a rule, and done although that one is lost as well. Pure.
 */

/** How much longer each further server waits before it takes a lost one out, milliseconds. */
const turnOf = (lease) => Math.min(lease / 16, 500);

/**
 * @param {object} who
 * @param {import('./leases.js').Leases} who.leases
 * @param {string} who.name the server that looks: a member
 * @param {number} who.version of the protocol that it speaks
 * @param {number} who.lease its own, milliseconds
 * @param {number} now
 * @returns {string[]} whom it has to take out now
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
