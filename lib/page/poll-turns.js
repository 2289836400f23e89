/**
 * The polls of all tabs of one browser take turns. A browser opens six connections to a host over
 * HTTP/1.1; a parked poll keeps one, and with six of them parked no throw gets through. So all tabs
 * together park four, and the fifth waits until one makes way.
 *
 *     tab ─ poll ─▶ [ slot 0 ] [ slot 1 ] [ slot 2 ] [ slot 3 ]   four Web Locks
 *                       ▲ parked until it is answered; or, where another tab waits for
 *                       └ the slot, for TURN ms: then it is given up, and waits itself; but
 *                         once its hold is over it stays for its ping, which says that there is contact
 *
 * Each tab keeps its place, its id and its acks; only the time in which its poll is parked is
 * shared. What comes for a tab that waits lies in its mailbox, and is there at its next turn. A tab
 * that is closed or dies loses its locks at once, so that no tab has to be elected, or noticed to be gone.
 *
 * Locks need a page that browsers call secure: https, or localhost. On another page, and over
 * HTTP/2, which has one connection for all requests, polls are just sent.
 *
 * Rejected: one tab that polls for all (a tab in the background sleeps; every sprite of one would
 * cost all the others a new poll; the server would have to know of it).
 */

const SLOTS = ['sprites.poll.0', 'sprites.poll.1', 'sprites.poll.2', 'sprites.poll.3'];
const TURN = 1000; // ms that a poll may stay parked though another tab waits
const SHORT_HOLD = 5; // seconds, where one waits: a tab in the background may sleep over its turn

export class PollTurns {
  #channel = new BroadcastChannel('sprites.polls');
  /** What is parked: in which slot, and how it makes way. */
  #parked = null;

  constructor() {
    this.#channel.onmessage = ({ data }) => {
      if (data?.wanted === this.#parked?.slot) this.#parked?.makeWay();
    };
  }

  /** @returns {Promise<boolean>} whether the tabs of this browser have to take turns, and can */
  static async needed() {
    const protocol = performance.getEntriesByType('navigation')[0]?.nextHopProtocol ?? '';
    if (/^h[23]/.test(protocol) || typeof BroadcastChannel !== 'function') return false;
    try {
      await navigator.locks.query();
      return true;
    } catch {
      return false; // There are none here, or they are forbidden, as storage is.
    }
  }

  /**
   * A fetch for the client.
   *
   * @param {string} href
   * @param {RequestInit & {signal: AbortSignal}} init
   * @returns {Promise<Response>}
   */
  fetch = (href, init) => {
    const url = new URL(href);
    return /\/poll\/[^/]+$/.test(url.pathname) ? this.#poll(url, init) : fetch(href, init);
  };

  /** Polls in turns, until there is an answer. */
  async #poll(url, init) {
    const hold = Number(url.searchParams.get('hold'));
    const end = hold ? performance.now() + hold * 1000 : Infinity;
    for (;;) {
      const { slot, release } = await this.#turn(init.signal);
      try {
        const left = Math.ceil((end - performance.now()) / 1000);
        if (hold) url.searchParams.set('hold', Math.max(SHORT_HOLD, left));
        const response = await this.#park(url, init, left > 0 ? slot : null);
        if (response) return response;
      } finally {
        release();
      }
    }
  }

  /** Waits for a slot. @returns {Promise<{slot: string, release: () => void}>} */
  async #turn(signal) {
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
   * @param {string|null} slot to make way in; null: it stays
   * @returns {Promise<Response|null>} null: it has made way for another tab
   */
  async #park(url, init, slot) {
    const { signal } = init;
    const since = performance.now();
    const controller = new AbortController();
    const abort = () => controller.abort();
    signal.addEventListener('abort', abort);
    let timer = 0;
    let madeWay = false;
    const makeWay = () => {
      clearTimeout(timer);
      timer = setTimeout(
        () => {
          madeWay = true;
          abort();
        },
        Math.max(0, TURN - (performance.now() - since))
      );
    };
    this.#parked = { slot, makeWay };
    try {
      const { pending } = await navigator.locks.query();
      if (pending.some(({ name }) => name === slot)) {
        if (url.searchParams.has('hold')) url.searchParams.set('hold', SHORT_HOLD);
        makeWay();
      }
      signal.throwIfAborted();
      return await fetch(url.href, { ...init, signal: controller.signal });
    } catch (error) {
      if (madeWay && !signal.aborted) return null;
      throw error;
    } finally {
      clearTimeout(timer);
      this.#parked = null;
    }
  }
}

/**
 * Takes a lock.
 *
 * @param {string} name
 * @param {LockOptions} options
 * @returns {Promise<(() => void)|null>} what gives it back; null where it is not available
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
