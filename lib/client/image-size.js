/**
 * Reads the size of an image from its first bytes, before anything decodes it: twelve thousand
 * characters are enough for an image that decodes to gigabytes. No DOM.
 */

/** Longest side of a sprite's picture that is decoded, and of its photo, in pixels. */
export const LARGEST = 512;
export const LARGEST_PHOTO = 2048;

/**
 * @param {Uint8Array} bytes
 * @returns {{type: string, width: number, height: number}|null} null when it is no PNG, JPEG, WebP
 *     or GIF, or is cut off before its size
 */
export function imageSize(bytes) {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  try {
    if (starts(bytes, '\x89PNG\r\n\x1a\n') && starts(bytes, 'IHDR', 12)) {
      return { type: 'image/png', width: view.getUint32(16), height: view.getUint32(20) };
    }
    if (starts(bytes, 'GIF87a') || starts(bytes, 'GIF89a')) return gifSize(bytes, view);
    if (starts(bytes, '\xff\xd8\xff')) return jpegSize(view);
    if (starts(bytes, 'RIFF') && starts(bytes, 'WEBP', 8) && bytes.length >= 30)
      return webpSize(bytes, view);
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    // Cut off: the bytes end before the size.
  }
  return null;
}

/**
 * @param {Uint8Array} bytes
 * @param {string} type
 * @param {number} [largest] pixels a side
 * @returns {boolean} whether the bytes are an image of this type, small enough to decode
 */
export function isSmallImage(bytes, type, largest = LARGEST) {
  const size = imageSize(bytes);
  return (
    size !== null &&
    size.type === type &&
    size.width >= 1 &&
    size.height >= 1 &&
    size.width <= largest &&
    size.height <= largest
  );
}

function starts(bytes, text, at = 0) {
  for (let i = 0; i < text.length; i += 1) if (bytes[at + i] !== text.charCodeAt(i)) return false;
  return true;
}

/** Returns the size of the screen and all frames: a frame may reach beyond the screen. */
function gifSize(bytes, view) {
  const number = (at) => view.getUint16(at, true);
  const size = { type: 'image/gif', width: number(6), height: number(8) };
  const table = (flags) => (flags & 0x80 ? 3 * 2 ** ((flags & 7) + 1) : 0);
  const skipBlocks = (from) => {
    let at = from;
    while (view.getUint8(at) !== 0) at += view.getUint8(at) + 1;
    return at + 1;
  };
  let frames = 0;
  for (let at = 13 + table(view.getUint8(10)); at < bytes.length;) {
    const kind = view.getUint8(at);
    if (kind === 0x21) {
      at = skipBlocks(at + 2);
    } else if (kind === 0x2c) {
      frames += 1;
      size.width = Math.max(size.width, number(at + 1) + number(at + 5));
      size.height = Math.max(size.height, number(at + 3) + number(at + 7));
      at = skipBlocks(at + 11 + table(view.getUint8(at + 9)));
    } else {
      break; // 0x3b, the end, or a byte at which every decoder stops
    }
  }
  return frames > 0 ? size : null;
}

/**
 * Walks the segments to the frame header. Only segments with a length that may stand before a frame
 * are skipped. A marker without a length (00, 01, D0 to D8) is refused: a decoder goes on right behind
 * it, so the bytes in place of a length could hide the frame that the decoder finds. No file needs one.
 */
function jpegSize(view) {
  for (let at = 2; ;) {
    if (view.getUint8(at) !== 0xff) return null;
    const kind = view.getUint8(at + 1);
    if (kind === 0xff) {
      at += 1;
      continue;
    }
    if (isFrame(kind)) {
      return { type: 'image/jpeg', width: view.getUint16(at + 7), height: view.getUint16(at + 5) };
    }
    const length = view.getUint16(at + 2);
    if (!isTable(kind) || length < 2) return null;
    at += 2 + length;
  }
}

/** Start of frame: C0 to CF without DHT, JPG and DAC. */
function isFrame(kind) {
  return kind >= 0xc0 && kind <= 0xcf && kind !== 0xc4 && kind !== 0xc8 && kind !== 0xcc;
}

/** DHT, DAC, DQT, DRI, APP0 to APP15, COM: segments with a length that stand before a frame. */
function isTable(kind) {
  return (
    kind === 0xc4 ||
    kind === 0xcc ||
    kind === 0xdb ||
    kind === 0xdd ||
    (kind >= 0xe0 && kind <= 0xef) ||
    kind === 0xfe
  );
}

function webpSize(bytes, view) {
  const type = 'image/webp';
  if (starts(bytes, 'VP8 ', 12)) {
    const side = (at) => view.getUint16(at, true) & 0x3fff;
    return { type, width: side(26), height: side(28) };
  }
  if (starts(bytes, 'VP8L', 12) && bytes[20] === 0x2f) {
    const bits = view.getUint32(21, true);
    return { type, width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
  }
  if (starts(bytes, 'VP8X', 12)) {
    return {
      type,
      width: (view.getUint32(24, true) & 0xffffff) + 1,
      height: (view.getUint32(26, true) >>> 8) + 1
    };
  }
  return null;
}
