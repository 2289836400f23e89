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
