import { callBack } from './call-back.js';
import { askBy } from './grant.js';
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
  #doubt = false; // whether a proof of contact comes first
  #pollAt = 0; // end of a pause that the server has asked for
  /** The wait before the next request, after the place was lost. @type {Wait | undefined} */
  #rest;
  #asks = null; // AbortController of the current request
  #poll = null; // {since, again} of the parked poll

  /** The grant for joining. @type {import('./grant.js').Grant | null} */
  grant = null;
  /** Counts starts and stops: answers for an older run are ignored. */
  run = 0;
  /** @type {State} */
  state = 'left';
  /** @type {string|undefined} the reason for this state, if it has one */
  why;

  /**
   * @param {import('./place.js').Place} place
   * @param {import('./moves.js').Moves} requests
   * @param {import('./waits.js').Waits} waits
   * @param {import('./limits.js').Limits} limits
   * @param {OnSprite} onSprite
   * @param {(state: State, about: {why?: string}) => void} onState
   */
  constructor(place, requests, waits, limits, onSprite, onState) {
    this.#place = place;
    this.#requests = requests;
    this.#waits = waits;
    this.#limits = limits;
    this.#onSprite = onSprite;
    this.#onState = onState;
  }

  /** @returns {boolean} whether a poll is parked */
  get polls() {
    return this.#poll !== null;
  }

  /** Runs until `halt`. */
  async start() {
    this.run += 1;
    const { run } = this;
    this.#failures = 0;
    this.#pollFailures = 0;
    this.#pollAt = 0;
    this.#rest = undefined;
    this.#doubt = this.#place.id !== null;
    this.become('joining');
    while (run === this.run) {
      const wait = await this.#step(run);
      if (run === this.run && wait && wait.ms > 0) await this.#waits.doze(wait);
    }
  }

  /** Ends the loop, its wait and its request. @param {{keepPoll?: boolean}} [options] keepPoll: a poll goes on */
  halt({ keepPoll = false } = {}) {
    this.run += 1;
    this.#waits.nap?.end();
    if (!keepPoll || !this.#poll) this.#asks?.abort();
  }

  /** Tries now. A poll that may hang on a dead connection is repeated. See `Client.wake`. */
  wake() {
    if (!this.#waits.nap?.full) this.#doubt = this.#place.id !== null;
    this.#waits.endNap();
    if (this.#poll && this.#waits.now() - this.#poll.since >= this.#limits.quick) this.#pollAgain();
  }

  /**
   * Forgets a place that the server does not know, and joins again after a wait. Throws from the old place end by
   * themselves.
   *
   * @param {string|null} id of that place; any other is ignored
   * @param {string} why
   */
  forget(id, why) {
    if (this.#place.id !== id) return;
    this.lose();
    this.#rest = this.#wait();
    if (this.state !== 'left') this.become('joining', why);
    this.#waits.endNap();
    if (this.#poll) this.#pollAgain();
  }

  /** Forgets the place. */
  lose() {
    this.#place.lose();
    this.#strayMisses = 0;
    this.#pollAt = 0;
    this.#doubt = false;
  }

  /**
   * @param {State} state
   * @param {string} [why]
   */
  become(state, why) {
    if (state === this.state && why === this.why) return;
    this.state = state;
    this.why = why;
    this.#waits.changed();
    callBack(this.#onState, state, { why });
  }

  // ---- requests ----

  /** @returns {Promise<Wait|undefined>} how long to wait before going on */
  async #step(run) {
    const rest = this.#rest;
    this.#rest = undefined;
    if (rest) return rest;
    if (!this.#place.id) return this.#joinOnce(run);
    if (this.#doubt) return this.#proveOnce(run);
    const pause = this.#pollAt - this.#waits.now();
    return pause > 0 ? { ms: pause } : this.#pollOnce(run);
  }

  async #joinOnce(run) {
    const url = this.#place.url('join');
    const answer = await this.#ask(url, 'POST', undefined, this.grant);
    if (run !== this.run) return undefined;
    if (answer.failure) return this.#noContact(answer.failure);
    if (this.grant?.refused(problemOf(answer))) return undefined;
    if (answer.status !== 201 || !this.#place.join(answer.json)) return this.#refused(answer);
    this.grant?.accepted();
    this.#waits.holdMost = Infinity;
    this.#doubt = false;
    this.#pollFailures = 0;
    this.#pause(answer.json.retry);
    this.become('online');
    this.#place.tell();
    return undefined;
  }

  /** Proves contact, and that the place is still this client's, by a request that is answered at once. */
  async #proveOnce(run) {
    const { id } = this.#place;
    const url = this.#place.url(`place/${id}`);
    const answer = await this.#ask(url, 'GET', this.#limits.proofTimeout);
    if (run !== this.run || id !== this.#place.id) return undefined;
    if (answer.failure) return this.#noContact(answer.failure);
    if (answer.status === 404) return this.#missed(answer) ? undefined : this.#noContact('garbage');
    this.#strayMisses = 0;
    if (!readPlace(answer)) return this.#refused(answer);
    this.#doubt = false;
    if (this.#pollFailures < this.#limits.pollTrust) this.become('online');
    return undefined;
  }

  async #pollOnce(run) {
    const place = this.#place;
    const { id, ack } = place;
    const most = this.state === 'online' ? this.#waits.holdMost : this.#limits.holdLeast;
    const seconds = Math.min(place.hold, most);
    const held = Number.isFinite(place.hold) ? seconds : this.#limits.holdUnknown;
    const poll = { since: this.#waits.now(), again: false };
    this.#poll = poll;
    const time = held * 1250 + this.#limits.pollSlack;
    const answer = await this.#ask(place.pollUrl(seconds), 'GET', time);
    this.#poll = null;
    if (id === place.id && answer.status === 200) place.ackTaken = ack;
    this.#waits.changed();
    if (run !== this.run || id !== place.id || poll.again) return undefined;

    const took = this.#waits.now() - poll.since;
    if (took >= this.#limits.long) {
      this.#failures = 0; // The network has let the poll park.
      this.#waits.endLongPoll(answer, took);
    }
    if (answer.failure) return this.#pollFailed(answer.failure);
    if (answer.status === 404) {
      return this.#missed(answer) ? undefined : this.#pollFailed('garbage');
    }
    this.#strayMisses = 0;
    return answer.status === 200 ? this.#polled(answer.json, took) : this.#pollRefused(answer);
  }

  /** Hands out the new sprites of an answered poll. */
  #polled(json, took) {
    const entries = readEntries(json);
    if (!entries) return this.#pollFailed('garbage');
    if (json.superseded === true) {
      this.lose();
      this.become('superseded', 'superseded');
      this.#failures = 0;
      return this.#wait();
    }
    const { run } = this;
    const before = this.#place.ack;
    this.#doubt = false;
    this.#pollFailures = 0;
    const full = this.#handOut(entries);
    if (this.#place.id && this.#place.ack > before) this.#place.tell();
    if (run !== this.run) return undefined;
    this.become('online');
    this.#pause(json.retry);
    if (!positive(json.retry) && this.#place.ack === before && took < this.#limits.quick) {
      // An empty answer should take as long as its hold. A server that answers sooner must not be hammered.
      return { ...this.#wait(), full };
    }
    this.#failures = 0;
    return undefined;
  }

  /** Hands out sprites. @returns {boolean} whether the program had no room for one */
  #handOut(entries) {
    const { run } = this;
    for (const { seq, from, sprite } of entries) {
      if (seq <= this.#place.ack) continue;
      const last = this.#place.ack;
      this.#place.ack = seq;
      if (callBack(this.#onSprite, sprite, { from, seq }) === false) {
        this.#place.ack = last;
        return true;
      }
      if (run !== this.run) break; // The callback has stopped or left.
    }
    return false;
  }

  #pollAgain() {
    this.#poll.again = true;
    this.#asks?.abort();
  }

  /** Sends a request that `wake` and `halt` can abort, also while its grant is awaited. */
  async #ask(url, method, most, grant = null) {
    const controller = new AbortController();
    this.#asks = controller;
    const send = (headers) => this.#requests.ask(url, { method, headers }, most, controller);
    const answer = await askBy(grant, send);
    if (this.#asks === controller) this.#asks = null;
    return answer;
  }

  // ---- failures, and waits ----

  #pollRefused(answer) {
    const problem = problemOf(answer);
    if (problem === 'bad-hold') {
      this.#place.hold = Infinity; // The server was restarted with a shorter hold.
      return this.#wait();
    }
    if (problem === 'ack-ahead') {
      // The server has an older state than this client: sequence numbers would be used twice. The
      // sprites in the old place's mailbox fly on when the client leaves it.
      this.#requests.ask(this.#place.leaveUrl, { method: 'POST' }).catch(ignoreFailure);
      this.forget(this.#place.id, problem);
      return undefined;
    }
    return this.#pollFailed(problem ?? 'garbage', answer.retryAfter);
  }

  /** Handles a failed poll. It does not prove a loss of contact; `pollTrust` of them in a row count as one. */
  #pollFailed(why, retryAfter) {
    this.#pollFailures += 1;
    this.#doubt = true;
    if (this.#pollFailures >= this.#limits.pollTrust) this.become('offline', why);
    return this.#wait(retryAfter);
  }

  #noContact(why, retryAfter) {
    this.#doubt = this.#place.id !== null;
    this.become('offline', why);
    return this.#wait(retryAfter);
  }

  #refused(answer) {
    return this.#noContact(problemOf(answer) ?? 'garbage', answer.retryAfter);
  }

  /** Handles a 404. @returns {boolean} whether the place is gone; false while another server may have answered */
  #missed(answer) {
    this.#strayMisses += 1;
    const stray = problemOf(answer) !== 'unknown-client';
    if (stray && this.#strayMisses < this.#limits.strayMisses) return false;
    this.forget(this.#place.id, 'unknown-client');
    return true;
  }

  /** Counts a failure. @returns {Wait} the wait after it */
  #wait(retryAfter) {
    this.#failures += 1;
    return this.#waits.after(this.#failures, retryAfter);
  }

  /** Delays the next poll by `"retry"`, but no proof of contact. */
  #pause(retry) {
    const ms = Math.min(positive(retry) ?? 0, this.#limits.pauseMost);
    if (ms > 0) this.#pollAt = this.#waits.now() + ms;
  }
}
