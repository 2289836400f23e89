/**
 * Passes requests on to a site that owns its sockets, as with Express and Fastify: the site listens on loopback, and
 * Sprites, in front, passes on all requests that are not for Sprites. So both share one port.
 *
 * @param {string} site URL of the site
 * @returns {(request: Request, about: {address: string, secure: boolean}) => Promise<Response>} for `createServer`
 */
export const behind =
  (site) =>
  (request, { address, secure }) => {
    const { host, pathname, search } = new URL(request.url);
    // `new URL(pathname, site)` would be wrong: a path that begins with two slashes would name a host.
    const passed = new Request(Object.assign(new URL(site), { pathname, search }), request);
    passed.headers.set('X-Forwarded-For', address);
    passed.headers.set('X-Forwarded-Host', host);
    passed.headers.set('X-Forwarded-Proto', secure ? 'https' : 'http');
    // fetch() would decompress an answer, and keep its Content-Encoding.
    passed.headers.set('Accept-Encoding', 'identity');
    return fetch(passed, { redirect: 'manual' });
  };
