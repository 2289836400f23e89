import { EventEmitter } from 'node:events';
import { setImmediate as immediate, setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { Pipeline } from '../../lib/http/pipelines.js';
import { checkAnswer, problemOf } from '../support/contract.js';
import { put, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { resident } from '../support/processes.js';
import { DOORS } from '../support/server.js';
import { startWithEveryWay } from '../support/ways.js';

/**
 * Requests that are sent without waiting for an answer, to Node's servers: in their order, one at a
 * time, and of no more cost than others.
 */

/** A throw that the front door leaves to Node's server. */
const chunkedThrow = (id, body = '{}') =>
  Buffer.from(
    `POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n` +
      `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`
  );

/** The shortest request that Node's server answers with a page of words. */
const ODD = Buffer.from('GET /a HTTP/1.1\r\nHost:localhost\r\n\r\n');

const read = async (wire) => checkAnswer(await wire.read());

for (const door of DOORS) {
  t.test(`what is sent ahead, "${door}"`, async (t) => {
    const { server, ways } = await startWithEveryWay(t, door, {
      'publish-token-file': tokenFile(t)
    });
    const { admin, ...wire } = ways;
    // The threads that make feeds are there from the first one on.
    await put(server, 'a', { n: 0 });
    server.baseline = undefined;
    await server.noConnectionBut(0);
    server.baseline = server.descriptors();

    for (const [way, { open }] of Object.entries(wire)) {
      t.test(`a throw and the leave behind it are served in order, by ${way}`, async (t) => {
        const id = await server.join();
        const before = await server.status();
        const wire = await open();
        wire.send(
          Buffer.concat([
            chunkedThrow(id),
            request('POST', `/throw/${id}/up`, { body: '{}' }),
            chunkedThrow(id),
            request('POST', `/leave/${id}`),
            chunkedThrow(id)
          ])
        );
        const answers = [];
        for (let i = 0; i < 5; i += 1) answers.push((await read(wire)).status);
        t.strictSame(answers, [202, 202, 202, 204, 404]);
        t.equal((await server.status()).thrown - before.thrown, 3);
        await wire.destroy();
      });

      t.test(`a request with garbage behind it keeps its answer, by ${way}`, async (t) => {
        const id = await server.join();
        for (const good of [chunkedThrow(id), request('POST', `/leave/${id}`)]) {
          const wire = await open();
          wire.send(Buffer.concat([good, good, Buffer.from('nonsense\r\n\r\n')]));
          t.match(String((await read(wire)).status), /20[24]/);
          t.match(String((await read(wire)).status), /20[24]/);
          t.equal(problemOf(await read(wire)), 'bad-request');
          await wire.closed();
          await wire.destroy();
        }
      });

      t.test(`garbage in one piece with a body leaves its answer, by ${way}`, async (t) => {
        const id = await server.join();
        // What Node's parser is given with the body has the garbage in it.
        const put = 'Host: x\r\nConnection: keep-alive, x\r\nContent-Length: 2\r\nUpgrade: x\r\n';
        for (let n = 0; n < 5; n += 1) {
          const wire = await open();
          wire.send(`POST /throw/${id}/left?n=${n + 1} HTTP/1.1\r\n${put}\r\n{}nonsense\r\n\r\n`);
          t.equal((await read(wire)).status, 202);
          t.equal(problemOf(await read(wire)), 'bad-request');
          await wire.closed();
          await wire.destroy();
        }
        await server.leave(id);
      });

      t.test(`a request that is broken off behind another one gets a 400, by ${way}`, async (t) => {
        const id = await server.join();
        const wire = await open();
        const [head] = chunkedThrow(id).toString().split('\r\n\r\n');
        wire.send(Buffer.concat([chunkedThrow(id), Buffer.from(`${head}\r\n\r\nnonsense\r\n`)]));
        t.equal((await read(wire)).status, 202);
        t.equal(problemOf(await read(wire)), 'bad-request');
        await wire.destroy();
        await server.leave(id);
      });

      t.test(`CONNECT is answered in its turn, by ${way}`, async (t) => {
        const id = await server.join();
        const wire = await open();
        wire.send(
          Buffer.concat([chunkedThrow(id), Buffer.from('CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n')])
        );
        t.equal((await read(wire)).status, 202);
        t.equal(problemOf(await read(wire)), 'method-not-allowed');
        await wire.destroy();
        await server.leave(id);
      });

      t.test(`no header is lost among thousands, by ${way}`, async (t) => {
        const id = await server.join();
        const wire = await open();
        // More than Node keeps by itself, and those that count are the last.
        const many = 'a:\r\n'.repeat(2500);
        wire.send(`POST /leave/${id} HTTP/1.1\r\n${many}Host: x\r\nContent-Length: 0\r\n\r\n`);
        t.equal((await read(wire)).status, 204, 'one Host, at the end');
        wire.send(`POST /leave/${id} HTTP/1.1\r\nHost: x\r\n${many}Host: y\r\n\r\n`);
        t.equal(problemOf(await read(wire)), 'bad-request', 'a second Host, at the end');
        await wire.destroy();
      });
    }

    t.test('requests behind a parked poll wait for its answer', async (t) => {
      for (const { open } of [ways.main, ways.tls]) {
        const id = await server.join();
        const { polls } = await server.status();
        const wire = await open();
        wire.send(Buffer.concat([ODD, request('GET', `/poll/${id}`), chunkedThrow(id), ODD]));
        t.equal((await read(wire)).status, 404);
        await server.until((now) => now.polls > polls);
        await server.throw(id, 'left', '{"n":1}');
        t.strictSame((await read(wire)).body.sprites[0].sprite, { n: 1 });
        t.equal((await read(wire)).body.state, 'queued');
        t.equal((await read(wire)).status, 404);
        await wire.destroy();
        await server.leave(id);
      }
    });

    t.test('a parked poll goes with its peer, whatever was sent behind it', async () => {
      for (const { open } of [ways.main, ways.tls]) {
        const id = await server.join();
        const { polls } = await server.status();
        const wire = await open();
        wire.send(Buffer.concat([ODD, request('GET', `/poll/${id}`), ODD, ODD])).half();
        await server.until((now) => now.polls > polls && now.parked === 0);
        await wire.destroy();
      }
    });

    t.test('so do watches of feeds, by whatever method', async () => {
      const { cursor } = (await put(server, 'a', { n: 0 })).body;
      const body = JSON.stringify({ feeds: { a: cursor } });
      for (const { open } of [ways.main, ways.tls]) {
        for (const watch of [
          request('GET', `/feed/a?after=${cursor}`),
          request('GET', '/feed/a', { headers: { Accept: 'text/event-stream' } }),
          request('POST', '/feeds', { body })
        ]) {
          const { feedPolls } = await server.status();
          const wire = await open();
          wire.send(Buffer.concat([ODD, watch]));
          await read(wire);
          await server.until((now) => now.feedPolls > feedPolls);
          wire.half();
          await server.until(({ watching }) => watching === 0);
          await wire.destroy();
        }
        // Who has ended his half before the answer waits is gone as well.
        const { feedPolls } = await server.status();
        const wire = await open();
        wire.send(Buffer.concat([ODD, request('POST', '/feeds', { body })]));
        wire.half();
        await server.until((now) => now.feedPolls > feedPolls && now.watching === 0);
        await wire.destroy();
      }
    });

    t.test('who has sent all it will reads its answers', async (t) => {
      for (const { open } of [ways.main, ways.tls, admin]) {
        const wire = await open();
        wire.send(Buffer.concat(Array(50).fill(ODD))).half();
        for (let i = 0; i < 50; i += 1) t.equal((await wire.read()).status, 404);
        await wire.closed();
        t.equal(wire.leftOver.length, 0);
        await wire.destroy();
      }
    });

    t.test('the admin port answers in order, too', async (t) => {
      const wire = await admin.open();
      const ask = (path) => request('GET', path);
      wire.send(Buffer.concat([ask('/metrics'), ask('/healthz'), ask('/nothing')]));
      wire.send('nonsense\r\n\r\n');
      const answers = [];
      for (let i = 0; i < 4; i += 1) answers.push((await wire.read()).status);
      t.strictSame(answers, [200, 200, 404, 400]);
      await wire.destroy();
    });

    t.test('many requests of one connection let the others have their turn', async (t) => {
      for (const { open } of [ways.main, ways.tls]) {
        const [many, one] = [await open(), await open()];
        // Both are Node's from now on.
        for (const wire of [many, one]) t.equal((await read(wire.send(ODD))).status, 404);
        many.send(Buffer.concat(Array(2000).fill(ODD)));
        let answered = 0;
        const all = (async () => {
          for (; answered < 2000; answered += 1) await read(many);
        })();
        await read(one.send(ODD));
        t.ok(answered < 2000, `after ${answered} of the others`);
        await all;
        await Promise.all([many.destroy(), one.destroy()]);
      }
    });

    t.test('nothing is left', () => server.leaveNothing());
  });
}

/** A socket of which only what a pipeline asks of it is there; `parse` is Node's parser. */
function fakeSocket(parse, address = '127.0.0.1') {
  const socket = new EventEmitter();
  let paused = false;
  Object.assign(socket, {
    destroyed: false,
    writableNeedDrain: false,
    isPaused: () => paused,
    pause: () => (paused = true),
    resume: () => (paused = false)
  });
  socket.on('data', parse).on('end', () => {});
  return { socket, pipeline: new Pipeline(socket, address) };
}

t.test('however many connections there are, the loop turns in between', async (t) => {
  let turn = 0;
  let most = 0;
  let parsed = 0;
  let here = 0;
  const count = 20;
  for (let n = 0; n < count; n += 1) {
    const { socket } = fakeSocket(() => {
      parsed += 1;
      here += 1;
      most = Math.max(most, here);
      // As long as a turn may give to all of them.
      for (const end = performance.now() + 1; performance.now() < end;);
    });
    socket.emit('data', Buffer.concat([ODD, ODD]));
  }
  for (; parsed < 2 * count; turn += 1) {
    await immediate();
    here = 0;
  }
  t.ok(most <= 2, `${most} requests of ${2 * count} in one turn`);
  t.ok(turn >= count, `${turn} turns`);
});

t.test('an address with many connections does not stand before another', async (t) => {
  const order = [];
  const ask = (address) => {
    const { socket } = fakeSocket(() => order.push(address), address);
    socket.emit('data', ODD);
  };
  for (let n = 0; n < 500; n += 1) ask('127.0.0.1');
  for (let n = 0; n < 3; n += 1) ask('127.0.0.2');
  while (order.length < 503) await immediate();
  t.ok(order.lastIndexOf('127.0.0.2') < 6, 'by turns with the first of them');
});

t.test('of what is sent ahead no more is read than has room', (t) => {
  let parsed = 0;
  const { socket } = fakeSocket(() => (parsed += 1));
  // The peer reads nothing: no answer goes out.
  socket.writableNeedDrain = true;
  let sent = 0;
  while (!socket.isPaused() && sent < 1e6) {
    socket.emit('data', Buffer.alloc(1000));
    sent += 1000;
  }
  t.ok(sent > 16000 && sent < 18000, `${sent} bytes`);
  t.equal(parsed, 0);
  // What Node's server does when it is done with a request.
  socket.resume();
  socket.emit('resume');
  t.ok(socket.isPaused(), 'nor when Node lets it flow again');
  t.end();
});

for (const door of DOORS) {
  t.test(`connections that send and never read cost little, "${door}"`, async (t) => {
    const { server, ways } = await startWithEveryWay(t, door);
    for (const [way, { open }] of Object.entries(ways)) {
      // The admin port has its own bounds: half of its connections for one address, among them ours.
      const count = way === 'admin' ? 10 : 15;
      const before = resident(server.pid);
      const wires = [];
      for (let i = 0; i < count; i += 1) {
        const wire = await open();
        wire.pause();
        wire.send(Buffer.concat(Array(2300).fill(ODD)));
        wires.push(wire);
      }
      // Until the server has done with them what it will, and for half a second nothing more.
      let last = 0;
      let peak = 0;
      for (let same = 0, looks = 0; same < 25 && looks < 1000; looks += 1) {
        await pause(20);
        const now = resident(server.pid);
        same = Math.abs(now - last) < 1e6 ? same + 1 : 0;
        last = now;
        peak = Math.max(peak, now);
      }
      // It was some 700 MB when each of 92,000 requests had its objects, so some 260 MB of these; it is some 10 MB.
      t.ok(peak - before < 50e6, `by ${way}: ${peak - before} bytes more`);
      await Promise.all(wires.map((wire) => wire.destroy()));
    }
    await server.leaveNothing();
    await server.stop();
  });
}
