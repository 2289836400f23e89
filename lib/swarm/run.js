import { setTimeout as sleep } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';

import { Account, Interruptions, Tally } from './tally.js';
import { Engine } from './engine.js';
import { inUrl } from '../base/lan-addresses.js';
import { UsageError } from '../base/option-help.js';
import { readHostResources, evenShareOf, plan } from './needs.js';
import { coresBetween, ServerWatch, useOf } from './server-watch.js';
import { resultOf } from './result.js';
import { StageLog, stagesOption } from './stages.js';
import { StatusReader } from './status.js';
import { storm } from './storm.js';
import { trustedCertificates, permanentErrorMessage, resolveTarget, tlsOf } from './target.js';
import { roundedToMs } from '../report/words.js';

/**
 * One run of the swarm: its phases, and the engines that carry them out.
 *
 *     look ─▶ open ─▶ the command's own phase ─▶ drain ─▶ leave ─▶ account
 *                        park, throw, latency, storm
 *
 * Every phase has a time limit, whatever the server does. The first signal ends the current phase, and the run
 * continues with the drain; the second signal ends the run, with the account so far. The third signal ends the program
 * at once, as does a signal before all engines have started.
 */

/** Interval between two ticks of an engine, in milliseconds. */
const TICK_MS = 100;

/** How often a phase checks whether it is over, in milliseconds. */
const CHECK_MS = 50;

/** Least timeout of the first answer, in milliseconds, also for a shorter --wait. */
const FIRST_ANSWER_MS = 1000;

/** Time for the ack of the last sprite to reach the server, in milliseconds. */
const ACK_MS = 300;

/** The opening and the leave are given up after this time without progress, in seconds. */
const NO_PROGRESS_SECONDS = 10;

export class Run {
  #options;
  #progress;
  #engines = [];
  #account = new Account();
  #finishedAccounts = 0;
  #interruptCount = 0;
  #handledInterrupts = 0; // interrupts that ended earlier phases
  #deathReasons = [];
  #clientCount = null;
  #facts = { phases: {} };
  #watch;

  /**
   * @param {object} options of parse()
   * @param {object} progress of createProgress()
   */
  constructor(options, progress) {
    this.#options = options;
    this.#progress = progress;
  }

  /** Ends the current phase; the second call ends the run. @returns {boolean} false: the caller ends the program */
  interrupt() {
    // An engine that is still starting does not ignore signals yet, and dies of them.
    const haveEnginesBegun =
      this.#engines.length > 0 && this.tally.engines === this.#engines.length;
    if (!haveEnginesBegun || this.#interruptCount > 1) return false;
    this.#interruptCount++;
    if (this.#interruptCount > 1) {
      for (const engine of this.#engines) engine.kill();
      this.status.close();
    }
    return true;
  }

  /**
   * @returns {Promise<object>} the result: see result.js
   * @throws {UsageError} when the run can't begin
   */
  async execute() {
    const { options, target } = await this.#prepare();
    this.tally = new Tally(options.time + options.clients / options.ramp + 2);
    this.interruptions = new Interruptions(this.#firstClients + this.#facts.probes);
    try {
      await this.#watch.start(() => this.tally.seconds);
      this.#startEngines(options, target);
      if ((await this.#open()) && this.#interruptCount === 0) {
        await this[`_${options.command}`]();
        await this.#waitForReturn();
      }
      await this.#drain();
      await this.#leave();
      await this.#waitForAccount();
    } finally {
      await this.#end();
    }
    return resultOf({
      options,
      target,
      facts: this.#facts,
      watch: this.#watch,
      tally: this.tally,
      account: this.#account.result(),
      engineDoubles: this.#account.doubles,
      interruptions: this.interruptions.list,
      deaths: this.#deathReasons,
      interrupted: this.#interruptCount > 0,
      isAccountComplete: this.#isAccountComplete
    });
  }

  /** Whether a second signal came or an engine died: waiting for the other engines is useless. */
  get #isAborted() {
    return this.#interruptCount > 1 || this.#deathReasons.length > 0;
  }

  get #isAccountComplete() {
    return this.#finishedAccounts === this.#engines.length;
  }

  /** Resolves the address, plans the engines, and checks that a server answers. */
  async #prepare() {
    const options = this.#options;
    const { address, host } = await resolveTarget(options.host);
    const probes = options.command === 'latency' ? options.probes : 0;
    const lanes = options.throwing === 'none' ? Math.min(16, options.clients) : options.throwers;
    this.#facts.plan = plan({ ...options, address, lanes }, readHostResources());
    this.#facts.probes = probes;
    const target = { address, host, port: options.port };
    const tls = tlsOf(options);
    // --status-port is an admin port: it speaks plain http, and its Host header is a numeric address.
    const admin = { address, host: inUrl(address), port: options.statusPort };
    this.status = new StatusReader(options.statusPort ? admin : { ...target, tls });
    this.#facts.before = await this.#waitForFirstAnswer(options);
    this.#watch = new ServerWatch({ ...options, address }, this.status);
    return { options, target };
  }

  async #waitForFirstAnswer({ host, port, statusPort, wait }) {
    const hint = statusPort
      ? `Has the server that --admin-port? To open it: bin/sprites --admin-port ${statusPort}`
      : `Is the server up? To start one: bin/sprites --port ${port}`;
    const end = performance.now() + wait * 1000;
    for (;;) {
      try {
        return await this.status.read(Math.max(FIRST_ANSWER_MS, end - performance.now()));
      } catch (error) {
        const fatalMessage = permanentErrorMessage(error, host);
        if (fatalMessage || performance.now() >= end) {
          this.status.close();
          throw new UsageError(
            fatalMessage ??
              `nothing answers at ${inUrl(host)}:${statusPort ?? port} ` +
                `(${error.code ?? error.message}). ${hint}`
          );
        }
        await sleep(200);
      }
    }
  }

  #startEngines(options, target) {
    const { engines, sources } = this.#facts.plan;
    const { throwing, stages } = options;
    const swarm = Math.random().toString(36).slice(2, 8).padEnd(6, '0');
    const probeProcess = options.command === 'latency' ? engines.length : 4294967295;
    // The engines' own time limit, well after the end of all phases: an engine whose parent hangs must end too.
    const limit = Math.ceil(
      options.time + openLimit(options) + options.drain + leaveLimit(options) + options.wait + 120
    );
    const shared = {
      ...target,
      'server-name': options.host,
      'transient-port': options.transientPort,
      swarm,
      'probe-process': probeProcess,
      sources,
      size: options.size,
      hold: options.hold ?? 0,
      tick: TICK_MS,
      limit,
      seed: options.seed
    };
    engines.forEach((engine, i) =>
      this.#startEngine({
        ...shared,
        process: i,
        clients: engine.clients,
        'first-client': engine.firstClient,
        // An engine without throwers still needs a lane to leave.
        lanes: Math.max(1, engine.lanes),
        ramp: options.ramp / engines.length,
        'in-flight': Math.max(1, Math.floor(options.connecting / engines.length)),
        throwing: throwing === 'closed' && engine.lanes === 0 ? 'none' : throwing,
        'every-client': options.everyClient ? 1 : 0,
        rate:
          ((throwing === 'rate' && stages ? stages.firstTarget : options.rate) ?? 0) /
          engines.length,
        ...(throwing === 'rate' && stages && { stages: stagesOption(stages, engines.length) }),
        phase: i / engines.length
      })
    );
    this.#facts.loadEngines = engines.length;
    if (options.command !== 'latency') return;
    this.#startEngine({
      ...shared,
      process: probeProcess,
      clients: options.probes,
      'first-client': options.clients,
      lanes: Math.min(4, options.probes),
      throwing: 'rate',
      rate: options.probeRate
    });
  }

  #startEngine(options) {
    const events = {
      tick: (tick) => this.tally.add(tick),
      page: (header, bytes) => this.#account.add(header, bytes),
      account: () => this.#finishedAccounts++,
      died: (why) => this.#deathReasons.push(why)
    };
    this.#engines.push(new Engine(options, events, trustedCertificates(this.#options)));
  }

  #send(command, engines = this.#engines) {
    for (const engine of engines) engine.send(command);
  }

  /**
   * Waits until `done()`, the end of the time, a signal or the death of an engine.
   *
   * @returns {Promise<boolean>} whether `done()` was true
   */
  async #waitUntil(isDone, seconds, show = () => {}) {
    const end = performance.now() + seconds * 1000;
    for (;;) {
      this.tally.sample();
      show();
      if (isDone()) return true;
      const remaining = end - performance.now();
      if (remaining <= 0 || this.#interruptCount > this.#handledInterrupts || this.#isAborted)
        return false;
      await sleep(Math.min(CHECK_MS, remaining));
    }
  }

  /** Number of clients that are opened before the command's own phase. */
  get #firstClients() {
    const { command, clients, stages } = this.#options;
    return command === 'park' && stages ? stages.firstTarget : clients;
  }

  /** Sets the number of clients of all engines together: see Clients::setClientCount() in native/swarm/clients.h. */
  #setClientCount(count) {
    if (count === this.#clientCount) return;
    this.#clientCount = count;
    const { length } = this.#engines;
    this.#engines.forEach((engine, i) => {
      engine.send(`clients ${evenShareOf(count, length, i)}`);
    });
  }

  async #open() {
    const { ramp, stages } = this.#options;
    const clients = this.#firstClients;
    const wantedClients = clients + this.#facts.probes;
    const started = performance.now();
    const limit = openLimit(this.#options);
    let lastGrowth = started;
    let parked = 0;
    this.#progress.begin('opening', wantedClients);
    const load = this.#engines.slice(0, this.#facts.loadEngines);
    if (stages && this.#options.command === 'park') this.#setClientCount(clients);
    else this.#send('open', load);
    const hasReached = (wanted) => () => {
      const now = this.tally.counts.parked;
      if (now > parked) [parked, lastGrowth] = [now, performance.now()];
      const mostIdleMs = NO_PROGRESS_SECONDS * 1000 + 5000 / ramp;
      return now >= wanted || performance.now() - lastGrowth > mostIdleMs;
    };
    const show = () => {
      const seconds = (performance.now() - started) / 1000;
      this.#progress.update(parked, `parked, ${Math.round(parked / seconds)} a second`);
    };
    await this.#waitUntil(hasReached(clients), limit, show);
    if (this.#facts.probes > 0 && parked >= clients) {
      this.#send('open', this.#engines.slice(this.#facts.loadEngines));
      await this.#waitUntil(hasReached(wantedClients), limit, show);
    }
    const seconds = (performance.now() - started) / 1000;
    const areAllParked = parked >= wantedClients;
    this.#facts.opened = {
      clients: parked,
      wanted: wantedClients,
      seconds: roundedToMs(seconds),
      perSecond: Math.round(parked / seconds)
    };
    if (areAllParked) await this.#waitUntilServerCounts(wantedClients);
    this.#progress.end(`${parked} of ${wantedClients} parked after ${seconds.toFixed(1)} s`);
    return areAllParked;
  }

  /** Waits up to 10 s until the server counts all polls as parked; the swarm counts each as soon as it is written. */
  async #waitUntilServerCounts(wantedClients) {
    const otherPolls = this.#facts.before?.parked ?? 0;
    const end = performance.now() + 10_000;
    let status = await this.status.tryRead();
    while (
      status?.parked < wantedClients + otherPolls &&
      performance.now() < end &&
      this.#interruptCount === 0
    ) {
      await sleep(CHECK_MS);
      status = await this.status.tryRead();
    }
    this.#facts.serverParked = status?.parked ?? null;
    this.#facts.loaded = status;
  }

  async _park() {
    const { time, stages } = this.#options;
    const describeParked = () =>
      `${this.tally.counts.parked} of ${this.#clientCount ?? this.#firstClients} parked`;
    const setClientCount = (count) => this.#setClientCount(Math.round(count));
    await this.#measureUse(async () => {
      await this.#runTimedPhase('holding', time, describeParked, setClientCount);
      if (stages && this.#interruptCount === 0) await this.#waitForLastClients(stages.lastTarget);
    });
  }

  /** Waits for the last clients, which are still arriving or leaving at the end of the stages. */
  async #waitForLastClients(clients) {
    const haveSettled = () => {
      const { parked, members } = this.tally.counts;
      return parked >= clients && members <= clients;
    };
    await this.#waitUntil(haveSettled, NO_PROGRESS_SECONDS);
    this.#facts.stages.at(-1).parked = this.tally.counts.parked;
  }

  /**
   * Waits for clients that lost their polls, and notes when they do not come back, as after the end of a server.
   * Clients that throw may pause at the server's request: with them it is a fault only if none is parked.
   */
  async #waitForReturn() {
    const { command, stages } = this.#options;
    const lastInterruption = () => this.interruptions.list.at(-1) ?? { seconds: 0 };
    const areAway = () =>
      lastInterruption().seconds === null &&
      (command === 'park' ? !stages : lastInterruption().lowest === 0);
    const areBack = () => {
      this.interruptions.observe(this.tally.seconds, this.tally.counts.parked);
      return !areAway();
    };
    if (!areAway() || (await this.#waitUntil(areBack, NO_PROGRESS_SECONDS))) return;
    this.#facts.lowestParked = lastInterruption().lowest;
  }

  /** @param {(asked: number) => void} [onTarget] gets the current target of the stages, if there are any */
  async #runTimedPhase(phase, seconds, describe, onTarget = () => {}) {
    const { stages, command } = this.#options;
    const started = this.tally.seconds;
    const log = stages && new StageLog(stages, this.tally);
    this.#progress.begin(phase, Math.ceil(seconds));
    const samplePhase = (elapsed) => {
      if (log) onTarget((this.tally.stageTarget = log.advance(elapsed)));
      const wanted = log && command === 'park' ? Math.round(this.tally.stageTarget) : undefined;
      this.interruptions.observe(this.tally.seconds, this.tally.counts.parked, wanted);
    };
    await this.#waitUntil(
      () => false,
      seconds,
      () => {
        const elapsed = this.tally.seconds - started;
        samplePhase(elapsed);
        this.#progress.update(Math.floor(elapsed), describe());
      }
    );
    if (log) {
      if (this.#interruptCount === 0) samplePhase(seconds);
      this.tally.stageTarget = null;
      this.#facts.stages = log.rows;
    }
    this.#facts.phases[phase] = { from: roundedToMs(started), to: roundedToMs(this.tally.seconds) };
    this.#progress.end();
  }

  async _throw() {
    const { time } = this.#options;
    const before = this.tally.counts;
    let seconds;
    await this.#measureUse(async () => {
      const started = performance.now();
      this.#send(`throw ${Math.round(time * 1000)}`);
      await this.#runTimedPhase('throwing', time, () => this.#throwNote());
      // Each engine throws for this time by its own clock, from the moment it reads the command.
      const wantedEnds = before.over + this.#engines.length;
      await this.#waitUntil(() => this.tally.counts.over >= wantedEnds, time + NO_PROGRESS_SECONDS);
      this.#send('stop');
      seconds = Math.min(time, (performance.now() - started) / 1000);
    });
    // The last tick arrives up to an interval later.
    await sleep(TICK_MS * 1.2);
    const after = this.tally.counts;
    this.#facts.throwing = {
      seconds: roundedToMs(seconds),
      thrown: after.accepted - before.accepted,
      arrived: after.received - before.received,
      perSecond: Math.round((after.accepted - before.accepted) / seconds)
    };
  }

  #throwNote() {
    const point = this.tally.series.at(-1);
    const p99 = point?.p99 == null ? '' : `, p99 ${point.p99} ms`;
    return `${point?.received ?? 0} sprites/s${p99}`;
  }

  _latency = this._throw;

  async _storm() {
    const options = this.#options;
    const { time, clients } = options;
    const isThrowing = options.throwing !== 'none';
    if (isThrowing) this.#send(`throw ${Math.ceil(time + 30) * 1000}`);
    const otherPolls = this.#facts.before?.parked ?? 0;
    const isCountedByServer = typeof this.#facts.serverParked === 'number';
    this.#progress.begin('storm', clients);
    const outcome = await this.#measureUse(() =>
      storm({
        options,
        countedBy: isCountedByServer ? 'server' : 'swarm',
        parked: async () =>
          isCountedByServer
            ? (await this.status.tryRead())?.parked - otherPolls
            : this.tally.counts.parked,
        clock: () => this.tally.seconds,
        send: (command) => this.#send(command),
        isOver: () => this.#interruptCount > 0 || this.#deathReasons.length > 0,
        show: (parked, note) => {
          this.tally.sample();
          this.#progress.update(parked, note);
        }
      })
    );
    const { from, to, ...facts } = outcome;
    this.#facts.storm = facts;
    this.#facts.phases.storm = { from, to };
    if (isThrowing) this.#send('stop');
    const secondsUntilAll = facts.seconds[100];
    this.#progress.end(
      secondsUntilAll === null
        ? `${facts.parked} of ${clients} parked again by the end`
        : `all parked again after ${secondsUntilAll} s`
    );
  }

  /** Runs a phase, and measures the CPU time and memory of the server and the CPU time of the engines. */
  async #measureUse(phase) {
    const before = { server: await this.#watch.sample(), engines: this.#sampleEngines() };
    const result = await phase();
    const after = { server: await this.#watch.sample(), engines: this.#sampleEngines() };
    this.#facts.use = { before: before.server, after: after.server };
    this.#facts.engineCores = Math.max(
      ...after.engines.map((use, i) => coresBetween(before.engines[i], use))
    );
    return result;
  }

  #sampleEngines() {
    const at = performance.now() / 1000;
    return this.#engines.map(({ pid }) => ({ at, cpu: useOf(pid)?.cpu ?? 0 }));
  }

  /** Waits for the answers to throws, then for the sprites, then for their acks. */
  async #drain() {
    this.#handledInterrupts = this.#interruptCount;
    this.#send('stop');
    const { drain } = this.#options;
    const started = performance.now();
    const haveArrived = () => {
      const { pending, received, accepted } = this.tally.counts;
      return pending === 0 && received >= accepted;
    };
    await sleep(TICK_MS * 1.2);
    if (!haveArrived()) {
      this.#progress.begin('draining', Math.ceil(drain));
      await this.#waitUntil(haveArrived, drain, () => {
        const { pending, received, accepted } = this.tally.counts;
        this.#progress.update(
          Math.floor((performance.now() - started) / 1000),
          `${pending} unanswered, ${Math.max(0, accepted - received)} under way`
        );
      });
      this.#progress.end();
    }
    this.#facts.drainSeconds = roundedToMs((performance.now() - started) / 1000);
    if (this.#interruptCount < 2) await sleep(ACK_MS);
    this.#facts.drained = await this.#lastStatus();
    // Counts all clients with a place, not only the parked ones: a client that pauses or reconnects is no
    // stranger. It waits a tick, so that a client that joined before the server's count is counted here too.
    await sleep(TICK_MS * 1.2);
    this.#facts.ownMembers = this.tally.counts.members;
  }

  async #leave() {
    if (this.#options.stay || this.#isAborted) return;
    this.#handledInterrupts = this.#interruptCount;
    const total = this.#options.clients + this.#facts.probes;
    this.#progress.begin('leaving', total);
    this.#send('clients 0');
    let lastProgress = { left: -1, at: 0 };
    const isOver = () => {
      const { left, members } = this.tally.counts;
      if (left !== lastProgress.left) lastProgress = { left, at: performance.now() };
      return members === 0 || performance.now() - lastProgress.at > NO_PROGRESS_SECONDS * 1000;
    };
    await this.#waitUntil(isOver, leaveLimit(this.#options), () =>
      this.#progress.update(lastProgress.left, 'have left')
    );
    this.#facts.stayingMembers = this.tally.counts.members;
    this.#progress.end(`${this.tally.counts.left} have left`);
  }

  async #waitForAccount() {
    this.#send('account');
    const end = performance.now() + 60_000;
    while (!this.#isAccountComplete && !this.#isAborted && performance.now() < end)
      await sleep(CHECK_MS);
    this.#facts.after = await this.#lastStatus();
  }

  async #lastStatus() {
    return this.#interruptCount > 1 ? null : this.status.tryRead();
  }

  async #end() {
    this.#send('quit');
    const timer = setTimeout(() => this.#engines.forEach((engine) => engine.kill()), 5000);
    await Promise.all(this.#engines.map((engine) => engine.ended));
    clearTimeout(timer);
    this.#watch.stop();
    this.status.close();
  }
}

/** Returns the time limit of the opening, in seconds. */
function openLimit({ clients, ramp }) {
  return 60 + (10 * clients) / Math.min(ramp, 5000);
}

function leaveLimit({ clients }) {
  return 60 + clients / 500;
}
