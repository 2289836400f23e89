/**
 * For a site that owns its sockets, as Express and Fastify do: it listens on loopback, and Sprites, in front, passes on to
 * it what is not its own. So one port does for both.
 *
 * @param {string} site its URL
 * @returns {(request: Request, about: {address: string, secure: boolean}) => Promise<Response>} for `createServer`
 */
export const behind =
  (site) =>
  (request, { address, secure }) => {
    const { host, pathname, search } = new URL(request.url);
    // A path may begin with two slashes, and resolved against the site it would name a host.
    const passed = new Request(Object.assign(new URL(site), { pathname, search }), request);
    passed.headers.set('X-Forwarded-For', address);
    passed.headers.set('X-Forwarded-Host', host);
    passed.headers.set('X-Forwarded-Proto', secure ? 'https' : 'http');
    // What is compressed would be unpacked here, and then be called compressed.
    passed.headers.set('Accept-Encoding', 'identity');
    return fetch(passed, { redirect: 'manual' });
  };
