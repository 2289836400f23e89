import { parentPort, workerData } from 'node:worker_threads';

import { change, compress } from './change.js';
import { fetchValue } from './fetch-value.js';
import { digestOf, growPart, pack, readPart, splitLog } from './packing.js';

/**
 * A worker thread of the feeds: parses, compares, compresses and fetches, one message a job
 * (lib/feeds/threads.js sends them). A thread keeps nothing from one job to the next.
 */

const underWay = new Int32Array(workerData);

/** The synchronous tasks. */
const tasks = {
  change,
  compress: ({ key, cursor, value }) => ({ gzip: compress(key, cursor, value) }),
  pack: ({ value }) => ({ ...pack(value), digest: digestOf(value) }),
  growPart,
  readPart,
  splitLog
};

/** Runs a synchronous task. The main thread can see which job that is. */
function run(id, task, job) {
  Atomics.store(underWay, 0, id);
  try {
    return tasks[task](job);
  } finally {
    Atomics.store(underWay, 0, 0);
  }
}

/** Returns bytes whose memory can be transferred to the main thread: a view of a larger buffer is copied. */
function ownBytes(bytes) {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

parentPort.on('message', async ({ id, task, job }) => {
  try {
    const outcome = await (task === 'fetch'
      ? fetchValue(job, (fetched) => run(id, 'change', fetched))
      : run(id, task, job));
    const transfer = [];
    for (const [name, value] of Object.entries(outcome)) {
      if (!(value instanceof Uint8Array)) continue;
      outcome[name] = ownBytes(value);
      transfer.push(outcome[name].buffer);
    }
    // An empty buffer may occur more than once, and need not be transferred.
    parentPort.postMessage(
      { id, outcome },
      transfer.filter((buffer) => buffer.byteLength > 0)
    );
  } catch (error) {
    parentPort.postMessage({ id, error });
  }
});
