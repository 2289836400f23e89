import { problemOf } from './answers.js';
import { ignoreFailure } from './requests.js';

/**
 * Leaves the torus: waits for the answers to sent throws, acks the sprites that were handed out, and
 * tells the server. Before, the caller halts the loop, but does not abort its parked poll.
 *
 * @param {object} leaving
 * @param {import('./place.js').Place} leaving.place
 * @param {import('./moves.js').Moves} leaving.requests
 * @param {import('./waits.js').Waits} leaving.waits
 * @param {import('./limits.js').Limits} leaving.limits
 * @param {() => boolean} leaving.throwsAreOver
 * @param {() => boolean} leaving.polls whether a poll is parked
 * @param {() => boolean} leaving.isOver whether the client was stopped or started meanwhile
 * @returns {Promise<boolean>} whether the server was told
 */
export async function leave({ place, requests, waits, limits, throwsAreOver, polls, isOver }) {
  const end = waits.now() + limits.leavePatience;
  await waits.until(throwsAreOver, end - limits.leaveReserve, isOver);
  if (place.ack > place.ackTaken) await proveAck(end - limits.leaveReserve / 2);
  while (!isOver() && waits.now() < end) {
    if (await ask(place.leaveUrl, 'POST', 204, end)) return true;
    place.transient = undefined; // Some networks let only the main port through.
  }
  return false;

  /**
   * Acks the sprites that were handed out: a sprite that is not acked flies on when its receiver
   * leaves, and would be there twice. Of two polls the server answers the earlier one at once, which
   * proves that it has its ack. A poll without this answer is repeated.
   */
  async function proveAck(before) {
    const isOpen = () => place.ackTaken < place.ack;
    const url = place.pollUrl(limits.holdLeast);
    const asked = [];
    const poll = async () => {
      while (isOpen() && !isOver() && waits.now() < before) {
        const controller = new AbortController();
        asked.push(controller);
        if (await ask(url, 'GET', 200, before, controller)) place.ackTaken = place.ack;
      }
      waits.changed();
    };
    poll();
    waits.until(() => !polls(), before, isOver).then(poll);
    await waits.until(() => !isOpen(), before, isOver);
    for (const controller of asked) controller.abort();
  }

  /** @returns {Promise<boolean>} whether the server has answered with `good`, or refused; false after a wait */
  async function ask(url, method, good, before, controller) {
    let pause = limits.leaveRetry;
    try {
      const most = Math.max(1, before - waits.now());
      const answer = await requests.ask(url, { method }, most, controller);
      const { status } = answer;
      if (status === good || (status !== 429 && status < 500 && problemOf(answer))) return true;
      pause = Math.max(pause, answer.retryAfter ?? 0);
    } catch (error) {
      ignoreFailure(error);
    }
    await waits.until(() => false, Math.min(before, waits.now() + pause), isOver);
    return false;
  }
}
