import { setTimeout as sleep } from 'node:timers/promises';

import { SETTLED_AFTER, sumThrough } from '../arena/games/load/batches.js';
import { Feeds } from '../client/feeds.js';
import { Player } from '../client/player.js';
import { globalTimers, ignoreFailure, Requests } from '../client/requests.js';
import { Engine } from './engine.js';
import { UsageError } from '../base/option-help.js';
import { Histogram } from './histogram.js';
import { readHostResources, plan } from './needs.js';
import { isArenaName } from './options.js';
import { onSignals } from './signals.js';
import { createFetch } from './status.js';
import { trustedCertificates, permanentErrorMessage, resolveTarget } from './target.js';

/**
 * An agent: a machine whose swarm follows the panel of an arena. The agent watches the arena's control feed. While
 * the game is `load` the agent is a player, and reports once a second by its inputs (lib/arena/games/load/inputs.json).
 * It uses only the server of its URL, and does not trust that server: from the feed it reads numbers only, bounded by
 * --clients-max and --rate-max. Any other value counts as 0.
 *
 *     control feed ─▶ Agent ─▶ AgentEngine   clients, sprites a second
 *     reduced feed ─▶   │         │          the current batch: lib/arena/games/load/batches.js
 *                       └─ Player ◀┘         reports, as inputs
 */

/** The only game that an agent plays. */
const GAME = 'load';

/** Least time between two reports and between two engines, and after the death of an engine, in milliseconds. */
const REPORT_MS = 1000;
const RESTART_MS = 5000;

/** Longest time that an ending agent still reports, so that all its sprites are counted, in milliseconds. */
const FINAL_REPORTS_MS = 20_000;

/** Most engines of earlier rounds that may still be leaving: it bounds the processes when rounds change fast. */
const MAX_LEAVING_ENGINES = 3;

/** Highest round, batch and setting; highest number of a player; longest answer with both feeds, in bytes. */
const MAX_COUNT = 1e9;
const MAX_PLAYERS = 1e6;
const ANSWER_BYTES = 2 ** 20;

const isCount = (value, most = MAX_COUNT) =>
  Number.isSafeInteger(value) && value >= 0 && value <= most;
const countOf = (value) => (isCount(value) ? value : 0);

/**
 * @param {any} value value of the control feed
 * @returns {?{isRunning: boolean, round: number, clients: number, throws: number}} the panel's settings; null
 *     for another game, or for a value that is no control feed
 */
function readControl(value) {
  const { game, running, round, settings } = value ?? {};
  if (game !== GAME || !isCount(round)) return null;
  const { clients, throws } = settings ?? {};
  return {
    isRunning: running === true,
    ...{ round, clients: countOf(clients), throws: countOf(throws) }
  };
}

export class Agent {
  #host;
  #fetch;
  #showMessage;
  #feeds;
  #reducedWatch = null;
  #player = null;
  #control = null;
  #batch = 0;
  #engine = null;
  /** Engines of earlier rounds. @type {Set<AgentEngine>} */
  #leavingEngines = new Set();
  /** Round and player number of the engine; empty without an engine. */
  #engineKey = '';
  #nextEngineAt = 0;
  #lastAnnounced = '';
  #isEnding = false;
  #timer;

  /**
   * @param {object} host
   * @param {object} host.options of parse()
   * @param {string} host.arena
   * @param {string} host.base URL of the server
   * @param {string} host.address numeric address of the server
   * @param {string} host.host host of the server, as in a URL
   * @param {import('./needs.js').Plan} host.plan
   * @param {typeof globalThis.fetch} fetch
   * @param {(words: string) => void} say
   */
  constructor(host, fetch, say) {
    this.#host = host;
    this.#fetch = fetch;
    this.#showMessage = say;
  }

  /** Starts the agent. It runs, also without a server, until end() or kill(). */
  start() {
    const { base, arena } = this.#host;
    this.#feeds = new Feeds({
      base,
      fetch: this.#fetch,
      limits: { feedAnswerMost: ANSWER_BYTES },
      onState: (state, { why }) => state === 'offline' && this.#announce(`no contact (${why})`)
    });
    this.#feeds.watch(`arena/${arena}/control`, (control, { problem }) =>
      this.#applyControl(control, problem)
    );
    this.#timer = setInterval(() => this.#report(), REPORT_MS);
  }

  /** Shows a message, unless it equals the last one. */
  #announce(words) {
    if (words !== this.#lastAnnounced) this.#showMessage(words);
    this.#lastAnnounced = words;
  }

  #applyControl(control, problem) {
    if (this.#isEnding) return;
    this.#control = readControl(control);
    if (this.#control !== null) {
      this.#joinArena();
    } else {
      this.#announce(problem ? `no word of the arena (${problem})` : 'another game is played');
      this.#leaveArena();
    }
    this.#applySettings();
  }

  /** Joins the arena as a player. */
  #joinArena() {
    if (this.#player !== null) return;
    const { base, arena } = this.#host;
    const player = new Player({
      base: `${base}arena/${arena}`,
      fetch: this.#fetch,
      onState: (state, { why }) => {
        // A stopped player may still receive an answer.
        if (this.#player !== player) return;
        if (state === 'online') this.#announce(`in the arena as number ${player.number}`);
        else if (why) this.#announce(`out of the arena (${why})`);
        this.#applySettings();
      }
    });
    this.#player = player;
    player.start();
    this.#reducedWatch = this.#feeds.watch(`arena/${arena}`, (reduced) => {
      const { game, round, value } = reduced ?? {};
      // A value of an earlier round is stale.
      if (game !== GAME || round !== this.#control?.round || !isCount(value?.batch)) return;
      this.#batch = value.batch;
      this.#applySettings();
    });
  }

  /** Leaves the arena. */
  async #leaveArena() {
    if (this.#player === null) return;
    const { leaveUrl } = this.#player;
    this.#player.stop();
    this.#reducedWatch.close();
    [this.#player, this.#reducedWatch] = [null, null];
    if (leaveUrl === undefined) return;
    const requestLimits = { requestTimeout: REPORT_MS, answerMost: ANSWER_BYTES };
    const requests = new Requests(this.#fetch, globalTimers(), requestLimits);
    // Without an answer, the player's lease ends later.
    await requests.send(leaveUrl, { method: 'POST' }).catch(ignoreFailure);
  }

  /** The panel's settings, within the bounds of the command line. */
  get #boundedSettings() {
    const { clientsMax, rateMax } = this.#host.options;
    const { clients = 0, throws = 0 } = this.#control ?? {};
    return {
      clients: this.#isEnding ? 0 : Math.min(clients, clientsMax),
      rate: this.#isEnding ? 0 : Math.min(throws, rateMax),
      isBounded: clients > clientsMax || throws > rateMax
    };
  }

  /** Starts or ends the engine if the round has changed, and sends it the panel's settings. */
  #applySettings() {
    const { isRunning, round } = this.#control ?? {};
    const number = this.#player?.number;
    const engineKey = isRunning && isCount(number, MAX_PLAYERS) ? `${round} ${number}` : '';
    if (engineKey !== this.#engineKey) this.#replaceEngine(engineKey, { round, number });
    if (this.#engine === null || this.#batch === 0) return;
    const { clients, rate, isBounded } = this.#boundedSettings;
    const boundedText = isBounded ? ', bounded by --clients-max and --rate-max' : '';
    this.#announce(`round ${round}: ${clients} clients, ${rate} sprites a second${boundedText}`);
    this.#engine.steer({ clients, rate, batch: this.#batch });
  }

  /** Ends the engine of the last round, and starts an engine for the current round, if there is one. */
  #replaceEngine(engineKey, { round, number }) {
    // The old engine leaves in the background; the sprites of the two engines have different names.
    if (this.#engine !== null) this.#endInBackground(this.#engine);
    [this.#engine, this.#engineKey, this.#batch] = [null, '', 0];
    if (engineKey === '') this.#announce('waiting for the panel');
    // Before `#nextEngineAt` there is no new engine: the next report tries again.
    if (engineKey === '' || performance.now() < this.#nextEngineAt) return;
    this.#engineKey = engineKey;
    this.#nextEngineAt = performance.now() + REPORT_MS;
    const name = `${this.#host.arena}.${round}`;
    const engine = new AgentEngine({ name, number }, this.#host, (why) => {
      this.#showMessage(why);
      if (this.#engine !== engine) return;
      [this.#engine, this.#engineKey] = [null, ''];
      this.#nextEngineAt = performance.now() + RESTART_MS;
    });
    this.#engine = engine;
  }

  async #endInBackground(engine) {
    this.#leavingEngines.add(engine);
    const [oldest] = this.#leavingEngines;
    if (this.#leavingEngines.size > MAX_LEAVING_ENGINES) oldest.kill();
    await engine.end();
    this.#leavingEngines.delete(engine);
  }

  #report() {
    this.#applySettings();
    const report = this.#engine?.report();
    if (!report || this.#player === null) return;
    this.#player.addInput({
      round: this.#control.round,
      machine: 1,
      bounded: Number(this.#boundedSettings.isBounded),
      done: Number(this.#isEnding),
      ...report
    });
  }

  /** Stops throwing, reports until all thrown sprites are counted, and leaves the arena. */
  async end() {
    this.#isEnding = true;
    if (this.#engine !== null && this.#batch > 0) {
      this.#announce('leaving: what is under way has to arrive');
      const lastBatch = this.#batch + SETTLED_AFTER + 1;
      const deadline = performance.now() + FINAL_REPORTS_MS;
      this.#applySettings();
      const isCounted = () => this.#engine?.isAtRest !== false && this.#batch > lastBatch;
      while (!isCounted() && this.#engineKey !== '' && performance.now() < deadline)
        await sleep(100);
    }
    this.kill();
    if (this.#player !== null) this.#announce('has left');
    await this.#leaveArena();
  }

  /** Ends the agent at once, with its processes and its requests. */
  kill() {
    clearInterval(this.#timer);
    this.#isEnding = true;
    for (const engine of [this.#engine, ...this.#leavingEngines]) engine?.kill();
    this.#feeds.close();
  }
}

/**
 * The engine of an agent, for one round: it has the wanted number of clients and sprites a second, and makes the
 * report of each second.
 */

/** Interval between two ticks of the engine, in milliseconds. */
const TICK_MS = 200;

/** Number of connections for throws. */
const LANES = 64;

/** Time limit of an engine, in seconds: a day. */
const ENGINE_LIMIT_S = 86_400;

/** Timeout of the leave of all clients, in milliseconds. */
const LEAVE_MS = 10_000;

class AgentEngine {
  #engine;
  #tick;
  #arrivalTimes = new Histogram();
  #lastReport = { at: 0, accepted: 0 };
  #sentSettings = {};
  #batch = 0;
  #isEnded = false;
  #isKilled = false;

  /**
   * @param {object} round
   * @param {string} round.name name of the swarm: engines of one name count each other's sprites
   * @param {number} round.number number of this engine in the swarm
   * @param {object} parts
   * @param {object} parts.options of parse()
   * @param {string} parts.address numeric address of the server
   * @param {string} parts.host host of the server, as in a URL
   * @param {import('./needs.js').Plan} parts.plan
   * @param {(why: string) => void} onDeath called when the engine ends without `quit`
   */
  constructor({ name, number }, { options, address, host, plan }, onDeath) {
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
        limit: ENGINE_LIMIT_S,
        seed: options.seed
      },
      {
        tick: (tick) => {
          this.#tick = tick;
          this.#arrivalTimes.add(tick.arrival);
        },
        died: onDeath
      },
      trustedCertificates(options)
    );
  }

  /** @param {{clients: number, rate: number, batch: number}} wanted the settings from now on */
  steer(wanted) {
    if (this.#isEnded) return;
    this.#batch = Math.max(this.#batch, wanted.batch);
    // `batch` is sent first: the next sprites belong to it.
    for (const [name, value] of Object.entries({ ...wanted, batch: this.#batch }).toReversed()) {
      if (this.#sentSettings[name] !== value) this.#engine.send(`${name} ${value}`);
      this.#sentSettings[name] = value;
    }
  }

  /** @returns {?object} the inputs of the game `load` since the last report; null before the first tick or batch */
  report() {
    const tick = this.#tick;
    if (tick === undefined || this.#batch === 0) return null;
    const at = tick.at / 1e9;
    const { at: lastAt, accepted } = this.#lastReport;
    const perSecond = lastAt > 0 && at > lastAt ? (tick.accepted - accepted) / (at - lastAt) : 0;
    this.#lastReport = { at, accepted: tick.accepted };
    const { p50, p99 } = this.#arrivalTimes.summary();
    this.#arrivalTimes = new Histogram();
    return {
      connections: tick.parked,
      members: tick.members,
      batch: this.#batch,
      ...sumThrough(tick.batches, this.#batch - SETTLED_AFTER),
      perSecond,
      p50: p50 ?? -1,
      p99: p99 ?? -1,
      refused: tick.refused,
      broken: tick.closed,
      stall: tick.lateness / 1e6
    };
  }

  /** @returns {boolean} whether the engine has no members and no pending throws */
  get isAtRest() {
    return this.#tick === undefined || this.#tick.members + this.#tick.pending === 0;
  }

  /** Lets all clients leave, and ends the engine. */
  async end() {
    this.steer({ clients: 0, rate: 0, batch: this.#batch });
    this.#isEnded = true;
    const deadline = performance.now() + LEAVE_MS;
    const isOver = () => this.#isKilled || this.isAtRest || performance.now() > deadline;
    while (!isOver()) await sleep(TICK_MS);
    if (!this.#isKilled) this.#engine.send('quit');
    await Promise.race([this.#engine.ended, sleep(LEAVE_MS, undefined, { ref: false })]);
    this.kill();
  }

  kill() {
    this.#isEnded = true;
    this.#isKilled = true;
    this.#engine.kill();
  }
}

/** Default of --clients-max, if the host's file limit allows it. */
const DEFAULT_CLIENTS_MAX = 10_000;

/** Descriptors kept free beside those of clients and throws. */
const SPARE_FILES = 128;

/** Most arenas of a server, and the longest list of arenas, in bytes. */
const MAX_ARENAS = 16;
const LIST_BYTES = 2 ** 16;

/** Messages for failures of Requests that are no network errors. */
const FAILURES = { slow: 'not in time', garbage: 'what does is no list of arenas' };

/**
 * @returns {Promise<string[]>} the names of a server's arenas
 * @throws {UsageError} when there are none, or no such server
 */
async function fetchArenaNames(fetch, base, { host, wait }) {
  const url = `${base}arena`;
  const requestTimeout = Math.max(1000, wait * 1000);
  const requests = new Requests(fetch, globalTimers(), { requestTimeout, answerMost: LIST_BYTES });
  let answer;
  try {
    answer = await requests.send(url, {});
  } catch (error) {
    const { cause, reason } = ignoreFailure(error);
    const rootCause = cause.cause ?? cause;
    const words = FAILURES[reason] ?? rootCause.code ?? rootCause.message;
    throw new UsageError(
      permanentErrorMessage(rootCause, host) ?? `nothing answers at ${url} (${words})`
    );
  }
  const { status, json } = answer;
  if (status >= 300 && status < 400) {
    throw new UsageError(
      `${url} answers ${status}, a redirect, which is not followed: give the URL that it leads to`
    );
  }
  const arenas = status === 200 && Array.isArray(json?.arenas) ? json.arenas : [];
  const names = arenas.slice(0, MAX_ARENAS).map((one) => one?.name);
  if (names.length > 0 && names.every(isArenaName)) return names;
  throw new UsageError(`${base} has no arena (bin/sprites --arena hall)`);
}

/** @returns {Promise<string>} the arena's name: from the URL, or the name of the server's only arena */
async function chooseArena(fetch, base, options) {
  const names = await fetchArenaNames(fetch, base, options);
  const { arena = names.length === 1 ? names[0] : undefined } = options;
  if (names.includes(arena)) return arena;
  const urls = names.map((name) => `${base}play/${name}`).join(', ');
  throw new UsageError(arena ? `no arena "${arena}" there: ${urls}` : `which arena? ${urls}`);
}

/**
 * Runs `sprites-swarm agent URL` until a signal. A second signal ends the agent at once.
 *
 * @param {object} options of parse()
 * @returns {Promise<number>} the exit code
 * @throws {UsageError} when the agent can't start
 */
export async function runAgent(options) {
  const fetch = createFetch(options);
  const { address, host } = await resolveTarget(options.host);
  const base = `${options.tls ? 'https' : 'http'}://${host}:${options.port}/`;
  const arena = await chooseArena(fetch, base, options);
  const resources = readHostResources();
  const clientsMax =
    options.clientsMax ??
    Math.max(1, Math.min(DEFAULT_CLIENTS_MAX, resources.files - LANES - SPARE_FILES));
  const agentOptions = { ...options, clientsMax };
  const enginePlan = plan(
    { ...agentOptions, clients: clientsMax, lanes: LANES, processes: 1, address },
    resources
  );
  const showMessage = (words) => options.quiet || process.stderr.write(`sprites-swarm: ${words}\n`);
  const agent = new Agent(
    { options: agentOptions, arena, base, address, host, plan: enginePlan },
    fetch,
    showMessage
  );
  showMessage(
    `agent of ${base}play/${arena}: at most ${clientsMax} clients, ${options.rateMax} sprites a second`
  );
  agent.start();
  await untilSignal(agent);
  return 0;
}

/** Resolves after a signal, when the agent has left. */
function untilSignal(agent) {
  return new Promise((resolve, reject) => {
    let isLeaving = false;
    const removeHandlers = onSignals(() => {
      if (isLeaving) {
        agent.kill();
        return false;
      }
      isLeaving = true;
      agent.end().then(() => {
        removeHandlers();
        resolve();
      }, reject);
      return true;
    });
  });
}
