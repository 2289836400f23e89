import { cursorText, isKey, LAST_VERSION } from '../feeds/names.js';

/**
 * A feed's newest version as the world's store has it: one message under the feed's key, its head in headers and
 * its value, packed, as the body. A feed that was deleted has a head alone.
 *
 *   sprites.feeds.c2NvcmVz       the key in base64url
 *   Sprites-Feed: 1              the version of this form
 *   Sprites-Cursor: e3f9k2-42
 *   Sprites-Digest: 47DEQp…      SHA-256 of the value; missing: deleted
 *   Sprites-Form: deflate        of the body; or plain
 *   Sprites-Run: NDUBZ4…         the run of the NATS server in which its epoch came there
 *   Sprites-By: a                the server that has published it, for who looks by hand
 */

/** The version of this form. */
const FORM = '1';

/** Where messages are; the key follows. */
export const SUBJECTS = 'sprites.feeds';

/** Bytes that heads may take, with much to spare. */
export const HEAD_BYTES = 1024;

const CURSOR = /^e([0-9a-z]{1,11})-([1-9][0-9]{0,15})$/;
const DIGEST = /^[A-Za-z0-9_-]{43}$/;
const WORD = /^[A-Za-z0-9]{1,64}$/;

/**
 * @typedef {object} Head what is known of a version
 * @property {number} epoch
 * @property {number} version
 * @property {string} [digest] of its value; without one the feed is deleted
 * @property {string} [form] of the body
 * @property {string} [run] of the NATS server, in which its epoch came there
 * @property {number} [revision] the number of its message in the store
 */

/**
 * Which of two versions of a feed is the newer one, whatever clocks say: that with the higher version; where both have
 * come to the same, apart from each other, that with the higher epoch. Behind the last version there is none: of those
 * that have come there the one that the store has taken later.
 *
 * @param {Head} a
 * @param {Head} b
 * @returns {boolean} whether it is `a`
 */
export function isNewer(a, b) {
  if (a.version !== b.version) return a.version > b.version;
  if (a.version < LAST_VERSION) return a.epoch > b.epoch;
  return a.epoch !== b.epoch && a.revision > b.revision;
}

/** @returns {string} the last part of a subject */
export const tokenOf = (key) => Buffer.from(key).toString('base64url');

/** @returns {string | undefined} the key that a subject ends with; undefined: none */
export function keyOf(subject) {
  const token = subject.slice(subject.lastIndexOf('.') + 1);
  const key = Buffer.from(token, 'base64url').toString();
  return isKey(key) && tokenOf(key) === token ? key : undefined;
}

/**
 * @param {Head} head
 * @param {string} by a server's name
 * @returns {Record<string, string>} headers
 */
export function writeHead({ epoch, version, digest, form, run }, by) {
  return {
    'Sprites-Feed': FORM,
    'Sprites-Cursor': cursorText({ epoch, version }),
    ...(digest !== undefined && { 'Sprites-Digest': digest, 'Sprites-Form': form }),
    ...(run !== undefined && { 'Sprites-Run': run }),
    'Sprites-By': by
  };
}

/**
 * @param {(name: string) => string | undefined} header empty or undefined: there is none
 * @param {number} revision
 * @returns {Head | undefined} undefined for what no server of this version has written
 */
export function readHead(header, revision) {
  const [, epochText, versionText] = CURSOR.exec(header('Sprites-Cursor') ?? '') ?? [];
  const epoch = parseInt(epochText, 36);
  const version = Number(versionText);
  const digest = header('Sprites-Digest') || undefined;
  const sound =
    header('Sprites-Feed') === FORM &&
    [epoch, version, revision].every(Number.isSafeInteger) &&
    (digest === undefined || DIGEST.test(digest));
  const [form, run] = ['Sprites-Form', 'Sprites-Run']
    .map(header)
    .map((word) => (WORD.test(word) ? word : undefined));
  return sound ? { epoch, version, digest, form, run, revision } : undefined;
}
