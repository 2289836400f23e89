import { performance } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';

import { thousandths } from '../report/words.js';

/**
 * The storm: all connections close at once, and all clients reconnect. The run polls the server for its number of
 * parked polls, because a poll that the swarm has written is not parked yet. The swarm's own count is used only
 * where the server reports none.
 */

/** Interval between two samples, in milliseconds. */
const LOOK_MS = 25;

const NOTICE_MS = 10_000;

const PARTS = [50, 90, 99, 100];

/**
 * @param {object} scene
 * @param {{clients: number, time: number, spread: number}} scene.options
 * @param {'server' | 'swarm'} scene.countedBy
 * @param {() => Promise<number>} scene.parked parked polls, counted by `countedBy`; NaN when unknown
 * @param {() => number} scene.clock seconds since the run began
 * @param {(command: string) => void} scene.tell sends a command to the engines
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
  tell,
  isOver,
  show,
  notice = NOTICE_MS
}) {
  const { clients, time, spread } = options;
  const track = new Track();
  let now = clients;
  const look = async () => {
    const seen = await parked();
    // Without an answer the last count stays: no answer does not mean 0 parked polls.
    if (!Number.isNaN(seen)) now = seen;
    track.add(clock(), now);
  };
  await look();
  const from = clock();
  const dropped = performance.now();
  tell('drop');
  const isGone = async () => {
    await look();
    return now <= 0;
  };
  const dropNoticed = (await until(isGone, notice, isOver)) ? since(dropped) : null;
  // The count does not tell clients that the server has not dropped yet from clients that are back.
  const ghosts = now > clients / 100 ? now : 0;
  const started = performance.now();
  tell(`back ${Math.round(spread * 1000)}`);
  const seconds = Object.fromEntries(PARTS.map((part) => [part, null]));
  const isBack = async () => {
    await look();
    const passed = since(started);
    for (const part of PARTS) {
      if (now >= Math.ceil((clients * part) / 100)) seconds[part] ??= passed;
    }
    show(Math.max(0, now), `parked again, ${passed.toFixed(1)} s`);
    return seconds[100] !== null;
  };
  if (ghosts === 0) await until(isBack, time * 1000, isOver);
  return {
    countedBy,
    dropNoticed: countedBy === 'server' ? dropNoticed : null,
    ...(ghosts > 0 && { ghosts }),
    spread,
    parked: now,
    seconds,
    from: thousandths(from),
    to: thousandths(clock()),
    track: track.points
  };
}

async function until(done, ms, isOver) {
  const started = performance.now();
  while (performance.now() - started < ms && !isOver()) {
    if (await done()) return true;
    await sleep(LOOK_MS);
  }
  return false;
}

const since = (started) => thousandths((performance.now() - started) / 1000);

/** The samples of a storm, which would be over between two points of the run's series. */

const MOST_POINTS = 400;

class Track {
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
    this.points.push([thousandths(at), parked]);
    if (this.points.length > MOST_POINTS) this.#thin();
  }

  /** Drops every second point, but keeps the lowest, which shows the depth of the storm. */
  #thin() {
    const lowest = this.points.reduce((low, point) => (point[1] < low[1] ? point : low));
    this.points = this.points.filter((point, i) => i % 2 === 0 || point === lowest);
  }
}
