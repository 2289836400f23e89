import { callBack } from './call-back.js';
import { sendWithGrant } from './grant.js';
import { positive, problemOf, readEntries, readPlace } from './answers.js';
import { ignoreFailure } from './requests.js';

/**
 * @typedef {'left'|'joining'|'online'|'offline'|'superseded'} State
 *
 * @typedef {import('./waits.js').Wait} Wait
 *
 * @typedef {(sprite: any, entry: {from: string, seq: number}) => unknown} OnSprite
 */

/**
 * The loop of a client, which sends one request after the other: a join, a poll or, in doubt about
 * the contact, a proof of contact.
 */
export class Loop {
  #place;
  #requests;
  #waits;
  #limits;
  #onSprite;
  #onState;

  #failures = 0; // in a row
  #pollFailures = 0; // polls, in a row
  #strayMisses = 0; // 404 in a row not from a Sprites server
  #needsProof = false; // whether a proof of contact comes first
  #nextPollAt = 0; // end of a pause that the server has asked for
  /** The wait before the next request, after the place was lost. @type {Wait | undefined} */
  #waitAfterLoss;
  #controller = null; // AbortController of the current request
  #parkedPoll = null; // {since, isAborted} of the parked poll

  /** The grant for joining. @type {import('./grant.js').Grant | null} */
  grant = null;
  /** Counts starts and stops: answers for an older run are ignored. */
  run = 0;
  /** @type {State} */
  state = 'left';
  /** @type {string|undefined} the reason for this state, if it has one */
  why;

  /**
   * @param {object} parts
   * @param {import('./place.js').Place} parts.place
   * @param {import('./world-requests.js').WorldRequests} parts.requests
   * @param {import('./waits.js').Waits} parts.waits
   * @param {import('./limits.js').Limits} parts.limits
   * @param {OnSprite} parts.onSprite
   * @param {(state: State, about: {why?: string}) => void} parts.onState
   */
  constructor({ place, requests, waits, limits, onSprite, onState }) {
    this.#place = place;
    this.#requests = requests;
    this.#waits = waits;
    this.#limits = limits;
    this.#onSprite = onSprite;
    this.#onState = onState;
  }

  /** @returns {boolean} whether a poll is parked */
  get isPollParked() {
    return this.#parkedPoll !== null;
  }

  /** Runs until `halt`. */
  async start() {
    this.run += 1;
    const { run } = this;
    this.#failures = 0;
    this.#pollFailures = 0;
    this.#nextPollAt = 0;
    this.#waitAfterLoss = undefined;
    this.#needsProof = this.#place.id !== null;
    this.setState('joining');
    while (run === this.run) {
      const wait = await this.#step(run);
      if (run === this.run && wait && wait.ms > 0) await this.#waits.sleep(wait);
    }
  }

  /** Ends the loop, its wait and its request. @param {{keepPoll?: boolean}} [options] keepPoll: a poll goes on */
  halt({ keepPoll = false } = {}) {
    this.run += 1;
    this.#waits.currentWait?.end();
    if (!keepPoll || !this.#parkedPoll) this.#controller?.abort();
  }

  /** Tries now. A poll that may hang on a dead connection is repeated. See `Client.wake`. */
  wake() {
    if (!this.#waits.currentWait?.isFull) this.#needsProof = this.#place.id !== null;
    this.#waits.endWait();
    if (this.#parkedPoll && this.#waits.now() - this.#parkedPoll.since >= this.#limits.quick)
      this.#repeatPoll();
  }

  /**
   * Forgets a place that the server does not know, and joins again after a wait. Throws from the old place end by
   * themselves.
   *
   * @param {string|null} id of that place; any other is ignored
   * @param {string} why
   */
  forgetPlace(id, why) {
    if (this.#place.id !== id) return;
    this.losePlace();
    this.#waitAfterLoss = this.#waitAfterFailure();
    if (this.state !== 'left') this.setState('joining', why);
    this.#waits.endWait();
    if (this.#parkedPoll) this.#repeatPoll();
  }

  /** Forgets the place. */
  losePlace() {
    this.#place.clear();
    this.#strayMisses = 0;
    this.#nextPollAt = 0;
    this.#needsProof = false;
  }

  /**
   * @param {State} state
   * @param {string} [why]
   */
  setState(state, why) {
    if (state === this.state && why === this.why) return;
    this.state = state;
    this.why = why;
    this.#waits.recheck();
    callBack(this.#onState, state, { why });
  }

  // ---- requests ----

  /** @returns {Promise<Wait|undefined>} how long to wait before going on */
  async #step(run) {
    const wait = this.#waitAfterLoss;
    this.#waitAfterLoss = undefined;
    if (wait) return wait;
    if (!this.#place.id) return this.#joinOnce(run);
    if (this.#needsProof) return this.#proveOnce(run);
    const pause = this.#nextPollAt - this.#waits.now();
    return pause > 0 ? { ms: pause } : this.#pollOnce(run);
  }

  async #joinOnce(run) {
    const url = this.#place.url('join');
    const answer = await this.#send(url, 'POST', undefined, this.grant);
    if (run !== this.run) return undefined;
    if (answer.failure) return this.#handleNoContact(answer.failure);
    if (this.grant?.noteRefused(problemOf(answer))) return undefined;
    if (answer.status !== 201 || !this.#place.acceptJoin(answer.json))
      return this.#handleRefusal(answer);
    this.grant?.noteAccepted();
    this.#waits.maxHold = Infinity;
    this.#needsProof = false;
    this.#pollFailures = 0;
    this.#delayPoll(answer.json.retry);
    this.setState('online');
    this.#place.reportResume();
    return undefined;
  }

  /** Proves contact, and that the place is still this client's, by a request that is answered at once. */
  async #proveOnce(run) {
    const { id } = this.#place;
    const url = this.#place.url(`place/${id}`);
    const answer = await this.#send(url, 'GET', this.#limits.proofTimeout);
    if (run !== this.run || id !== this.#place.id) return undefined;
    if (answer.failure) return this.#handleNoContact(answer.failure);
    if (answer.status === 404)
      return this.#handleNotFound(answer) ? undefined : this.#handleNoContact('garbage');
    this.#strayMisses = 0;
    if (!readPlace(answer)) return this.#handleRefusal(answer);
    this.#needsProof = false;
    if (this.#pollFailures < this.#limits.pollTrust) this.setState('online');
    return undefined;
  }

  async #pollOnce(run) {
    const place = this.#place;
    const { id, ack } = place;
    const maxSeconds = this.state === 'online' ? this.#waits.maxHold : this.#limits.holdLeast;
    const seconds = Math.min(place.hold, maxSeconds);
    const expectedHold = Number.isFinite(place.hold) ? seconds : this.#limits.holdUnknown;
    const poll = { since: this.#waits.now(), isAborted: false };
    this.#parkedPoll = poll;
    const timeout = expectedHold * 1250 + this.#limits.pollSlack;
    const answer = await this.#send(place.pollUrl(seconds), 'GET', timeout);
    this.#parkedPoll = null;
    const entries = readEntries(answer);
    if (id === place.id && entries) place.confirmedAck = ack;
    this.#waits.recheck();
    if (run !== this.run || id !== place.id || poll.isAborted) return undefined;

    const parkedTime = this.#waits.now() - poll.since;
    if (parkedTime >= this.#limits.long) {
      this.#failures = 0; // The network has let the poll park.
      this.#waits.noteLongPoll(answer, parkedTime);
    }
    if (answer.failure) return this.#handlePollFailure(answer.failure);
    if (answer.status === 404) {
      return this.#handleNotFound(answer) ? undefined : this.#handlePollFailure('garbage');
    }
    this.#strayMisses = 0;
    return entries
      ? this.#handlePollAnswer(answer.json, entries, parkedTime)
      : this.#handlePollRefusal(answer);
  }

  /** Hands out the new sprites of an answered poll. */
  #handlePollAnswer(json, entries, parkedTime) {
    if (json.superseded === true) {
      this.losePlace();
      this.setState('superseded', 'superseded');
      this.#failures = 0;
      return this.#waitAfterFailure();
    }
    const { run } = this;
    const ackBefore = this.#place.ack;
    this.#needsProof = false;
    this.#pollFailures = 0;
    const isFull = this.#handOut(entries);
    if (this.#place.id && this.#place.ack > ackBefore) this.#place.reportResume();
    if (run !== this.run) return undefined;
    this.setState('online');
    const pollTime = parkedTime + this.#delayPoll(json.retry);
    if (this.#place.ack === ackBefore && pollTime < this.#limits.quick) {
      // An empty answer should take as long as its hold. A server that answers sooner must not be hammered.
      return { ...this.#waitAfterFailure(), isFull };
    }
    this.#failures = 0;
    return undefined;
  }

  /** Hands out sprites. @returns {boolean} whether the program had no room for one */
  #handOut(entries) {
    const { run } = this;
    for (const { seq, from, sprite } of entries) {
      if (seq <= this.#place.ack) continue;
      const ackBefore = this.#place.ack;
      this.#place.ack = seq;
      if (callBack(this.#onSprite, sprite, { from, seq }) === false) {
        this.#place.ack = ackBefore;
        return true;
      }
      if (run !== this.run) break; // The callback has stopped or left.
    }
    return false;
  }

  #repeatPoll() {
    this.#parkedPoll.isAborted = true;
    this.#controller?.abort();
  }

  /** Sends a request that `wake` and `halt` can abort, also while its grant is awaited. */
  async #send(url, method, timeout, grant = null) {
    const controller = new AbortController();
    this.#controller = controller;
    const send = (headers) => this.#requests.send(url, { method, headers }, timeout, controller);
    const answer = await sendWithGrant(grant, send);
    if (this.#controller === controller) this.#controller = null;
    return answer;
  }

  // ---- failures, and waits ----

  #handlePollRefusal(answer) {
    const problem = problemOf(answer);
    if (problem === 'bad-hold') {
      this.#place.hold = Infinity; // The server was restarted with a shorter hold.
      return this.#waitAfterFailure();
    }
    if (problem === 'ack-ahead') {
      // The server has an older state than this client: sequence numbers would be used twice. The
      // sprites in the old place's mailbox fly on when the client leaves it.
      this.#requests.send(this.#place.leaveUrl, { method: 'POST' }).catch(ignoreFailure);
      this.forgetPlace(this.#place.id, problem);
      return undefined;
    }
    return this.#handlePollFailure(problem ?? 'garbage', answer.retryAfter);
  }

  /** Handles a failed poll. It does not prove a loss of contact; `pollTrust` of them in a row count as one. */
  #handlePollFailure(why, retryAfter) {
    this.#pollFailures += 1;
    this.#needsProof = true;
    if (this.#pollFailures >= this.#limits.pollTrust) this.setState('offline', why);
    return this.#waitAfterFailure(retryAfter);
  }

  #handleNoContact(why, retryAfter) {
    this.#needsProof = this.#place.id !== null;
    this.setState('offline', why);
    return this.#waitAfterFailure(retryAfter);
  }

  #handleRefusal(answer) {
    return this.#handleNoContact(problemOf(answer) ?? 'garbage', answer.retryAfter);
  }

  /** Handles a 404. @returns {boolean} whether the place is gone; false while another server may have answered */
  #handleNotFound(answer) {
    this.#strayMisses += 1;
    const isStray = problemOf(answer) !== 'unknown-client';
    if (isStray && this.#strayMisses < this.#limits.strayMisses) return false;
    this.forgetPlace(this.#place.id, 'unknown-client');
    return true;
  }

  /** Counts a failure. @returns {Wait} the wait after it */
  #waitAfterFailure(retryAfter) {
    this.#failures += 1;
    return this.#waits.afterFailure(this.#failures, retryAfter);
  }

  /** Delays the next poll by `"retry"`, but no proof of contact. @returns {number} the delay in ms */
  #delayPoll(retry) {
    const ms = Math.min(positive(retry) ?? 0, this.#limits.pauseMost);
    if (ms > 0) this.#nextPollAt = this.#waits.now() + ms;
    return ms;
  }
}
