import assert from 'node:assert/strict';

import { problemOf } from '../support/contract.js';

const LIMIT = 64 * 1024;
const EDGES = ['left', 'right', 'up', 'down'];

export const mailboxes = {
  name: 'memory of the mailboxes exhausted',
  promise: '503 mailboxes-full, never above --mailbox-memory; served again after acks',
  async run(scene) {
    const server = await scene.server({
      'mailbox-memory': '64K',
      'mailbox-bytes': '32K',
      'max-sprite': '2K',
      'throw-rate': 0
    });
    const ids = [];
    for (let i = 0; i < 9; i++) ids.push(await server.join());
    const promised = new Set();
    const refused = {};
    let made = 0;
    const throwOne = async () => {
      const key = made++;
      const body = JSON.stringify({ key, fill: 'x'.repeat(1000) });
      const answer = await server.throw(ids[key % 9], EDGES[key % 4], body, `n=${key}`);
      if (answer.status === 202) promised.add(key);
      else refused[problemOf(answer)] = (refused[problemOf(answer)] ?? 0) + 1;
      return answer;
    };
    for (let i = 0; i < 200; i++) await throwOne();
    const full = await server.status();
    assert.ok(full.mailboxBytes <= LIMIT, `${full.mailboxBytes} bytes wait`);
    assert.equal(full.waiting, promised.size, 'what waits is what was promised');
    assert.ok(refused['mailboxes-full'] > 0, JSON.stringify(refused));
    const filled = promised.size;

    const received = new Set();
    const drainAll = async () => {
      for (const id of ids) {
        for (let ack = 0; ;) {
          // What does not park: an answer with sprites comes at once, and the last one is acked by
          // leaving nothing above it, which a second poll would wait for.
          const { wire, answer } = await poll(server, id, ack);
          if (!answer) {
            await wire.destroy();
            break;
          }
          for (const { sprite } of answer.body.sprites) received.add(sprite.key);
          ack = answer.body.seq;
          await wire.destroy();
        }
      }
    };
    await drainAll();
    assert.equal((await server.until(({ waiting }) => waiting === 0)).mailboxBytes, 0);
    assert.equal((await throwOne()).status, 202, 'served again');
    const last = ids.length * 2;
    for (let i = 0; i < last; i++) assert.equal((await throwOne()).status, 202);
    await drainAll();
    const missing = [...promised].filter((key) => !received.has(key));
    assert.deepEqual(missing, [], 'promised and never received');
    await server.leaveNothing();
    return (
      `full at ${filled} sprites, ${full.mailboxBytes} of ${LIMIT} bytes, ` +
      `${refused['mailboxes-full']} refused; ${promised.size} promised, ${received.size} received`
    );
  }
};

/** Polls; `answer` is undefined when the poll was parked instead, that is: nothing waits. */
async function poll(server, id, ack) {
  const before = await server.status();
  const { wire, answer } = await server.park(id, `ack=${ack}`);
  const { parked } = await server.status();
  return { wire, answer: parked > before.parked ? undefined : await answer };
}
