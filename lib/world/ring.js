import { holdsName, isMember } from './entry.js';

/**
 * The ring of a world: the order of the servers, row by row. Pure: no sockets, no time.
 *
 * Row i of the world joins row i of all servers that have it. The right end of the row on one server leads to the left end
 * of the same row on the next server that has the row, and the last server leads to the first. A server without the row is
 * skipped. The torus opens rows in order and closes the last first, so that a server of n rows has rows 0 to n - 1.
 *
 *     rows of       a   b   c   d          row 0:  a → b → c → d → a
 *                   5   2   7   5          row 3:  a → c → d → a
 *                                          row 6:  c → c, the other end of its own row
 *
 * THE ORDER is that of the names, character by character. Every server computes the same order, whatever it has seen first.
 * A server that comes back has its old place, so that no seams change twice. The operator decides which servers are
 * neighbors (machines of one rack, `rack1-a` and `rack1-b`). The order needs no storage. Rejected: the order of joining (a
 * restart would move a server to the end, which removes the seams of its old neighbors and makes two more pairs).
 *
 * A member that joins or leaves changes only the seams of its neighbors: of one server on each side, and of servers further
 * away only in rows that no server between them has.
 */

/** The two sides of a row, as the edges of a desktop. */
export const SIDES = Object.freeze(['left', 'right']);

/**
 * @typedef {object} Member
 * @property {string} name
 * @property {number} rows number of its rows: 0 to rows - 1
 *
 * @typedef {object} Seam adjacent rows that lead to one server
 * @property {number} from the first row
 * @property {number} to the row after the last one
 * @property {string} peer the server; the own name for rows that lead to their own other end
 */

export class Ring {
  /** @type {Member[]} */
  #members;
  /** @type {Map<string, number>} */
  #indexes;

  /**
   * @param {Iterable<Member>} members in any order; further properties are kept
   * @throws {RangeError} for a repeated name
   */
  constructor(members) {
    this.#members = [...members].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.#indexes = new Map(this.#members.map(({ name }, index) => [name, index]));
    if (this.#indexes.size < this.#members.length) throw new RangeError('a name is there twice');
  }

  /** @returns {number} number of servers */
  get size() {
    return this.#members.length;
  }

  /** @returns {Member[]} in the order of the ring */
  get members() {
    return [...this.#members];
  }

  /**
   * Returns the seams of a server: ranges of rows, and the server to which each range leads. There is at most one seam for
   * each different number of rows in the ring.
   *
   * @param {string} name
   * @param {number} [rows] number of rows, by default the server's; it may be larger: a sprite in a closed row flies on
   *     from here
   * @returns {{left: Seam[], right: Seam[]}} each in the order of rows, without gaps from 0 to `rows`
   * @throws {RangeError} when the server is not in the ring
   */
  seams(name, rows = this.#members[this.#indexOf(name)].rows) {
    const [left, right] = [-1, 1].map((step) => this.#seamsTo(name, rows, step));
    return { left, right };
  }

  #indexOf(name) {
    const index = this.#indexes.get(name);
    if (index === undefined) throw new RangeError(`${name} is not in the ring`);
    return index;
  }

  #seamsTo(name, rows, step) {
    const index = this.#indexOf(name);
    const { length } = this.#members;
    const seams = [];
    let from = 0;
    for (let i = 1; i < length && from < rows; i++) {
      const other = this.#members.at((index + i * step) % length);
      if (other.rows <= from) continue;
      const to = Math.min(other.rows, rows);
      seams.push({ from, to, peer: other.name });
      from = to;
    }
    if (from < rows) seams.push({ from, to: rows, peer: name });
    return seams;
  }
}

/**
 * The world for the rest of a server: the ring, and the places of the other servers and their clients. Pure: it is computed
 * from the known entries and the server's own state.
 *
 * @typedef {object} View
 * @property {'alone' | 'joining' | 'member' | 'cut-off' | 'leaving' | 'gone'} state
 * @property {{code: string, message: string} | undefined} problem why the server is not a member
 * @property {number | undefined} epoch the server's own epoch
 * @property {Ring} ring has only the server itself where it is not a member
 * @property {Map<string, import('./entry.js').Entry>} peers the other servers of this version that hold their names; a
 *     frame of a peer is valid with this epoch
 * @property {Map<string, number>} epochs the last epochs of all other servers, also of those that have left or were lost
 * @property {string[]} drained the other servers that have left in order with empty outboxes
 * @property {{name: string, url?: string}[]} redirectTargets the other servers that hold places of clients: those of the
 *     ring, and those that are joining
 * @property {string[]} restarting the other servers that have left in order and will come back with their clients' places
 */

/**
 * @param {object} known
 * @param {import('./leases.js').Leases} known.leases
 * @param {string} known.name this server
 * @param {number} known.version its version of the protocol
 * @param {() => {rows: number, url?: string}} known.describe returns what the other servers must know of this one
 * @param {{state: View['state'], problem: View['problem'], epoch: View['epoch']}} self its current state
 * @param {number} now
 * @returns {View}
 */
export function viewOf({ leases, name, version, describe }, self, now) {
  const { state, epoch } = self;
  const inRing = state === 'member' || state === 'cut-off';
  const all = [...leases.entries()].flatMap(([server, { entry }]) =>
    entry ? [[server, entry]] : []
  );
  const others = all.filter(([server]) => server !== name);
  const peers = others.filter(([, entry]) => holdsName(entry) && entry.version === version);
  const members = all.filter(([, entry]) => isMember(entry, version));
  const drained = all.filter(([, entry]) => entry.state === 'gone' && entry.empty);
  // A leaving server has no places any more, or is in `restarting`.
  const redirectTargets = peers.filter(([, entry]) => entry.state !== 'leaving');
  // A server outside the world knows nothing reliable about it.
  const isAlone = state === 'alone';
  return {
    ...self,
    ring: new Ring(inRing ? members.map(memberOf) : [{ name, epoch, ...describe() }]),
    peers: new Map(peers),
    epochs: new Map(others.map(([server, entry]) => [server, entry.epoch])),
    drained: drained.map(([server]) => server),
    redirectTargets: isAlone
      ? []
      : redirectTargets.map(([server, { url }]) => ({ name: server, url })),
    restarting: isAlone ? [] : leases.absences.names(now).filter((server) => server !== name)
  };
}

const memberOf = ([name, { rows, epoch, url }]) => ({ name, rows, epoch, url });
