/**
 * Bans that survive a crash and a restart. The state keeps each ban as a note (native/store/feeds_and_notes.h).
 *
 *     ban/192.0.2.1  ─▶  1763785200000        the end of the ban, in milliseconds since 1970
 */

/** Longest ban, in milliseconds: a clock that was set back makes no ban longer. */
const LONGEST = 31_536_000_000;

const NAME = 'ban/';

/** Largest difference of two ends that count as equal, in milliseconds: seconds are rounded. */
const SAME = 2000;

/**
 * Restores the bans of the last run.
 *
 * @param {object} parts
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {import('../torus/pool.js').Pool} parts.pool keeps them in its state
 * @param {import('pino').Logger} parts.log
 * @returns {{ban: (address: string, seconds: number) => Promise<boolean | null>, list: AddressLimits['bans']}} like those
 *     of AddressLimits; `ban` resolves when the journal has the ban. A ban that can't be written is logged, and holds
 *     until the end of this run
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
      // Unanswerable: the journal may be written later.
      written = false;
    }
    if (!written) log.error({ address }, "the ban can't be written, and may end with this run");
    return true;
  }

  return { ban, list };
}
