import { setTimeout as pause } from 'node:timers/promises';

import { Arena } from './lib/arena/arena.js';
import { arenaFiles } from './lib/arena/files.js';
import { findGames, watchGames } from './lib/arena/games.js';
import { openFeeds } from './lib/feeds/open.js';
import { createClientRoutes } from './lib/server/admin-clients.js';
import { openBans } from './lib/server/bans.js';
import { openAdmin } from './lib/server/admin.js';
import { createDoor } from './lib/server/door.js';
import { urlsOf } from './lib/server/port-errors.js';
import { createLog } from './lib/server/log.js';
import { createMetrics } from './lib/server/metrics.js';
import { createOverview } from './lib/server/overview.js';
import { createNodeServer, openDoor } from './lib/server/node-server.js';
import { openPages } from './lib/server/page-files.js';
import { Pool } from './lib/server/pool.js';
import { asInPrograms, takeOptions } from './lib/server/program-options.js';
import { createRefusals } from './lib/server/refusals.js';
import { createRoutes } from './lib/server/routes.js';
import { takeState } from './lib/server/state.js';
import { AddressLimits } from './lib/server/address-limits.js';
import { createStatus } from './lib/server/status.js';
import { ConnectionBudget } from './lib/server/connection-budget.js';
import { openTls } from './lib/server/tls.js';
import { version } from './lib/server/version.js';
import { addUp, reservePort, startWorkers } from './lib/server/workers.js';
import { Directory } from './lib/world/directory.js';
import { openWorld } from './lib/world/open.js';

/**
 * The whole program on one page:
 *
 *   options → pool, feeds, arena, world → routes → Node's server → front door → workers → ports
 *
 * A throw is decided in native/pool/pool_throwing.cc, whoever has read it; a route is added in
 * lib/server/routes.js. native/README.md has the way of a sprite through the code, file by file.
 *
 * bin/sprites starts it, with the options and the signals of lib/server/command-line.js; another Node program that
 * wants a server beside its own calls `createServer`.
 */

/** How often a stopping server looks whether everybody has been answered, in milliseconds. */
const LOOK = 50;

/** Milliseconds that event streams whose readers are slow have beyond the drain window. */
const PATIENCE = 5000;

/**
 * Starts a server.
 *
 * @param {object} given options as lib/server/options.js reads them
 * @param {import('pino').Logger} [log]
 * @param {AbortSignal} [signal] ends a start that waits for the state of another server
 * @returns {Promise<{port: number, transientPort: number, tlsPort: number, adminPort: number,
 *     pool: Pool, status: () => object, reload: () => void, stop: () => Promise<void>}>} `status` is the
 *     admin port's; `reload` reads TLS's certificate and key anew, and the tokens of publishers; `stop`
 *     answers every parked poll within the drain window, closes every connection and lets the process end
 * @throws {Error} when there is no addon (ERR_SPRITES_ADDON), a port can't be had (EADDRINUSE …), or a game is not
 *     as it must be
 */
export async function start(given, log = createLog('silent'), signal = undefined) {
  const games = findGames(given);
  const limits = new AddressLimits(given);
  const pool = new Pool(given, limits);
  const directory = new Directory(given.name);
  const state = await takeState({ pool, options: given, log, signal });
  let bans;
  let feeds;
  let arena;
  let world;
  let shared;
  let transient;
  let sharedTls;
  try {
    bans = openBans({ limits, pool, log });
    feeds = openFeeds({ options: given, limits, pool, state, log });
    arena = new Arena({ options: given, games, limits, feeds: feeds.feeds, pool, log });
    state.taken();
    world = await openWorld({ options: given, pool, feeds: feeds.feeds, directory, log });
    shared = await reservePort(given, 'port', given.port);
    transient = await reservePort(given, 'transient-port', given.transientPort);
    const tlsPort = given.tlsCert === 'none' ? 'none' : given.tlsPort;
    sharedTls = await reservePort(given, 'tls-port', tlsPort);
  } catch (error) {
    arena?.close();
    feeds?.close();
    shared?.close();
    transient?.close();
    state.release();
    throw error;
  }
  const options = { ...given, transientPort: transient.port };

  const metrics = createMetrics({
    status,
    door: counts,
    deliveryTimes: () => pool.deliveryTimes(),
    mailboxMemory: options.mailboxMemory,
    feedMemory: options.feedMemory,
    certificateEnd: () => certificateEnd(),
    version: version()
  });
  /** The TLS port's own, once that is open: metrics may be asked for before. */
  let certificateEnd = () => undefined;
  const liveCounts = createStatus({
    status,
    metrics,
    counts,
    deliveryTimes: () => pool.deliveryTimes()
  });
  const refusals = createRefusals(log);
  const pages = openPages(arenaFiles(options.arena, games));
  const routes = createRoutes({
    pool,
    feeds: feeds.feeds,
    tokens: feeds.tokens,
    limits,
    options,
    log,
    refusals,
    status: liveCounts.forAnybody,
    pages,
    games,
    arena,
    whole: liveCounts.whole,
    directory
  });
  const budget = new ConnectionBudget(options);
  const server = createNodeServer({ routes, limits, options, budget, refusals });
  const door =
    options.door === 'native'
      ? createDoor({
          pool,
          feeds: feeds.feeds,
          arena,
          limits,
          options,
          routes,
          server,
          budget,
          status: liveCounts.forAnybody,
          files: pages.ready(options),
          log,
          refusals
        })
      : openDoor(server);
  const workers = startWorkers({
    door,
    asked: asked(),
    options,
    sockets: shared.descriptors,
    transientSockets: transient.descriptors,
    tlsSockets: sharedTls.descriptors,
    log
  });
  const watch = watchGames({
    ...{ options, games, log },
    isPlayed: (name) => arena.isPlayed(name),
    changed(names) {
      pages.replace(arenaFiles(options.arena, games));
      workers.renewGames(names);
      arena.renew();
    }
  });
  directory.onChange(() => {
    door.locate(directory);
    workers.locate(directory);
  });
  const open = [door];
  let draining = false;

  function status() {
    const own = pool.status();
    const { refused: ofArena, ...played } = arena.status();
    const refused = addUp([own.refused, ofArena, workers.counts().refused]);
    // Those of the workers' feeds, where the native door has workers.
    const theirs = door.feedStatus?.() ?? {};
    const kept = { ...played, ...state.figures(), ...world.figures() };
    return { ...own, ...addUp([feeds.status(), theirs]), ...kept, refused };
  }

  function counts() {
    const { connections = 0, heldBytes = 0, ...counters } = door.status();
    return {
      connections: connections + budget.held,
      nodeConnections: server.held(),
      tlsConnections: budget.held - server.held() + workers.tlsConnections(),
      heldBytes,
      ...addUp([counters, { connectionsRefused: budget.refused }, workers.counts().doors]),
      ...workers.status()
    };
  }

  /** What workers may ask for. */
  function asked() {
    const arenas = ['join', 'input', 'leave', 'command', 'list'];
    return {
      publish: (...rest) => feeds.feeds.publish(...rest),
      remove: (key) => feeds.feeds.remove(key),
      whole: liveCounts.whole,
      ...Object.fromEntries(
        arenas.map((what) => [`arena.${what}`, (...rest) => arena[what](...rest)])
      )
    };
  }

  /** The problem that keeps the server from being one to send clients to, if any. */
  function unready() {
    if (draining) return 'draining';
    return state.status()?.blocked > 0 ? 'state-unwritable' : world.unready();
  }

  async function stop() {
    draining = true;
    for (const one of open) one.stopListening();
    stopSharing();
    const drained = workers.drain(options.drain * 1000);
    const left = world.leave(options.drain * 1000);
    pool.drain(options.drain * 1000);
    arena.drain();
    feeds.feeds.drain(options.drain * 1000);
    await everybodyAnswered();
    await drained;
    await left;
    for (const one of open) one.closeIdle();
    server.closeIdleConnections();
    await workers.stop();
    await arena.rest();
    await pause(LOOK);
    close();
    try {
      state.keep();
    } finally {
      state.release();
    }
  }

  /** Polls are answered by themselves; an event stream waits for its reader, who may never read on. */
  async function everybodyAnswered() {
    const end = performance.now() + options.drain * 1000 + PATIENCE;
    const left = () => {
      const { watching, streams } = feeds.status();
      return pool.status().parked + (performance.now() < end ? watching : watching - streams);
    };
    while (left() > 0) await pause(LOOK);
  }

  /** The ports that workers share take nobody any more. */
  function stopSharing() {
    shared.close();
    transient.close();
    sharedTls.close();
  }

  /** Opens the ports, now that everything is there. */
  async function listen() {
    if (options.workers === 0) return door.listen(options.host, options.port);
    await shared.listen();
    await transient.listen();
    await sharedTls.listen();
    workers.accept(tls.identity());
    return shared.port;
  }

  function close() {
    watch.close();
    for (const one of open) one.close();
    server.close();
    server.closeEveryConnection();
    metrics.close();
    world.close();
    pool.close();
    arena.close();
    feeds.close();
  }

  let tls;
  try {
    tls = await openTls({ routes, limits, budget, refusals, options, shared: sharedTls, log });
    open.push(tls);
    certificateEnd = tls.certificateEnd;
    const admin = await openAdmin({
      options,
      metrics,
      status: liveCounts.whole,
      unready,
      silentWorkers: workers.silent,
      overview: createOverview({
        ...{ options, status: liveCounts.whole, unready },
        ...{ workers, feeds: feeds.feeds, arena }
      }),
      clients: createClientRoutes({ pool, bans, log }),
      log
    });
    open.push(admin);
    await workers.ready;
    await feeds.ready;
    await arena.start();
    const port = await listen();
    // The start has kept the loop busy, but nobody was waiting yet.
    metrics.forgetStalls();
    world.start(port);
    return {
      port,
      transientPort: transient.port,
      tlsPort: tls.port,
      adminPort: admin.port,
      pool,
      status: liveCounts.whole,
      reload() {
        tls.reload();
        feeds.reload();
        workers.reload(tls.identity());
      },
      stop
    };
  } catch (error) {
    close();
    stopSharing();
    await workers.stop();
    state.release();
    throw error;
  }
}

/**
 * Starts a server within another Node program. It touches nothing of the process: no signal, no exit code, no
 * output. Options are those of the command line in camel case, and of the environment it reads none.
 *
 * @type {import('./lib/server/types/server.js').createServer}
 */
export async function createServer({ log = createLog('silent'), signal, ...given } = {}) {
  const inItsWords = (error) => {
    error.message = asInPrograms(error.message);
    throw error;
  };
  async function begin() {
    const options = takeOptions(given);
    const server = await start(options, log, signal);
    const { port, tlsPort, adminPort, status, reload, stop } = server;
    let end;
    return {
      ...{ port, tlsPort, adminPort, status, reload },
      addresses: urlsOf('http', options.host, port),
      tlsAddresses: urlsOf('https', options.host, tlsPort),
      adminAddresses: urlsOf('http', options.adminHost, adminPort),
      close: () => (end ??= stop().catch(inItsWords))
    };
  }
  return begin().catch(inItsWords);
}
