import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { request } from '../support/http.js';
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
    // The first sprite is thrown left from column 2. It waits in column 1, which leaves, and then in column 0.
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

  t.test('ids are known in capitals too, and nothing else is one, however close', async (t) => {
    const id = await server.join();
    t.equal((await server.ask('GET', `/place/${id.toUpperCase()}`)).status, 200);
    const others = [
      ...[id.replaceAll('-', ''), `{${id}}`, `urn:uuid:${id}`, `%20${id}`, `${id}%20`],
      ...[id.slice(0, -1), `${id}0`, id.replace('-', '%2d'), `%${id}`, `${id}%00`],
      ...[id.replace(/[0-9a-f]/, 'g'), encodeURIComponent(`${id}é`), NOBODY],
      ...[id.replace(/[0-9a-f]/g, '0'), id.replace(/[0-9a-f]/g, 'f')],
      // Ids that differ in one digit.
      ...[...id.matchAll(/[0-9a-f]/g)].map(({ index, 0: digit }) => {
        const next = ((parseInt(digit, 16) + 1) % 16).toString(16);
        return id.slice(0, index) + next + id.slice(index + 1);
      })
    ];
    for (const other of others) {
      await refused(t, server, 'unknown-client', () => server.poll(other), other);
    }
    for (const other of others.slice(0, 12)) {
      await refused(t, server, 'unknown-client', () => server.throw(other, 'left'), other);
      await refused(t, server, 'unknown-client', () => server.ask('GET', `/place/${other}`), other);
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

/** A lease in seconds, long enough for a test's steps on a busy machine; and a longer stop, in milliseconds. */
const LEASE = 3;
const STOP_TIME = 5000;

const times = { lease: LEASE, 'head-time': LEASE, 'idle-time': LEASE };

contract(t, { options: times }, (t, server) => {
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

  // The continued server finds its timers due before it has read its input.
  t.test('what came while the server was stopped is in time', async (t) => {
    const before = await server.status();
    const wires = await Promise.all(Array.from({ length: 50 }, () => server.wire()));
    for (const wire of wires) wire.send(request('POST', '/join'));
    const ids = (await Promise.all(wires.map((wire) => wire.read()))).map(({ body }) => body.id);
    const half = await server.wire();
    half.send('POST /join HTTP/1.1\r\nHost: x\r\n');
    server.child.kill('SIGSTOP');
    for (const [i, wire] of wires.entries()) wire.send(request('GET', `/poll/${ids[i]}`));
    half.send('Content-Length: 0\r\n\r\n');
    await pause(STOP_TIME);
    server.child.kill('SIGCONT');
    t.equal((await half.read()).status, 201, 'the rest of a head');
    await server.until(({ parked, polls }) => parked === 50 && polls - before.polls === 50);
    // Leases still end, after the connections are closed.
    await Promise.all(wires.map((wire) => wire.destroy()));
    await server.until(({ expired }) => expired - before.expired === 51);
  });
});
