import { EventEmitter } from 'node:events';

import t from 'tap';

import { pour, SLICE } from '../../lib/feeds/pour.js';
import { SlowReaders } from '../../lib/feeds/slow-readers.js';
import { FeedTable } from '../../lib/feeds/table.js';
import { readOptions } from '../../lib/server/options.js';

/**
 * What slow readers at Node's server hold: bounded, and what many hold counts once. And that whoever watches there for
 * long gets what is its own.
 */

/** What of a ServerResponse is used; it takes `room` slices before it has to be drained. */
class Response extends EventEmitter {
  writableHighWaterMark = SLICE;
  taken = [];
  destroyed = false;

  constructor(room) {
    super();
    this.room = room;
  }

  write(slice) {
    this.taken.push(slice);
    this.room -= 1;
    return this.room > 0;
  }

  destroy() {
    this.destroyed = true;
  }

  drain(room) {
    this.room = room;
    this.emit('drain');
  }
}

/** A Buffer of bytes that others have as well. */
const shared = (origin, length) => Object.assign(Buffer.alloc(length), { origin });

const who = (responses) => responses.map(({ destroyed }) => destroyed);

t.test('the oldest are closed above the bound', (t) => {
  const slow = new SlowReaders(100);
  const readers = [1, 2, 3, 4].map(() => new Response());
  readers.forEach((reader, index) => slow.slow(reader, [shared(index + 1, 40)]));
  t.strictSame(who(readers), [true, true, false, false]);
  slow.done(readers[2]);
  const one = new Response();
  slow.slow(one, [Buffer.alloc(60)]);
  t.notOk(readers[3].destroyed, 'there is room for a hundred');
  slow.slow(new Response(), [Buffer.alloc(1)]);
  t.strictSame(who([readers[3], one]), [true, false]);
  t.end();
});

t.test('what many hold counts once, until none of them does', (t) => {
  const slow = new SlowReaders(100);
  const readers = [1, 2, 3, 4].map(() => new Response());
  for (const reader of readers) slow.slow(reader, [shared(7, 90), Buffer.alloc(2)]);
  t.strictSame(who(readers), [false, false, false, false]);
  for (const reader of readers.slice(1)) slow.done(reader);
  const other = new Response();
  slow.slow(other, [shared(8, 90)]);
  t.strictSame(who([readers[0], other]), [true, false]);
  t.end();
});

t.test('what a reader has taken is his no more, and he keeps his place', (t) => {
  const slow = new SlowReaders(100);
  const [first, second, third] = [1, 2, 3].map(() => new Response());
  slow.slow(first, [shared(1, 50), shared(2, 20)]);
  slow.slow(second, [shared(3, 30)]);
  slow.slow(first, [shared(2, 20)]);
  slow.slow(third, [shared(4, 50)]);
  t.strictSame(who([first, second, third]), [false, false, false]);
  slow.slow(new Response(), [shared(5, 20)]);
  t.strictSame(who([first, second, third]), [true, false, false]);
  slow.done(first);
  slow.done(first);
  t.end();
});

t.test('an answer is written slice by slice, and lets go what has been taken', (t) => {
  const pieces = [Buffer.from('a'), Buffer.alloc(5 * SLICE, 'b'), Buffer.alloc(10, 'c')];
  const response = new Response(3);
  const left = [];
  let isDone = false;
  pour(response, pieces, {
    slow: (some) => left.push(some.length),
    done() {
      isDone = true;
    }
  });
  response.drain(3);
  t.notOk(isDone);
  response.drain(9);
  t.ok(isDone);
  t.strictSame(left, [2, 2]);
  t.ok(Buffer.concat(response.taken).equals(Buffer.concat(pieces)));
  const whole = response.taken.filter(({ buffer }) => buffer === pieces[1].buffer);
  t.equal(whole.length, 3, 'of the end there are copies, which hold nothing');
  t.end();
});

t.test('an event stream outlives the tokens of all polls', async (t) => {
  const table = new FeedTable(readOptions([]), { replica: false, tokens: 3 }, () => {});
  t.teardown(() => table.close());
  const publish = (version) => {
    const none = Buffer.alloc(0);
    const value = Buffer.from(`${version}`);
    const what = { key: 'x', epoch: 1, version, value, patch: none, gzip: none, upstream: false };
    table.native.publish(what);
  };
  publish(1);
  const heard = { stream: [], poll: [] };
  const watch = (who, wish) =>
    table.watch({ keys: ['x'], afters: [''], ...wish }, ({ pieces }) => {
      heard[who].push(Buffer.concat(pieces).toString());
      return true;
    });
  watch('stream', { stream: true });
  for (let n = 0; n < 7; n++) watch('poll', {});
  publish(2);
  await new Promise((then) => setImmediate(() => setImmediate(then)));
  const events = [1, 2].map((n) => `{"feed":"x","cursor":"e1-${n}","value":${n}}`);
  t.strictSame(heard.stream, events);
  t.strictSame(
    heard.poll,
    Array.from({ length: 7 }, () => events[0])
  );
});
