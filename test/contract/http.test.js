import t from 'tap';

import { checkAnswer, problemOf } from '../support/contract.js';
import { put, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { contract, refused, startWithAllPorts } from '../support/server.js';

const NOBODY = '11111111-2222-8333-8444-000000000000';
const HOST = 'Host: sprites.test\r\n';
const CHUNKED = 'Transfer-Encoding: chunked\r\n';

contract(t, { options: { 'throw-rate': 0 } }, (t, server) => {
  /** Sends bytes and reads one answer. Asserts that the server then closes the connection. */
  async function last(bytes, options) {
    const wire = await server.wire();
    wire.send(bytes);
    const answer = await server.read(wire, options);
    await wire.closed();
    t.equal(wire.unreadBytes.length, 0, 'and nothing more is answered');
    return answer;
  }

  /** Sends bytes and reads one answer. */
  async function first(bytes) {
    const wire = await server.wire();
    wire.send(bytes);
    const answer = await server.read(wire);
    await wire.destroy();
    return answer;
  }

  t.test('requests sent a byte at a time', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    for (const [bytes, status] of [
      [request('POST', `/leave/${NOBODY}`), 204],
      [request('POST', `/throw/${id}/left?n=1`, { body: '{"slow":"é"}' }), 202],
      [request('GET', '/status'), 200],
      [request('GET', `/place/${id}?x`), 200],
      [`POST /throw/${id}/up HTTP/1.1\r\n${HOST}${CHUNKED}\r\n009\r\n{"a":"b"}\r\n000\r\n\r\n`, 202]
    ]) {
      await wire.sendByteByByte(bytes);
      t.equal((await server.read(wire)).status, status);
    }
    await wire.sendByteByByte(request('GET', `/poll/${id}?ack=0&hold=60`));
    t.strictSame(
      (await server.read(wire)).body.sprites.map(({ sprite }) => sprite),
      [{ slow: 'é' }, { a: 'b' }]
    );
  });

  t.test('a chunked throw is welcome, or has its problem', async (t) => {
    const id = await server.join();
    const thrown = (body) =>
      first(`POST /throw/${id}/left HTTP/1.1\r\n${HOST}${CHUNKED}\r\n${body}`);
    const { status, body } = await thrown('8\r\n{"a":"b"\r\n1\r\n}\r\n0\r\n\r\n');
    t.strictSame([status, body], [202, { state: 'queued' }]);
    t.equal((await thrown('9;ext=1\r\n{"a":"b"}\r\n0\r\nTrailer: x\r\n\r\n')).status, 202);
    await refused(t, server, 'bad-sprite', () => thrown('1\r\n{\r\n0\r\n\r\n'), 'broken');
    const endless = `400\r\n${'.'.repeat(1024)}\r\n`.repeat(20);
    await refused(t, server, 'sprite-too-large', () => thrown(endless), 'too large, no end');
  });

  t.test('a throw that expects 100-continue is told to, also where it does not wait', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    const expects = `${HOST}Content-Length: 7\r\nExpect: 100-continue\r\n\r\n`;
    wire.send(`POST /throw/${id}/left HTTP/1.1\r\n${expects}`);
    t.equal((await wire.read()).status, 100);
    wire.send('{"a":1}');
    t.equal((await server.read(wire)).status, 202);
    wire.send(`POST /throw/${id}/left HTTP/1.1\r\n${expects}{"b":2}`);
    const answer = await wire.read();
    t.equal((answer.status === 100 ? await server.read(wire) : answer).status, 202);
  });

  t.test(
    'a client that is refused while it still sends gets the answer, an end, and no reset',
    async (t) => {
      const id = await server.join();
      const wire = await server.wire();
      wire.send(`POST /throw/${id}/left HTTP/1.1\r\n${HOST}Content-Length: 2000000\r\n\r\n`);
      wire.send('.'.repeat(1000000));
      t.equal(problemOf(await server.read(wire)), 'sprite-too-large');
      wire.send('.'.repeat(1000000));
      await wire.endAndWait();
      t.equal(wire.error, null);
    }
  );

  t.test('a body that is not read is no request, whatever it says', async (t) => {
    const id = await server.join();
    const joins = request('POST', '/join').toString().repeat(1000);
    const chunk = `${joins.length.toString(16)}\r\n`;
    for (const [problem, target, fields, first] of [
      ['sprite-too-large', `/throw/${id}/left`, `Content-Length: ${2 * joins.length}`, ''],
      ['sprite-too-large', `/throw/${id}/left`, 'Transfer-Encoding: chunked', `${chunk}${joins}`],
      ['bad-edge', `/throw/${id}/top`, 'Content-Length: 99\r\nExpect: 100-continue', ''],
      ['not-found', '/nowhere', `Content-Length: ${2 * joins.length}`, '']
    ]) {
      await refused(t, server, problem, async () => {
        const wire = await server.wire();
        wire.send(`POST ${target} HTTP/1.1\r\n${HOST}${fields}\r\n\r\n${first}`);
        const answer = await server.read(wire);
        t.equal(answer.headers.connection, 'close', fields);
        wire.send(joins);
        await wire.closed();
        t.equal(wire.unreadBytes.length, 0, 'nothing more is answered');
        return answer;
      });
    }
  });

  t.test('targets in absolute form, as a proxy sends them', async (t) => {
    const id = await server.join();
    for (const origin of ['http://sprites.test', 'HTTP://SPRITES.test:8080', 'https://x']) {
      t.equal((await server.throw(id, 'left')).status, 202);
      const { status } = await server.ask('POST', `${origin}/throw/${id}/up?n=${origin.length}`, {
        body: '{}'
      });
      t.equal(status, 202, origin);
      t.equal((await server.ask('GET', `${origin}/status`)).status, 200, origin);
      t.equal((await server.ask('GET', `${origin}/poll/${id}?ack=0`)).status, 200, origin);
      t.equal((await server.ask('GET', origin)).status, 200, 'with no path');
    }
  });

  t.test('a connection stays for as long as its client asks it to', async (t) => {
    const id = await server.join();
    const lines = [
      ['GET', '/status', 200],
      ['HEAD', '/status', 200],
      ['GET', `/place/${id}`, 200],
      ['POST', `/throw/${id}/left`, 202, '{}'],
      ['GET', `/poll/${id}`, 200],
      ['GET', '/nowhere', 404],
      ['POST', `/leave/${NOBODY}`, 204]
    ];
    for (const [version, fields, connection] of [
      ['1.0', '', 'close'],
      ['1.0', HOST, 'close'],
      ['1.0', 'Connection: keep-alive\r\n', 'keep-alive'],
      ['1.1', `${HOST}Connection: close\r\n`, 'close']
    ]) {
      const keptWire = connection === 'keep-alive' && (await server.wire());
      for (const [method, target, status, body = ''] of lines) {
        const wire = keptWire || (await server.wire());
        const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : '';
        wire.send(`${method} ${target} HTTP/${version}\r\n${fields}${length}\r\n${body}`);
        const answer = await server.read(wire, { head: method === 'HEAD' });
        const why = `${method} ${target} HTTP/${version} ${fields}`;
        t.strictSame([answer.status, answer.headers.connection], [status, connection], why);
        if (keptWire) continue;
        await wire.closed();
        t.equal(wire.unreadBytes.length, 0, 'and nothing more is answered');
      }
    }
  });

  t.test('a parked poll that asked to close is answered, then closed', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    wire.send(request('GET', `/poll/${id}`, { headers: { Connection: 'close' } }));
    await server.until(({ parked }) => parked === 1);
    await server.throw(id, 'left');
    t.equal((await server.read(wire)).body.seq, 1);
    await wire.closed();
  });

  t.test('what is no HTTP is a bad-request and the end of the connection', async (t) => {
    const bad = {
      'no request line': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'a version from the future': `POST /join HTTP/9.9\r\n${HOST}\r\n`,
      'no Host': 'POST /join HTTP/1.1\r\n\r\n',
      'a bare line feed': `POST /join HTTP/1.1\n${HOST}\r\n`,
      'a length below nothing': `POST /join HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`,
      'a length and chunks': `POST /join HTTP/1.1\r\n${HOST}Content-Length: 0\r\n${CHUNKED}\r\n0\r\n\r\n`,
      'an unknown coding': `POST /join HTTP/1.1\r\n${HOST}Transfer-Encoding: x\r\n\r\n0\r\n\r\n`,
      'a chunk of no size': `POST /join HTTP/1.1\r\n${HOST}${CHUNKED}\r\nzz\r\n{}\r\n0\r\n\r\n`
    };
    for (const [name, bytes] of Object.entries(bad)) {
      await refused(t, server, 'bad-request', () => last(bytes), name);
    }
  });

  t.test('the refusal of a HEAD request has no content', async (t) => {
    const unreadable = 'HEAD / HTTP/1.1\r\n\r\n';
    const start = `HEAD / HTTP/1.1\r\n${HOST}`;
    for (const [status, bytes] of [
      [400, unreadable],
      [400, `\r\n${unreadable}`],
      [400, `${start}${CHUNKED}\r\nzz\r\n`],
      [417, `${start}Expect: more\r\n\r\n`],
      [431, `${start}X: ${'x'.repeat(20_000)}`]
    ]) {
      const answer = await last(bytes, { head: true });
      t.equal(answer.status, status);
      t.ok(answer.headers['content-length'] > 0, 'the length is that of GET');
    }
  });

  t.test('an unknown method is told which there are', async (t) => {
    for (const [method, target = '/join'] of [
      ...[['FROB'], ['post'], ['CONNECT', 'example.org:443'], ['TRACE'], ["M!#$%&'*+-.^_`|~9"]],
      ...[['constructor'], ['__proto__', '/feed/a']]
    ]) {
      const ask = () => first(`${method} ${target} HTTP/1.1\r\n${HOST}\r\n`);
      const { headers } = await refused(t, server, 'method-not-allowed', ask, method);
      t.match(headers.allow, /POST/, method);
    }
  });

  t.test('what is odd but good HTTP is served', async (t) => {
    const id = await server.join();
    const odd = {
      'an upgrade': 'Upgrade: h2c, websocket\r\nConnection: Upgrade\r\n',
      'a body with a GET': 'Content-Length: 0\r\n',
      'a question for compression': 'Accept-Encoding: gzip, br, zstd, deflate\r\n',
      'a request for another type': 'Accept: image/png\r\n',
      'a range, on conditions': 'Range: bytes=0-3\r\nIf-None-Match: *\r\nIf-Match: "x"\r\n'
    };
    for (const [name, fields] of Object.entries(odd)) {
      const { status } = await first(`GET /place/${id}?x=1&y HTTP/1.1\r\n${HOST}${fields}\r\n`);
      t.equal(status, 200, name);
    }
    await server.throw(id, 'left');
    const { status } = await first(
      `GET /poll/${id} HTTP/1.1\r\nhOsT:\r\nContent-Length: 2\r\n\r\n{}`
    );
    t.equal(status, 200, 'a poll with a body');
  });

  t.test('garbage behind a parked poll ends it, and the sprites stay', async (t) => {
    const id = await server.join();
    const { wire } = await server.park(id);
    wire.send('garbage\r\n\r\n');
    await server.throw(id, 'left');
    await wire.closed();
    await server.until(({ parked }) => parked === 0);
    t.equal((await server.poll(id)).body.seq, 1);
  });
});

// A long body-time: the timeout must come from head-time. (door_test.cc: no byte that drips in lengthens either.)
contract(t, { options: { 'head-time': 1, 'body-time': 60, 'idle-time': 1 } }, (t, server) => {
  t.test('a head that does not come to its end is 408', async (t) => {
    for (const bytes of ['POST /join HTT', `POST /join HTTP/1.1\r\n${HOST}X:`]) {
      const wire = await server.wire();
      wire.send(bytes);
      t.equal(problemOf(await server.read(wire)), 'request-timeout');
      await wire.closed();
    }
    t.equal((await server.status()).joined, 0);
  });

  t.test('an idle connection is closed, one with a parked poll is not', async (t) => {
    const id = await server.join();
    const parked = await server.park(id);
    const [silent, used] = [await server.wire(), await server.wire()];
    used.send(request('POST', `/leave/${NOBODY}`));
    await server.read(used);
    const other = await server.wire();
    other.send(request('GET', '/status'));
    await server.read(other);
    for (const wire of [used, other, silent]) {
      await wire.closed();
      t.equal(wire.unreadBytes.length, 0, 'without a word: browsers connect ahead');
    }
    t.equal((await server.status()).parked, 1);
    await server.throw(id, 'left');
    t.equal((await parked.answer).body.seq, 1);
  });
});

contract(t, { options: { 'head-time': 1, 'body-time': 2 } }, (t, server) => {
  t.test('a body that does not come to its end is 408, and throws nothing', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    wire.send(`POST /throw/${id}/left HTTP/1.1\r\n${HOST}Content-Length: 9\r\n\r\n{"a":`);
    t.equal(problemOf(await server.read(wire)), 'request-timeout');
    // The rest of the body comes too late: it is no throw.
    wire.send('1  }');
    await wire.closed();
    const chunked = await server.wire();
    chunked.send(
      `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n9\r\n{`
    );
    t.equal(problemOf(await server.read(chunked)), 'request-timeout');
    await chunked.closed();
    t.equal((await server.status()).thrown, 0);
  });
});

// ---- Sent ahead, by every port ------------------------------------------------------------------

/** A request that JavaScript answers with 404. */
const COLD_REQUEST = Buffer.from('GET /a HTTP/1.1\r\nHost:localhost\r\n\r\n');

/** A throw that JavaScript handles. */
const chunkedThrow = (id) =>
  Buffer.from(`POST /throw/${id}/left HTTP/1.1\r\n${HOST}${CHUNKED}\r\n2\r\n{}\r\n0\r\n\r\n`);

const read = async (wire) => checkAnswer(await wire.read());

for (const workers of [0, 2]) {
  t.test(`what is sent ahead, with ${workers} workers`, async (t) => {
    const options = { workers, 'publish-token-file': tokenFile(t) };
    const { server, ways } = await startWithAllPorts(t, options);
    // The first publication starts the feeds' threads: before the baseline.
    await put(server, 'a', { n: 0 });
    server.baseline = undefined;
    await server.untilDisconnected();
    server.baseline = server.descriptors();

    for (const way of Object.keys(ways).filter((name) => name !== 'admin')) {
      const { open } = ways[way];

      t.test(`hot requests and others are served in order, by ${way}`, async (t) => {
        const id = await server.join();
        const { thrown } = await server.status();
        const wire = await open();
        wire.send(
          Buffer.concat([
            chunkedThrow(id),
            request('POST', `/throw/${id}/up`, { body: '{}' }),
            chunkedThrow(id),
            Buffer.from(`CONNECT x:1 HTTP/1.1\r\n${HOST}\r\n`),
            request('POST', `/leave/${id}`),
            chunkedThrow(id)
          ])
        );
        const answers = [];
        for (let i = 0; i < 4; i += 1) answers.push((await read(wire)).status);
        t.strictSame(answers, [202, 202, 202, 405]);
        await wire.closed();
        t.equal((await server.status()).thrown - thrown, 3);
        t.equal((await server.leave(id)).status, 204);
        await wire.destroy();
      });

      t.test(`what is garbage leaves the answers before it, by ${way}`, async (t) => {
        const id = await server.join();
        const upgrade = 'Connection: keep-alive, x\r\nContent-Length: 2\r\nUpgrade: x\r\n';
        const good = [
          chunkedThrow(id),
          request('POST', `/throw/${id}/up`, { body: '{}' }),
          Buffer.from(`POST /throw/${id}/up HTTP/1.1\r\n${HOST}${upgrade}\r\n{}`)
        ];
        const [firstPart] = chunkedThrow(id).toString().split('2\r\n');
        for (const one of good) {
          for (const garbage of ['nonsense\r\n\r\n', `${firstPart}nonsense\r\n`]) {
            const wire = await open();
            wire.send(Buffer.concat([one, one, Buffer.from(garbage)]));
            for (let i = 0; i < 2; i += 1) t.equal((await read(wire)).status, 202);
            t.equal(problemOf(await read(wire)), 'bad-request');
            await wire.closed();
            await wire.destroy();
          }
        }
        await server.leave(id);
      });

      t.test(`a client that has sent all it will reads its answers, by ${way}`, async (t) => {
        const wire = await open();
        // More than the server buffers: the end comes while the rest is still in the kernel.
        wire.send(Buffer.concat(Array(500).fill(COLD_REQUEST))).endSending();
        for (let i = 0; i < 500; i += 1) await read(wire);
        await wire.closed();
        t.equal(wire.unreadBytes.length, 0);
        await wire.destroy();
      });
    }

    for (const way of ['main', 'tls']) {
      const { open } = ways[way];

      t.test(`what is parked goes with its client, whatever was sent, by ${way}`, async () => {
        const id = await server.join();
        const { cursor } = (await put(server, 'a', { n: 0 })).body;
        const body = JSON.stringify({ feeds: { a: cursor } });
        const expects = { headers: { Expect: '100-continue' } };
        for (const [count, parks] of [
          ['polls', request('GET', `/poll/${id}`)],
          ['polls', request('GET', `/poll/${id}`, expects)],
          ['feedPolls', request('GET', `/feed/a?after=${cursor}`)],
          ['feedPolls', request('GET', '/feed/a', { headers: { Accept: 'text/event-stream' } })],
          ['feedPolls', request('POST', '/feeds', { body })]
        ]) {
          for (const behind of [Buffer.alloc(0), Buffer.concat([COLD_REQUEST, COLD_REQUEST])]) {
            const before = await server.status();
            const wire = await open();
            wire.send(Buffer.concat([COLD_REQUEST, parks]));
            await read(wire);
            await server.until((now) => now[count] > before[count]);
            wire.send(behind).endSending();
            await server.until(({ parked, watching }) => parked === 0 && watching === 0);
            await wire.destroy();
          }
        }
        await server.leave(id);
      });
    }

    t.test('nothing is left', () => server.assertNothingLeft());
  });
}
