import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';

/**
 * The page's files, read once at the start and served from memory. The requested path is looked up
 * in a map; it never becomes a path of the disk.
 */

/**
 * The folders served, by what their files' paths begin with: beside each other, as on the disk, so that a file's way to
 * another one is the same in both, and under any path that a proxy puts before.
 */
const FOLDERS = new Map([
  ['/page/', new URL('../page/', import.meta.url)],
  ['/client/', new URL('../client/', import.meta.url)]
]);

/** The page itself, of these files. */
const INDEX = '/page/index.html';

/** Modules of others that the page imports, served by the project itself. */
const MODULES = new Map([['/page/qrcode.js', new URL(import.meta.resolve('qrcode-generator'))]]);

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/schema+json'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png']
]);

/** A host and port as a Content-Security-Policy may name them; nothing else gets into a header. */
const HOST = /^([a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * What the page may do: load its own files, talk to its own server (and to the transient port of
 * the same host, where there is one), show pictures it was thrown. Nothing else, and in no frame.
 *
 * @param {string} [host] the request's Host
 * @param {number} [transientPort] 0 for none
 * @param {boolean} [framed] a page may show others of the same server in frames
 * @returns {string} a Content-Security-Policy
 */
export function contentSecurityPolicy(host = '', transientPort = 0, framed = false) {
  const name = HOST.exec(host)?.[1];
  const transient = transientPort && name ? ` http://${name}:${transientPort}` : '';
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${transient}`,
    "base-uri 'none'",
    "form-action 'none'",
    ...(framed ? ["frame-src 'self'", "frame-ancestors 'self'"] : ["frame-ancestors 'none'"])
  ].join('; ');
}

/**
 * A file as it is served.
 *
 * @param {string} name by whose ending its type is known
 * @param {Buffer} body
 * @param {string} [type] where it has another one than its ending says
 * @returns {{type: string, body: Buffer, headers: object}} `headers` are those every answer with it carries
 */
export function fileOf(name, body, type = TYPES.get(extname(name))) {
  const hash = createHash('sha256').update(body).digest('base64url');
  return {
    type,
    body,
    headers: {
      'Content-Type': type,
      'Content-Length': body.length,
      'Cache-Control': 'no-store',
      ETag: `"${hash.slice(0, 22)}"`,
      'X-Content-Type-Options': 'nosniff',
      'Referrer-Policy': 'no-referrer',
      'Cross-Origin-Resource-Policy': 'same-origin'
    }
  };
}

/** The same of a file on the disk, which may be a folder, too: that has no such ending. */
export function fileAt(name, url) {
  return TYPES.has(extname(name)) ? fileOf(name, readFileSync(url)) : undefined;
}

/** Every file of the folders and every module: its path, and where it is. */
function places() {
  const files = [...FOLDERS].flatMap(([prefix, folder]) =>
    readdirSync(folder).map((name) => [`${prefix}${name}`, new URL(name, folder)])
  );
  return [...files, ...MODULES];
}

/**
 * Reads the page.
 *
 * @returns {Map<string, {type: string, body: Buffer, headers: object}>} by path; `/` is the page
 *     itself: see fileOf
 */
export function pageFiles() {
  const files = new Map();
  for (const [path, url] of places()) {
    const file = path.endsWith('/package.json') ? undefined : fileAt(path, url);
    if (file !== undefined) files.set(path === INDEX ? '/' : path, file);
  }
  return files;
}

const files = pageFiles();

/**
 * Whether the answer with a file depends on the request: the page itself says where it may throw, and
 * a transient port is named by the host that was asked for.
 */
function dependsOnHost(path, { transientPort = 0 }) {
  return path === '/' && transientPort > 0;
}

/**
 * Everything that is served as it is.
 *
 * @param {Map<string, ReturnType<typeof fileOf> & {changes?: boolean}>} [more] by path, besides the page; `changes`: it
 *     may be another one later
 * @param {boolean} [framed] whether pages may show others in frames
 * @param {string[]} [without] paths that are not served
 */
export function openPages(more = new Map(), framed = false, without = []) {
  const policy = contentSecurityPolicy('', 0, framed);
  const serve = (others) =>
    new Map([...files, ...others].filter(([path]) => !without.includes(path)));
  let all = serve(more);

  /**
   * Answers what belongs to the page.
   *
   * @param {{method: string, headers: Record<string, string>}} request
   * @param {string} path
   * @param {object} [options]
   * @param {number} [options.transientPort] where the page may throw to besides; 0 for none
   * @returns {{status: number, headers: object, body: Buffer | undefined} | undefined} undefined when the path is none of
   *     the page's or the method is neither GET nor HEAD
   */
  function answer({ method, headers }, path, options = {}) {
    const file = all.get(path);
    if (file === undefined || !['GET', 'HEAD'].includes(method)) return undefined;
    return {
      status: 200,
      headers: {
        ...file.headers,
        'Content-Security-Policy': dependsOnHost(path, options)
          ? contentSecurityPolicy(headers.host, options.transientPort)
          : policy
      },
      body: method === 'HEAD' ? undefined : file.body
    };
  }

  /**
   * The files that are text, and are answered with the same bytes to every client at any time.
   *
   * @param {object} [options] see answer
   * @returns {{path: string, headers: object, body: string}[]}
   */
  function fixed(options = {}) {
    return [...all]
      .filter(
        ([path, { type, changes }]) =>
          type !== 'image/png' && !changes && !dependsOnHost(path, options)
      )
      .map(([path, { headers, body }]) => ({
        path,
        headers: { ...headers, 'Content-Security-Policy': policy },
        body
      }));
  }

  return {
    answer,
    fixed,
    /** Serves others besides the page: of those that `fixed` has given none may be another. */
    replace(others) {
      all = serve(others);
    },
    /** Whether there is something by this path. */
    has: (path) => all.has(path)
  };
}
