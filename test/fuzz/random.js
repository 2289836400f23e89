/**
 * Randomness that can be had again from its seed, and the mutations of bytes both fuzzers share.
 */
import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';

/** @returns {number} a random seed, to be printed with what it finds */
export function freshSeed() {
  return randomInt(2 ** 32);
}

/** A small generator (mulberry32): quick, and the same on every machine. */
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
   * @returns {boolean} true once in so many times
   */
  oneIn(times) {
    return this.below(times) === 0;
  }
}

/**
 * @param {import('tap').Test} t is told the seed: SEED of the environment, or a new one
 * @returns {Random}
 */
export function randomOf(t) {
  const seed = Number(process.env.SEED ?? freshSeed());
  t.comment(`seed ${seed}`);
  return new Random(seed);
}

/** Bytes at which readers of text change their minds. */
const EDGES = [
  0x00, 0x01, 0x08, 0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1f, 0x20, 0x21, 0x22, 0x2f, 0x3a, 0x5b, 0x5c,
  0x5d, 0x7b, 0x7d, 0x7e, 0x7f, 0x80, 0xa0, 0xbf, 0xc0, 0xc2, 0xe0, 0xed, 0xef, 0xf0, 0xf4, 0xfe,
  0xff
];

/** Replaces `length` bytes at `at`. */
function splice(bytes, at, length, put) {
  return Buffer.concat([bytes.subarray(0, at), put, bytes.subarray(at + length)]);
}

/** A short piece somewhere in the bytes: where it begins and how long it is. */
function piece(random, bytes, longest = 24) {
  const at = random.below(bytes.length + 1);
  return [at, Math.min(random.below(longest), bytes.length - at)];
}

/**
 * The mutations that know nothing of what the bytes mean.
 *
 * @param {Random} random
 * @param {Buffer} bytes left as it is
 * @param {Buffer} other to splice from
 * @param {Buffer[]} words to insert
 * @returns {Buffer}
 */
export function mutateBytes(random, bytes, other, words) {
  const [at, length] = piece(random, bytes);
  switch (random.below(8)) {
    case 0: // one bit
      if (at === bytes.length) return bytes;
      return splice(bytes, at, 1, Buffer.of(bytes[at] ^ (1 << random.below(8))));
    case 1: // one byte
      return splice(bytes, at, 1, Buffer.of(random.pick(EDGES)));
    case 2: {
      // a byte between
      const byte = random.oneIn(2) ? random.pick(EDGES) : random.below(256);
      return splice(bytes, at, 0, Buffer.of(byte));
    }
    case 3: // a piece less
      return splice(bytes, at, length, Buffer.alloc(0));
    case 4: // a piece twice
      return splice(bytes, at, 0, bytes.subarray(at, at + length));
    case 5: {
      // a piece from elsewhere
      const [from, many] = piece(random, other, 64);
      return splice(bytes, at, length, other.subarray(from, from + many));
    }
    case 6: // cut short
      return bytes.subarray(0, at);
    default:
      return splice(bytes, at, random.oneIn(2) ? 0 : length, random.pick(words));
  }
}

const LINES = readFileSync(new URL('seeds.jsonl', import.meta.url), 'utf8')
  .trimEnd()
  .split('\n');

/**
 * What the fuzzers begin with, also those in C++ (test/native/fuzz.h): real requests and bodies, as they came over the
 * wire from the clients they are named after.
 *
 * @param {string} kind http, json or watch
 * @returns {{name: string, bytes: Buffer}[]}
 */
export const seedsOf = (kind) =>
  LINES.map((line) => JSON.parse(line))
    .filter(([its]) => its === kind)
    .map(([, name, text]) => ({ name, bytes: Buffer.from(text) }));
