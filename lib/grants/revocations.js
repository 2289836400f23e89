/**
 * The grants that were revoked, by their `jti` or their `sub`, as a state keeps them: a note each (native/store/shelf.h), so
 * that neither a crash nor a restart ends one.
 *
 *     revoked/sub/ann  ─▶   1763785200000        when it ends, in milliseconds since 1970
 *     revoked/sub/bo   ─▶  -1763785200000        it would have ended then, and was taken back
 *
 * It ends when no grant of before can be alive: --grant-longest after it was made.
 *
 * Servers of a world tell each other of each (lib/world/shared-revocations.js). Of two ends of the same name the later one
 * holds; of the same end that it was taken back. So all come to the same, in whatever order and how often they hear of it.
 */

const NAME = 'revoked/';

/** Revocations, at most, with those that were taken back; the oldest of these make room. */
const MOST = 10_000;

/** What can be revoked. */
export const PARTS = ['jti', 'sub'];

/** @returns {boolean} whether the end `a` of a revocation holds, and not `b`; 0: there is none */
export function isLater(a, b) {
  const [later, earlier] = [Math.abs(a), Math.abs(b)];
  return later === earlier ? a < b : later > earlier;
}

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
  let share = async () => true;
  for (const [what, end] of pool.notes(NAME)) ends.set(what, Number(end));
  forgetOld();

  function forget(what) {
    ends.delete(what);
    pool.unnote(NAME + what);
  }

  function forgetOld() {
    const now = Date.now();
    for (const [what, end] of ends) if (Math.abs(end) <= now) forget(what);
  }

  function hasRoom(what) {
    if (ends.has(what) || ends.size < MOST) return true;
    forgetOld();
    if (ends.size < MOST) return true;
    const [takenBack] = [...ends].find(([, end]) => end < 0) ?? [];
    if (takenBack !== undefined) forget(takenBack);
    return takenBack !== undefined;
  }

  async function keep(what, end) {
    ends.set(what, end);
    let kept = pool.note(NAME + what, String(end));
    try {
      await pool.endTurn();
    } catch {
      // Unanswerable: it may be written later.
      kept = false;
    }
    if (!kept) log.error('a revocation can not be written, and may end with this run');
  }

  async function keepAndShare(what, end) {
    const [isShared] = await Promise.all([share(what, end), keep(what, end)]);
    return isShared ? 'done' : 'here-only';
  }

  return {
    /** How long one lasts at the most, milliseconds. */
    longest,

    /** @returns {boolean} whether it is revoked */
    has: (part, name) => name !== undefined && ends.get(`${part}/${name}`) > Date.now(),

    /**
     * @returns {Promise<'too-many' | 'here-only' | 'done'>} when it is in the journal; `here-only`: the other servers of the
     *     world hear of it later
     */
    async add(part, name) {
      const what = `${part}/${name}`;
      if (!hasRoom(what)) return 'too-many';
      return keepAndShare(what, Math.max(Date.now() + longest, Math.abs(ends.get(what) ?? 0) + 1));
    },

    /** @returns {Promise<'here-only' | 'done'>} */
    async remove(part, name) {
      const what = `${part}/${name}`;
      const end = ends.get(what);
      return end === undefined ? 'done' : keepAndShare(what, -Math.abs(end));
    },

    /** @returns {{sub?: string, jti?: string, seconds: number}[]} each, and how long it lasts */
    list() {
      forgetOld();
      return [...ends]
        .filter(([, end]) => end > 0)
        .map(([what, end]) => ({
          [what.slice(0, 3)]: what.slice(4),
          seconds: Math.ceil((end - Date.now()) / 1000)
        }));
    },

    // ---- Of the world

    /** @param {(what: string, end: number) => Promise<boolean>} sharing tells the other servers; false: they hear of it later */
    shareBy(sharing) {
      share = sharing;
    },

    /** @returns {number} the end of one; 0: there is none */
    endOf: (what) => ends.get(what) ?? 0,

    /** @returns {Map<string, number>} the ends there are */
    all() {
      forgetOld();
      return ends;
    },

    /**
     * Takes what another server says, where it is later than what is known.
     *
     * @returns {boolean} whether grants end by it
     */
    take(what, end) {
      if (Math.abs(end) <= Date.now() || !isLater(end, ends.get(what) ?? 0)) return false;
      if (!hasRoom(what)) {
        log.error('a revocation of another server is not taken: there are too many');
        return false;
      }
      keep(what, end);
      return end > 0;
    }
  };
}
