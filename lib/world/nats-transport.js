import { createConnection } from 'node:net';

import { NatsConnectionImpl, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';

/**
 * The client's way to a NATS server, which closes the socket of a try to connect that is given up. The client's own one does
 * not before the NATS server has said INFO (3.4.0 neither; nats-io/nats.js#64): where that hangs, each try would cost a
 * descriptor for good, and the process could not end.
 */
class Transport extends NodeTransport {
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

  async connect(server, options) {
    try {
      await super.connect(server, options);
    } catch (error) {
      options.failed(error);
      throw error;
    }
  }

  async close(error) {
    if (!this.connected) this.socket?.destroy();
    return super.close(error);
  }
}

/**
 * As the client's own, which waits for a name to be looked up as long as that takes.
 *
 * @param {import('@nats-io/transport-node').NodeConnectionOptions & {failed: (error: Error) => void}} options `failed` is told
 *     why a try has failed: of those after the first one the client says nothing
 * @param {AbortSignal} signal gives it up at once
 * @returns {Promise<import('@nats-io/transport-node').NatsConnection>}
 * @throws {Error} the client's own, or the signal's reason
 */
export async function connect(options, signal) {
  signal.throwIfAborted();
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  const trying = NatsConnectionImpl.connect(options);
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      reject(signal.reason);
      trying.then((late) => late.close()).catch(() => {}); // No caller waits for its failure any more.
    };
    signal.addEventListener('abort', giveUp);
    trying.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}
