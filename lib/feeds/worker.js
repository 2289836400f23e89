import { parentPort, workerData } from 'node:worker_threads';

import { change, compress } from './change.js';
import { fetchValue } from './fetch-value.js';
import { growPart, readPart, splitLog } from './log-parts.js';
import { digestOf, pack } from './packing.js';

/**
 * A worker thread of the feeds: parses, compares, compresses and fetches, one message a job
 * (lib/feeds/threads.js sends them). A thread keeps nothing from one job to the next.
 */

const underWay = new Int32Array(workerData);

/** Runs the synchronous part of a job. The main thread can see which job that is. */
function runAsCurrent(id, part) {
  Atomics.store(underWay, 0, id);
  try {
    return part();
  } finally {
    Atomics.store(underWay, 0, 0);
  }
}

const tasks = {
  change: (job, id) => runAsCurrent(id, () => change(job)),
  compress: ({ key, cursor, value }, id) =>
    runAsCurrent(id, () => ({ gzip: compress(key, cursor, value) })),
  pack: ({ value }, id) => runAsCurrent(id, () => ({ ...pack(value), digest: digestOf(value) })),
  growPart: (job, id) => runAsCurrent(id, () => growPart(job)),
  readPart: (job, id) => runAsCurrent(id, () => readPart(job)),
  splitLog: (job, id) => runAsCurrent(id, () => splitLog(job)),
  fetch: (job, id) => fetchValue(job, (fetched) => runAsCurrent(id, () => change(fetched)))
};

/** Returns bytes whose memory can be transferred to the main thread: a view of a larger buffer is copied. */
function ownBytes(bytes) {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

parentPort.on('message', async ({ id, task, job }) => {
  try {
    const outcome = await tasks[task](job, id);
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
