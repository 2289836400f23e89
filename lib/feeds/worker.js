import { parentPort } from 'node:worker_threads';

import { change, compress } from './change.js';
import { fetchValue } from './fetch-value.js';

/**
 * A worker thread of the feeds: parses, compares, compresses and fetches, one message a job
 * (lib/feeds/threads.js sends them). It keeps nothing from one job to the next.
 */

const tasks = {
  nothing: () => ({}),
  change,
  compress: ({ key, cursor, value }) => ({ gzip: compress(key, cursor, value) }),
  fetch: fetchValue
};

/** The memory of an outcome goes to the main thread; a part of a larger one is copied. */
function owned(bytes) {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

parentPort.on('message', async ({ id, task, job }) => {
  try {
    const outcome = await tasks[task](job);
    const transfer = [];
    for (const [name, value] of Object.entries(outcome)) {
      if (!(value instanceof Uint8Array)) continue;
      outcome[name] = owned(value);
      transfer.push(outcome[name].buffer);
    }
    // An empty buffer may be there more than once, and need not be given away.
    parentPort.postMessage(
      { id, outcome },
      transfer.filter((buffer) => buffer.byteLength > 0)
    );
  } catch (error) {
    parentPort.postMessage({ id, error });
  }
});
