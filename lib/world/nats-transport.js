import { createConnection } from 'node:net';

import { NatsConnectionImpl, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';

/**
 * The client's way to a NATS server, which closes the socket of a try to connect that is given up. The client's own one does
 * not before the NATS server has said INFO (3.4.0 neither; nats-io/nats.js#64): where that hangs, each try would cost a
 * descriptor for good, and the process could not end.
 */
class Transport extends NodeTransport {
  async connect(host, options) {
    const { signal } = options;
    const giveUp = () => this.socket?.destroy();
    signal.throwIfAborted();
    signal.addEventListener('abort', giveUp);
    try {
      await super.connect(host, options);
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  }

  dial({ hostname: host, port }) {
    const socket = createConnection({ host, port, noDelay: true });
    this.socket = socket; // The client's own knows it from when it is connected.
    return new Promise((resolve, reject) => {
      let reason;
      socket.on('error', (error) => (reason = error));
      socket.on('close', () => reject(reason));
      socket.on('connect', () => {
        socket.removeAllListeners();
        resolve(socket);
      });
    });
  }

  async close(error) {
    if (!this.connected) this.socket?.destroy();
    return super.close(error);
  }
}

/**
 * As the client's own.
 *
 * @param {import('@nats-io/transport-node').NodeConnectionOptions & {signal: AbortSignal}} options `signal` ends a try to
 *     connect at once; a connection that there is stays
 * @returns {Promise<import('@nats-io/transport-node').NatsConnection>}
 */
export function connect(options) {
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  return NatsConnectionImpl.connect(options);
}
