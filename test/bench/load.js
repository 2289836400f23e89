/**
 * The load of sprites on a measured server: the engines of bin/sprites-swarm, step by step. Thousands of clients are
 * parked, and a few connections throw for all clients in turn, in closed loops or by the clock.
 */
import { execFileSync } from 'node:child_process';
import { setTimeout as pause } from 'node:timers/promises';

import { Account, Tally } from '../../lib/swarm/tally.js';
import { Engine } from '../../lib/swarm/engine.js';
import { until } from '../support/until.js';
import { canPin, withStarted, LOAD_CORE } from './contenders.js';
import { askProbe, cpuOf, cpuSeconds } from './usage.js';

/** Interval between two ticks of an engine, in milliseconds. */
const TICK_MS = 50;

/** After this time without arrivals, sprites under way count as missing, in seconds. */
const ARRIVAL_PATIENCE_S = 5;

/** Time limit of an engine, in seconds. */
const ENGINE_LIMIT_S = 7200;

/** Clients of one source address, which has some 28,000 ports. */
const CLIENTS_OF_AN_ADDRESS = 20000;

/** Most connections that open at a time: less than any listen backlog. */
const MAX_OPENING = 64;

/** Pins a process with all its threads to the core of the load, if there are two cores. @param {number} pid */
export function pinToLoad(pid) {
  if (canPin()) execFileSync('taskset', ['-acp', String(LOAD_CORE), String(pid)]);
}

/**
 * @param {{port: number, clients: number, throwers: number, nchan?: boolean}} how
 * @returns {Record<string, string | number>} an engine's options: closed loops that throw for all clients in turn
 */
export const closedLoops = ({ port, clients, throwers, nchan = false }) => ({
  ...{ port, clients, lanes: throwers, throwing: 'closed', 'every-client': 1 },
  nchan: nchan ? 1 : 0,
  sources: clients > CLIENTS_OF_AN_ADDRESS ? Math.ceil(clients / CLIENTS_OF_AN_ADDRESS) : 0
});

/** @returns {Record<string, string | number>} an engine's options: `rate` sprites a second, by the clock */
export const byClock = (options) => ({ lanes: 32, throwing: 'rate', ...options });

export class Load {
  #engines;
  #account = new Account();
  #finishedAccounts = 0;
  #deathReasons = [];
  #tickWaiters = [];
  #pinned;

  /**
   * Starts an engine for each part of the clients.
   *
   * @param {Array<Record<string, string | number>>} parts options as native/swarm/options.h names them
   * @param {boolean} [pinned] whether the load has a core
   */
  constructor(parts, pinned = false) {
    this.tally = new Tally(60);
    this.clients = parts.reduce((sum, { clients }) => sum + clients, 0);
    this.#pinned = pinned;
    const swarm = Math.random().toString(36).slice(2, 8).padEnd(6, '0');
    const shared = {
      ...{ address: '127.0.0.1', host: '127.0.0.1', 'server-name': 'localhost', swarm },
      ...{ ramp: 1e6, 'in-flight': MAX_OPENING, tick: TICK_MS, limit: ENGINE_LIMIT_S }
    };
    this.#engines = parts.map((part, i) =>
      this.#start({ ...shared, process: i, seed: 1 + i, ...part })
    );
  }

  #start(options) {
    const events = {
      tick: (tick) => {
        this.tally.add(tick);
        for (const resolve of this.#tickWaiters.splice(0)) resolve(tick);
      },
      page: (header, bytes) => this.#account.add(header, bytes),
      account: () => this.#finishedAccounts++,
      died: (why) => {
        this.#deathReasons.push(why);
        for (const resolve of this.#tickWaiters.splice(0)) resolve();
      }
    };
    const engine = new Engine(options, events);
    if (this.#pinned) pinToLoad(engine.pid);
    return engine;
  }

  /** Sends a command to all engines. @param {string} command a command of native/swarm/engine.h */
  send(command) {
    for (const engine of this.#engines) engine.send(command);
  }

  /** Waits until the counts fulfil a condition. Throws if an engine dies. */
  async until(isFulfilled, what) {
    const check = () => {
      if (this.#deathReasons.length > 0) throw new Error(this.#deathReasons.join());
      return isFulfilled(this.tally.counts);
    };
    await until(check, what, ENGINE_LIMIT_S);
  }

  /** Opens all clients. Resolves when all have written their polls. */
  async park() {
    this.send('open');
    await this.until(({ parked }) => parked >= this.clients, 'all are parked');
  }

  /** @returns {Promise<Record<string, number>>} at one moment: seconds, received sprites and the figures of `more` */
  async #sample(pids, readFurther) {
    const tick =
      this.#deathReasons.length === 0 &&
      (await new Promise((resolve) => this.#tickWaiters.push(resolve)));
    if (!tick) throw new Error(this.#deathReasons.join());
    const loadCpu = cpuSeconds(this.#engines.map(({ pid }) => pid));
    const cpu = { cpu: cpuSeconds(pids), main: cpuOf(pids[0]), own: loadCpu };
    return {
      at: tick.at / 1e9,
      received: this.tally.counts.received,
      ...cpu,
      ...(await readFurther())
    };
  }

  /**
   * Throws, and accounts for every sprite.
   *
   * @param {import('./contenders.js').Server} server
   * @param {object} how
   * @param {number} how.warmup seconds before the measurement
   * @param {number} how.seconds
   * @param {() => Promise<Record<string, number>>} [how.look] further figures to compare
   * @returns {Promise<object>} microseconds of CPU a sprite of the server, its main thread and the load; sprites that
   *     arrived in the measured time, and a second; `late`: their lateness; `stall`: the server's longest turn, if
   *     probed; `grown`: the increase of all figures; and the account of finish()
   */
  async throwAll(server, { warmup, seconds, look = async () => ({}) }) {
    this.send(`throw ${(warmup + seconds + ARRIVAL_PATIENCE_S) * 1000}`);
    await pause(warmup * 1000);
    await askProbe(server);
    this.tally.takeStageSummary();
    const before = await this.#sample(server.pids, look);
    await pause(seconds * 1000);
    const after = await this.#sample(server.pids, look);
    const { longestStall: stall } = await askProbe(server);
    const increase = Object.fromEntries(
      Object.entries(after).map(([name, value]) => [name, value - before[name]])
    );
    const sprites = increase.received;
    const microsPerSprite = (name) => (increase[name] / Math.max(1, sprites)) * 1e6;
    return {
      ...{ sprites, seconds: increase.at, rate: sprites / increase.at, stall, grown: increase },
      ...{
        cpuPerSprite: microsPerSprite('cpu'),
        mainCpuPerSprite: microsPerSprite('main'),
        loadCpuPerSprite: microsPerSprite('own')
      },
      late: this.tally.takeStageSummary(),
      ...(await this.finish())
    };
  }

  /**
   * Stops throwing, and waits for the sprites under way as long as some still arrive.
   *
   * @returns {Promise<{sent: number, received: number, refused: number, missing: number, repeated: number}>} sprites
   * @throws {Error} when a sprite is missing, came twice, has no answer or is `uncalled`, that is, arrived without an
   *     accepting answer; or when something is `wrong`: a changed sprite, a sprite that was never thrown, an answer
   *     that breaks the contract, a connection closed by the server
   */
  async finish() {
    this.send('stop');
    // Ticks come a little later than the events they count: an older tick must not end the wait.
    await pause(2 * TICK_MS);
    let lastArrival = { received: -1, at: 0 };
    await this.until(({ pending, received, accepted }) => {
      if (received !== lastArrival.received) lastArrival = { received, at: performance.now() };
      const isLate = performance.now() - lastArrival.at > ARRIVAL_PATIENCE_S * 1000;
      return isLate || (pending === 0 && received >= accepted);
    }, 'all sprites arrive');
    this.send('account');
    await this.until(() => this.#finishedAccounts === this.#engines.length, 'the account');
    const { missing, unconfirmed: uncalled } = this.#account.result();
    const counts = this.tally.counts;
    const { sent, received, refused, pending: unanswered, doubles } = counts;
    const violations = counts.mangled + counts.foreign + counts.badAnswers + counts.closed;
    const repeated = doubles + this.#account.doubles;
    const faultTexts = Object.entries({
      missing,
      unanswered,
      repeated,
      uncalled,
      wrong: violations
    })
      .filter(([, count]) => count > 0)
      .map(([name, count]) => `${count} ${name}`);
    if (faultTexts.length > 0) throw new Error(`of ${sent} sprites ${faultTexts.join(', ')}`);
    return { sent, received, refused, missing, repeated };
  }

  /** Lets all clients leave. */
  async leave() {
    this.send('clients 0');
    await this.until(({ members }) => members === 0, 'all have left');
  }

  /** Ends the engines. */
  async stop() {
    this.send('quit');
    await Promise.all(this.#engines.map((engine) => engine.ended));
  }
}

/**
 * Runs `work` with a load of parked clients, and ends the load in any case.
 *
 * @template T
 * @param {Array<Record<string, string | number>>} parts see Load
 * @param {boolean} pinned
 * @param {(load: Load) => Promise<T>} work
 * @returns {Promise<T>}
 */
export const withLoad = (parts, pinned, work) =>
  withStarted(new Load(parts, pinned), async (load) => {
    await load.park();
    return work(load);
  });
