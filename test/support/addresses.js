import { connect } from 'node:net';

import { request, Wire } from './http.js';

/** Clients at addresses of their own, as far as the server can tell. */

/** Connects from an address of the loopback network. */
export function from(localAddress, port) {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1', localAddress, allowHalfOpen: true });
    socket.once('error', reject);
    socket.once('connect', () => {
      socket.off('error', reject);
      resolve(new Wire(socket));
    });
  });
}

/** One request over a connection of its own, from an address or behind a proxy's header. */
export async function askFrom(
  server,
  { address = '127.0.0.1', before = '', headers } = {},
  method = 'POST',
  target = '/join'
) {
  const wire = await from(address, server.port);
  if (before.length > 0) wire.send(before);
  wire.send(request(method, target, { headers }));
  try {
    return await server.read(wire);
  } finally {
    await wire.destroy();
  }
}
