/**
 * Writes an answer no faster than the client reads it. Node and TLS hold only the slice that is being
 * written; the rest stays in the one buffer that all clients share.
 */

/** Bytes that are written at once: a record of TLS. */
export const SLICE = 16384;

/**
 * @param {import('node:http').ServerResponse} response its head is written
 * @param {Uint8Array[]} pieces of the body; each is let go when all of it is written
 * @param {object} how
 * @param {(left: Uint8Array[]) => void} how.slow called each time the client has to read before more is
 *     written, with the pieces that are not let go
 * @param {() => void} how.done called once all of it is written, perhaps before this function returns;
 *     not called when the connection is lost before
 */
export function pour(response, pieces, { slow, done }) {
  const left = [...pieces];
  let at = 0;

  function nextSlice() {
    const [piece] = left;
    const slice = piece.subarray(at, at + SLICE);
    // What Node may still hold when all of the piece is written: a slice that is no copy holds all of it.
    const ends = piece.length - at <= response.writableHighWaterMark + SLICE;
    const copied = ends && at > 0;
    at += SLICE;
    return copied ? Buffer.from(slice) : slice;
  }

  function goOn() {
    while (left.length > 0) {
      if (at >= left[0].length) {
        left.shift();
        at = 0;
      } else if (!response.write(nextSlice())) {
        slow(left);
        response.once('drain', goOn);
        return;
      }
    }
    done();
  }
  goOn();
}
