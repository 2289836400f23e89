import process from 'node:process';

import '../base/no-inspector.js';
import { createDoor } from '../http/door.js';
import { createLog, tellOfNoInspector } from '../base/log.js';
import { openPages } from '../base/page-files.js';
import { RemotePool } from '../torus/remote-pool.js';
import { createRefusals } from '../http/refusals.js';
import { createRoutes } from '../http/routes.js';
import { Tls } from '../http/tls.js';
import { AddressLimits } from '../torus/address-limits.js';
import { addUp } from '../operator/live.js';
import { arenaFiles } from '../arena/files.js';
import { findGames } from '../arena/games.js';
import { RemoteArena } from '../arena/remote-arena.js';
import { RemoteFeeds } from '../feeds/remote-feeds.js';
import { openTokens } from '../feeds/tokens.js';
import { Directory } from '../world/directory.js';

/**
 * A worker: a process that holds connections of the main port, and of the transient port where there
 * is one. It has their open requests, and nothing else: the pool is in the main process, behind a
 * socket pair a port (native/relay/relay.h).
 */

/** The descriptors of the main port's relay and of its socket; lib/server/workers.js puts them into stdio. */
const MAIN = { relay: 4, socket: 5 };

/** Those of the transient port. */
const TRANSIENT = { relay: 6, socket: 7 };

/** The descriptor of the socket of the TLS port, behind those. */
const TLS = { alone: 6, behindTransient: 8 };

/** The routes of the transient port. */
const HERE = ['join', 'throw', 'leave'];

/** How often a stopping worker looks whether its requests are answered, in milliseconds. */
const LOOK = 20;

/** How long a stopping worker waits for requests that are still arriving, in milliseconds. */
const GRACE = 1000;

/** How often a worker reports its counts to the main process, in milliseconds. */
const REPORT = 1000;

const options = JSON.parse(process.env.SPRITES_WORKER);
const log = createLog(options.logLevel);
tellOfNoInspector(log);
const refusals = createRefusals(log);

/** What the main process has been asked by JavaScript: number → the function that takes the answer. */
const asked = new Map();
let lastAsk = 0;

/** Asks a function of the main process's feeds or arenas. */
function ask(what, ...rest) {
  return new Promise((resolve) => {
    lastAsk += 1;
    asked.set(lastAsk, resolve);
    process.send({ ask: lastAsk, what, rest });
  });
}

const games = findGames(options);
const pages = openPages(arenaFiles(options, games), options.play !== undefined);
const feeds = new RemoteFeeds(options, ask);
const arena = new RemoteArena(options, ask);
const tokens = openTokens(options);
const directory = new Directory(options.name);

/**
 * Opens one port: a front door.
 *
 * @param {{relay: number, socket: number}} descriptors
 * @param {string[]} [here] the routes of the transient port, where it is that
 */
function openPort({ relay, socket }, here) {
  const transient = here !== undefined;
  // Without a main process there is nothing to serve, and nothing to save.
  const limits = new AddressLimits(options);
  const pool = new RemotePool(options, { lost: () => process.exit() });
  const routes = createRoutes({
    pool,
    feeds,
    tokens,
    options,
    log,
    refusals,
    here,
    status: () => pool.status(),
    pages,
    games: transient ? new Map() : games,
    arena: transient ? undefined : arena,
    whole: () => ask('whole'),
    directory
  });
  const door = createDoor({
    pool,
    feeds: transient ? undefined : feeds,
    limits,
    options,
    routes,
    refusals,
    files: transient ? [] : pages.ready(options),
    relayFd: relay,
    transient
  });
  pool.flushBy(door.flush);
  if (!transient) feeds.flushBy(door.flush);
  /** What the TLS port has, where it is served beside this one. */
  let tls;
  return {
    accept: () => door.adopt(socket),
    locate: () => door.locate(directory),
    acceptTls(identity) {
      tls = new Tls();
      tls.take(identity);
      door.adopt(options.transientPort > 0 ? TLS.behindTransient : TLS.alone, tls);
    },
    takeTls: (identity) => tls?.take(identity),
    stopListening: () => door.stopListening(),
    /** Closes what nothing is owed to; gives how much is left. */
    closeIdle: () => door.closeIdle() + pool.open,
    counts: () => ({ ...door.status(), refused: pool.refused })
  };
}

const ports = [openPort(MAIN)];
if (options.transientPort > 0) ports.push(openPort(TRANSIENT, HERE));

directory.onChange(() => {
  for (const port of ports) port.locate();
});

/** The last report, as JSON. */
let reported = '';

/** Reports to the main process that this worker answers, and its counts if they have changed. */
function report(done = () => {}) {
  const counts = addUp(ports.map((port) => port.counts()));
  const news = JSON.stringify(counts);
  const message = news === reported ? {} : { counts };
  reported = news;
  // It fails where the main process is gone: this worker is about to end.
  process.send(message, () => done());
}

process.on('disconnect', () => process.exit());

// A terminal's Ctrl-C, its end, and a service manager's SIGTERM reach every process of the group; it
// is the main process that decides when its workers end. Nor must a reload end them.
for (const name of ['SIGINT', 'SIGHUP', 'SIGTERM', 'SIGUSR2']) process.on(name, () => {});

function stop() {
  for (const port of ports) port.stopListening();
  const end = performance.now() + GRACE;
  setInterval(() => {
    const left = ports.reduce((sum, port) => sum + port.closeIdle(), 0);
    if (left === 0 || performance.now() > end) report(() => process.exit());
  }, LOOK);
}

/** Answers who watches feeds within so many milliseconds, and tells when it has. */
function drain(window) {
  feeds.drain(window);
  const look = setInterval(() => {
    if (feeds.status().watching > 0) return;
    clearInterval(look);
    process.send({ drained: true });
  }, LOOK);
}

function reload(identity) {
  if (identity !== null) ports[0].takeTls(identity);
  try {
    tokens.reload();
  } catch (error) {
    log.error({ err: error }, 'the tokens stay as they were');
  }
}

/** The main process has taken what has changed of these in `--games`. */
function renewGames(names) {
  try {
    const found = findGames(options);
    for (const name of names) if (found.has(name)) games.set(name, found.get(name));
    pages.replace(arenaFiles(options, games));
  } catch (error) {
    log.warn({ why: error.message }, 'games stay as they were');
  }
}

/** What the main process says, by the name of the message's one member. */
const told = {
  accept(identity) {
    for (const port of ports) port.accept();
    if (identity !== null) ports[0].acceptTls(identity);
  },
  drain(window) {
    for (const port of ports) port.stopListening();
    drain(window);
  },
  stop,
  reload,
  renewGames,
  elsewhere: (entries) => directory.take(entries),
  answered([number, result]) {
    asked.get(number)(result);
    asked.delete(number);
  }
};

process.on('message', (message) => {
  const [[name, value]] = Object.entries(message);
  told[name](value);
});

process.send({ ready: true });
setInterval(report, REPORT).unref();
