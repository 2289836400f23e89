import t from 'tap';

import { arenaOptions, enter, tell, valueOf } from '../support/arena.js';
import { problemOf } from '../support/contract.js';
import { request } from '../support/http.js';
import { startServer } from '../support/server.js';
import { untilCounts } from '../support/until.js';
import { startWithEveryWay } from '../support/ways.js';

/** Plays by one way in, from the join to the leave. */
async function play(t, server, open, name) {
  const wire = await open();
  const ask = async (method, target, body) => {
    wire.send(request(method, target, body === undefined ? {} : { body: JSON.stringify(body) }));
    return wire.read();
  };
  const { status, body } = await ask('POST', '/arena/hall');
  t.equal(status, 201, name);
  const path = `/arena/hall/${body.player}`;
  t.equal((await ask('POST', `${path}?n=1`, { taps: 5, y: 1 })).status, 204, name);
  t.equal((await ask('POST', path, { taps: 5.5 })).status, 400, name);
  const { value } = await valueOf(
    server,
    (now) => now.value?.numbers.at(-1) === body.number && now.value.taps.at(-1) === 5
  );
  t.equal(value.y.at(-1), 1, name);
  t.equal((await ask('POST', `${path}/leave`)).status, 204, name);
  t.equal((await ask('POST', path, {})).status, 404, name);
  t.equal((await ask('GET', '/arena')).body.arenas[0].name, 'hall', name);
  await wire.destroy();
}

t.test('the main port and TLS', async (t) => {
  const { server, ways } = await startWithEveryWay(t, arenaOptions(t));
  await tell(server, { running: true });
  await play(t, server, ways.main.open, 'main port');
  await play(t, server, ways.tls.open, 'TLS');
  await server.stop();
});

t.test('workers ask the main thread', async (t) => {
  const server = await startServer(t, { options: { ...arenaOptions(t), drain: 0, workers: 2 } });
  t.equal((await tell(server, { running: true })).status, 200, 'the panel, too');
  const wires = await Promise.all(Array.from({ length: 4 }, () => server.wire()));
  for (const [i, wire] of wires.entries()) {
    await play(t, server, async () => wire, `connection ${i}`);
  }
  const { inputs, players } = await server.status();
  t.strictSame([inputs, players], [4, 0]);

  await t.test('inputs cross without JavaScript', async (t) => {
    const one = await enter(server);
    const wire = await server.wire();
    const natively = ({ requests, handled }) => requests - handled;
    wire.send(request('POST', one.path, { body: '{"taps":9999}' }));
    t.equal(problemOf(await wire.read()), 'bad-input');
    const before = natively(await server.inside());
    for (let n = 0; n < 30; n += 1) {
      const body = JSON.stringify({ taps: n });
      wire.send(request('POST', `${one.path}?n=${n}`, { body }));
      t.equal((await wire.read()).status, 204);
    }
    wire.send(request('POST', `/arena/yard/${one.player}`, { body: '{}' }));
    t.equal(problemOf(await wire.read()), 'unknown-arena');
    await valueOf(server, ({ value }) => value.taps.at(-1) === 29);
    const { inputsRepeated } = await server.status();
    wire.send(request('POST', `${one.path}?n=29`, { body: '{"taps":7}' }));
    t.equal((await wire.read()).status, 204);
    t.equal((await server.status()).inputsRepeated, inputsRepeated + 1, 'each with its number');
    await untilCounts(
      () => server.inside(),
      (counts) => natively(counts) >= before + 30
    );
    await wire.destroy();
  });
  await server.stop();
});
