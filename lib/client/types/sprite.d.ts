/**
 * Reads a sprite.
 *
 * @param {unknown} value what JSON.parse made of it
 * @returns {Sprite} a new object with the members above and no others
 * @throws {SpriteError} when it isn't one
 */
export function readSprite(value: unknown): Sprite;
/**
 * Writes a sprite, bringing numbers into their bounds: a sprite is never refused for being quick.
 *
 * @param {Sprite} sprite
 * @param {number} [most] bytes: where there would be more, its photo stays out
 * @returns {string} JSON, in the order of the format's members
 * @throws {SpriteError} when the rest of it is wrong
 */
export function writeSprite({ id, picture, at, speed, name, by, photo }: Sprite, most?: number): string;
/**
 * Takes the bytes of a data URL in base64.
 *
 * @param {string} url
 * @returns {{type: string, bytes: Uint8Array}}
 */
export function decodeDataUrl(url: string): {
    type: string;
    bytes: Uint8Array;
};
/**
 * The sprite itself, in the written format that page, desktop and swarm share. The server relays
 * any JSON object; so whatever comes in is read here, member by member, before anything is done
 * with it.
 *
 *     {
 *       "id": "k3f9a-7",                its own, 1 to 64 of A-Z a-z 0-9 _ -
 *       "picture": "rocket",            a drawn one, or a small image as a data URL: by its first
 *                                       bytes of the type it claims, and of at most 512 pixels a
 *                                       side (see image-size.js)
 *       "at": 0.4,                      where along the edge, as a share of its length:
 *                                       left and right from the top, up and down from the left
 *       "speed": [0.9, -0.1],           [across, along] in edge lengths a second: across in the
 *                                       direction of flight, along positive to the right or down
 *       "name": "Ada's rocket",         if it has one
 *       "by": "Ada",                    the name of the desktop that threw it, if that has one
 *       "photo": "data:image/webp…"     what `picture` shows, larger, where the server takes that
 *                                       much: likewise a data URL, of at most 2048 pixels a side
 *     }
 *
 * `across` counts lengths of the axis it flies along (off the left edge: widths a second), `along`
 * those of the edge itself. Members a reader doesn't know it ignores; that is how the format grows.
 */
/** The pictures every reader can draw by itself. */
export const PICTURES: readonly string[];
/** Bounds: `speed` in edge lengths a second, the others in characters. */
export const BOUNDS: Readonly<{
    id: 64;
    name: 40;
    dataUrl: 12000;
    photo: 1000000;
    speed: 20;
}>;
/**
 * @typedef {object} Sprite
 * @property {string} id
 * @property {string} picture a name of PICTURES or a data URL
 * @property {number} at 0 to 1
 * @property {[number, number]} speed [across, along], edge lengths a second
 * @property {string} [name]
 * @property {string} [by] the name of the desktop that threw it
 * @property {string} [photo] a data URL: what `picture` shows, larger
 */
/** Says which member is wrong and what it should be. */
export class SpriteError extends Error {
    /**
     * @param {string} member
     * @param {string} should what it should be
     */
    constructor(member: string, should: string);
    member: string;
}
export type Sprite = {
    id: string;
    /**
     * a name of PICTURES or a data URL
     */
    picture: string;
    /**
     * 0 to 1
     */
    at: number;
    /**
     * [across, along], edge lengths a second
     */
    speed: [number, number];
    name?: string;
    /**
     * the name of the desktop that threw it
     */
    by?: string;
    /**
     * a data URL: what `picture` shows, larger
     */
    photo?: string;
};
