import { LARGEST, LARGEST_PHOTO } from '../client/image-size.js';
import { BOUNDS, decodeDataUrl } from '../client/sprite.js';

/**
 * Images on their way in: from a file, made small enough for a throw; and from a sprite that was
 * read, to be drawn.
 */

/** Bytes of a file that `shrink` is asked to read. */
const FILE_MOST = 32 * 1024 * 1024;
const USUAL = 16_384; // bytes a server takes, as long as it has not said how many
const REST = 1024; // bytes of a sprite beside its picture and its photo, at the most
const LEAST = 16; // pixels of the longer side
const GOOD = 0.85; // of JPEG's and WebP's quality, for what fits as it is
const FAIR = 0.6; // and for what is made smaller: more pixels are worth more than finer ones
const STEP = 0.4; // power of what it is too long by: half the pixels a side are more than a fourth of the bytes
const NEAR = 1.08; // times the longer side: nearer to the largest that fits none is sought
const SCANS = 100; // of a JPEG: a decoder goes over all of it for each (41,000 in a photo took Chromium 32 s); a usual one has ten

/**
 * Makes a file small enough for a throw: a picture that every reader shows, and a photo, larger, where the server has room
 * for one that shows more.
 *
 * @param {Blob} file
 * @param {number} [maxSprite] bytes that the server takes
 * @returns {Promise<{picture: string, photo?: string}|null>} data URLs; null when the file is no image this browser reads
 */
async function shrink(file, maxSprite = USUAL) {
  if (file.size > FILE_MOST) return null;
  const bitmap = file.type === 'image/svg+xml' ? await rasterize(file) : await decode(file);
  if (!bitmap) return null;
  try {
    const image = { bitmap, isOpaque: file.type === 'image/jpeg' };
    const most = maxSprite - REST;
    const picture = await fit(image, Math.min(BOUNDS.dataUrl, most), LARGEST);
    if (!picture) return null;
    const room = Math.min(BOUNDS.photo, most - picture.url.length);
    if (picture.isWhole || room <= BOUNDS.dataUrl) return { picture: picture.url };
    const photo = await fit(image, room, LARGEST_PHOTO);
    return { picture: picture.url, photo: photo?.url };
  } finally {
    bitmap.close();
  }
}

/**
 * The largest that fits.
 *
 * @param {{bitmap: ImageBitmap, isOpaque: boolean}} image
 * @param {number} most characters of the data URL
 * @param {number} largest pixels of the longer side
 * @returns {Promise<{url: string, isWhole: boolean}|null>} `isWhole`: it has every pixel
 */
async function fit(image, most, largest) {
  const whole = Math.max(image.bitmap.width, image.bitmap.height);
  const first = Math.min(whole, largest);
  const good = await encode(image, first / whole, GOOD);
  if (good.length <= most) return { url: good, isWhole: first === whole };
  let found = null;
  let over = first; // does not fit, or is no more to be had
  for (let side = first; side >= LEAST;) {
    const url = await encode(image, side / whole, FAIR);
    if (url.length <= most) found = { url, side, isWhole: side === whole };
    else over = side;
    const less = side * Math.min(1 / NEAR, (most / url.length) ** STEP);
    side = Math.floor(found ? Math.sqrt(found.side * over) : less);
    if (found && side < found.side * Math.sqrt(NEAR)) return found;
  }
  return null;
}

/** As WebP; a browser that can't write that gets JPEG instead, or PNG where something may be transparent. */
async function encode({ bitmap, isOpaque }, scale, quality) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const ctx = canvas.getContext('2d');
  ctx.imageSmoothingQuality = 'high';
  ctx.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const write = (type) => new Promise((done) => void canvas.toBlob(done, type, quality));
  let blob = await write('image/webp');
  if (isOpaque && blob?.type !== 'image/webp') blob = await write('image/jpeg');
  return read(blob);
}

/** @returns {Promise<string>} a data URL */
function read(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}

let decoded = Promise.resolve();

/**
 * Decodes the picture of a sprite that was read, or its photo. One at a time: whatever a decoder takes for one, it
 * never takes it for forty at once.
 *
 * @param {string} url a data URL that `readSprite` let through
 * @param {number} [largest] pixels a side that it may have
 * @returns {Promise<ImageBitmap|null>} null when it is damaged further in than `readSprite` looks,
 *     larger than it said there, or a JPEG of more than SCANS
 */
export function decodePicture(url, largest = LARGEST) {
  const { type, bytes } = decodeDataUrl(url);
  decoded = decoded
    .then(() => (hasManyScans(bytes) ? null : decode(new Blob([bytes], { type }))))
    .then((bitmap) => small(bitmap, largest));
  return decoded;
}

/** Whether a JPEG has more than SCANS. Bytes of another type hardly look like so many by chance. */
function hasManyScans(bytes) {
  let scans = 0;
  for (let at = -1; (at = bytes.indexOf(0xff, at + 1)) >= 0;)
    if (bytes[at + 1] === 0xda) scans += 1;
  return scans > SCANS;
}

/** What `readSprite` reads and what a browser decodes need not agree. */
function small(bitmap, largest) {
  if (!bitmap || Math.max(bitmap.width, bitmap.height) <= largest) return bitmap;
  bitmap.close();
  return null;
}

/** An SVG, which only an image element reads: there it runs no script and fetches nothing. */
async function rasterize(file) {
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    // One without a size of its own says 0 in some browsers: then it is a square.
    const width = image.naturalWidth || LARGEST;
    const height = image.naturalHeight || LARGEST;
    const scale = LARGEST_PHOTO / Math.max(width, height);
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

/** Image files on their way to being sprites. */

const FILES = 8; // that are taken at a time

/**
 * Makes a sprite of each image file.
 *
 * @param {Iterable<File>} files
 * @param {number|undefined} maxSprite bytes that the server takes
 * @param {(image: {picture: string, photo?: string, name: string}, step: number) => boolean} take of the how many-th;
 *     false: there is no room for more, which has been said
 * @returns {Promise<string>} what was amiss, in words; empty where nothing was
 */
export async function takeFiles(files, maxSprite, take) {
  const chosen = [...files];
  const amiss = [];
  if (chosen.length > FILES) {
    amiss.push(`Eight at a time: ${chosen.length - FILES} were not taken.`);
  }
  let step = 0;
  for (const file of chosen.slice(0, FILES)) {
    if (file.size > FILE_MOST) {
      amiss.push(`${file.name} is too large: 32 MB at most.`);
      continue;
    }
    const image = await shrink(file, maxSprite);
    if (!image) {
      amiss.push(`${file.name} is no image this browser can read.`);
    } else if (take({ ...image, name: stemOf(file.name) }, step)) {
      step += 1;
    } else {
      break;
    }
  }
  return amiss.join(' ');
}

/** A file's name without its ending, as far as it may name a sprite. */
function stemOf(name) {
  return asName(name.replace(/\.[^.]*$/, ''));
}

/** @returns {string} as much of a text as may be a name */
export function asName(text) {
  return [...text.trim()].slice(0, BOUNDS.name).join('');
}
