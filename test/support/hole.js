import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { createInterface } from 'node:readline';

import { until } from './until.js';

/** Listens, and takes nobody once it is stopped: with these two the kernel keeps no further connection waiting. */
const PROGRAM = `require('node:net').createServer()
  .listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port); });`;
const KEPT = 2;

/**
 * A port of loopback to which no connection is ever made, and none refused, as where a host has gone.
 *
 * @param {import('tap').Test} t ends it
 * @returns {Promise<number>}
 */
export async function startHole(t) {
  const env = { ...process.env, NODE_OPTIONS: '' };
  const child = spawn(process.execPath, ['--eval', PROGRAM], {
    env,
    stdio: ['ignore', 'pipe', 'inherit']
  });
  const ended = once(child, 'exit');
  const kept = [];
  t.teardown(() => {
    for (const socket of kept) socket.destroy();
    child.kill('SIGKILL');
    return ended;
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  child.kill('SIGSTOP');
  await until(() => / T /.test(readFileSync(`/proc/${child.pid}/stat`, 'utf8')));
  while (kept.length < KEPT) {
    const socket = connect(Number(line), '127.0.0.1').on('error', () => {});
    kept.push(socket);
    await once(socket, 'connect');
  }
  return Number(line);
}
