import assert from 'node:assert/strict';
import { Random } from '../fuzz/random.js';
import { loadTestAddon } from './addon.js';
import { cellOf, checkLaw1, checkLaw4, law5Share, TorusModel } from '../model/torus.js';

const { Torus } = loadTestAddon();

/** Law 2: most other nodes that a step may touch. */
export const MAX_TOUCHED = 12;

/**
 * A native torus and its model, stepped together. Checks law 2 at every step. Every `every` steps it compares the whole
 * torus with the model, and checks laws 1 and 4. With `every` 1 it also compares the torus's count of touched nodes
 * with the links that changed.
 */
export class Rig {
  /**
   * @param {number} capacity
   * @param {{every?: number, seed?: number}} [options] `every`: steps between two inspections
   */
  constructor(capacity, { every = Infinity, seed = 1 } = {}) {
    this.torus = new Torus(capacity);
    this.model = new TorusModel();
    this.every = every;
    this.random = new Random(seed);
    this.allSteps = 0;
    this.steps = 0;
    this.touched = 0;
    this.most = 0;
    this.links = new Uint32Array(4 * capacity).fill(0xffffffff);
    this.before = this.links.slice();
    // Nodes get random numbers, so that a number does not tell a node's place.
    this.free = Array.from({ length: capacity }, (_, i) => i);
    for (let i = capacity - 1; i > 0; i--) this.#swap(this.free, i, this.random.below(i + 1));
    this.nodes = [];
    this.index = [];
  }

  get size() {
    return this.nodes.length;
  }

  /** Joins a node. */
  join() {
    const node = this.free.pop();
    const touched = this.torus.join(node);
    this.model.join(node, this.torus.slot(node));
    this.index[node] = this.nodes.push(node) - 1;
    this.#checkTouched(node, undefined, touched);
  }

  /** Removes a node, by default a random one. */
  leave(node = this.nodes[this.random.below(this.size)]) {
    const touched = this.torus.leave(node);
    const moved = this.model.leave(node);
    const index = this.index[node];
    this.#swap(this.nodes, index, this.size - 1);
    this.nodes.pop();
    if (index < this.size) this.index[this.nodes[index]] = index;
    this.free.push(node);
    this.#checkTouched(node, moved, touched);
  }

  /** Joins nodes, or removes random ones, until there are `size` nodes. */
  resize(size) {
    while (this.size < size) this.join();
    while (this.size > size) this.leave();
  }

  /**
   * Takes one random step, a join or a leave, such that the population stays near `size`.
   *
   * @param {number} size
   */
  churn(size) {
    if (this.random.fraction() < size / (size + this.size)) this.join();
    else this.leave();
  }

  /**
   * Removes the nodes for which `condition` is true at the time of their turn, in the order of their slots, as long as
   * more than `least` nodes are left.
   *
   * @param {(cell: {row: number, column: number, rows: number, columns: number, slot: number}) =>
   *     boolean} condition
   * @param {number} [least]
   */
  leaveWhere(condition, least = 9) {
    const extent = this.extent();
    const gone = [];
    for (let slot = 0; slot < extent.opened; slot++) {
      const node = this.model.nodeAt.get(slot);
      if (node !== undefined && condition({ ...extent, ...cellOf(slot), slot })) gone.push(node);
    }
    for (const node of gone) {
      if (this.size > least) this.leave(node);
    }
  }

  /** Returns the size of the grid. */
  extent() {
    const { rows, columns, opened } = this.torus.state();
    return { rows, columns, opened };
  }

  /** Returns the node in the last slot. */
  newest() {
    return this.model.nodeAt.get(this.model.opened - 1);
  }

  /** Compares the torus with the model, and checks laws 1 and 4. Costs O(size). */
  inspect() {
    this.torus.links(this.links);
    const state = this.torus.state();
    assert.equal(state.size, this.model.size);
    assert.equal(state.opened, this.model.opened);
    assert.equal(state.ownRows, this.model.ownLines.row);
    assert.equal(state.ownColumns, this.model.ownLines.column);
    assert.deepEqual({ rows: state.rows, columns: state.columns }, this.model.extent);
    for (const [node, expected] of this.model.links()) {
      const slot = this.torus.slot(node);
      if (slot !== this.model.slotOf.get(node)) {
        assert.fail(`${node} is in slot ${slot}, not ${this.model.slotOf.get(node)}`);
      }
      for (let edge = 0; edge < 4; edge++) {
        const found = this.links[4 * node + edge];
        if (found !== expected[edge]) {
          assert.fail(
            `edge ${edge} of ${node} leads to ${found}, not ${expected[edge]}, after ` +
              `${this.allSteps} steps, with ${this.size} nodes in ${this.model.opened} slots`
          );
        }
      }
    }
    checkLaw1(this.links, this.nodes);
    checkLaw4(this.links, this.nodes, (node) => this.model.slotOf.get(node));
  }

  /** Returns the current share of law 5. */
  share() {
    this.torus.links(this.links);
    return law5Share(this.links, this.nodes);
  }

  /** Returns the number of steps since the last call, and the mean and most of the nodes that they touched. */
  account() {
    const { steps, touched, most } = this;
    this.steps = this.touched = this.most = 0;
    return { steps, mean: steps === 0 ? 0 : touched / steps, most };
  }

  #checkTouched(subject, moved, touched) {
    this.allSteps++;
    this.steps++;
    this.touched += touched;
    this.most = Math.max(this.most, touched);
    if (touched > MAX_TOUCHED) assert.fail(`law 2: a step touched ${touched} nodes`);
    if (this.allSteps % this.every === 0) this.inspect();
    if (this.every !== 1) return;
    const changed = new Set(moved === undefined ? [] : [moved]);
    this.links.forEach((link, i) => {
      if (link !== this.before[i]) changed.add(i >> 2);
    });
    changed.delete(subject);
    assert.equal(touched, changed.size, 'the torus counts the nodes it touched');
    [this.links, this.before] = [this.before, this.links];
  }

  #swap(list, i, j) {
    [list[i], list[j]] = [list[j], list[i]];
  }
}
