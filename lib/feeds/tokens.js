import { createHash, timingSafeEqual } from 'node:crypto';

import { readOptionText } from '../base/option-file.js';

/**
 * The tokens that may publish, in a file, one a line, so that a new one can be added before the old
 * one goes.
 */

const digest = (text) => createHash('sha256').update(text).digest();

/** RFC 6750, section 2.1: what a bearer token may be made of. */
const TOKEN = /^[A-Za-z0-9._~+/-]+=*$/;

/**
 * @param {string} file
 * @returns {Buffer[]} the digests of the tokens in it
 * @throws {Error} in one line, when it can't be read, or has none, or what is none
 */
function readTokens(file) {
  const lines = readOptionText('publish-token-file', file).split(/\r?\n/);
  const tokens = lines.filter((line) => line !== '');
  if (tokens.length === 0 || !tokens.every((line) => TOKEN.test(line))) {
    throw new Error(
      `--publish-token-file ${file}: it takes one token a line, of letters, digits and ._~+/-`
    );
  }
  return tokens.map(digest);
}

/**
 * @param {unknown} tokens that a program gives
 * @returns {boolean} whether each may be one
 */
export const areTokens = (tokens) =>
  Array.isArray(tokens) && tokens.every((one) => typeof one === 'string' && TOKEN.test(one));

/**
 * @param {{publishTokenFile: string, play?: {token: string}}} options where a game is tried there is one token, of no file
 * @param {string[]} [programTokens] others, of the program that the server is in
 * @returns {{open: boolean, admits: (authorization?: string) => boolean, reload: () => void}}
 *     `open`: whether publishing is possible at all; `admits` reads an Authorization header;
 *     `reload` reads the file anew, and keeps the tokens there are when that can't be done (throws)
 */
export function openTokens({ publishTokenFile: file, play }, programTokens = []) {
  const fixed = [...programTokens, ...(play ? [play.token] : [])].map(digest);
  const readAll = () => [...fixed, ...(file === 'none' || play ? [] : readTokens(file))];
  let tokens = readAll();
  if (file === 'none' && tokens.length === 0) {
    return { open: false, admits: () => false, reload() {} };
  }
  return {
    open: true,
    admits(authorization = '') {
      const [, token] = /^Bearer +(\S+) *$/i.exec(authorization) ?? [];
      if (token === undefined) return false;
      const tokenDigest = digest(token);
      // Each is compared, and each in the same time: nothing is learned from how long it takes.
      return tokens.filter((one) => timingSafeEqual(one, tokenDigest)).length > 0;
    },
    reload() {
      tokens = readAll();
    }
  };
}
