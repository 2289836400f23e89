import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { checkAnswer, problemOf } from '../support/contract.js';
import { put, tokenFile } from '../support/feeds.js';
import { request } from '../support/http.js';
import { contract, refused, startWithEveryWay } from '../support/server.js';

const NOBODY = '11111111-2222-8333-8444-000000000000';
const HOST = 'Host: sprites.test\r\n';

contract(t, { options: { 'throw-rate': 0 } }, (t, server) => {
  /** Sends bytes, reads one answer, and wants the connection closed after it. */
  async function last(bytes, options) {
    const wire = await server.wire();
    wire.send(bytes);
    const answer = await server.read(wire, options);
    await wire.closed();
    t.equal(wire.leftOver.length, 0, 'and nothing more is answered');
    return answer;
  }

  /** Sends bytes and reads one answer. */
  async function first(bytes, options) {
    const wire = await server.wire();
    wire.send(bytes);
    const answer = await server.read(wire, options);
    await wire.destroy();
    return answer;
  }

  t.test('requests sent a byte at a time', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    await wire.sendByteByByte(request('POST', '/join'));
    const joined = await server.read(wire);
    t.equal(joined.status, 201);
    await wire.sendByteByByte(request('POST', `/leave/${joined.body.id}`));
    t.equal((await server.read(wire)).status, 204);
    await wire.sendByteByByte(request('POST', `/throw/${id}/left?n=1`, { body: '{"slow":"é"}' }));
    t.strictSame((await server.read(wire)).body, { state: 'queued' });
    await wire.sendByteByByte(request('GET', `/poll/${id}?ack=0&hold=60`));
    t.strictSame((await server.read(wire)).body.sprites[0].sprite, { slow: 'é' });
    await wire.sendByteByByte(request('GET', '/status'));
    t.equal((await server.read(wire)).status, 200);
    await wire.sendByteByByte(request('GET', `/place/${id}`));
    t.equal((await server.read(wire)).status, 200);
  });

  t.test(
    'requests pipelined in one segment are answered in order, hot and other mixed',
    async (t) => {
      const id = await server.join();
      const wire = await server.wire();
      const asked = [
        ['POST', `/throw/${id}/left`, 202, '{"n":1}'],
        ['POST', `/throw/${id}/left`, 400, '[]'],
        ['GET', '/status', 200],
        ['HEAD', '/status', 200],
        ['POST', `/throw/${id}/left`, 202, '{"n":2}'],
        ['OPTIONS', '/join', 204],
        ['GET', `/poll/${id}?ack=0`, 200],
        ['GET', '/nowhere', 404],
        ['POST', `/leave/${NOBODY}`, 204],
        ['GET', `/place/${id}`, 200]
      ];
      wire.send(
        Buffer.concat(asked.map(([method, target, , body]) => request(method, target, { body })))
      );
      for (const [method, target, status] of asked) {
        const answer = await server.read(wire, { head: method === 'HEAD' });
        t.equal(answer.status, status, `${method} ${target}`);
      }
      t.strictSame(
        (await server.poll(id)).body.sprites.map(({ sprite }) => sprite),
        [{ n: 1 }, { n: 2 }]
      );
    }
  );

  t.test('a chunked throw is welcome', async (t) => {
    const id = await server.join();
    const head = `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
    t.equal((await first(`${head}8\r\n{"a":"b"\r\n1\r\n}\r\n0\r\n\r\n`)).status, 202);
    t.equal((await first(`${head}9;ext=1\r\n{"a":"b"}\r\n0\r\nTrailer: x\r\n\r\n`)).status, 202);
    const wire = await server.wire();
    await wire.sendByteByByte(`${head}009\r\n{"a":"b"}\r\n000\r\n\r\n`);
    t.equal((await server.read(wire)).status, 202);
    wire.send(request('GET', `/poll/${id}`));
    t.strictSame(
      (await server.read(wire)).body.sprites.map(({ sprite }) => sprite),
      Array(3).fill({ a: 'b' }),
      'also on the same connection'
    );
  });

  t.test('chunked bodies that are no sprite get their problems', async (t) => {
    const id = await server.join();
    const head = `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n`;
    const chunk = (length) => `${length.toString(16)}\r\n${'.'.repeat(length)}\r\n`;
    for (const [problem, why, body, ask] of [
      ['bad-sprite', 'empty', '0\r\n\r\n', first],
      ['bad-sprite', 'broken', '1\r\n{\r\n0\r\n\r\n', first],
      ['sprite-too-large', 'too large', `${chunk(20000)}0\r\n\r\n`, first],
      ['sprite-too-large', 'too large, no end', chunk(1024).repeat(20), first],
      ['bad-request', 'no size', 'zz\r\n{}\r\n0\r\n\r\n', last],
      ['bad-request', 'minus', '-2\r\n{}\r\n0\r\n\r\n', last],
      ['bad-request', 'no end', '2\r\n{}..0\r\n\r\n', last]
    ]) {
      await refused(t, server, problem, () => ask(head + body), why);
    }
  });

  t.test('a throw that expects 100-continue is told to', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    wire.send(
      `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Content-Length: 7\r\n` +
        'Expect: 100-continue\r\n\r\n'
    );
    t.equal((await wire.read()).status, 100);
    wire.send('{"a":1}');
    t.equal((await server.read(wire)).status, 202);
    wire.send(
      `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Content-Length: 7\r\n` +
        'Expect: 100-continue\r\n\r\n{"b":2}'
    );
    const answer = await wire.read();
    t.equal(
      (answer.status === 100 ? await server.read(wire) : answer).status,
      202,
      'also one that does not wait'
    );
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
      await wire.closedByBoth();
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
        t.equal(wire.leftOver.length, 0, 'nothing more is answered');
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
      const kept = connection === 'keep-alive' && (await server.wire());
      for (const [method, target, status, body = ''] of lines) {
        const wire = kept || (await server.wire());
        const length = method === 'POST' ? `Content-Length: ${body.length}\r\n` : '';
        wire.send(`${method} ${target} HTTP/${version}\r\n${fields}${length}\r\n${body}`);
        const answer = await server.read(wire);
        const why = `${method} ${target} HTTP/${version} ${fields}`;
        t.strictSame([answer.status, answer.headers.connection], [status, connection], why);
        if (kept) continue;
        await wire.closed();
        t.equal(wire.leftOver.length, 0, 'and nothing more is answered');
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

  t.test('a Host there must be, once', async (t) => {
    const id = await server.join();
    const hosts = {
      none: '',
      two: 'Host: a\r\nHost: b\r\n',
      'the same twice': 'Host: a\r\nhost: a\r\n'
    };
    for (const line of ['POST /join', `GET /poll/${id}`, `GET /place/${id}`, 'GET /status']) {
      for (const [why, fields] of Object.entries(hosts)) {
        const ask = () => last(`${line} HTTP/1.1\r\n${fields}\r\n`);
        await refused(t, server, 'bad-request', ask, `${why}: ${line}`);
      }
    }
  });

  t.test('what is no HTTP is a bad-request and the end of the connection', async (t) => {
    const bad = {
      'no request line': '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03',
      'a line of noise': 'hello there, this is no protocol\r\n\r\n',
      'no version': `POST /join\r\n${HOST}\r\n`,
      'a version of long ago': `POST /join HTTP/0.9\r\n${HOST}\r\n`,
      'the next version': `POST /join HTTP/2.0\r\n${HOST}\r\n`,
      'a version from the future': `POST /join HTTP/9.9\r\n${HOST}\r\n`,
      'the preface of HTTP/2': 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n',
      'a space before the colon': `POST /join HTTP/1.1\r\n${HOST}Content-Length : 0\r\n\r\n`,
      'a field without a colon': `POST /join HTTP/1.1\r\n${HOST}nonsense\r\n\r\n`,
      'an obsolete fold': `POST /join HTTP/1.1\r\n${HOST}X: a\r\n b\r\n\r\n`,
      'a NUL in a field': `POST /join HTTP/1.1\r\n${HOST}X: a\0b\r\n\r\n`,
      'a bare line feed': `POST /join HTTP/1.1\n${HOST}\r\n`,
      'a bare line feed after a field': `POST /join HTTP/1.1\r\nHost: a\n\r\n`,
      'a bare carriage return': `POST /join HTTP/1.1\r\nX: a\rb\r\n${HOST}\r\n`,
      'a space in the target': `POST /join x HTTP/1.1\r\n${HOST}\r\n`,
      'a length that is no number': `POST /join HTTP/1.1\r\n${HOST}Content-Length: x\r\n\r\n`,
      'a length below nothing': `POST /join HTTP/1.1\r\n${HOST}Content-Length: -1\r\n\r\n`,
      'a length with a sign': `POST /join HTTP/1.1\r\n${HOST}Content-Length: +1\r\n\r\n{`,
      'two lengths': `POST /join HTTP/1.1\r\n${HOST}Content-Length: 1\r\nContent-Length: 2\r\n\r\n`,
      'a list of lengths': `POST /join HTTP/1.1\r\n${HOST}Content-Length: 0, 0\r\n\r\n`,
      'a length and chunks':
        `POST /join HTTP/1.1\r\n${HOST}Content-Length: 0\r\n` +
        'Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
      'an unknown coding': `POST /join HTTP/1.1\r\n${HOST}Transfer-Encoding: x\r\n\r\n`,
      'chunked, but not last': `POST /join HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked, x\r\n\r\n`
    };
    for (const [name, bytes] of Object.entries(bad)) {
      await refused(t, server, 'bad-request', () => last(bytes), name);
    }
  });

  t.test('an unknown method is told which there are', async (t) => {
    for (const method of ['FROB', 'post', 'CONNECT', 'TRACE', "M!#$%&'*+-.^_`|~9"]) {
      const target = method === 'CONNECT' ? 'example.org:443' : '/join';
      const answer = await refused(t, server, 'method-not-allowed', () =>
        first(`${method} ${target} HTTP/1.1\r\n${HOST}\r\n`)
      );
      t.match(answer.headers.allow, /POST/, method);
    }
  });

  t.test('what is odd but good HTTP is served', async (t) => {
    const id = await server.join();
    const odd = {
      'empty lines first': `\r\n\r\nGET /place/${id} HTTP/1.1\r\n${HOST}\r\n`,
      'names in any case': `GET /place/${id} HTTP/1.1\r\nhOsT:x\r\n\r\n`,
      'an empty Host': `GET /place/${id} HTTP/1.1\r\nHost:\r\n\r\n`,
      'white space around values': `GET /place/${id} HTTP/1.1\r\nHost: \t x \t \r\n\r\n`,
      'bytes above ASCII in a value': `GET /place/${id} HTTP/1.1\r\n${HOST}X: \xe9\r\n\r\n`,
      'an upgrade to something':
        `GET /place/${id} HTTP/1.1\r\n${HOST}Upgrade: h2c, websocket\r\n` +
        'Connection: Upgrade\r\n\r\n',
      'an unknown query': `GET /place/${id}?x=1&y HTTP/1.1\r\n${HOST}\r\n`,
      'a body with a GET': `GET /place/${id} HTTP/1.1\r\n${HOST}Content-Length: 3\r\n\r\nabc`,
      'a question for compression':
        `GET /place/${id} HTTP/1.1\r\n${HOST}` + 'Accept-Encoding: gzip, br, zstd, deflate\r\n\r\n',
      'a request for another type': `GET /place/${id} HTTP/1.1\r\n${HOST}Accept: image/png\r\n\r\n`,
      'a range': `GET /place/${id} HTTP/1.1\r\n${HOST}Range: bytes=0-3\r\n\r\n`,
      conditions:
        `GET /place/${id} HTTP/1.1\r\n${HOST}If-None-Match: *\r\n` + 'If-Match: "x"\r\n\r\n'
    };
    for (const [name, bytes] of Object.entries(odd)) {
      t.equal((await first(bytes)).status, 200, name);
    }
    await server.throw(id, 'left');
    const { status } = await first(
      `GET /poll/${id} HTTP/1.1\r\n${HOST}Content-Length: 2\r\n` + 'Accept-Encoding: gzip\r\n\r\n{}'
    );
    t.equal(status, 200, 'a poll with a body');
  });

  t.test('heads too large are 431', async (t) => {
    const id = await server.join();
    const heads = {
      'fields without number': `POST /join HTTP/1.1\r\n${HOST}${'Xyz: a\r\n'.repeat(8000)}\r\n`,
      'a head that never ends': `POST /join HTTP/1.1\r\n${HOST}X: ${'x'.repeat(20000)}`
    };
    for (const size of [17000, 60000]) {
      const long = 'x'.repeat(size);
      heads[`a field of ${size}`] = `GET /poll/${id} HTTP/1.1\r\n${HOST}X: ${long}\r\n\r\n`;
      heads[`a target of ${size}`] = `GET /poll/${id}?${long} HTTP/1.1\r\n${HOST}\r\n`;
    }
    for (const [why, bytes] of Object.entries(heads)) {
      await refused(t, server, 'head-too-large', () => last(bytes), why);
    }
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

/** @returns {Promise<object>} the answer to a request that never ends, and goes on by a byte at a time */
async function dripping(server, wire) {
  let over = false;
  const answer = server.read(wire).finally(() => {
    over = true;
  });
  while (!over) {
    wire.send('1');
    await pause(50);
  }
  return answer;
}

// The time of the body is far off, so that it cannot stand in for that of the head.
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

  t.test('dripping bytes do not lengthen it', async (t) => {
    const wire = await server.wire();
    wire.send(`GET /status HTTP/1.1\r\n${HOST}X: `);
    t.equal(problemOf(await dripping(server, wire)), 'request-timeout');
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
      t.equal(wire.leftOver.length, 0, 'without a word: browsers connect ahead');
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
    // What comes too late is no throw.
    wire.send('1  }');
    await wire.closed();
    const chunked = await server.wire();
    chunked.send(
      `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n9\r\n{`
    );
    t.equal(problemOf(await server.read(chunked)), 'request-timeout');
    await chunked.closed();
    const slow = await server.wire();
    slow.send(`POST /throw/${id}/left HTTP/1.1\r\n${HOST}Content-Length: 9999\r\n\r\n{"a":`);
    t.equal(problemOf(await dripping(server, slow)), 'request-timeout', 'nor by a byte at a time');
    await slow.closed();
    t.equal((await server.status()).thrown, 0);
  });
});

// ---- Sent ahead, by every port ------------------------------------------------------------------

/** A request that JavaScript handles, and its answer is a 404. */
const COLD = Buffer.from('GET /a HTTP/1.1\r\nHost:localhost\r\n\r\n');

/** A throw that JavaScript handles. */
const chunkedThrow = (id) =>
  Buffer.from(
    `POST /throw/${id}/left HTTP/1.1\r\n${HOST}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`
  );

const read = async (wire) => checkAnswer(await wire.read());

for (const workers of [0, 2]) {
  t.test(`what is sent ahead, with ${workers} workers`, async (t) => {
    const options = { workers, 'publish-token-file': tokenFile(t) };
    const { server, ways } = await startWithEveryWay(t, options);
    // The threads that make feeds are there from the first one on.
    await put(server, 'a', { n: 0 });
    server.baseline = undefined;
    await server.noConnectionBut(0);
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
        const [begun] = chunkedThrow(id).toString().split('2\r\n');
        for (const one of good) {
          for (const garbage of ['nonsense\r\n\r\n', `${begun}nonsense\r\n`]) {
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

      t.test(`no field is lost among thousands, by ${way}`, async (t) => {
        const wire = await open();
        const many = 'a:\r\n'.repeat(2500);
        wire.send(`POST /leave/${NOBODY} HTTP/1.1\r\n${many}${HOST}Content-Length: 0\r\n\r\n`);
        t.equal((await read(wire)).status, 204, 'one Host, at the end');
        wire.send(`POST /leave/${NOBODY} HTTP/1.1\r\n${HOST}${many}${HOST}\r\n`);
        t.equal(problemOf(await read(wire)), 'bad-request', 'a second Host, at the end');
        await wire.destroy();
      });

      t.test(`a client that has sent all it will reads its answers, by ${way}`, async (t) => {
        const wire = await open();
        // More than is kept for later: of the rest the kernel tells nothing but its end.
        wire.send(Buffer.concat(Array(500).fill(COLD))).half();
        for (let i = 0; i < 500; i += 1) await read(wire);
        await wire.closed();
        t.equal(wire.leftOver.length, 0);
        await wire.destroy();
      });
    }

    for (const way of ['main', 'tls']) {
      const { open } = ways[way];

      t.test(`requests behind a parked poll wait for its answer, by ${way}`, async (t) => {
        const id = await server.join();
        const { polls } = await server.status();
        const wire = await open();
        wire.send(Buffer.concat([COLD, request('GET', `/poll/${id}`), chunkedThrow(id), COLD]));
        t.equal((await read(wire)).status, 404);
        await server.until((now) => now.polls > polls);
        await server.throw(id, 'left', '{"n":1}');
        t.strictSame((await read(wire)).body.sprites[0].sprite, { n: 1 });
        t.equal((await read(wire)).body.state, 'queued');
        t.equal((await read(wire)).status, 404);
        await wire.destroy();
        await server.leave(id);
      });

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
          for (const behind of [Buffer.alloc(0), Buffer.concat([COLD, COLD])]) {
            const before = await server.status();
            const wire = await open();
            wire.send(Buffer.concat([COLD, parks]));
            await read(wire);
            await server.until((now) => now[count] > before[count]);
            wire.send(behind).half();
            await server.until(({ parked, watching }) => parked === 0 && watching === 0);
            await wire.destroy();
          }
        }
        await server.leave(id);
      });

      t.test(`many requests of one connection let others have their turn, by ${way}`, async (t) => {
        const [many, one] = [await open(), await open()];
        const { handled } = await server.status();
        // All are there before the first is read, and the one says itself after how many it came.
        server.child.kill('SIGSTOP');
        many.send(Buffer.concat(Array(2000).fill(COLD)));
        one.send(request('GET', '/status?a'));
        server.child.kill('SIGCONT');
        const others = (await read(one)).body.handled - handled;
        t.ok(others < 2000, `after ${others} of the others`);
        for (let i = 0; i < 2000; i += 1) await read(many);
        await Promise.all([many.destroy(), one.destroy()]);
      });
    }

    // What workers hold is none of the main process's memory.
    for (const way of workers > 0 ? [] : ['main', 'tls']) {
      t.test(`connections that send and never read cost little, by ${way}`, async (t) => {
        const before = await server.status();
        const wires = [];
        for (let i = 0; i < 15; i += 1) {
          const wire = await ways[way].open();
          wire.pause();
          wires.push(wire.send(Buffer.concat(Array(2300).fill(COLD))));
        }
        // The answers fill what the kernel takes for a client: then its requests are left where they are.
        let last = before.handled;
        const { handled, rss } = await server.until((status) => {
          const stands = status.handled === last && last > before.handled;
          last = status.handled;
          return stands;
        });
        t.comment(`${handled - before.handled} of ${15 * 2300} requests were handled`);
        t.ok(rss - before.rss < 50e6, `${rss - before.rss} bytes more`);
        await Promise.all(wires.map((wire) => wire.destroy()));
      });
    }

    t.test('nothing is left', () => server.leaveNothing());
  });
}
