import { connect } from '@nats-io/transport-node';
import t from 'tap';

import { Broker } from '../../lib/world/broker.js';
import { VERSION } from '../../lib/world/entry.js';
import { Membership } from '../../lib/world/membership.js';
import { skip, startNats } from '../support/nats.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * A server of another version, and a frame of somebody who is not in the ring, at a whole server. One without the
 * credentials is in test/deploy/world.test.js.
 */

const silent = { info() {}, warn() {}, error() {} };

/** A member of another release's world, as far as this one sees it. */
function enterOther(t, nats, name) {
  const membership = new Membership({
    ...{ name, lease: 3000, version: VERSION + 1, log: silent },
    store: new Broker({ servers: [nats.url], name }),
    describe: () => ({ rows: 3, url: 'http://other.example' })
  });
  membership.start();
  t.teardown(() => membership.close());
  return membership;
}

/** A frame with one sprite, by native/pool/world_frames.h: row 0, over the right edge. `life`: of the receiver. */
function frameOf(version, text, life = 0) {
  const head = Buffer.alloc(72);
  const sprite = Buffer.alloc(16);
  head.write('SPRW');
  head.writeUInt16LE(version, 4);
  head.writeUInt8(1, 6);
  head.writeBigUInt64LE(7n, 8); // its life
  head.writeBigUInt64LE(BigInt(life), 16);
  for (const at of [24, 32, 40]) head.writeBigUInt64LE(1n, at);
  head.writeBigUInt64LE(9n, 56); // its memory
  head.writeUInt32LE(1, 64);
  head.writeUInt32LE(sprite.length + text.length, 68);
  sprite.writeUInt32LE(text.length, 0);
  sprite.writeUInt8(1, 9);
  sprite.writeUInt16LE(1, 12);
  return Buffer.concat([head, sprite, Buffer.from(text)]);
}

t.test('a server of another version stays alone, and says so', { skip }, async (t) => {
  const nats = await startNats(t);
  const other = enterOther(t, nats, 'z');
  await until(() => other.state === 'member');
  const options = { world: nats.url, name: 'a', 'world-lease': 3, lease: 300 };
  const server = await startServer(t, { options });
  // On a busy machine the NATS server may not answer at once.
  const { world, worldMember } = await server.until((now) => now.world.problem === 'other-version');
  t.match(world, { state: 'alone', problem: 'other-version', servers: [{ name: 'a' }] });
  t.equal(worldMember, 0);
  const log = () => Buffer.concat(server.errors).toString();
  const [theirs, ours] = [VERSION + 1, VERSION];
  const says = new RegExp(
    `"problem":"other-version".*z speaks version ${theirs} .* this server version ${ours}`
  );
  await until(() => says.test(log()), log);
  const id = await server.join();
  t.equal((await server.throw(id, 'right')).status, 202, 'it serves its own clients');
  t.equal((await server.poll(id, 'hold=5')).body.sprites.length, 1);
  const ofZ = '594e51'; // printf z | sha256sum
  t.equal((await server.poll(id.replace(/^.{6}/, ofZ))).status, 404, 'and sends nobody there');

  await other.leave();
  const { epoch } = (await server.until((now) => now.worldMember === 1)).world;
  const again = enterOther(t, nats, 'y');
  await until(() => again.view().problem?.code === 'other-version');
  t.equal((await server.inside()).worldServers, 1);

  // Who is let in by the NATS server can't throw without being one of the ring.
  const connection = await connect({ servers: nats.url });
  t.teardown(() => connection.close());
  const frames = [
    [frameOf(VERSION + 1, '{"evil":1}'), 'other-version'],
    [frameOf(VERSION, '{"evil":2}'), 'other-epoch'],
    [frameOf(VERSION, '{"evil":3}', epoch), 'not-in-ring'],
    [Buffer.from('SPRW'), 'malformed']
  ];
  for (const [frame, why] of frames) {
    connection.publish('sprites.frames.a.x', frame);
    await server.until((now) => now.world.refused[why] === 1);
  }
  const { crossedIn, clients } = await server.inside();
  t.strictSame([crossedIn, clients], [0, 1]);
  const refused = /"server":"x","refusal":"other-version".*a frame of the world is refused/;
  await until(() => refused.test(log()), log);
});
