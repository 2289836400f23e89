/**
 * The text form of an id (RFC 9562, section 4), of clients and of players: native/pool/id.h makes the ids. The package
 * that does the same is twenty modules, which every start of a server and a worker would load.
 */

const FORM = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const BYTES = 16;

/** @returns {boolean} whether a text has the form of an id */
export const validate = (text) => FORM.test(text);

/**
 * @param {string} text in the form of an id
 * @returns {Uint8Array} its 16 bytes, in memory of their own
 */
export function parse(text) {
  const bytes = Buffer.alloc(BYTES);
  bytes.write(text.replaceAll('-', ''), 'hex');
  return bytes;
}

/** @param {Uint8Array} bytes of an id */
export function stringify(bytes) {
  const hex = Buffer.from(bytes.buffer, bytes.byteOffset, BYTES).toString('hex');
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20)
  ].join('-');
}
