import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';

import { Skip } from './scene.js';
import { request } from '../support/http.js';
import { until } from '../support/until.js';

/** Delays a worker's thread again and again, by a second each time. */

const WIRES = 24;

/** Delay of each epoll_wait of the thread, in milliseconds. */
const DELAY = 1000;

/** Returns the thread id of the first worker. */
function threadOf(pid) {
  return readdirSync(`/proc/${pid}/task`).find(
    (id) => readFileSync(`/proc/${pid}/task/${id}/comm`, 'utf8') === 'worker 1\n'
  );
}

/** Delays each epoll_wait of a thread, until the returned process ends. */
async function delayThread(scene, thread) {
  const traceOptions = ['-qq', '-o', '/dev/null', '-e', 'trace=epoll_wait'];
  const injectOptions = ['-e', `inject=epoll_wait:delay_enter=${DELAY * 1000}`];
  const child = spawn('strace', [...traceOptions, ...injectOptions, '-p', thread], {
    stdio: 'ignore'
  });
  scene.teardown(() => child.kill('SIGKILL'));
  const failed = once(child, 'error').then(() => 'error');
  const traced = until(
    () => child.exitCode !== null || child.pid === undefined || tracerOf(thread) === child.pid,
    'it is traced'
  );
  if ((await Promise.race([failed, traced])) === 'error' || child.exitCode !== null)
    throw new Skip('strace is not installed, or may not trace here');
  return child;
}

/** Returns the process that traces a thread; 0: none. */
function tracerOf(thread) {
  return Number(/^TracerPid:\s+(\d+)/m.exec(readFileSync(`/proc/${thread}/status`, 'utf8'))[1]);
}

export const workers = {
  name: 'a worker without its core',
  promise: 'it delays its own clients alone: those of the other worker are answered at once',
  async run(scene) {
    const server = await scene.server({ workers: 2, 'throw-rate': 0 });
    const wires = [];
    for (let i = 0; i < WIRES; i += 1) {
      const wire = await server.wire();
      wire.send(request('POST', '/join'));
      wires.push({ wire, id: (await server.read(wire)).body.id });
    }
    const child = await delayThread(scene, threadOf(server.pid));
    // The epoll_wait that was running has been delayed, too.
    await pause(DELAY);
    const begun = performance.now();
    const times = await Promise.all(
      wires.map(async ({ wire, id }, n) => {
        // The first throw may come near the end of a delay; the second one waits for a whole delay.
        for (const one of [1, 2]) {
          wire.send(request('POST', `/throw/${id}/left?n=${2 * n + one}`, { body: '{}' }));
          assert.equal((await server.read(wire)).status, 202);
        }
        return performance.now() - begun;
      })
    );
    child.kill('SIGTERM');
    await once(child, 'close');
    const late = times.filter((time) => time > DELAY / 2);
    const prompt = times.filter((time) => time <= DELAY / 2);
    assert.ok(late.length > 0, 'some are with the worker that has no core');
    assert.ok(prompt.length > 0, 'and some are not delayed by that');
    for (const { wire } of wires) await wire.destroy();
    const slowest = Math.round(Math.max(...prompt));
    return `${prompt.length} pairs of throws answered within ${slowest} ms, ${late.length} of the other worker within ${Math.round(Math.max(...late))} ms`;
  }
};
