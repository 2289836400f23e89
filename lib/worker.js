import process from 'node:process';

import { createFront } from './front.js';
import { createLog } from './log.js';
import { createNodeServer } from './node-server.js';
import { RemotePool } from './remote-pool.js';
import { createRoutes } from './routes.js';
import { Sources } from './sources.js';
import { Tally } from './tally.js';

/**
 * A worker: the front door of the transient port, for joins, throws and leaves. It holds no state
 * but its connections and the requests under way; the pool is in the main process, behind a pipe.
 */

/** The relay to the main process: what lib/workers.js put into the worker's stdio. */
const RELAY = 4;

/** What there is on the transient port. */
const HERE = ['join', 'throw', 'leave'];

/** How often a stopping worker looks whether its requests are settled, in milliseconds. */
const LOOK = 20;

/** How long a stopping worker waits for requests that are still arriving, in milliseconds. */
const GRACE = 1000;

const options = JSON.parse(process.env.SPRITES_WORKER);
const pool = new RemotePool(options);
const sources = new Sources(options);
const log = createLog(options.logLevel);
const routes = createRoutes({ pool, sources, options, log, here: HERE });
const tally = new Tally(options);
const server = createNodeServer({ routes, sources, options, tally });
const front = createFront({ pool, sources, options, routes, server, tally, relayFd: RELAY });
pool.flushBy(front.flush);

// Without a main process there is nothing to serve, and nothing to save.
process.on('disconnect', () => process.exit());

// A terminal's Ctrl-C and a service manager's SIGTERM reach every process of the group; it is the
// main process that decides when its workers end.
process.on('SIGINT', () => {});
process.on('SIGTERM', () => {});
// Nor must a reload end them that reaches the whole group.
process.on('SIGUSR2', () => {});
process.on('message', ({ stop }) => {
  if (!stop) return;
  front.stopListening();
  const end = performance.now() + GRACE;
  setInterval(() => {
    const left = front.closeIdle() + pool.open;
    server.closeIdleConnections();
    if (left === 0 || performance.now() > end) process.exit();
  }, LOOK);
});

await front.listen(options.host, options.transientPort, { shared: true });
process.send({ ready: true });
