import { LANES } from './agent-engine.js';
import { Agent } from './agent.js';
import { UsageError } from './errors.js';
import { fetchBy } from './fetch.js';
import { lookAtHost, plan } from './needs.js';
import { targetOf } from './target.js';
import { hopeless } from './tls.js';

/** Clients at the most, where the command line does not say and the host's files allow it. */
const CLIENTS = 10_000;

/** Connections of this process's own, besides those of clients and throws. */
const SPARE = 128;

const signals = ['SIGINT', 'SIGTERM'];

/** @returns {Promise<object>} a JSON answer */
async function ask(fetch, url, { host, wait }) {
  let response;
  try {
    response = await fetch(url, { signal: AbortSignal.timeout(Math.max(1000, wait * 1000)) });
  } catch (error) {
    const cause = error.cause ?? error;
    const why =
      hopeless(cause, host) ?? `nothing answers at ${url} (${cause.code ?? cause.message})`;
    throw new UsageError(why);
  }
  if (!response.ok) return undefined;
  return response.json().catch(() => undefined);
}

/** @returns {Promise<string>} the arena's name: that of the URL, or the only one that the server has */
async function findArena(fetch, base, options) {
  const { arenas } = (await ask(fetch, `${base}arena`, options)) ?? {};
  if (!Array.isArray(arenas))
    throw new UsageError(`${base} has no arena (bin/sprites --arena hall)`);
  const names = arenas.map(({ name }) => name);
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
    let leaving;
    const leave = () => {
      const done = leaving === undefined ? agent.end() : agent.kill();
      leaving ??= done;
      done.then(() => {
        for (const signal of signals) process.off(signal, leave);
        ended();
      }, failed);
    };
    for (const signal of signals) process.on(signal, leave);
  });
}
