import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { roundedToMs } from '../report/words.js';

/**
 * The storm: all connections close at once, and all clients reconnect. The run polls the server for its number of
 * parked polls, because a poll that the swarm has written is not parked yet. The swarm's own count is used only
 * where the server reports none.
 */

/** Interval between two samples, in milliseconds. */
const SAMPLE_MS = 25;

const NOTICE_TIMEOUT_MS = 10_000;

const PERCENTS = [50, 90, 99, 100];

/**
 * @param {object} scene
 * @param {{clients: number, time: number, spread: number}} scene.options
 * @param {'server' | 'swarm'} scene.countedBy
 * @param {() => Promise<number>} scene.parked parked polls, counted by `countedBy`; NaN when unknown
 * @param {() => number} scene.clock seconds since the run began
 * @param {(command: string) => void} scene.send sends a command to the engines
 * @param {() => boolean} scene.isOver whether a signal came or an engine died
 * @param {(parked: number, note: string) => void} scene.show
 * @param {number} [scene.notice] longest time until the server notices that all clients are gone, in milliseconds
 * @returns {Promise<object>} `storm` of the result, with `from` and `to` in seconds of the clock
 */
export async function storm({
  options,
  countedBy,
  parked,
  clock,
  send,
  isOver,
  show,
  notice = NOTICE_TIMEOUT_MS
}) {
  const { clients, time, spread } = options;
  const track = new ParkedTrack();
  let lastCount = clients;
  const sampleParked = async () => {
    const count = await parked();
    // Without an answer the last count stays: no answer does not mean 0 parked polls.
    if (!Number.isNaN(count)) lastCount = count;
    track.add(clock(), lastCount);
  };
  await sampleParked();
  const from = clock();
  const droppedAt = performance.now();
  send('drop');
  const areAllGone = async () => {
    await sampleParked();
    return lastCount <= 0;
  };
  const dropNoticed = (await pollUntil(areAllGone, notice, isOver))
    ? secondsSince(droppedAt)
    : null;
  // The count does not tell clients that the server has not dropped yet from clients that are back.
  const ghosts = lastCount > clients / 100 ? lastCount : 0;
  const reconnectedAt = performance.now();
  send(`back ${Math.round(spread * 1000)}`);
  const seconds = Object.fromEntries(PERCENTS.map((percent) => [percent, null]));
  const areAllBack = async () => {
    await sampleParked();
    const elapsed = secondsSince(reconnectedAt);
    for (const percent of PERCENTS) {
      if (lastCount >= Math.ceil((clients * percent) / 100)) seconds[percent] ??= elapsed;
    }
    show(Math.max(0, lastCount), `parked again, ${elapsed.toFixed(1)} s`);
    return seconds[100] !== null;
  };
  if (ghosts === 0) await pollUntil(areAllBack, time * 1000, isOver);
  return {
    countedBy,
    dropNoticed: countedBy === 'server' ? dropNoticed : null,
    ...(ghosts > 0 && { ghosts }),
    spread,
    parked: lastCount,
    seconds,
    from: roundedToMs(from),
    to: roundedToMs(clock()),
    track: track.points
  };
}

async function pollUntil(isDone, ms, isOver) {
  const started = performance.now();
  while (performance.now() - started < ms && !isOver()) {
    if (await isDone()) return true;
    await sleep(SAMPLE_MS);
  }
  return false;
}

const secondsSince = (startedAt) => roundedToMs((performance.now() - startedAt) / 1000);

/** The samples of a storm, which would be over between two points of the run's series. */

const MAX_POINTS = 400;

class ParkedTrack {
  /** @type {Array<[number, number]>} seconds since the run began, and parked polls */
  points = [];

  /**
   * @param {number} at seconds
   * @param {number} parked
   */
  add(at, parked) {
    const last = this.points.at(-1);
    // Of equal samples only the first and the last are kept.
    if (last?.[1] === parked && this.points.at(-2)?.[1] === parked) this.points.pop();
    this.points.push([roundedToMs(at), parked]);
    if (this.points.length > MAX_POINTS) this.#thin();
  }

  /** Drops every second point, but keeps the lowest, which shows the depth of the storm. */
  #thin() {
    const lowest = this.points.reduce((low, point) => (point[1] < low[1] ? point : low));
    this.points = this.points.filter((point, i) => i % 2 === 0 || point === lowest);
  }
}
