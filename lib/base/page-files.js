import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import { extname } from 'node:path';

/**
 * The files of the page. They are read once at the start and served from memory. A requested path is looked up in a map;
 * it never becomes a path on the disk.
 */

/**
 * The served folders, by the prefix of their files' paths. They are side by side, as on the disk, so that relative paths
 * between files work in both places, and behind a proxy with any path.
 */
const FOLDERS = new Map([
  ['/page/', new URL('../page/', import.meta.url)],
  ['/client/', new URL('../client/', import.meta.url)]
]);

/** The page itself, among these files. */
const INDEX = '/page/index.html';

/** Third-party modules that the page imports. The server serves them itself. */
const MODULES = new Map([['/page/qrcode.js', new URL(import.meta.resolve('qrcode-generator'))]]);

const TYPES = new Map([
  ['.html', 'text/html; charset=utf-8'],
  ['.js', 'text/javascript; charset=utf-8'],
  ['.css', 'text/css; charset=utf-8'],
  ['.json', 'application/schema+json'],
  ['.svg', 'image/svg+xml'],
  ['.png', 'image/png']
]);

/** A host and port for a Content-Security-Policy. Nothing else gets into the header. */
const HOST_AND_PORT = /^([a-z0-9.-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?$/i;

/**
 * Returns the rules for the page. It may load its own files, talk to its own server (and to the transient port of the
 * same host, if there is one) and show pictures that were thrown to it. It may do nothing else, and may not be framed.
 *
 * @param {string} [host] the request's Host
 * @param {number} [transientPort] 0 for none
 * @param {boolean} [isFramed] whether a page may show other pages of the server in frames
 * @returns {string} a Content-Security-Policy
 */
export function contentSecurityPolicy(host = '', transientPort = 0, isFramed = false) {
  const name = HOST_AND_PORT.exec(host)?.[1];
  const transient = transientPort && name ? ` http://${name}:${transientPort}` : '';
  return [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data: blob:",
    `connect-src 'self'${transient}`,
    "base-uri 'none'",
    "form-action 'none'",
    ...(isFramed ? ["frame-src 'self'", "frame-ancestors 'self'"] : ["frame-ancestors 'none'"])
  ].join('; ');
}

/**
 * Prepares a file for serving.
 *
 * @param {string} name its ending says the type
 * @param {Buffer} body
 * @param {string} [type] the type, where the ending says another one
 * @returns {{type: string, body: Buffer, headers: object}} `headers` are those of every answer with the file
 */
export function servedFile(name, body, type = TYPES.get(extname(name))) {
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

/** Prepares a file of the disk. A folder has no known ending, and is left out. */
export function readServedFile(name, url) {
  return TYPES.has(extname(name)) ? servedFile(name, readFileSync(url)) : undefined;
}

/** Returns every file of the folders and every module: its path, and its place on the disk. */
function fileLocations() {
  const files = [...FOLDERS].flatMap(([prefix, folder]) =>
    readdirSync(folder).map((name) => [`${prefix}${name}`, new URL(name, folder)])
  );
  return [...files, ...MODULES];
}

/**
 * Reads the page.
 *
 * @returns {Map<string, {type: string, body: Buffer, headers: object}>} by path; `/` is the page
 *     itself: see servedFile
 */
export function pageFiles() {
  const files = new Map();
  for (const [path, url] of fileLocations()) {
    const file = path.endsWith('/package.json') ? undefined : readServedFile(path, url);
    if (file !== undefined) files.set(path === INDEX ? '/' : path, file);
  }
  return files;
}

const clientPageFiles = pageFiles();

/**
 * Returns whether the answer with a file depends on the request: the header of the page itself names the transient port,
 * with the host of the request.
 */
function dependsOnHost(path, { transientPort = 0 }) {
  return path === '/' && transientPort > 0;
}

/**
 * Opens the files that are served unchanged.
 *
 * @param {Map<string, ReturnType<typeof servedFile> & {changes?: boolean}>} [extraFiles] further files, by path; `changes`: the
 *     file may change later
 * @param {boolean} [isFramed] whether pages may show other pages in frames
 * @param {string[]} [omittedPaths] paths that are not served
 */
export function openPages(extraFiles = new Map(), isFramed = false, omittedPaths = []) {
  const policy = contentSecurityPolicy('', 0, isFramed);
  const withExtraFiles = (extras) =>
    new Map([...clientPageFiles, ...extras].filter(([path]) => !omittedPaths.includes(path)));
  let servedFiles = withExtraFiles(extraFiles);

  /**
   * Answers a request for a file.
   *
   * @param {{method: string, headers: Record<string, string>}} request
   * @param {string} path
   * @param {object} [options]
   * @param {number} [options.transientPort] an additional port to which the page may throw; 0 for none
   * @returns {{status: number, headers: object, body: Buffer | undefined} | undefined} undefined for another path, and
   *     for a method other than GET and HEAD
   */
  function answer({ method, headers }, path, options = {}) {
    const file = servedFiles.get(path);
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
   * Returns the text files whose answer is always the same for every client.
   *
   * @param {object} [options] see answer
   * @returns {{path: string, headers: object, body: string}[]}
   */
  function fixedFiles(options = {}) {
    return [...servedFiles]
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
    fixedFiles,
    /** Replaces the further files. A file that `fixedFiles` has returned must not change. */
    replace(extraFiles) {
      servedFiles = withExtraFiles(extraFiles);
    },
    /** Whether there is a file with this path. */
    has: (path) => servedFiles.has(path)
  };
}
