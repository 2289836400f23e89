/**
 * Writes an answer no faster than its reader reads. What he does not take stays where it is: Node and
 * TLS hold a slice of it for him, and of the rest there is the one buffer that all readers share.
 */

/** Bytes that are written at once: a record of TLS. */
export const SLICE = 16384;

function* slicesOf(pieces) {
  for (const piece of pieces) {
    for (let at = 0; at < piece.length; at += SLICE) yield piece.subarray(at, at + SLICE);
  }
}

/**
 * @param {import('node:http').ServerResponse} response its head is written
 * @param {Uint8Array[]} pieces of the body
 * @param {object} how
 * @param {() => void} how.slow called whenever the reader is waited for
 * @param {() => void} how.done called when all of it is written, perhaps before this returns; never
 *     when the connection is lost before that
 */
export function pour(response, pieces, { slow, done }) {
  const rest = slicesOf(pieces);
  function goOn() {
    let next = rest.next();
    while (!next.done && response.write(next.value)) next = rest.next();
    if (next.done) return done();
    slow();
    return response.once('drain', goOn);
  }
  goOn();
}
