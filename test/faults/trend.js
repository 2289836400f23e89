import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

/**
 * Shows figures over time as a line of text, and decides whether they grow.
 */

/** Node's options with which SIGPWR makes a process collect all garbage: then the heap has only live objects. */
export const GC_OPTIONS = [
  '--expose-gc',
  '--import',
  'data:text/javascript,process.on("SIGPWR",()=>globalThis.gc())'
];

const BARS = '▁▂▃▄▅▆▇█';

/**
 * @param {number[]} values
 * @param {number} width most characters; each shows the mean of its share of the values
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
 * Standard errors by which a line must rise to count as growth. The line through a few random values rises by chance,
 * too, but rarely by this many standard errors: with ten values that is three quarters of their scatter.
 */
const CHANCE = 5;

/**
 * Fewest values that are judged. Fewer look like growth by chance too often: of three that only scatter one series in 17,
 * of five one in 140, of ten one in 3,000.
 */
export const MIN_VALUES = 10;

/**
 * Fits a line by least squares through values at equal intervals.
 *
 * @param {number[]} values
 * @param {number} slack an allowed rise
 * @returns {{mean: number, rise?: number, verdict: 'flat' | 'GROWS' | 'too short'}} `rise`: of the line, from the first
 *     value to the last. The line is flat unless it rises by more than the slack, 5% of the mean, twice the scatter of
 *     the values around it, and a rise by chance
 */
export function trend(values, slack) {
  const count = values.length;
  const mean = values.reduce((sum, value) => sum + value, 0) / count;
  if (count < MIN_VALUES) return { mean, verdict: 'too short' };
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
  const isFlat = rise <= Math.max(slack, mean * 0.05, 2 * scatter, CHANCE * error);
  return { mean, rise, verdict: isFlat ? 'flat' : 'GROWS' };
}

/**
 * @param {string} name the name of a server's figure
 * @returns {number} the allowed rise
 */
export function slackOf(name) {
  return /size|heap/.test(name) ? 2 ** 20 : 16;
}

/**
 * The promises of a server besides sprites, while it is killed again and again: feeds that are published all the time,
 * a player of an arena, a ban in each life.
 */

const TOKEN = 'a-token.of_faults';
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

  /** @param {string} folder gets the file of tokens */
  constructor(folder) {
    this.#tokens = join(folder, 'tokens');
    writeFileSync(this.#tokens, `${TOKEN}\n`);
  }
  #tokens;

  /** The server's options. */
  get options() {
    return { 'publish-token-file': this.#tokens, 'admin-port': 0, arena: 'hall' };
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
