/** A fetch that answers from a script: a test decides when each network failure happens. */

/** Outcomes of a fetch other than an answer. */
export const RESET = Symbol('connection reset');
export const HANG = Symbol('no answer, ever');

/**
 * @param {number} status
 * @param {unknown} body text; anything else is sent as JSON
 * @param {object} [headers]
 * @returns {object} an answer for the script
 */
export function answer(status, body, headers = {}) {
  return { status, body: typeof body === 'string' ? body : JSON.stringify(body), headers };
}

/**
 * @param {number} status
 * @param {string} name
 * @param {object} [headers]
 * @returns {object} a problem document for the script
 */
export function problem(status, name, headers = {}) {
  return answer(status, { type: `urn:sprites:${name}`, title: name, status, detail: '-' }, headers);
}

/** Returns the answer to a join, with `more` members. */
export function joined(id, more = {}) {
  return answer(201, { id, hold: 120, lease: 30, maxSprite: 16_384, ...more });
}

/** Returns the answer to a poll, with sprites of these sequence numbers. */
export function sprites(...seqs) {
  return answer(200, {
    seq: seqs.at(-1) ?? 0,
    sprites: seqs.map((seq) => ({ seq, from: 'right', sprite: { id: `s${seq}` } }))
  });
}

/**
 * A fetch that answers from a script: `script[METHOD PATH]`, where the path is that before the id
 * (`join`, `poll`, `throw`, `leave`, `place`, `status`), is a list of answers taken one by one.
 * The last one stays. A function among them is called with the request and returns the answer, or a promise of it. Of one
 * that is `half` what comes breaks off.
 *
 * @param {Record<string, Array>} script
 * @param {import('./virtual-time.js').VirtualTime} [clock]
 * @returns {Function & {calls: object[]}} `calls`: {what, url, method, body, headers, at} of each request so far
 */
export function scripted(script, clock) {
  const calls = [];
  const parked = new Map();
  // Like the server: a second poll by the same id answers the first.
  const supersede = (pathname) => {
    const body = { seq: 0, sprites: [], superseded: true };
    parked.get(pathname)?.(new Response(JSON.stringify(body)));
    parked.delete(pathname);
  };
  const fetch = async (href, { method, body, headers, signal }) => {
    signal.throwIfAborted();
    const url = new URL(href);
    const what = url.pathname.split('/')[1];
    const call = { what, url, method, body, headers, at: clock?.now() };
    calls.push(call);
    const list = script[what];
    if (!list) throw new Error(`nothing is scripted for ${what}`);
    let entry = list.length > 1 ? list.shift() : list[0];
    if (typeof entry === 'function') {
      entry = await entry(call);
      signal.throwIfAborted();
    }
    call.entry = entry;
    if (entry === RESET) throw new TypeError('fetch failed');
    if (what === 'poll') supersede(url.pathname);
    if (entry === HANG) {
      return new Promise((resolve, reject) => {
        if (signal.aborted) reject(signal.reason);
        signal.addEventListener('abort', () => reject(signal.reason));
        if (what === 'poll') parked.set(url.pathname, resolve);
      });
    }
    if (entry.half) {
      const half = new ReadableStream({
        start: (body) => body.enqueue(new TextEncoder().encode(entry.body)),
        pull: (body) => body.error(new TypeError('terminated'))
      });
      return new Response(half, entry);
    }
    return new Response(entry.status === 204 ? null : entry.body, entry);
  };
  fetch.calls = calls;
  fetch.of = (what) => calls.filter((call) => call.what === what);
  return fetch;
}

/** Collects the errors that callbacks of queueMicrotask throw from now on. @returns {string[]} */
export function uncaught(t) {
  const caught = [];
  t.intercept(globalThis, 'queueMicrotask', {
    value: (callback) => {
      try {
        callback();
      } catch (error) {
        caught.push(error.message);
      }
    }
  });
  return caught;
}
