import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { problemOf } from '../support/contract.js';
import {
  append,
  authorized,
  get,
  durableFeedOptions,
  parkGet,
  put,
  remove,
  tokenFile
} from '../support/feeds.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Logs over the wire: kept items, where reading starts, the key's kind, and durable appends. The simulation checks that
 * every watcher gets each item once and in order (test/native/simulated_feeds.h).
 */

const numbers = ({ items }) => items.map(({ n }) => n);

t.test('a log is read from where a client is, from its start, or so many items back', async (t) => {
  const server = await startServer(t, {
    options: { 'publish-token-file': tokenFile(t), drain: 0, 'log-items': 50 }
  });
  const awaits = await parkGet(server, 'chat', 'after=none');
  const followed = [];
  const feeds = new Feeds({ base: server.url });
  feeds.follow('chat', (items) => followed.push(...numbers({ items })));
  const cursors = [];
  for (let n = 1; n <= 60; n += 1) {
    const { status, body } = await append(server, 'chat', { n });
    t.equal(status, n === 1 ? 201 : 200);
    t.match(body.cursor, /^e[0-9a-z]+-[0-9]+$/);
    cursors.push(body.cursor);
  }
  t.equal(numbers((await awaits.answer).body)[0], 1, 'a client that waits hears the first');
  await until(() => followed.at(-1) === 60);
  t.equal(new Set(followed).size, followed.length, 'a program hears none twice');
  feeds.close();
  const read = async (query) => (await get(server, 'chat', query)).body;
  const rest = await read(`after=${cursors[57]}`);
  t.strictSame(rest, {
    ...{ feed: 'chat', from: cursors[57], cursor: cursors[59] },
    items: [{ n: 59 }, { n: 60 }]
  });
  const keptItems = await read('from=start');
  t.strictSame([numbers(keptItems).length, keptItems.gap], [50, true], 'older ones are gone');
  for (const query of ['', 'after=none', `after=${cursors[0]}`, 'last=1000000']) {
    t.strictSame(await read(query), keptItems, query);
  }
  const last = await read('last=2');
  t.strictSame([numbers(last), last.gap], [[59, 60], undefined]);
  t.equal((await server.status()).published, 60);
  await remove(server, 'chat');
  t.equal((await server.status()).feedMemory, 0);
  await server.stop();
});

t.test('what is refused, and says what to do', async (t) => {
  const server = await startServer(t, {
    options: { 'publish-token-file': tokenFile(t), 'log-bytes': 200, drain: 0, arena: 'hall' }
  });
  await append(server, 'log', 1);
  await put(server, 'value', 1);
  const { cursor } = (await get(server, 'log')).body;
  const headers = authorized({ 'Content-Type': 'application/merge-patch+json' });
  const long = (length) => `"${'x'.repeat(length)}"`;
  const changes = {
    'other-kind': [
      ['PUT', 'log', '1'],
      ['PATCH', 'log', '{}'],
      ['POST', 'value', '1']
    ],
    'bad-value': ['{', '', '[1e999]'].map((body) => ['POST', 'log', body]),
    'item-too-large': [199, 2 ** 20].map((length) => ['POST', 'log', long(length)]),
    'reserved-feed': [['POST', 'arena/hall', '1']],
    'bad-key': [['POST', 'a//b', '1']]
  };
  for (const [problem, requests] of Object.entries(changes)) {
    for (const [method, key, body] of requests) {
      const answer = await server.ask(method, `/feed/${key}`, { body, headers });
      t.equal(problemOf(answer), problem, `${method} ${key}`);
    }
  }
  t.equal(problemOf(await append(server, 'log', 1, {})), 'bad-token');
  const reads = {
    'bad-from': [
      ...['from=end', 'from=', 'from=start&from=start', 'last=0', 'last=-1', 'last=01'],
      ...['last=1000001', 'last=9007199254740993', 'last=1&last=1', 'last=', 'last=x'],
      ...['from=start&last=1', `last=1&after=${cursor}`]
    ],
    'bad-cursor': ['after=a_b']
  };
  for (const [problem, queries] of Object.entries(reads)) {
    for (const query of queries)
      t.equal(problemOf(await get(server, 'log', query)), problem, query);
  }
  const stream = { headers: { Accept: 'text/event-stream' } };
  for (const [query, more] of [['from=start'], ['last=3'], ['last=3', stream]]) {
    t.equal(problemOf(await get(server, 'value', query, more)), 'not-a-log');
  }
  t.equal(problemOf(await get(server, 'value', 'last=x')), 'bad-from');
  t.equal(problemOf(await get(server, 'nothing', 'last=3')), 'unknown-feed');
  // A foreign cursor, or one beyond any real version: the answer has all kept items, and `gap`.
  const [epoch] = cursor.split('-');
  const beyond = ['9007199254740993', '18446744073709551617'].map((one) => `${epoch}-${one}`);
  for (const after of ['e1-1', 'x', ...beyond]) {
    const { body } = await get(server, 'log', `after=${after}`);
    t.strictSame(body, { feed: 'log', from: 'none', cursor, gap: true, items: [1] }, after);
  }
  // Items are canonical. Equal items stay separate.
  for (let i = 0; i < 2; i += 1) {
    const body = '{ "b": 1, "a": 9007199254740993 }';
    await server.ask('POST', '/feed/log', { body, headers });
  }
  const { bytes } = await get(server, 'log', `after=${cursor}`);
  t.match(bytes.toString(), '"items":[{"a":9007199254740992,"b":1},{"a":9007199254740992,"b":1}]}');
  const { headers: head } = await server.ask('HEAD', '/feed/log');
  const { headers: whole } = await get(server, 'log');
  t.equal(head['content-length'], whole['content-length']);
  const { headers: part } = await server.ask('HEAD', '/feed/log?last=1');
  t.equal(part['content-length'], undefined, 'that of all is another');
  t.equal((await server.ask('HEAD', '/feed/value?last=1')).status, 400);
  const { feeds } = (await server.ask('GET', '/feeds', { headers })).body;
  const byKey = Object.fromEntries(feeds.map(({ feed, ...more }) => [feed, more]));
  t.strictSame([byKey.log.kind, byKey.value.kind], ['log', 'value']);
  // After a deletion the key may be of the other kind.
  const watcher = await parkGet(server, 'log', `after=${byKey.log.cursor}`);
  await remove(server, 'log');
  t.equal((await watcher.answer).status, 404);
  t.equal((await put(server, 'log', 1)).status, 201);
  await server.stop();
});

t.test('an append is a promise: killed, no item is lost, and cursors go on', async (t) => {
  const options = { ...durableFeedOptions(t), drain: 0 };
  const one = await startServer(t, { options });
  const cursors = [];
  for (let n = 1; n <= 9; n += 1) {
    cursors.push((await append(one, 'chat', { n, fill: 'x'.repeat(n * 20) })).body.cursor);
  }
  const before = (await get(one, 'chat')).body;
  await one.kill();
  const two = await startServer(t, { options });
  t.strictSame((await get(two, 'chat')).body, before);
  t.strictSame(numbers((await get(two, 'chat', `after=${cursors[6]}`)).body), [8, 9]);
  // A start with other bounds reads the state, and applies the new bounds.
  await two.stop();
  const smaller = await startServer(t, { options: { ...options, 'log-items': 3 } });
  const { body: kept } = await get(smaller, 'chat');
  t.strictSame([numbers(kept), kept.gap], [[7, 8, 9], true]);
  await append(smaller, 'chat', { n: 10 });
  const { body } = await get(smaller, 'chat', 'from=start');
  t.strictSame([numbers(body), body.gap], [[8, 9, 10], true]);
  await smaller.kill();
  const again = await startServer(t, { options });
  t.strictSame((await get(again, 'chat')).body, body);
  await again.stop();
});
