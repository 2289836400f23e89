import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

import { request, Wire } from './http.js';
import { until } from './until.js';

/** Clients at addresses of their own, as far as the server can tell. */

/** One request over a connection of its own, from an address or behind a proxy's header. */
export async function askFrom(
  server,
  { address = '127.0.0.1', before = '', headers, body } = {},
  method = 'POST',
  target = '/join'
) {
  const wire = await Wire.open(server.port, '127.0.0.1', address);
  if (before.length > 0) wire.send(before);
  wire.send(request(method, target, { headers, body }));
  try {
    return await server.read(wire);
  } finally {
    await wire.destroy();
  }
}

/**
 * Has a server of a test's own listen on a free port of loopback, until the test's end.
 *
 * @param {import('tap').Test} t
 * @param {import('node:net').Server} server
 * @returns {Promise<number>} the port
 */
export async function listening(t, server) {
  await once(server.listen(0, '127.0.0.1'), 'listening');
  t.teardown(() => {
    server.close();
    server.closeAllConnections?.();
  });
  return server.address().port;
}

/** The first of the ports that the kernel gives to programs which ask for any. */
const [FIRST] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split('\t');

/**
 * @returns {Promise<number>} a port that is free, for a program that can't take 0: none of those that another program
 *     may be given before it listens
 */
export async function freePort() {
  for (;;) {
    const server = createServer().listen(randomInt(20_000, Math.max(21_000, FIRST)), '127.0.0.1');
    const isFree = await once(server, 'listening').then(
      () => true,
      () => false
    );
    if (!isFree) continue;
    const { port } = server.address();
    server.close();
    await once(server, 'close');
    return port;
  }
}

/** Listens, and accepts nothing once it is stopped: with these two the kernel keeps no further connection waiting. */
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
