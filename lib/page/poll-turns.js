/**
 * Turns of the polls of all tabs of one browser. Over HTTP/1.1 a browser opens six connections to a
 * host. A parked poll occupies one, and with six parked polls no throw gets through. So all tabs
 * together park four polls, and a fifth tab waits until another one gives up its slot.
 *
 *     tab ─ poll ─▶ [ slot 0 ] [ slot 1 ] [ slot 2 ] [ slot 3 ]   four Web Locks
 *                       ▲ parked until it is answered. While another tab waits for the slot:
 *                       └ parked for TURN_TIME; then this tab waits itself. But once its hold
 *                         is over, the poll stays for its ping, which proves contact.
 *
 * Each tab keeps its place, its id and its acks; only the time of parking is shared. Sprites for a
 * tab that waits lie in its mailbox until its next turn. A tab that is closed or crashes loses its
 * locks at once. So no leader is elected, and no lost tab has to be detected.
 *
 * Web Locks need a secure context: https, or localhost. On other pages polls are just sent, and
 * also over HTTP/2, which has one connection for all requests.
 *
 * Rejected: one tab that polls for all. A tab in the background sleeps; each sprite for one tab would
 * cost all the others a new poll; the server would have to know of it.
 */

const SLOTS = ['sprites.poll.0', 'sprites.poll.1', 'sprites.poll.2', 'sprites.poll.3'];
const TURN_TIME = 1000; // ms for which a poll stays parked while another tab waits
const SHORT_HOLD = 5; // hold in seconds while another tab waits: a background tab's timers may be late

export class PollTurns {
  #channel = new BroadcastChannel('sprites.polls');
  /** The parked poll: its slot, and the function that gives the slot up. */
  #parked = null;

  constructor() {
    this.#channel.onmessage = ({ data }) => {
      if (data?.wanted === this.#parked?.slot) this.#parked?.giveUpSlot();
    };
  }

  /** @returns {Promise<boolean>} whether the tabs of this browser must take turns, and can */
  static async isNeeded() {
    const protocol = performance.getEntriesByType('navigation')[0]?.nextHopProtocol ?? '';
    if (/^h[23]/.test(protocol) || typeof BroadcastChannel !== 'function') return false;
    try {
      await navigator.locks.query();
      return true;
    } catch {
      return false; // Locks are missing here, or forbidden together with storage.
    }
  }

  /**
   * The client's `fetch`: polls take turns, other requests are just sent.
   *
   * @param {string} href
   * @param {RequestInit & {signal: AbortSignal}} init
   * @returns {Promise<Response>}
   */
  fetch = (href, init) => {
    const url = new URL(href);
    return /\/poll\/[^/]+$/.test(url.pathname) ? this.#poll(url, init) : fetch(href, init);
  };

  /** Polls, turn after turn, until there is an answer. */
  async #poll(url, init) {
    const hold = Number(url.searchParams.get('hold'));
    const end = hold ? performance.now() + hold * 1000 : Infinity;
    for (;;) {
      const { slot, release } = await this.#acquireSlot(init.signal);
      try {
        const secondsLeft = Math.ceil((end - performance.now()) / 1000);
        if (hold) url.searchParams.set('hold', Math.max(SHORT_HOLD, secondsLeft));
        const response = await this.#park(url, init, secondsLeft > 0 ? slot : null);
        if (response) return response;
      } finally {
        release();
      }
    }
  }

  /** Waits for a slot. @returns {Promise<{slot: string, release: () => void}>} */
  async #acquireSlot(signal) {
    for (const slot of SLOTS) {
      const release = await acquire(slot, { ifAvailable: true });
      if (release) return { slot, release };
    }
    const { pending } = await navigator.locks.query();
    const queue = (slot) => pending.filter(({ name }) => name === slot).length;
    const slot = SLOTS.toSorted((a, b) => queue(a) - queue(b) || Math.random() - 0.5)[0];
    const acquired = acquire(slot, { signal });
    this.#channel.postMessage({ wanted: slot });
    return { slot, release: await acquired };
  }

  /**
   * Parks a poll.
   *
   * @param {string|null} slot the slot to give up when another tab wants it; null: the poll stays
   * @returns {Promise<Response|null>} null: the poll was aborted for another tab
   */
  async #park(url, init, slot) {
    const { signal } = init;
    const since = performance.now();
    const controller = new AbortController();
    const abort = () => controller.abort();
    signal.addEventListener('abort', abort);
    let timer = 0;
    let hasGivenUp = false;
    const giveUpSlot = () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => {
          hasGivenUp = true;
          abort();
        },
        Math.max(0, TURN_TIME - (performance.now() - since))
      );
    };
    this.#parked = { slot, giveUpSlot };
    try {
      const { pending } = await navigator.locks.query();
      if (pending.some(({ name }) => name === slot)) {
        if (url.searchParams.has('hold')) url.searchParams.set('hold', SHORT_HOLD);
        giveUpSlot();
      }
      signal.throwIfAborted();
      // The answer's body can still be aborted: the listener stays.
      return await fetch(url.href, { ...init, signal: controller.signal });
    } catch (error) {
      signal.removeEventListener('abort', abort);
      if (hasGivenUp && !signal.aborted) return null;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#parked = null;
    }
  }
}

/**
 * Acquires a lock.
 *
 * @param {string} name
 * @param {LockOptions} options
 * @returns {Promise<(() => void)|null>} a function that releases the lock; null where it is not available
 */
function acquire(name, options) {
  return new Promise((resolve, reject) => {
    navigator.locks
      .request(name, options, (lock) => {
        if (!lock) return resolve(null);
        return new Promise((release) => resolve(() => release(undefined)));
      })
      .catch(reject);
  });
}
