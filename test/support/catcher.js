import { Client } from '../../lib/client/client.js';
import { until } from './until.js';

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
