import { jetstream } from '@nats-io/jetstream';
import { Kvm } from '@nats-io/kv';
import { headers } from '@nats-io/transport-node';
import { join } from 'node:path';
import t from 'tap';

import { digestOf } from '../../lib/feeds/packing.js';
import { LAST_VERSION } from '../../lib/feeds/names.js';
import { VERSION } from '../../lib/world/entry.js';
import { get, put, tokenFile } from '../support/feeds.js';
import { enterNats, skip, startNats } from '../support/nats.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';
import { enterWorld, untilRing } from '../support/world-servers.js';

/** A NATS client that publishes what no server would. test/deploy/world.test.js tests clients without credentials. */

t.test(
  'whatever a client of NATS publishes, servers go on',
  { skip, timeout: 120_000 },
  async (t) => {
    const nats = await startNats(t);
    const token = tokenFile(t);
    const folder = temporary(t);
    // A long lease: if it ended on a busy machine, a throw would be refused.
    const more = { 'publish-token-file': token, 'world-lease': 8 };
    const enter = (name) => enterWorld(t, nats, name, { ...more, state: join(folder, name) });
    let [a, b] = await Promise.all(['a', 'b'].map(enter));
    let [one, other] = await Promise.all([a, b].map((server) => server.join()));
    await untilRing([a, b]);
    const connection = await enterNats(t, nats);
    const kv = await new Kvm(jetstream(connection)).open('sprites-world');
    const entry = { version: VERSION, epoch: 5, state: 'member', lease: 3000, rows: 1 };
    const writeEntry = (name, what) => kv.put(name, JSON.stringify({ ...entry, ...what }));

    /** Throws a sprite from each client to the other, once the ring is closed. */
    let acks = [0, 0];
    const throwAcross = async (t) => {
      await untilRing([a, b]);
      t.equal((await a.throw(one, 'right')).status, 202);
      t.equal((await b.throw(other, 'right')).status, 202);
      const answers = [await a.poll(one, `ack=${acks[0]}`), await b.poll(other, `ack=${acks[1]}`)];
      for (const { body } of answers) t.equal(body.sprites.length, 1);
      acks = answers.map(({ body }) => body.seq);
    };

    await t.test('a frame of no server', async () => {
      connection.publish('sprites.frames.a.x', Buffer.from('SPRW'));
      await a.until((now) => now.world.refused['not-in-ring'] === 1);
      await throwAcross(t);
    });

    await t.test('entries', async (t) => {
      for (const rows of [LAST_VERSION, 3e8, 2 ** 31, 1e300, -1]) await writeEntry('c', { rows });
      await writeEntry('d', { lease: LAST_VERSION });
      // An entry of the greatest length, with a lease of a millisecond, is removed, too.
      const room = 4096 - JSON.stringify({ ...entry, lease: 1, more: '' }).length;
      await writeEntry('e', { lease: 1, more: 'x'.repeat(room) });
      await writeEntry('f', { state: 'gone', grace: 5000 });
      await writeEntry('none', { lease: 60_000 });
      // The name of a living server.
      await writeEntry('a', { epoch: LAST_VERSION, run: 'x' });
      await throwAcross(t);
    });

    await t.test('a head of a feed that no server has written', async (t) => {
      const all = headers();
      const head = { Feed: '1', Cursor: 'e1-9007199254740992', Digest: digestOf(Buffer.from('1')) };
      for (const [name, value] of Object.entries(head)) all.set(`Sprites-${name}`, value);
      const subject = `sprites.feeds.${Buffer.from('beyond').toString('base64url')}`;
      await jetstream(connection).publish(subject, '1', { headers: all });
      const cursors = new Set();
      for (const [n, server] of [a, b, b].entries()) {
        const { cursor } = (await put(server, 'beyond', { n })).body;
        cursors.add(cursor);
        for (const each of [a, b]) {
          const has = async () => (await get(each, 'beyond')).body.cursor === cursor;
          await until(has, `${cursor} at ${each.name}`);
          t.strictSame((await get(each, 'beyond')).body.value, { n });
        }
      }
      t.equal(cursors.size, 3);
    });

    await t.test('revocations of names that are none', async (t) => {
      const js = jetstream(connection);
      const end = `${Date.now() + 600_000}`;
      const tokens = [Buffer.alloc(200, 0xff).toString('base64url'), 'YW5u.YW5u', 'Ym9', 'Ym8'];
      for (const token of tokens) await js.publish(`sprites.revoked.sub.${token}`, end);
      const revoked = async () => (await fetch(`http://127.0.0.1:${a.adminPort}/revoked/`)).json();
      await until(async () => (await revoked()).some(({ sub }) => sub === 'bo'));
      t.match(await revoked(), [{ sub: 'bo' }], 'bo alone');
      await a.kill();
      a = await enter('a');
      await throwAcross(t);
    });

    await t.test('an entry under the name of a server that is down', async (t) => {
      for (const epoch of [LAST_VERSION, 2 ** 32]) {
        await a.kill();
        await writeEntry('a', { epoch, state: 'gone' });
        a = await enter('a');
        await throwAcross(t);
      }
    });
  }
);
