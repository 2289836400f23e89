import { problemOf } from './answers.js';
import { ignoreFailure } from './requests.js';

/**
 * Leaves the torus: throws that were sent get their answer, what was handed out is acked, and the
 * server is told. The loop has been halted, and its poll, if one is parked, not aborted.
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
    if (await tell()) return true;
  }
  return false;

  /**
   * What is not acked flies on when its receiver leaves, and would be there twice. Of two polls
   * the server answers the earlier one at once, and has taken its ack. Where one of
   * them ends without that, the other one is not waited for.
   */
  async function proveAck(before) {
    const parked = polls();
    let asks = true;
    const url = place.pollUrl(limits.holdLeast);
    const controller = new AbortController();
    const most = Math.max(1, before - waits.now());
    const poll = async () => {
      try {
        const { status } = await requests.ask(url, { method: 'GET' }, most, controller);
        if (status === 200) place.ackTaken = place.ack;
      } catch (error) {
        ignoreFailure(error);
      }
      asks = false;
      waits.changed();
    };
    poll();
    if (!parked) poll();
    const isOpen = () => place.ackTaken < place.ack && asks && polls() === parked;
    await waits.until(() => !isOpen(), before, isOver);
    controller.abort();
  }

  /** @returns {Promise<boolean>} whether the server knows; if not, the wait is over */
  async function tell() {
    let pause = limits.leaveRetry;
    try {
      const most = Math.max(1, end - waits.now());
      const answer = await requests.ask(place.leaveUrl, { method: 'POST' }, most);
      const { status } = answer;
      if (status === 204 || (status !== 429 && status < 500 && problemOf(answer))) return true;
      pause = Math.max(pause, answer.retryAfter ?? 0);
    } catch (error) {
      ignoreFailure(error);
      place.transient = undefined; // Some networks let only the main port through.
    }
    await waits.until(() => false, Math.min(end, waits.now() + pause), isOver);
    return false;
  }
}
