import { once } from 'node:events';
import http from 'node:http';

/**
 * A proxy in front of a server, for planting the faults that a client must notice.
 *
 * @param {import('tap').Test} t
 * @param {number} port of the server behind
 * @param {(answer: object, path: string) => void} [tamper] may change a poll's answer on its way
 * @returns {Promise<{port: number, cut: () => void}>} `cut` breaks every connection through it
 */
export async function startProxy(t, port, tamper = () => {}) {
  const agent = new http.Agent({ keepAlive: true });
  const proxy = http.createServer((request, response) => {
    const { method, url, headers } = request;
    const onward = http.request({ host: '127.0.0.1', port, method, path: url, headers, agent });
    onward.on('response', async (answer) => {
      const body = change(url, Buffer.concat(await answer.toArray()).toString(), tamper);
      const length = answer.statusCode === 204 ? {} : { 'content-length': Buffer.byteLength(body) };
      response.writeHead(answer.statusCode, { ...answer.headers, ...length });
      response.end(body);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    request.pipe(onward);
  });
  proxy.listen(0, '127.0.0.1', 4096);
  await once(proxy, 'listening');
  t.teardown(() => {
    proxy.close();
    proxy.closeAllConnections();
    agent.destroy();
  });
  return { port: proxy.address().port, cut: () => proxy.closeAllConnections() };
}

function change(path, body, tamper) {
  if (!path.startsWith('/poll/')) return body;
  const answer = JSON.parse(body);
  if (!answer.sprites) return body;
  tamper(answer, path);
  return JSON.stringify(answer);
}
