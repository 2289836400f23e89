import t from 'tap';

import { request } from '../support/http.js';
import { contract, refused } from '../support/server.js';

/** Bad numbers in a query: a good one is a plain decimal up to 2^53-1. */
const NO_NUMBERS = [
  ...['', '-1', '+1', '%2B1', '1.0', '1e3', '0x1', '1,2', '1%201', '%20', '1%00', '%00'],
  ...['one', 'null', 'NaN', '%EF%BC%91', '%D9%A1'], // the last two: digits that are not ASCII
  ...['9007199254740992', '18446744073709551615', '18446744073709551616', '9'.repeat(400)]
];

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/;

contract(t, { options: { lease: 30, 'max-sprite': 4096 } }, (t, server) => {
  t.test('join answers 201 with an id and what holds for its client', async (t) => {
    const { status, headers, body } = await server.ask('POST', '/join');
    await server.leave(body.id);
    t.equal(status, 201);
    t.equal(headers['content-type'], 'application/json');
    t.match(body.id, UUID);
    t.strictSame({ ...body, id: '' }, { id: '', hold: 120, lease: 30, maxSprite: 4096 });
  });

  t.test('join takes a body it has no use for', async (t) => {
    const { status, body } = await server.ask('POST', '/join', { body: '{"name":"me"}' });
    await server.leave(body.id);
    t.equal(status, 201);
  });

  t.test('ids differ in what cannot be guessed, also where a record is used again', async (t) => {
    const seen = new Set();
    for (let i = 0; i < 20; i += 1) {
      const { body } = await server.ask('POST', '/join');
      await server.leave(body.id);
      seen.add(body.id.slice(0, 23));
    }
    t.equal(seen.size, 20);
  });

  t.test('every sprite above the ack comes, oldest first, and again until acked', async (t) => {
    const id = await server.join();
    for (const n of [1, 2, 3]) await server.throw(id, 'up', `{"n":${n}}`);
    const all = {
      seq: 3,
      sprites: [1, 2, 3].map((n) => ({ seq: n, from: 'down', sprite: { n } }))
    };
    t.strictSame((await server.poll(id)).body, all, 'without ack');
    t.strictSame((await server.poll(id, 'ack=0')).body, all, 'with the same ack');
    t.equal((await server.status()).waiting, 3, 'delivered is not acked');
    t.strictSame((await server.poll(id, 'ack=2')).body, { seq: 3, sprites: all.sprites.slice(2) });
    t.equal((await server.status()).waiting, 1, 'ack frees what is at or below it');
    t.strictSame(
      (await server.poll(id, 'ack=1')).body,
      { seq: 3, sprites: all.sprites.slice(2) },
      'what is freed never comes back'
    );
    const parked = await server.park(id, 'ack=3');
    const { waiting, acked, mailboxBytes } = await server.status();
    t.strictSame({ waiting, mailboxBytes }, { waiting: 0, mailboxBytes: 0 });
    t.ok(acked >= 3);
    await server.throw(id, 'down', '{"n":4}');
    const { status, headers, body } = await parked.answer;
    t.strictSame([status, headers['content-type']], [200, 'application/json']);
    t.strictSame(body, { seq: 4, sprites: [{ seq: 4, from: 'up', sprite: { n: 4 } }] });
  });

  t.test('an ack above what was ever sent is ack-ahead', async (t) => {
    const id = await server.join();
    await refused(t, server, 'ack-ahead', () => server.poll(id, 'ack=1'), 'nothing was sent');
    await server.throw(id, 'left');
    await refused(t, server, 'ack-ahead', () => server.poll(id, 'ack=1'), 'it waits, unsent');
    await server.poll(id);
    await refused(t, server, 'ack-ahead', () => server.poll(id, 'ack=2'), 'one too far');
    await refused(t, server, 'ack-ahead', () => server.poll(id, 'ack=9007199254740991'), '2^53-1');
    t.equal((await server.poll(id, 'ack=0')).body.seq, 1);
  });

  t.test('an ack is one plain decimal', async (t) => {
    const id = await server.join();
    for (const ack of NO_NUMBERS) {
      const query = `ack=${ack}`;
      await refused(t, server, 'bad-ack', () => server.poll(id, query), query.slice(0, 30));
    }
    await refused(t, server, 'bad-ack', () => server.poll(id, 'ack=0&ack=0'), 'ack twice');
    await refused(t, server, 'bad-ack', () => server.poll(id, 'ack'), 'ack without a value');
  });

  t.test("a hold outside 5 up to the server's is bad-hold", async (t) => {
    const id = await server.join();
    const bad = [
      ...['', '0', '0&x=y', '1', '4', '121', '3600', '-5', '5.5', '1e1', '0x10', 'long'],
      ...['4294967301', '9007199254740991', '9007199254740992', '9'.repeat(400)]
    ];
    for (const hold of bad) {
      const query = `hold=${hold}`;
      await refused(t, server, 'bad-hold', () => server.poll(id, query), query.slice(0, 30));
    }
    await refused(t, server, 'bad-hold', () => server.poll(id, 'hold=5&hold=5'), 'hold twice');
    const unknown = '00000000-0000-4000-8000-000000000000';
    for (const hold of [121, 65535]) {
      await refused(t, server, 'bad-hold', () => server.poll(unknown, `hold=${hold}`), 'of any id');
    }
  });

  t.test('a bad hold acks nothing, and a bad ack is told of before the client is', async (t) => {
    const id = await server.join();
    await server.throw(id, 'left');
    await server.poll(id);
    await refused(t, server, 'bad-hold', () => server.poll(id, 'ack=1&hold=4'));
    t.equal((await server.status()).waiting, 1);
  });

  t.test("holds from 5 up to the server's park, and so does what it does not know", async (t) => {
    const id = await server.join();
    for (const query of [
      ...['hold=5', 'hold=120', 'hold=0005', 'ack=0&hold=60', 'hold=60&ack=0', 'x=y&ack=0'],
      ...['ack=00', '&&hold=9&', 'ack=%30']
    ]) {
      const { wire } = await server.park(id, query);
      t.equal((await server.status()).parked, 1, query);
      await wire.destroy();
      await server.until(({ parked }) => parked === 0);
    }
  });

  t.test('a second poll answers the first and parks in its place', async (t) => {
    const id = await server.join();
    await server.throw(id, 'up');
    const first = await server.park(id, 'ack=0').then(({ answer }) => answer);
    const second = await server.park(id, `ack=${first.body.seq}`);
    const third = await server.park(id, `ack=${first.body.seq}`);
    t.strictSame((await second.answer).body, { seq: 1, sprites: [], superseded: true });
    t.equal((await server.status()).parked, 1);
    await server.throw(id, 'left', '{"to":"third"}');
    t.strictSame((await third.answer).body, {
      seq: 2,
      sprites: [{ seq: 2, from: 'right', sprite: { to: 'third' } }]
    });
  });

  t.test('polls pipelined by one client are answered in order', async (t) => {
    const id = await server.join();
    const wire = await server.wire();
    const { polls } = await server.status();
    wire.send(Buffer.concat([1, 2, 3].map(() => request('GET', `/poll/${id}`))));
    // The server reads each request after the answer to the one before.
    await server.until((status) => status.polls > polls);
    await server.throw(id, 'left', '{"here":1}');
    const sprite = { seq: 1, sprites: [{ seq: 1, from: 'right', sprite: { here: 1 } }] };
    for (let i = 0; i < 3; i += 1) t.strictSame((await server.read(wire)).body, sprite);
    const status = await server.status();
    t.strictSame({ parked: status.parked, polls: status.polls - polls }, { parked: 0, polls: 3 });
  });
});

contract(t, { options: { 'answer-bytes': 8192, capacity: 2 } }, (t, server) => {
  t.test('a full torus is 503 torus-full, until a client leaves', async (t) => {
    await server.park(await server.join());
    const id = await server.join();
    const parked = await server.park(id);
    await refused(t, server, 'torus-full', () => server.ask('POST', '/join'));
    await server.leave(id);
    t.strictSame((await parked.answer).body, { seq: 0, sprites: [] });
    await server.join();
  });

  t.test(
    'an answer is shut into a byte bound, but for one sprite, and the next goes on',
    async (t) => {
      const id = await server.join();
      const lengths = [4000, 4000, 4000, 12000, 10];
      for (const length of lengths) await server.throw(id, 'left', `{"x":"${'.'.repeat(length)}"}`);
      const parts = [];
      for (let ack = 0; ack < lengths.length;) {
        const { body } = await server.poll(id, `ack=${ack}`);
        t.equal(body.seq, body.sprites.at(-1).seq);
        parts.push(body.sprites.map(({ seq }) => seq));
        await refused(
          t,
          server,
          'ack-ahead',
          () => server.poll(id, `ack=${body.seq + 1}`),
          'unsent'
        );
        ack = body.seq;
      }
      t.strictSame(parts, [[1, 2], [3], [4], [5]]);
    }
  );
});

contract(t, { options: { hold: 1 } }, (t, server) => {
  t.test('a hold that ends with nothing to say answers the same shape, not before', async (t) => {
    const id = await server.join();
    const begin = performance.now();
    const { body } = await server.poll(id);
    t.ok(performance.now() - begin >= 1000);
    t.strictSame(body, { seq: 0, sprites: [] });
    await server.throw(id, 'left');
    t.equal((await server.poll(id)).body.seq, 1);
    t.strictSame((await server.poll(id, 'ack=1')).body, { seq: 1, sprites: [] }, 'with an ack');
  });

  t.test('a server whose hold is short grants that and nothing else', async (t) => {
    const id = await server.join();
    await refused(t, server, 'bad-hold', () => server.poll(id, 'hold=5'), 'above');
    t.equal((await server.poll(id, 'hold=1')).status, 200);
  });
});
