import t from 'tap';

import { start } from '../../server.js';
import { readOptions } from '../../lib/server/options.js';
import { openPages } from '../../lib/server/page-files.js';
import { Wire, request } from '../support/http.js';
import { DOORS, startServer } from '../support/server.js';

/** What the front door has ready, so that a page's connections never become Node's. */

const skip = DOORS.includes('native') ? false : 'there is no native front door here';
const NOBODY = '00000000-0000-4000-8000-000000000000';

/** The fields of an answer that are the same by either way in. */
function fixed({ status, headers, body }) {
  const { date, connection, 'keep-alive': keepAlive, ...rest } = headers;
  t.ok(date && connection && keepAlive);
  return { status, headers: rest, body };
}

t.test(
  'files and places are answered natively, in the same words as by Node',
  { skip },
  async (t) => {
    const native = await startServer(t, { door: 'native' });
    const node = await startServer(t, { door: 'node' });
    const ids = [await native.join(), await node.join()];
    const paths = openPages()
      .ready()
      .map(({ path }) => path);
    t.ok(
      paths.includes('/') && paths.includes('/page/page.js') && paths.includes('/client/client.js')
    );
    const wires = [await native.wire(), await node.wire()];
    const both = async (of) => {
      const answers = [];
      for (const [i, server] of [native, node].entries()) {
        wires[i].send(request('GET', of(ids[i])));
        answers.push(fixed(await server.read(wires[i])));
      }
      return answers;
    };
    for (const of of [...paths.map((path) => () => path), (id) => `/place/${id}`]) {
      const [one, other] = await both(of);
      t.equal(one.status, 200);
      t.strictSame(one, other, of('{id}'));
    }
    const [one, other] = await both(() => `/place/${NOBODY}`);
    t.equal(one.status, 404);
    t.strictSame(one, other);
    for (const of of [() => '/status', (id) => `/status/${id}`]) {
      const [counts, others] = await both(of);
      t.match(counts, { status: 200, body: { clients: 1, handedOver: 0, nodeConnections: 0 } });
      t.equal(others.status, 200);
    }
    for (const id of [NOBODY, 'nobody']) {
      const [none, neither] = await both(() => `/status/${id}`);
      t.equal(none.body.type, 'urn:sprites:unknown-client');
      t.strictSame(none, neither);
    }
    await native.leaveNothing();
    await node.leaveNothing();
  }
);

t.test(
  'what is not ready is handed over: other methods, queries, other paths',
  { skip },
  async (t) => {
    const server = await startServer(t, { door: 'native' });
    const asked = [
      ['HEAD', '/'],
      ['OPTIONS', '/status'],
      ['POST', '/'],
      ['GET', '/?a'],
      ['GET', '/status?a'],
      ['GET', '/nothing']
    ];
    for (const [i, [method, target]] of asked.entries()) {
      await server.ask(method, target);
      t.equal((await server.status()).handedOver, i + 1, `${method} ${target}`);
    }
    await server.leaveNothing();
  }
);

t.test(
  'with a transient port the page says where it may throw, by the host',
  { skip },
  async (t) => {
    const options = { workers: 1, 'transient-port': 0 };
    const server = await startServer(t, { door: 'native', options });
    const policyOf = async (path, host) =>
      (await server.ask('GET', path, { headers: { Host: host } })).headers[
        'content-security-policy'
      ];
    t.match(await policyOf('/', 'a.example'), /connect-src 'self' http:\/\/a\.example:\d+;/);
    t.match(await policyOf('/', 'b.example:8080'), /connect-src 'self' http:\/\/b\.example:\d+;/);
    // The worker's counts are told once a second.
    await server.until(({ handedOver }) => handedOver === 2);
    const { requests } = await server.status();
    t.match(await policyOf('/page/page.js', 'a.example'), /connect-src 'self';/);
    const later = await server.until((status) => status.requests > requests);
    t.equal(later.handedOver, 2, 'everything else is ready');
    await server.leaveNothing();
  }
);

t.test(
  'a storm of /status costs a bounded number of calls into JavaScript',
  { skip },
  async (t) => {
    const server = await start(readOptions(['--port', '0', '--host', '127.0.0.1'], {}));
    t.teardown(() => server.stop());
    let calls = 0;
    const status = server.pool.status.bind(server.pool);
    server.pool.status = () => {
      calls += 1;
      return status();
    };
    const wire = await Wire.open(server.port);
    const before = performance.now();
    const count = 5000;
    wire.send(Buffer.concat(Array(count).fill(request('GET', '/status'))));
    for (let i = 0; i < count; i += 1) {
      if ((await wire.read()).body.clients !== 0) t.fail('counts of nobody');
    }
    const ticks = 2 + Math.ceil((performance.now() - before) / 100);
    t.ok(calls > 0 && calls <= 100 * ticks, `${calls} calls in ${ticks} ticks`);
    await wire.destroy();
  }
);

t.test("a browser's connection is closed behind what Node has answered", { skip }, async (t) => {
  const server = await startServer(t, { door: 'native' });
  const browser = { headers: { 'Sec-Fetch-Mode': 'cors' } };
  const wire = await server.wire();
  wire.send(request('HEAD', '/', browser));
  t.equal((await server.read(wire, { head: true })).headers.connection, 'close');
  await wire.closed();
  await server.leaveNothing();
});

t.test('any other is closed when it has been idle for a second', { skip }, async (t) => {
  const server = await startServer(t, { door: 'native', options: { 'idle-time': 60 } });
  const wire = await server.wire();
  for (let i = 0; i < 3; i += 1) {
    wire.send(request('OPTIONS', '/status'));
    t.match(await server.read(wire), { status: 204, headers: { connection: 'keep-alive' } });
  }
  await wire.closed();
  const kept = await server.wire();
  kept.send(request('GET', '/status'));
  t.match(await server.read(kept), { headers: { 'keep-alive': 'timeout=60' } });
  await server.leaveNothing();
});
