/**
 * Puts the engines' bitmaps together: which sprites were accepted, and which were received by any
 * engine (native/swarm/account.h draws it). Pages of 65,536 bits; a page of ones travels without
 * its bytes.
 */

const PAGE_BITS = 65536;
const PAGE_BYTES = PAGE_BITS / 8;
const FULL = new Uint32Array(PAGE_BYTES / 4).fill(0xffffffff);
const NONE = new Uint32Array(PAGE_BYTES / 4);

/** How many missing sprites are named. */
const EXAMPLES = 5;

function ones(word) {
  let n = word - ((word >>> 1) & 0x55555555);
  n = (n & 0x33333333) + ((n >>> 2) & 0x33333333);
  return Math.imul((n + (n >>> 4)) & 0x0f0f0f0f, 0x01010101) >>> 24;
}

export class Account {
  #accepted = new Map();
  #received = new Map();

  /** Sprites that two engines received. */
  doubles = 0;

  /**
   * @param {object} header a frame of type `page`
   * @param {'accepted' | 'received'} header.set
   * @param {number} header.of the engine that threw these sprites
   * @param {number} header.page
   * @param {Buffer} bytes the page; empty when every bit is set
   */
  add({ set, of, page }, bytes) {
    const words =
      bytes.length === 0
        ? FULL
        : new Uint32Array(Uint8Array.prototype.slice.call(bytes, 0, PAGE_BYTES).buffer);
    const pages = set === 'accepted' ? this.#accepted : this.#received;
    const key = `${of}/${page}`;
    const before = pages.get(key);
    if (!before) {
      pages.set(key, words);
      return;
    }
    pages.set(
      key,
      before.map((word, i) => {
        if (set === 'received') this.doubles += ones(word & words[i]);
        return word | words[i];
      })
    );
  }

  /**
   * @returns {{missing: number, unconfirmed: number, examples: string[]}} `missing`: accepted and
   *     received by nobody; `unconfirmed`: received though no answer said so; `examples`: the first
   *     missing ones as `engine/number`
   */
  result() {
    const result = { missing: 0, unconfirmed: 0, examples: [] };
    for (const key of new Set([...this.#accepted.keys(), ...this.#received.keys()])) {
      const accepted = this.#accepted.get(key) ?? NONE;
      const received = this.#received.get(key) ?? NONE;
      for (let i = 0; i < accepted.length; i++) {
        const missing = accepted[i] & ~received[i];
        result.unconfirmed += ones(received[i] & ~accepted[i]);
        if (missing === 0) continue;
        result.missing += ones(missing);
        this.#name(key, i, missing, result.examples);
      }
    }
    return result;
  }

  #name(key, index, word, examples) {
    const [engine, page] = key.split('/').map(Number);
    for (let bit = 0; bit < 32 && examples.length < EXAMPLES; bit++) {
      if ((word >>> bit) & 1) examples.push(`${engine}/${page * PAGE_BITS + index * 32 + bit}`);
    }
  }
}
