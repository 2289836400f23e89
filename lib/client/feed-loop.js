import { positive, problemOf } from './answers.js';
import { callBack } from './call-back.js';
import { readItem, readItems, turnOf } from './feed-items.js';
import { sendWithGrant } from './grant.js';

/**
 * @typedef {'idle'|'asking'|'online'|'offline'} FeedsState
 */

/** A type that needs no preflight. */
const PLAIN_TEXT = { 'content-type': 'text/plain;charset=UTF-8' };

/** Most pings in a row that count as answered by a cache: it has kept the pings of few turns. */
const MAX_CACHED_PINGS = 8;

/** Longest address that every cache accepts, in characters; a longer request goes as a POST. */
const MAX_ADDRESS = 4000;

/** Reads the items of an answer; `key`: the feed, if it was requested alone. */
function itemsOf({ status, json }, key) {
  if (key !== undefined) return readItem(key, status, json, problemOf({ status, json }));
  return status === 200 ? readItems(json) : null;
}

/** The loop of polls for all watched feeds, which runs while there are any. */
export class FeedLoop {
  #url;
  #table;
  #requests;
  #waits;
  #limits;
  #onState;
  #grant;

  #run = 0; // counts starts and stops: answers for an older run are ignored
  #failures = 0; // in a row
  #pollFailures = 0; // polls with a hold, in a row
  #isContactDoubtful = false; // a request must prove contact first
  #holdRefused = Infinity; // shortest hold that the server has refused, in seconds
  #pausedUntil = -Infinity; // end of a pause that the server has asked for
  #currentPoll = null; // {since, controller, isAborted}; `since` is Infinity while a grant is awaited

  #usesCache; // whether polls have addresses for a cache
  #bypassCache = false; // the next poll bypasses the cache, which is stale
  /** @type {{path: string, turn: string|undefined}} of the last poll; `path` is without the turn */
  #lastPoll = { path: '', turn: undefined };
  #cachedPings = 0; // pings in a row that came from a cache

  /** @type {FeedsState} */
  state = 'idle';
  /** @type {string|undefined} the reason for this state, if it has one */
  why;

  /**
   * @param {object} parts
   * @param {string} parts.url of POST /feeds
   * @param {boolean} parts.cached there is a cache before the server; with a grant it is bypassed
   * @param {import('./feed-table.js').FeedTable} parts.table
   * @param {import('./requests.js').Requests} parts.requests
   * @param {import('./waits.js').Waits} parts.waits
   * @param {import('./grant.js').Grant | null} parts.grant
   * @param {import('./limits.js').Limits} limits
   * @param {(state: FeedsState, about: {why?: string}) => void} onState
   */
  constructor({ url, cached, table, requests, waits, grant }, limits, onState) {
    this.#url = url;
    this.#usesCache = cached && grant === null;
    this.#table = table;
    this.#requests = requests;
    this.#waits = waits;
    this.#grant = grant;
    this.#limits = limits;
    this.#onState = onState;
  }

  /** Starts, stops or repeats the poll after a change of the watched feeds. */
  updatePoll() {
    if (this.#table.size === 0) return this.#stop();
    if (this.state === 'idle') return this.#start();
    if (this.state !== 'offline') this.#waits.endWait(); // A wait after a failure holds for all feeds.
    return this.#repeatPoll();
  }

  /** Tries now. A poll that may hang on a dead connection is repeated. See `Feeds.wake`. */
  wake() {
    this.#table.endWaits();
    this.#isContactDoubtful = true;
    this.#waits.endWait();
    const isYoung =
      this.#currentPoll && this.#waits.now() - this.#currentPoll.since < this.#limits.quick;
    if (!isYoung) this.#repeatPoll();
  }

  async #start() {
    const run = ++this.#run;
    this.#failures = 0;
    this.#isContactDoubtful = true;
    this.#setState('asking');
    await undefined; // Feeds that the program watches in the same turn share one poll.
    while (run === this.#run) {
      const wait = await this.#step(run);
      if (run === this.#run && wait?.ms > 0) await this.#waits.sleep(wait);
    }
  }

  #stop() {
    this.#run += 1;
    this.#waits.currentWait?.end();
    this.#currentPoll?.controller.abort();
    this.#setState('idle');
  }

  #repeatPoll() {
    if (!this.#currentPoll) return;
    this.#currentPoll.isAborted = true;
    this.#currentPoll.controller.abort();
  }

  #setState(state, why) {
    if (state === this.state && why === this.why) return;
    this.state = state;
    this.why = why;
    callBack(this.#onState, state, { why });
  }

  /** @returns {Promise<import('./waits.js').Wait|undefined>} how long to wait before going on */
  async #step(run) {
    const now = this.#waits.now();
    if (this.#pausedUntil > now) return { ms: this.#pausedUntil - now, asked: true };
    const { feeds, count, next } = this.#table.nextPoll();
    if (count === 0) return { ms: next - now };
    const hold = this.#holdFor(next - now);
    const poll = { since: Infinity, controller: new AbortController(), isAborted: false };
    this.#currentPoll = poll;
    const body = { hold, delta: true, feeds };
    const address = this.#cacheAddressOf(body);
    this.#bypassCache = false;
    const answer = await this.#send(body, poll, address);
    if (this.#currentPoll === poll) this.#currentPoll = null;
    if (run !== this.#run || poll.isAborted) return undefined;

    const parkedTime = this.#waits.now() - poll.since;
    const isLong = parkedTime >= this.#limits.long;
    if (isLong) {
      this.#failures = this.#pollFailures = 0; // The network has let the poll park,
      this.#grant?.noteAccepted(); // and the server has, too.
    }
    const wasCutOff = isLong && this.#waits.noteLongPoll(answer, parkedTime);
    const items = itemsOf(answer, address.key);
    this.#lastPoll = { path: address.path, turn: undefined };
    if (items === null && this.#grant?.noteRefused(problemOf(answer))) return undefined;
    if (items === null) return this.#handleFailure(answer, hold, wasCutOff);
    this.#grant?.noteAccepted();

    this.#isContactDoubtful = false;
    if (hold !== 0) this.#pollFailures = 0;
    this.#setState('online');
    if (address.path !== '' && items.some((item) => this.#table.isOlder(item))) {
      this.#bypassCache = true;
      this.#failures += 1;
      return { ms: this.#waits.backoff(this.#failures) };
    }
    const isNews = this.#table.applyItems(items, feeds);
    if (run !== this.#run) return undefined;
    const nextTurn = turnOf(answer.json);
    this.#lastPoll.turn = isNews ? undefined : nextTurn;
    const retry = Math.min(positive(answer.json.retry) ?? 0, this.#limits.pauseMost);
    if (retry > 0) this.#pausedUntil = this.#waits.now() + retry;
    if (isNews || parkedTime + retry >= this.#limits.quick) {
      this.#failures = 0;
      this.#cachedPings = 0;
      return undefined;
    }
    if (hold === 0) return undefined;
    // This ping came from a cache. With its turn, the next poll has another address.
    if (
      nextTurn !== undefined &&
      nextTurn !== address.turn &&
      (this.#cachedPings += 1) <= MAX_CACHED_PINGS
    ) {
      return undefined;
    }
    // An empty answer should take as long as its hold. A server that answers sooner must not be hammered.
    this.#failures += 1;
    return { ms: this.#waits.backoff(this.#failures) };
  }

  /**
   * @param {{hold?: number, feeds: Record<string, string>}} body
   * @returns {{path: string, key?: string, turn?: string}} `path`: an address for a cache, the same for equal requests;
   *     empty: bypass the cache. `key`: of a feed that is requested alone
   */
  #cacheAddressOf({ hold, feeds }) {
    const entries = Object.entries(feeds).sort();
    const [key, after] = entries[0];
    const isSingle = entries.length === 1;
    const watchedPart = isSingle
      ? `/${key}?after=${after}`
      : `s?watch=${entries.map((one) => one.join(':'))}`;
    const path = `${watchedPart}${hold === undefined ? '' : `&hold=${hold}`}&delta=1`;
    if (!this.#usesCache || this.#bypassCache || path.length > MAX_ADDRESS) return { path: '' };
    const turn = path === this.#lastPoll.path ? this.#lastPoll.turn : undefined;
    return { path, key: isSingle ? key : undefined, turn };
  }

  /** Sends the poll. */
  #send(body, poll, { path, turn }) {
    const timeout = (body.hold ?? this.#limits.holdUnknown) * 1250 + this.#limits.pollSlack;
    const send = (url, init) => {
      poll.since = this.#waits.now();
      return this.#requests.send(url, init, timeout, poll.controller);
    };
    const addressWithTurn = path + (turn === undefined ? '' : `&turn=${turn}`);
    const text = JSON.stringify(body);
    if (path !== '')
      return sendWithGrant(null, () => send(this.#url.replace(/s$/, addressWithTurn), {}));
    return sendWithGrant(this.#grant, (grantHeaders) =>
      send(this.#url, { method: 'POST', headers: { ...PLAIN_TEXT, ...grantHeaders }, body: text })
    );
  }

  /**
   * @param {number} untilNext ms until the next feed is due that this poll leaves out; Infinity: there is none
   * @returns {number|undefined} the hold in seconds; 0: the request proves contact; undefined: the server chooses
   */
  #holdFor(untilNext) {
    const { holdLeast, feedHold, pollTrust } = this.#limits;
    if (this.#isContactDoubtful && this.#pollFailures < pollTrust) return 0;
    const maxHold = this.#isContactDoubtful ? holdLeast : Math.min(feedHold, this.#waits.maxHold);
    const hold = Math.min(maxHold, Math.max(holdLeast, Math.ceil(untilNext / 1000)));
    return hold < this.#holdRefused ? hold : undefined;
  }

  /** Handles a poll without a usable answer. @returns {import('./waits.js').Wait} */
  #handleFailure({ failure, status, json, retryAfter }, hold, wasCutOff) {
    const why = failure ?? problemOf({ status, json }) ?? 'garbage';
    this.#failures += 1;
    const wait = this.#waits.afterFailure(this.#failures, retryAfter);
    if (why === 'bad-hold' && hold !== undefined) {
      this.#isContactDoubtful = false; // The server has answered.
      if (hold > 0) this.#holdRefused = hold;
      return wait;
    }
    if (hold !== 0) this.#pollFailures += 1;
    if (why === 'bad-cursor') this.#table.forgetCursors();
    // A long poll that was cut off is no proof of lost contact.
    if (!wasCutOff || this.state !== 'online' || this.#isContactDoubtful)
      this.#setState('offline', why);
    this.#isContactDoubtful = true;
    if (wait.asked) this.#pausedUntil = this.#waits.now() + wait.ms;
    return wait;
  }
}
