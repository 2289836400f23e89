/**
 * Answers what belongs to the page.
 */

const LINE = 'Sprites: a server for desktops that throw things at each other.\n';

export function servePage(request, response, path) {
  if (path !== '/' || !['GET', 'HEAD'].includes(request.method)) return false;
  response.writeHead(200, {
    'Content-Type': 'text/plain; charset=utf-8',
    'Content-Length': Buffer.byteLength(LINE),
    'Cache-Control': 'no-store'
  });
  response.end(LINE);
  return true;
}
