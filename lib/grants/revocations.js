import { NotedEnds } from '../base/noted-ends.js';

/**
 * Revocations of grants, by `jti` or by `sub`.
 *
 *     revoked/sub/ann  ─▶   1763785200000        the end of the revocation: see lib/base/noted-ends.js
 *     revoked/sub/bo   ─▶  -1763785200000        a withdrawn revocation, and its end
 *
 * A revocation ends --grant-longest after it was made: all older grants have expired then.
 *
 * Servers of a world exchange their revocations (lib/world/shared-revocations.js). Of two ends of the same name the later
 * one holds; of equal ends the withdrawn one. So all servers agree, in whatever order and however often they receive them.
 */

/** Most revocations, with the withdrawn ones. The oldest withdrawn ones make room. */
const MAX_REVOCATIONS = 10_000;

/** Parts of a grant that can be revoked. */
export const REVOCABLE_PARTS = ['jti', 'sub'];

/** @returns {boolean} whether the end `a` of a revocation replaces `b`; 0: no revocation */
export function isLater(a, b) {
  const [later, earlier] = [Math.abs(a), Math.abs(b)];
  return later === earlier ? a < b : later > earlier;
}

/**
 * Restores the revocations of the last run.
 *
 * @param {object} parts
 * @param {{grantLongest: number}} parts.options seconds
 * @param {import('../torus/pool.js').Pool} parts.pool keeps them in its state
 * @param {import('pino').Logger} parts.log
 */
export function openRevocations({ options, pool, log }) {
  /** Ends of the revocations, by names such as `sub/ann`. */
  const ends = new NotedEnds({ pool, prefix: 'revoked/', most: MAX_REVOCATIONS });
  const longest = options.grantLongest * 1000;
  let shareWithOthers = async () => true;

  function makeRoom(target) {
    if (ends.makeRoom(target)) return true;
    const [withdrawn] = ends.current().find(([, end]) => end < 0) ?? [];
    if (withdrawn !== undefined) ends.discard(withdrawn);
    return withdrawn !== undefined;
  }

  async function store(target, end) {
    if (await ends.set(target, end)) return;
    log.error('a revocation can not be written, and may end with this run');
  }

  async function storeAndShare(target, end) {
    const [isShared] = await Promise.all([shareWithOthers(target, end), store(target, end)]);
    return isShared ? 'done' : 'here-only';
  }

  return {
    /** Longest life of a revocation, in milliseconds. */
    longest,

    /** @returns {boolean} whether a grant is revoked */
    has: (part, name) => name !== undefined && ends.get(`${part}/${name}`) > Date.now(),

    /**
     * @returns {Promise<'too-many' | 'here-only' | 'done'>} resolves when the journal has it; `here-only`: the other servers of
     *     the world get it later
     */
    async add(part, name) {
      const target = `${part}/${name}`;
      if (!makeRoom(target)) return 'too-many';
      return storeAndShare(target, Math.max(Date.now() + longest, Math.abs(ends.get(target)) + 1));
    },

    /** @returns {Promise<'here-only' | 'done'>} */
    async remove(part, name) {
      const target = `${part}/${name}`;
      const end = ends.get(target);
      return end === 0 ? 'done' : storeAndShare(target, -Math.abs(end));
    },

    /** @returns {{sub?: string, jti?: string, seconds: number}[]} all revocations, and the time to their ends */
    list() {
      return ends
        .current()
        .filter(([, end]) => end > 0)
        .map(([target, end]) => ({
          [target.slice(0, 3)]: target.slice(4),
          seconds: Math.ceil((end - Date.now()) / 1000)
        }));
    },

    // ---- Of the world

    /** @param {(target: string, end: number) => Promise<boolean>} sharing tells the other servers; false: they get it later */
    setSharing(sharing) {
      shareWithOthers = sharing;
    },

    /** @returns {number} the end of a revocation; 0: there is none */
    endOf: (target) => ends.get(target),

    /** @returns {Map<string, number>} all ends, by name */
    all: () => new Map(ends.current()),

    /**
     * Takes another server's revocation, if it replaces the known one.
     *
     * @returns {boolean} whether it ends grants
     */
    merge(target, end) {
      if (Math.abs(end) <= Date.now() || !isLater(end, ends.get(target))) return false;
      if (!makeRoom(target)) {
        log.error('a revocation of another server is not taken: there are too many');
        return false;
      }
      store(target, end);
      return end > 0;
    }
  };
}
