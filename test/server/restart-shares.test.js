import { join } from 'node:path';

import t from 'tap';

import { AddressLimits } from '../../lib/torus/address-limits.js';
import { readOptions } from '../../lib/operator/options.js';
import { Pool } from '../../lib/torus/pool.js';

/** What one source address may have is the same after a restart, however the run before has ended. */

const HOSTILE = '127.0.6.6';
const OTHER = '127.0.1.1';
const SPRITE = Buffer.from('{"a":1}');
const OPTIONS = readOptions([
  ...['--address-clients', '2', '--address-memory', '4K', '--throw-rate', '0'],
  ...['--poll-rate', '0']
]);

function begin(t, path) {
  const limits = new AddressLimits(OPTIONS);
  const pool = new Pool(OPTIONS, limits);
  t.teardown(() => pool.close());
  pool.openState({
    path,
    stateBytes: OPTIONS.stateBytes,
    journalBytes: OPTIONS.journalBytes,
    snapshotEvery: OPTIONS.snapshotEvery,
    sync: 'never'
  });
  return { pool, limits };
}

const ENDS = {
  'in order: a snapshot': (pool) => {
    pool.finishState();
    pool.closeState();
  },
  'without a word: a journal': (pool) => pool.closeState()
};

const stateIn = (t) => join(t.testdir(), 'state');

for (const [name, end] of Object.entries(ENDS)) {
  t.test(`after a run that has ended ${name}`, async (t) => {
    const path = stateIn(t);
    const first = begin(t, path);
    const other = first.pool.join(OTHER).id;
    const hostile = [1, 2].map(() => first.pool.join(HOSTILE).id);
    // Round and round: each catches some of them.
    for (const edge of ['left', 'right', 'up', 'down']) {
      t.equal(first.pool.throw(hostile[0], edge, -1, SPRITE), 'queued');
    }
    // Its thrower leaves, and its sprites stay its address's.
    first.pool.leave(hostile[0]);
    end(first.pool);

    const { pool, limits } = begin(t, path);
    t.equal(pool.status().waiting, 4);
    t.equal(pool.status().clients, 2);
    t.equal(pool.throw(hostile[1], 'left', -1, SPRITE), 'too-many-sprites');
    t.equal(pool.throw(other, 'left', -1, SPRITE), 'queued', 'others throw');
    t.equal(pool.join(HOSTILE).outcome, 'ok', 'the place that was given back');
    t.equal(pool.join(HOSTILE).outcome, 'too-many-clients', 'and no third');
    t.equal(pool.join(OTHER).outcome, 'ok', 'others join');

    // An end in order and one more start: the same again, and all is given back at the end.
    pool.finishState();
    pool.closeState();
    const last = begin(t, path);
    t.equal(last.pool.join(HOSTILE).outcome, 'too-many-clients');
    for (const { id } of [{ id: other }, { id: hostile[1] }]) last.pool.leave(id);
    t.equal(last.pool.join(HOSTILE).outcome, 'ok');
    t.ok(limits.native.size() > 0);
  });
}

t.test('when all have left, nothing is counted for any address', async (t) => {
  for (const end of Object.values(ENDS)) {
    const path = stateIn(t);
    const first = begin(t, path);
    const ids = [HOSTILE, HOSTILE, OTHER].map((address) => first.pool.join(address).id);
    for (const id of ids) first.pool.throw(id, 'up', -1, SPRITE);
    end(first.pool);
    const { pool, limits } = begin(t, path);
    for (const id of ids) pool.leave(id);
    t.equal(pool.status().waiting, 0);
    t.equal(limits.native.size(), 0);
  }
});
