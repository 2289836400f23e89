import { positive, problemOf } from './answers.js';
import { callBack } from './call-back.js';
import { readItem, readItems, turnOf } from './feed-items.js';
import { askBy } from './grant.js';

/**
 * @typedef {'idle'|'asking'|'online'|'offline'} FeedsState
 */

/** A type that needs no preflight. */
const TEXT = { 'content-type': 'text/plain;charset=UTF-8' };

/** Most pings in a row that count as answered by a cache: it has kept the pings of few turns. */
const TURNS_AT_ONCE = 8;

/** Longest address that every cache accepts, in characters; a longer request goes as a POST. */
const ADDRESS_MOST = 4000;

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
  #doubt = false; // whether there is contact
  #holdRefused = Infinity; // shortest hold that the server has refused, in seconds
  #openAt = -Infinity; // end of a pause that the server has asked for
  #poll = null; // {since, controller, again} of the current poll; `since` is Infinity while a grant is awaited

  #cached; // whether polls have addresses for a cache
  #direct = false; // the next poll bypasses the cache, which is stale
  /** @type {{path: string, turn: string|undefined}} of the last poll; `path` is without the turn */
  #last = { path: '', turn: undefined };
  #turns = 0; // pings in a row that came from a cache

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
    this.#cached = cached && grant === null;
    this.#table = table;
    this.#requests = requests;
    this.#waits = waits;
    this.#grant = grant;
    this.#limits = limits;
    this.#onState = onState;
  }

  /** Starts, stops or repeats the poll after a change of the watched feeds. */
  changed() {
    if (this.#table.size === 0) return this.#stop();
    if (this.state === 'idle') return this.#start();
    if (this.state !== 'offline') this.#waits.endNap(); // A wait after a failure holds for all feeds.
    return this.#askAgain();
  }

  /** Tries now. A poll that may hang on a dead connection is repeated. See `Feeds.wake`. */
  wake() {
    this.#table.hurry();
    this.#doubt = true;
    this.#waits.endNap();
    const isYoung = this.#poll && this.#waits.now() - this.#poll.since < this.#limits.quick;
    if (!isYoung) this.#askAgain();
  }

  async #start() {
    const run = ++this.#run;
    this.#failures = 0;
    this.#doubt = true;
    this.#become('asking');
    await undefined; // Feeds that the program watches in the same turn share one poll.
    while (run === this.#run) {
      const wait = await this.#step(run);
      if (run === this.#run && wait?.ms > 0) await this.#waits.doze(wait);
    }
  }

  #stop() {
    this.#run += 1;
    this.#waits.nap?.end();
    this.#poll?.controller.abort();
    this.#become('idle');
  }

  #askAgain() {
    if (!this.#poll) return;
    this.#poll.again = true;
    this.#poll.controller.abort();
  }

  #become(state, why) {
    if (state === this.state && why === this.why) return;
    this.state = state;
    this.why = why;
    callBack(this.#onState, state, { why });
  }

  /** @returns {Promise<import('./waits.js').Wait|undefined>} how long to wait before going on */
  async #step(run) {
    const now = this.#waits.now();
    if (this.#openAt > now) return { ms: this.#openAt - now, asked: true };
    const { feeds, count, next } = this.#table.nextPoll();
    if (count === 0) return { ms: next - now };
    const hold = this.#holdUntil(next - now);
    const poll = { since: Infinity, controller: new AbortController(), again: false };
    this.#poll = poll;
    const body = { hold, delta: true, feeds };
    const address = this.#addressOf(body);
    this.#direct = false;
    const answer = await this.#ask(body, poll, address);
    if (this.#poll === poll) this.#poll = null;
    if (run !== this.#run || poll.again) return undefined;

    const took = this.#waits.now() - poll.since;
    const isLong = took >= this.#limits.long;
    if (isLong) {
      this.#failures = 0; // The network has let the poll park,
      this.#grant?.accepted(); // and the server has, too.
    }
    const wasCut = isLong && this.#waits.endLongPoll(answer, took);
    const items = itemsOf(answer, address.key);
    this.#last = { path: address.path, turn: undefined };
    if (items === null && this.#grant?.refused(problemOf(answer))) return undefined;
    if (items === null) return this.#failed(answer, hold, wasCut);
    this.#grant?.accepted();

    this.#doubt = false;
    this.#become('online');
    if (address.path !== '' && items.some((item) => this.#table.isOlder(item))) {
      this.#direct = true;
      this.#failures += 1;
      return { ms: this.#waits.backoff(this.#failures) };
    }
    const isNews = this.#table.take(items, feeds);
    if (run !== this.#run) return undefined;
    const given = turnOf(answer.json);
    this.#last.turn = isNews ? undefined : given;
    const retry = Math.min(positive(answer.json.retry) ?? 0, this.#limits.pauseMost);
    if (retry > 0) this.#openAt = this.#waits.now() + retry;
    if (isNews || retry > 0 || took >= this.#limits.quick) {
      this.#failures = 0;
      this.#turns = 0;
      return undefined;
    }
    // This ping came from a cache. With its turn, the next poll has another address.
    if (given !== undefined && given !== address.turn && (this.#turns += 1) <= TURNS_AT_ONCE) {
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
  #addressOf({ hold, feeds }) {
    const entries = Object.entries(feeds).sort();
    const [key, after] = entries[0];
    const isOne = entries.length === 1;
    const listed = isOne
      ? `/${key}?after=${after}`
      : `s?watch=${entries.map((one) => one.join(':'))}`;
    const path = `${listed}${hold === undefined ? '' : `&hold=${hold}`}&delta=1`;
    if (!this.#cached || this.#direct || path.length > ADDRESS_MOST) return { path: '' };
    const turn = path === this.#last.path ? this.#last.turn : undefined;
    return { path, key: isOne ? key : undefined, turn };
  }

  /** Sends the poll. */
  #ask(body, poll, { path, turn }) {
    const slack = (body.hold ?? this.#limits.holdUnknown) * 1250 + this.#limits.pollSlack;
    const send = (url, init) => {
      poll.since = this.#waits.now();
      return this.#requests.ask(url, init, slack, poll.controller);
    };
    const turned = path + (turn === undefined ? '' : `&turn=${turn}`);
    const text = JSON.stringify(body);
    if (path !== '') return askBy(null, () => send(this.#url.replace(/s$/, turned), {}));
    return askBy(this.#grant, (granted) =>
      send(this.#url, { method: 'POST', headers: { ...TEXT, ...granted }, body: text })
    );
  }

  /**
   * @param {number} next ms until the next feed is due that this poll leaves out; Infinity: there is none
   * @returns {number|undefined} the hold in seconds; undefined: the server chooses
   */
  #holdUntil(next) {
    const { holdLeast, feedHold } = this.#limits;
    const most = this.#doubt ? holdLeast : Math.min(feedHold, this.#waits.holdMost);
    const hold = Math.min(most, Math.max(holdLeast, Math.ceil(next / 1000)));
    return hold < this.#holdRefused ? hold : undefined;
  }

  /** Handles a poll without a usable answer. @returns {import('./waits.js').Wait} */
  #failed({ failure, status, json, retryAfter }, hold, wasCut) {
    const why = failure ?? problemOf({ status, json }) ?? 'garbage';
    this.#failures += 1;
    const wait = this.#waits.after(this.#failures, retryAfter);
    if (why === 'bad-hold' && hold !== undefined) {
      this.#holdRefused = hold; // The server has answered: there is contact.
      return wait;
    }
    if (why === 'bad-cursor') this.#table.forgetCursors();
    // A long poll that was cut off is no proof of lost contact.
    if (!wasCut || this.state !== 'online' || this.#doubt) this.#become('offline', why);
    this.#doubt = true;
    if (wait.asked) this.#openAt = this.#waits.now() + wait.ms;
    return wait;
  }
}
