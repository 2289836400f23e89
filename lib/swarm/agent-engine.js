import { setTimeout as sleep } from 'node:timers/promises';

import { SETTLED, through } from '../arena/games/load/batches.js';
import { Engine } from './engine.js';
import { Histogram } from './histogram.js';
import { believedBy } from './tls.js';

/**
 * The engine of an agent, for one round: as many clients and sprites a second as it is told, and what it
 * reports once a second.
 */

/** Between two lines of the engine, in milliseconds. */
const TICK_MS = 200;

/** Connections that the throws share. */
export const LANES = 64;

/** Seconds after which it ends by itself, whatever happens: a day. */
const LIMIT = 86_400;

/** How long all clients may take to leave at the end, in milliseconds. */
const LEAVE_MS = 10_000;

export class AgentEngine {
  #engine;
  #tick;
  #interval = new Histogram();
  #before = { at: 0, accepted: 0 };
  #told = {};
  #batch = 0;
  #ended = false;
  #isKilled = false;

  /**
   * @param {object} round
   * @param {string} round.name of the swarm: who has the same one counts its sprites
   * @param {number} round.number of this engine in it
   * @param {object} parts
   * @param {object} parts.options of parse()
   * @param {string} parts.address of the server, numeric
   * @param {string} parts.host of the server, as a URL writes it
   * @param {import('./needs.js').Plan} parts.plan
   * @param {(why: string) => void} died it ended without being told to
   */
  constructor({ name, number }, { options, address, host, plan }, died) {
    this.#engine = new Engine(
      {
        address,
        host,
        'server-name': options.host,
        port: options.port,
        swarm: name,
        process: number,
        clients: options.clientsMax,
        'first-client': number * LANES,
        sources: plan.sources,
        lanes: LANES,
        throwing: 'rate',
        batched: 1,
        size: options.size,
        ramp: options.ramp,
        'in-flight': options.connecting,
        tick: TICK_MS,
        limit: LIMIT,
        seed: options.seed
      },
      {
        tick: (tick) => {
          this.#tick = tick;
          this.#interval.add(tick.arrival);
        },
        died
      },
      believedBy(options)
    );
  }

  /** @param {{clients: number, rate: number, batch: number}} wish what there shall be from now on */
  steer(wish) {
    if (this.#ended) return;
    this.#batch = Math.max(this.#batch, wish.batch);
    // The batch first: what is thrown next belongs to it.
    for (const [name, value] of Object.entries({ ...wish, batch: this.#batch }).toReversed()) {
      if (this.#told[name] !== value) this.#engine.tell(`${name} ${value}`);
      this.#told[name] = value;
    }
  }

  /** @returns {?object} the inputs of the game load, of the time since the last report; null at first */
  report() {
    const tick = this.#tick;
    if (tick === undefined || this.#batch === 0) return null;
    const at = tick.at / 1e9;
    const { at: since, accepted } = this.#before;
    const perSecond = since > 0 && at > since ? (tick.accepted - accepted) / (at - since) : 0;
    this.#before = { at, accepted: tick.accepted };
    const { p50, p99 } = this.#interval.summary();
    this.#interval = new Histogram();
    return {
      connections: tick.parked,
      members: tick.members,
      batch: this.#batch,
      ...through(tick.batches, this.#batch - SETTLED),
      perSecond,
      p50: p50 ?? -1,
      p99: p99 ?? -1,
      refused: tick.refused,
      broken: tick.closed,
      stall: tick.lateness / 1e6
    };
  }

  /** @returns {boolean} whether nothing of it is under way any more */
  get isAtRest() {
    return this.#tick === undefined || this.#tick.members + this.#tick.pending === 0;
  }

  /** Has all clients leave, and ends. */
  async end() {
    this.steer({ clients: 0, rate: 0, batch: this.#batch });
    this.#ended = true;
    const late = performance.now() + LEAVE_MS;
    const isOver = () => this.#isKilled || this.isAtRest || performance.now() > late;
    while (!isOver()) await sleep(TICK_MS);
    if (!this.#isKilled) this.#engine.tell('quit');
    await Promise.race([this.#engine.ended, sleep(LEAVE_MS, undefined, { ref: false })]);
    this.kill();
  }

  kill() {
    this.#ended = true;
    this.#isKilled = true;
    this.#engine.kill();
  }
}
