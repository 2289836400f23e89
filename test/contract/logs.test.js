import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { problemOf } from '../support/contract.js';
import {
  append,
  authorized,
  EventStream,
  get,
  keptFeeds,
  parkGet,
  put,
  remove,
  tokenFile
} from '../support/feeds.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Logs over the wire: items in order and once, what is kept, other kinds, and that an append is a promise. */

/** The next number of a reader that hears all in order; jumps only where it is said. */
class Witness {
  heard = [];
  gaps = 0;
  cursor = 'none';

  constructor(name) {
    this.name = name;
  }

  hear(t, { from, cursor, gap, items }) {
    if (from !== undefined && gap === undefined) t.equal(from, this.cursor, `${this.name}: from`);
    const numbers = items.map(({ n }) => n);
    const last = this.heard.at(-1) ?? 0;
    if (gap) this.gaps += 1;
    const wrong = numbers.find((n, i) =>
      i > 0 ? n !== numbers[i - 1] + 1 : gap ? n <= last + 1 : n !== last + 1
    );
    if (wrong !== undefined) t.fail(`${this.name}: ${wrong} after ${last} in ${numbers}`);
    this.heard.push(...numbers);
    this.cursor = cursor;
  }
}

/** Followers of a log, each by another way, until `over` says so. */
function followAll(t, server, key) {
  const witnesses = ['poll', 'list', 'stream', 'client'].map((name) => new Witness(name));
  const [poll, list, stream, client] = witnesses;
  let over = false;
  const byPoll = async () => {
    while (!over) {
      const { body } = await get(server, key, `after=${poll.cursor}&hold=5&delta=1`);
      if (body.items) poll.hear(t, body);
    }
  };
  const byList = async () => {
    while (!over) {
      const wanted = { hold: 5, feeds: { [key]: list.cursor } };
      const { body } = await server.ask('POST', '/feeds', { body: JSON.stringify(wanted) });
      for (const item of body.items) if (item.items) list.hear(t, item);
    }
  };
  const byStream = async () => {
    const events = await EventStream.open(server, key, { query: 'after=none' });
    while (!over) {
      const event = await events.next();
      if (event === null) return;
      if (!event.data?.items) continue;
      t.equal(event.id, event.data.cursor);
      stream.hear(t, event.data);
    }
    events.wire.destroy?.();
  };
  const feeds = new Feeds({ base: server.url ?? `http://127.0.0.1:${server.port}` });
  feeds.follow(key, (items, news) => items.length > 0 && client.hear(t, { items, ...news }));
  const ways = [byPoll(), byList(), byStream()];
  for (const way of ways) way.catch((error) => over || t.error(error));
  return {
    witnesses,
    async end() {
      over = true;
      feeds.close();
    }
  };
}

for (const workers of [0, 2]) {
  t.test(`with ${workers} workers: each item once and in order`, async (t) => {
    const server = await startServer(t, {
      options: {
        ...{ 'publish-token-file': tokenFile(t), workers, drain: 0 },
        ...{ 'log-items': 50, 'log-bytes': 2000, 'answer-bytes': 1024 }
      }
    });
    const { witnesses, end } = followAll(t, server, 'chat');
    await server.until(({ watching }) => watching === 4);
    let n = 0;
    for (let i = 0; i < 30; i += 1) {
      // Some one by one, some many at once: those are told together.
      for (let many = i % 3 === 0 ? 1 : 40; many > 0; many -= 1) {
        n += 1;
        const { status, body } = await append(server, 'chat', { n, fill: 'x'.repeat(n % 90) });
        t.equal(status, n === 1 ? 201 : 200);
        t.match(body.cursor, /^e[0-9a-z]+-[0-9]+$/);
      }
    }
    const isThrough = ({ heard }) => heard.at(-1) === n;
    await until(() => witnesses.every(isThrough));
    for (const { name, heard, gaps } of witnesses) {
      t.ok(gaps > 0 || heard.length === n, `${name}: ${heard.length} of ${n}, ${gaps} gaps`);
    }
    const { body: kept } = await get(server, 'chat', 'from=start');
    t.equal(kept.gap, true, 'older ones are gone');
    const { body: first } = await get(server, 'chat', 'after=none');
    t.strictSame(first, kept);
    const { body: last } = await get(server, 'chat', 'last=2');
    t.strictSame(
      last.items.map((item) => item.n),
      [n - 1, n]
    );
    t.equal(last.gap, undefined);
    t.equal((await get(server, 'chat', 'last=1000000')).body.gap, true);
    const { published } = await server.status();
    t.equal(published, n);
    await remove(server, 'chat');
    await until(async () => (await server.status()).feedMemory === 0 || workers > 0);
    await end();
    await server.stop();
  });
}

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
  // A foreign cursor, and one that no server has counted to: what is kept, and that there is a gap.
  for (const after of [
    'e1-1',
    'x',
    `${cursor.split('-')[0]}-9007199254740993`,
    `${cursor.split('-')[0]}-18446744073709551617`
  ]) {
    const { body } = await get(server, 'log', `after=${after}`);
    t.strictSame(body, { feed: 'log', from: 'none', cursor, gap: true, items: [1] }, after);
  }
  // Canonical, each one an item of its own.
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
  const list = await server.ask('GET', '/feeds', { headers });
  t.strictSame(
    list.body.feeds
      .map(({ feed, kind }) => [feed, kind])
      .filter(([feed]) => !feed.startsWith('arena')),
    [
      ['log', 'log'],
      ['value', 'value']
    ]
  );
  // Deleted, the key may be the other kind.
  const watcher = await parkGet(
    server,
    'log',
    `after=${list.body.feeds.find(({ feed }) => feed === 'log').cursor}`
  );
  await remove(server, 'log');
  t.equal((await watcher.answer).status, 404);
  t.equal((await put(server, 'log', 1)).status, 201);
  await server.stop();
});

t.test('an append is a promise: killed, no item is lost, and cursors go on', async (t) => {
  const options = {
    ...keptFeeds(t),
    ...{ drain: 0, 'journal-bytes': 1 << 16, 'log-items': 100000, 'answer-bytes': 2048 }
  };
  const promised = [];
  let heard = [];
  let cursor = 'none';
  /** Takes what is new, in parts. */
  const hear = async (server) => {
    for (;;) {
      const { body } = await get(server, 'chat', `after=${cursor}&hold=5`);
      if (!body.items) return;
      t.equal(body.from, cursor);
      t.equal(body.gap, undefined);
      heard.push(...body.items.map(({ n }) => n));
      cursor = body.cursor;
      if (promised.every((n) => n <= heard.at(-1))) return;
    }
  };
  let n = 0;
  for (let life = 0; life < 4; life += 1) {
    const server = await startServer(t, { options });
    if (promised.length > 0) await hear(server);
    let over = false;
    const appending = [1, 2].map(async () => {
      while (!over) {
        const item = { n: (n += 1), fill: 'x'.repeat(n % 200) };
        try {
          const { status } = await append(server, 'chat', item);
          if (status < 300) promised.push(item.n);
        } catch {
          return;
        }
      }
    });
    await server.until(({ published }) => published > 30 + life * 40);
    if (life < 3) server.child.kill('SIGKILL');
    over = true;
    await Promise.all(appending);
    if (life === 3) {
      await hear(server);
      await server.stop();
    } else {
      await server.ended();
    }
  }
  const server = await startServer(t, { options });
  const all = [];
  for (let after = 'none', more = true; more;) {
    const { body } = await get(server, 'chat', `after=${after}&hold=5`);
    all.push(...body.items.map((item) => item.n));
    after = body.cursor;
    more = after !== (await get(server, 'chat', 'last=1')).body.cursor;
  }
  t.equal(new Set(all).size, all.length, 'none twice');
  t.strictSame(
    promised.filter((one) => !all.includes(one)),
    [],
    'none is lost'
  );
  t.strictSame(heard, all.slice(0, heard.length), 'what was heard is what is there, in its order');
  t.ok(all.length > 100, `${all.length} items`);
  // With other bounds the state is read, and they hold.
  await server.stop();
  const smaller = await startServer(t, { options: { ...options, 'log-items': 3 } });
  const { body: kept } = await get(smaller, 'chat');
  t.strictSame([kept.items.map((item) => item.n), kept.gap], [all.slice(-3), true]);
  await append(smaller, 'chat', { n: 'newest' });
  const { body } = await get(smaller, 'chat', 'from=start');
  t.equal(body.items.length, 3);
  t.equal(body.gap, true);
  await smaller.kill();
  const again = await startServer(t, { options });
  t.strictSame((await get(again, 'chat')).body, body);
  await again.stop();
});
