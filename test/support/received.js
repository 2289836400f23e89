/**
 * What a connection has brought and nobody has taken yet. Its room doubles when it is full, so that an answer of
 * megabytes is not copied anew with each of its pieces.
 */
export class Received {
  #room = Buffer.alloc(0);
  #begin = 0;
  #end = 0;

  /** All of it, to look at. */
  get bytes() {
    return this.#room.subarray(this.#begin, this.#end);
  }

  get length() {
    return this.#end - this.#begin;
  }

  /** @param {Buffer} piece stays as it is */
  add(piece) {
    if (this.length === 0) {
      this.#room = piece;
      this.#begin = 0;
      this.#end = piece.length;
      return;
    }
    if (this.#end + piece.length > this.#room.length) {
      const more = Buffer.allocUnsafe(2 * (this.length + piece.length));
      this.#end = this.bytes.copy(more);
      this.#begin = 0;
      this.#room = more;
    }
    this.#end += piece.copy(this.#room, this.#end);
  }

  /**
   * @param {number} length of bytes that are there
   * @returns {Buffer} the first of them, which stay as they are
   */
  take(length) {
    const bytes = this.#room.subarray(this.#begin, this.#begin + length);
    this.#begin += length;
    return bytes;
  }
}
