import { join } from 'node:path';

import t from 'tap';

import { skip, startNats } from '../support/nats.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';
import {
  untilBalanced,
  logOf,
  readStatuses,
  untilRing,
  untilAll
} from '../support/world-servers.js';

/**
 * Servers of a world with states: processes, a real nats-server, SIGKILL. The fault suite kills them while all throw,
 * and with a full disk (test/faults/world.js).
 */

/** Lease in seconds: no server drops out of the ring during the test. A name stays taken for as long. */
const LEASE = 300;

const BOUNDS = { 'throw-rate': 0, 'poll-rate': 0, lease: 600, drain: 1 };

/** Each server syncs differently. */
const SYNC = { a: 'second', b: 'turn', c: 'never', d: 'second' };

/** Starts a server. `t` is the root test: its servers outlive the subtests. */
function enter({ t, nats, folder }, name, stateName = name) {
  const world = nats ? { world: nats.url, name, 'world-lease': LEASE } : {};
  const state = { state: join(folder, stateName), sync: SYNC[stateName] };
  return startServer(t, { options: { ...BOUNDS, ...world, ...state } }).then((server) =>
    Object.assign(server, { name })
  );
}

/** A client, which outlives its server's process. */
class Client {
  constructor(id) {
    this.id = id;
    this.seq = 0;
    this.received = [];
  }

  /** Throws sprites with these numbers. Each must be promised. */
  async throw(t, server, edge, numbers, state = 'queued') {
    for (const n of numbers) {
      const answer = await server.throw(this.id, edge, JSON.stringify({ n }), `n=${n}`);
      t.strictSame([answer.status, answer.body.state], [202, state]);
    }
  }

  /** Polls until it has received `many` sprites in total, and acks them. */
  async receive(t, server, many) {
    while (this.received.length < many) {
      const { status, body } = await server.poll(this.id, `ack=${this.seq}&hold=20`);
      t.equal(status, 200);
      this.seq = body.seq;
      this.received.push(...body.sprites.map(({ sprite }) => sprite.n));
    }
    const { wire } = await server.park(this.id, `ack=${this.seq}&hold=20`);
    await wire.destroy();
  }
}

const numbers = (from, to) => Array.from({ length: to - from + 1 }, (_, i) => from + i);

t.test(
  'servers that are killed and start again with their states',
  { skip, timeout: 240_000 },
  async (t) => {
    const where = { t, nats: await startNats(t), folder: t.testdir() };
    let [a, b, c] = await Promise.all(['a', 'b', 'c'].map((name) => enter(where, name)));
    const [ofA, ofB, ofC] = [
      new Client(await a.join()),
      new Client(await b.join()),
      new Client(await c.join())
    ];
    await untilRing([a, b, c]);

    t.test('what waits in mailboxes and outboxes arrives once', async (t) => {
      await ofA.throw(t, a, 'right', numbers(1, 5));
      // b's ack may wait for 100 ms: until then a keeps the sprites.
      await untilAll([a, b], ([from, to]) => from.crossedOut === 5 && to.crossedIn === 5);
      await ofB.throw(t, b, 'right', numbers(1, 3));
      await untilAll([b, c], ([from, to]) => from.crossedOut === 3 && to.crossedIn === 3);

      b.child.kill('SIGSTOP');
      await ofA.throw(t, a, 'right', numbers(6, 10));
      await untilAll([a], ([one]) => one.outboxSprites === 5);
      await a.kill();
      a = await enter(where, 'a');
      const began = performance.now();
      await untilAll(
        [a],
        ([one]) => one.world.state === 'member' && one.world.servers.length === 3
      );
      t.ok(performance.now() - began < (LEASE * 1000) / 10, 'its name was its own');
      const [there] = await readStatuses([a]);
      t.strictSame(there.world.outboxes, [{ name: 'b', waiting: 5 }]);
      t.strictSame([there.thrown, there.waiting, there.crossedOut], [10, 5, 5]);
      await ofA.throw(t, a, 'right', [10], 'duplicate');

      // b is killed with five sprites in a mailbox, and with unread frames.
      await b.kill();
      b = await enter(where, 'b');
      await untilRing([a, b, c]);
      await ofA.throw(t, a, 'right', [11]);
      await ofB.receive(t, b, 11);
      t.strictSame(ofB.received, numbers(1, 11), 'each once, in order');
      await ofC.receive(t, c, 3);
      t.match(await untilBalanced(t, [a, b, c]), { thrown: 14, acked: 14, waiting: 0, lost: 0 });
    });

    t.test('a server that leaves in order keeps what it could not hand over', async (t) => {
      c.child.kill('SIGSTOP');
      await ofB.throw(t, b, 'right', [5000]);
      await untilAll([b], ([one]) => one.outboxSprites === 1);
      b.child.kill('SIGTERM');
      t.strictSame(await b.ended(), { code: 0, signal: null });
      c.child.kill('SIGCONT');
      b = await enter(where, 'b');
      await untilRing([a, b, c]);
      ofC.received = [];
      await ofC.receive(t, c, 1);
      t.strictSame(ofC.received, [5000]);
      await untilBalanced(t, [a, b, c]);
    });

    t.test(
      'without --world what waited lands here; with it, the world knows it again',
      async (t) => {
        c.child.kill('SIGSTOP');
        await ofB.throw(t, b, 'right', [6000]);
        await untilAll([b], ([one]) => one.outboxSprites === 1);
        await b.kill();
        b = await enter({ ...where, nats: undefined }, 'b');
        t.match(
          logOf(b),
          /"sprites":1,"lost":0,"servers":\[\{"name":"c","waiting":1\}\].*without --world/
        );
        ofB.received = [];
        await ofB.receive(t, b, 1);
        t.strictSame(ofB.received, [6000], 'at the other end of its row');
        await ofB.throw(t, b, 'left', [6001]);
        await ofB.receive(t, b, 2);
        const [{ outboxSprites, crossedInDoubt, world, thrown, crossedIn, acked, crossedOut }] =
          await readStatuses([b]);
        t.strictSame([outboxSprites, crossedInDoubt, world], [0, 1, null]);
        t.equal(thrown + crossedIn, acked + crossedOut);
        await b.stop();
        c.child.kill('SIGCONT');
        b = await enter(where, 'b');
        await untilRing([a, b, c]);
        await ofB.throw(t, b, 'right', [6002]);
        ofC.received = [];
        await ofC.receive(t, c, 1);
        // A sprite that was sent to c before b was killed arrives twice.
        if (ofC.received[0] === 6000) await ofC.receive(t, c, 2);
        t.equal(ofC.received.at(-1), 6002);
      }
    );

    t.test('a state that knows no world, or another name', async (t) => {
      let d = await enter({ ...where, nats: undefined }, 'd');
      const ofD = new Client(await d.join());
      await ofD.throw(t, d, 'right', [1]);
      await d.stop();
      d = await enter(where, 'd');
      await untilRing([a, b, c, d]);
      await ofD.receive(t, d, 1);
      await ofD.throw(t, d, 'right', [2]);
      ofA.received = [];
      await ofA.receive(t, a, 1);
      t.strictSame([ofD.received, ofA.received], [[1], [2]]);
      const logsStateOf = (before) =>
        until(() => logOf(d).includes(`"clients":1,"before":"${before}"`));
      await logsStateOf('none');
      await d.stop();
      d = await enter(where, 'e', 'd');
      await logsStateOf('d');
    });
  }
);
