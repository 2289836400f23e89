import { copyFileSync, linkSync, renameSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { get, put, TOKEN } from '../support/feeds.js';
import { startServer } from '../support/server.js';

/** What a state keeps of the feeds, and that a publication is a promise: native/store/shelf.h. */

/** Long enough for a patch to be shorter. */
const value = (score) => ({ score, padding: 'x'.repeat(400) });

const epochOf = (cursor) => cursor.split('-')[0];

/** Options of a server with a state. */
function kept(t) {
  const folder = t.testdir({ tokens: `${TOKEN}\n` });
  const options = {
    ...{ drain: 0, 'log-level': 'warn', 'publish-token-file': join(folder, 'tokens') },
    state: join(folder, 'state')
  };
  const begin = () => startServer(t, { options });
  return { folder, begin };
}

t.test(
  'a journal that was copied back may be an old one: values stay, epochs are new',
  async (t) => {
    const { begin, folder } = kept(t);
    const one = await begin();
    const { body: first } = await put(one, 'a', value(1));
    await one.kill();
    const journal = join(folder, 'state.journal-0');
    copyFileSync(journal, `${journal}.copy`);
    renameSync(`${journal}.copy`, journal);
    const two = await begin();
    const { body } = await get(two, 'a', `after=${first.cursor}&delta=1`);
    t.strictSame(body.value, value(1), 'whole');
    t.not(epochOf(body.cursor), epochOf(first.cursor));
    await two.stop();
  }
);

/** What a feed is before and after a stop whose journal is there again, kept by `keep`. */
async function besideOldJournal(t, keep) {
  const { begin, folder } = kept(t);
  const one = await begin();
  const { body: before } = await put(one, 'a', value(1));
  const journal = join(folder, 'state.journal-0');
  keep(journal, join(folder, 'kept'));
  await one.stop();
  renameSync(join(folder, 'kept'), journal);
  const two = await begin();
  const { body: after } = await get(two, 'a');
  await two.stop();
  t.strictSame(after.value, value(1), 'whole');
  return [before.cursor, after.cursor];
}

t.test('so may be a snapshot that was made while a backup was', async (t) => {
  const [before, after] = await besideOldJournal(t, copyFileSync);
  t.not(epochOf(after), epochOf(before));
});

t.test('a journal that a stop was killed before it removed is in the snapshot', async (t) => {
  const [before, after] = await besideOldJournal(t, linkSync);
  t.equal(after, before, 'in its epoch');
});
