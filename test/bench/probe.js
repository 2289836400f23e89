/**
 * Preloaded into a Node server under measurement (`LD_PRELOAD=turns.so node --expose-gc --import
 * probe.js …`, with an IPC channel): answers its parent's questions about the inside of the process,
 * so that no server needs a route for it and all are asked the same way. turns.c says what it costs.
 *
 * Asked {collect}, it collects garbage first where that is true, and answers
 * {heapUsed, longestStall, longestWork}: bytes of V8 heap in use, and milliseconds of the event
 * loop's longest turn since it was last asked, by the wall's clock and by its thread's own CPU clock.
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
      // The collection has made this turn long: it is not counted.
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
