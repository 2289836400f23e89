import process from 'node:process';

import './no-inspector.js';
import { createDoor } from './door.js';
import { createLog, tellOfNoInspector } from './log.js';
import { createNodeServer } from './node-server.js';
import { RemotePool } from './remote-pool.js';
import { createRefusals } from './refusals.js';
import { createRoutes } from './routes.js';
import { AddressLimits } from './address-limits.js';
import { ConnectionBudget } from './connection-budget.js';

/**
 * A worker: a process that serves joins, throws and leaves on the transient port. It holds only its
 * connections and their open requests. The pool is in the main process, behind a socket pair.
 */

/** The descriptor of the relay to the main process; lib/server/workers.js puts it into stdio. */
const RELAY = 4;

/** The routes of the transient port. */
const HERE = ['join', 'throw', 'leave'];

/** How often a stopping worker looks whether its requests are answered, in milliseconds. */
const LOOK = 20;

/** How long a stopping worker waits for requests that are still arriving, in milliseconds. */
const GRACE = 1000;

/** How often a worker reports its counts to the main process, in milliseconds. */
const REPORT = 1000;

const options = JSON.parse(process.env.SPRITES_WORKER);
const pool = new RemotePool(options);
const limits = new AddressLimits(options);
const log = createLog(options.logLevel);
tellOfNoInspector(log);
const refusals = createRefusals(log);
const routes = createRoutes({ pool, limits, options, log, refusals, here: HERE });
const budget = new ConnectionBudget(options);
const server = createNodeServer({ routes, limits, options, budget, refusals });
const door = createDoor({
  pool,
  limits,
  options,
  routes,
  server,
  budget,
  refusals,
  relayFd: RELAY
});
pool.flushBy(door.flush);

/** The last report, as JSON. */
let told = '';

/** Reports to the main process that this worker answers, and its counts if they have changed. */
function report(done = () => {}) {
  const { connections, connectionsRefused, ...rest } = door.status();
  const counts = {
    ...rest,
    connections: connections + budget.held,
    connectionsRefused: connectionsRefused + budget.refused,
    refused: pool.refused
  };
  const news = JSON.stringify(counts);
  const message = news === told ? {} : { counts };
  told = news;
  // It fails where the main process is gone: this worker is about to end.
  process.send(message, () => done());
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
