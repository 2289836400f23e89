import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as pause } from 'node:timers/promises';

import { helpText, OptionError, readOptions } from './lib/config.js';
import { describeFileLimit, fileLimit } from './lib/files.js';
import { createFront } from './lib/front.js';
import { createNodeServer, openDoor } from './lib/node-server.js';
import { servePage } from './lib/page-files.js';
import { Pool } from './lib/pool.js';
import { createRoutes } from './lib/routes.js';
import { Sources } from './lib/sources.js';
import { createStatus } from './lib/status.js';

/**
 * The whole program on one page:
 *
 *   options → pool → routes → Node's server → front door → signals
 */

/** How often a stopping server looks whether everybody has been answered, in milliseconds. */
const LOOK = 50;

/**
 * Starts a server.
 *
 * @param {object} options as lib/config.js reads them
 * @returns {Promise<{port: number, pool: Pool, stop: () => Promise<void>}>} `stop` answers every
 *     parked poll within the drain window, closes every connection and lets the process end
 * @throws {Error} when there is no addon (ERR_SPRITES_ADDON) or the port cannot be had (EADDRINUSE …)
 */
export async function start(options) {
  const pool = new Pool(options);
  const sources = new Sources(options);
  const delay = monitorEventLoopDelay({ resolution: 10 });
  const status = createStatus({ pool, delay, door: () => door, held: () => server.held() });
  const routes = createRoutes({ pool, sources, options, status, page: servePage });
  const most = options.door === 'native' ? options.handedOver : options.connections;
  const server = createNodeServer({ routes, sources, options, most });
  const door = options.door === 'native'
    ? createFront({ pool, sources, options, routes, server })
    : openDoor(server);

  async function stop() {
    door.stopListening();
    pool.drain(options.drain * 1000);
    while (pool.status().parked > 0) await pause(LOOK);
    door.closeIdle();
    server.closeIdleConnections();
    await pause(LOOK);
    close();
  }

  function close() {
    door.close();
    server.close();
    server.closeAllConnections();
    delay.disable();
    pool.close();
  }

  try {
    delay.enable();
    const port = await door.listen(options.host, options.port);
    // Starting up is not a stall that anybody feels.
    delay.reset();
    return { port, pool, stop };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * Runs the program until a signal ends it.
 *
 * @param {string[]} args the command line, without node and program
 * @param {Record<string, string | undefined>} environment
 * @returns {Promise<void>} sets process.exitCode: 2 for a wrong option, 1 for what can't be had
 */
export async function main(args, environment) {
  try {
    const options = readOptions(args, environment);
    if (options.help) print(helpText());
    else if (options.version) print(version());
    else await run(options);
  } catch (error) {
    process.exitCode = error instanceof OptionError ? 2 : 1;
    process.stderr.write(`sprites: ${explain(error)}\n`);
  }
}

async function run(options) {
  const signal = Promise.race(['SIGTERM', 'SIGINT'].map((name) => once(process, name)));
  const server = await start(options);
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  print(`Sprites ${version()} listens on http://${host}:${server.port}/`);
  print(`There is room for ${options.capacity} clients. `
    + describeFileLimit(options.capacity, fileLimit()));
  await signal;
  print('Answering every parked poll.');
  await server.stop();
}

function print(line) {
  process.stdout.write(`${line.trimEnd()}\n`);
}

function explain(error) {
  if (error.code === 'EADDRINUSE') {
    return `${error.address}:${error.port} is taken by another program: choose another --port`;
  }
  return error.message;
}

function version() {
  return JSON.parse(readFileSync(new URL('package.json', import.meta.url), 'utf8')).version;
}
