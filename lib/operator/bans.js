/**
 * Bans that survive a crash and a restart. The state keeps each ban as a note (native/store/feeds_and_notes.h).
 *
 *     ban/192.0.2.1  ─▶  1763785200000        the end of the ban, in milliseconds since 1970
 */

/** Longest ban, in milliseconds: a clock that was set back makes no ban longer. */
const MAX_BAN_MS = 31_536_000_000;

const NOTE_PREFIX = 'ban/';

/** Largest difference of two ends that count as equal, in milliseconds: seconds are rounded. */
const END_TOLERANCE = 2000;

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
  for (const [address, end] of pool.notes(NOTE_PREFIX)) {
    const seconds = Math.ceil(Math.min(Number(end) - Date.now(), MAX_BAN_MS) / 1000);
    if (seconds > 0) limits.ban(address, seconds);
  }

  async function ban(address, seconds) {
    const outcome = limits.ban(address, seconds);
    if (outcome !== true) return outcome;
    const notedEnds = new Map(pool.notes(NOTE_PREFIX).map(([known, end]) => [known, Number(end)]));
    let isWritten = true;
    for (const activeBan of list()) {
      const end = Date.now() + activeBan.seconds * 1000;
      const isNoted = Math.abs(notedEnds.get(activeBan.address) - end) <= END_TOLERANCE;
      if (!isNoted)
        isWritten = pool.note(NOTE_PREFIX + activeBan.address, String(end)) && isWritten;
      notedEnds.delete(activeBan.address);
    }
    for (const endedAddress of notedEnds.keys())
      isWritten = pool.removeNote(NOTE_PREFIX + endedAddress) && isWritten;
    try {
      await pool.endTurn();
    } catch {
      // Unanswerable: the journal may be written later.
      isWritten = false;
    }
    if (!isWritten) log.error({ address }, "the ban can't be written, and may end with this run");
    return true;
  }

  return { ban, list };
}
