import { readFileSync } from 'node:fs';

import { createServer } from 'sprites-server';

/**
 * Serves a web site of one page, and Sprites, on one port, for the examples. The page imports the client from
 * `/client/`, which Sprites serves.
 *
 * The port is the first argument of the command line (8090 by default; 0: any free port).
 *
 * @param {URL} page file of the page's HTML
 * @param {object} [how]
 * @param {Record<string, (request: Request) => Response | Promise<Response>>} [how.routes] further routes, by
 *     method and path
 * @param {object} [how.options] options of Sprites
 * @returns {Promise<import('sprites-server').Server>}
 */
export async function openSite(page, { routes = {}, options = {} } = {}) {
  const style = new URL('style.css', import.meta.url);
  const file = (type, url) => () =>
    new Response(readFileSync(url), { headers: { 'Content-Type': `${type}; charset=utf-8` } });
  const allRoutes = {
    'GET /': file('text/html', page),
    'GET /style.css': file('text/css', style),
    ...routes
  };
  const sprites = await createServer({
    port: Number(process.argv[2] ?? 8090),
    ...options,
    fetch(request) {
      const route = allRoutes[`${request.method} ${new URL(request.url).pathname}`];
      return route ? route(request) : new Response('There is no such page.', { status: 404 });
    }
  });
  console.log(`Open ${sprites.addresses[0]}, in two windows.`);
  return sprites;
}
