import { PRESENCE } from './names.js';

/**
 * What may be published, by every publisher: a client with a token (routes.js), or the program that the server is in
 * (lib/server/program.js). Only the arena publishes its feeds; its control takes commands. Presence is the server's.
 *
 * @param {object} parts
 * @param {import('./feeds.js').Feeds} parts.feeds
 * @param {import('../arena/arena.js').Arena} [parts.arena] where there is one
 * @param {{feedBytes: number}} parts.options
 */
export function openPublisher({ feeds, arena, options }) {
  const roleOf = (key) => (key.startsWith(PRESENCE) ? 'presence' : arena?.owns(key));
  const controls = (key) => roleOf(key) === 'control';

  /** @returns {string | undefined} the problem for which a publication is not looked at */
  function refuses(key, kind) {
    const role = roleOf(key);
    if (role !== undefined && (role !== 'control' || kind === 'item')) return 'reserved-feed';
    return role === 'control' && kind === 'json-patch' ? 'bad-media-type' : undefined;
  }

  return {
    refuses,

    /** @returns {number} the bytes that a publication may have */
    most: (key) => (controls(key) ? arena.commandBytes : options.feedBytes),

    /** @returns {string} the problem of one that has more */
    tooLarge: (kind) => (kind === 'item' ? 'item-too-large' : 'feed-too-large'),

    /**
     * @param {string} key isKey
     * @param {'value' | 'json-patch' | 'merge-patch' | 'item'} kind
     * @param {Uint8Array} body of at most `most(key)` bytes
     * @returns {Promise<{created?: boolean, cursor: string, watching: number} | {problem: string, detail?: string}>}
     */
    async publish(key, kind, body) {
      const problem = refuses(key, kind);
      if (problem !== undefined) return { problem };
      if (kind === 'item') return feeds.append(key, body);
      return controls(key) ? arena.command(key, body) : feeds.publish(key, kind, body);
    },

    /** @returns {Promise<{problem?: string}>} */
    async remove(key) {
      return roleOf(key) === undefined ? feeds.remove(key) : { problem: 'reserved-feed' };
    }
  };
}
