import t from 'tap';
import { arenaFiles } from '../../lib/arena/files.js';
import { findGames } from '../../lib/arena/games.js';
import { contentSecurityPolicy, pageFiles } from '../../lib/base/page-files.js';

/**
 * Returns the path to which a name in a page's file leads, where a proxy serves the pages under a path of its own. No
 * name leads out of that path.
 */
function under(path, name) {
  const [, found] = new URL(name, `http://page/a/path${path}`).pathname.split('/a/path');
  return found;
}

t.test('the pages and everything they import is there, with its type', async (t) => {
  const arena = ['hall'];
  const files = new Map([
    ...pageFiles(),
    ...arenaFiles({ arena }, findGames({ arena, games: 'none' }))
  ]);
  t.notOk(files.has('/try/hall') || files.has('/arena-pages/try.html'), 'of a trial alone');
  t.match(files.get('/').type, 'text/html');
  t.equal(files.get('/page/style.css').type, 'text/css; charset=utf-8');
  t.equal(files.get('/client/sprite.schema.json').type, 'application/schema+json');
  for (const [path, { type, body, headers }] of files) {
    t.equal(headers['Content-Length'], body.length);
    t.equal(headers['Cache-Control'], 'no-store');
    t.equal(headers['X-Content-Type-Options'], 'nosniff');
    t.match(headers.ETag, /^"[\w-]{22}"$/);
    if (type.startsWith('text/javascript')) {
      const code = body.toString().replace(/\/\*[^]*?\*\//g, ''); // Comments import types, without requests.
      for (const [, name] of code.matchAll(/(?:from |import\()'(\.[^']+)'/g)) {
        t.ok(files.has(under(path, name)), `${path} imports ${name}`);
      }
    }
  }
  for (const page of ['/', '/play/hall', '/field/hall', '/control/hall']) {
    const html = files.get(page).body.toString();
    for (const [, path] of html.matchAll(/(?:src|href)="([^":]+)"/g)) {
      t.ok(files.has(under(page, path)), `${page} names ${path}`);
    }
    t.notMatch(html, /<script(?![^>]* src=)|<style| style=| on\w+=/, 'nothing inline');
  }
});

t.test('the policy lets in nothing but the server itself', async (t) => {
  const policy = contentSecurityPolicy('torus.example:8080');
  t.match(policy, "default-src 'none'; script-src 'self'; style-src 'self'");
  t.match(policy, "connect-src 'self';");
  t.match(policy, "frame-ancestors 'none'");
  t.notMatch(policy, /unsafe|\*|http/);
  t.match(
    contentSecurityPolicy('', 0, true),
    "frame-src 'self'; frame-ancestors 'self'",
    'where a game is tried'
  );
  t.match(
    contentSecurityPolicy('torus.example:8080', 9090),
    "connect-src 'self' http://torus.example:9090;"
  );
  t.match(contentSecurityPolicy('[::1]:8080', 9090), "connect-src 'self' http://[::1]:9090;");
});

t.test('a Host that is none does not get into the policy', async (t) => {
  for (const host of [
    ...['', 'a; script-src *', 'a b', '*', 'evil.example/', 'a\r\nX: y', '*.example', 'a:b'],
    ...["'unsafe-inline'", 'x'.repeat(300)]
  ]) {
    t.match(contentSecurityPolicy(host, 9090), "connect-src 'self';");
  }
});
