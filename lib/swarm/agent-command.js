import { globalTimers, ignoreFailure, Requests } from '../client/requests.js';
import { Agent, LANES } from './agent.js';
import { needEngine } from './engine.js';
import { UsageError } from './errors.js';
import { fetchBy } from './status.js';
import { lookAtHost, plan } from './needs.js';
import { isArenaName } from './options.js';
import { onSignals } from './signals.js';
import { hopeless, targetOf } from './target.js';

/** Clients at the most, where the command line does not say and the host's files allow it. */
const CLIENTS = 10_000;

/** Connections of this process's own, besides those of clients and throws. */
const SPARE = 128;

/** Arenas there may be at a server, and bytes of the list of them. */
const ARENAS = 16;
const LIST_BYTES = 2 ** 16;

/** Why there is no whole answer, besides what the network says. */
const FAILURES = { slow: 'not in time', garbage: 'what does is no list of arenas' };

/**
 * @returns {Promise<string[]>} the names of a server's arenas
 * @throws {UsageError} when there are none, or no such server
 */
async function arenasOf(fetch, base, { host, wait }) {
  const url = `${base}arena`;
  const requestTimeout = Math.max(1000, wait * 1000);
  const requests = new Requests(fetch, globalTimers(), { requestTimeout, answerMost: LIST_BYTES });
  let answer;
  try {
    answer = await requests.ask(url, { redirect: 'manual' });
  } catch (error) {
    const { cause, reason } = ignoreFailure(error);
    const origin = cause.cause ?? cause;
    const words = FAILURES[reason] ?? origin.code ?? origin.message;
    throw new UsageError(hopeless(origin, host) ?? `nothing answers at ${url} (${words})`);
  }
  const { status, json } = answer;
  if (status >= 300 && status < 400) {
    throw new UsageError(
      `${url} answers ${status}, a redirect, which is not followed: give the URL that it leads to`
    );
  }
  const arenas = status === 200 && Array.isArray(json?.arenas) ? json.arenas : [];
  const names = arenas.slice(0, ARENAS).map((one) => one?.name);
  if (names.length > 0 && names.every(isArenaName)) return names;
  throw new UsageError(`${base} has no arena (bin/sprites --arena hall)`);
}

/** @returns {Promise<string>} the arena's name: that of the URL, or the only one that the server has */
async function findArena(fetch, base, options) {
  const names = await arenasOf(fetch, base, options);
  const { arena = names.length === 1 ? names[0] : undefined } = options;
  if (names.includes(arena)) return arena;
  const all = names.map((name) => `${base}play/${name}`).join(', ');
  throw new UsageError(arena ? `no arena "${arena}" there: ${all}` : `which arena? ${all}`);
}

/**
 * bin/sprites-swarm agent URL: goes on until a signal; a second one ends it at once.
 *
 * @param {object} options of parse()
 * @returns {Promise<number>} the exit code
 * @throws {UsageError} when it can't begin
 */
export async function runAgent(options) {
  needEngine();
  const fetch = fetchBy(options);
  const { address, host } = await targetOf(options.host);
  const base = `${options.tls ? 'https' : 'http'}://${host}:${options.port}/`;
  const arena = await findArena(fetch, base, options);
  const found = lookAtHost();
  const clientsMax =
    options.clientsMax ?? Math.max(1, Math.min(CLIENTS, found.files - LANES - SPARE));
  const all = { ...options, clientsMax };
  const needs = plan({ ...all, clients: clientsMax, lanes: LANES, processes: 1, address }, found);
  const say = (words) => options.quiet || process.stderr.write(`sprites-swarm: ${words}\n`);
  const agent = new Agent({ options: all, arena, base, address, host, plan: needs }, fetch, say);
  say(
    `agent of ${base}play/${arena}: at most ${clientsMax} clients, ${options.rateMax} sprites a second`
  );
  agent.start();
  await until(agent);
  return 0;
}

/** Resolves when a signal has come, and the agent has left. */
function until(agent) {
  return new Promise((ended, failed) => {
    let isLeaving = false;
    const listenNoMore = onSignals(() => {
      if (isLeaving) {
        agent.kill();
        return false;
      }
      isLeaving = true;
      agent.end().then(() => {
        listenNoMore();
        ended();
      }, failed);
      return true;
    });
  });
}
