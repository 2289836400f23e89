import { once } from 'node:events';
import http from 'node:http';

import { resetSocket } from './reset-socket.js';

/** Another server of the world, which is the same: by this name of the host. */
const OTHER = 'localhost';

/**
 * A server that answers each route from its list, one after the other; the last one stays. Each on a
 * connection of its own: curl by itself sends a request again that finds a kept connection dead.
 */
export class Script {
  #answers;
  #requests = [];

  static async start(t, answers) {
    const script = new Script();
    script.#answers = new Map(Object.entries(answers).map(([route, list]) => [route, [...list]]));
    const server = http.createServer((request, response) => script.#onRequest(request, response));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    script.url = `http://127.0.0.1:${server.address().port}`;
    t.teardown(() => {
      server.close();
      server.closeAllConnections();
    });
    return script;
  }

  /** The requests to a route so far, as the vectors write them: id, edge and query. */
  of(route) {
    return this.#requests.filter((each) => each.route === route).map(({ rest }) => rest);
  }

  /** The bodies of the requests to a route so far, as JSON; of those that have come whole. */
  bodiesOf(route) {
    const bodies = this.#requests.filter((each) => each.route === route && each.isWhole);
    return bodies.map(({ body }) => JSON.parse(body));
  }

  /** The same, at the server of that name; or what is no such thing. */
  #location(location, { url }) {
    if (location === undefined) return {};
    const there = { home: this.url, elsewhere: this.url.replace('127.0.0.1', OTHER) }[location];
    return { location: there ? there + url : location };
  }

  #onRequest(request, response) {
    const { pathname, search } = new URL(request.url, 'http://script');
    const [, route, ...rest] = pathname.split('/');
    const at = request.headers.host.startsWith(OTHER) ? '@' : '';
    const one = { route, rest: at + rest.join('/') + search, body: '', isWhole: false };
    this.#requests.push(one);
    const list = this.#answers.get(route);
    const answer = list.length > 1 ? list.shift() : list[0];
    request.on('end', () => (one.isWhole = true));
    request.on('data', (chunk) => (one.body += chunk));
    request.on('error', () => {}); // it was given up, or reset
    if (answer === 'hang') return;
    if (answer === 'reset') {
      // Only once it was read whole: of a throw whose body was not sent, a client knows that the
      // server has not taken it.
      request.on('end', () => resetSocket(request.socket));
      return;
    }
    const { status, body } = answer;
    const headers = { ...answer.headers, ...this.#location(answer.location, request) };
    for (const entry of body?.sprites ?? []) entry.sprite.id ??= `s${entry.seq}`;
    const text = typeof body === 'string' ? body : JSON.stringify(body);
    request.on('end', () => {
      response.writeHead(status, { ...headers, connection: 'close' });
      response.end(status === 204 ? undefined : text);
    });
  }
}
