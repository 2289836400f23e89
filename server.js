import { Arena } from './lib/arena/arena.js';
import { arenaFiles } from './lib/arena/files.js';
import { findGames, watchGames } from './lib/arena/games.js';
import { createLog } from './lib/base/log.js';
import { openPages } from './lib/base/page-files.js';
import { urlsOf } from './lib/base/port-errors.js';
import { openFeeds } from './lib/feeds/open.js';
import { Grants } from './lib/grants/open.js';
import { createDoor, reservePort } from './lib/http/door.js';
import { createRefusals } from './lib/http/refusals.js';
import { createRoutes } from './lib/http/routes.js';
import { openTls } from './lib/http/tls.js';
import { createClientRoutes } from './lib/operator/admin-clients.js';
import { openAdmin } from './lib/operator/admin.js';
import { openBans } from './lib/operator/bans.js';
import { openLiveCounts } from './lib/operator/live-counts.js';
import { OverloadLog } from './lib/operator/overload-log.js';
import { createOverview } from './lib/operator/overview.js';
import { withProgramNames, readProgramOptions } from './lib/operator/program-options.js';
import { Lifecycle } from './lib/server/lifecycle.js';
import { readProgramArguments, programFeeds, programGrant } from './lib/server/program.js';
import { openState } from './lib/server/state.js';
import { AddressLimits } from './lib/torus/address-limits.js';
import { Pool } from './lib/torus/pool.js';
import { Directory } from './lib/world/directory.js';
import { openWorld } from './lib/world/open.js';

/**
 * The whole program on one page. The parts are made in this order:
 *
 *   options ─▶ pool ─▶ state ─▶ feeds, arena, world ─▶ live counts ─▶ routes ─▶ door ─▶ admin port ─▶ ports
 *
 * native/README.md has the way of a sprite through the code, file by file. A route is added in lib/http/routes.js.
 *
 * bin/sprites calls `start`, with the options and the signals of lib/server/command-line.js. Another Node program calls
 * `createServer` for a server of its own.
 */

/**
 * Starts a server.
 *
 * @param {object} initial options as lib/operator/options.js reads them
 * @param {import('pino').Logger} [log]
 * @param {AbortSignal} [signal] ends a start that waits for the state of another server
 * @param {{fetch?: Function, publishTokens?: string[], grants?: object, ownsProcess?: boolean}} [program] additions of the
 *     surrounding program (see createServer), or `ownsProcess` where there is none (see createDoor)
 * @returns {Promise<{port: number, transientPort: number, tlsPort: number, adminPort: number,
 *     pool: Pool, feeds: object, status: () => object, reload: () => void, stop: () => Promise<void>}>} `status` is the
 *     admin port's; `reload` reads the TLS certificate, its key and the tokens of publishers again; `stop`
 *     answers every parked poll within the drain window, closes every connection and lets the process end
 * @throws {Error} when there is no addon (ERR_SPRITES_ADDON), a port can't be opened (EADDRINUSE …), or a game is
 *     invalid
 */
export async function start(initial, log = createLog('silent'), signal = undefined, program = {}) {
  const games = findGames(initial);
  const limits = new AddressLimits(initial);
  const pool = new Pool(initial, limits);
  const directory = new Directory(initial.name);
  const state = await openState({ pool, options: initial, log, signal }).catch((error) => {
    pool.close();
    throw error;
  });
  const lifecycle = new Lifecycle({ options: initial, pool, state });
  const closeAtEnd = (part) => lifecycle.closeAtEnd(part);
  try {
    const bans = closeAtEnd(openBans({ limits, pool, log }));
    const { publishTokens, grants: keySet } = program;
    const grants = new Grants({ options: initial, keySet, pool, log });
    await grants.load();
    const feedParts = closeAtEnd(
      openFeeds({ options: initial, limits, pool, state, log, publishTokens })
    );
    const { feeds, tokens } = feedParts;
    const arena = closeAtEnd(new Arena({ options: initial, games, limits, feeds, pool, log }));
    state.finishMigration();
    closeAtEnd(pool);
    const world = closeAtEnd(
      await openWorld({ options: initial, pool, feeds, grants, directory, log })
    );
    const transient = closeAtEnd(
      await reservePort(initial, 'transient-port', initial.transientPort)
    );
    const { port: transientPort } = transient;
    const options = { ...initial, transientPort };

    const parts = {
      ...{ options, games, limits, pool, state, directory, log },
      ...{ grants, feeds, tokens, arena, world }
    };
    const live = closeAtEnd(openLiveCounts({ ...parts, feeds: feedParts }));
    const { door, tls } = await openFront({ ...parts, program, live, closeAtEnd });

    let port;
    /** The problem for which a load balancer must not send clients to this server, if any. */
    function readinessProblem() {
      if (lifecycle.draining) return 'draining';
      if (port === undefined) return 'joining';
      return state.status()?.blocked > 0 ? 'state-unwritable' : world.readinessProblem();
    }
    const adminParts = { options, status: live.fullStatus, readinessProblem };
    const admin = closeAtEnd(
      await openAdmin({
        ...{ ...adminParts, metrics: live.metrics, log },
        overview: createOverview({ ...adminParts, door, feeds, arena }),
        answerClientRequest: createClientRoutes({ pool, bans, grants, log })
      })
    );

    await feedParts.ready;
    await arena.start();
    const { host } = options;
    if (transientPort > 0) {
      await door.listen({ host, ...transient, option: 'transient-port', transient: true });
    }
    port = await door.listen({ host, port: options.port });
    // The start blocked the event loop, but no client was waiting yet.
    live.metrics.resetStalls();
    world.start(port);
    return {
      ...{ port, transientPort, tlsPort: tls.port, adminPort: admin.port },
      ...{ pool, status: live.fullStatus, grant: (rights) => grants.sign(rights) },
      feeds: programFeeds({ feeds, arena, options }),
      reload() {
        tls.reload();
        feedParts.reload();
        grants.reload();
      },
      stop: () => lifecycle.stop({ feeds: feedParts, arena, world, door })
    };
  } catch (error) {
    return lifecycle.fail(error);
  }
}

/** Opens the front door, the routes for what it does not answer itself, and TLS. */
async function openFront({ program, live, closeAtEnd, ...parts }) {
  const { options, pool, games, directory, grants, arena, log } = parts;
  const refusals = closeAtEnd(createRefusals(log));
  // A program with a site of its own has its own page.
  const omittedPaths = program.fetch ? ['/'] : [];
  const pages = openPages(arenaFiles(options, games), options.play !== undefined, omittedPaths);
  const { publicStatus: status, fullStatus } = live;
  const { fetch: application, ownsProcess } = program;
  const routes = createRoutes({ ...parts, refusals, status, fullStatus, pages, application });
  const files = pages.fixedFiles(options);
  const door = closeAtEnd(createDoor({ ...parts, refusals, status, routes, files, ownsProcess }));
  grants.onEnded(door.endGrants);
  const tls = closeAtEnd(await openTls({ door, options, pool, log }));
  live.attachFront({ door, tls });
  closeAtEnd(new OverloadLog({ refused: () => door.counts().refused, log }));
  directory.onChange(() => door.setOtherServers(directory));
  closeAtEnd(
    watchGames({
      ...{ options, games, log },
      // A game under trial restarts with each change of its files.
      isPlayed: (name) => options.play === undefined && arena.isPlayed(name),
      onChange() {
        pages.replace(arenaFiles(options, games));
        arena.applyChangedGames();
      }
    })
  );
  return { door, tls };
}

/**
 * Starts a server within another Node program. The server changes nothing of the process: no signal, no exit code, no
 * output. Its options are those of the command line in camel case. It reads no environment variables.
 *
 * @type {import('./lib/server/types/server.js').createServer}
 */
export async function createServer(wanted = {}) {
  const rethrowForPrograms = (error) => {
    error.message = withProgramNames(error.message);
    throw error;
  };
  async function startChecked() {
    const { log, signal, program, optionValues } = readProgramArguments(wanted);
    const options = readProgramOptions(optionValues);
    const server = await start(options, log, signal, program);
    const { port, tlsPort, adminPort, feeds, grant, status, reload, stop } = server;
    let closing;
    return {
      ...{ port, tlsPort, adminPort, status, reload },
      ...feeds,
      grant: programGrant(grant),
      addresses: urlsOf('http', options.host, port),
      tlsAddresses: urlsOf('https', options.host, tlsPort),
      adminAddresses: urlsOf('http', options.adminHost, adminPort),
      close: () => (closing ??= stop().catch(rethrowForPrograms))
    };
  }
  return startChecked().catch(rethrowForPrograms);
}
