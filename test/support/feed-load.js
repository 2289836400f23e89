import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

import { isNewer } from '../../lib/world/feed-message.js';
import { TOKEN } from './feeds.js';
import { ReconnectingClient, Wire } from './http.js';
import { until } from './until.js';

/**
 * Publishers and watchers at several servers, with the history of their requests and answers. Each value is published
 * once, so that a value names its publication. test/histories describes the entries of a history.
 */

/** Timeout of a request, in milliseconds: longer than a hold. */
const REQUEST_TIMEOUT = 9000;

/** Milliseconds between two requests of a client. */
const REQUEST_INTERVAL = 120;

/** Returns a JSON Patch that replaces `from` by `to`. Its `test` fails when `from` is not the newest value. */
const swap = (from, to) =>
  JSON.stringify([
    { op: 'test', path: '/by', value: from },
    { op: 'replace', path: '/by', value: to }
  ]);

/** A client with its own connection, which notes when it asked and when the answer came. */
export class RecordingClient {
  #client;

  /** @param {() => number} portOf returns the server's port: a restarted server may have another one */
  constructor(portOf) {
    this.#client = new ReconnectingClient(() => Wire.open(portOf()), REQUEST_TIMEOUT);
  }

  /** @returns {Promise<{call: number, return: number, status: number, body?: object}>} status 0: unknown outcome */
  async ask(method, path, body, type = 'application/json') {
    const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': type };
    const call = performance.now();
    const answered = this.#client.ask(method, path, { headers, body });
    const { status, body: value } = await answered.catch(() => ({ status: 0 }));
    return { call, return: performance.now(), status, body: value };
  }

  close() {
    this.#client.close();
  }
}

/** Clients that send requests until `quiet` or `close`. */
export class Load {
  /** All requests with their answers. */
  history = [];
  #loops = [];
  #begun = [];
  #running = false;
  #clients = [];

  /**
   * Adds a client.
   *
   * @param {() => number} portOf
   * @param {(asker: RecordingClient, client: number) => Promise<object | undefined>} step returns an entry of the history
   */
  add(portOf, step) {
    const client = this.#clients.length;
    const asker = new RecordingClient(portOf);
    this.#clients.push(asker);
    this.#loops.push(async () => {
      while (this.#running) {
        const entry = await step(asker);
        if (entry) this.history.push({ client, ...entry });
        if (entry?.paced !== false) await pause(REQUEST_INTERVAL * (0.5 + Math.random()));
      }
    });
  }

  go() {
    this.#running = true;
    this.#begun = this.#loops.map((loop) => loop());
  }

  /** Stops the clients. @returns {Promise<void>} resolves when no request is under way */
  async quiet() {
    this.#running = false;
    await Promise.all(this.#begun);
  }

  close() {
    this.#running = false;
    for (const client of this.#clients) client.close();
  }
}

const partsOf = (cursor) => {
  const [, epoch, version] = /^e([0-9a-z]+)-([0-9]+)$/.exec(cursor);
  return { epoch: parseInt(epoch, 36), version: Number(version) };
};

/** Feeds of a world: each server has a publisher, and for each feed one client that watches and one that reads. */
export class FeedLoad extends Load {
  #members;
  #keys;
  #publicationCount = 0;

  /**
   * @param {{name: string, port: number}[]} members
   * @param {string[]} keys
   */
  constructor(members, keys) {
    super();
    this.#members = members;
    this.#keys = keys;
    for (const [server, member] of members.entries()) {
      const portOf = () => member.port;
      const seen = new Map();
      this.add(portOf, (asker) => this.#publish(asker, server, seen));
      for (const key of keys) {
        const held = { cursor: undefined };
        this.add(portOf, (asker) => this.#watch(asker, { server, key, held, seen }));
      }
      this.add(portOf, (asker) => this.#watch(asker, { server, key: this.#pick(), seen }));
    }
  }

  #pick() {
    return this.#keys[Math.floor(Math.random() * this.#keys.length)];
  }

  /** Publishes a value. Three in ten are patches that only apply to the value that this publisher has seen last. */
  async #publish(asker, server, seen) {
    const key = this.#pick();
    const by = `${this.#members[server].name}.${++this.#publicationCount}`;
    const expect = Math.random() < 0.3 ? seen.get(key) : undefined;
    const [method, body, type] = expect
      ? ['PATCH', swap(expect, by), 'application/json-patch+json']
      : ['PUT', JSON.stringify({ by })];
    const {
      status,
      body: answerBody,
      ...times
    } = await asker.ask(method, `/feed/${key}`, body, type);
    const entry = { ...times, model: 'register', key, server, op: expect ? 'swap' : 'put' };
    const ok = status === 200 || status === 201;
    const known = ok || answerBody?.type === 'urn:sprites:patch-conflict';
    return { ...entry, value: by, expect, known, ok, ...(ok && { cursor: answerBody.cursor }) };
  }

  async #watch(asker, { server, key, held, seen }) {
    const after = held?.cursor ? `?after=${held.cursor}&hold=5` : '';
    const { status, body, ...times } = await asker.ask('GET', `/feed/${key}${after}`);
    const isNone = status === 404 && body.type === 'urn:sprites:unknown-feed';
    if (status !== 200 && !isNone) return undefined;
    if (status === 200 && body.value === undefined) return undefined; // The hold has ended.
    const entry = { ...times, model: 'register', key, server, op: 'get', known: true, ok: true };
    if (isNone) return entry;
    const { cursor, value } = body;
    seen.set(key, value.by);
    const before = held?.cursor;
    if (held) held.cursor = cursor;
    return { ...entry, cursor, value: value.by, before, paced: !held };
  }

  /**
   * Stops all clients, and asserts that all servers end with the same, newest values.
   *
   * @param {string} what the events before, for messages
   * @returns {Promise<string>} a summary of the history
   */
  async settle(what) {
    await this.quiet();
    const values = this.#values(what);
    const askers = this.#members.map((member) => new RecordingClient(() => member.port));
    for (const key of this.#keys) {
      const newest = this.history
        .filter((one) => one.key === key && one.cursor)
        .map(({ cursor }) => ({ cursor, ...partsOf(cursor) }))
        .reduce((best, one) => (best && !isNewer(one, best) ? best : one), undefined);
      let shownValues;
      const areEqual = async () => {
        const all = await Promise.all(askers.map((one) => one.ask('GET', `/feed/${key}`)));
        shownValues = all.map(({ body }) => `${body?.cursor} ${body?.value?.by}`);
        if (new Set(shownValues).size > 1 || all[0].status !== 200) return false;
        const { cursor } = all[0].body;
        return cursor === newest.cursor || isNewer(partsOf(cursor), newest);
      };
      await until(
        areEqual,
        () => `${what}: ${key} is ${shownValues}, the newest was ${newest.cursor}`
      );
      this.#end(key, values, shownValues[0].split(' '), what);
    }
    for (const one of askers) one.close();
    const puts = this.history.filter(({ op, ok }) => op !== 'get' && ok).length;
    return `${puts} publications, ${values.size} values seen, one cursor one value, the newest at all`;
  }

  #end(key, values, [cursor, by], what) {
    const known = values.get(`${key} ${cursor}`);
    assert.equal(known ?? by, by, `${what}: ${key} ${cursor} is one value`);
  }

  /** Asserts that a cursor means one value to all watchers, and that no watcher got an older version of an epoch. */
  #values(what) {
    const values = new Map();
    for (const { key, cursor, value, before, server } of this.history) {
      if (!cursor) continue;
      const name = `${key} ${cursor}`;
      assert.equal(
        values.get(name) ?? value,
        value,
        `${what}: ${name} is one value (at ${server})`
      );
      values.set(name, value);
      if (!before) continue;
      const [oldParts, newParts] = [before, cursor].map(partsOf);
      const isOlder = oldParts.epoch === newParts.epoch && newParts.version < oldParts.version;
      assert.ok(!isOlder, `${what}: ${key}: ${cursor} came after ${before}`);
    }
    return values;
  }
}
