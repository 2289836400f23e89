import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * What a server is promised beside sprites, while it is ended again and again: feeds that are published all the time,
 * a player of an arena, a ban for each life.
 */

const TOKEN = 'a-token.of_faults';
const KEYS = ['scores', 'a/b', 'table'];

const value = (score) => JSON.stringify({ padding: 'x'.repeat(400), score });
const epochOf = (cursor) => cursor.split('-')[0];

export class Beside {
  /** Key → the newest cursor that was promised, and its score. */
  #promised = new Map();
  #score = 0;
  #bans = [];
  #player;
  #running = [];
  #over = true;
  published = 0;

  /** @param {string} folder for the file of tokens */
  constructor(folder) {
    this.#tokens = join(folder, 'tokens');
    writeFileSync(this.#tokens, `${TOKEN}\n`);
  }
  #tokens;

  /** Options of the server. */
  get options() {
    return { 'publish-token-file': this.#tokens, 'admin-port': 0, arena: 'hall' };
  }

  async #ask(port, method, path, body) {
    const headers = { Authorization: `Bearer ${TOKEN}` };
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { method, body, headers });
    const text = await answer.text();
    return { status: answer.status, body: text === '' ? undefined : JSON.parse(text) };
  }

  /** Publishes until `stop`, and asks for a ban and, once, for a player. */
  async begin({ port, adminPort }) {
    this.#over = false;
    const address = `192.0.2.${this.#bans.length + 1}`;
    const { status } = await this.#ask(adminPort, 'PUT', `/bans/${address}?seconds=36000`);
    assert.equal(status, 204);
    this.#bans.push(address);
    this.#player ??= (await this.#ask(port, 'POST', '/arena/hall')).body.player;
    await this.#input(port);
    this.#running = KEYS.map((key) => this.#publish(port, key));
  }

  async #publish(port, key) {
    while (!this.#over) {
      const score = (this.#score += 1);
      let answer;
      try {
        answer = await this.#ask(port, 'PUT', `/feed/${key}`, value(score));
      } catch {
        // The server is gone: whether it holds nobody knows.
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

  /** To be called when the server has ended, or is to stop. */
  async stop() {
    this.#over = true;
    await Promise.all(this.#running.splice(0));
  }

  /** Holds a server that has started to what the ones before have promised. */
  async check({ port, adminPort }) {
    for (const [key, { cursor, score }] of this.#promised) {
      const { body: now } = await this.#ask(port, 'GET', `/feed/${key}`);
      assert.equal(epochOf(now.cursor), epochOf(cursor), `${key} goes on in its epoch`);
      assert.ok(now.value.score >= score, `${key}: ${now.value.score}, promised ${score}`);
      if (now.cursor === cursor) continue;
      const { body } = await this.#ask(port, 'GET', `/feed/${key}?after=${cursor}&delta=1`);
      assert.equal(body.from, cursor, `${key} goes on by a patch`);
    }
    const { body: bans } = await this.#ask(adminPort, 'GET', '/bans');
    assert.deepEqual(bans.map(({ address }) => address).sort(), [...this.#bans].sort());
    if (this.#player !== undefined) await this.#input(port);
  }
}
