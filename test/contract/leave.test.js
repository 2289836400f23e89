import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import { contract, refused } from '../support/server.js';

const NOBODY = '11111111-2222-8333-8444-000000000000';

contract(t, { options: { 'throw-rate': 0 } }, (t, server) => {
  t.test('leave answers 204, also when repeated, and the id is unknown from then on', async (t) => {
    const { id } = (await server.ask('POST', '/join')).body;
    for (let i = 0; i < 3; i += 1) {
      const { status, bytes } = await server.leave(id);
      t.equal(status, 204);
      t.equal(bytes.length, 0);
    }
    await refused(t, server, 'unknown-client', () => server.poll(id), 'poll');
    await refused(t, server, 'unknown-client', () => server.throw(id, 'left'), 'throw');
    await refused(t, server, 'unknown-client', () => server.ask('GET', `/place/${id}`), 'place');
    t.equal((await server.status()).clients, 0);
  });

  t.test('leaving with an id that never was is 204 and changes nothing', async (t) => {
    await server.join();
    const before = await server.status();
    for (const id of [NOBODY, 'nonsense', '', '%00', '..']) {
      t.equal((await server.leave(id)).status, 204, id);
    }
    const after = await server.status();
    t.strictSame([after.clients, after.left], [before.clients, before.left]);
  });

  t.test('what waited for a leaver flies on, the way it was going', async (t) => {
    const ids = [];
    for (let i = 0; i < 16; i += 1) ids.push(await server.join());
    const at = new Map();
    for (const id of ids) {
      const { row, column } = (await server.ask('GET', `/place/${id}`)).body;
      at.set(`${row},${column}`, id);
    }
    t.equal(at.size, 16, 'sixteen clients fill a square of four by four');
    // Thrown left from column 2 it waits in column 1, which leaves; then in column 0.
    await server.throw(at.get('1,2'), 'left', '{"goes":"left"}');
    await server.throw(at.get('0,1'), 'down', '{"goes":"down"}');
    const before = await server.status();
    await server.leave(at.get('1,1'));
    const after = await server.status();
    t.strictSame((await server.poll(at.get('1,0'))).body, {
      seq: 1,
      sprites: [{ seq: 1, from: 'right', sprite: { goes: 'left' } }]
    });
    t.strictSame((await server.poll(at.get('2,1'))).body, {
      seq: 1,
      sprites: [{ seq: 1, from: 'up', sprite: { goes: 'down' } }]
    });
    t.equal(after.flown, before.flown + 2);
    t.equal(after.lost, before.lost);
    t.equal(after.waiting, 2);
  });

  t.test('with no client left to fly to it is lost, and the reason is counted', async (t) => {
    const id = await server.join();
    const before = await server.status();
    for (let i = 0; i < 3; i += 1) await server.throw(id, 'left');
    await server.leave(id);
    const after = await server.status();
    t.equal(after.lost, before.lost + 3);
    t.equal(
      Object.values(after.lostReasons).reduce((sum, n) => sum + n, 0),
      after.lost
    );
    t.equal(after.mailboxBytes, 0);
  });

  t.test('place tells row and column within rows and columns', async (t) => {
    const ids = [];
    const seen = new Set();
    let shape;
    for (let i = 0; i < 12; i += 1) ids.push(await server.join());
    for (const id of ids) {
      const { status, headers, body } = await server.ask('GET', `/place/${id}`);
      t.equal(status, 200);
      t.equal(headers['content-type'], 'application/json');
      t.strictSame(Object.keys(body), ['row', 'column', 'rows', 'columns']);
      t.ok(body.row >= 0 && body.row < body.rows && body.column >= 0 && body.column < body.columns);
      t.ok(body.rows * body.columns >= 12);
      shape = { rows: body.rows, columns: body.columns };
      seen.add(`${body.row},${body.column}`);
    }
    t.equal(seen.size, 12, 'each has a place of its own');
    const { rows, columns } = await server.status();
    t.strictSame({ rows, columns }, shape, 'as /status has them');
  });

  t.test('status tells the live counts', async (t) => {
    const id = await server.join();
    await server.throw(id, 'left');
    const status = await server.status();
    for (const name of [
      ...['clients', 'parked', 'capacity', 'rows', 'columns', 'thrown', 'acked', 'waiting', 'lost'],
      ...['delivered', 'queued', 'duplicates', 'flown', 'mailboxBytes', 'joined', 'left'],
      ...['expired', 'uptime']
    ]) {
      t.ok(Number.isSafeInteger(status[name]) && status[name] >= 0, name);
    }
    t.equal(status.clients, 1);
    t.equal(status.waiting, 1);
    t.ok(status.mailboxBytes > 0);
    t.equal(status.capacity, 1000000);
    t.equal(status.clients, status.joined - status.left - status.expired);
    t.notOk(JSON.stringify(status).includes(id), 'no id');
  });

  t.test('ids are known in capitals too, and in no other shape', async (t) => {
    const id = await server.join();
    t.equal((await server.ask('GET', `/place/${id.toUpperCase()}`)).status, 200);
    const malformed = [
      ...[id.replaceAll('-', ''), `{${id}}`, `urn:uuid:${id}`, ` ${id}`.replace(' ', '%20')],
      ...[`${id}%20`, id.slice(0, -1), `${id}0`, id.replace('-', '%2d'), `%${id}`, `${id}%00`],
      ...[id.replace(/[0-9a-f]/, 'g'), encodeURIComponent(`${id}é`)]
    ];
    for (const shape of malformed) {
      await refused(t, server, 'unknown-client', () => server.poll(shape), shape);
      await refused(t, server, 'unknown-client', () => server.throw(shape, 'left'), shape);
      await refused(t, server, 'unknown-client', () => server.ask('GET', `/place/${shape}`), shape);
    }
  });

  t.test('ids that are close to a living one are unknown', async (t) => {
    const id = await server.join();
    for (let i = 0; i < id.length; i += 1) {
      if (id[i] === '-') continue;
      const digit = ((parseInt(id[i], 16) + 1) % 16).toString(16);
      const other = id.slice(0, i) + digit + id.slice(i + 1);
      await refused(t, server, 'unknown-client', () => server.poll(other), other);
    }
    const nil = [
      '00000000-0000-0000-0000-000000000000',
      'ffffffff-ffff-ffff-ffff-ffffffffffff',
      NOBODY,
      '11111111-2222-8333-8444-0000ffffffff'
    ];
    for (const other of nil) {
      await refused(t, server, 'unknown-client', () => server.poll(other), other);
    }
  });

  t.test('no answer shows the id of another client', async (t) => {
    const [one, other] = [await server.join(), await server.join()];
    const { answer } = await server.park(other);
    for (const edge of ['left', 'up']) await server.throw(one, edge, '{}');
    const answers = [
      await answer,
      await server.status(),
      await server.ask('GET', `/place/${one}`),
      await server.ask('GET', '/'),
      await server.poll(one, 'ack=9'),
      await server.throw(one, 'x')
    ];
    for (const { bytes, ...rest } of answers) {
      t.notOk(`${bytes ?? ''}${JSON.stringify(rest)}`.includes(other));
    }
  });
});

contract(t, { options: { capacity: 3, 'throw-rate': 0 } }, (t, server) => {
  t.test('a full torus is 503 torus-full, until a client leaves', async (t) => {
    const { id } = (await server.ask('POST', '/join')).body;
    await server.join();
    await server.join();
    await refused(t, server, 'torus-full', () => server.ask('POST', '/join'));
    await server.leave(id);
    await server.join();
    await refused(t, server, 'torus-full', () => server.ask('POST', '/join'));
    await refused(t, server, 'unknown-client', () => server.poll(id), 'the old id on a new record');
  });
});

/** Seconds; what a test does within a lease has time on a busy machine, too. */
const LEASE = 3;

contract(t, { options: { lease: LEASE, hold: 30 } }, (t, server) => {
  t.test('a client without a poll for the lease has left, not before', async (t) => {
    const begin = performance.now();
    await server.join();
    const { wire } = await server.park(await server.join());
    await wire.reset();
    await server.until(({ expired }) => expired > 0);
    t.ok(performance.now() - begin >= LEASE * 1000);
    const { expired } = await server.until(({ clients }) => clients === 0);
    t.equal(expired, 2, 'one whose poll was reset, too');
  });

  t.test('a client that comes back in time has its place and its sprites', async (t) => {
    const id = await server.join();
    const { body: place } = await server.ask('GET', `/place/${id}`);
    const { wire } = await server.park(id);
    await wire.reset();
    await server.until(({ parked }) => parked === 0);
    await server.throw(id, 'left', '{"while":"away"}');
    const { body } = await server.poll(id);
    t.strictSame(
      body.sprites.map(({ sprite }) => sprite),
      [{ while: 'away' }]
    );
    t.strictSame((await server.ask('GET', `/place/${id}`)).body, place);
  });

  t.test('one that asks and asks and acks nothing has left with its lease', async (t) => {
    const [acks, takes] = [await server.join(), await server.join()];
    for (const edge of ['left', 'up', 'right', 'down']) await server.throw(acks, edge);
    const { wire } = await server.park(acks, `ack=${(await server.poll(acks)).body.seq}`);
    const [before, begin] = [await server.status(), performance.now()];
    let answer;
    do {
      answer = await server.poll(takes);
      if (answer.status === 200) t.equal(answer.body.sprites.length, 2, 'the same again');
      await pause(200);
    } while (answer.status === 200);
    t.equal(problemOf(answer), 'unknown-client');
    t.ok(performance.now() - begin >= LEASE * 1000, 'not before');
    await wire.destroy();
    const { expired, flown, lost } = await server.status();
    t.strictSame(
      { expired: expired - before.expired, flown: flown - before.flown, lost },
      { expired: 1, flown: 2, lost: before.lost },
      'and what it was given flies on'
    );
  });
});
