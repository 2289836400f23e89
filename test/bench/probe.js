/**
 * Preloaded into a measured Node server (`LD_PRELOAD=turns.so node --expose-gc --import probe.js …`, with an IPC
 * channel). It answers the parent's questions about the process, so that no server needs a route for them. turns.c has
 * its costs.
 *
 * A question is {collect}; if true, the probe first collects garbage. The answer is
 * {heapUsed, longestStall, longestWork}: bytes of V8 heap in use, and the longest turn of the event loop since the
 * last question, in milliseconds of the wall clock and of the thread's CPU clock.
 */
import { isMainThread } from 'node:worker_threads';

import { loadTestAddon } from '../support/addon.js';

if (isMainThread && process.channel) {
  const { takeTurns } = loadTestAddon();
  process.on('message', ({ collect }) => {
    const { wall, cpu } = takeTurns();
    if (collect) {
      globalThis.gc();
      globalThis.gc();
      // Discards this turn, which the collection has made long.
      setImmediate(takeTurns);
    }
    process.send({
      heapUsed: process.memoryUsage().heapUsed,
      longestStall: wall,
      longestWork: cpu
    });
  });
  process.channel.unref();
}
