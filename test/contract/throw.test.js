import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import { contract, refused } from '../support/server.js';

/** Throws, for thrower and catcher. test/native/pool_test.cc compares mailboxes, numbers and neighbors with a model. */

const OPPOSITE = { left: 'right', right: 'left', up: 'down', down: 'up' };

contract(t, { options: { 'throw-rate': 0, 'max-sprite': 4096 } }, (t, server) => {
  t.test('a sprite arrives from the edge opposite to the one it was thrown over', async (t) => {
    const id = await server.join();
    for (const edge of Object.keys(OPPOSITE)) await server.throw(id, edge, '{"x":1}');
    const sprites = Object.values(OPPOSITE).map((from, i) => ({
      ...{ seq: i + 1, from },
      sprite: { x: 1 }
    }));
    t.strictSame((await server.poll(id)).body, { seq: 4, sprites });
  });

  t.test('with one client alone it catches what it throws, parked or not', async (t) => {
    const id = await server.join();
    const { answer } = await server.park(id);
    t.strictSame((await server.throw(id, 'up')).body, { state: 'delivered' });
    t.equal((await answer).body.sprites.length, 1);
    t.strictSame((await server.throw(id, 'up')).body, { state: 'queued' });
    t.equal((await server.poll(id, 'ack=1')).body.seq, 2);
  });

  t.test('the bytes of a sprite are relayed as they are', async (t) => {
    const id = await server.join();
    const text = '{ "b" : 1.50e+2,"a":"\\u00e9\\/é🎈\\ud800" , "a": 1E400, "" :[ ] }';
    await server.throw(id, 'left', ` \r\n\t${text}\n `);
    const { bytes } = await server.poll(id);
    t.ok(bytes.includes(text));
    t.match(bytes.toString(), /^\{"seq":1,"sprites":\[\{"seq":1,"from":"right","sprite":\s*\{ "b"/);
  });

  t.test('what is no JSON object is no sprite, nor is a throw without a body', async (t) => {
    for (const id of [await server.join(), '00000000-0000-4000-8000-000000000000']) {
      for (const body of ['[]', '{"a":1', `${'{"a":'.repeat(32)}{}${'}'.repeat(32)}`]) {
        await refused(t, server, 'bad-sprite', () => server.throw(id, 'left', body), body);
      }
      const headers = { 'Content-Length': undefined };
      const ask = () => server.ask('POST', `/throw/${id}/left`, { headers });
      await refused(t, server, 'bad-sprite', ask, 'no length');
    }
  });

  t.test('a sprite of the largest size passes, one byte more is too large', async (t) => {
    const id = await server.join();
    const sized = (size) => `{"x":"${'.'.repeat(size - 8)}"}`;
    t.equal((await server.throw(id, 'left', sized(4096))).status, 202);
    for (const size of [4097, 65536]) {
      const ask = () => server.throw(id, 'left', sized(size));
      const { body } = await refused(t, server, 'sprite-too-large', ask, `${size} bytes`);
      t.match(body.detail, /4096 bytes/);
    }
  });

  t.test('a huge announced length is refused before the body comes', async (t) => {
    const id = await server.join();
    for (const length of ['4097', '999999999999', '18446744073709551615']) {
      const ask = async () => {
        const wire = await server.wire();
        const head = `POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}`;
        wire.send(`${head}\r\n\r\n{`);
        const answer = await server.read(wire);
        await wire.closed();
        return answer;
      };
      await refused(t, server, 'sprite-too-large', ask, length);
    }
  });

  t.test('an edge is left, right, up or down, and nothing else', async (t) => {
    const id = await server.join();
    for (const edge of [
      ...['', 'Left', 'LEFT', 'north', '0', 'left%20', 'lef%74', '%6ceft', '..', '__proto__'],
      ...['constructor', 'lefts', 'l']
    ]) {
      await refused(t, server, 'bad-edge', () => server.throw(id, edge), edge || 'none');
    }
  });

  t.test(
    'a number is one plain decimal; repeated it throws nothing, and an old one is stale',
    async (t) => {
      const id = await server.join();
      const thrown = (n) => server.throw(id, 'left', '{}', `n=${n}`);
      for (const n of ['', '-1', '1e3', '9007199254740992', '1&n=1']) {
        await refused(t, server, 'bad-number', () => thrown(n), `n=${n}`);
      }
      for (const n of [100, 164, Number.MAX_SAFE_INTEGER]) {
        t.equal((await thrown(n)).body.state, 'queued');
        const { duplicates, thrown: all } = await server.status();
        t.strictSame((await thrown(n)).body, { state: 'duplicate' });
        const after = await server.status();
        t.strictSame([after.duplicates, after.thrown], [duplicates + 1, all]);
      }
      await refused(t, server, 'stale-number', () => thrown(100));
    }
  );

  t.test('a body that ends early, the connection half-closed, throws nothing', async (t) => {
    const id = await server.join();
    const before = await server.status();
    const wire = await server.wire();
    wire
      .send(`POST /throw/${id}/left HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\n{}`)
      .endSending();
    t.match((await server.read(wire)).body, { type: 'urn:sprites:bad-request', status: 400 });
    await wire.closed();
    t.equal((await server.status()).thrown, before.thrown);
  });
});

const bounds = { 'max-sprite': 1000, mailbox: 3, 'mailbox-bytes': 2048, 'mailbox-memory': 4096 };

contract(t, { options: { ...bounds, 'throw-rate': 0 } }, (t, server) => {
  const big = `{"x":"${'.'.repeat(900)}"}`;

  t.test("a full mailbox is neighbor-busy, and the sprite stays the thrower's", async (t) => {
    const id = await server.join();
    for (let n = 1; n <= 3; n += 1) await server.throw(id, 'left', `{"n":${n}}`, `n=${n}`);
    const fourth = () => server.throw(id, 'left', '{"n":4}', 'n=4');
    await refused(t, server, 'neighbor-busy', fourth);
    const { seq } = (await server.poll(id)).body;
    await refused(t, server, 'neighbor-busy', fourth, 'unacked');
    const { wire } = await server.park(id, `ack=${seq}`);
    t.equal((await fourth()).body.state, 'delivered', 'the same number, once there is room');
    await wire.destroy();
  });

  t.test('mailboxes are bounded in bytes, each and all together', async (t) => {
    const ids = [];
    for (let i = 0; i < 9; i += 1) ids.push(await server.join());
    const outcomes = [];
    for (const id of ids.flatMap((id) => [id, id, id])) {
      const answer = await server.throw(id, 'right', big);
      outcomes.push(problemOf(answer) ?? answer.status);
    }
    t.strictSame(outcomes.slice(0, 7), [
      ...[202, 202, 'neighbor-busy', 202, 202, 'neighbor-busy', 'mailboxes-full']
    ]);
    t.ok((await server.status()).mailboxBytes <= 4096);
  });
});

contract(t, { options: { 'throw-rate': 1, 'throw-burst': 5 } }, (t, server) => {
  t.test('too many throws are 429, each client for itself, duplicates free', async (t) => {
    const [one, other] = [await server.join(), await server.join()];
    let n = 0;
    let answer;
    do {
      n += 1;
      answer = await server.throw(one, 'left', '{}', `n=${n}`);
    } while (answer.status === 202);
    t.ok(n > 5, `the burst: ${n}`);
    t.equal(problemOf(answer), 'too-many-throws');
    t.equal((await server.throw(one, 'left', '{}', 'n=3')).body.state, 'duplicate');
    t.equal((await server.throw(other, 'left', '{}')).status, 202, 'the other one may');
    await pause(Number(answer.headers['retry-after']) * 1000);
    t.equal((await server.throw(one, 'left', '{}', `n=${n}`)).body.state, 'queued');
  });
});
