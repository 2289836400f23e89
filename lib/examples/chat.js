import { openSite } from './site.js';

/**
 * A chat: a page sends its message to this program, which checks it and appends it to a log that keeps the last fifty.
 *
 *     node lib/examples/chat.js
 */

const LENGTH = 2000; // longest message with its name

/** Returns the message in a body, or null for an invalid body. */
function readMessage(body) {
  try {
    const { name, text } = JSON.parse(body);
    const isText = (value, most) =>
      typeof value === 'string' && value !== '' && value.length <= most;
    return isText(name, 40) && isText(text, 500) ? { name, text, at: Date.now() } : null;
  } catch {
    return null;
  }
}

async function addMessage(request) {
  const body = await request.text();
  const message = body.length <= LENGTH ? readMessage(body) : null;
  if (message === null) {
    const status = 400;
    return new Response('A message is {"name","text"}: at most 40 and 500 characters.', { status });
  }
  await sprites.append('chat', message);
  return new Response(null, { status: 204 });
}

const page = new URL('chat.html', import.meta.url);
const sprites = await openSite(page, {
  routes: { 'POST /say': addMessage },
  options: { logItems: 50 }
});
