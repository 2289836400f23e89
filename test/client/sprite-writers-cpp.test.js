import t from 'tap';

import { Client, EDGES, opposite } from 'sprites-server/protocol';
import { PICTURES, writeSprite } from 'sprites-server/sprite';

import { joinAndCatch } from '../support/catcher.js';
import { buildGate, noClient, refusals, ROOT, tool } from '../support/cpp-build.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { until } from '../support/until.js';

/**
 * Writers of sprites keep to the one format: what the swarm and the libraries throw is held
 * against the schema and both readers. (The page and the desktop, as programs: together.test.js.)
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

t.test('the sprites of every writer, before the judges', { skip: noClient }, async (t) => {
  const gate = await buildGate();

  t.test('they do refuse', async (t) => {
    const bad = { id: 'a', picture: 'ball', at: 0.5, speed: [-1, 0.2] };
    const said = await refusals(gate, [{ ...bad, speed: [1, 0.2] }, bad]);
    t.same(
      said.map((line) => line.split(':')[0]),
      ['schema', 'page', 'C++']
    );
  });

  t.test("the C++ library's", async (t) => {
    const lines = (await tool(gate, ['--write'])).trim().split('\n');
    t.ok(lines.length >= 3);
    t.same(
      await refusals(
        gate,
        lines.map((line) => JSON.parse(line))
      ),
      []
    );
  });

  t.test("the module's", async (t) => {
    const written = PICTURES.map((picture, i) =>
      writeSprite({
        id: `m-${i}`,
        picture,
        at: i / 3,
        speed: [i * 7, 50 - i * 20],
        name: 'Groß "\\\t🚀'
      })
    );
    t.same(
      await refusals(
        gate,
        written.map((line) => JSON.parse(line))
      ),
      []
    );
  });

  t.test("the swarm's, in every direction", async (t) => {
    const server = await startServer(t);
    const { client, caught } = await joinAndCatch(t, server.url);
    const swarm = start(t, `throw 3 --port ${server.port} --rate 40 --time 600 --quiet`);
    const thrownTo = (edge) => caught.find(({ sprite }) => sprite.to === edge);
    await until(() => EDGES.every(thrownTo));
    await client.leave();
    for (const edge of EDGES) {
      t.same(await refusals(gate, [thrownTo(edge).sprite]), [], `thrown ${edge}`);
    }
    swarm.kill('SIGTERM');
    await swarm.result();
  });
});
