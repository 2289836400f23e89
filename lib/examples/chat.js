import { text } from 'node:stream/consumers';

import { openSite } from './site.js';

/**
 * A chat: a page sends its message to this program, which checks it and publishes the last fifty messages as one feed.
 *
 *     node lib/examples/chat.js
 */

const MOST = 50;
const BYTES = 2000; // of a message with its name

let messages = [];

/** A message, or null where the body is none. */
function read(body) {
  try {
    const { name, text } = JSON.parse(body);
    const isText = (value, most) =>
      typeof value === 'string' && value !== '' && value.length <= most;
    return isText(name, 40) && isText(text, 500) ? { name, text, at: Date.now() } : null;
  } catch {
    return null;
  }
}

async function say(request, response) {
  const size = Number(request.headers['content-length'] ?? Infinity);
  const message = size <= BYTES ? read(await text(request)) : null;
  if (message === null) {
    response.writeHead(400, { Connection: 'close' });
    return response.end('A message is {"name","text"}: at most 40 and 500 characters.');
  }
  messages = [...messages, message].slice(-MOST);
  await publish('chat', messages);
  return response.writeHead(204).end();
}

const page = new URL('chat.html', import.meta.url);
const publish = await openSite(page, { routes: { 'POST /say': say } });
await publish('chat', messages);
