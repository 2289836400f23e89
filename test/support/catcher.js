import { readFileSync } from 'node:fs';

import Ajv2020 from 'ajv/dist/2020.js';

import { Client } from '../../lib/client/client.js';
import { readSprite } from '../../lib/client/sprite.js';
import { until } from './until.js';

/** What is really thrown: catching it, and holding it to the written format. */

const schema = new URL('../../lib/client/sprite.schema.json', import.meta.url);
const validate = new Ajv2020({ allErrors: true, strictTuples: false }).compile(
  JSON.parse(readFileSync(schema, 'utf8'))
);

/**
 * Joins by the JavaScript client; the test's end leaves.
 *
 * @param {{teardown: (end: () => unknown) => void}} t
 * @param {string} base the server's URL
 * @param {object} [limits] of the client
 * @returns {Promise<{client: Client, caught: object[]}>} once it is online; `caught`: sprite and edge of what comes, in order
 */
export async function joinAndCatch(t, base, limits) {
  const caught = [];
  const onSprite = (sprite, { from }) => caught.push({ sprite, from });
  const client = new Client({ base, limits, onSprite });
  t.teardown(() => client.leave());
  client.start();
  await until(() => client.state === 'online');
  return { client, caught };
}

/**
 * What the schema and the reader have against a sprite. (The C++ reader is held to the same vectors as this one.)
 *
 * @param {unknown} sprite as JSON.parse made it of what was on the wire
 * @returns {string[]} one line for each refusal
 */
export function refusals(sprite) {
  const said = validate(sprite)
    ? []
    : validate.errors.map(({ instancePath, message }) => `schema: ${instancePath} ${message}`);
  try {
    readSprite(sprite);
  } catch (error) {
    said.push(`reader: ${error.message}`);
  }
  return said;
}
