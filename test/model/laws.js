import { cellOf } from './torus.js';

/**
 * The laws of the torus, checked on its links alone: no model, no rule of how it came about.
 *
 * Links are a Uint32Array of four to a node, by edge: 0 left, 1 right, 2 up, 3 down.
 */

const NAMES = ['left', 'right', 'up', 'down'];

/**
 * Law 1: right(left(x)) = x and down(up(x)) = x, and the same the other way round.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all that are in the torus
 * @throws {Error} at the first node that breaks it
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
 * Law 4: from nine nodes on, no node is its own neighbor, each has at least three different ones,
 * and every row and column is one cycle, in order, between a quarter of and four times the square
 * root of the population long. The last row (column) may share the cycle of the one before it.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all that are in the torus
 * @param {(node: number) => number} slotOf
 * @throws {Error} at the first thing that breaks it
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
  const root = Math.sqrt(nodes.length);
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
    if (cycle.length < root / 4 || cycle.length > root * 4) {
      throw new Error(`${where} is ${cycle.length} long, for ${nodes.length} nodes`);
    }
    const lines = [...new Set(cycle.map((cell) => cell[along]))].sort((a, b) => a - b);
    const whole = lines.reduce((sum, line) => sum + population[line], 0);
    if (cycle.length !== whole) throw new Error(`${where} has ${cycle.length} of ${whole} nodes`);
    if (lines.length > 2 || (lines.length === 2 && lines[1] !== last)) {
      throw new Error(`${where} runs through ${along}s ${lines}`);
    }
    // Once around, each step goes on in the line, or to the line that shares the cycle.
    let turns = 0;
    cycle.forEach((cell, i) => {
      const next = cycle[(i + 1) % cycle.length];
      if (next[along] !== cell[along] || next[across] <= cell[across]) turns++;
    });
    if (turns !== lines.length) throw new Error(`${where} turns ${turns} times`);
  }
}

/**
 * Law 5: left then up lands where up then left does, for nearly every node.
 *
 * @param {Uint32Array} links
 * @param {number[]} nodes all that are in the torus
 * @returns {number} the share of nodes for which it does, from 0 to 1
 */
export function law5Share(links, nodes) {
  let square = 0;
  for (const node of nodes) {
    const leftUp = links[4 * links[4 * node] + 2];
    const upLeft = links[4 * links[4 * node + 2]];
    if (leftUp === upLeft) square++;
  }
  return nodes.length === 0 ? 1 : square / nodes.length;
}
