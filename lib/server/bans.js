import { resolve } from 'node:path';

import { readWhole, writeWhole } from './whole-file.js';

/**
 * The bans from one run to the next, where a state is kept: FILE.bans beside it, written whenever
 * an operator bans an address or ends a ban, so that a crash ends none.
 *
 *     {"bans":[{"address":"192.0.2.1","end":1763785200000}]}        milliseconds since 1970
 */

/** A thousand bans, each with an IPv6 address, are a tenth of it. */
const MOST = 1 << 20;

/** The longest there are, in milliseconds: a clock that was set back makes none longer. */
const LONGEST = 31_536_000_000;

/** @returns {{address: string, end: number}[]} what is in the file */
function read(bytes) {
  const { bans } = JSON.parse(bytes);
  const isBan = (ban) => typeof ban?.address === 'string' && Number.isSafeInteger(ban.end);
  if (!Array.isArray(bans) || !bans.every(isBan)) throw new Error('it is no list of bans');
  return bans;
}

/**
 * Takes over the bans of the last run.
 *
 * @param {object} parts
 * @param {import('./address-limits.js').AddressLimits} parts.limits
 * @param {{state: string}} parts.options
 * @param {import('pino').Logger} parts.log
 * @returns {{ban: AddressLimits['ban'], list: AddressLimits['bans']}} as those of AddressLimits, and kept. One that
 *     can't be written holds all the same, which is logged
 * @throws {Error} in one line, when the file can't be used; it is left as it is
 */
export function openBans({ limits, options: { state }, log }) {
  const list = () => limits.bans();
  if (state === 'none') return { ban: (...ban) => limits.ban(...ban), list };
  const path = `${resolve(state)}.bans`;
  const now = Date.now();
  try {
    const bytes = readWhole(path, MOST);
    for (const { address, end } of bytes === undefined ? [] : read(bytes)) {
      const seconds = Math.ceil(Math.min(end - now, LONGEST) / 1000);
      if (seconds <= 0) continue;
      if (limits.ban(address, seconds) !== true) throw new Error(`${address} can't be banned`);
    }
  } catch (error) {
    throw new Error(`the bans of the last run are not used (${path}: ${error.message})`, {
      cause: error
    });
  }

  function ban(address, seconds) {
    const banned = limits.ban(address, seconds);
    if (banned !== true) return banned;
    const bans = list().map((one) => ({
      address: one.address,
      end: Date.now() + one.seconds * 1000
    }));
    try {
      writeWhole(path, (put) => put(`${JSON.stringify({ bans })}\n`));
    } catch (error) {
      log.error({ err: error }, "the bans can't be written, and end with this run");
    }
    return true;
  }

  return { ban, list };
}
