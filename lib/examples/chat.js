import { openSite } from './site.js';

/**
 * A chat: a page sends its message to this program, which checks it and publishes the last fifty messages as one feed.
 *
 *     node lib/examples/chat.js
 */

const MOST = 50;
const LENGTH = 2000; // of a message with its name

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

async function say(request) {
  const body = await request.text();
  const message = body.length <= LENGTH ? read(body) : null;
  if (message === null) {
    const status = 400;
    return new Response('A message is {"name","text"}: at most 40 and 500 characters.', { status });
  }
  messages = [...messages, message].slice(-MOST);
  await sprites.publish('chat', messages);
  return new Response(null, { status: 204 });
}

const page = new URL('chat.html', import.meta.url);
const sprites = await openSite(page, { routes: { 'POST /say': say } });
await sprites.publish('chat', messages);
