import { LARGEST, LARGEST_PHOTO } from '../client/image-size.js';
import { BOUNDS, decodeDataUrl } from '../client/sprite.js';

/**
 * Incoming images: reads files and makes them small enough for a throw, and decodes the pictures of sprites.
 */

/** Largest file that is read, in bytes. */
const MAX_FILE_BYTES = 32 * 1024 * 1024;
const DEFAULT_MAX_SPRITE = 16_384; // largest sprite in bytes, until the server has announced its own
const OTHER_MEMBERS = 1024; // most bytes of a sprite beside its picture and its photo
const MIN_SIDE = 16; // pixels of the longer side, at least
const HIGH_QUALITY = 0.85; // quality of JPEG and WebP for an image that fits at once
const LOW_QUALITY = 0.6; // quality for an image that is made smaller: more pixels are worth more than finer ones
const SHRINK_POWER = 0.4; // a side shrinks by (room / length) ** this; half the side takes over a fourth of the bytes
const NEAR = 1.08; // the search ends when a side that fits, times this, is at least a side that does not fit
// Most scans of a JPEG: each costs a decoder a pass over the whole picture (41,000 in a photo took Chromium 32 s). Ten
// are usual.
const MAX_SCANS = 100;

/**
 * Makes an image file small enough for a throw: a picture that every reader shows, and, where the server accepts it, a
 * larger photo.
 *
 * @param {Blob} file
 * @param {number} [maxSprite] largest sprite that the server accepts, in bytes
 * @returns {Promise<{picture: string, photo?: string}|null>} data URLs; null for no image that this browser reads
 */
async function shrink(file, maxSprite = DEFAULT_MAX_SPRITE) {
  if (file.size > MAX_FILE_BYTES) return null;
  const bitmap = file.type === 'image/svg+xml' ? await rasterize(file) : await decode(file);
  if (!bitmap) return null;
  try {
    const image = { bitmap, isOpaque: file.type === 'image/jpeg' };
    const maxBytes = maxSprite - OTHER_MEMBERS;
    const picture = await encodeToFit(image, Math.min(BOUNDS.dataUrl, maxBytes), LARGEST);
    if (!picture) return null;
    const photoRoom = Math.min(BOUNDS.photo, maxBytes - picture.url.length);
    if (picture.isWhole || photoRoom <= BOUNDS.dataUrl) return { picture: picture.url };
    const photo = await encodeToFit(image, photoRoom, LARGEST_PHOTO);
    return { picture: picture.url, photo: photo?.url };
  } finally {
    bitmap.close();
  }
}

/**
 * Encodes an image as large as fits.
 *
 * @param {{bitmap: ImageBitmap, isOpaque: boolean}} image
 * @param {number} maxLength characters of the data URL
 * @param {number} largest pixels of the longer side
 * @returns {Promise<{url: string, isWhole: boolean}|null>} `isWhole`: at full size; null
 *     when not even MIN_SIDE pixels fit
 */
async function encodeToFit(image, maxLength, largest) {
  const fullSide = Math.max(image.bitmap.width, image.bitmap.height);
  const firstSide = Math.min(fullSide, largest);
  const goodUrl = await encode(image, firstSide / fullSide, HIGH_QUALITY);
  if (goodUrl.length <= maxLength) return { url: goodUrl, isWhole: firstSide === fullSide };
  let largestFit = null;
  let tooLargeSide = firstSide; // smallest side that is known not to fit, or the largest side there is
  for (let side = firstSide; side >= MIN_SIDE;) {
    const url = await encode(image, side / fullSide, LOW_QUALITY);
    if (url.length <= maxLength) largestFit = { url, side, isWhole: side === fullSide };
    else tooLargeSide = side;
    const smaller = side * Math.min(1 / NEAR, (maxLength / url.length) ** SHRINK_POWER);
    side = Math.floor(largestFit ? Math.sqrt(largestFit.side * tooLargeSide) : smaller);
    if (largestFit && side < largestFit.side * Math.sqrt(NEAR)) return largestFit;
  }
  return null;
}

/** Encodes as WebP. A browser that can't write WebP writes JPEG, or PNG where pixels may be transparent. */
async function encode({ bitmap, isOpaque }, scale, quality) {
  const canvas = document.createElement('canvas');
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const ctx = canvas.getContext('2d');
  ctx.imageSmoothingQuality = 'high';
  ctx.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const write = (type) => new Promise((resolve) => void canvas.toBlob(resolve, type, quality));
  let blob = await write('image/webp');
  if (isOpaque && blob?.type !== 'image/webp') blob = await write('image/jpeg');
  return readDataUrl(blob);
}

/** @returns {Promise<string>} a data URL */
function readDataUrl(blob) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener('load', () => resolve(reader.result));
    reader.addEventListener('error', () => reject(reader.error));
    reader.readAsDataURL(blob);
  });
}

let decodeQueue = Promise.resolve();

/**
 * Decodes the picture or the photo of a sprite that was read. One image at a time, so that the cost of a decoder is
 * never multiplied by forty.
 *
 * @param {string} url a data URL that `readSprite` let through
 * @param {number} [largest] most pixels a side
 * @returns {Promise<ImageBitmap|null>} null when the image is damaged behind the bytes that
 *     `readSprite` checks, larger than these bytes say, or a JPEG with more than MAX_SCANS scans
 */
export function decodePicture(url, largest = LARGEST) {
  const { type, bytes } = decodeDataUrl(url);
  decodeQueue = decodeQueue
    .then(() => (hasManyScans(bytes) ? null : decode(new Blob([bytes], { type }))))
    .then((bitmap) => withinLimit(bitmap, largest));
  return decodeQueue;
}

/** Returns whether a JPEG has more than SCANS scans. Other types hardly ever contain as many such markers. */
function hasManyScans(bytes) {
  let scans = 0;
  for (let at = -1; (at = bytes.indexOf(0xff, at + 1)) >= 0;)
    if (bytes[at + 1] === 0xda) scans += 1;
  return scans > MAX_SCANS;
}

/** Drops a bitmap that is too large: `readSprite` and the browser's decoder may read different sizes. */
function withinLimit(bitmap, largest) {
  if (!bitmap || Math.max(bitmap.width, bitmap.height) <= largest) return bitmap;
  bitmap.close();
  return null;
}

/** Decodes an SVG by an image element: nothing else reads it, and there it runs no script and fetches nothing. */
async function rasterize(file) {
  const url = URL.createObjectURL(file);
  try {
    const image = new Image();
    image.src = url;
    await image.decode();
    // Some browsers report 0 for an SVG without a size: then it is a square.
    const width = image.naturalWidth || LARGEST;
    const height = image.naturalHeight || LARGEST;
    const scale = LARGEST_PHOTO / Math.max(width, height);
    return await createImageBitmap(image, {
      resizeWidth: Math.max(1, Math.round(width * scale)),
      resizeHeight: Math.max(1, Math.round(height * scale)),
      resizeQuality: 'high'
    });
  } catch {
    return null; // It is no image.
  } finally {
    URL.revokeObjectURL(url);
  }
}

/** Decodes an image; null for any other file. */
const decode = (blob) => createImageBitmap(blob).catch(() => null);

/** Sprites from image files. */

const MAX_FILES = 8; // most files at a time

/**
 * Makes a sprite of each image file.
 *
 * @param {Iterable<File>} files
 * @param {number|undefined} maxSprite largest sprite that the server accepts, in bytes
 * @param {(image: {picture: string, photo?: string, name: string}, step: number) => boolean} addImage called with an
 *     image and its index; false: there is no room for more, and the visitor has been told so
 * @returns {Promise<string>} the problems, in words; empty without any
 */
export async function addFiles(files, maxSprite, addImage) {
  const chosenFiles = [...files];
  const problems = [];
  if (chosenFiles.length > MAX_FILES) {
    problems.push(`Eight at a time: ${chosenFiles.length - MAX_FILES} were not taken.`);
  }
  let index = 0;
  for (const file of chosenFiles.slice(0, MAX_FILES)) {
    if (file.size > MAX_FILE_BYTES) {
      problems.push(`${file.name} is too large: 32 MB at most.`);
      continue;
    }
    const image = await shrink(file, maxSprite);
    const name = toSpriteName(file.name.replace(/\.[^.]*$/, ''));
    if (!image) problems.push(`${file.name} is no image this browser can read.`);
    else if (addImage({ ...image, name }, index)) index += 1;
    else break;
  }
  return problems.join(' ');
}

/** @returns {string} a text cut to the length of a sprite's name */
export function toSpriteName(text) {
  return [...text.trim()].slice(0, BOUNDS.name).join('');
}
