import assert from 'node:assert/strict';

import { TOKEN, tokenFile } from '../support/feeds.js';

/**
 * The promises of a server besides sprites, while it is killed again and again: feeds that are published all the time,
 * a player of an arena, a ban in each life.
 */

const KEYS = ['scores', 'a/b', 'table'];

const value = (score) => JSON.stringify({ padding: 'x'.repeat(400), score });
const epochOf = (cursor) => cursor.split('-')[0];

export class SideLoad {
  /** By key: the newest promised cursor, and its score. */
  #promised = new Map();
  #lastScore = 0;
  #bans = [];
  #player;
  #publishers = [];
  #isStopped = true;
  published = 0;

  constructor(scene) {
    /** The server's options. */
    this.options = { 'publish-token-file': tokenFile(scene), 'admin-port': 0, arena: 'hall' };
  }

  async #ask(port, method, path, body) {
    const headers = { Authorization: `Bearer ${TOKEN}` };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body, headers });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** Publishes until `stop`. Also adds a ban and, once, a player. */
  async start({ port, adminPort }) {
    this.#isStopped = false;
    const number = this.#bans.length;
    const address = `198.18.${number >> 8}.${number & 255}`;
    const { status } = await this.#ask(adminPort, 'PUT', `/bans/${address}?seconds=36000`);
    assert.equal(status, 204);
    this.#bans.push(address);
    this.#player ??= (await this.#ask(port, 'POST', '/arena/hall')).body.player;
    await this.#input(port);
    this.#publishers = KEYS.map((key) => this.#publish(port, key));
  }

  async #publish(port, key) {
    let takesPatches = false;
    while (!this.#isStopped) {
      const score = (this.#lastScore += 1);
      let answer;
      try {
        answer = await this.#ask(port, 'PUT', `/feed/${key}`, value(score));
        // The server makes patches from the first request with `delta` on.
        if (!takesPatches) await this.#ask(port, 'GET', `/feed/${key}?delta=1`);
        takesPatches = true;
      } catch {
        // The server is gone: the outcome is unknown.
        return;
      }
      if (answer.status >= 300) continue;
      this.published += 1;
      this.#promised.set(key, { cursor: answer.body.cursor, score });
    }
  }

  async #input(port) {
    const { status } = await this.#ask(port, 'POST', `/arena/hall/${this.#player}`, '{"y":0.25}');
    assert.equal(status, 204, 'the player is there');
  }

  /** Ends the publications. Call it when the server has ended, or should stop. */
  async stop() {
    this.#isStopped = true;
    await Promise.all(this.#publishers.splice(0));
  }

  /** Asserts that a started server keeps the promises of its earlier lives. */
  async check({ port, adminPort }) {
    for (const [key, { cursor, score }] of this.#promised) {
      const { body: newest } = await this.#ask(port, 'GET', `/feed/${key}`);
      assert.equal(epochOf(newest.cursor), epochOf(cursor), `${key} goes on in its epoch`);
      assert.ok(newest.value.score >= score, `${key}: ${newest.value.score}, promised ${score}`);
      if (newest.cursor === cursor) continue;
      const { body } = await this.#ask(port, 'GET', `/feed/${key}?after=${cursor}&delta=1`);
      assert.equal(body.from, cursor, `${key} goes on by a patch`);
    }
    const { body: bans } = await this.#ask(adminPort, 'GET', '/bans');
    assert.deepEqual(bans.map(({ address }) => address).sort(), [...this.#bans].sort());
    if (this.#player !== undefined) await this.#input(port);
  }
}
