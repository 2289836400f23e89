import { isLiving, isMember } from './entry.js';
import { Ring } from './ring.js';

/**
 * What the rest of a server goes by: the ring, and where the others and their clients are. Pure: it comes of what has been
 * seen of the store, and of what the server knows of itself.
 *
 * @typedef {object} View
 * @property {'alone' | 'joining' | 'member' | 'cut-off' | 'leaving' | 'gone'} state
 * @property {{code: string, message: string} | undefined} problem why it is not a member
 * @property {number | undefined} epoch its own
 * @property {Ring} ring with the server itself alone in it where it is no member
 * @property {Map<string, import('./entry.js').Entry>} peers the others that hold their names, of this version: a frame of
 *     one is good when it has the epoch that is here
 * @property {Map<string, number>} epochs the last ones of all others, also of those who have left or were lost: no process
 *     of one has gone further
 * @property {{name: string, url?: string}[]} places the others whose clients have their places there: those of the ring,
 *     and those that are about to be of it
 * @property {string[]} restarting the others that have left in order, and come back with their clients' places
 */

/**
 * @param {object} who
 * @param {import('./leases.js').Leases} who.leases
 * @param {string} who.name the server's
 * @param {number} who.version of the protocol that it speaks
 * @param {{state: View['state'], problem: View['problem'], epoch: View['epoch']}} self what it is now
 * @param {() => {rows: number, url?: string}} describe what the others must know of it
 * @param {number} now
 * @returns {View}
 */
export function viewOf({ leases, name, version }, self, describe, now) {
  const { state, epoch } = self;
  const inRing = state === 'member' || state === 'cut-off';
  const peers = peersOf(leases, name, version);
  const restarting = leases.absences.names(now).filter((one) => one !== name);
  // One that is no part of the world says nothing of it.
  const others =
    state === 'alone' ? { places: [], restarting: [] } : { places: placesOf(peers), restarting };
  const members = inRing ? membersOf(leases, version) : [{ name, epoch, ...describe() }];
  return { ...self, ring: new Ring(members), peers, epochs: epochsOf(leases, name), ...others };
}

function membersOf(leases, version) {
  const members = [];
  for (const [name, { entry }] of leases.entries()) {
    if (!isMember(entry, version)) continue;
    members.push({ name, rows: entry.rows, epoch: entry.epoch, url: entry.url });
  }
  return members;
}

function peersOf(leases, own, version) {
  const peers = new Map();
  for (const [name, { entry }] of leases.entries()) {
    if (name === own || !isLiving(entry) || entry.version !== version) continue;
    peers.set(name, entry);
  }
  return peers;
}

function epochsOf(leases, own) {
  const epochs = new Map();
  for (const [name, { entry }] of leases.entries()) {
    if (name !== own && entry !== undefined) epochs.set(name, entry.epoch);
  }
  return epochs;
}

/** Where the clients of these are to ask: who leaves has no places any more, or says that it comes back. */
const placesOf = (peers) =>
  [...peers]
    .filter(([, { state }]) => state !== 'leaving')
    .map(([name, { url }]) => ({ name, url }));
