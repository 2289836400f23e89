import { setTimeout as sleep } from 'node:timers/promises';

import { SETTLED, through } from '../arena/games/load/batches.js';
import { Feeds } from '../client/feeds.js';
import { Player } from '../client/player.js';
import { globalTimers, ignoreFailure, Requests } from '../client/requests.js';
import { Engine } from './engine.js';
import { UsageError } from '../base/option-help.js';
import { Histogram } from './histogram.js';
import { lookAtHost, plan } from './needs.js';
import { isArenaName } from './options.js';
import { onSignals } from './signals.js';
import { fetchBy } from './status.js';
import { believedBy, hopeless, targetOf } from './target.js';

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
const EVERY = 1000;
const AGAIN = 5000;

/** Longest time that an ending agent still reports, so that all its sprites are counted, in milliseconds. */
const FAREWELL = 20_000;

/** Most engines of earlier rounds that may still be leaving: it bounds the processes when rounds change fast. */
const LEAVING = 3;

/** Highest round, batch and setting; highest number of a player; longest answer with both feeds, in bytes. */
const MOST = 1e9;
const MOST_PLAYERS = 1e6;
const ANSWER_BYTES = 2 ** 20;

const isCount = (value, most = MOST) => Number.isSafeInteger(value) && value >= 0 && value <= most;
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
  #say;
  #feeds;
  #reduced = null;
  #player = null;
  #control = null;
  #batch = 0;
  #engine = null;
  /** Engines of earlier rounds. @type {Set<AgentEngine>} */
  #leaving = new Set();
  /** Round and player number of the engine; empty without an engine. */
  #of = '';
  #notBefore = 0;
  #said = '';
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
    this.#say = say;
  }

  /** Starts the agent. It runs, also without a server, until end() or kill(). */
  start() {
    const { base, arena } = this.#host;
    this.#feeds = new Feeds({
      base,
      fetch: this.#fetch,
      limits: { feedAnswerMost: ANSWER_BYTES },
      onState: (state, { why }) => state === 'offline' && this.#tell(`no contact (${why})`)
    });
    this.#feeds.watch(`arena/${arena}/control`, (control) => this.#obey(control));
    this.#timer = setInterval(() => this.#report(), EVERY);
  }

  /** Shows a message, unless it equals the last one. */
  #tell(words) {
    if (words !== this.#said) this.#say(words);
    this.#said = words;
  }

  #obey(control) {
    if (this.#isEnding) return;
    this.#control = readControl(control);
    if (this.#control !== null) this.#enter();
    else this.#depart(control === undefined ? 'there is no such arena' : 'another game is played');
    this.#step();
  }

  /** Joins the arena as a player. */
  #enter() {
    if (this.#player !== null) return;
    const { base, arena } = this.#host;
    const player = new Player({
      base: `${base}arena/${arena}`,
      fetch: this.#fetch,
      onState: (state, { why }) => {
        // A stopped player may still receive an answer.
        if (this.#player !== player) return;
        if (state === 'online') this.#tell(`in the arena as number ${player.number}`);
        else if (why) this.#tell(`out of the arena (${why})`);
        this.#step();
      }
    });
    this.#player = player;
    player.start();
    this.#reduced = this.#feeds.watch(`arena/${arena}`, (reduced) => {
      const { game, round, value } = reduced ?? {};
      // A value of an earlier round is stale.
      if (game !== GAME || round !== this.#control?.round || !isCount(value?.batch)) return;
      this.#batch = value.batch;
      this.#step();
    });
  }

  /** Leaves the arena. */
  async #depart(why) {
    if (this.#player === null) return;
    this.#tell(why);
    const { leaveUrl } = this.#player;
    this.#player.stop();
    this.#reduced.close();
    [this.#player, this.#reduced] = [null, null];
    if (leaveUrl === undefined) return;
    const bounds = { requestTimeout: EVERY, answerMost: ANSWER_BYTES };
    const requests = new Requests(this.#fetch, globalTimers(), bounds);
    // Without an answer, the player's lease ends later.
    await requests.ask(leaveUrl, { method: 'POST' }).catch(ignoreFailure);
  }

  /** The panel's settings, within the bounds of the command line. */
  get #wanted() {
    const { clientsMax, rateMax } = this.#host.options;
    const { clients = 0, throws = 0 } = this.#control ?? {};
    return {
      clients: this.#isEnding ? 0 : Math.min(clients, clientsMax),
      rate: this.#isEnding ? 0 : Math.min(throws, rateMax),
      isBounded: clients > clientsMax || throws > rateMax
    };
  }

  /** Starts or ends the engine if the round has changed, and sends it the panel's settings. */
  #step() {
    const { isRunning, round } = this.#control ?? {};
    const number = this.#player?.number;
    const of = isRunning && isCount(number, MOST_PLAYERS) ? `${round} ${number}` : '';
    if (of !== this.#of) this.#turn(of, { round, number });
    if (this.#engine === null || this.#batch === 0) return;
    const { clients, rate, isBounded } = this.#wanted;
    const most = isBounded ? ', bounded by --clients-max and --rate-max' : '';
    this.#tell(`round ${round}: ${clients} clients, ${rate} sprites a second${most}`);
    this.#engine.steer({ clients, rate, batch: this.#batch });
  }

  /** Ends the engine of the last round, and starts an engine for the current round, if there is one. */
  #turn(of, { round, number }) {
    // The old engine leaves in the background; the sprites of the two engines have different names.
    if (this.#engine !== null) this.#dismiss(this.#engine);
    [this.#engine, this.#of, this.#batch] = [null, '', 0];
    if (of === '') this.#tell('waiting for the panel');
    // Before `#notBefore` there is no new engine: the next report tries again.
    if (of === '' || performance.now() < this.#notBefore) return;
    this.#of = of;
    this.#notBefore = performance.now() + EVERY;
    const name = `${this.#host.arena}.${round}`;
    const engine = new AgentEngine({ name, number }, this.#host, (why) => {
      this.#say(why);
      if (this.#engine !== engine) return;
      [this.#engine, this.#of] = [null, ''];
      this.#notBefore = performance.now() + AGAIN;
    });
    this.#engine = engine;
  }

  async #dismiss(engine) {
    this.#leaving.add(engine);
    const [oldest] = this.#leaving;
    if (this.#leaving.size > LEAVING) oldest.kill();
    await engine.end();
    this.#leaving.delete(engine);
  }

  #report() {
    this.#step();
    const report = this.#engine?.report();
    if (!report || this.#player === null) return;
    this.#player.offer({
      round: this.#control.round,
      machine: 1,
      bounded: Number(this.#wanted.isBounded),
      done: Number(this.#isEnding),
      ...report
    });
  }

  /** Stops throwing, reports until all thrown sprites are counted, and leaves the arena. */
  async end() {
    this.#isEnding = true;
    if (this.#engine !== null && this.#batch > 0) {
      this.#tell('leaving: what is under way has to arrive');
      const last = this.#batch + SETTLED + 1;
      const late = performance.now() + FAREWELL;
      this.#step();
      const isCounted = () => this.#engine?.isAtRest !== false && this.#batch > last;
      while (!isCounted() && this.#of !== '' && performance.now() < late) await sleep(100);
    }
    this.kill();
    await this.#depart('has left');
  }

  /** Ends the agent at once, with its processes and its requests. */
  kill() {
    clearInterval(this.#timer);
    this.#isEnding = true;
    for (const engine of [this.#engine, ...this.#leaving]) engine?.kill();
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
const LIMIT = 86_400;

/** Timeout of the leave of all clients, in milliseconds. */
const LEAVE_MS = 10_000;

class AgentEngine {
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
   * @param {string} round.name name of the swarm: engines of one name count each other's sprites
   * @param {number} round.number number of this engine in the swarm
   * @param {object} parts
   * @param {object} parts.options of parse()
   * @param {string} parts.address numeric address of the server
   * @param {string} parts.host host of the server, as in a URL
   * @param {import('./needs.js').Plan} parts.plan
   * @param {(why: string) => void} died called when the engine ends without `quit`
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

  /** @param {{clients: number, rate: number, batch: number}} wanted the settings from now on */
  steer(wanted) {
    if (this.#ended) return;
    this.#batch = Math.max(this.#batch, wanted.batch);
    // `batch` is sent first: the next sprites belong to it.
    for (const [name, value] of Object.entries({ ...wanted, batch: this.#batch }).toReversed()) {
      if (this.#told[name] !== value) this.#engine.tell(`${name} ${value}`);
      this.#told[name] = value;
    }
  }

  /** @returns {?object} the inputs of the game `load` since the last report; null before the first tick or batch */
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

  /** @returns {boolean} whether the engine has no members and no pending throws */
  get isAtRest() {
    return this.#tick === undefined || this.#tick.members + this.#tick.pending === 0;
  }

  /** Lets all clients leave, and ends the engine. */
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

/** Default of --clients-max, if the host's file limit allows it. */
const CLIENTS = 10_000;

/** Descriptors kept free beside those of clients and throws. */
const SPARE = 128;

/** Most arenas of a server, and the longest list of arenas, in bytes. */
const ARENAS = 16;
const LIST_BYTES = 2 ** 16;

/** Messages for failures of Requests that are no network errors. */
const FAILURES = { slow: 'not in time', garbage: 'what does is no list of arenas' };

/**
 * @returns {Promise<string[]>} the names of a server's arenas
 * @throws {UsageError} when there are none, or no such server
 */
async function arenasOf(fetch, base, { host, wait }) {
  const url = `${base}arena`;
  const requestTimeout = Math.max(1000, wait * 1000);
  const requests = new Requests(fetch, globalTimers(), { requestTimeout, answerMost: LIST_BYTES });
  let answer;
  try {
    answer = await requests.ask(url, {});
  } catch (error) {
    const { cause, reason } = ignoreFailure(error);
    const origin = cause.cause ?? cause;
    const words = FAILURES[reason] ?? origin.code ?? origin.message;
    throw new UsageError(hopeless(origin, host) ?? `nothing answers at ${url} (${words})`);
  }
  const { status, json } = answer;
  if (status >= 300 && status < 400) {
    throw new UsageError(
      `${url} answers ${status}, a redirect, which is not followed: give the URL that it leads to`
    );
  }
  const arenas = status === 200 && Array.isArray(json?.arenas) ? json.arenas : [];
  const names = arenas.slice(0, ARENAS).map((one) => one?.name);
  if (names.length > 0 && names.every(isArenaName)) return names;
  throw new UsageError(`${base} has no arena (bin/sprites --arena hall)`);
}

/** @returns {Promise<string>} the arena's name: from the URL, or the name of the server's only arena */
async function findArena(fetch, base, options) {
  const names = await arenasOf(fetch, base, options);
  const { arena = names.length === 1 ? names[0] : undefined } = options;
  if (names.includes(arena)) return arena;
  const all = names.map((name) => `${base}play/${name}`).join(', ');
  throw new UsageError(arena ? `no arena "${arena}" there: ${all}` : `which arena? ${all}`);
}

/**
 * Runs `sprites-swarm agent URL` until a signal. A second signal ends the agent at once.
 *
 * @param {object} options of parse()
 * @returns {Promise<number>} the exit code
 * @throws {UsageError} when the agent can't start
 */
export async function runAgent(options) {
  const fetch = fetchBy(options);
  const { address, host } = await targetOf(options.host);
  const base = `${options.tls ? 'https' : 'http'}://${host}:${options.port}/`;
  const arena = await findArena(fetch, base, options);
  const found = lookAtHost();
  const clientsMax =
    options.clientsMax ?? Math.max(1, Math.min(CLIENTS, found.files - LANES - SPARE));
  const all = { ...options, clientsMax };
  const needs = plan({ ...all, clients: clientsMax, lanes: LANES, processes: 1, address }, found);
  const say = (words) => options.quiet || process.stderr.write(`sprites-swarm: ${words}\n`);
  const agent = new Agent({ options: all, arena, base, address, host, plan: needs }, fetch, say);
  say(
    `agent of ${base}play/${arena}: at most ${clientsMax} clients, ${options.rateMax} sprites a second`
  );
  agent.start();
  await until(agent);
  return 0;
}

/** Resolves after a signal, when the agent has left. */
function until(agent) {
  return new Promise((ended, failed) => {
    let isLeaving = false;
    const listenNoMore = onSignals(() => {
      if (isLeaving) {
        agent.kill();
        return false;
      }
      isLeaving = true;
      agent.end().then(() => {
        listenNoMore();
        ended();
      }, failed);
      return true;
    });
  });
}
