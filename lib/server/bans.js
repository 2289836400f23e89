/**
 * The bans, as a state keeps them: a note each (native/pool/shelf.h), so that neither a crash nor a restart
 * ends one.
 *
 *     ban/192.0.2.1  ─▶  1763785200000        when it ends, in milliseconds since 1970
 */

/** The longest there are, in milliseconds: a clock that was set back makes none longer. */
const LONGEST = 31_536_000_000;

const NAME = 'ban/';

/** Milliseconds by which two ends differ that are one: seconds are rounded. */
const SAME = 2000;

/**
 * Takes over the bans of the last run.
 *
 * @param {object} parts
 * @param {import('./address-limits.js').AddressLimits} parts.limits
 * @param {import('./pool.js').Pool} parts.pool whose state keeps them
 * @param {import('pino').Logger} parts.log
 * @returns {{ban: (address: string, seconds: number) => Promise<boolean | null>, list: AddressLimits['bans']}} as those
 *     of AddressLimits; `ban` resolves when it is in the journal. A ban that can't be written holds all the same,
 *     until the end of this run, which is logged
 */
export function openBans({ limits, pool, log }) {
  const list = () => limits.bans();
  for (const [address, end] of pool.notes(NAME)) {
    const seconds = Math.ceil(Math.min(Number(end) - Date.now(), LONGEST) / 1000);
    if (seconds > 0) limits.ban(address, seconds);
  }

  async function ban(address, seconds) {
    const banned = limits.ban(address, seconds);
    if (banned !== true) return banned;
    const noted = new Map(pool.notes(NAME).map(([known, end]) => [known, Number(end)]));
    let written = true;
    for (const one of list()) {
      const end = Date.now() + one.seconds * 1000;
      const isNoted = Math.abs(noted.get(one.address) - end) <= SAME;
      if (!isNoted) written = pool.note(NAME + one.address, String(end)) && written;
      noted.delete(one.address);
    }
    for (const over of noted.keys()) written = pool.unnote(NAME + over) && written;
    try {
      await pool.endTurn();
    } catch {
      // Unanswerable: it may be written later.
      written = false;
    }
    if (!written) log.error({ address }, "the ban can't be written, and may end with this run");
    return true;
  }

  return { ban, list };
}
