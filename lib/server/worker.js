import process from 'node:process';

import { createDoor } from './door.js';
import { createLog } from './log.js';
import { createNodeServer } from './node-server.js';
import { RemotePool } from './remote-pool.js';
import { createRoutes } from './routes.js';
import { AddressLimits } from './address-limits.js';
import { ConnectionBudget } from './connection-budget.js';

/**
 * A worker: the front door of the transient port, for joins, throws and leaves. It holds no state
 * but its connections and the requests under way; the pool is in the main process, behind a pipe.
 */

/** The relay to the main process: what lib/server/workers.js put into the worker's stdio. */
const RELAY = 4;

/** What there is on the transient port. */
const HERE = ['join', 'throw', 'leave'];

/** How often a stopping worker looks whether its requests are settled, in milliseconds. */
const LOOK = 20;

/** How long a stopping worker waits for requests that are still arriving, in milliseconds. */
const GRACE = 1000;

/** How often the main process is told what is counted here, in milliseconds. */
const REPORT = 1000;

const options = JSON.parse(process.env.SPRITES_WORKER);
const pool = new RemotePool(options);
const limits = new AddressLimits(options);
const log = createLog(options.logLevel);
const routes = createRoutes({ pool, limits, options, log, here: HERE });
const budget = new ConnectionBudget(options);
const server = createNodeServer({ routes, limits, options, budget });
const door = createDoor({ pool, limits, options, routes, server, budget, relayFd: RELAY });
pool.flushBy(door.flush);

/** What the main process knows of this worker's counts. */
let told = '';

/** Tells it, if there is anything new. */
function report(done = () => {}) {
  const { connections, connectionsRefused, ...rest } = door.status();
  const counts = {
    ...rest,
    connections: connections + budget.held,
    connectionsRefused: connectionsRefused + budget.refused,
    refused: pool.refused
  };
  const news = JSON.stringify(counts);
  if (news === told) return done();
  told = news;
  // Without a channel there is nobody to tell, and the end is near.
  return process.send({ counts }, () => done());
}

// Without a main process there is nothing to serve, and nothing to save.
process.on('disconnect', () => process.exit());

// A terminal's Ctrl-C, its end, and a service manager's SIGTERM reach every process of the group; it
// is the main process that decides when its workers end. Nor must a reload end them.
for (const name of ['SIGINT', 'SIGHUP', 'SIGTERM', 'SIGUSR2']) process.on(name, () => {});
process.on('message', ({ stop }) => {
  if (!stop) return;
  door.stopListening();
  const end = performance.now() + GRACE;
  setInterval(() => {
    const left = door.closeIdle() + pool.open;
    server.closeIdleConnections();
    if (left === 0 || performance.now() > end) report(() => process.exit());
  }, LOOK);
});

const { host, transientPort: port } = options;
await door.listen(host, port, { shared: true, option: 'transient-port' });
process.send({ ready: true });
setInterval(report, REPORT).unref();
