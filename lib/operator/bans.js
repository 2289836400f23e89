import { NotedEnds } from '../base/noted-ends.js';

/**
 * Bans that survive a crash and a restart.
 *
 *     ban/192.0.2.1  ─▶  1763785200000        the end of the ban: see lib/base/noted-ends.js
 *
 * During a run a ban lasts as long as it was made for, whatever the clock says (native/base/address_limits.h).
 */

/** Longest ban, in milliseconds: a clock that was set back makes no ban longer. */
const MAX_BAN_MS = 31_536_000_000;

/** Most bans, as in native/base/address_limits.h. */
const MAX_BANS = 1000;

/** Interval between two looks at the clock, in milliseconds. */
const LOOK_INTERVAL = 60_000;

/**
 * Restores the bans of the last run.
 *
 * @param {object} parts
 * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
 * @param {import('../torus/pool.js').Pool} parts.pool keeps them in its state
 * @param {import('pino').Logger} parts.log
 * @returns {{ban: (address: string, seconds: number) => Promise<boolean | null>, list: AddressLimits['bans'],
 *     close: () => void}} like those of AddressLimits; `ban` resolves when the journal has the ban. A ban that can't be
 *     written is logged, and holds until the end of this run
 */
export function openBans({ limits, pool, log }) {
  const ends = new NotedEnds({ pool, prefix: 'ban/', most: MAX_BANS, onJump: followClock });

  /** Restores the bans that have not ended. A ban that was made while the clock was ahead ends no later for that. */
  function followClock() {
    const now = Date.now();
    const activeEnds = new Map(limits.bans().map((one) => [one.address, now + one.seconds * 1000]));
    for (const [address, end] of ends.current()) {
      const activeEnd = activeEnds.get(address);
      if (activeEnd === undefined)
        limits.ban(address, Math.ceil(Math.min(end - now, MAX_BAN_MS) / 1000));
      else if (activeEnd < end) ends.set(address, activeEnd);
    }
  }

  followClock();
  const timer = setInterval(() => ends.look(), LOOK_INTERVAL).unref();

  return {
    list: () => limits.bans(),
    close: () => clearInterval(timer),
    async ban(address, seconds) {
      const known = limits.ban(address, seconds);
      if (!known) return known;
      const isWritten =
        seconds === 0
          ? await ends.discard(known)
          : ends.makeRoom(known) && (await ends.set(known, Date.now() + seconds * 1000));
      if (!isWritten) log.error({ address }, "the ban can't be written, and may end with this run");
      return true;
    }
  };
}
