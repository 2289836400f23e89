import assert from 'node:assert/strict';
import { Agent, request } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import { isNewer } from '../../lib/world/feed-message.js';
import { TOKEN } from './feeds.js';
import { until } from './until.js';

/**
 * Publishers and watchers at several servers, and the history of what they have asked and were told. Each value is published
 * once, so that a value which is seen names its publication. test/histories says what an entry of a history is.
 */

/** Milliseconds that an answer may take: a hold and more. */
const PATIENCE = 9000;

/** Milliseconds between two requests of a client. */
const PACE = 120;

/** By `a` a patch is applied only where this one is the newest. */
const swap = (from, to) =>
  JSON.stringify([
    { op: 'test', path: '/by', value: from },
    { op: 'replace', path: '/by', value: to }
  ]);

/** A client with a connection of its own. */
export class Asker {
  #agent = new Agent({ keepAlive: true, maxSockets: 1 });
  #portOf;

  /** @param {() => number} portOf the server's, which may be another process later */
  constructor(portOf) {
    this.#portOf = portOf;
  }

  /** @returns {Promise<{call: number, return: number, status: number, body?: object}>} status 0: it is unknown what became of it */
  ask(method, path, body, type = 'application/json') {
    const call = performance.now();
    return new Promise((resolve) => {
      const done = (status, answer) =>
        resolve({ call, return: performance.now(), status, body: answer });
      const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': type };
      const how = { method, path, headers, agent: this.#agent, timeout: PATIENCE };
      const asked = request({ host: '127.0.0.1', port: this.#portOf(), ...how }, (response) => {
        const pieces = [];
        response.on('data', (piece) => pieces.push(piece));
        response.on('error', () => done(0));
        response.on('close', () => {
          const text = Buffer.concat(pieces).toString();
          if (!response.complete) done(0);
          else done(response.statusCode, text === '' ? undefined : JSON.parse(text));
        });
      });
      asked.on('timeout', () => asked.destroy());
      asked.on('error', () => done(0));
      asked.end(body);
    });
  }

  close() {
    this.#agent.destroy();
  }
}

/** Clients that ask on until they are told to be quiet. */
export class Load {
  /** What was asked, each with what was answered. */
  history = [];
  #loops = [];
  #begun = [];
  #running = false;
  #clients = [];

  /**
   * One more client.
   *
   * @param {() => number} portOf
   * @param {(asker: Asker, client: number) => Promise<object | undefined>} step gives an entry of the history
   */
  add(portOf, step) {
    const client = this.#clients.length;
    const asker = new Asker(portOf);
    this.#clients.push(asker);
    this.#loops.push(async () => {
      while (this.#running) {
        const entry = await step(asker);
        if (entry) this.history.push({ client, ...entry });
        if (entry?.paced !== false) await pause(PACE * (0.5 + Math.random()));
      }
    });
  }

  go() {
    this.#running = true;
    this.#begun = this.#loops.map((loop) => loop());
  }

  /** @returns {Promise<void>} when nothing is under way any more */
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

/** Feeds of a world: each server has a publisher, and for each feed one that watches and one that looks. */
export class FeedLoad extends Load {
  #members;
  #keys;
  #made = 0;

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

  /** Now and then only where what this one has seen last is the newest. */
  async #publish(asker, server, seen) {
    const key = this.#pick();
    const by = `${this.#members[server].name}.${++this.#made}`;
    const expect = Math.random() < 0.3 ? seen.get(key) : undefined;
    const [method, body, type] = expect
      ? ['PATCH', swap(expect, by), 'application/json-patch+json']
      : ['PUT', JSON.stringify({ by })];
    const { status, body: told, ...times } = await asker.ask(method, `/feed/${key}`, body, type);
    const entry = { ...times, model: 'register', key, server, op: expect ? 'swap' : 'put' };
    const ok = status === 200 || status === 201;
    const known = ok || told?.type === 'urn:sprites:patch-conflict';
    return { ...entry, value: by, expect, known, ok, ...(ok && { cursor: told.cursor }) };
  }

  async #watch(asker, { server, key, held, seen }) {
    const after = held?.cursor ? `?after=${held.cursor}&hold=5` : '';
    const { status, body, ...times } = await asker.ask('GET', `/feed/${key}${after}`);
    const isNone = status === 404 && body.type === 'urn:sprites:unknown-feed';
    if (status !== 200 && !isNone) return undefined;
    if (status === 200 && body.value === undefined) return undefined; // The hold is over.
    const entry = { ...times, model: 'register', key, server, op: 'get', known: true, ok: true };
    if (isNone) return entry;
    const { cursor, value } = body;
    seen.set(key, value.by);
    const before = held?.cursor;
    if (held) held.cursor = cursor;
    return { ...entry, cursor, value: value.by, before, paced: !held };
  }

  /**
   * Publishing has ended: all servers have the same, which is the newest.
   *
   * @param {string} what came before
   * @returns {Promise<string>} what was seen, in words
   */
  async settle(what) {
    await this.quiet();
    const values = this.#values(what);
    const askers = this.#members.map((member) => new Asker(() => member.port));
    for (const key of this.#keys) {
      const newest = this.history
        .filter((one) => one.key === key && one.cursor)
        .map(({ cursor }) => ({ cursor, ...partsOf(cursor) }))
        .reduce((best, one) => (best && !isNewer(one, best) ? best : one), undefined);
      let told;
      const same = async () => {
        const all = await Promise.all(askers.map((one) => one.ask('GET', `/feed/${key}`)));
        told = all.map(({ body }) => `${body?.cursor} ${body?.value?.by}`);
        if (new Set(told).size > 1 || all[0].status !== 200) return false;
        const { cursor } = all[0].body;
        return cursor === newest.cursor || isNewer(partsOf(cursor), newest);
      };
      await until(same, () => `${what}: ${key} is ${told}, the newest was ${newest.cursor}`);
      this.#end(key, values, told[0].split(' '), what);
    }
    for (const one of askers) one.close();
    const puts = this.history.filter(({ op, ok }) => op !== 'get' && ok).length;
    return `${puts} publications, ${values.size} values seen, one cursor one value, the newest at all`;
  }

  #end(key, values, [cursor, by], what) {
    const known = values.get(`${key} ${cursor}`);
    assert.equal(known ?? by, by, `${what}: ${key} ${cursor} is one value`);
  }

  /** One cursor, one value for all watchers; and none has got an older version of an epoch. */
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
      const [had, has] = [before, cursor].map(partsOf);
      const isOlder = had.epoch === has.epoch && has.version < had.version;
      assert.ok(!isOlder, `${what}: ${key}: ${cursor} came after ${before}`);
    }
    return values;
  }
}
