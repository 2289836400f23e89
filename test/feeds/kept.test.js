import {
  copyFileSync,
  linkSync,
  readdirSync,
  readFileSync,
  renameSync,
  writeFileSync
} from 'node:fs';
import { createHash } from 'node:crypto';
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
  return { options, folder, begin };
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

t.test('what version 0.1 kept in files of its own is taken over once', async (t) => {
  const { begin, folder, options } = kept(t);
  const one = await begin();
  await one.join();
  await one.stop();
  const state = options.state;
  // The number of the run, as that version's header and ours have it.
  const run = readFileSync(state).readUInt32LE(44);
  const text = JSON.stringify({ padding: 'x'.repeat(400), score: 2 });
  const log = ',{"op":"replace","path":"/score","value":2}';
  const head = { key: 'a', epoch: 77, version: 5, patches: [0], upstream: false };
  const broken = '{"a":undefined}';
  const body =
    `sprites-feeds 2 ${run}\n` +
    `${JSON.stringify({ ...head, value: text.length, log: log.length })}\n${text}${log}` +
    `${JSON.stringify({ ...head, key: 'b', patches: [], value: broken.length, log: 0 })}\n${broken}`;
  const sha256 = createHash('sha256').update(body).digest('hex');
  const feeds = `${body}${JSON.stringify({ end: 2, sha256 })}\n`;
  const bans = JSON.stringify({ bans: [{ address: '192.0.2.7', end: Date.now() + 1e6 }] });
  writeFileSync(`${state}.feeds`, feeds.replace(sha256, '0'.repeat(64)));
  await t.rejects(begin(), /state\.feeds: it is damaged/);
  writeFileSync(`${state}.feeds`, feeds);
  writeFileSync(`${state}.bans`, bans);
  const two = await begin();
  const { body: patch } = await get(two, 'a', 'after=e25-4&delta=1');
  t.equal(patch.cursor, 'e25-5');
  t.equal(patch.patch.length, 1);
  t.equal((await get(two, 'b')).status, 404, 'what is no JSON is left out');
  await two.kill();
  t.strictSame(
    readdirSync(folder).filter((name) => /feeds|bans/.test(name)),
    ['state.bans.previous', 'state.feeds.previous']
  );
  // Put back later it is of another run, and not taken.
  writeFileSync(`${state}.feeds`, feeds);
  const three = await begin();
  t.equal((await get(three, 'a')).body.cursor, 'e25-5', 'it is in the state');
  await put(three, 'a', value(3));
  await three.stop();
});
