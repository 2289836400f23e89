import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { DOORS, ROOT, startServer } from './support/server.js';

/**
 * TLS: the same routes, certificates that change under way, and the bounds before a handshake.
 */

function temporary(t) {
  const dir = mkdtempSync(path.join(tmpdir(), 'sprites-tls-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

/** Waits until something holds. */
async function soon(holds, what) {
  for (let tries = 0; tries < 4000; tries += 1) {
    if (await holds()) return;
    await pause(5);
  }
  throw new Error(`never: ${what}`);
}

/** What a server has logged, by its messages. */
function logged(server, message) {
  return Buffer.concat(server.errors).toString().split('\n').filter(Boolean)
    .map((line) => JSON.parse(line)).filter(({ msg }) => msg === message);
}

// ---- SIGUSR2 ------------------------------------------------------------------------------------

const NOTHING = 'there is no TLS, and nothing to read anew';

for (const door of DOORS) {
  t.test(`SIGUSR2 without TLS costs nobody anything, "${door}"`, async (t) => {
    const options = { state: path.join(temporary(t), 'state'), drain: 0 };
    const first = await startServer(t, { door, options });
    const id = await first.join();
    await first.throw(id, 'left', '{"kept":true}');
    for (let times = 1; times <= 2; times += 1) {
      first.child.kill('SIGUSR2');
      await soon(() => logged(first, NOTHING).length === times, 'it says so');
    }
    await first.stop();
    const second = await startServer(t, { door, options });
    t.strictSame((await second.poll(id)).body.sprites.map(({ sprite }) => sprite),
      [{ kept: true }], 'the state is there');
    await second.leave(id);
    await second.stop();
  });
}

/** Whether a process has a listener for a signal. */
function listensFor(pid, number) {
  const [, mask] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return (BigInt(`0x${mask}`) >> BigInt(number - 1) & 1n) === 1n;
}

t.test('SIGUSR2 while it starts is no end either', async (t) => {
  const child = spawn('env', ['-u', 'NODE_OPTIONS', process.execPath, `${ROOT}bin/sprites`,
    '--port', '0', '--host', '127.0.0.1', '--drain', '0', '--workers', '2', '--transient-port', '0'
  ], { stdio: ['ignore', 'pipe', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  const said = Promise.all([text(child.stdout), text(child.stderr)]);
  const ended = once(child, 'exit');
  await soon(() => listensFor(child.pid, constants.signals.SIGUSR2), 'it listens for the signal');
  child.kill('SIGUSR2');
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
  const [out, log] = await said;
  t.match(out, /listens on/);
  t.match(log, NOTHING);
});
