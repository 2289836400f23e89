/**
 * A model of the torus, the oracle of the native one. It stores the slot of each node, and derives all links from that
 * at each call. It is slow, and shares no algorithm with the native torus. Its rules:
 *
 * - Slots are opened in shells: for m = 0, 1, 2, … first column m (rows 0 to m - 1), then row m
 *   (columns 0 to m). A line is complete when all of its shell is opened.
 * - A complete line is a cycle of its own, and stays one until more than a quarter of its shell is closed. Any other
 *   line hangs: it continues the line before it.
 * - A join fills a hole (an empty opened slot), or opens the next slot if there is no hole.
 * - A leave from the last slot closes that slot, and the empty slots before it. Any other leave makes a hole. But if
 *   the aligned 4 x 4 block already has a hole, the node of the last slot moves into the new hole, and the last slot is
 *   closed in the same way.
 */

const AXES = [
  { name: 'row', across: 'column', backward: 0, forward: 1 },
  { name: 'column', across: 'row', backward: 2, forward: 3 }
];

/** Row and column of each slot, in the order of opening. Grows as needed. */
const cells = [];

/** The inverse of `cells`: slots by row, then by column. */
const slots = [];

/** The shells, in order: the line that each completes, and its slots, from `start` to before `end`. */
const shells = [];

function open(row, column) {
  (slots[row] ??= [])[column] = cells.length;
  cells.push({ row, column });
}

function walkShells(count) {
  while (cells.length < count) {
    const start = cells.length;
    const axis = shells.at(-1)?.axis === 'row' ? 'column' : 'row';
    const line = shells.length === 0 ? 0 : shells.at(-1).line + (axis === 'column' ? 1 : 0);
    if (axis === 'column') {
      for (let row = 0; row < line; row++) open(row, line);
    } else {
      for (let column = 0; column <= line; column++) open(line, column);
    }
    shells.push({ axis, line, start, end: cells.length });
  }
}

/**
 * @param {number} slot
 * @returns {{row: number, column: number}} where the slot is in the grid
 */
export function cellOf(slot) {
  walkShells(slot + 1);
  return cells[slot];
}

export class TorusModel {
  constructor() {
    /** @type {Map<number, number>} */
    this.nodeAt = new Map();
    /** @type {Map<number, number>} */
    this.slotOf = new Map();
    this.opened = 0;
    this.ownLines = { row: 1, column: 1 };
  }

  /**
   * Returns a model of a torus in a given shape.
   *
   * @param {{opened: number, ownRows: number, ownColumns: number}} shape
   * @param {Iterable<[number, number]>} seats node and slot of each node
   * @returns {TorusModel}
   */
  static of(shape, seats) {
    const model = new TorusModel();
    model.opened = shape.opened;
    model.ownLines = { row: shape.ownRows, column: shape.ownColumns };
    for (const [node, slot] of seats) model.#seat(node, slot);
    walkShells(shape.opened);
    return model;
  }

  get size() {
    return this.slotOf.size;
  }

  /** @returns {{rows: number, columns: number}} number of lines with at least one opened slot */
  get extent() {
    if (this.opened === 0) return { rows: 0, columns: 0 };
    const opened = shells.filter((shell) => shell.start < this.opened);
    return {
      rows: opened.filter((shell) => shell.axis === 'row').length,
      // Column 0 has no shell of its own: its slots are the first of every row.
      columns: 1 + opened.filter((shell) => shell.axis === 'column').length
    };
  }

  /**
   * Adds a node.
   *
   * @param {number} node
   * @param {number} slot the slot that the native torus has chosen among the holes
   * @throws {Error} if the rules do not allow that slot
   */
  join(node, slot) {
    if (this.slotOf.has(node)) throw new Error(`node ${node} joins twice`);
    const holes = this.opened - this.size;
    if (holes === 0 && slot !== this.opened) {
      throw new Error(`no hole, and slot ${slot} is not the next`);
    }
    if (holes > 0 && (slot >= this.opened || this.nodeAt.has(slot))) {
      throw new Error(`slot ${slot} is no hole, and there are ${holes}`);
    }
    this.#seat(node, slot);
    if (slot === this.opened) this.opened++;
    this.#splitAndHangLines();
  }

  /**
   * Removes a node.
   *
   * @param {number} node
   * @returns {number|undefined} the node that moved into its slot, if any
   */
  leave(node) {
    const slot = this.slotOf.get(node);
    let moved;
    this.#unseat(node);
    if (slot !== this.opened - 1 && this.holesInBlockOf(slot) > 1) {
      moved = this.nodeAt.get(this.opened - 1);
      this.#unseat(moved);
      this.#seat(moved, slot);
    }
    while (this.opened > 0 && !this.nodeAt.has(this.opened - 1)) this.opened--;
    this.#splitAndHangLines();
    return moved;
  }

  /**
   * @param {number} slot
   * @returns {number} number of holes in its block
   */
  holesInBlockOf(slot) {
    const { row, column } = cellOf(slot);
    const top = row - (row % 4);
    const left = column - (column % 4);
    let holes = 0;
    for (let i = top; i < top + 4; i++) {
      for (let j = left; j < left + 4; j++) {
        const other = slots[i]?.[j];
        if (other < this.opened && !this.nodeAt.has(other)) holes++;
      }
    }
    return holes;
  }

  /**
   * Returns the cycles of an axis, derived from the nodes' slots alone.
   *
   * @param {{name: string, across: string}} axis
   * @returns {number[][]} the nodes of each cycle, in order
   */
  cycles(axis) {
    const lines = [];
    for (const [slot, node] of this.nodeAt) {
      const cell = cellOf(slot);
      (lines[cell[axis.name]] ??= []).push({ node, position: cell[axis.across] });
    }
    const cycles = [];
    lines.forEach((line, number) => {
      line.sort((a, b) => a.position - b.position);
      const nodes = line.map(({ node }) => node);
      if (number < this.ownLines[axis.name]) {
        cycles[number] = nodes;
      } else {
        cycles[number - 1] = [...(cycles[number - 1] ?? []), ...nodes];
      }
    });
    return cycles.filter(Boolean);
  }

  /**
   * @returns {Map<number, number[]>} each node's neighbors, in the order left, right, up, down
   */
  links() {
    const links = new Map();
    for (const node of this.slotOf.keys()) links.set(node, [node, node, node, node]);
    for (const axis of AXES) {
      for (const cycle of this.cycles(axis)) {
        cycle.forEach((node, i) => {
          const following = cycle[(i + 1) % cycle.length];
          links.get(node)[axis.forward] = following;
          links.get(following)[axis.backward] = node;
        });
      }
    }
    return links;
  }

  #seat(node, slot) {
    this.nodeAt.set(slot, node);
    this.slotOf.set(node, slot);
  }

  #unseat(node) {
    this.nodeAt.delete(this.slotOf.get(node));
    this.slotOf.delete(node);
  }

  /** Makes complete lines cycles of their own. Hangs lines with more than a quarter closed. */
  #splitAndHangLines() {
    walkShells(this.opened + 1);
    for (const axis of ['row', 'column']) {
      let own = 1;
      for (const shell of shells) {
        if (shell.axis !== axis || shell.line === 0 || shell.start >= this.opened) continue;
        const length = shell.end - shell.start;
        const closed = Math.max(0, shell.end - this.opened);
        const wasOwn = shell.line < this.ownLines[axis];
        if (closed === 0 || (wasOwn && closed <= Math.floor(length / 4))) own = shell.line + 1;
      }
      this.ownLines[axis] = own;
    }
  }
}

/**
 * Checks of the torus's laws on its links and slots, without the model's rules.
 *
 * Links are a Uint32Array with four entries a node, by edge: 0 left, 1 right, 2 up, 3 down.
 */

const NAMES = ['left', 'right', 'up', 'down'];

/**
 * Checks law 1: right(left(x)) = x and down(up(x)) = x, and vice versa.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all nodes in the torus
 * @throws {Error} at the first node that breaks the law
 */
export function checkLaw1(links, nodes) {
  for (const node of nodes) {
    for (let edge = 0; edge < 4; edge++) {
      const beyond = links[4 * node + edge];
      if (!(beyond * 4 < links.length) || links[4 * beyond + (edge ^ 1)] !== node) {
        throw new Error(`law 1: ${NAMES[edge]} of ${node} is ${beyond}, and not the way back`);
      }
    }
  }
}

/**
 * Checks law 4: from nine nodes on, no node is its own neighbor, and each node has at least three different neighbors.
 * Every row and column is one cycle, in order. Its length is between a quarter of and four times the square root of the
 * population. The last row (column) may share the cycle of the row (column) before it.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all nodes in the torus
 * @param {(node: number) => number} slotOf
 * @throws {Error} at the first violation
 */
export function checkLaw4(links, nodes, slotOf) {
  if (nodes.length < 9) return;
  for (const node of nodes) {
    const beyond = new Set(links.subarray(4 * node, 4 * node + 4));
    if (beyond.has(node)) throw new Error(`law 4: ${node} is its own neighbor`);
    if (beyond.size < 3) throw new Error(`law 4: ${node} has neighbors ${[...beyond]} alone`);
  }
  checkCycles(links, nodes, slotOf, 'row', 'column', 1);
  checkCycles(links, nodes, slotOf, 'column', 'row', 3);
}

function checkCycles(links, nodes, slotOf, along, across, forward) {
  const sideLength = Math.sqrt(nodes.length);
  const population = [];
  let last = 0;
  for (const node of nodes) {
    const line = cellOf(slotOf(node))[along];
    population[line] = (population[line] ?? 0) + 1;
    last = Math.max(last, line);
  }
  const seen = new Set();
  for (const start of nodes) {
    if (seen.has(start)) continue;
    const cycle = [];
    for (let node = start; !seen.has(node); node = links[4 * node + forward]) {
      seen.add(node);
      cycle.push({ node, ...cellOf(slotOf(node)) });
    }
    const where = `law 4: the cycle of ${along} ${cycle[0][along]}`;
    if (cycle.length < sideLength / 4 || cycle.length > sideLength * 4) {
      throw new Error(`${where} is ${cycle.length} long, for ${nodes.length} nodes`);
    }
    const lines = [...new Set(cycle.map((cell) => cell[along]))].sort((a, b) => a - b);
    const nodeCount = lines.reduce((sum, line) => sum + population[line], 0);
    if (cycle.length !== nodeCount)
      throw new Error(`${where} has ${cycle.length} of ${nodeCount} nodes`);
    if (lines.length > 2 || (lines.length === 2 && lines[1] !== last)) {
      throw new Error(`${where} runs through ${along}s ${lines}`);
    }
    // Once around there is one turn a line: to its own start, or to the line that shares the cycle.
    let turns = 0;
    cycle.forEach((cell, i) => {
      const next = cycle[(i + 1) % cycle.length];
      if (next[along] !== cell[along] || next[across] <= cell[across]) turns++;
    });
    if (turns !== lines.length) throw new Error(`${where} turns ${turns} times`);
  }
}

/**
 * Measures law 5: left then up leads to the same node as up then left, for nearly every node.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all nodes in the torus
 * @returns {number} the share of nodes for which that holds, from 0 to 1
 */
export function law5Share(links, nodes) {
  let squareCount = 0;
  for (const node of nodes) {
    const leftUp = links[4 * links[4 * node] + 2];
    const upLeft = links[4 * links[4 * node + 2]];
    if (leftUp === upLeft) squareCount++;
  }
  return nodes.length === 0 ? 1 : squareCount / nodes.length;
}
