import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { controlOf, enter, tell, valueOf } from './arena.js';
import { get, patch, put, remove, TOKEN } from './feeds.js';
import { request, Wire } from './http.js';
import { durableCounts } from './server.js';

/**
 * Tests that a state of an old version is read by a new one: `fillState` fills a server of the old version, `readState` compares
 * the new version's answers. Stored old states were written by this file: extend it, but don't change it.
 */

/** A game that returns the players' inputs. The state identifies a game by its files. */
const GAME = {
  'inputs.json': '{"title":"Kept","pace":20,"inputs":{"y":{"min":0,"max":1}}}',
  'reduce.js': 'export const reduce = ({ inputs }) => ({ y: [...inputs.y] });\n',
  'phone.js': 'export const start = () => ({ stop() {} });\n',
  'field.js': 'export const start = () => ({ stop() {} });\n'
};

const BANNED = '127.0.7.7';

/** @returns {object} options of a server with its state, games and tokens in `folder` */
export function stateOptions(folder) {
  mkdirSync(join(folder, 'games/kept'), { recursive: true });
  for (const [name, text] of Object.entries(GAME)) {
    writeFileSync(join(folder, 'games/kept', name), text);
  }
  writeFileSync(join(folder, 'tokens'), `${TOKEN}\n`);
  mkdirSync(join(folder, 'kept'), { recursive: true });
  return {
    arena: 'hall',
    capacity: 100,
    games: join(folder, 'games'),
    'publish-token-file': join(folder, 'tokens'),
    'throw-rate': 0,
    drain: 0,
    lease: 600,
    state: join(folder, 'kept/state')
  };
}

/** Sends a request to the admin port. */
async function askAdmin(server, method, target) {
  const wire = await Wire.open(server.adminPort);
  try {
    return await wire.send(request(method, target)).read();
  } finally {
    await wire.destroy();
  }
}

/**
 * Fills a server: clients, sprites, feeds, players.
 *
 * @param {import('./server.js').Server} server a new server with the options of `stateOptions`
 * @returns {Promise<object>} the second argument of `readState`
 */
export async function fillState(server) {
  const ids = [];
  for (let i = 0; i < 7; i += 1) ids.push(await server.join());
  for (const [i, id] of ids.entries()) {
    for (const [n, edge] of ['left', 'right', 'up', 'down'].entries()) {
      await server.throw(id, edge, `{"by":${i},"over":"${edge}"}`, `n=${10 + n}`);
    }
  }
  // One client leaves, and its sprites fly on. Another one acknowledges two of its sprites.
  await server.leave(ids.pop());
  const { body } = await server.poll(ids[0]);
  const clients = ids.map((id) => ({ id, ack: 0 }));
  clients[0].ack = body.sprites[1].seq;

  const text = 'x'.repeat(300);
  const { body: first } = await put(server, 'league/table', { text, score: 1 });
  await put(server, 'league/table', { text, score: 2 });
  await patch(server, 'league/table', 'merge-patch', { score: 3 });
  await put(server, 'gone', 1);
  await remove(server, 'gone');

  await tell(server, { game: 'kept', running: true, rate: 9 });
  const players = [await enter(server), await enter(server)];
  for (const [i, player] of players.entries()) await player.send({ y: (i + 1) / 4 }, '?n=3');
  await valueOf(server, ({ value }) => value?.y.join() === '0.25,0.5');

  const headers = { Authorization: `Bearer ${TOKEN}` };
  const append = (item) => server.ask('POST', '/feed/chat', { body: `"${item}"`, headers });
  await append('first');
  const { body: log } = await append('second');
  for (const item of ['third', 'fourth']) await append(item);

  await askAdmin(server, 'PUT', `/bans/${BANNED}?seconds=31536000`);
  await askAdmin(server, 'PUT', '/revoked/sub/ann');
  return {
    clients,
    log: { key: 'chat', after: log.cursor },
    revoked: true,
    feeds: { 'league/table': first.cursor },
    players: players.map(({ path }) => path)
  };
}

/**
 * @param {import('./server.js').Server} server
 * @param {object} what
 * @param {{id: string, ack: number}[]} what.clients clients with waiting sprites
 * @param {Record<string, string | null>} what.feeds by key, an old cursor; null: this state keeps no cursors
 * @param {string[]} what.players the players' paths
 * @param {{key: string, after: string | null}} [what.log] a log, with its cursor as in `feeds`; states older than logs
 *     have none
 * @param {boolean} [what.revoked] whether grants were revoked
 * @returns {Promise<object>} the answers, which must be the same in the next run
 */
export async function readState(server, { clients, feeds, players, log, revoked }) {
  const seen = { clients: [], feeds: {} };
  for (const { id, ack } of clients) {
    const { body: place } = await server.ask('GET', `/place/${id}`);
    const { body: poll } = await server.poll(id, `ack=${ack}`);
    const { body: throwing } = await server.throw(id, 'up', '{"by":"again"}', 'n=12');
    seen.clients.push({ place, poll, throwing });
  }
  seen.counts = durableCounts(await server.status());
  for (const [key, after] of Object.entries(feeds)) {
    const { body: now } = await get(server, key);
    const { body: later } = after ? await get(server, key, `after=${after}&delta=1`) : {};
    seen.feeds[key] = after ? { now, later } : { value: now.value };
  }
  if (log) {
    seen.log = [];
    for (const query of ['from=start', ...(log.after ? [`after=${log.after}`] : [])]) {
      seen.log.push((await get(server, log.key, query)).body.items);
    }
  }
  if (revoked)
    seen.revoked = (await askAdmin(server, 'GET', '/revoked')).body.map(({ sub }) => sub);
  seen.gone = (await get(server, 'gone')).status;
  // Later versions of the server added `version` and `begun`.
  seen.control = await controlOf(server);
  for (const later of ['version', 'begun']) delete seen.control[later];
  seen.inputs = (await valueOf(server, ({ value }) => value?.y.length === players.length)).value;
  const { inputsRepeated } = await server.status();
  for (const path of players) await server.ask('POST', `${path}?n=3`, { body: '{"y":1}' });
  seen.repeated = (await server.status()).inputsRepeated - inputsRepeated;
  seen.bans = (await askAdmin(server, 'GET', '/bans')).body.map(({ address }) => address);
  return seen;
}
