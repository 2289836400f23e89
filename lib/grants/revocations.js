/**
 * The grants that were revoked, by their `jti` or their `sub`, as a state keeps them: a note each (native/store/shelf.h), so
 * that neither a crash nor a restart ends one.
 *
 *     revoked/sub/ann  ─▶  1763785200000        when it ends, in milliseconds since 1970
 *
 * It ends when no grant of before can be alive: --grant-longest after it was made.
 */

const NAME = 'revoked/';

/** Revocations, at most. */
const MOST = 10_000;

/** What can be revoked. */
export const PARTS = ['jti', 'sub'];

/**
 * Takes over the revocations of the last run.
 *
 * @param {object} parts
 * @param {{grantLongest: number}} parts.options seconds
 * @param {import('../torus/pool.js').Pool} parts.pool whose state keeps them
 * @param {import('pino').Logger} parts.log
 */
export function openRevocations({ options, pool, log }) {
  /** When each ends, by `sub/ann`. @type {Map<string, number>} */
  const ends = new Map();
  const longest = options.grantLongest * 1000;
  for (const [what, end] of pool.notes(NAME)) ends.set(what, Number(end));
  forgetOld();

  function forgetOld() {
    for (const [what, end] of ends) {
      if (end > Date.now()) continue;
      ends.delete(what);
      pool.unnote(NAME + what);
    }
  }

  async function written(done) {
    let kept = done;
    try {
      await pool.endTurn();
    } catch {
      // Unanswerable: it may be written later.
      kept = false;
    }
    if (!kept) log.error('a revocation can not be written, and may end with this run');
  }

  return {
    /** @returns {boolean} whether it is revoked */
    has: (part, name) => name !== undefined && ends.get(`${part}/${name}`) > Date.now(),

    /** @returns {Promise<boolean>} false where there are too many; else it is in the journal */
    async add(part, name) {
      const what = `${part}/${name}`;
      forgetOld();
      if (ends.size >= MOST && !ends.has(what)) return false;
      const end = Date.now() + longest;
      ends.set(what, end);
      await written(pool.note(NAME + what, String(end)));
      return true;
    },

    async remove(part, name) {
      const what = `${part}/${name}`;
      if (ends.delete(what)) await written(pool.unnote(NAME + what));
    },

    /** @returns {{sub?: string, jti?: string, seconds: number}[]} each, and how long it lasts */
    list() {
      forgetOld();
      return [...ends].map(([what, end]) => ({
        [what.slice(0, 3)]: what.slice(4),
        seconds: Math.ceil((end - Date.now()) / 1000)
      }));
    }
  };
}
