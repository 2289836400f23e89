import t from 'tap';

import { Client, EDGES, opposite } from 'sprites-server/protocol';

import { joinAndCatch, refusals } from '../support/catcher.js';
import { ROOT, tool } from '../support/cpp-build.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { until } from '../support/until.js';

/**
 * Programs that throw sprites: one that imports the package, and the swarm, which keeps to the one format. (The page and the
 * desktop: together.test.js; what the libraries write: sprite-format.test.js, native/client/tests/unit.cc.)
 */

t.test(
  'the package exports the protocol and the sprite, as Node programs import them',
  async (t) => {
    const resolved = (name) => import.meta.resolve(name).replace(/^.*(?=\/lib\/)/, '');
    t.equal(resolved('sprites-server/protocol'), '/lib/client/client.js');
    t.equal(resolved('sprites-server/sprite'), '/lib/client/sprite.js');
    t.same(EDGES, ['left', 'right', 'up', 'down']);
    t.equal(opposite('up'), 'down');
    t.equal(typeof Client, 'function');
    t.throws(
      () => import.meta.resolve('sprites-server/lib/client/client.js'),
      /PATH_NOT_EXPORTED|not defined by "exports"/,
      'and nothing else'
    );

    t.comment('in a program without a test runner');
    const code = `import { Client } from 'sprites-server/protocol';
    const client = new Client({ base: process.argv[1], onSprite(sprite, { from }) {
      console.log(sprite.picture, from);
      client.leave();
    } });
    client.start();
    console.log((await client.throw('left', { id: 'hello', picture: 'star' })).thrown);`;
    const server = await startServer(t);
    const said = await tool(
      'env',
      ['-u', 'NODE_OPTIONS', process.execPath, '--input-type=module', '-e', code, server.url],
      { cwd: ROOT }
    );
    t.same(said.trim().split('\n').sort(), ['star right', 'true'], 'alone, it catches its own');
  }
);

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
