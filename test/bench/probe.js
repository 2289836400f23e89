/**
 * Preloaded into a Node server under measurement (`node --expose-gc --import probe.js …`, with an
 * IPC channel): answers its parent's questions about the inside of the process, so that no server
 * needs a route for it and all are asked the same way. It costs one native timer every 10 ms.
 *
 * Asked {collect}, it collects garbage first where that is true, and answers
 * {heapUsed, longestStall}: bytes of V8 heap in use, and milliseconds of the event loop's longest
 * turn since it was last asked.
 */
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { isMainThread } from 'node:worker_threads';

/** Milliseconds; a stall shorter than this goes unseen. */
const RESOLUTION = 10;

if (isMainThread && process.channel) {
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION });
  delay.enable();
  process.on('message', ({ collect }) => {
    const longestStall = Math.max(0, delay.max / 1e6 - RESOLUTION);
    if (collect) {
      globalThis.gc();
      globalThis.gc();
    }
    delay.reset();
    process.send({ heapUsed: process.memoryUsage().heapUsed, longestStall });
  });
  process.channel.unref();
}
