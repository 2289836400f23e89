import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

import t from 'tap';

const DIRECTORY = fileURLToPath(new URL('../native', import.meta.url));

/**
 * Builds and runs a program of test/native: without Node, under AddressSanitizer and
 * UndefinedBehaviorSanitizer.
 *
 * @param {string} name
 * @returns {Promise<{code: number, text: string}>} how it ended and what it said
 */
async function run(name) {
  const child = spawn(
    'make',
    ['-s', '-C', DIRECTORY, 'OUT=../../native/build/sanitize-clients', `${name}.run`],
    { stdio: ['ignore', 'pipe', 'pipe'] }
  );
  const said = [];
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => said.push(chunk));
  const [code] = await once(child, 'close');
  return { code, text: Buffer.concat(said).toString() };
}

t.test(
  'the pool does what its model does, 200,000 random steps',
  { timeout: 600000 },
  async (t) => {
    const { code, text } = await run('pool_test');
    t.comment(text);
    t.equal(code, 0);
    const [, ...counts] =
      /thrown (\d+), flown on (\d+), expired (\d+), lost (\d+)/.exec(text) ?? [];
    t.ok(
      counts.length === 4 && counts.every((count) => count > 1000),
      'and there was enough to do'
    );
  }
);

t.test(
  'the wheel fires what a table says, 300,000 random steps',
  { timeout: 600000 },
  async (t) => {
    const { code, text } = await run('wheel_test');
    t.comment(text);
    t.equal(code, 0);
    t.ok(Number(/fired (\d+)/.exec(text)?.[1]) > 10000, 'and there was enough to do');
  }
);

for (const name of ['address_limits_test', 'delivery_times_test', 'loop_delays_test']) {
  t.test(`${name} finds nothing`, { timeout: 600000 }, async (t) => {
    const { code, text } = await run(name);
    t.comment(text);
    t.equal(code, 0);
  });
}
