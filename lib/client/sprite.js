import { LARGEST, LARGEST_PHOTO, isSmallImage } from './image-size.js';

/**
 * Reads and writes sprites, in the format that page, desktop and swarm share. The server relays any
 * JSON object. So every sprite that comes in is checked here, member by member, before it is used.
 *
 *     {
 *       "id": "k3f9a-7",                unique, 1 to 64 of A-Z a-z 0-9 _ -
 *       "picture": "rocket",            a drawn picture, or a data URL of a small image: its first
 *                                       bytes have the claimed type, and at most 512 pixels a
 *                                       side (see image-size.js)
 *       "at": 0.4,                      position along the edge, as a share of its length:
 *                                       left and right from the top, up and down from the left
 *       "speed": [0.9, -0.1],           [across, along] in edge lengths a second: across in the
 *                                       direction of flight, along positive to the right or down
 *       "name": "Ada's rocket",         optional
 *       "by": "Ada",                    optional, the name of the desktop that threw the sprite
 *       "photo": "data:image/webp…"     optional, a larger version of `picture`, where the server
 *                                       accepts it: a data URL, of at most 2048 pixels a side
 *     }
 *
 * `across` counts lengths of the axis of flight (off the left edge: widths a second), `along` lengths
 * of the edge itself. A reader ignores members that it doesn't know, so that the format can grow.
 */

/** The pictures that every reader can draw by itself. */
export const PICTURES = Object.freeze(['ball', 'star', 'ghost', 'rocket', 'fish', 'flower']);

/** Largest values: `speed` in edge lengths a second, the others in characters. */
export const BOUNDS = Object.freeze({
  id: 64,
  name: 40,
  dataUrl: 12_000,
  photo: 1_000_000,
  speed: 20
});

const ID = /^[A-Za-z0-9_-]{1,64}$/;
const DATA_URL = /^data:image\/(?:png|jpeg|webp|gif);base64,/;
const BASE64 = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;

/**
 * @typedef {object} Sprite
 * @property {string} id
 * @property {string} picture a name of PICTURES or a data URL
 * @property {number} at 0 to 1
 * @property {[number, number]} speed [across, along], edge lengths a second
 * @property {string} [name]
 * @property {string} [by] the name of the desktop that threw it
 * @property {string} [photo] a data URL: a larger version of `picture`
 */

/** An invalid sprite; `member` is the invalid member. */
export class SpriteError extends Error {
  /**
   * @param {string} member
   * @param {string} validValues the valid values, in words
   */
  constructor(member, validValues) {
    super(`${member} must be ${validValues}`);
    this.name = 'SpriteError';
    this.member = member;
  }
}

/**
 * Reads a sprite.
 *
 * @param {unknown} value as JSON.parse returns it
 * @returns {Sprite} a new object with the members above and no others
 * @throws {SpriteError} for an invalid sprite
 */
export function readSprite(value) {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SpriteError('a sprite', 'an object');
  }
  const { id, picture, at, speed, name, by, photo } = value;
  if (typeof id !== 'string' || !ID.test(id)) {
    throw new SpriteError('id', `1 to ${BOUNDS.id} of A-Z a-z 0-9 _ -`);
  }
  if (!PICTURES.includes(picture) && !isImage(picture, BOUNDS.dataUrl, LARGEST)) {
    throw new SpriteError(
      'picture',
      `one of ${PICTURES.join(', ')}, or ${imageWords(BOUNDS.dataUrl, LARGEST)}`
    );
  }
  if (!within(at, 0, 1)) throw new SpriteError('at', 'a number from 0 to 1');
  if (
    !Array.isArray(speed) ||
    speed.length !== 2 ||
    !within(speed[0], 0, BOUNDS.speed) ||
    !within(speed[1], -BOUNDS.speed, BOUNDS.speed)
  ) {
    throw new SpriteError(
      'speed',
      `[across, along], across from 0 to ${BOUNDS.speed}, ` +
        `along from -${BOUNDS.speed} to ${BOUNDS.speed}`
    );
  }
  const sprite = { id, picture, at, speed: [speed[0], speed[1]] };
  for (const [member, text] of Object.entries({ name, by })) {
    if (text === undefined) continue;
    if (!isName(text))
      throw new SpriteError(member, `a string of at most ${BOUNDS.name} characters`);
    sprite[member] = text;
  }
  if (photo !== undefined) {
    if (!isImage(photo, BOUNDS.photo, LARGEST_PHOTO)) {
      throw new SpriteError('photo', imageWords(BOUNDS.photo, LARGEST_PHOTO));
    }
    sprite.photo = photo;
  }
  return sprite;
}

/**
 * Writes a sprite. Numbers are clamped to their bounds: a sprite is never refused because it is fast.
 *
 * @param {Sprite} sprite
 * @param {number} [most] bytes: a longer sprite is written without its photo
 * @returns {string} JSON, in the order of the format's members
 * @throws {SpriteError} when another member is invalid
 */
export function writeSprite({ id, picture, at, speed, name, by, photo }, most = Infinity) {
  const sprite = readSprite({
    id,
    picture,
    at: round(clamp(at, 0, 1)),
    speed: [
      round(clamp(speed[0], 0, BOUNDS.speed)),
      round(clamp(speed[1], -BOUNDS.speed, BOUNDS.speed))
    ],
    name,
    by,
    photo
  });
  const text = JSON.stringify(sprite);
  if (photo === undefined || new TextEncoder().encode(text).length <= most) return text;
  return JSON.stringify({ ...sprite, photo: undefined });
}

/**
 * Decodes a data URL in base64.
 *
 * @param {string} url
 * @returns {{type: string, bytes: Uint8Array}}
 */
export function decodeDataUrl(url) {
  const text = atob(url.slice(url.indexOf(',') + 1));
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = text.charCodeAt(i);
  return { type: url.slice(5, url.indexOf(';')), bytes };
}

function isImage(url, maxLength, largest) {
  if (typeof url !== 'string' || url.length > maxLength) return false;
  const head = DATA_URL.exec(url)?.[0];
  if (head === undefined || !BASE64.test(url.slice(head.length))) return false;
  const { type, bytes } = decodeDataUrl(url);
  return isSmallImage(bytes, type, largest);
}

const imageWords = (most, largest) =>
  `a data URL of a PNG, JPEG, WebP or GIF in base64 of at most ${most} characters, which is one ` +
  `by its first bytes, of at most ${largest} pixels a side`;

/** Returns whether a text is a valid name. Its length counts in code points, as in JSON Schema. */
function isName(text) {
  return typeof text === 'string' && [...text.slice(0, 2 * BOUNDS.name + 1)].length <= BOUNDS.name;
}

function within(value, least, most) {
  return typeof value === 'number' && value >= least && value <= most;
}

function clamp(value, least, most) {
  return Math.min(most, Math.max(least, value));
}

function round(value) {
  return Math.round(value * 1e6) / 1e6;
}
