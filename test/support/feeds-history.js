import assert from 'node:assert/strict';

import { Feeds } from '../../lib/client/client.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { randomOf } from '../fuzz/random.js';
import { Probe } from './cpp-probe.js';
import { FaultProxy } from './proxies.js';
import { durableFeedOptions, remove, tryPut } from './feeds.js';
import { startServer } from './server.js';
import { until } from './until.js';

/**
 * A random history of feeds. The network of the watchers breaks; the server is stopped, killed and started again. At
 * the end each watcher holds the publisher's newest value, byte for byte, and never saw an older value after a newer
 * one.
 */

const KEYS = ['a', 'b/c', 'd', 'e'];

/** Checks the changes that a watcher reports against the publications. */
class Witness {
  /** By key: {cursor, text}, or {problem}. */
  last = new Map();
  #endedEpochs = new Map(); // epochs that are over, by key
  told = 0;
  patched = 0;

  constructor(name, publisher) {
    this.name = name;
    this.publisher = publisher;
  }

  /** @param {{key: string, cursor?: string, text?: string, problem?: string}} change */
  hear({ key, cursor, text, problem, patch }) {
    this.told += 1;
    const before = this.last.get(key);
    const held = before?.problem === undefined ? before : before.held;
    if (problem) {
      this.last.set(key, { problem, held });
      return;
    }
    if (patch) this.patched += 1;
    const [epoch, version] = cursor.split('-');
    const [lastEpoch, lastVersion] = (held?.cursor ?? '-0').split('-');
    const endedEpochs = this.#endedEpochs.get(key) ?? new Set();
    this.#endedEpochs.set(key, endedEpochs);
    const why = `${this.name}: ${key} ${cursor} after ${held?.cursor}`;
    assert.ok(!endedEpochs.has(epoch), `${why}: that life is over`);
    if (epoch !== lastEpoch) endedEpochs.add(lastEpoch);
    // After a problem, and at the start of a watch, the same value may come again.
    else assert.ok(Number(version) >= Number(lastVersion), `${why}: an older one`);
    const published = this.publisher.published.get(`${key} ${cursor}`);
    if (published !== undefined) assert.equal(text, published, `${why}: byte for byte`);
    this.last.set(key, { cursor, text });
  }

  holds(newest) {
    return [...newest].every(([key, text]) => this.last.get(key)?.text === text);
  }
}

class Publisher {
  published = new Map(); // canonical text by key and cursor
  newest = new Map(); // canonical text by key
  #values = new Map();

  constructor(random) {
    this.random = random;
  }

  /** Returns the next value of a feed: the last one with some changes, or a new one. */
  #next(key) {
    const { random } = this;
    const before = this.#values.get(key);
    if (before === undefined || random.oneIn(15)) {
      const list = Array.from({ length: 20 + random.below(20) }, (_, n) => ({ n, name: `n${n}` }));
      return { list, sums: {}, padding: 'x'.repeat(random.below(300)) };
    }
    const value = structuredClone(before);
    for (let n = 1 + random.below(4); n > 0; n -= 1) {
      const at = random.below(value.list.length + 1);
      const one = { n: random.below(1000), name: random.pick(['\u20ac', 'a/b', '~', '\u{1f600}']) };
      value.list.splice(at, random.below(2), ...(random.oneIn(2) ? [one] : []));
      const name = random.pick(['p', 'q', '\ue000', '\u{1f600}', '"', 'm~n', 'a/b']);
      if (random.oneIn(3)) delete value.sums[name];
      else value.sums[name] = random.below(50) / 4;
    }
    return value;
  }

  async publish(server, key) {
    const value = this.#next(key);
    const text = canonical(value);
    const { status, body } = await tryPut(server, key, text);
    assert.ok(status === 200 || status === 201, `${status}`);
    this.published.set(`${key} ${body.cursor}`, text);
    this.newest.set(key, text);
    this.#values.set(key, value);
  }
}

/** A JavaScript client that now and then changes its keys. A new watch starts at the last cursor, or without one. */
function watchByScript(t, base, witness, random) {
  // Short limits for hanging requests: the network of this test never recovers by itself.
  const limits = { backoffMost: 200, backoffLeast: 200, pollSlack: 500 };
  const feeds = new Feeds({ base, limits });
  t.teardown(() => feeds.close());
  const open = new Map();
  const watch = (key, kept) => {
    const hear = (value, change) =>
      witness.hear({ ...change, text: value === undefined ? undefined : canonical(value) });
    open.set(key, feeds.watch(key, hear, { kept }));
  };
  for (const key of KEYS) watch(key);
  return {
    change() {
      const key = random.pick(KEYS);
      const { held } = open.get(key);
      open.get(key).close();
      watch(key, held !== null && random.oneIn(2) ? JSON.parse(JSON.stringify(held)) : undefined);
    },
    wake: () => feeds.wake()
  };
}

/** The C++ client, with the members of `watchByScript`. */
function watchByProbe(t, base, witness, random, program) {
  const watches = KEYS.flatMap((key) => ['--watch', key]);
  const probe = new Probe(t, program, base, ['--backoff', '200', ...watches]);
  let checkedEvents = 0;
  return {
    change() {
      const key = random.pick(KEYS);
      probe.say('watch', key);
      probe.say('close', key);
    },
    wake: () => probe.say('try-now'),
    /** Checks the events since the last call against the publications. */
    listen() {
      for (; checkedEvents < probe.events.length; checkedEvents += 1) {
        const { event, ...change } = probe.events[checkedEvents];
        if (event === 'change') witness.hear(change);
      }
    },
    end: () => probe.quit()
  };
}

/**
 * Plays one history.
 *
 * @param {{teardown: (end: () => unknown) => void}} t
 * @param {object} how
 * @param {import('../fuzz/random.js').Random} how.random
 * @param {number} how.steps publications and other events
 * @param {string} [how.program] the built sprites_feeds_probe
 * @returns {Promise<{faults: object, told: number, patched: number, restarts: number}>}
 * @throws {Error} when a watcher saw a wrong value, or does not hold the newest one
 */
export async function playHistory(t, { random, steps, program }) {
  const options = durableFeedOptions(t);
  let server = await startServer(t, { options });
  const proxy = await FaultProxy.start(t, server.port, random);
  const publisher = new Publisher(random);
  const witnesses = ['JavaScript', 'also JavaScript', ...(program ? ['C++'] : [])].map(
    (name) => new Witness(name, publisher)
  );
  const watchers = witnesses.map((witness) =>
    witness.name === 'C++'
      ? watchByProbe(t, proxy.url, witness, random, program)
      : watchByScript(t, proxy.url, witness, random)
  );
  // An error thrown in a callback is uncaught: the history collects these errors.
  const errors = [];
  const fail = (error) => errors.push(error);
  process.on('uncaughtException', fail);
  t.teardown(() => process.off('uncaughtException', fail));

  const restart = async () => {
    proxy.cut();
    server = await startServer(t, { options });
    proxy.target = server.port;
  };
  let restarts = 0;
  const events = {
    stop: async () => {
      await server.stop();
      await restart();
    },
    kill: async () => {
      await server.kill();
      await restart();
    },
    end: () => remove(server, random.pick(KEYS)),
    change: () => random.pick(watchers).change(),
    wake: () => random.pick(watchers).wake(),
    cut: () => proxy.cut()
  };
  for (let step = 0; step < steps && errors.length === 0; step += 1) {
    await publisher.publish(server, random.pick(KEYS));
    const event = random.pick([...Array(12).fill('none'), 'end', 'change', 'wake', 'cut']);
    await events[event]?.();
    // One stop and one kill in thirty steps: each takes a second.
    if (step % 30 === 15 || step % 30 === 29) {
      restarts += 1;
      await events[step % 30 === 15 ? 'stop' : 'kill']();
    }
  }
  for (const key of KEYS) await publisher.publish(server, key);
  proxy.faults = false;
  proxy.cut();
  const checkNewEvents = () => {
    for (const watcher of watchers) watcher.listen?.();
    if (errors.length > 0) throw errors[0];
  };
  await until(
    () => {
      checkNewEvents();
      return witnesses.every((witness) => witness.holds(publisher.newest));
    },
    () =>
      JSON.stringify(
        witnesses.map(({ name, last }) => [name, ...last].map((one) => JSON.stringify(one)))
      ).slice(0, 2000),
    120
  );
  for (const watcher of watchers) await watcher.end?.();
  await server.stop();
  const sum = (name) => witnesses.reduce((all, witness) => all + witness[name], 0);
  return { faults: proxy.counts, told: sum('told'), patched: sum('patched'), restarts };
}

/** Most histories to play: on a busy machine a history may apply no patch. */
const HISTORIES = 5;

/**
 * Plays histories until watchers have received changes and patches.
 *
 * @param {object} t
 * @param {object} how playHistory's, without `random`: the seed is the environment's SEED, or a new one
 */
export async function playUntilPatched(t, how) {
  const random = randomOf(t);
  const totals = { told: 0, patched: 0 };
  const isEnough = () => totals.told > 20 && totals.patched > 0;
  for (let played = 0; played < HISTORIES && !isEnough(); played++) {
    const { faults, told, patched } = await playHistory(t, { ...how, random });
    t.comment(JSON.stringify({ faults, told, patched }));
    totals.told += told;
    totals.patched += patched;
  }
  t.ok(isEnough(), 'there was something to hear, and patches');
}
