/**
 * @param {Uint8Array} bytes
 * @returns {{type: string, width: number, height: number}|null} null when it is no PNG, JPEG, WebP
 *     or GIF, or is cut off before it says
 */
export function imageSize(bytes: Uint8Array): {
    type: string;
    width: number;
    height: number;
} | null;
/**
 * @param {Uint8Array} bytes
 * @param {string} type
 * @param {number} [largest] pixels a side
 * @returns {boolean} whether they are an image of the type they claim, small enough to decode
 */
export function isSmallImage(bytes: Uint8Array, type: string, largest?: number): boolean;
/**
 * How large an image says it is, from its first bytes, before anything decodes it: twelve thousand
 * characters are enough for an image of gigabytes. No DOM.
 */
/** The longest side, in pixels, of an image that is decoded: of a sprite's picture, and of its photo. */
export const LARGEST: 512;
export const LARGEST_PHOTO: 2048;
