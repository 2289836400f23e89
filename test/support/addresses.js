import { spawn } from 'node:child_process';
import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { createInterface } from 'node:readline';

import { request, Wire } from './http.js';
import { endProcess, untilStopped } from './processes.js';

/** Clients that the server sees at different addresses. */

/** Sends one request on a new connection, from an address or with a PROXY header in front (`before`). */
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
 * Listens with a server of the test on a free port of loopback. The test's end closes it.
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

/** The lowest ephemeral port: the kernel assigns ports from this one up to programs that bind port 0. */
const [FIRST_EPHEMERAL_PORT] = readFileSync('/proc/sys/net/ipv4/ip_local_port_range', 'utf8').split(
  '\t'
);

/**
 * @returns {Promise<number>} a free port, for a program that can't bind port 0. It is below the ephemeral ports, so
 *     that the kernel does not assign it to another program first
 */
export async function freePort() {
  for (;;) {
    const server = createServer().listen(
      randomInt(20_000, Math.max(21_000, FIRST_EPHEMERAL_PORT)),
      '127.0.0.1'
    );
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

/** Listens. Once the program is stopped, BACKLOG_CONNECTIONS fill its backlog, and the kernel accepts no further one. */
const PROGRAM = `require('node:net').createServer()
  .listen({ port: 0, host: '127.0.0.1', backlog: 1 }, function () { console.log(this.address().port); });`;
const BACKLOG_CONNECTIONS = 2;

/**
 * Opens a port of loopback that neither accepts nor refuses connections, like a host that has gone.
 *
 * @param {import('tap').Test} t its end closes the port
 * @returns {Promise<number>}
 */
export async function startUnresponsivePort(t) {
  const env = { ...process.env, NODE_OPTIONS: '' };
  const child = spawn(process.execPath, ['--eval', PROGRAM], {
    env,
    stdio: ['ignore', 'pipe', 'inherit']
  });
  const backlog = [];
  t.teardown(() => {
    for (const socket of backlog) socket.destroy();
    return endProcess(child, 'SIGKILL');
  });
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  child.kill('SIGSTOP');
  await untilStopped(child.pid);
  while (backlog.length < BACKLOG_CONNECTIONS) {
    const socket = connect(Number(line), '127.0.0.1').on('error', () => {});
    backlog.push(socket);
    await once(socket, 'connect');
  }
  return Number(line);
}
