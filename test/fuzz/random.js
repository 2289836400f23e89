/**
 * Random numbers that a seed reproduces, and the mutations of bytes that the fuzzers share.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** @returns {number} a random seed; the caller prints it, so that a failure can be reproduced */
export function freshSeed() {
  return randomInt(2 ** 32);
}

/** A small, fast generator (mulberry32), with the same numbers on every machine. */
export class Random {
  #state;

  /** @param {number} seed an unsigned integer of 32 bits */
  constructor(seed) {
    this.#state = seed >>> 0;
  }

  /**
   * @param {number} bound
   * @returns {number} an integer from 0 up to, not including, `bound`
   */
  below(bound) {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) % bound;
  }

  /** @returns {number} from 0 up to, not including, 1 */
  fraction() {
    return this.below(2 ** 32) / 2 ** 32;
  }

  /**
   * @template T
   * @param {T[]} list not empty
   * @returns {T}
   */
  pick(list) {
    return list[this.below(list.length)];
  }

  /**
   * @param {number} times
   * @returns {boolean} true with a probability of 1 / `times`
   */
  oneIn(times) {
    return this.below(times) === 0;
  }
}

/**
 * @param {import('tap').Test} t gets the seed as a comment
 * @returns {Random} from SEED of the environment, or from a fresh seed
 */
export function randomOf(t) {
  const seed = Number(process.env.SEED ?? freshSeed());
  t.comment(`seed ${seed}`);
  return new Random(seed);
}

/** First and last bytes of the classes that readers of text distinguish. */
const CLASS_EDGES = [
  0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1f, 0x20, 0x21, 0x22, 0x2f, 0x3a, 0x5b, 0x5c,
  0x5d, 0x7b, 0x7d, 0x7e, 0x7f, 0x80, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xfe,
  0xff
];

/** Returns the bytes with `length` of them, from `at`, replaced by `put`. */
function splice(bytes, at, length, replacement) {
  return Buffer.concat([bytes.subarray(0, at), replacement, bytes.subarray(at + length)]);
}

/** Returns the start and the length of a random piece of the bytes, shorter than `longest`. */
function randomPiece(random, bytes, longest = 24) {
  const at = random.below(bytes.length + 1);
  return [at, Math.min(random.below(longest), bytes.length - at)];
}

/**
 * Applies one random mutation, without regard to what the bytes mean.
 *
 * @param {Random} random
 * @param {Buffer} bytes not changed
 * @param {Buffer} other source of pieces to insert
 * @param {Buffer[]} words to insert
 * @returns {Buffer}
 */
export function mutateBytes(random, bytes, other, words) {
  const [at, length] = randomPiece(random, bytes);
  switch (random.below(8)) {
    case 0: // flip a bit
      if (at === bytes.length) return bytes;
      return splice(bytes, at, 1, Buffer.of(bytes[at] ^ (1 << random.below(8))));
    case 1: // replace a byte
      return splice(bytes, at, 1, Buffer.of(random.pick(CLASS_EDGES)));
    case 2: {
      // insert a byte
      const byte = random.oneIn(2) ? random.pick(CLASS_EDGES) : random.below(256);
      return splice(bytes, at, 0, Buffer.of(byte));
    }
    case 3: // remove a piece
      return splice(bytes, at, length, Buffer.alloc(0));
    case 4: // repeat a piece
      return splice(bytes, at, 0, bytes.subarray(at, at + length));
    case 5: {
      // replace a piece by one of `other`
      const [from, otherLength] = randomPiece(random, other, 64);
      return splice(bytes, at, length, other.subarray(from, from + otherLength));
    }
    case 6: // truncate
      return bytes.subarray(0, at);
    default:
      return splice(bytes, at, random.oneIn(2) ? 0 : length, random.pick(words));
  }
}

const LINES = readFileSync(new URL('seeds.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n');

/**
 * Returns the seed inputs of a fuzzer: real requests and bodies, recorded from the clients that they are named after.
 * The fuzzers in C++ (test/native/fuzz.h) read the same file.
 *
 * @param {string} kind http, json or watch
 * @returns {{name: string, bytes: Buffer}[]}
 */
export const seedsOf = (kind) =>
  LINES.map((line) => JSON.parse(line))
    .filter(([itsKind]) => itsKind === kind)
    .map(([, name, text]) => ({ name, bytes: Buffer.from(text) }));
