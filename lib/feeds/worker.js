import { parentPort, workerData } from 'node:worker_threads';

import { change, compress } from './change.js';
import { fetchValue } from './fetch-value.js';
import { growPart, readPart, splitLog } from './log-parts.js';
import { digestOf, pack } from './packing.js';

/**
 * A worker thread of the feeds: parses, compares, compresses and fetches, one message a job
 * (lib/feeds/threads.js sends them). It keeps nothing from one job to the next.
 */

const underWay = new Int32Array(workerData);

/** Does the part of a job that keeps the thread from all else: the main thread sees which job it is. */
function during(id, part) {
  Atomics.store(underWay, 0, id);
  try {
    return part();
  } finally {
    Atomics.store(underWay, 0, 0);
  }
}

const tasks = {
  change: (job, id) => during(id, () => change(job)),
  compress: ({ key, cursor, value }, id) =>
    during(id, () => ({ gzip: compress(key, cursor, value) })),
  pack: ({ value }, id) => during(id, () => ({ ...pack(value), digest: digestOf(value) })),
  growPart: (job, id) => during(id, () => growPart(job)),
  readPart: (job, id) => during(id, () => readPart(job)),
  splitLog: (job, id) => during(id, () => splitLog(job)),
  fetch: (job, id) => fetchValue(job, (fetched) => during(id, () => change(fetched)))
};

/** The memory of an outcome goes to the main thread; a part of a larger one is copied. */
function owned(bytes) {
  return bytes.byteLength === bytes.buffer.byteLength ? bytes : Uint8Array.from(bytes);
}

parentPort.on('message', async ({ id, task, job }) => {
  try {
    const outcome = await tasks[task](job, id);
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
