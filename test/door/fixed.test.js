import t from 'tap';

import { start } from '../../server.js';
import { loadAddon } from '../../lib/base/addon.js';
import { readOptions } from '../../lib/operator/options.js';
import { openPages } from '../../lib/base/page-files.js';
import { Wire, request } from '../support/http.js';
import { startServer } from '../support/server.js';

/** The fixed answers of the front door, which it sends without JavaScript. */

const UNKNOWN_ID = '00000000-0000-4000-8000-000000000000';

/** Checks the header fields of an answer that may vary, and returns the rest. */
function withoutVaryingFields({ status, headers, body }) {
  const { date, connection, 'keep-alive': keepAlive, ...rest } = headers;
  t.ok(date && connection === 'keep-alive' && keepAlive === 'timeout=60');
  return { status, headers: rest, body };
}

t.test('files and places are answered natively, in the words of JavaScript', async (t) => {
  const server = await startServer(t, { options: { 'idle-time': 60 } });
  const id = await server.join();
  const paths = openPages()
    .fixedFiles()
    .map(({ path }) => path);
  t.ok(
    paths.includes('/') && paths.includes('/page/page.js') && paths.includes('/client/client.js')
  );
  const wire = await server.wire();
  const ask = async (target) =>
    withoutVaryingFields(await server.read(wire.send(request('GET', target))));
  /** Requests a target natively, and then with an unused query, for which JavaScript answers. */
  const askBothWays = async (target) => {
    const { handled } = await server.status();
    const one = await ask(target);
    t.equal((await server.status()).handled, handled, target);
    const other = await ask(`${target}?a=b`);
    t.equal((await server.status()).handled, handled + 1, target);
    return [one, other];
  };
  for (const target of [...paths, `/place/${id}`]) {
    const [one, other] = await askBothWays(target);
    t.equal(one.status, 200);
    t.strictSame(one, other, target);
  }
  for (const target of [`/place/${UNKNOWN_ID}`, `/status/${UNKNOWN_ID}`]) {
    const [one, other] = await askBothWays(target);
    t.equal(one.body.type, 'urn:sprites:unknown-client');
    t.strictSame(one, other);
  }
  for (const target of ['/status', `/status/${id}`]) {
    for (const counts of await askBothWays(target))
      t.match(counts, { status: 200, body: { clients: 1 } });
  }
  await wire.destroy();
  await server.assertNothingLeft();
});

t.test('with a transient port the page says where it may throw, by the host', async (t) => {
  const options = { workers: 1, 'transient-port': 0 };
  const server = await startServer(t, { options });
  const policyOf = async (path, host) =>
    (await server.ask('GET', path, { headers: { Host: host } })).headers['content-security-policy'];
  t.match(await policyOf('/', 'a.example'), /connect-src 'self' http:\/\/a\.example:\d+;/);
  t.match(await policyOf('/', 'b.example:8080'), /connect-src 'self' http:\/\/b\.example:\d+;/);
  await server.until(({ handled }) => handled === 2);
  const { requests } = await server.status();
  t.match(await policyOf('/page/page.js', 'a.example'), /connect-src 'self';/);
  const later = await server.until((status) => status.requests > requests);
  t.equal(later.handled, 2, 'everything else is ready');
  await server.assertNothingLeft();
});

t.test('a storm of /status costs a bounded number of calls into JavaScript', async (t) => {
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
    if ((await wire.read()).body.clients !== 0) t.fail('there are no clients');
  }
  const ticks = 2 + Math.ceil((performance.now() - before) / 100);
  t.ok(calls > 0 && calls <= 100 * ticks, `${calls} calls in ${ticks} ticks`);
  await wire.destroy();
});

t.test('such a call costs little more than an object with as many members', async (t) => {
  const addon = loadAddon();
  const { Door } = addon;
  t.teardown(() => (addon.Door = Door));
  let say;
  addon.Door = class extends Door {
    constructor(options, parts) {
      super(options, parts);
      say = parts.onCounts;
    }
  };
  const server = await start(readOptions(['--port', '0', '--host', '127.0.0.1'], {}));
  t.teardown(() => server.stop());
  /** Returns the least processor time of a hundred calls, in microseconds. */
  const leastOf = (call) => {
    const times = Array.from({ length: 20 }, () => {
      const before = process.cpuUsage();
      for (let i = 0; i < 100; i += 1) call();
      const { user, system } = process.cpuUsage(before);
      return user + system;
    });
    return Math.min(...times);
  };
  const counts = JSON.parse(say());
  const times = leastOf(say) / leastOf(() => Object.fromEntries(Object.entries(counts)));
  t.ok(times < 20, `${times.toFixed(1)} times`);
});
