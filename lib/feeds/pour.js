/**
 * Writes an answer no faster than the client reads it. Node and TLS hold only the slice that is being
 * written; the rest stays in the one buffer that all clients share.
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
 * @param {() => void} how.slow called each time the client has to read before more is written
 * @param {() => void} how.done called once all of it is written, perhaps before this function returns;
 *     not called when the connection is lost before
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
