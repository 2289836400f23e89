/**
 * Joins a million clients in one process, and prints the cost; for test/server/memory.test.js.
 *
 *     node --expose-gc test/support/million-joined.js 1000000
 */
import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';

const count = Number(process.argv[2]);

function measure() {
  for (let i = 0; i < 4; i += 1) globalThis.gc();
  const { heapUsed, rss } = process.memoryUsage();
  return { heapUsed, rss };
}

const pool = new Pool({ ...readOptions([]), capacity: count, lease: 3600 });
// Warm-up: the hot code is compiled, and the first allocations are done, before the measurement.
for (let i = 0; i < 2000; i += 1) pool.leave(pool.join().id);
const before = measure();
for (let i = 0; i < count; i += 1) {
  if (pool.join().outcome !== 'ok') throw new Error(`the join ${i} was refused`);
}
const after = measure();
process.stdout.write(
  JSON.stringify({
    clients: pool.status().clients,
    heap: after.heapUsed - before.heapUsed,
    bytesEach: (after.rss - before.rss - Math.max(0, after.heapUsed - before.heapUsed)) / count,
    torus: { rows: pool.status().rows, columns: pool.status().columns }
  })
);
pool.close();
