import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { monitorEventLoopDelay } from 'node:perf_hooks';

import { helpText, OptionError, readOptions } from './lib/config.js';
import { describeFileLimit, fileLimit } from './lib/files.js';
import { createNodeServer } from './lib/node-server.js';
import { Pool } from './lib/pool.js';
import { createRoutes } from './lib/routes.js';
import { createStatus } from './lib/status.js';
import { servePage } from './lib/page-files.js';

/**
 * The whole program on one page:
 *
 *   options → pool → routes → server → signals
 */

/**
 * Starts a server.
 *
 * @param {object} options as lib/config.js reads them
 * @returns {Promise<{port: number, pool: Pool, stop: () => Promise<void>}>} `stop` answers every
 *     parked poll, closes every connection and resolves when nothing is left
 * @throws {Error} when there is no addon (ERR_SPRITES_ADDON) or the port cannot be had (EADDRINUSE …)
 */
export async function start(options) {
  const pool = new Pool(options);
  const delay = monitorEventLoopDelay({ resolution: 10 });
  delay.enable();
  const routes = createRoutes({ pool, options, status: createStatus(pool, delay), page: servePage });
  const server = createNodeServer(routes, options);

  async function stop() {
    pool.drain(0);
    server.close();
    const answered = setInterval(() => {
      if (pool.status().parked === 0) server.closeAllConnections();
    }, 50);
    await once(server, 'close');
    clearInterval(answered);
    delay.disable();
    pool.close();
  }

  try {
    server.listen(options.port, options.host);
    await once(server, 'listening');
  } catch (error) {
    delay.disable();
    pool.close();
    throw error;
  }
  return { port: server.address().port, pool, stop };
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
    if (options.help) return void process.stdout.write(helpText());
    if (options.version) return void process.stdout.write(`${version()}\n`);
    const server = await start(options);
    const host = options.host.includes(':') ? `[${options.host}]` : options.host;
    process.stdout.write(`Sprites ${version()} listens on http://${host}:${server.port}/\n`
      + `There is room for ${options.capacity} clients.`
      + ` ${describeFileLimit(options.capacity, fileLimit())}\n`);
    const [signal] = await Promise.race([once(process, 'SIGTERM'), once(process, 'SIGINT')]
      .map((event, i) => event.then(() => [['SIGTERM', 'SIGINT'][i]])));
    process.stdout.write(`${signal}: answering every parked poll.\n`);
    await server.stop();
  } catch (error) {
    process.exitCode = error instanceof OptionError ? 2 : 1;
    process.stderr.write(`sprites: ${explain(error)}\n`);
  }
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
