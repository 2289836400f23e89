import { equal } from '../client/patch.js';
import { canonical } from './canonical.js';

/**
 * The difference between two values, as a JSON Patch (RFC 6902) of `add`, `remove` and `replace`.
 *
 * Members are compared by name. Arrays are aligned first: the elements of the longest common subsequence stay, elements
 * between them are compared in pairs, and the rest is added or removed. So an event in front of a hundred others is one
 * operation, not a hundred. The time of the alignment grows with the product of the two lengths and with the size of the
 * elements, so the alignment is bounded. Beyond the bound, elements are compared place by place.
 *
 * Rejected: `compare` of fast-json-patch and of rfc6902. The first compares arrays place by place
 * only. The second recurses as deep as two arrays are long, in a time that grows with the product of
 * their lengths, without a bound.
 */

/** Largest product of two lengths for which arrays are aligned: some milliseconds. */
const ALIGN_PRODUCT = 250000;

/** Largest sum of these products and of the aligned characters in one comparison: some tenths of a second. */
const ALIGN_BUDGET = 2 ** 25;

/** A patch with more operations than this is not worth having. */
const MAX_OPERATIONS = 10000;

/** Thrown inside this module when a patch would have too many operations. */
class TooManyOperationsError extends Error {}

const isObject = (value) => typeof value === 'object' && value !== null;

const escape = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/**
 * Returns the pairs of the longest common subsequence of `left` and `right`, in order.
 *
 * @param {number[]} left
 * @param {number[]} right
 * @returns {[number, number][]} their places
 */
function align(left, right) {
  const width = right.length + 1;
  // longest[i * width + j]: the length for `left` from i and `right` from j.
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

/** The operations that change one value into another. */
class Comparison {
  operations = [];
  #alignBudget = ALIGN_BUDGET;

  #addOperation(operation) {
    if (this.operations.length === MAX_OPERATIONS) throw new TooManyOperationsError();
    this.operations.push(operation);
  }

  compare(a, b, path) {
    if (a === b) return;
    if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) {
      this.#addOperation({ op: 'replace', path, value: b });
    } else if (Array.isArray(a)) {
      this.#compareArrays(a, b, path);
    } else {
      this.#compareObjects(a, b, path);
    }
  }

  #compareObjects(a, b, path) {
    for (const name of Object.keys(a)) {
      if (!Object.hasOwn(b, name))
        this.#addOperation({ op: 'remove', path: `${path}/${escape(name)}` });
    }
    for (const name of Object.keys(b)) {
      const to = `${path}/${escape(name)}`;
      if (Object.hasOwn(a, name)) this.compare(a[name], b[name], to);
      else this.#addOperation({ op: 'add', path: to, value: b[name] });
    }
  }

  #compareArrays(a, b, path) {
    let head = 0;
    const shorter = Math.min(a.length, b.length);
    while (head < shorter && equal(a[head], b[head])) head += 1;
    let tail = 0;
    const maxTail = shorter - head;
    while (tail < maxTail && equal(a[a.length - 1 - tail], b[b.length - 1 - tail])) tail += 1;
    const left = a.slice(head, a.length - tail);
    const right = b.slice(head, b.length - tail);
    // From front to back: the elements before `index` are final.
    let [i, j] = [0, 0];
    let index = head;
    for (const [nextI, nextJ] of [...this.#align(left, right), [left.length, right.length]]) {
      while (i < nextI && j < nextJ) {
        this.compare(left[i++], right[j++], `${path}/${index}`);
        index += 1;
      }
      for (; i < nextI; i += 1) this.#addOperation({ op: 'remove', path: `${path}/${index}` });
      for (; j < nextJ; j += 1, index += 1) {
        this.#addOperation({ op: 'add', path: `${path}/${index}`, value: right[j] });
      }
      // The pair itself stays.
      [i, j, index] = [nextI + 1, nextJ + 1, index + 1];
    }
  }

  /** Returns the pairs of equal elements that stay; none where the search would take too long. */
  #align(a, b) {
    const product = a.length * b.length;
    // Two single elements differ: equal ones would be in the common head.
    if (product <= 1 || product > ALIGN_PRODUCT || this.#alignBudget < product) return [];
    this.#alignBudget -= product;
    const numbers = new Map();
    const numberOf = (value) => {
      const text = canonical(value);
      this.#alignBudget -= text.length;
      if (!numbers.has(text)) numbers.set(text, numbers.size);
      return numbers.get(text);
    };
    return align(a.map(numberOf), b.map(numberOf));
  }
}

/**
 * @param {unknown} before a value as JSON.parse returns it
 * @param {unknown} after such a value, too
 * @returns {{op: string, path: string, value?: unknown}[] | null} no operations for equal values; null
 *     when there would be too many
 */
export function compare(before, after) {
  const comparison = new Comparison();
  try {
    comparison.compare(before, after, '');
  } catch (error) {
    if (error instanceof TooManyOperationsError) return null;
    throw error;
  }
  return comparison.operations;
}
