/**
 * Random JSON, whose members are called what programs trip over, and patches to it.
 */

/** Names that objects inherit, that look like places, that pointers escape, and that are sorted by UTF-16. */
const NAMES = [
  ...['', 'a', 'b', '0', '1', '01', '10', '-', 'a/b', 'm~n', '~1', '~', '/', '"', '\n', ' '],
  ...['__proto__', 'constructor', 'prototype', 'toString', 'toJSON', 'length', 'hasOwnProperty'],
  ...['\u20ac', '\ue000', '\u{1f600}', '\ud83d', '\ude00']
];

const PLAIN = [null, true, false, 0, -0, 1, 2, 1.5, -1e-7, 1e21, 2 ** 53, '', 'a', '0', '\ud83d'];

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {number} [depth] levels it may have
 * @returns {unknown} a value as JSON.parse gives it
 */
export function randomValue(random, depth = 4) {
  const kind = random.below(depth === 0 ? 1 : 3);
  if (kind === 0) return random.pick(PLAIN);
  const length = random.below(6);
  if (kind === 1) return Array.from({ length }, () => randomValue(random, depth - 1));
  return Object.fromEntries(
    Array.from({ length }, () => [random.pick(NAMES), randomValue(random, depth - 1)])
  );
}

/** @returns {unknown} a value in which something is different from `value`, or nothing */
export function randomlyChanged(random, value) {
  if (typeof value !== 'object' || value === null || random.oneIn(4)) return randomValue(random, 3);
  if (Array.isArray(value)) {
    const copy = value.map((one) => (random.oneIn(3) ? randomlyChanged(random, one) : one));
    if (random.oneIn(2)) {
      copy.splice(random.below(copy.length + 1), random.below(2), randomValue(random, 2));
    }
    return copy;
  }
  const members = Object.entries(value).filter(() => !random.oneIn(6));
  if (random.oneIn(3)) members.push([random.pick(NAMES), randomValue(random, 2)]);
  return Object.fromEntries(
    members.map(([name, one]) => [name, random.oneIn(3) ? randomlyChanged(random, one) : one])
  );
}

/** A pointer to something in a value, to where something could be, or to nothing. */
function randomPointer(random, value) {
  let pointer = '';
  for (let at = value; !random.oneIn(4);) {
    const isContainer = typeof at === 'object' && at !== null;
    const names = isContainer && random.below(5) > 0 ? Object.keys(at) : NAMES;
    const name = names.length > 0 ? random.pick(names) : '-';
    pointer += `/${random.oneIn(30) ? name : name.replaceAll('~', '~0').replaceAll('/', '~1')}`;
    at = isContainer && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return pointer;
}

/**
 * @param {import('../fuzz/random.js').Random} random
 * @param {unknown} value to which it may fit or not
 * @param {string[]} known the operations it may have
 * @returns {object[]} a JSON Patch
 */
export function randomPatch(random, value, known) {
  return Array.from({ length: 1 + random.below(3) }, () => {
    const op = random.pick(known);
    const operation = { op, path: randomPointer(random, value) };
    if (op === 'move' || op === 'copy') operation.from = randomPointer(random, value);
    else if (op !== 'remove') operation.value = randomValue(random, 2);
    return operation;
  });
}
