import { canonical } from './canonical.js';

/**
 * The difference between two values, as a JSON Patch (RFC 6902) of `add`, `remove` and `replace`.
 *
 * Members are compared by name. Arrays are aligned first: elements that are equal stay, in the
 * longest row that both have in order; what lies between is compared in pairs, and the rest added or
 * removed. So an event put in front of a hundred is one operation, not a hundred. The alignment
 * takes time with the product of two lengths, so it is bounded; beyond that elements are compared
 * place by place.
 *
 * Rejected: `compare` of fast-json-patch and of rfc6902. The first compares arrays place by place
 * only, the second recurses as deep as two arrays are long, and takes the product of their lengths
 * without a bound.
 */

/** The largest product of two lengths that is aligned: some milliseconds. */
const ALIGN = 250000;

/** A patch with more operations than this is not worth having. */
const OPERATIONS = 10000;

/** Thrown inside when there is no patch worth having. */
class TooMany extends Error {}

const isObject = (value) => typeof value === 'object' && value !== null;

const escape = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

function equal(a, b) {
  if (!isObject(a) || !isObject(b)) return a === b;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  if (Array.isArray(a)) {
    return a.length === b.length && a.every((element, i) => equal(element, b[i]));
  }
  const names = Object.keys(a);
  return (
    names.length === Object.keys(b).length &&
    names.every((name) => Object.hasOwn(b, name) && equal(a[name], b[name]))
  );
}

/**
 * The pairs of equal elements in the longest common row of `a` and `b`, in order.
 *
 * @param {unknown[]} a
 * @param {unknown[]} b
 * @returns {[number, number][]} their places
 */
function align(a, b) {
  const numbers = new Map();
  const numberOf = (value) => {
    const text = canonical(value);
    if (!numbers.has(text)) numbers.set(text, numbers.size);
    return numbers.get(text);
  };
  const left = a.map(numberOf);
  const right = b.map(numberOf);
  const width = right.length + 1;
  // longest[i * width + j]: of what begins at i in a and at j in b.
  const longest = new Uint32Array((left.length + 1) * width);
  for (let i = left.length - 1; i >= 0; i -= 1) {
    for (let j = right.length - 1; j >= 0; j -= 1) {
      longest[i * width + j] =
        left[i] === right[j]
          ? longest[(i + 1) * width + j + 1] + 1
          : Math.max(longest[(i + 1) * width + j], longest[i * width + j + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < left.length && j < right.length;) {
    if (left[i] === right[j]) pairs.push([i++, j++]);
    else if (longest[(i + 1) * width + j] >= longest[i * width + j + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

function compareObjects(a, b, path, operations) {
  for (const name of Object.keys(a)) {
    // Who applies a patch could be led to the prototype of an object.
    if (name === '__proto__' && !equal(a[name], b[name])) throw new TooMany();
    if (!Object.hasOwn(b, name)) operations.push({ op: 'remove', path: `${path}/${escape(name)}` });
  }
  for (const name of Object.keys(b)) {
    if (name === '__proto__' && !Object.hasOwn(a, name)) throw new TooMany();
    const to = `${path}/${escape(name)}`;
    if (Object.hasOwn(a, name)) difference(a[name], b[name], to, operations);
    else operations.push({ op: 'add', path: to, value: b[name] });
  }
}

function compareArrays(a, b, path, operations) {
  let head = 0;
  const shorter = Math.min(a.length, b.length);
  while (head < shorter && equal(a[head], b[head])) head += 1;
  let tail = 0;
  while (tail < shorter - head && equal(a[a.length - 1 - tail], b[b.length - 1 - tail])) tail += 1;
  const left = a.slice(head, a.length - tail);
  const right = b.slice(head, b.length - tail);
  const pairs = left.length * right.length <= ALIGN ? align(left, right) : [];
  // From the front to the back: the places before `at` are as they are to be.
  let [i, j] = [0, 0];
  let at = head;
  for (const [nextI, nextJ] of [...pairs, [left.length, right.length]]) {
    while (i < nextI && j < nextJ) {
      difference(left[i++], right[j++], `${path}/${at}`, operations);
      at += 1;
    }
    for (; i < nextI; i += 1) operations.push({ op: 'remove', path: `${path}/${at}` });
    for (; j < nextJ; j += 1, at += 1) {
      operations.push({ op: 'add', path: `${path}/${at}`, value: right[j] });
    }
    // The pair itself stays.
    [i, j, at] = [nextI + 1, nextJ + 1, at + 1];
    if (operations.length > OPERATIONS) throw new TooMany();
  }
}

function difference(a, b, path, operations) {
  if (a === b) return;
  if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) {
    operations.push({ op: 'replace', path, value: b });
  } else if (Array.isArray(a)) {
    compareArrays(a, b, path, operations);
  } else {
    compareObjects(a, b, path, operations);
  }
  if (operations.length > OPERATIONS) throw new TooMany();
}

/**
 * @param {unknown} before a value as JSON.parse gives it
 * @param {unknown} after another one
 * @returns {{op: string, path: string, value?: unknown}[] | null} none when they are equal; null
 *     when there is no patch worth having
 */
export function compare(before, after) {
  const operations = [];
  try {
    difference(before, after, '', operations);
  } catch (error) {
    if (error instanceof TooMany) return null;
    throw error;
  }
  return operations;
}
