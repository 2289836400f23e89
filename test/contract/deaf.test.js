import t from 'tap';

import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';

/**
 * A server that was stopped for a while finds its timers due before it has read what has arrived.
 */

/** Seconds of the lease, in which a busy machine joins them all, too; and longer than that. */
const LEASE = 3;
const STOPPED = 5000;

t.test('a poll that came while the server was stopped is in time', async (t) => {
  const server = await startServer(t, { options: { lease: LEASE, drain: 0 } });
  // Clients whose lease has just begun, each with a connection of its own.
  const wires = await Promise.all(
    Array.from({ length: 50 }, () => Wire.open(server.port, server.host))
  );
  for (const wire of wires) wire.send(request('POST', '/join'));
  const ids = (await Promise.all(wires.map((wire) => wire.read()))).map(({ body }) => body.id);
  server.child.kill('SIGSTOP');
  for (const [i, wire] of wires.entries()) wire.send(request('GET', `/poll/${ids[i]}`));
  await new Promise((resolve) => {
    setTimeout(resolve, STOPPED);
  });
  server.child.kill('SIGCONT');
  const { parked, clients, expired } = await server.until(({ polls }) => polls === 50);
  t.strictSame({ parked, clients, expired }, { parked: 50, clients: 50, expired: 0 });
  // Leases still end: those of clients whose connections are gone.
  await Promise.all(wires.map((wire) => wire.destroy()));
  await server.until(({ expired: over }) => over === 50);
  await server.stop();
});

t.test('a request that came in pieces meanwhile is served', async (t) => {
  const server = await startServer(t, {
    options: { 'head-time': 3, 'body-time': 3, 'idle-time': 3 }
  });
  const half = await server.wire();
  half.send('POST /join HTTP/1.1\r\nHost: x\r\n');
  const idle = await server.wire();
  idle.send(request('POST', '/join'));
  t.equal((await idle.read()).status, 201);
  server.child.kill('SIGSTOP');
  half.send('Content-Length: 0\r\n\r\n');
  idle.send(request('POST', '/join'));
  await new Promise((resolve) => {
    setTimeout(resolve, STOPPED);
  });
  server.child.kill('SIGCONT');
  t.equal((await half.read()).status, 201, 'the rest of a head was there in time');
  t.equal((await idle.read()).status, 201, 'so was the next request');
  await Promise.all([half.destroy(), idle.destroy()]);
  await server.stop();
});
