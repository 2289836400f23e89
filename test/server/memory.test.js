import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

import t from 'tap';

import { useOf } from '../../lib/swarm/server-watch.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Memory in bytes, which does not depend on the load of the machine. */

/** Most resident bytes of an idle server. Node 26 releases less of its start's memory: 20 MB more stay resident. */
const IDLE_BYTES = parseInt(process.versions.node) < 26 ? 80e6 : 100e6;

t.test(`an idle server with room for a million stays under ${IDLE_BYTES / 1e6} MB`, async (t) => {
  const server = await startServer(t);
  t.equal((await server.status()).capacity, 1000000);
  // The start leaves garbage, which V8 collects after a while.
  const bytes = () => useOf(server.pid).memory;
  await until(
    () => bytes() < IDLE_BYTES,
    () => `${bytes()} bytes`
  );
  await server.stop();
});

t.test('a million joined clients cost 160 bytes each, and nothing of the heap', async (t) => {
  const cost = JSON.parse(
    execFileSync('env', [
      '-u',
      'NODE_OPTIONS',
      process.execPath,
      '--expose-gc',
      join(ROOT, 'test/support/million-joined.js'),
      '1000000'
    ])
  );
  t.comment(cost);
  t.equal(cost.clients, 1000000);
  t.ok(Math.abs(cost.heap) < 10e6, `${cost.heap} bytes of heap`);
  t.ok(cost.bytesEach <= 160, `${cost.bytesEach} bytes each`);
  t.ok(cost.torus.rows * cost.torus.columns >= 1000000);
});
