import { Broker } from '../../lib/world/broker.js';
import { Membership } from '../../lib/world/membership.js';
import { problemOf } from './contract.js';
import { startServer } from './server.js';
import { until, untilAnswer } from './until.js';
import { silent } from './world-virtual.js';

/** Helpers for servers of one world: start them, read their status, check their counts. */

/** Starts a server with this name in the world of `nats`. */
export async function enterWorld(t, nats, name, more = {}) {
  const world = { world: nats.url, name, 'world-lease': 3 };
  const server = await startServer(t, { options: { ...world, ...more } });
  return Object.assign(server, { name });
}

/** Starts only a server's membership, in this process. */
export function enterMember(t, nats, name, options = {}) {
  const broker = new Broker({ servers: [nats.url], name, ...options });
  const membership = new Membership({
    ...{ name, lease: 3000, store: broker, log: silent },
    describe: () => ({ rows: 3 }),
    ...options
  });
  membership.start();
  t.teardown(() => membership.close());
  const names = () => membership.view().ring.members.map((member) => member.name);
  const problem = () => membership.view().problem?.code;
  return { broker, membership, ring: () => names().join(''), problem };
}

/** Waits until `look` returns the wanted result for each server. */
export async function untilEach(servers, wanted, read) {
  const text = JSON.stringify(wanted);
  for (const server of servers) {
    let found;
    const isWanted = async () => {
      found = JSON.stringify(await read(server));
      return found === text;
    };
    await until(isWanted, () => `${text} at ${server.name}: ${found}`);
  }
}

/** Returns each server's status from its admin port. */
export const readStatuses = (servers) => Promise.all(servers.map((one) => one.adminStatus()));

/** Polls the statuses of the admin ports until `holds` accepts them. */
export const untilAll = (servers, holds) => untilAnswer(() => readStatuses(servers), holds);

/** Waits until every server sees exactly these servers as the ring, with their rows. */
export const untilRing = (servers) =>
  untilAll(servers, (all) => {
    const ring = all.map(({ rows }, at) => [servers[at].name, rows]);
    const seesRing = ({ world: { state, servers: seen } }) =>
      state === 'member' &&
      JSON.stringify(seen.map(({ name, rows }) => [name, rows])) === JSON.stringify(ring);
    return all.every(seesRing);
  });

export const sum = (all, name) => all.reduce((total, one) => total + one[name], 0);

/**
 * @param {import('tap').Test} t
 * @param {object[]} servers
 * @returns {Promise<Record<string, number>>} the sums of all servers' counts, once no acknowledgement is under way
 */
export async function untilBalanced(t, servers) {
  const names = ['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut'];
  const all = await untilAll(servers, (some) => sum(some, 'crossedIn') === sum(some, 'crossedOut'));
  for (const { thrown, acked, waiting, lost, crossedIn, crossedOut } of all) {
    t.equal(thrown + crossedIn, acked + waiting + lost + crossedOut, 'the law of a server');
  }
  return Object.fromEntries(names.map((name) => [name, sum(all, name)]));
}

/**
 * Lets every client throw one sprite over an edge.
 *
 * @param {import('tap').Test} t
 * @param {{server: object, id: string, seq: number}[]} clients
 * @param {string} edge
 * @returns {Promise<Map<string, string>>} by a receiver's id, the thrower's id
 */
export async function throwAll(t, clients, edge) {
  for (const { server, id } of clients) {
    const { status } = await server.throw(id, edge, JSON.stringify({ from: id }));
    t.equal(status, 202);
  }
  const got = new Map();
  for (const client of clients) {
    const { body } = await client.server.poll(client.id, `ack=${client.seq}&hold=30`);
    client.seq = body.seq;
    t.equal(body.sprites.length, 1, 'one for each');
    got.set(client.id, body.sprites[0].sprite.from);
  }
  return got;
}

/** Returns the problem for which a server is not ready; undefined: it is ready. */
export async function readinessProblem(server) {
  const response = await fetch(`http://127.0.0.1:${server.adminPort}/readyz`);
  return response.ok ? undefined : problemOf({ body: await response.json() });
}

/** Waits until all servers are ready. */
export const untilReady = (servers) =>
  Promise.all(servers.map((server) => until(async () => !(await readinessProblem(server)))));

/** @returns {[string, string, object][]} arguments of Server#ask: a request for each target that contains an id */
export const requestsOf = (id) =>
  [
    ...[`/poll/${id}`, `/poll/${id}?ack=3&hold=5`, `/place/${id}`, `/status/${id}`],
    ...[`/throw/${id}/left`, `/throw/${id}/up?n=7`, `/leave/${id}`],
    ...[`/arena/hall/${id}`, `/arena/hall/${id}?n=2`, `/arena/hall/${id}/leave`]
  ].map((target) => [
    /^.(poll|place|status)/.test(target) ? 'GET' : 'POST',
    target,
    /^.(throw|arena)/.test(target) ? { body: '{"y":0}' } : {}
  ]);

/** Returns a server's log. */
export const logOf = (server) => Buffer.concat(server.errors).toString();
