import { PRESENCE } from './names.js';

/**
 * The rules for every publisher: a client with a token (routes.js), and the program that runs the server
 * (lib/server/program.js). Only the arena publishes its feeds; its control feed accepts commands. Only the server publishes
 * presence feeds.
 *
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} [parts.arena] absent without --arena
 * @param {{feedBytes: number}} parts.options
 */
export function openPublisher({ feeds, arena, options }) {
  const roleOf = (key) => (key.startsWith(PRESENCE) ? 'presence' : arena?.feedRole(key));
  const isControl = (key) => roleOf(key) === 'control';

  /** @returns {string | undefined} the problem with which a publication is refused before its body is read */
  function refusalOf(key, kind) {
    const role = roleOf(key);
    if (role !== undefined && (role !== 'control' || kind === 'item')) return 'reserved-feed';
    return role === 'control' && kind === 'json-patch' ? 'bad-media-type' : undefined;
  }

  return {
    refusalOf,

    /** @returns {number} largest body of a publication, in bytes */
    maxBodyBytes: (key) => (isControl(key) ? arena.commandBytes : options.feedBytes),

    /** @returns {string} the problem of a larger body */
    tooLargeProblem: (kind) => (kind === 'item' ? 'item-too-large' : 'feed-too-large'),

    /**
     * @param {string} key isKey
     * @param {'value' | 'json-patch' | 'merge-patch' | 'item'} kind
     * @param {Uint8Array} body of at most `maxBodyBytes(key)` bytes
     * @returns {Promise<{created?: boolean, cursor: string, watching: number} | {problem: string, detail?: string}>}
     */
    async publish(key, kind, body) {
      const problem = refusalOf(key, kind);
      if (problem !== undefined) return { problem };
      if (kind === 'item') return feeds.append(key, body);
      return isControl(key) ? arena.command(key, body) : feeds.publish(key, kind, body);
    },

    /** @returns {Promise<{problem?: string}>} */
    async remove(key) {
      return roleOf(key) === undefined ? feeds.remove(key) : { problem: 'reserved-feed' };
    }
  };
}
