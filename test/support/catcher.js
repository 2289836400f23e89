import { readFileSync } from 'node:fs';

import Ajv2020 from 'ajv/dist/2020.js';

import { Client } from '../../lib/client/client.js';
import { readSprite } from '../../lib/client/sprite.js';
import { until } from './until.js';

/** Catches sprites, and checks them against the written format. */

const schema = new URL('../../lib/client/sprite.schema.json', import.meta.url);
const validate = new Ajv2020({ allErrors: true, strictTuples: false }).compile(
  JSON.parse(readFileSync(schema, 'utf8'))
);

/**
 * Joins with the JavaScript client. The test's end makes it leave.
 *
 * @param {{teardown: (end: () => unknown) => void}} t
 * @param {string} base the server's URL
 * @param {object} [limits] the client's limits
 * @returns {Promise<{client: Client, caught: object[]}>} once online; `caught`: each sprite with its edge, in order
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
 * Returns the complaints of the schema and of the reader about a sprite. (The C++ reader is tested with the same
 * vectors as this reader.)
 *
 * @param {unknown} sprite parsed by JSON.parse from the wire
 * @returns {string[]} one line for each complaint
 */
export function formatComplaints(sprite) {
  const complaints = validate(sprite)
    ? []
    : validate.errors.map(({ instancePath, message }) => `schema: ${instancePath} ${message}`);
  try {
    readSprite(sprite);
  } catch (error) {
    complaints.push(`reader: ${error.message}`);
  }
  return complaints;
}
