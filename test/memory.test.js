import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { DOORS, ROOT, startServer } from './support/server.js';

/** Counts of bytes, which a loaded machine does not change. */

for (const door of DOORS) {
  t.test(`an idle server with room for a million stays under 80 MB (${door})`, async (t) => {
    const server = await startServer(t, { door });
    t.equal((await server.status()).capacity, 1000000);
    const [, kilobytes] = /^VmRSS:\s+([0-9]+) kB/m
      .exec(readFileSync(`/proc/${server.pid}/status`, 'utf8'));
    t.ok(kilobytes * 1024 < 80e6, `${kilobytes} kB`);
    await server.stop();
  });
}

t.test('a million joined clients cost 160 bytes each, and nothing of the heap', async (t) => {
  const told = JSON.parse(execFileSync('env', ['-u', 'NODE_OPTIONS', process.execPath,
    '--expose-gc', join(ROOT, 'test/support/million-joined.js'), '1000000']));
  t.comment(told);
  t.equal(told.clients, 1000000);
  t.ok(Math.abs(told.heap) < 10e6, `${told.heap} bytes of heap`);
  t.ok(told.bytesEach <= 160, `${told.bytesEach} bytes each`);
  t.ok(told.torus.rows * told.torus.columns >= 1000000);
});
