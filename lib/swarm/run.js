import { setTimeout as sleep } from 'node:timers/promises';
import { performance } from 'node:perf_hooks';

import { Account, Interruptions, Tally } from './tally.js';
import { Engine } from './engine.js';
import { UsageError } from '../base/option-help.js';
import { lookAtHost, partOf, plan } from './needs.js';
import { coresBetween, ServerWatch, useOf } from './server-watch.js';
import { resultOf } from './result.js';
import { StageLog, stageWords } from './stages.js';
import { StatusReader } from './status.js';
import { storm } from './storm.js';
import { believedBy, hopeless, inUrl, targetOf, tlsOf } from './target.js';
import { thousandths } from '../report/words.js';

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
const LOOK_MS = 50;

/** Least timeout of the first answer, in milliseconds, also for a shorter --wait. */
const ANSWER_MS = 1000;

/** Time for the ack of the last sprite to reach the server, in milliseconds. */
const ACK_MS = 300;

/** The opening and the leave are given up after this time without progress, in seconds. */
const HOPELESS_SECONDS = 10;

export class Run {
  #options;
  #progress;
  #engines = [];
  #account = new Account();
  #accounts = 0;
  #interrupts = 0;
  #seenTo = 0; // interrupts that ended earlier phases
  #deaths = [];
  #aimed = null;
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
    const haveBegun = this.#engines.length > 0 && this.tally.engines === this.#engines.length;
    if (!haveBegun || this.#interrupts > 1) return false;
    this.#interrupts++;
    if (this.#interrupts > 1) {
      for (const engine of this.#engines) engine.kill();
      this.status.close();
    }
    return true;
  }

  /**
   * @returns {Promise<object>} the result: see result.js
   * @throws {UsageError} when the run can't begin
   */
  async go() {
    const { options, target } = await this.#look();
    this.tally = new Tally(options.time + options.clients / options.ramp + 2);
    this.interruptions = new Interruptions(this.#first + this.#facts.probes);
    try {
      await this.#watch.start(() => this.tally.seconds);
      this.#start(options, target);
      if ((await this.#open()) && this.#interrupts === 0) {
        await this[`_${options.command}`]();
        await this.#seeThemBack();
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
      deaths: this.#deaths,
      interrupted: this.#interrupts > 0,
      accounted: this.#isAccounted
    });
  }

  /** Whether a second signal came or an engine died: waiting for the other engines is useless. */
  get #isHopeless() {
    return this.#interrupts > 1 || this.#deaths.length > 0;
  }

  get #isAccounted() {
    return this.#accounts === this.#engines.length;
  }

  /** Resolves the address, plans the engines, and checks that a server answers. */
  async #look() {
    const options = this.#options;
    const { address, host } = await targetOf(options.host);
    const probes = options.command === 'latency' ? options.probes : 0;
    const lanes = options.throwing === 'none' ? Math.min(16, options.clients) : options.throwers;
    this.#facts.plan = plan({ ...options, address, lanes }, lookAtHost());
    this.#facts.probes = probes;
    const target = { address, host, port: options.port };
    const tls = tlsOf(options);
    // --status-port is an admin port: it speaks plain http, and its Host header is a numeric address.
    const admin = { address, host: inUrl(address), port: options.statusPort };
    this.status = new StatusReader(options.statusPort ? admin : { ...target, tls });
    this.#facts.before = await this.#knock(options);
    this.#watch = new ServerWatch({ ...options, address }, this.status);
    return { options, target };
  }

  async #knock({ host, port, statusPort, wait }) {
    const hint = statusPort
      ? `Has the server that --admin-port? To open it: bin/sprites --admin-port ${statusPort}`
      : `Is the server up? To start one: bin/sprites --port ${port}`;
    const end = performance.now() + wait * 1000;
    for (;;) {
      try {
        return await this.status.read(Math.max(ANSWER_MS, end - performance.now()));
      } catch (error) {
        const why = hopeless(error, host);
        if (why || performance.now() >= end) {
          this.status.close();
          throw new UsageError(
            why ??
              `nothing answers at ${inUrl(host)}:${statusPort ?? port} ` +
                `(${error.code ?? error.message}). ${hint}`
          );
        }
        await sleep(200);
      }
    }
  }

  #start(options, target) {
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
      this.#engine({
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
        rate: ((throwing === 'rate' && stages ? stages.first : options.rate) ?? 0) / engines.length,
        ...(throwing === 'rate' && stages && { stages: stageWords(stages, engines.length) }),
        phase: i / engines.length
      })
    );
    this.#facts.load = engines.length;
    if (options.command !== 'latency') return;
    this.#engine({
      ...shared,
      process: probeProcess,
      clients: options.probes,
      'first-client': options.clients,
      lanes: Math.min(4, options.probes),
      throwing: 'rate',
      rate: options.probeRate
    });
  }

  #engine(options) {
    const events = {
      tick: (tick) => this.tally.add(tick),
      page: (header, bytes) => this.#account.add(header, bytes),
      account: () => this.#accounts++,
      died: (why) => this.#deaths.push(why)
    };
    this.#engines.push(new Engine(options, events, believedBy(this.#options)));
  }

  #tell(command, engines = this.#engines) {
    for (const engine of engines) engine.tell(command);
  }

  /**
   * Waits until `done()`, the end of the time, a signal or the death of an engine.
   *
   * @returns {Promise<boolean>} whether `done()` was true
   */
  async #until(done, seconds, show = () => {}) {
    const end = performance.now() + seconds * 1000;
    for (;;) {
      this.tally.sample();
      show();
      if (done()) return true;
      const left = end - performance.now();
      if (left <= 0 || this.#interrupts > this.#seenTo || this.#isHopeless) return false;
      await sleep(Math.min(LOOK_MS, left));
    }
  }

  /** Number of clients that are opened before the command's own phase. */
  get #first() {
    const { command, clients, stages } = this.#options;
    return command === 'park' && stages ? stages.first : clients;
  }

  /** Sets the number of clients of all engines together: see Clients::aim() in native/swarm/clients.h. */
  #aim(count) {
    if (count === this.#aimed) return;
    this.#aimed = count;
    const { length } = this.#engines;
    this.#engines.forEach((engine, i) => {
      engine.tell(`clients ${partOf(count, length, i)}`);
    });
  }

  async #open() {
    const { ramp, stages } = this.#options;
    const clients = this.#first;
    const all = clients + this.#facts.probes;
    const started = performance.now();
    const limit = openLimit(this.#options);
    let lastGrowth = started;
    let parked = 0;
    this.#progress.begin('opening', all);
    const load = this.#engines.slice(0, this.#facts.load);
    if (stages && this.#options.command === 'park') this.#aim(clients);
    else this.#tell('open', load);
    const grown = (wanted) => () => {
      const now = this.tally.counts.parked;
      if (now > parked) [parked, lastGrowth] = [now, performance.now()];
      const patience = HOPELESS_SECONDS * 1000 + 5000 / ramp;
      return now >= wanted || performance.now() - lastGrowth > patience;
    };
    const show = () => {
      const seconds = (performance.now() - started) / 1000;
      this.#progress.update(parked, `parked, ${Math.round(parked / seconds)} a second`);
    };
    await this.#until(grown(clients), limit, show);
    if (this.#facts.probes > 0 && parked >= clients) {
      this.#tell('open', this.#engines.slice(this.#facts.load));
      await this.#until(grown(all), limit, show);
    }
    const seconds = (performance.now() - started) / 1000;
    const complete = parked >= all;
    this.#facts.opened = {
      clients: parked,
      wanted: all,
      seconds: thousandths(seconds),
      perSecond: Math.round(parked / seconds)
    };
    if (complete) await this.#seeThemParked(all);
    this.#progress.end(`${parked} of ${all} parked after ${seconds.toFixed(1)} s`);
    return complete;
  }

  /** Waits up to 10 s until the server counts all polls as parked; the swarm counts each as soon as it is written. */
  async #seeThemParked(all) {
    const others = this.#facts.before?.parked ?? 0;
    const end = performance.now() + 10_000;
    let status = await this.status.tryRead();
    while (status?.parked < all + others && performance.now() < end && this.#interrupts === 0) {
      await sleep(LOOK_MS);
      status = await this.status.tryRead();
    }
    this.#facts.serverParked = status?.parked ?? null;
    this.#facts.loaded = status;
  }

  async _park() {
    const { time, stages } = this.#options;
    const note = () => `${this.tally.counts.parked} of ${this.#aimed ?? this.#first} parked`;
    const aim = (count) => this.#aim(Math.round(count));
    await this.#measured(async () => {
      await this.#hold('holding', time, note, aim);
      if (stages && this.#interrupts === 0) await this.#settle(stages.last);
    });
  }

  /** Waits for the last clients, which are still arriving or leaving at the end of the stages. */
  async #settle(clients) {
    const settled = () => {
      const { parked, members } = this.tally.counts;
      return parked >= clients && members <= clients;
    };
    await this.#until(settled, HOPELESS_SECONDS);
    this.#facts.stages.at(-1).parked = this.tally.counts.parked;
  }

  /**
   * Waits for clients that lost their polls, and notes when they do not come back, as after the end of a server.
   * Clients that throw may pause at the server's request: with them it is a fault only if none is parked.
   */
  async #seeThemBack() {
    const { command, stages } = this.#options;
    const last = () => this.interruptions.list.at(-1) ?? { seconds: 0 };
    const areAway = () =>
      last().seconds === null && (command === 'park' ? !stages : last().lowest === 0);
    const areBack = () => {
      this.interruptions.see(this.tally.seconds, this.tally.counts.parked);
      return !areAway();
    };
    if (!areAway() || (await this.#until(areBack, HOPELESS_SECONDS))) return;
    this.#facts.gone = last().lowest;
  }

  /** @param {(asked: number) => void} [steer] gets the current target of the stages, if there are any */
  async #hold(phase, seconds, note, steer = () => {}) {
    const { stages, command } = this.#options;
    const started = this.tally.seconds;
    const log = stages && new StageLog(stages, this.tally);
    this.#progress.begin(phase, Math.ceil(seconds));
    const see = (passed) => {
      if (log) steer((this.tally.asked = log.see(passed)));
      const wanted = log && command === 'park' ? Math.round(this.tally.asked) : undefined;
      this.interruptions.see(this.tally.seconds, this.tally.counts.parked, wanted);
    };
    await this.#until(
      () => false,
      seconds,
      () => {
        const passed = this.tally.seconds - started;
        see(passed);
        this.#progress.update(Math.floor(passed), note());
      }
    );
    if (log) {
      if (this.#interrupts === 0) see(seconds);
      this.tally.asked = null;
      this.#facts.stages = log.rows;
    }
    this.#facts.phases[phase] = { from: thousandths(started), to: thousandths(this.tally.seconds) };
    this.#progress.end();
  }

  async _throw() {
    const { time } = this.#options;
    const before = this.tally.counts;
    let seconds;
    await this.#measured(async () => {
      const started = performance.now();
      this.#tell(`throw ${Math.round(time * 1000)}`);
      await this.#hold('throwing', time, () => this.#throwNote());
      // Each engine throws for this time by its own clock, from the moment it reads the command.
      const over = before.over + this.#engines.length;
      await this.#until(() => this.tally.counts.over >= over, time + HOPELESS_SECONDS);
      this.#tell('stop');
      seconds = Math.min(time, (performance.now() - started) / 1000);
    });
    // The last tick arrives up to an interval later.
    await sleep(TICK_MS * 1.2);
    const after = this.tally.counts;
    this.#facts.throwing = {
      seconds: thousandths(seconds),
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
    const throwing = options.throwing !== 'none';
    if (throwing) this.#tell(`throw ${Math.ceil(time + 30) * 1000}`);
    const others = this.#facts.before?.parked ?? 0;
    const byServer = typeof this.#facts.serverParked === 'number';
    this.#progress.begin('storm', clients);
    const seen = await this.#measured(() =>
      storm({
        options,
        countedBy: byServer ? 'server' : 'swarm',
        parked: async () =>
          byServer ? (await this.status.tryRead())?.parked - others : this.tally.counts.parked,
        clock: () => this.tally.seconds,
        tell: (command) => this.#tell(command),
        isOver: () => this.#interrupts > 0 || this.#deaths.length > 0,
        show: (parked, note) => {
          this.tally.sample();
          this.#progress.update(parked, note);
        }
      })
    );
    const { from, to, ...facts } = seen;
    this.#facts.storm = facts;
    this.#facts.phases.storm = { from, to };
    if (throwing) this.#tell('stop');
    const all = facts.seconds[100];
    this.#progress.end(
      all === null
        ? `${facts.parked} of ${clients} parked again by the end`
        : `all parked again after ${all} s`
    );
  }

  /** Runs a phase, and measures the CPU time and memory of the server and the CPU time of the engines. */
  async #measured(phase) {
    const before = { server: await this.#watch.look(), engines: this.#enginesUse() };
    const result = await phase();
    const after = { server: await this.#watch.look(), engines: this.#enginesUse() };
    this.#facts.use = { before: before.server, after: after.server };
    this.#facts.engineCores = Math.max(
      ...after.engines.map((use, i) => coresBetween(before.engines[i], use))
    );
    return result;
  }

  #enginesUse() {
    const at = performance.now() / 1000;
    return this.#engines.map(({ pid }) => ({ at, cpu: useOf(pid)?.cpu ?? 0 }));
  }

  /** Waits for the answers to throws, then for the sprites, then for their acks. */
  async #drain() {
    this.#seenTo = this.#interrupts;
    this.#tell('stop');
    const { drain } = this.#options;
    const started = performance.now();
    const arrived = () => {
      const { pending, received, accepted } = this.tally.counts;
      return pending === 0 && received >= accepted;
    };
    await sleep(TICK_MS * 1.2);
    if (!arrived()) {
      this.#progress.begin('draining', Math.ceil(drain));
      await this.#until(arrived, drain, () => {
        const { pending, received, accepted } = this.tally.counts;
        this.#progress.update(
          Math.floor((performance.now() - started) / 1000),
          `${pending} unanswered, ${Math.max(0, accepted - received)} under way`
        );
      });
      this.#progress.end();
    }
    this.#facts.drainSeconds = thousandths((performance.now() - started) / 1000);
    if (this.#interrupts < 2) await sleep(ACK_MS);
    this.#facts.drained = await this.#lastStatus();
    // Counts all clients with a place, not only the parked ones: a client that pauses or reconnects is no
    // stranger. It waits a tick, so that a client that joined before the server's count is counted here too.
    await sleep(TICK_MS * 1.2);
    this.#facts.ours = this.tally.counts.members;
  }

  async #leave() {
    if (this.#options.stay || this.#isHopeless) return;
    this.#seenTo = this.#interrupts;
    const all = this.#options.clients + this.#facts.probes;
    this.#progress.begin('leaving', all);
    this.#tell('clients 0');
    let last = { left: -1, at: 0 };
    const isOver = () => {
      const { left, members } = this.tally.counts;
      if (left !== last.left) last = { left, at: performance.now() };
      return members === 0 || performance.now() - last.at > HOPELESS_SECONDS * 1000;
    };
    await this.#until(isOver, leaveLimit(this.#options), () =>
      this.#progress.update(last.left, 'have left')
    );
    this.#facts.staying = this.tally.counts.members;
    this.#progress.end(`${this.tally.counts.left} have left`);
  }

  async #waitForAccount() {
    this.#tell('account');
    const end = performance.now() + 60_000;
    while (!this.#isAccounted && !this.#isHopeless && performance.now() < end) await sleep(LOOK_MS);
    this.#facts.after = await this.#lastStatus();
  }

  async #lastStatus() {
    return this.#interrupts > 1 ? null : this.status.tryRead();
  }

  async #end() {
    this.#tell('quit');
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
