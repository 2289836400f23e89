import t from 'tap';

import { NO_NUMBERS, problemOf } from '../support/contract.js';
import { jsonCases } from '../support/json-cases.js';
import { contract, refused } from '../support/server.js';

const OPPOSITE = { left: 'right', right: 'left', up: 'down', down: 'up' };

contract(t, { options: { 'throw-rate': 0, 'max-sprite': 4096 } }, (t, server) => {
  for (const [edge, from] of Object.entries(OPPOSITE)) {
    t.test(`thrown ${edge} a sprite arrives from the ${from}`, async (t) => {
      const id = await server.join();
      await server.throw(id, edge, '{"x":1}');
      t.strictSame((await server.poll(id)).body, {
        seq: 1,
        sprites: [{ seq: 1, from, sprite: { x: 1 } }]
      });
    });
  }

  t.test('with one client alone it catches what it throws, parked or not', async (t) => {
    const id = await server.join();
    const { answer } = await server.park(id);
    t.strictSame((await server.throw(id, 'up')).body, { state: 'delivered' });
    t.equal((await answer).body.sprites.length, 1);
    t.strictSame((await server.throw(id, 'up')).body, { state: 'queued' });
    t.equal((await server.poll(id, 'ack=1')).body.seq, 2);
  });

  t.test('with two clients it goes to the other', async (t) => {
    const [one, other] = [await server.join(), await server.join()];
    const { answer } = await server.park(other);
    let thrown;
    for (const edge of ['right', 'down']) {
      thrown = await server.throw(one, edge, `{"over":"${edge}"}`);
      if (thrown.body.state === 'delivered') break;
    }
    t.equal(thrown.body.state, 'delivered');
    t.equal((await answer).body.sprites.length, 1);
  });

  t.test('what comes back over the opposite edge reaches the thrower', async (t) => {
    const ids = [];
    for (let i = 0; i < 9; i += 1) ids.push(await server.join());
    for (const [edge, back] of Object.entries(OPPOSITE)) {
      await server.throw(ids[4], edge, `{"by":"${edge}"}`);
      let catcher;
      for (const id of ids) {
        const { wire, answer } = await server.park(id);
        const caught = await Promise.race([answer, server.status().then(() => null)]);
        await wire.destroy();
        if (caught?.body.sprites.some(({ sprite }) => sprite.by === edge)) catcher = id;
      }
      t.ok(catcher !== undefined && catcher !== ids[4], 'another client caught it');
      await server.throw(catcher, back, `{"back":"${edge}"}`);
    }
    const { body } = await server.poll(ids[4]);
    t.strictSame(
      body.sprites.map(({ from, sprite }) => [from, sprite.back]),
      Object.keys(OPPOSITE).map((edge) => [edge, edge])
    );
  });

  t.test('the bytes of a sprite are relayed as they are', async (t) => {
    const id = await server.join();
    const text = '{ "b" : 1.50e+2,"a":"\\u00e9\\/é🎈\\ud800" , "a": 1E400, "" :[ ] }';
    await server.throw(id, 'left', ` \r\n\t${text}\n `);
    const { bytes } = await server.poll(id);
    t.ok(bytes.includes(text));
    t.match(bytes.toString(), /^\{"seq":1,"sprites":\[\{"seq":1,"from":"right","sprite":\s*\{ "b"/);
  });

  t.test('every good JSON object is a sprite, every other body is a bad-sprite', async (t) => {
    const id = await server.join();
    let seq = 0;
    for (const { name, bytes, good } of jsonCases.filter(({ bytes }) => bytes.length <= 4096)) {
      if (good) {
        t.equal((await server.throw(id, 'left', bytes)).status, 202, name);
        const { body } = await server.poll(id, `ack=${seq}`);
        t.strictSame(body.sprites[0].sprite, JSON.parse(bytes), name);
        ({ seq } = body);
      } else {
        await refused(t, server, 'bad-sprite', () => server.throw(id, 'left', bytes), name);
      }
    }
  });

  t.test('a throw without a length, and so without a body, is no sprite', async (t) => {
    const headers = { 'Content-Length': undefined };
    for (const id of [await server.join(), '00000000-0000-4000-8000-000000000000']) {
      await refused(t, server, 'bad-sprite', () =>
        server.ask('POST', `/throw/${id}/left`, { headers })
      );
    }
  });

  t.test('a sprite of the largest size passes, one byte more is too large', async (t) => {
    const id = await server.join();
    const sized = (size) => `{"x":"${'.'.repeat(size - 8)}"}`;
    t.equal((await server.throw(id, 'left', sized(4096))).status, 202);
    for (const size of [4097, 5000, 65536]) {
      const answer = await refused(
        t,
        server,
        'sprite-too-large',
        () => server.throw(id, 'left', sized(size)),
        `${size} bytes`
      );
      t.match(answer.body.detail, /4096 bytes/);
    }
  });

  t.test('a huge announced length is refused before the body comes', async (t) => {
    const id = await server.join();
    for (const length of ['4097', '999999999999', '9007199254740993', '18446744073709551615']) {
      await refused(
        t,
        server,
        'sprite-too-large',
        async () => {
          const wire = await server.wire();
          wire.send(
            `POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n{`
          );
          const answer = await server.read(wire);
          await wire.closed();
          return answer;
        },
        length
      );
    }
  });

  t.test('an edge is left, right, up or down, and nothing else', async (t) => {
    const id = await server.join();
    for (const edge of [
      ...['Left', 'LEFT', 'north', '0', 'left%20', 'lef%74', '%6ceft', '..', '__proto__'],
      ...['constructor', 'lefts', 'l']
    ]) {
      await refused(t, server, 'bad-edge', () => server.throw(id, edge), edge);
    }
    await refused(t, server, 'bad-edge', () => server.throw(id, ''), 'none');
  });

  t.test('a number is one plain decimal up to 2^53-1', async (t) => {
    const id = await server.join();
    for (const n of NO_NUMBERS) {
      await refused(
        t,
        server,
        'bad-number',
        () => server.throw(id, 'left', '{}', `n=${n}`),
        `n=${n.slice(0, 30)}`
      );
    }
    await refused(t, server, 'bad-number', () => server.throw(id, 'left', '{}', 'n=1&n=1'));
    t.equal((await server.throw(id, 'left', '{}', 'n=9007199254740991')).status, 202);
    t.equal((await server.throw(id, 'left', '{}', 'n=9007199254740991')).body.state, 'duplicate');
  });

  t.test('a throw repeated within the last 64 is a duplicate and arrives once', async (t) => {
    const id = await server.join();
    for (let n = 100; n < 164; n += 1) {
      t.equal((await server.throw(id, 'left', `{"n":${n}}`, `n=${n}`)).body.state, 'queued');
    }
    const before = await server.status();
    for (let n = 163; n >= 100; n -= 1) {
      const { status, body } = await server.throw(id, 'left', `{"n":${n}}`, `n=${n}`);
      t.strictSame([status, body], [202, { state: 'duplicate' }], `${n}`);
    }
    const after = await server.status();
    t.equal(after.thrown, before.thrown, 'it is not counted as thrown');
    t.equal(after.duplicates, before.duplicates + 64);
    t.strictSame(
      (await server.poll(id)).body.sprites.map(({ sprite }) => sprite.n),
      Array.from({ length: 64 }, (_, i) => 100 + i)
    );
    await refused(t, server, 'stale-number', () => server.throw(id, 'left', '{}', 'n=99'));
  });

  t.test('what was refused is not remembered: its number may come again', async (t) => {
    const id = await server.join();
    await refused(t, server, 'bad-sprite', () => server.throw(id, 'left', '[]', 'n=8'));
    await refused(t, server, 'bad-edge', () => server.throw(id, 'top', '{}', 'n=8'));
    t.equal((await server.throw(id, 'left', '{}', 'n=8')).body.state, 'queued');
  });

  t.test('a body that ends early, the connection half-closed, throws nothing', async (t) => {
    const id = await server.join();
    const before = await server.status();
    const wire = await server.wire();
    wire.send(`POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}`).half();
    t.match((await server.read(wire)).body, { type: 'urn:sprites:bad-request', status: 400 });
    await wire.closed();
    t.equal((await server.status()).thrown, before.thrown);
  });
});

contract(t, { options: { mailbox: 3, 'throw-rate': 0 } }, (t, server) => {
  t.test("a full mailbox is neighbor-busy, and the sprite stays the thrower's", async (t) => {
    const id = await server.join();
    for (let n = 1; n <= 3; n += 1) await server.throw(id, 'left', `{"n":${n}}`, `n=${n}`);
    await refused(t, server, 'neighbor-busy', () => server.throw(id, 'left', '{"n":4}', 'n=4'));
    t.equal(
      (await server.throw(id, 'left', '{"n":3}', 'n=3')).body.state,
      'duplicate',
      'a duplicate is one although the mailbox is full'
    );
    const { seq } = (await server.poll(id)).body;
    await refused(t, server, 'neighbor-busy', () => server.throw(id, 'left', '{}'), 'unacked');
    const { wire } = await server.park(id, `ack=${seq}`);
    t.equal(
      (await server.throw(id, 'left', '{"n":4}', 'n=4')).body.state,
      'delivered',
      'the same number passes once there is room'
    );
    await wire.destroy();
  });
});

contract(
  t,
  {
    options: { 'max-sprite': 1000, 'mailbox-bytes': 2048, 'mailbox-memory': 4096, 'throw-rate': 0 }
  },
  (t, server) => {
    const big = `{"x":"${'.'.repeat(900)}"}`;

    t.test('a mailbox is bounded in bytes', async (t) => {
      const id = await server.join();
      t.equal((await server.throw(id, 'left', big)).status, 202);
      t.equal((await server.throw(id, 'left', big)).status, 202);
      await refused(t, server, 'neighbor-busy', () => server.throw(id, 'left', big));
      t.equal((await server.throw(id, 'left', '{}')).status, 202, 'a small one still fits');
      t.ok((await server.status()).mailboxBytes <= 2048);
    });

    t.test('and so are all of them together', async (t) => {
      const ids = [];
      for (let i = 0; i < 9; i += 1) ids.push(await server.join());
      const outcomes = [];
      for (const id of ids) outcomes.push(await server.throw(id, 'right', big));
      t.equal(outcomes.filter(({ status }) => status === 202).length, 4);
      t.ok(outcomes.slice(4).every((answer) => problemOf(answer) === 'mailboxes-full'));
      t.ok((await server.status()).mailboxBytes <= 4096);
      await refused(t, server, 'mailboxes-full', () => server.throw(ids[0], 'right', big));
    });
  }
);

contract(t, { options: { 'throw-rate': 1, 'throw-burst': 5 } }, (t, server) => {
  t.test('too many throws are 429, each client for itself, duplicates free', async (t) => {
    const [one, other] = [await server.join(), await server.join()];
    const outcomes = [];
    for (let n = 1; n <= 12; n += 1) {
      outcomes.push(await server.throw(one, 'left', '{}', `n=${n}`));
    }
    t.strictSame(
      outcomes.slice(0, 5).map(({ status }) => status),
      Array(5).fill(202)
    );
    t.ok(outcomes.some((answer) => problemOf(answer) === 'too-many-throws'));
    t.equal((await server.throw(one, 'left', '{}', 'n=3')).body.state, 'duplicate');
    t.equal((await server.throw(other, 'left', '{}')).status, 202, 'the other one may');
  });

  t.test('after waiting as long as Retry-After says the throw passes', async (t) => {
    const id = await server.join();
    let n = 0;
    let answer;
    do {
      n += 1;
      answer = await server.throw(id, 'left', '{}', `n=${n}`);
    } while (answer.status === 202);
    const wait = Number(answer.headers['retry-after']) * 1000;
    await new Promise((resolve) => {
      setTimeout(resolve, wait);
    });
    t.equal((await server.throw(id, 'left', '{}', `n=${n}`)).body.state, 'queued');
  });
});
