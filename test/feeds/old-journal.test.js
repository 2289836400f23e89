import { copyFileSync, renameSync } from 'node:fs';

import t from 'tap';

import { get, durableFeedOptions, put } from '../support/feeds.js';
import { startServer } from '../support/server.js';

/** What a start makes of feeds in files that may be old (test/native/journal_test.cc has the states). */

const epochOf = (cursor) => cursor.split('-')[0];

t.test(
  'a journal that was copied back may be an old one: values stay, epochs are new',
  async (t) => {
    const options = { ...durableFeedOptions(t), drain: 0 };
    const one = await startServer(t, { options });
    const { body: first } = await put(one, 'a', 1);
    await one.kill();
    const journal = `${options.state}.journal-0`;
    copyFileSync(journal, `${journal}.copy`);
    renameSync(`${journal}.copy`, journal);
    const two = await startServer(t, { options });
    const { body } = await get(two, 'a', `after=${first.cursor}&delta=1`);
    t.equal(body.value, 1);
    t.not(epochOf(body.cursor), epochOf(first.cursor));
    await two.stop();
  }
);
