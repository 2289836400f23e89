import assert from 'node:assert/strict';

import {
  authorized,
  EventStream,
  get,
  parkGet,
  put,
  startUpstream,
  tokenFile
} from '../support/feeds.js';
import { request, resetSocket } from '../support/http.js';
import { resident } from '../support/processes.js';
import { stopwatch } from './scene.js';

/** Feeds whose sources fail: upstreams and publishers. */

const MEGABYTE = 2 ** 20;

/** What an upstream may do instead of answering. */
const misdeeds = {
  hangs: () => {},
  'hangs in the middle': (request, response) => {
    response.writeHead(200, { 'Content-Length': 1000 });
    response.write('{"a":');
  },
  'says more than it sends': (request, response) => {
    response.writeHead(200, { 'Content-Length': 1000 });
    response.write('{"a":1}');
    setTimeout(() => response.destroy(), 50);
  },
  'says less than it sends': ({ socket }) => {
    socket.end('HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n{"a":1}');
  },
  'answers gigabytes': (request, response) => {
    const piece = Buffer.alloc(MEGABYTE, ' ');
    const more = () => {
      while (!response.destroyed && response.write(piece));
    };
    response.on('drain', more);
    more();
  },
  'answers gigabytes of nothing': ({ socket }) => {
    socket.write('HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n');
    const piece = Buffer.from('1\r\n \r\n'.repeat(10000));
    const more = () => {
      while (!socket.destroyed && socket.write(piece));
    };
    socket.on('drain', more);
    more();
  },
  resets: ({ socket }) => resetSocket(socket)
};

export const upstream = {
  name: 'an upstream that hangs, lies, floods and flaps',
  promise:
    'the last value stands and no watcher is told of a failure; other feeds are served meanwhile; ' +
    'memory stays; what is new comes by itself',
  async run(scene) {
    let version = 1;
    const well = (request, response) => response.end(JSON.stringify({ version }));
    const source = await startUpstream(scene, well);
    const server = await scene.server({
      upstream: source.url,
      'upstream-every': 1,
      'upstream-time': 1,
      'publish-token-file': tokenFile(scene)
    });
    await put(server, 'ours', 0);
    const stream = await EventStream.open(server, 'a');
    assert.deepEqual((await stream.news()).data.value, { version: 1 });
    const before = resident(server.pid);
    const seen = [];
    let longest = 0;
    for (const [what, misdeed] of Object.entries(misdeeds)) {
      source.answer = misdeed;
      const { fetchesFailed } = await server.status();
      await server.until((status) => status.fetchesFailed > fetchesFailed, 60);
      assert.deepEqual((await get(server, 'a')).body.value, { version }, what);
      const took = stopwatch();
      await put(server, 'ours', version);
      longest = Math.max(longest, took());
      // It flaps: well for a moment, with something new.
      version += 1;
      source.answer = well;
      assert.deepEqual((await stream.news()).data.value, { version }, `back after it ${what}`);
      seen.push(what);
    }
    const grown = (resident(server.pid) - before) / MEGABYTE;
    assert.ok(grown < 200, `${grown} MiB more are resident`);
    const { fetching, feeds, fetchesFailed } = await server.status();
    assert.equal(feeds, 2);
    assert.ok(fetching <= 1, 'no fetch is left hanging');
    await stream.wire.destroy();
    await server.until(({ watching }) => watching === 0);
    return (
      `${seen.length} kinds (${seen.join(', ')}), ${fetchesFailed} fetches failed, each version ` +
      `of ${version} came; ${Math.round(grown)} MiB more resident; ` +
      `a publication beside it took at most ${longest} s`
    );
  }
};

export const publisher = {
  name: 'a publisher killed half way',
  promise:
    'the value stands and no watcher is told; the next publication succeeds; nothing is held',
  async run(scene) {
    const options = { 'publish-token-file': tokenFile(scene), 'head-time': 2, 'body-time': 3 };
    const server = await scene.server(options);
    const { cursor } = (await put(server, 'a', { score: 1 })).body;
    const watcher = await parkGet(server, 'a', `after=${cursor}`);
    const whole = request('PUT', '/feed/a', {
      body: JSON.stringify({ score: 2, padding: 'x'.repeat(MEGABYTE / 2) }),
      headers: authorized()
    });
    // At every place of it, by a reset, by an end, and by silence.
    const ends = ['reset', 'destroy', 'half'];
    const wires = [];
    for (let i = 0; i < 60; i += 1) {
      const wire = await server.wire();
      wire.send(whole.subarray(0, 1 + Math.floor(((whole.length - 2) * i) / 60)));
      wires.push(wire);
    }
    await Promise.all(wires.map((wire, i) => wire[ends[i % 3]]()));
    const silent = await server.wire();
    silent.send(whole.subarray(0, whole.length / 2));
    await silent.closed();
    const { published, watching, heldBytes } = await server.until(
      ({ publishing, heldBytes: held }) => publishing === 0 && held === 0
    );
    assert.deepEqual(
      { published, watching, heldBytes },
      { published: 1, watching: 1, heldBytes: 0 }
    );
    assert.equal((await get(server, 'a')).body.cursor, cursor, 'the value stands');
    // Killed behind the last byte: it may be published, and then only whole.
    const last = await server.wire();
    last.send(whole);
    await last.reset();
    const second = (await put(server, 'a', { score: 3 })).body.cursor;
    const told = (await watcher.answer).body;
    assert.ok([2, 3].includes(told.value.score), 'the watcher hears of what is whole');
    assert.deepEqual((await get(server, 'a')).body.value, { score: 3 });
    await server.leaveNothing();
    return `61 publications broken off, none taken; then ${cursor} to ${second}`;
  }
};
