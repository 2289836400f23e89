import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { FeedLoad } from '../support/feed-load.js';
import { TOKEN } from '../support/feeds.js';
import { startCluster, startNats, startBrokerProxy } from '../support/nats.js';
import { limitFiles } from '../support/processes.js';
import { launch, NO_ADDRESS_LIMITS } from '../support/launch.js';
import { until, untilAnswer } from '../support/until.js';
import { sum } from '../support/world-servers.js';

/**
 * Three servers of one world, of different sizes, and a real nats-server. Each server has its own way (a proxy) to the
 * broker, and clients that throw all the time.
 *
 *     scout  ┐            ┌─▶ way a ─▶┐
 *     dozers ┼▶ server a ─┘           nats-server
 *     crowd  ┘            ┌─▶ way b ─▶┘
 *       …    ─▶ server b ─┘
 *
 * A scout is the first client of its server, at the left end of row 0, which all servers have: its throws to the left
 * cross to the previous server. Dozers poll rarely, so that their server always holds sprites. A sprite's key names its
 * crowd and its edge: so the tests know which sprites crossed, are missing, or came twice.
 */

export const NAMES = ['a', 'b', 'c'];

/** Clients of each server in the short form; the long form has four times as many. */
const SIZES = { a: 12, b: 4, c: 30 };

/** Milliseconds between two throws of a client, and of a scout. */
const PACE = 100;

const COUNTS = ['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut'];

/** Lease of a server, in seconds. */
export const LEASE = 3;

/** The promise: a ring heals within this many seconds after the lease. */
export const MAX_HEALING = 2;

/** Number of dozers of each server, and milliseconds between their polls: sprites for them wait. */
const DOZERS = 3;
const DOZE = 1000;

/** Milliseconds within which sprites under way arrive and are acknowledged; acks wait up to 100 ms. */
const ACK_TIME = 400;

/** With states: each server syncs differently, and makes snapshots often, so that some kills come during a snapshot. */
const SYNC = { a: 'second', b: 'turn', c: 'never' };
const JOURNAL = { 'journal-bytes': 1 << 20, 'snapshot-every': 2 };

/** Timeout of every wait in seconds, on a busy machine. Without one of three NATS servers a ring heals after 5 to 13 s. */
const MAX_WAIT = 90;

/** A server of the world: its process (another one after a restart), its way to the broker, and its clients. */
class Member {
  constructor(rig, name) {
    this.rig = rig;
    this.name = name;
    this.port = 0;
  }

  async start() {
    this.process = launch({
      ...{
        port: this.port,
        'admin-port': 0,
        world: this.way?.url ?? this.rig.nats.url,
        name: this.name
      },
      ...{ 'world-lease': LEASE, lease: 120, hold: 5, drain: 5, 'log-level': 'warn' },
      ...{ 'throw-rate': 0, mailbox: 1000 },
      ...NO_ADDRESS_LIMITS,
      ...this.rig.extraOptions(this.name)
    });
    const { port, adminPort } = await this.process.listening;
    Object.assign(this, { port, adminPort });
  }

  signal(name) {
    this.process.child.kill(name);
  }

  async kill() {
    this.signal('SIGKILL');
    await this.process.ended;
  }

  get #crowds() {
    return [this.scout, this.dozers, this.crowd];
  }

  /** Sends a signal to all its crowds. */
  signalClients(name) {
    for (const crowd of this.#crowds) crowd.signal(name);
  }

  /**
   * Kills the server while all throw. With a state at any moment. Without a state its held sprites must be known: first
   * all traffic to and from it is stopped; then its counts stand still.
   */
  async killThrowing() {
    const { rig, way } = this;
    if (rig.states) return this.kill();
    await Promise.all(this.#crowds.map((crowd) => crowd.halt()));
    // Acknowledgements still come in for its sent sprites. Its own acknowledgements do not go out any more.
    way.hang('out');
    await pause(ACK_TIME);
    way.hang('in');
    const books = { ...(await this.untilSteady()), name: this.name, at: Date.now(), received: 0 };
    await this.kill();
    way.cut();
    way.mend();
    rig.killedCounts.push(books);
    return this.signalClients('SIGCONT');
  }

  /**
   * Kills the server after one direction was silent for a while.
   *
   * @param {'out' | 'in'} side `out`: its acknowledgements did not reach the others; `in`: the others' did not reach it
   */
  async killSilenced(side) {
    this.way.hang(side);
    await pause(ACK_TIME);
    await this.kill();
    this.way.cut();
    this.way.mend();
  }

  /** Limits the size of the server's files. @param {number | 'unlimited'} bytes most bytes of each file */
  limitFiles(bytes) {
    assert.ok(limitFiles(this.process.child.pid, bytes));
  }

  /** Starts the server again. Without a state its clients join in the old order. */
  async startAgain() {
    if (this.rig.states) {
      await this.start();
      const { waiting, outboxSprites } = await this.readStatus();
      this.rig.observations.push(
        `${this.name} is back with ${waiting} sprites that wait, ${outboxSprites} of them to cross`
      );
      return;
    }
    this.signalClients('SIGSTOP');
    await this.start();
    let joined = 0;
    for (const crowd of this.#crowds) {
      crowd.signal('SIGCONT');
      joined += crowd.clients;
      const all = async () => (await this.readStatus()).clients === joined;
      await until(all, `${crowd.name} has joined`, MAX_WAIT);
    }
  }

  /** @returns {Promise<object>} its admin port's status; asserts that its counts balance */
  async readStatus() {
    const response = await fetch(`http://127.0.0.1:${this.adminPort}/status`);
    const status = await response.json();
    const { thrown, acked, waiting, lost, crossedIn, crossedOut } = status;
    assert.equal(
      thrown + crossedIn,
      acked + waiting + lost + crossedOut,
      `the law of sprites at ${this.name}`
    );
    return status;
  }

  /** Waits until its counts stand still, and returns them. */
  async untilSteady() {
    let last;
    let same = 0;
    const look = async () => {
      const now = pickCounts(await this.readStatus());
      same = JSON.stringify(now) === JSON.stringify(last) ? same + 1 : 0;
      last = now;
      return same >= 3;
    };
    await until(look, () => `${this.name} stands still: ${JSON.stringify(last)}`, MAX_WAIT);
    return last;
  }

  async startClients(clients) {
    const { scene } = this.rig;
    const { name } = this;
    const scout = { name: `${name}-scout`, clients: 1, edges: 'left', pace: PACE };
    this.scout = await scene.crowd(this, scout);
    this.dozers = await scene.crowd(this, {
      name: `${name}-dozers`,
      clients: DOZERS,
      pace: PACE,
      doze: DOZE
    });
    this.crowd = await scene.crowd(this, { name, clients, pace: PACE });
  }
}

export class Rig {
  /** @type {Map<string, Member>} */
  members = new Map();
  /** Arrivals from another server: key, thrower's server, receiver's server, and time. */
  crossings = [];
  /** The counts of killed servers. */
  killedCounts = [];
  /** Observations, in words. */
  observations = [];
  /** Healing times, in seconds. */
  healings = [];

  /**
   * @param {import('./scene.js').Scene} scene
   * @param {object} [how]
   * @param {boolean} [how.states] whether each server keeps a state
   * @param {number} [how.workers] workers of each server
   * @param {string[]} [how.feeds] feeds that are published and watched at each server
   * @param {boolean} [how.cluster] whether the broker is a cluster, without ways between servers and broker
   */
  static async start(scene, how = {}) {
    const rig = new Rig();
    const { states = false, workers = 0, feeds = [], cluster = false } = how;
    const folder = states || feeds.length > 0 ? await scene.folder() : undefined;
    Object.assign(rig, { scene, states, workers, folder, cluster });
    if (folder) writeFileSync(join(folder, 'tokens'), `${TOKEN}\n`);
    rig.nats = await (cluster ? startCluster : startNats)(scene);
    scene.ledger.onLine = (line, crowd) => rig.#record(line, crowd);
    for (const name of NAMES) {
      const member = new Member(rig, name);
      if (!cluster)
        member.way = await startBrokerProxy(scene, () => Number(new URL(rig.nats.url).port));
      rig.members.set(name, member);
      await member.start();
      scene.teardown(() => member.kill());
    }
    for (const member of rig.members.values()) {
      await member.startClients(SIZES[member.name] * (scene.short ? 1 : 4));
    }
    await rig.untilRing(NAMES);
    await rig.untilCrossing(NAMES);
    if (feeds.length > 0) {
      rig.feeds = new FeedLoad(rig.all, feeds);
      scene.teardown(() => rig.feeds.close());
      rig.feeds.go();
    }
    return rig;
  }

  #record(line, crowd) {
    // The client had received some of the sprites that its killed server held, without acking them.
    if (line.gone) {
      const books = this.killedCounts.findLast(({ name }) => name === crowd[0]);
      books.received += line.ack - (line.acks.findLast(([at]) => at < books.at)?.[1] ?? 0);
    }
    for (const key of line.got ?? []) {
      const [thrower] = key.split('.');
      const [from, to] = [thrower, crowd].map((one) => one[0]);
      if (from !== to) this.crossings.push({ key, thrower, from, to, at: performance.now() });
    }
  }

  /** @returns {Record<string, string | number>} options that not every world has */
  extraOptions(name) {
    const { states, workers, folder, cluster } = this;
    return {
      ...(folder && { 'publish-token-file': join(folder, 'tokens') }),
      ...(cluster && { 'world-replicas': 3 }),
      ...(states && { state: join(folder, name), sync: SYNC[name], ...JOURNAL }),
      ...(workers > 0 && { workers })
    };
  }

  get all() {
    return [...this.members.values()];
  }

  /** Returns the members with these names. */
  membersNamed(names) {
    return names.map((name) => this.members.get(name));
  }

  /** Returns the statuses of these members. */
  readStatuses(members = this.all) {
    return Promise.all(members.map((one) => one.readStatus()));
  }

  /** Waits until `holds` accepts each member's status. */
  untilEvery(holds, members = this.all) {
    const ask = () => this.readStatuses(members);
    return untilAnswer(ask, (all) => all.every(holds), MAX_WAIT, holds);
  }

  /** Returns the name before this one in a ring of these names. */
  previousName(name, names) {
    return names.at((names.indexOf(name) - 1 + names.length) % names.length);
  }

  /** Waits until each of these members sees exactly these as the ring. */
  async untilRing(names) {
    await this.untilEvery(
      ({ world: { state, servers } }) =>
        state === 'member' && servers.map(({ name }) => name).join() === names.join(),
      this.membersNamed(names)
    );
  }

  /** Waits until a sprite of each scout has crossed to the previous server of `names`, from now on. */
  async untilCrossing(names) {
    const begin = performance.now();
    const hasCrossed = (name) =>
      this.crossings.some(
        ({ thrower, to, at }) =>
          at > begin && thrower === `${name}-scout` && to === this.previousName(name, names)
      );
    const missing = () => names.filter((name) => !hasCrossed(name));
    await until(
      () => missing().length === 0,
      () => `sprites of ${missing()} cross`,
      MAX_WAIT
    );
  }

  /**
   * Measures the time until these servers are one ring, and sprites cross in it.
   *
   * @param {string} title the fault, in words
   * @param {string[]} names
   */
  async measureHealing(title, names) {
    const begin = performance.now();
    await this.untilRing(names);
    const ring = (performance.now() - begin) / 1000;
    await this.untilCrossing(names);
    const seconds = (performance.now() - begin) / 1000;
    this.healings.push({ title, seconds });
    this.observations.push(
      `${title}: ring after ${ring.toFixed(1)} s, crossed after ${seconds.toFixed(1)} s`
    );
  }

  /** Records a summary of the throws at these servers since a time. */
  recordThrows(title, names, since) {
    this.observations.push(
      `${title}: ${this.describeInnerThrows(title, names, since)}; ${this.describeSeamThrows(title, names, since)}; ${this.describeCrossings(since)}`
    );
  }

  /** Checks and describes the throws up and down at these servers since a time: none of them crosses. */
  describeInnerThrows(title, names, since) {
    const tries = this.scene.ledger.tries.filter(
      ({ begun, crowd, edge }) =>
        begun >= since && names.includes(crowd) && (edge === 'up' || edge === 'down')
    );
    const unexpected = tries.filter(({ first }) => first !== 202);
    assert.deepEqual(unexpected.slice(0, 3), [], `${title}: up and down no throw is refused`);
    assert.ok(tries.length > 20, `${title}: the others throw on (${tries.length})`);
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(tries, share));
    assert.ok(p99 < 2, `${title}: p99 ${p99} s`);
    return `${tries.length} throws up and down of the others, p50 ${ms(p50)}, p99 ${ms(p99)}`;
  }

  /** Describes the outcomes of throws left and right at these servers since a time. */
  describeSeamThrows(title, names, since) {
    const tries = this.scene.ledger.tries.filter(
      ({ begun, crowd, edge }) =>
        begun >= since && names.includes(crowd[0]) && (edge === 'left' || edge === 'right')
    );
    const unexpected = tries.filter(({ first }) => first !== 202 && first !== 'neighbor-busy');
    assert.deepEqual(unexpected.slice(0, 3), [], `${title}: left and right no other answer`);
    const busy = tries.filter(({ first }) => first === 'neighbor-busy');
    return `${busy.length} of ${tries.length} left and right were busy at first`;
  }

  /** Describes the crossing times of sprites since a time, from throw to arrival. */
  describeCrossings(since) {
    const begun = new Map(this.scene.ledger.tries.map((one) => [one.key, one.begun]));
    const arrivals = this.crossings
      .map(({ key, at }) => ({ seconds: (at - begun.get(key)) / 1000, begun: begun.get(key) }))
      .filter((one) => one.begun >= since);
    const [p50, p99] = [0.5, 0.99].map((share) => quantile(arrivals, share));
    return `${arrivals.length} crossed, p50 ${ms(p50)}, p99 ${ms(p99)}`;
  }

  /** Ends all throws, and waits until nothing is under way. @returns {Promise<object[]>} the counts of all */
  async stopThrows() {
    await Promise.all(this.scene.crowds.map((crowd) => crowd.stopThrows()));
    return this.untilEvery(({ waiting }) => waiting === 0);
  }

  /** Lets all clients throw again. */
  resume() {
    for (const crowd of this.scene.crowds) crowd.resume();
    this.feeds?.go();
  }

  /**
   * Waits for a quiet moment. Then the counts of all servers, with those of killed ones, must agree with the clients'
   * records of each sprite.
   *
   * @param {string} title the faults before, in words
   */
  async account(title) {
    const feeds = this.feeds?.settle(title);
    const books = [...(await this.stopThrows()), ...this.killedCounts];
    if (feeds) this.observations.push(`feeds: ${await feeds}`);
    const [thrown, acked, waiting, lost, crossedIn, crossedOut] = COUNTS.map((name) =>
      sum(books, name)
    );
    const { ledger } = this.scene;
    assert.deepEqual(ledger.violations, [], `${title}: the contract was kept`);
    assert.equal(lost, 0, `${title}: none is lost`);
    // Sprites that a killed server had accepted but not acknowledged.
    const unacknowledged = crossedIn - crossedOut;
    if (this.killedCounts.length === 0)
      assert.equal(unacknowledged, 0, `${title}: crossed in = crossed out`);
    assert.equal(thrown + unacknowledged, acked + waiting + lost, `${title}: the law of sprites`);
    const heldByKilled = sum(this.killedCounts, 'waiting') - sum(this.killedCounts, 'received');
    const { missing, repeated } = ledger;
    // Each doubted sprite was sent again another way: either the killed server's client already had it, or it is not
    // missing.
    assert.equal(
      missing.length - repeated,
      heldByKilled - unacknowledged,
      `${title}: missing ${missing.length} is what killed servers held, ${heldByKilled}, without those in doubt, ${unacknowledged}; ` +
        `${repeated} came twice: ${missing.slice(0, 5)}`
    );
    assert.ok(
      repeated <= unacknowledged,
      `${title}: ${repeated} came twice, ${unacknowledged} may have`
    );
    const { size: promised } = ledger.promised;
    if (this.states) {
      assert.equal(ledger.lostPlaces, 0, `${title}: every client keeps its place`);
      assert.equal(thrown, promised, `${title}: all servers together have taken what was promised`);
    }
    return {
      thrown,
      acked,
      heldByKilled,
      missing: missing.length,
      repeated,
      unacknowledged,
      promised
    };
  }
}

const pickCounts = (status) => Object.fromEntries(COUNTS.map((name) => [name, status[name]]));

function quantile(tries, share) {
  const sorted = tries.map(({ seconds }) => seconds).toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
}

const ms = (seconds) => `${(seconds * 1000).toFixed(1)} ms`;
