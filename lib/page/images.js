import { LARGEST } from '../client/image-size.js';
import { BOUNDS, decodeDataUrl } from '../client/sprite.js';

/**
 * Images on their way in: from a file, made small enough for a throw; and from a sprite that was
 * read, to be drawn.
 */

/** Bytes of a file that `shrink` is asked to read. */
export const FILE_MOST = 32 * 1024 * 1024;
const SIDES = [160, 128, 104, 88, 72, 56, 40, 24];
const QUALITIES = [0.86, 0.7, 0.5];

/**
 * Makes a file small enough for a throw.
 *
 * @param {Blob} file
 * @param {number} [most] characters the data URL may have
 * @returns {Promise<string|null>} a data URL; null when the file is no image this browser reads
 */
export async function shrink(file, most = BOUNDS.dataUrl) {
  if (file.size > FILE_MOST) return null;
  const bitmap = file.type === 'image/svg+xml' ? await rasterize(file) : await decode(file);
  if (!bitmap) return null;
  try {
    const canvas = document.createElement('canvas');
    for (const side of SIDES) {
      const scale = Math.min(1, side / Math.max(bitmap.width, bitmap.height));
      canvas.width = Math.max(1, Math.round(bitmap.width * scale));
      canvas.height = Math.max(1, Math.round(bitmap.height * scale));
      const ctx = canvas.getContext('2d');
      ctx.imageSmoothingQuality = 'high';
      ctx.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
      const url = encode(canvas, most);
      if (url) return url;
    }
    return null;
  } finally {
    bitmap.close();
  }
}

let decoded = Promise.resolve();

/**
 * Decodes the picture of a sprite that was read. One at a time: whatever a decoder takes for one, it
 * never takes it for forty at once.
 *
 * @param {string} url a data URL that `readSprite` let through
 * @returns {Promise<ImageBitmap|null>} null when it is damaged further in than `readSprite` looks, or
 *     larger than it said there
 */
export function decodePicture(url) {
  const { type, bytes } = decodeDataUrl(url);
  decoded = decoded.then(() => decode(new Blob([bytes], { type }))).then(small);
  return decoded;
}

/** What `readSprite` reads and what a browser decodes need not agree. */
function small(bitmap) {
  if (!bitmap || Math.max(bitmap.width, bitmap.height) <= LARGEST) return bitmap;
  bitmap.close();
  return null;
}

function encode(canvas, most) {
  // A browser that can't write WebP writes PNG instead, which may fit as well.
  for (const quality of QUALITIES) {
    const url = canvas.toDataURL('image/webp', quality);
    if (url.length <= most) return url;
    if (!url.startsWith('data:image/webp')) break;
  }
  return null;
}

/** An SVG, which only an image element reads: there it runs no script and asks nobody. */
async function rasterize(file) {
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    // One without a size of its own says 0 in some browsers: then it is a square.
    const width = image.naturalWidth || SIDES[0];
    const height = image.naturalHeight || SIDES[0];
    const scale = SIDES[0] / Math.max(width, height);
    return await createImageBitmap(image, {
      resizeWidth: Math.max(1, Math.round(width * scale)),
      resizeHeight: Math.max(1, Math.round(height * scale)),
      resizeQuality: 'high'
    });
  } catch {
    return null; // That is the answer: it is no image.
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function decode(blob) {
  try {
    return await createImageBitmap(blob);
  } catch {
    return null; // That is the answer: it is no image.
  }
}
