/**
 * How the contenders on node:http are published to: POST /publish, the document as the body, 204.
 *
 * @param {(document: Buffer) => void} broadcast
 * @param {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void} [others]
 *     what serves any other request
 * @returns {(request: import('node:http').IncomingMessage, response: import('node:http').ServerResponse) => void}
 */
export function publications(
  broadcast,
  others = (request, response) => response.writeHead(404).end()
) {
  return (request, response) => {
    if (request.method !== 'POST' || request.url !== '/publish') {
      others(request, response);
      return;
    }
    const chunks = [];
    request.on('data', (chunk) => chunks.push(chunk));
    request.on('end', () => {
      broadcast(Buffer.concat(chunks));
      response.writeHead(204).end();
    });
  };
}

/**
 * Listens on loopback, on a free port, and prints the address.
 *
 * @param {import('node:http').Server} server
 */
export function listen(server) {
  server.listen({ port: 0, host: '127.0.0.1', backlog: 65535 }, () => {
    console.log(`http://127.0.0.1:${server.address().port}`);
  });
}
