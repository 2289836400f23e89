import { createConnection } from 'node:net';

import { NatsConnectionImpl, setTransportFactory } from '@nats-io/transport-node';
import { NodeTransport, nodeResolveHost } from '@nats-io/transport-node/lib/node_transport.js';

/**
 * A transport for the client that closes the socket of an abandoned try to connect. The client's own transport does so only
 * after the NATS server has sent INFO (also in 3.4.0; nats-io/nats.js#64): if that server hangs, each try would leak a
 * descriptor, and the process could not end.
 */
class Transport extends NodeTransport {
  dial({ hostname: host, port }) {
    const socket = createConnection({ host, port, noDelay: true });
    this.socket = socket; // The client's own transport sets it only when it is connected.
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
      options.onFailure(error);
      throw error;
    }
  }

  async peekInfo() {
    try {
      return await super.peekInfo();
    } catch (error) {
      throw error ?? new Error('the connection was closed at once');
    }
  }

  async close(error) {
    if (!this.connected) this.socket?.destroy();
    return super.close(error);
  }
}

/**
 * Connects as the client's own `connect` does, which has no timeout for the lookup of a name.
 *
 * @param {import('@nats-io/transport-node').NodeConnectionOptions & {onFailure: (error: Error) => void}} options `onFailure`
 *     is called with the error of each failed try: the client reports only the first one
 * @param {AbortSignal} signal ends the try at once
 * @returns {Promise<import('@nats-io/transport-node').NatsConnection>}
 * @throws {Error} the client's own, or the signal's reason
 */
export async function connect(options, signal) {
  signal.throwIfAborted();
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost });
  const connecting = NatsConnectionImpl.connect(options).then((connection) => {
    restoreServers(connection.protocol.servers, options.servers);
    return connection;
  });
  return new Promise((resolve, reject) => {
    const giveUp = () => {
      reject(signal.reason);
      connecting.then((late) => late.close()).catch(() => {}); // No caller waits for its error any more.
    };
    signal.addEventListener('abort', giveUp);
    connecting.then(resolve, reject).finally(() => signal.removeEventListener('abort', giveUp));
  });
}

/** Adds the servers that the client has forgotten because it could not reach them before its first connection. */
function restoreServers(servers, urls) {
  const known = new Set(servers.getServers().map(String));
  for (const url of urls) {
    servers.addServer(url);
    const added = servers.getServers().at(-1);
    if (known.has(String(added))) servers.removeServer(added);
  }
}
