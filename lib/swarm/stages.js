import { UsageError } from '../base/option-help.js';

/**
 * The stages of a run: in each stage the number of clients (park) or the rate (throw) changes linearly to its target.
 *
 * @typedef {{seconds: number, target: number}} Stage
 */

const UNITS = { ms: 0.001, s: 1, m: 60, h: 3600 };

/** The longest run, in seconds: a week. */
export const LONGEST_RUN = 604_800;

const MAX_STAGES = 100;

/** @returns {number | undefined} seconds of `30`, `30s`, `1m30s`, `500ms`; undefined for any other text */
export function secondsIn(text) {
  if (/^[0-9]+(\.[0-9]+)?$/.test(text)) return Number(text);
  if (!/^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/([0-9.]+)(ms|s|m|h)/g)];
  return parts.reduce((sum, [, value, unit]) => sum + Number(value) * UNITS[unit], 0);
}

/** The type of the option --stage: see options.js. */
export const stageType = {
  unit: 'TIME:TARGET',
  read(text) {
    const [, time, target] = /^([^:]+):([0-9]+(?:\.[0-9]+)?)$/.exec(text) ?? [];
    const seconds = time === undefined ? undefined : secondsIn(time);
    return seconds === undefined ? undefined : { seconds, target: Number(target) };
  },
  expects: 'a time and the number to reach by then, as 30s:5000'
};

export class Stages {
  /** @type {Array<Stage & {from: number, end: number}>} `from` the number at its start, `end` in seconds */
  list;

  /**
   * @param {number} first the number before the first stage
   * @param {Stage[]} stages
   * @param {{expects: string, read: (text: string) => ?number}} target the type of a target
   * @throws {UsageError} when a stage is invalid
   */
  constructor(first, stages, target) {
    if (stages.length > MAX_STAGES) {
      throw new UsageError(`--stage ${stages.length} times: there may be ${MAX_STAGES} stages`);
    }
    const invalidStage = stages.find((one) => target.read(String(one.target)) === undefined);
    if (invalidStage)
      throw new UsageError(
        `--stage …:${invalidStage.target}: the number must be ${target.expects}`
      );
    let [from, end] = [first, 0];
    this.list = stages.map((one) => {
      end += one.seconds;
      const stage = { ...one, from, end };
      from = one.target;
      return stage;
    });
    if (this.seconds < 0.1 || this.seconds > LONGEST_RUN) {
      throw new UsageError(
        `--stage: all together take from 0.1 s to ${LONGEST_RUN} s, not ${this.seconds}`
      );
    }
  }

  /** @returns {number} length of all stages together */
  get seconds() {
    return this.list.at(-1).end;
  }

  get firstTarget() {
    return this.list[0].from;
  }

  get lastTarget() {
    return this.list.at(-1).target;
  }

  get highestTarget() {
    return Math.max(this.firstTarget, ...this.list.map(({ target }) => target));
  }

  /** @param {number} seconds since the first stage began @returns {number} the target at that time */
  targetAt(seconds) {
    const stage = this.list.find(({ end }) => seconds < end);
    if (!stage) return this.lastTarget;
    return stage.target + ((stage.from - stage.target) * (stage.end - seconds)) / stage.seconds;
  }
}

/** @returns {string} one engine's share of the stages, in the format of native/swarm/options.h */
export const stagesOption = ({ list }, engines) =>
  list.map(({ seconds, target }) => `${seconds}:${target / engines}`).join();

/**
 * Records the results of the stages during a run.
 *
 * @typedef {object} StageResult
 * @property {number} seconds
 * @property {number} from
 * @property {number} target
 * @property {number} parked clients parked at the end of the stage
 * @property {?number} perSecond sprites accepted a second; null for a stage of no length
 * @property {?number} p50 time from throw to arrival, in ms; so are p99 and max
 * @property {?number} p99
 * @property {?number} max
 */
export class StageLog {
  #stages;
  #tally;
  #before;

  /** @type {StageResult[]} the stages that ended */
  rows = [];

  /**
   * @param {Stages} stages
   * @param {import('./tally.js').Tally} tally
   */
  constructor(stages, tally) {
    this.#stages = stages;
    this.#tally = tally;
    this.#before = { at: tally.countedAt, accepted: tally.counts.accepted };
    tally.takeStageSummary();
  }

  /** @param {number} elapsed seconds since the first stage began @returns {number} the target at that time */
  advance(elapsed) {
    const { list } = this.#stages;
    while (this.rows.length < list.length && elapsed >= list[this.rows.length].end) {
      this.#end(list[this.rows.length]);
    }
    return this.#stages.targetAt(elapsed);
  }

  #end({ seconds, from, target }) {
    const { parked, accepted } = this.#tally.counts;
    const { p50, p99, max } = this.#tally.takeStageSummary();
    const now = { at: this.#tally.countedAt, accepted };
    const elapsed = now.at - this.#before.at;
    const perSecond =
      seconds > 0 && elapsed > 0 ? Math.round((accepted - this.#before.accepted) / elapsed) : null;
    this.rows.push({ seconds, from, target, parked, perSecond, p50, p99, max });
    this.#before = now;
  }
}
