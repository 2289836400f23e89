import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import t from 'tap';

const DIRECTORY = fileURLToPath(new URL('./native', import.meta.url));

// Built without Node, under AddressSanitizer and UndefinedBehaviorSanitizer: see test/native.
t.test('the pool does what its model does, 200,000 random steps', { timeout: 600000 }, async (t) => {
  const child = spawn('make', ['-s', '-C', DIRECTORY, 'OUT=../../native/build/sanitize-clients',
    'clients_test.run'], { stdio: ['ignore', 'pipe', 'pipe'] });
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => said.push(chunk));
  const [code] = await once(child, 'close');
  const text = Buffer.concat(said).toString();
  t.comment(text);
  t.equal(code, 0);
  const [, ...counts] = /thrown (\d+), flown on (\d+), expired (\d+), lost (\d+)/.exec(text) ?? [];
  t.ok(counts.length === 4 && counts.every((count) => count > 1000), 'and there was enough to do');
});
