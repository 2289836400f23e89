import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';

import Ajv2020 from 'ajv/dist/2020.js';

import { readSprite } from 'sprites-server/sprite';

import { buildClient, noClient, plainEnvironment, ROOT } from './cpp-build.js';

/**
 * The written format's three judges: the schema, the page's reader and the C++ reader.
 */

/** Why the C++ reader can't be built here, for a test's `skip`. */
export const noGate = noClient;

const schema = JSON.parse(readFileSync(join(ROOT, 'lib/client/sprite.schema.json'), 'utf8'));
const validate = new Ajv2020({ allErrors: true, strictTuples: false }).compile(schema);

/**
 * Builds the C++ reader, with all of the client.
 *
 * @returns {Promise<string>} its path
 */
export async function buildGate() {
  return join(await buildClient(), 'sprites_gate');
}

/**
 * What the judges have against sprites.
 *
 * @param {string} program by `buildGate`
 * @param {object[]} sprites as JSON.parse made them of what was on the wire
 * @returns {Promise<string[]>} one line for each refusal: who, why, and what
 */
export async function refusals(program, sprites) {
  const said = [];
  const say = (who, why, sprite) => said.push(`${who}: ${why}: ${JSON.stringify(sprite)}`);
  for (const sprite of sprites) {
    if (!validate(sprite)) {
      say(
        'schema',
        validate.errors.map((error) => `${error.instancePath} ${error.message}`),
        sprite
      );
    }
    try {
      readSprite(sprite);
    } catch (error) {
      say('page', error.message, sprite);
    }
  }
  const child = spawn(program, [], { env: plainEnvironment(), stdio: ['pipe', 'pipe', 'inherit'] });
  child.stdin.end(sprites.map((sprite) => `${JSON.stringify(sprite)}\n`).join(''));
  const answers = (await text(child.stdout)).split('\n').slice(0, -1);
  if (answers.length !== sprites.length) throw new Error('the C++ reader gave up');
  for (const [i, answer] of answers.entries()) {
    if (answer.startsWith('refused: ')) {
      say('C++', answer.slice(9), sprites[i]);
    } else if (!validate(JSON.parse(answer))) {
      say('C++', `what it writes of it is none: ${answer}`, sprites[i]);
    }
  }
  return said;
}

/** A client of the wire that takes in whatever comes, unread: what is really thrown is seen here. */
export class Catcher {
  #url;
  #id;
  #ack = 0;

  /** What came so far, in order: sprite and edge. */
  entries = [];

  /** @param {string} url of the server, no slash at its end */
  static async join(url) {
    const catcher = new Catcher();
    catcher.#url = url;
    const response = await fetch(`${url}/join`, { method: 'POST' });
    catcher.#id = (await response.json()).id;
    return catcher;
  }

  /**
   * Polls until `enough(entries)`.
   *
   * @returns {Promise<object[]>} the sprites
   */
  async until(enough, seconds = 45) {
    const end = performance.now() + seconds * 1000;
    while (!enough(this.entries)) {
      if (performance.now() > end)
        throw new Error(`only these came: ${JSON.stringify(this.entries)}`);
      await this.#poll();
    }
    return this.entries.map(({ sprite }) => sprite);
  }

  async #poll() {
    const response = await fetch(`${this.#url}/poll/${this.#id}?ack=${this.#ack}&hold=5`);
    const { seq, sprites } = await response.json();
    this.#ack = seq;
    this.entries.push(...sprites);
  }

  /** Leaves; what came last is not acknowledged. */
  async leave() {
    await fetch(`${this.#url}/leave/${this.#id}`, { method: 'POST' });
  }
}
