import { problemOf, readEntries } from './answers.js';
import { ignoreFailure } from './requests.js';

/**
 * Leaves the torus: waits for the answers to sent throws, acks the sprites that were handed out, and
 * tells the server. Before, the caller halts the loop, but does not abort its parked poll.
 *
 * @param {object} leaving
 * @param {import('./place.js').Place} leaving.place
 * @param {import('./world-requests.js').WorldRequests} leaving.requests
 * @param {import('./waits.js').Waits} leaving.waits
 * @param {import('./limits.js').Limits} leaving.limits
 * @param {() => boolean} leaving.areThrowsAnswered
 * @param {() => boolean} leaving.isPollParked whether a poll is parked
 * @param {() => boolean} leaving.isOver whether the client was stopped or started meanwhile
 * @returns {Promise<boolean>} whether the server was told
 */
export async function leave({
  place,
  requests,
  waits,
  limits,
  areThrowsAnswered,
  isPollParked,
  isOver
}) {
  const end = waits.now() + limits.leavePatience;
  const isDone = ({ status }) => status === 204;
  await waits.until(areThrowsAnswered, end - limits.leaveReserve, isOver);
  if (place.ack > place.confirmedAck) await proveAck(end - limits.leaveReserve / 2);
  while (!isOver() && waits.now() < end) {
    if (await tryRequest(place.leaveUrl, 'POST', isDone, end)) return true;
    place.transient = undefined; // Some networks let only the main port through.
  }
  return false;

  /**
   * Acks the sprites that were handed out: a sprite that is not acked flies on when its receiver
   * leaves, and would be there twice. Of two polls the server answers the earlier one at once, which
   * proves that it has its ack. A poll without this answer is repeated.
   */
  async function proveAck(deadline) {
    const isUnconfirmed = () => place.confirmedAck < place.ack;
    const url = place.pollUrl(limits.holdLeast);
    const controllers = [];
    const poll = async () => {
      while (isUnconfirmed() && !isOver() && waits.now() < deadline) {
        const controller = new AbortController();
        controllers.push(controller);
        if (await tryRequest(url, 'GET', readEntries, deadline, controller))
          place.confirmedAck = place.ack;
      }
      waits.recheck();
    };
    poll();
    waits.until(() => !isPollParked(), deadline, isOver).then(poll);
    await waits.until(() => !isUnconfirmed(), deadline, isOver);
    for (const controller of controllers) controller.abort();
  }

  /** @returns {Promise<boolean>} whether it got an answer that `isGood` accepts, or a refusal; false after a wait */
  async function tryRequest(url, method, isGood, deadline, controller) {
    let pause = limits.leaveRetry;
    try {
      const timeout = Math.max(1, deadline - waits.now());
      const answer = await requests.send(url, { method }, timeout, controller);
      const { status } = answer;
      if (isGood(answer) || (status !== 429 && status < 500 && problemOf(answer))) return true;
      pause = Math.max(pause, answer.retryAfter ?? 0);
    } catch (error) {
      ignoreFailure(error);
    }
    await waits.until(() => false, Math.min(deadline, waits.now() + pause), isOver);
    return false;
  }
}
