import { Broker } from '../../lib/world/broker.js';
import { Membership } from '../../lib/world/membership.js';
import { problemOf } from './contract.js';
import { startServer } from './server.js';
import { until } from './until.js';
import { silent } from './world-virtual.js';

/** Servers of one world: how they start, what they say, and what they owe. */

/** Starts a server of the world of `nats`, by its name. */
export async function enterWorld(t, nats, name, more = {}) {
  const world = { world: nats.url, name, 'world-lease': 3 };
  const server = await startServer(t, { options: { ...world, ...more } });
  return Object.assign(server, { name });
}

/** A server's membership alone, in this process. */
export function enterMember(t, nats, name, how = {}) {
  const broker = new Broker({ servers: [nats.url], name, ...how });
  const membership = new Membership({
    ...{ name, lease: 3000, store: broker, log: silent },
    describe: () => ({ rows: 3 }),
    ...how
  });
  membership.start();
  t.teardown(() => membership.close());
  const names = () => membership.view().ring.members.map((member) => member.name);
  const problem = () => membership.view().problem?.code;
  return { broker, membership, ring: () => names().join(''), problem };
}

/** Waits until each server is looked at and is as wanted. */
export async function untilEach(servers, wanted, look) {
  const text = JSON.stringify(wanted);
  for (const server of servers) {
    let found;
    const isIt = async () => {
      found = JSON.stringify(await look(server));
      return found === text;
    };
    await until(isIt, () => `${text} at ${server.name}: ${found}`);
  }
}

/** What the admin ports say. */
export const lookAt = (servers) => Promise.all(servers.map((one) => one.inside()));

/** Looks until something holds of what the admin ports say. */
export async function untilAll(servers, holds) {
  let all;
  const look = async () => {
    all = await lookAt(servers);
    return holds(all) && all;
  };
  return until(look, () => `${holds} in ${JSON.stringify(all?.map(({ world }) => world))}`);
}

/** Waits until these are the ring, each with the rows it has. */
export const sewn = (servers) =>
  untilAll(servers, (all) => {
    const ring = all.map(({ rows }, at) => [servers[at].name, rows]);
    const isIt = ({ world: { state, servers: seen } }) =>
      state === 'member' &&
      JSON.stringify(seen.map(({ name, rows }) => [name, rows])) === JSON.stringify(ring);
    return all.every(isIt);
  });

export const sum = (all, name) => all.reduce((total, one) => total + one[name], 0);

/**
 * @param {import('tap').Test} t
 * @param {object[]} servers
 * @returns {Promise<Record<string, number>>} the counts of all, added up, when no acknowledgement is on its way
 */
export async function books(t, servers) {
  const names = ['thrown', 'acked', 'waiting', 'lost', 'crossedIn', 'crossedOut'];
  const all = await untilAll(servers, (some) => sum(some, 'crossedIn') === sum(some, 'crossedOut'));
  for (const { thrown, acked, waiting, lost, crossedIn, crossedOut } of all) {
    t.equal(thrown + crossedIn, acked + waiting + lost + crossedOut, 'the law of a server');
  }
  return Object.fromEntries(names.map((name) => [name, sum(all, name)]));
}

/**
 * Has every client throw one sprite by an edge.
 *
 * @param {import('tap').Test} t
 * @param {{server: object, id: string, seq: number}[]} clients
 * @param {string} edge
 * @returns {Promise<Map<string, string>>} the client from which each has got one, by ids
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

/** The problem for which a server is not ready, if any. */
export async function unready(server) {
  const response = await fetch(`http://127.0.0.1:${server.adminPort}/readyz`);
  return response.ok ? undefined : problemOf({ body: await response.json() });
}

/** Waits until all are ready. */
export const ready = (servers) =>
  Promise.all(servers.map((server) => until(async () => !(await unready(server)))));

/** @returns {[string, string, object][]} requests with an id, one for each target that has one: as Server#ask takes them */
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

/** What a server has logged. */
export const logged = (server) => Buffer.concat(server.errors).toString();
