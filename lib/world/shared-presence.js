import { isKey, PRESENCE, countedKey } from '../feeds/names.js';
import { isName } from '../grants/rights.js';

/**
 * The watchers of a feed at the other servers of a world.
 *
 *     sprites.presence.a ─▶ {"key":"presence/scores","asks":true,"watching":12,"who":["ann"]}
 *
 * A server with a presence feed asks the others every few seconds. A server that is asked sends its share, at once and after
 * each change; native/feeds/presence.h decides when and what. A lost share is sent again with the next question. A share is
 * valid while the process that sent it has its lease.
 */

/** Most names in a share, as in native/feeds/presence.h. */
const MAX_NAMES_IN_SHARE = 100;

/** Returns whether a message has a valid share: `watching` has 32 bits. */
const isShare = ({ watching, who }) =>
  watching === watching >>> 0 &&
  Array.isArray(who) &&
  who.length <= MAX_NAMES_IN_SHARE &&
  who.every(isName);

/** @returns {{key: string, asks?: boolean, watching?: number, who?: string[]} | undefined} undefined for an invalid message */
function parse(message) {
  let parsed;
  try {
    parsed = JSON.parse(Buffer.from(message).toString());
  } catch {
    return undefined;
  }
  return isKey(parsed?.key) && parsed.key.startsWith(PRESENCE) ? parsed : undefined;
}

export class SharedPresence {
  #native;
  #isShared;
  /**
   * The other servers, with the epochs of their leases. Undefined: this server is not in the ring. Its name may then belong
   * to another server, so that it sends nothing.
   *
   * @type {Map<string, {epoch: number}> | undefined}
   */
  #peers;

  /**
   * @param {object} parts
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {(key: string) => boolean} parts.isShared returns whether a feed is the world's
   * @param {(message: Buffer) => void} parts.send sends a message to all servers; it may get lost
   */
  constructor({ feeds, isShared, send }) {
    this.#native = feeds.native;
    this.#isShared = isShared;
    feeds.onPresence(({ key, asks, share }) => {
      if (!this.#peers || !isShared(countedKey(key))) return;
      send(Buffer.from(JSON.stringify({ key, asks, ...share })));
    });
  }

  /**
   * Forgets the shares of servers that have left, and all shares where this server is no member.
   *
   * @param {import('./ring.js').View} view
   */
  update({ state, peers }) {
    const currentPeers = ['member', 'leaving'].includes(state) ? peers : undefined;
    for (const [name, { epoch }] of this.#peers ?? []) {
      if (currentPeers?.get(name)?.epoch !== epoch) this.#native.removeShares(name);
    }
    this.#peers = currentPeers;
  }

  /**
   * @param {string} from the sender
   * @param {Uint8Array} message
   */
  receive(from, message) {
    if (!this.#peers?.has(from)) return;
    const parsed = parse(message);
    if (parsed === undefined || !this.#isShared(countedKey(parsed.key))) return;
    if (parsed.asks === true) this.#native.answerShareRequest(parsed.key);
    if (isShare(parsed)) this.#native.setShare(from, parsed);
  }
}
