#!/usr/bin/env node
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync, readdirSync } from 'node:fs';
import http from 'node:http';
import { extname } from 'node:path';
import { setInterval as every } from 'node:timers';
import { fileURLToPath } from 'node:url';

import { readArguments } from '../server/arguments.js';
import { text, whole } from '../server/options.js';
import { explained } from '../server/port-errors.js';
import { Match } from './match.js';

/**
 * A provider of football: an API as a publisher has one, with a match that plays itself, and the page
 * that shows it. It knows nothing of Sprites but the address the page is to ask: Sprites fetches the
 * match from here once a second, for however many watch.
 *
 *     node lib/football/provider.js
 *     bin/sprites --upstream 'http://localhost:8090/{key}' --upstream-every 1
 */

/** The feed's key, and the path of the API. */
export const KEY = 'matchesfeed/8/matchcentre';

const REST = 20; // steps between two matches

const TYPES = { '.html': 'text/html', '.css': 'text/css', '.js': 'text/javascript' };

/** What the page is made of, by path: its own files, and the client of feeds. */
function pageFiles() {
  const files = new Map();
  const add = (prefix, folder, names) => {
    for (const name of names) {
      const type = `${TYPES[extname(name)]}; charset=utf-8`;
      files.set(prefix + name, { type, body: readFileSync(new URL(name, folder), 'utf8') });
    }
  };
  add('/', new URL('page/', import.meta.url), [
    'index.html',
    'page.js',
    'style.css',
    'screens.css'
  ]);
  const client = new URL('../client/', import.meta.url);
  const modules = readdirSync(client).filter((name) => name.endsWith('.js'));
  add('/client/', client, modules);
  files.set('/', files.get('/index.html'));
  return files;
}

/** The headers of everything: the page asks its own server and Sprites, and nobody else. */
const headersFor = (sprites) => ({
  'Cache-Control': 'no-cache',
  'X-Content-Type-Options': 'nosniff',
  'Content-Security-Policy': [
    "default-src 'self'",
    "img-src 'self' data:",
    `connect-src 'self' ${sprites}`,
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'"
  ].join('; ')
});

/**
 * Starts the provider.
 *
 * @param {object} [options]
 * @param {number} [options.port] 0 takes a free one
 * @param {string} [options.host]
 * @param {() => string} [options.sprites] the address at which a browser reaches Sprites
 * @param {number} [options.pace] milliseconds of a step, which is 18 s of play; 0: by `step` alone
 * @param {number} [options.seed] of the first match
 * @returns {Promise<{port: number, step: () => object, close: () => void}>} `step` plays on, and
 *     returns the match's value
 */
export async function startProvider({
  port = 0,
  host = '127.0.0.1',
  sprites = () => 'http://localhost:8080',
  pace = 1000,
  seed = 1
} = {}) {
  const files = pageFiles();
  let match = new Match(seed);
  let rest = REST;
  let body;
  let etag;
  const publish = () => {
    body = JSON.stringify(match.value);
    etag = `"${createHash('sha256').update(body).digest('base64url').slice(0, 22)}"`;
    return match.value;
  };
  const step = () => {
    if (!match.isOver) {
      match.step();
    } else if (--rest === 0) {
      match = new Match((seed += 1));
      rest = REST;
    }
    return publish();
  };
  publish();

  const server = http.createServer((request, response) => {
    const [pathname] = request.url.split('?');
    const { origin } = new URL(sprites());
    const headers = headersFor(origin);
    if (!['GET', 'HEAD'].includes(request.method)) {
      response.writeHead(405, { ...headers, Allow: 'GET, HEAD' }).end();
    } else if (pathname === `/${KEY}`) {
      const isKnown = request.headers['if-none-match'] === etag;
      const type = { 'Content-Type': 'application/json', ETag: etag };
      response.writeHead(isKnown ? 304 : 200, { ...headers, ...type });
      response.end(isKnown || request.method === 'HEAD' ? undefined : body);
    } else {
      const file = files.get(pathname);
      const found = file ?? { type: 'text/plain; charset=utf-8', body: 'There is nothing here.\n' };
      response.writeHead(file ? 200 : 404, { ...headers, 'Content-Type': found.type });
      const text = found.body.replace('{sprites}', origin).replace('{key}', KEY);
      response.end(request.method === 'HEAD' ? undefined : text);
    }
  });
  server.listen(port, host);
  await explained({ host: 'host', port: 'port' }, { host, port }, once(server, 'listening'));
  const timer = pace > 0 ? every(step, pace) : undefined;
  return {
    port: server.address().port,
    step,
    close() {
      clearInterval(timer);
      server.close();
      server.closeAllConnections();
    }
  };
}

/** A server's address. */
const origin = {
  read(value) {
    const isOrigin = /^https?:\/\/[^\s/?#@]+\/?$/.test(value) && URL.canParse(value);
    return isOrigin ? new URL(value).origin : undefined;
  },
  expects: 'the address of a server, such as http://192.168.1.20:8080'
};

/** The options: see README.md. */
const OPTIONS = [
  { name: 'port', default: '8090', type: whole(0, 65535) },
  { name: 'host', default: '0.0.0.0', type: text('address', /^\S+$/, 'an address or a host name') },
  { name: 'sprites', default: 'http://localhost:8080', type: origin },
  { name: 'pace', default: '1000', type: whole(0, 86_400_000) },
  { name: 'seed', default: '1', type: whole(0, 2 ** 32 - 1) }
];

/**
 * @param {string[]} args
 * @returns {object} the options by their names; `help` alone when that is asked for
 * @throws {Error} in one line
 */
export function readOptions(args) {
  const { values } = readArguments(args, { options: OPTIONS, switches: ['help'] });
  if (values.help) return { help: true };
  const read = OPTIONS.map(({ name, default: usual, type }) => {
    const value = type.read(values[name] ?? usual);
    if (value !== undefined) return [name, value];
    throw new TypeError(`--${name} takes ${type.expects}, not "${values[name]}"`);
  });
  return Object.fromEntries(read);
}

async function main() {
  const { help, sprites, ...options } = readOptions(process.argv.slice(2));
  if (help) {
    for (const { name, type, default: usual } of OPTIONS) {
      console.log(`--${name}  ${type.expects} (default ${usual})`);
    }
    return;
  }
  const provider = await startProvider({ ...options, sprites: () => sprites });
  const here = `http://localhost:${provider.port}`;
  console.log(
    `The match is on ${here}/ and its data on ${here}/${KEY}. Sprites brings it to all who watch:`
  );
  console.log(`npm start -- --upstream '${here}/{key}' --upstream-every 1`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  main().catch((error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
