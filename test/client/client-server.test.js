import { createServer as createHttpServer } from 'node:http';
import { createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { EDGES, opposite } from '../../lib/client/client.js';
import { globalTimers, Requests } from '../../lib/client/requests.js';
import { randomOf } from '../fuzz/random.js';
import { listening } from '../support/addresses.js';
import { joinAndCatch, formatComplaints } from '../support/catcher.js';
import { playUntilPatched } from '../support/feeds-history.js';
import { FaultProxy } from '../support/proxies.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { lengthOf, until } from '../support/until.js';

/** The JavaScript clients against the server, and against answers that the server never sends. */

t.setTimeout(300_000);

/** Short backoffs: the real ones are tested with a clock that is moved by hand. */
const LIMITS = { backoffFirst: 20, backoffMost: 100, busyLeast: 20 };

t.test('against the server', async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 0 } });

  t.test('alone, a client catches what it throws', async (t) => {
    const { client, caught } = await joinAndCatch(t, server.url);
    t.match(client.id, /^[0-9a-f-]{36}$/);
    t.equal(client.lease, 30);
    t.same(await client.place(), { row: 0, column: 0, rows: 1, columns: 1 });
    t.match(await client.status(), { clients: 1 });
    for (const edge of EDGES) {
      t.match(await client.throw(edge, { edge, text: 'Grüße 🚀' }), { thrown: true });
    }
    await until(() => caught.length === EDGES.length);
    t.same(
      caught,
      EDGES.map((edge) => ({ sprite: { edge, text: 'Grüße 🚀' }, from: opposite(edge) }))
    );
    t.equal(await client.leave(), true);
    await server.until(({ clients }) => clients === 0);
  });

  t.test('over a network that resets connections, every sprite arrives once', async (t) => {
    const random = randomOf(t);
    const network = await FaultProxy.start(t, server.port, random);
    network.faults = false;
    const base = `${network.url}/`;
    const all = await Promise.all(Array.from({ length: 6 }, () => joinAndCatch(t, base, LIMITS)));
    // Faults begin after the joins: a join with a lost answer would leave a client without a program.
    network.faults = true;
    const places = all.map(({ client }) => client.id);
    const throwMany = async ({ client }, i) => {
      for (let n = 0; n < 25; n += 1) {
        const sprite = { id: `${i}-${n}` };
        const edge = EDGES[(i + n) % 4];
        let outcome = await client.throw(edge, sprite);
        for (let again = 0; outcome.thrown !== true && again < 50; again += 1) {
          outcome = await client.throw(edge, sprite, { ticket: outcome.ticket });
        }
        t.equal(outcome.thrown, true, 'taken in the end');
      }
    };
    await Promise.all(all.map(throwMany));
    t.same(
      all.map(({ client }) => client.id),
      places,
      'no place was lost'
    );
    network.faults = false;
    await server.until(({ waiting }) => waiting === 0);
    const ids = all.flatMap(({ caught }) => caught.map(({ sprite }) => sprite.id));
    t.equal(ids.length, 150, 'none too many, none missing');
    t.equal(new Set(ids).size, 150, 'each of them once');
    const { lost, cut, reset } = network.counts;
    t.ok(lost + cut + reset > 5, JSON.stringify(network.counts));
    t.comment(`${(await server.status()).duplicates} throws had to be told apart`);
    await Promise.all(all.map(({ client }) => client.leave()));
  });
});

// The output of the libraries is tested in sprite-format.test.js and native/client/tests/unit.cc.
t.test("the swarm's sprites keep to the written format, in every direction", async (t) => {
  const bad = { id: 'a', picture: 'ball', at: 0.5, speed: [-1, 0.2] };
  t.same(formatComplaints({ ...bad, speed: [1, 0.2] }), []);
  t.match(formatComplaints(bad), [/^schema: /, /^reader: /], 'what does not is seen');

  const server = await startServer(t);
  const { client, caught } = await joinAndCatch(t, server.url);
  const swarm = start(t, `throw 3 --port ${server.port} --rate 40 --time 600 --quiet`);
  const thrownTo = (edge) => caught.find(({ sprite }) => sprite.to === edge);
  await until(() => EDGES.every(thrownTo));
  await client.leave();
  for (const edge of EDGES) t.same(formatComplaints(thrownTo(edge).sprite), [], `thrown ${edge}`);
  swarm.kill('SIGTERM');
  await swarm.result();
});

// feeds-cpp.test.js also has the C++ client, and test/fuzz/feeds.js plays for any length of time.
t.test('through a random history a client that watches has the newest value in the end', (t) =>
  playUntilPatched(t, { steps: lengthOf({ short: 30, long: 60 }) })
);

/** Returns a function that sends requests to this server. */
async function asker(t, server, limits) {
  const url = `http://127.0.0.1:${await listening(t, server)}/join`;
  const requests = new Requests(fetch, globalTimers(), limits);
  return () => requests.send(url, {});
}

t.test('an answer that stalls is given up in time, whatever garbage is collected', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let open = 0;
  const server = createServer((socket) => {
    open += 1;
    socket.on('error', () => {}).on('close', () => (open -= 1));
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'));
  });
  const ask = await asker(t, server, { requestTimeout: 500, answerMost: 100 });
  const collecting = setInterval(collect, 20);
  await t.rejects(ask(), { reason: 'slow' });
  await until(() => open === 0);
  t.pass('its connection is closed');
  clearInterval(collecting);
});

t.test('a redirect is an answer that no Sprites server gives', async (t) => {
  const server = createHttpServer((request, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end('{}');
  });
  const ask = await asker(t, server, { requestTimeout: 5000, answerMost: 100 });
  t.match(await ask(), { status: 307 });
});

t.test('an answer that is small as it is sent and huge as it is read is refused', async (t) => {
  // A whole answer of 64 MB, which is a thousandth of that on the wire.
  const bomb = gzipSync(JSON.stringify({ x: 'x'.repeat(64 << 20) }));
  const server = createHttpServer((request, response) => {
    response.writeHead(200, { 'Content-Encoding': 'gzip' }).end(bomb);
  });
  const ask = await asker(t, server, { requestTimeout: 20_000, answerMost: 16 << 20 });
  await t.rejects(ask(), { reason: 'garbage' });
});
