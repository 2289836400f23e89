import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { createServer } from 'sprites-server';

/** What the examples share: a web site of one page, and a server of Sprites beside it in the same program. */

/** The modules of the client, which a page imports from `/client/`. */
function clientModules() {
  const folder = new URL('./', import.meta.resolve('sprites-server/client'));
  const names = readdirSync(folder).filter((name) => name.endsWith('.js'));
  return names.map((name) => [`/client/${name}`, 'text/javascript', new URL(name, folder)]);
}

/**
 * Opens the site at the port that the command line names (8090 by default; 0 takes a free one).
 *
 * @param {URL} page its HTML; `{port}` in it becomes the port of Sprites
 * @param {object} [how]
 * @param {Record<string, http.RequestListener>} [how.routes] what else the site answers, by method and path
 * @param {(site: string) => object} [how.options] of Sprites, from the address of the site
 * @returns {Promise<(key: string, value: unknown) => Promise<void>>} publishes a value as a feed; throws what the server
 *     says against it
 */
export async function openSite(page, { routes = {}, options = () => ({}) } = {}) {
  const style = ['/style.css', 'text/css', new URL('style.css', import.meta.url)];
  const all = [['/', 'text/html', page], style, ...clientModules()];
  const files = new Map(all.map(([path, ...file]) => [path, file]));
  let sprites;
  const site = http.createServer((request, response) => {
    const route = routes[`${request.method} ${request.url}`];
    const [type, file] = files.get(request.url) ?? [];
    if (route) return route(request, response);
    if (!file || request.method !== 'GET') return response.writeHead(404).end();
    response.setHeader('Content-Type', `${type}; charset=utf-8`);
    return response.end(readFileSync(file, 'utf8').replace('{port}', sprites.port));
  });
  site.listen(Number(process.argv[2] ?? 8090));
  await once(site, 'listening');
  const here = `http://localhost:${site.address().port}/`;

  // A token that only this program knows: the server reads the file once.
  const folder = mkdtempSync(join(tmpdir(), 'sprites-example-'));
  const publishTokenFile = join(folder, 'token');
  const token = randomUUID();
  writeFileSync(publishTokenFile, token, { mode: 0o600 });
  sprites = await createServer({ port: 0, publishTokenFile, ...options(here) });
  rmSync(folder, { recursive: true });
  console.log(`Open ${here}, in two windows. Its feeds come from ${sprites.addresses[0]}.`);

  return async (key, value) => {
    const answer = await fetch(`http://localhost:${sprites.port}/feed/${key}`, {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(value)
    });
    if (!answer.ok) throw new Error((await answer.json()).detail);
  };
}
