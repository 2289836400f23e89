/**
 * What an engine says: JSON lines, each followed by as many raw bytes as its `bytes` says.
 */

const NEWLINE = 10;

/** A line is a tick at most: counters and three intervals of a histogram. */
const LONGEST_LINE = 16 << 20;

export class FrameReader {
  #onFrame;
  #chunks = [];
  #length = 0;
  #header = null;

  /** @param {(header: object, bytes: Buffer) => void} onFrame */
  constructor(onFrame) {
    this.#onFrame = onFrame;
  }

  /**
   * @param {Buffer} chunk the next bytes
   * @throws {SyntaxError} when a line is no JSON
   */
  push(chunk) {
    this.#chunks.push(chunk);
    this.#length += chunk.length;
    if (this.#header && this.#length < this.#header.bytes) return;
    let rest = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks, this.#length);
    for (;;) {
      if (!this.#header) {
        const end = rest.indexOf(NEWLINE);
        if (end < 0) break;
        this.#header = JSON.parse(rest.toString('utf8', 0, end));
        rest = rest.subarray(end + 1);
      }
      if (rest.length < this.#header.bytes) break;
      const header = this.#header;
      this.#header = null;
      this.#onFrame(header, rest.subarray(0, header.bytes));
      rest = rest.subarray(header.bytes);
    }
    if (!this.#header && rest.length > LONGEST_LINE) throw new SyntaxError('an endless line');
    this.#chunks = rest.length > 0 ? [rest] : [];
    this.#length = rest.length;
  }
}
