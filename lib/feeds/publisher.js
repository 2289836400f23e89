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
    if (['reduced', 'presence'].includes(roleOf(key))) return 'reserved-feed';
    return controls(key) && kind === 'json-patch' ? 'bad-media-type' : undefined;
  }

  return {
    refuses,

    /** @returns {number} the bytes that a publication may have */
    most: (key) => (controls(key) ? arena.commandBytes : options.feedBytes),

    /**
     * @param {string} key isKey
     * @param {'value' | 'json-patch' | 'merge-patch'} kind
     * @param {Uint8Array} body of at most `most(key)` bytes
     * @returns {Promise<{created?: boolean, cursor: string, watching: number} | {problem: string, detail?: string}>}
     */
    async publish(key, kind, body) {
      const problem = refuses(key, kind);
      if (problem !== undefined) return { problem };
      return controls(key) ? arena.command(key, body) : feeds.publish(key, kind, body);
    },

    /** @returns {string | undefined} the problem for which an item is not looked at */
    refusesItem: (key) => (roleOf(key) === undefined ? undefined : 'reserved-feed'),

    /**
     * @param {string} key isKey
     * @param {Uint8Array} body an item, of at most `most(key)` bytes
     * @returns {ReturnType<import('./feeds.js').Feeds['append']>}
     */
    async append(key, body) {
      return roleOf(key) === undefined ? feeds.append(key, body) : { problem: 'reserved-feed' };
    },

    /** @returns {Promise<{problem?: string}>} */
    async remove(key) {
      return roleOf(key) === undefined ? feeds.remove(key) : { problem: 'reserved-feed' };
    }
  };
}
