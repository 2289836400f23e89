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
import { enterMember, enterWorld, logged, sewn } from '../support/world-servers.js';

/**
 * A server of another version, and a client of the NATS server that publishes what no server would, at whole
 * servers. One without the credentials is in test/deploy/world.test.js.
 */

/** A member of another release's world, as far as this one sees it. */
function enterOther(t, nats, name) {
  const describe = () => ({ rows: 3, url: 'http://other.example' });
  return enterMember(t, nats, name, { version: VERSION + 1, describe }).membership;
}

t.test('a server of another version stays alone, and says so', { skip }, async (t) => {
  const nats = await startNats(t);
  const other = enterOther(t, nats, 'z');
  await until(() => other.state === 'member');
  const server = await enterWorld(t, nats, 'a', { lease: 300 });
  // On a busy machine the NATS server may not answer at once.
  const { world, worldMember } = await server.until((now) => now.world.problem === 'other-version');
  t.match(world, { state: 'alone', problem: 'other-version', servers: [{ name: 'a' }] });
  t.equal(worldMember, 0);
  const [theirs, ours] = [VERSION + 1, VERSION];
  const says = new RegExp(
    `"problem":"other-version".*z speaks version ${theirs} .* this server version ${ours}`
  );
  await until(
    () => says.test(logged(server)),
    () => logged(server)
  );
  const id = await server.join();
  t.equal((await server.throw(id, 'right')).status, 202, 'it serves its own clients');
  t.equal((await server.poll(id, 'hold=5')).body.sprites.length, 1);
  const ofZ = '594e51'; // printf z | sha256sum
  t.equal((await server.poll(id.replace(/^.{6}/, ofZ))).status, 404, 'and sends no client there');

  await other.leave();
  await server.until((now) => now.worldMember === 1);
  const again = enterOther(t, nats, 'y');
  await until(() => again.view().problem?.code === 'other-version');
  t.equal((await server.inside()).worldServers, 1);

  // A client of the NATS server can't throw without being one of the ring, whatever is in its frame.
  const connection = await enterNats(t, nats);
  connection.publish('sprites.frames.a.x', Buffer.from('SPRW'));
  await server.until((now) => now.world.refused['not-in-ring'] === 1);
  const { crossedIn, clients } = await server.inside();
  t.strictSame([crossedIn, clients], [0, 1]);
});

t.test(
  'whatever a client of NATS publishes, servers go on',
  { skip, timeout: 120_000 },
  async (t) => {
    const nats = await startNats(t);
    const token = tokenFile(t);
    const folder = temporary(t);
    // A lease that ends on a busy machine would be a throw that is refused.
    const more = { 'publish-token-file': token, 'world-lease': 8 };
    const enter = (name) => enterWorld(t, nats, name, { ...more, state: join(folder, name) });
    let [a, b] = await Promise.all(['a', 'b'].map(enter));
    let [one, other] = await Promise.all([a, b].map((server) => server.join()));
    await sewn([a, b]);
    const connection = await enterNats(t, nats);
    const kv = await new Kvm(jetstream(connection)).open('sprites-world');
    const entry = { version: VERSION, epoch: 5, state: 'member', lease: 3000, rows: 1 };
    const write = (name, what) => kv.put(name, JSON.stringify({ ...entry, ...what }));

    /** A sprite from each to the other, when all is sewn. */
    let acks = [0, 0];
    const cross = async (t) => {
      await sewn([a, b]);
      t.equal((await a.throw(one, 'right')).status, 202);
      t.equal((await b.throw(other, 'right')).status, 202);
      const answers = [await a.poll(one, `ack=${acks[0]}`), await b.poll(other, `ack=${acks[1]}`)];
      for (const { body } of answers) t.equal(body.sprites.length, 1);
      acks = answers.map(({ body }) => body.seq);
    };

    await t.test('entries', async (t) => {
      for (const rows of [LAST_VERSION, 3e8, 2 ** 31, 1e300, -1]) await write('c', { rows });
      await write('d', { lease: LAST_VERSION });
      // One that is as large as it may be is taken out all the same: it holds for a millisecond.
      const room = 4096 - JSON.stringify({ ...entry, lease: 1, more: '' }).length;
      await write('e', { lease: 1, more: 'x'.repeat(room) });
      await write('f', { state: 'gone', grace: 5000 });
      await write('none', { lease: 60_000 });
      // The name of a server that has it.
      await write('a', { epoch: LAST_VERSION, run: 'x' });
      await cross(t);
    });

    await t.test('news of entries that are not in the store', async (t) => {
      for (const name of ['a', 'b']) {
        const before = await kv.get(name);
        const all = headers();
        all.set('Nats-Sequence', `${LAST_VERSION}`);
        const gone = JSON.stringify({ ...before.json(), state: 'gone' });
        connection.publish(`sprites.entries.$KV.sprites-world.${name}`, gone, { headers: all });
        const renewed = async () => (await kv.get(name)).revision > before.revision;
        await until(renewed, 'it is renewed');
      }
      await cross(t);
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
      await cross(t);
    });

    await t.test('an entry under the name of a server that is down', async (t) => {
      for (const epoch of [LAST_VERSION, 2 ** 32]) {
        await a.kill();
        await write('a', { epoch, state: 'gone' });
        a = await enter('a');
        await cross(t);
      }
    });
  }
);
