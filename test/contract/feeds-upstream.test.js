import { join } from 'node:path';

import t from 'tap';

import { askFrom } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import {
  EventStream,
  get,
  parkGet,
  parkMany,
  patch,
  put,
  startUpstream,
  tokenFile
} from '../support/feeds.js';
import { request, resetSocket, Wire } from '../support/http.js';
import { refused, startServer, stopAtEnd } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Feeds that are fetched from an upstream. The upstream is a server in this file; the test writes its answers.
 */

const answerJson = (value) => (request, response) => response.end(JSON.stringify(value));

const start = async (t, upstream, options = {}) => {
  const server = await startServer(t, {
    options: {
      upstream: upstream.url,
      'upstream-every': 1,
      // Long enough for the pause between a test's first request and its watch, on a busy machine too.
      'feed-idle': 3,
      'feed-bytes': 4096,
      hold: 20,
      ...options
    }
  });
  stopAtEnd(t, server);
  return server;
};

t.test('what is asked for is fetched, and again while it is watched', async (t) => {
  let score = 1;
  const upstream = await startUpstream(t, (request, response) => {
    t.equal(request.url, '/api/match/8.json');
    answerJson({ score })(request, response);
  });
  const server = await start(t, upstream);
  const first = await get(server, 'match/8');
  t.strictSame(first.body.value, { score: 1 });
  const watcher = await parkGet(server, 'match/8', `after=${first.body.cursor}`);
  score = 2;
  t.strictSame((await watcher.answer).body.value, { score: 2 });
  await server.until(({ feeds }) => feeds === 0);
  t.pass('forgotten without watchers');
  t.strictSame((await get(server, 'match/8')).body.value, { score: 2 }, 'and fetched anew');
});

t.test(
  'what an earlier run has fetched is fetched again, and forgotten without watchers',
  async (t) => {
    let score = 1;
    const upstream = await startUpstream(t, (...given) => answerJson({ score })(...given));
    const state = join(t.testdir(), 'state');
    const one = await startServer(t, {
      options: { upstream: upstream.url, 'upstream-every': 1, state, drain: 0 }
    });
    const [before] = await Promise.all(['a', 'b'].map((key) => get(one, key)));
    await one.stop();
    const two = await start(t, upstream, { state, drain: 0 });
    const { body } = await get(two, 'a');
    t.strictSame(body, before.body, 'at first the value there is');
    score = 2;
    const watcher = await parkGet(two, 'a', `after=${body.cursor}`);
    t.strictSame((await watcher.answer).body.value, { score: 2 });
    await two.until(({ feeds }) => feeds === 0, 20);
    await get(two, 'a');
    await two.stop();
    const three = await startServer(t, { options: { state, drain: 0 } });
    t.equal(problemOf(await get(three, 'a')), 'unknown-feed', 'without an upstream nothing stays');
  }
);

t.test(
  'a first value that is awaited is fetched, and watchers are told where that fails',
  async (t) => {
    const upstream = await startUpstream(t, answerJson(1));
    const server = await start(t, upstream);
    t.equal((await get(server, 'a', 'after=none')).body.value, 1);
    const stream = await EventStream.open(server, 'b');
    t.equal((await stream.news()).data.value, 1);
    upstream.answer = (request, response) => response.writeHead(500).end();
    t.equal(problemOf(await get(server, 'c', 'after=none')), 'upstream-failed');
    const headers = { Accept: 'text/event-stream' };
    t.equal(problemOf(await get(server, 'd', '', { headers })), 'upstream-failed');
  }
);

t.test('one fetch at a time a key, so many in all', async (t) => {
  const waiting = [];
  const upstream = await startUpstream(t, (request, response) => waiting.push(response));
  const server = await start(t, upstream, { 'upstream-at-once': 2, 'upstream-time': 60 });
  const parked = [
    await parkGet(server, 'a', ''),
    await parkGet(server, 'a', ''),
    await parkMany(server, { feeds: { a: '' } }),
    await parkGet(server, 'b', '')
  ];
  const away = (address, key) => askFrom(server, { address }, 'GET', `/feed/${key}`);
  const others = [away('127.0.1.1', 'c'), away('127.0.1.2', 'd')];
  await server.until(({ fetching, fetchesWaiting }) => fetching === 2 && fetchesWaiting === 2);
  await until(() => upstream.fetches === 2);
  const end = (response) => response.end('7');
  upstream.answer = (request, response) => end(response);
  waiting.forEach(end);
  for (const answer of [...parked.map((one) => one.answer), ...others]) {
    const { body } = await answer;
    t.equal(body.value ?? body.items[0].value, 7);
  }
  t.equal(upstream.maxAtOnce, 2);
});

t.test('a redirect is not followed, wherever it leads', async (t) => {
  const secret = await startUpstream(t, answerJson('secret'));
  const upstream = await startUpstream(t, (request, response) => {
    const [, status, where] = /([0-9]{3})-(own|other)\.json$/.exec(request.url) ?? [];
    const Location = where === 'own' ? '/own' : secret.url.replace('{key}', 'key');
    if (status === undefined) answerJson('own')(request, response);
    else response.writeHead(Number(status), { Location }).end();
  });
  const server = await start(t, upstream);
  for (const key of ['301-other', '302-own', '303-other', '307-own', '308-other']) {
    const answer = await get(server, key);
    t.equal(problemOf(answer), 'upstream-failed', key);
    t.match(answer.body.detail, /redirect/);
  }
  t.equal(secret.fetches, 0);
  t.equal(upstream.fetches, 5);
  const reason = /"302-own","reason":"it answered 302, a redirect to \/own, .* --upstream [^"]*"/;
  await until(() => reason.test(Buffer.concat(server.errors)));
});

t.test('conditional requests', async (t) => {
  let conditional = 0;
  const upstream = await startUpstream(t, (request, response) => {
    response.setHeader('ETag', '"one"');
    if (request.headers['if-none-match'] === '"one"') {
      conditional += 1;
      response.writeHead(304).end();
    } else {
      response.end('[1]');
    }
  });
  const server = await start(t, upstream);
  const { cursor } = (await get(server, 'a')).body;
  const watcher = await parkGet(server, 'a', `after=${cursor}`);
  await server.until(({ fetchesUnchanged }) => fetchesUnchanged > 0);
  t.ok(conditional > 0);
  await watcher.wire.destroy();
});

t.test(
  'a source that closes a kept connection when it is asked again has not failed',
  async (t) => {
    const asked = new WeakSet();
    const upstream = await startUpstream(t, (request, response) => {
      if (asked.has(request.socket)) return resetSocket(request.socket);
      asked.add(request.socket);
      return answerJson(1)(request, response);
    });
    const server = await start(t, upstream, { 'feed-threads': 1 });
    for (const key of ['a', 'b', 'c']) t.equal((await get(server, key)).body.value, 1);
  }
);

/** Writes a piece over and over, as long as the reader reads. */
function flood(stream, piece) {
  const more = () => {
    while (!stream.destroyed && stream.write(piece));
  };
  stream.on('drain', more);
  more();
}

/** Answers longer than --feed-bytes. */
const floodAnswers = {
  'gigabytes, without an end': (request, response) => flood(response, Buffer.alloc(65536, ' ')),
  'gigabytes in chunks of nothing': ({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    flood(socket, Buffer.from('1\r\n \r\n'.repeat(10_000)));
  }
};

/** Bad answers. */
const badAnswers = {
  'a 404': (request, response) => response.writeHead(404).end('{}'),
  'a 500': (request, response) => response.writeHead(500).end(),
  'no JSON': (request, response) => response.end('<html>'),
  nothing: (request, response) => response.end(),
  'an end in the middle': (request, response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('{"a":');
    setTimeout(() => response.destroy(), 10);
  },
  'an end behind a value, before its length': (request, response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('{"a":1}');
    setTimeout(() => response.destroy(), 10);
  },
  'a length that is a lie': ({ socket }) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 9\r\n\r\n{"a":1}');
  },
  'a length that is too short': ({ socket }) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{"a":1}');
  },
  'no HTTP': ({ socket }) => socket.end('hello'),
  'a time without an end': () => {},
  'a time without an end, in the middle': (request, response) => {
    response.writeHead(200, { 'Content-Length': 100 });
    response.write('{"a":');
  },
  'a reset': ({ socket }) => resetSocket(socket),
  ...floodAnswers
};

t.test('a first fetch that fails', async (t) => {
  const server = await start(t, await startUpstream(t, badAnswers['a 500']));
  for (let n = 0; n < 3; n += 1) t.equal((await get(server, 'a')).status, 502);
  const many = await server.ask('POST', '/feeds', { body: '{"feeds":{"a":""}}' });
  t.strictSame(many.body.items, [{ feed: 'a', problem: 'upstream-failed' }]);
  t.ok((await server.status()).fetches < 4, 'the upstream is not asked at every request');
  const headers = { Accept: 'text/event-stream' };
  t.equal(problemOf(await get(server, 'b', '', { headers })), 'upstream-failed');
});

t.test('what is more than may be is read no further', async (t) => {
  for (const [why, answer] of Object.entries(floodAnswers)) {
    const server = await start(t, await startUpstream(t, answer));
    t.equal(problemOf(await get(server, 'a')), 'upstream-failed', why);
    const reason = /"reason":"it answered more than 4096 bytes"/;
    await until(() => reason.test(Buffer.concat(server.errors)));
  }
});

t.test('a source that fails later leaves the last value standing', async (t) => {
  let version = 1;
  let fails = false;
  const failed = Object.keys(badAnswers).map(() => 0);
  const upstream = await startUpstream(t, (request, response) => {
    const [, index] = /f([0-9]+)\.json$/.exec(request.url);
    if (!fails) return answerJson([version])(request, response);
    failed[index] += 1;
    return Object.values(badAnswers)[index](request, response);
  });
  // Long enough that a pause of the machine fails no good fetch.
  const server = await start(t, upstream, { 'upstream-time': 4 });
  const streams = await Promise.all(failed.map((_, n) => EventStream.open(server, `f${n}`)));
  for (const stream of streams) t.strictSame((await stream.news()).data.value, [1]);
  fails = true;
  await until(() => failed.every((times) => times >= 2), 'each has failed, and is tried again', 60);
  for (const [n, why] of Object.keys(badAnswers).entries()) {
    t.strictSame((await get(server, `f${n}`)).body.value, [1], why);
  }
  t.ok((await server.status()).fetchesFailed >= failed.length);
  version = 2;
  fails = false;
  for (const stream of streams) {
    t.strictSame((await stream.news()).data.value, [2], 'and it comes back by itself');
    await stream.wire.destroy();
  }
});

t.test('a fetched feed that is published is the publisher’s from then on', async (t) => {
  const upstream = await startUpstream(t, answerJson('fetched'));
  const server = await start(t, upstream, { 'publish-token-file': tokenFile(t) });
  const { cursor } = (await get(server, 'a')).body;
  const watcher = await parkGet(server, 'a', `after=${cursor}`);
  await put(server, 'a', '"published"');
  t.equal((await watcher.answer).body.value, 'published');
  for (const key of ['as-it-is', 'by-a-patch']) await get(server, key);
  await put(server, 'as-it-is', '"fetched"');
  await patch(server, 'by-a-patch', 'merge-patch', '"fetched"');
  upstream.answer = answerJson('fetched later');
  const { fetches } = await server.status();
  await get(server, 'b');
  await server.until((status) => status.feeds === 3);
  t.equal((await get(server, 'a')).body.value, 'published');
  for (const key of ['as-it-is', 'by-a-patch']) {
    t.equal((await get(server, key)).body.value, 'fetched', `published ${key}`);
  }
  t.ok((await server.status()).fetches <= fetches + 2, 'it is not fetched any more');
});

t.test('what is published while it is being fetched stands', async (t) => {
  let finish;
  const upstream = await startUpstream(t, (request, response) => {
    finish = () => response.end('"fetched"');
  });
  const options = { 'publish-token-file': tokenFile(t), 'upstream-at-once': 1 };
  const server = await start(t, upstream, options);
  const first = await parkGet(server, 'a', '');
  await until(() => upstream.fetches === 1);
  const { cursor } = (await put(server, 'a', '"published"')).body;
  t.equal((await first.answer).body.value, 'published', 'a watcher need not wait for the fetch');
  finish();
  upstream.answer = answerJson(1);
  // Fetches run one at a time: this one begins after the other.
  t.equal((await get(server, 'b')).body.value, 1);
  const { body } = await get(server, 'a');
  t.match(body, { value: 'published', cursor });
});

t.test('feeds fetched for one address', async (t) => {
  const upstream = await startUpstream(t, answerJson(1));
  const server = await start(t, upstream, {
    ...{ 'address-feeds': 2, 'publish-token-file': tokenFile(t), hold: 120 }
  });
  const at = (address, key) => askFrom(server, { address }, 'GET', `/feed/${key}`);
  const hostile = (key) => at('127.0.6.6', key);
  /** Watches a feed, so that the server does not forget it. */
  const watch = async (key) => {
    const { cursor } = (await hostile(key)).body;
    const { watching } = await server.status();
    const wire = await Wire.open(server.port, server.host, '127.0.6.6');
    wire.send(request('GET', `/feed/${key}?after=${cursor}`));
    await server.until((now) => now.watching > watching);
    return wire;
  };
  const wires = [await watch('a')];
  t.equal((await at('127.0.1.1', 'b')).body.value, 1);
  t.equal((await hostile('b')).body.value, 1, 'what others have asked for is not its');
  wires.push(await watch('c'));
  const refusal = await hostile('d');
  t.equal(problemOf(refusal), 'too-many-fetches');
  t.equal(refusal.status, 429);
  t.match(refusal.headers['retry-after'], /^[1-9]\d*$/);
  const many = { address: '127.0.6.6', body: '{"feeds":{"a":"","d":"","e":""}}' };
  const { items } = (await askFrom(server, many, 'POST', '/feeds')).body;
  t.strictSame(
    items.map(({ value, problem }) => value ?? problem),
    [1, 'too-many-fetches', 'too-many-fetches']
  );
  t.equal((await at('127.0.1.1', 'd')).body.value, 1, 'others are served');
  await put(server, 'a', 2);
  wires.push(await watch('e'));
  t.pass('what is published is not its any more');
  t.equal(problemOf(await hostile('f')), 'too-many-fetches');
  await Promise.all(wires.map((wire) => wire.destroy()));
  await server.until(({ feeds }) => feeds === 1);
  t.equal((await hostile('f')).body.value, 1, 'nor what was forgotten');
});

t.test('strangers cannot fill the table with keys that are none', async (t) => {
  const upstream = await startUpstream(t, (request, response) => response.writeHead(404).end());
  const server = await start(t, upstream, { feeds: 4, 'publish-token-file': tokenFile(t) });
  for (let i = 0; i < 12; i += 1) {
    t.equal(problemOf(await get(server, `k${i}`)), 'upstream-failed');
  }
  await put(server, 'ours', 1);
  t.ok((await server.status()).feeds <= 4);
  await refused(t, server, 'bad-key', () => get(server, '../secret'));
});
