import { setImmediate as turn } from 'node:timers/promises';

import { applyPatch } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { EventStream, tryPut } from './feeds.js';
import { request } from './http.js';

/** One who publishes, and many who watch, for histories of feeds in which everything may happen to them. */

/** The feeds that histories are of. */
export const KEYS = ['a', 'b/c', 'd'];

/** What the publisher has said, by cursor, so that each answer can be held to it. */
export class Publisher {
  values = new Map();
  newest = new Map();

  async publish(server, random, key) {
    const before = this.newest.get(key)?.value ?? { list: [], padding: 'x'.repeat(300) };
    const value = structuredClone(before);
    for (let n = 1 + random.below(3); n > 0; n -= 1) {
      const at = random.below(value.list.length + 1);
      if (random.oneIn(3)) value.list.splice(at, 1);
      else value.list.splice(at, random.below(2), random.below(1000));
    }
    value.score = random.below(5);
    const { status, body } = await tryPut(server, key, JSON.stringify(value));
    if (status !== 200 && status !== 201) return;
    this.values.set(`${key} ${body.cursor}`, canonical(value));
    this.newest.set(key, { cursor: body.cursor, value });
  }
}

/** One who watches, by a poll, by a poll for many, or by a stream, as it happens. */
export class Watcher {
  held = new Map();

  constructor(t, random, publisher) {
    Object.assign(this, { t, random, publisher });
  }

  /** Takes an answer's item; `problem` and nothing new included. */
  take(item) {
    const { feed, cursor, value, patch, from, problem } = item;
    if (problem !== undefined) {
      this.held.delete(feed);
      return;
    }
    const before = this.held.get(feed);
    if (value === undefined && patch === undefined) return;
    if (patch !== undefined) this.t.equal(from, before.cursor, 'a patch of the version held');
    const now = value === undefined ? applyPatch(before.value, patch) : value;
    const expected = this.publisher.values.get(`${feed} ${cursor}`);
    if (expected !== undefined) {
      this.t.equal(canonical(now), expected, 'byte for byte');
    }
    const [epoch, version] = cursor.split('-');
    const [hadEpoch, had] = (before?.cursor ?? '-0').split('-');
    if (epoch === hadEpoch) this.t.ok(Number(version) > Number(had), 'never an older one');
    this.held.set(feed, { cursor, value: now });
  }

  after = (key) => this.held.get(key)?.cursor ?? '';

  /** Asks once, and sometimes goes before the answer, or reads none of it. */
  async ask(server) {
    const { random } = this;
    const key = random.pick(KEYS);
    const way = random.below(3);
    if (way === 0) return this.stream(server, key);
    const wire = await server.wire();
    const query = `after=${this.after(key)}&delta=1&hold=5`;
    const feeds = Object.fromEntries(KEYS.map((one) => [one, this.after(one)]));
    wire.send(
      way === 1
        ? request('GET', `/feed/${key}?${query}`)
        : request('POST', '/feeds', { body: JSON.stringify({ hold: 5, delta: true, feeds }) })
    );
    if (random.oneIn(4)) wire.pause();
    if (random.oneIn(3)) {
      await turn();
      return random.oneIn(2) ? wire.reset() : wire.destroy();
    }
    wire.resume();
    const { status, body } = await wire.read();
    if (status === 200) for (const item of body.items ?? [body]) this.take(item);
    else if (status === 404) this.held.delete(key);
    return wire.destroy();
  }

  async stream(server, key) {
    const stream = await EventStream.open(server, key, {
      query: 'delta=1',
      headers: this.after(key) === '' ? {} : { 'Last-Event-ID': this.after(key) }
    });
    if (!stream.head.startsWith('HTTP/1.1 200')) return stream.wire.destroy();
    for (let n = this.random.below(3); n >= 0; n -= 1) {
      const event = await stream.next();
      if (event === null) break;
      if (event.data !== undefined) this.take(event.data);
      if (event.comment) break;
    }
    return stream.wire.destroy();
  }
}
