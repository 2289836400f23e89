import { equal } from '../client/patch.js';
import { canonical } from './canonical.js';

/**
 * The difference between two values, as a JSON Patch (RFC 6902) of `add`, `remove` and `replace`.
 *
 * Members are compared by name. Arrays are aligned first: elements that are equal stay, in the
 * longest row that both have in order; what lies between is compared in pairs, and the rest added or
 * removed. So an event put in front of a hundred is one operation, not a hundred. The alignment
 * takes time with the product of two lengths, and with all that is in the elements, so it is bounded;
 * beyond that elements are compared place by place.
 *
 * Rejected: `compare` of fast-json-patch and of rfc6902. The first compares arrays place by place
 * only, the second recurses as deep as two arrays are long, and takes the product of their lengths
 * without a bound.
 */

/** The largest product of two lengths that is aligned: some milliseconds. */
const ALIGN = 250000;

/** All such products of one comparison, and the characters of what was aligned: some tenths of a second. */
const ALIGN_ALL = 2 ** 25;

/** A patch with more operations than this is not worth having. */
const OPERATIONS = 10000;

/** Thrown inside when there is no patch worth having. */
class TooMany extends Error {}

const isObject = (value) => typeof value === 'object' && value !== null;

const escape = (name) => name.replaceAll('~', '~0').replaceAll('/', '~1');

/**
 * The pairs of equal numbers in the longest common row of `left` and `right`, in order.
 *
 * @param {number[]} left
 * @param {number[]} right
 * @returns {[number, number][]} their places
 */
function align(left, right) {
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

/** What leads from one value to another. */
class Comparison {
  operations = [];
  #effort = ALIGN_ALL;

  #note(operation) {
    if (this.operations.length === OPERATIONS) throw new TooMany();
    this.operations.push(operation);
  }

  compare(a, b, path) {
    if (a === b) return;
    if (!isObject(a) || !isObject(b) || Array.isArray(a) !== Array.isArray(b)) {
      this.#note({ op: 'replace', path, value: b });
    } else if (Array.isArray(a)) {
      this.#compareArrays(a, b, path);
    } else {
      this.#compareObjects(a, b, path);
    }
  }

  #compareObjects(a, b, path) {
    for (const name of Object.keys(a)) {
      if (!Object.hasOwn(b, name)) this.#note({ op: 'remove', path: `${path}/${escape(name)}` });
    }
    for (const name of Object.keys(b)) {
      const to = `${path}/${escape(name)}`;
      if (Object.hasOwn(a, name)) this.compare(a[name], b[name], to);
      else this.#note({ op: 'add', path: to, value: b[name] });
    }
  }

  #compareArrays(a, b, path) {
    let head = 0;
    const shorter = Math.min(a.length, b.length);
    while (head < shorter && equal(a[head], b[head])) head += 1;
    let tail = 0;
    const most = shorter - head;
    while (tail < most && equal(a[a.length - 1 - tail], b[b.length - 1 - tail])) tail += 1;
    const left = a.slice(head, a.length - tail);
    const right = b.slice(head, b.length - tail);
    // From the front to the back: the places before `at` are as they are to be.
    let [i, j] = [0, 0];
    let at = head;
    for (const [nextI, nextJ] of [...this.#align(left, right), [left.length, right.length]]) {
      while (i < nextI && j < nextJ) {
        this.compare(left[i++], right[j++], `${path}/${at}`);
        at += 1;
      }
      for (; i < nextI; i += 1) this.#note({ op: 'remove', path: `${path}/${at}` });
      for (; j < nextJ; j += 1, at += 1) {
        this.#note({ op: 'add', path: `${path}/${at}`, value: right[j] });
      }
      // The pair itself stays.
      [i, j, at] = [nextI + 1, nextJ + 1, at + 1];
    }
  }

  /** The pairs of equal elements that stay; none where finding them would take too long. */
  #align(a, b) {
    const product = a.length * b.length;
    // One and one differ: equal ones would be at the head.
    if (product <= 1 || product > ALIGN || this.#effort < product) return [];
    this.#effort -= product;
    const numbers = new Map();
    const numberOf = (value) => {
      const text = canonical(value);
      this.#effort -= text.length;
      if (!numbers.has(text)) numbers.set(text, numbers.size);
      return numbers.get(text);
    };
    return align(a.map(numberOf), b.map(numberOf));
  }
}

/**
 * @param {unknown} before a value as JSON.parse gives it
 * @param {unknown} after another one
 * @returns {{op: string, path: string, value?: unknown}[] | null} none when they are equal; null
 *     when there is no patch worth having
 */
export function compare(before, after) {
  const comparison = new Comparison();
  try {
    comparison.compare(before, after, '');
  } catch (error) {
    if (error instanceof TooMany) return null;
    throw error;
  }
  return comparison.operations;
}
