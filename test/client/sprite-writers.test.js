import t from 'tap';

import { EDGES } from '../../lib/client/client.js';
import { joinAndCatch, refusals } from '../support/catcher.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { until } from '../support/until.js';

/**
 * The swarm keeps to the one format. (The page and the desktop: together.test.js; what the libraries write:
 * sprite-format.test.js, native/client/tests/unit.cc.)
 */

t.test("the swarm's sprites keep to the written format, in every direction", async (t) => {
  const bad = { id: 'a', picture: 'ball', at: 0.5, speed: [-1, 0.2] };
  t.same(refusals({ ...bad, speed: [1, 0.2] }), []);
  t.match(refusals(bad), [/^schema: /, /^reader: /], 'what does not is seen');

  const server = await startServer(t);
  const { client, caught } = await joinAndCatch(t, server.url);
  const swarm = start(t, `throw 3 --port ${server.port} --rate 40 --time 600 --quiet`);
  const thrownTo = (edge) => caught.find(({ sprite }) => sprite.to === edge);
  await until(() => EDGES.every(thrownTo));
  await client.leave();
  for (const edge of EDGES) t.same(refusals(thrownTo(edge).sprite), [], `thrown ${edge}`);
  swarm.kill('SIGTERM');
  await swarm.result();
});
