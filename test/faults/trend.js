import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Figures over time: as a line of text, and whether they grow.
 */

/** Node's options by which SIGPWR has a process collect all garbage: what the heap holds then is really held. */
export const COLLECTS = [
  '--expose-gc',
  '--import',
  'data:text/javascript,process.on("SIGPWR",()=>globalThis.gc())'
];

const BARS = '▁▂▃▄▅▆▇█';

/**
 * @param {number[]} values
 * @param {number} width characters at most; each shows the mean of its share of the values
 * @returns {string} a line of bars from 0 to the highest value
 */
export function chart(values, width) {
  const count = Math.min(width, values.length);
  const means = Array.from({ length: count }, (_, i) => {
    const share = values.slice(
      Math.floor((i * values.length) / count),
      Math.floor(((i + 1) * values.length) / count)
    );
    return share.reduce((sum, value) => sum + value, 0) / share.length;
  });
  const high = Math.max(...means, 1);
  return means.map((value) => BARS[Math.min(7, Math.floor((value / high) * 7.999))]).join('');
}

/**
 * The line through a few values that only scatter rises, too, by chance: by so many times its standard
 * error hardly ever. With ten values, of any height, that takes three quarters of what they scatter.
 */
const CHANCE = 5;

/**
 * The line of least squares through values taken at equal intervals.
 *
 * @param {number[]} values three or more
 * @param {number} slack a rise that is allowed
 * @returns {{mean: number, rise: number, flat: boolean}} `rise`: of that line, from the first value
 *     to the last. It is flat unless it rises by more than the slack, 5% of the mean, twice what the
 *     values scatter around it, and what so few values may rise by chance
 */
export function trend(values, slack) {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  const middle = (count - 1) / 2;
  let above = 0;
  let below = 0;
  values.forEach((value, i) => {
    above += (i - middle) * (value - mean);
    below += (i - middle) ** 2;
  });
  const slope = above / below;
  const scatter = Math.sqrt(
    values.reduce((sum, value, i) => sum + (value - mean - slope * (i - middle)) ** 2, 0) /
      (count - 2)
  );
  const rise = slope * (count - 1);
  const error = (scatter * (count - 1)) / Math.sqrt(below);
  return { mean, rise, flat: rise <= Math.max(slack, mean * 0.05, 2 * scatter, CHANCE * error) };
}

/**
 * @param {string} name of a figure of a server
 * @returns {number} the rise that is allowed
 */
export function slackOf(name) {
  return /size|heap/.test(name) ? 2 ** 20 : 16;
}

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
    const number = this.#bans.length;
    const address = `198.18.${number >> 8}.${number & 255}`;
    const { status } = await this.#ask(adminPort, 'PUT', `/bans/${address}?seconds=36000`);
    assert.equal(status, 204);
    this.#bans.push(address);
    this.#player ??= (await this.#ask(port, 'POST', '/arena/hall')).body.player;
    await this.#input(port);
    this.#running = KEYS.map((key) => this.#publish(port, key));
  }

  async #publish(port, key) {
    let takesPatches = false;
    while (!this.#over) {
      const score = (this.#score += 1);
      let answer;
      try {
        answer = await this.#ask(port, 'PUT', `/feed/${key}`, value(score));
        // From the first request with `delta` on there are patches.
        if (!takesPatches) await this.#ask(port, 'GET', `/feed/${key}?delta=1`);
        takesPatches = true;
      } catch {
        // The server is gone: whether the trend holds is unknown.
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
