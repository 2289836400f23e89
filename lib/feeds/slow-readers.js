/**
 * The readers at Node's server who have not taken their answers yet, and what these hold: versions of
 * feeds, which may be old ones. The native front door has its own (native/http/answers.h).
 *
 *   has to read first ─▶ [ oldest │ … │ newest ] ─▶ has taken all, or is gone
 *                            └ above the bound: closed, from the oldest on
 *
 * What many hold counts once. A version counts also while it is the newest: the bound is that of all
 * feeds, so that newest ones alone do not reach it.
 */
export class SlowReaders {
  #most;
  /** What each has not taken, the oldest first. @type {Map<import('node:http').ServerResponse, Buffer[]>} */
  #row = new Map();
  /** How many hold a piece, by where its bytes are, or itself where they are its own. */
  #holders = new Map();
  /** Bytes that all of them hold. */
  #bytes = 0;

  /** @param {number} most bytes that all of them may hold */
  constructor(most) {
    this.#most = most;
  }

  /**
   * Somebody has to read before more is written: he is in the row from the first time on, until he is
   * done. The oldest are closed, he perhaps among them, while all hold too much.
   *
   * @param {import('node:http').ServerResponse} response
   * @param {(Buffer & {origin?: number})[]} left what he has not taken; Buffers of the same bytes have
   *     the same `origin`
   */
  slow(response, left) {
    const before = this.#row.get(response) ?? [];
    if (before.length === left.length) return;
    // In his place, where he has one.
    this.#row.set(response, [...left]);
    for (const piece of left) this.#hold(piece);
    for (const piece of before) this.#letGo(piece);
    while (this.#bytes > this.#most) {
      const [oldest] = this.#row.keys();
      this.done(oldest);
      oldest.destroy();
    }
  }

  /** Somebody has taken all, or is gone. */
  done(response) {
    const before = this.#row.get(response) ?? [];
    this.#row.delete(response);
    for (const piece of before) this.#letGo(piece);
  }

  #hold(piece) {
    const key = piece.origin ?? piece;
    const holders = this.#holders.get(key) ?? 0;
    if (holders === 0) this.#bytes += piece.length;
    this.#holders.set(key, holders + 1);
  }

  #letGo(piece) {
    const key = piece.origin ?? piece;
    const holders = this.#holders.get(key) - 1;
    if (holders > 0) {
      this.#holders.set(key, holders);
      return;
    }
    this.#holders.delete(key);
    this.#bytes -= piece.length;
  }
}
