import { isLiving, isMember } from './entry.js';

/**
 * The ring of a world: which server comes after which, row by row. Pure: no sockets, no time.
 *
 * Row i of the world is row i of every server that has one, end to end: from the right end of the row on one server the
 * way leads to the left end of the same row on the next server that has it, and the last leads to the first. A server
 * without the row is passed over. The torus opens rows in order and closes the last first, so a server of n rows has
 * rows 0 to n - 1, and the number says it all.
 *
 *     rows of       a   b   c   d          row 0:  a → b → c → d → a
 *                   5   2   7   5          row 3:  a → c → d → a
 *                                          row 6:  c → c, its own other end
 *
 * THE ORDER is that of the names, character by character. It is the same wherever it is worked out, in whatever order
 * servers were seen; a server that comes back has its old place, so no other server's seams change twice; the operator
 * decides which servers are neighbors (machines of one rack, `rack1-a` and `rack1-b`); and nothing has to be kept for it. By the time of
 * joining a restart would move a server to the end, which takes its old neighbors' seams away and makes two more pairs.
 *
 * A member that comes or goes changes the seams of its neighbors alone: of one server on each side, and of those further
 * away only in rows that all servers between them are without.
 */

/** The two sides of a row, as the edges of a desktop. */
export const SIDES = Object.freeze(['left', 'right']);

/**
 * @typedef {object} Member
 * @property {string} name
 * @property {number} rows how many rows it has: rows 0 to rows - 1
 *
 * @typedef {object} Seam rows that lead to one server
 * @property {number} from the first of them
 * @property {number} to the one after the last
 * @property {string} peer the server; the own name where the rows end at their own other end
 */

export class Ring {
  /** @type {Member[]} */
  #members;
  /** @type {Map<string, number>} */
  #places;

  /**
   * @param {Iterable<Member>} members in any order; whatever else they have is kept
   * @throws {RangeError} when a name is there twice
   */
  constructor(members) {
    this.#members = [...members].toSorted((a, b) => (a.name < b.name ? -1 : 1));
    this.#places = new Map(this.#members.map(({ name }, place) => [name, place]));
    if (this.#places.size < this.#members.length) throw new RangeError('a name is there twice');
  }

  /** @returns {number} how many servers there are */
  get size() {
    return this.#members.length;
  }

  /** @returns {Member[]} in the ring's order */
  get members() {
    return [...this.#members];
  }

  /**
   * The seams of a server: rows in ranges, with where each leads. They are few, at most one for each
   * height that there is in the ring.
   *
   * @param {string} name
   * @param {number} [rows] how many; by default those of the server, which need not have them: a sprite that comes in a row
   *     that is no more flies on from here
   * @returns {{left: Seam[], right: Seam[]}} each in order of rows, without a gap from 0 to `rows`
   * @throws {RangeError} when the server is not in the ring
   */
  seams(name, rows = this.#members[this.#place(name)].rows) {
    const [left, right] = [-1, 1].map((step) => this.#seamsTo(name, rows, step));
    return { left, right };
  }

  #place(name) {
    const place = this.#places.get(name);
    if (place === undefined) throw new RangeError(`${name} is not in the ring`);
    return place;
  }

  #seamsTo(name, rows, step) {
    const place = this.#place(name);
    const { length } = this.#members;
    const seams = [];
    let from = 0;
    for (let i = 1; i < length && from < rows; i++) {
      const other = this.#members.at((place + i * step) % length);
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
 * @property {Map<string, number>} epochs the last ones of all others, also of servers that have left or were lost: no process
 *     of one has gone further
 * @property {string[]} emptied the others that have left in order with nothing in their outboxes
 * @property {{name: string, url?: string}[]} places the others whose clients have their places there: those of the ring,
 *     and those that are about to be of it
 * @property {string[]} restarting the others that have left in order, and come back with their clients' places
 */

/**
 * @param {object} known
 * @param {import('./leases.js').Leases} known.leases
 * @param {string} known.name the server's
 * @param {number} known.version of the protocol that it speaks
 * @param {() => {rows: number, url?: string}} known.describe what the others must know of it
 * @param {{state: View['state'], problem: View['problem'], epoch: View['epoch']}} self what it is now
 * @param {number} now
 * @returns {View}
 */
export function viewOf({ leases, name, version, describe }, self, now) {
  const { state, epoch } = self;
  const inRing = state === 'member' || state === 'cut-off';
  const all = [...leases.entries()].flatMap(([one, { entry }]) => (entry ? [[one, entry]] : []));
  const others = all.filter(([one]) => one !== name);
  const peers = others.filter(([, entry]) => isLiving(entry) && entry.version === version);
  const members = all.filter(([, entry]) => isMember(entry, version));
  const emptied = all.filter(([, entry]) => entry.state === 'gone' && entry.empty);
  // A server that leaves has no places any more, or says that it comes back.
  const places = peers.filter(([, entry]) => entry.state !== 'leaving');
  // One that is no part of the world says nothing of it.
  const isAlone = state === 'alone';
  return {
    ...self,
    ring: new Ring(inRing ? members.map(memberOf) : [{ name, epoch, ...describe() }]),
    peers: new Map(peers),
    epochs: new Map(others.map(([one, entry]) => [one, entry.epoch])),
    emptied: emptied.map(([one]) => one),
    places: isAlone ? [] : places.map(([one, { url }]) => ({ name: one, url })),
    restarting: isAlone ? [] : leases.absences.names(now).filter((one) => one !== name)
  };
}

const memberOf = ([name, { rows, epoch, url }]) => ({ name, rows, epoch, url });
