/* global axe, document, innerWidth */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { createServer } from 'sprites';

import { alarms, bytes, headline, lawOf, span } from '../../lib/server/admin-page/admin-words.js';
import { History } from '../../lib/server/history.js';
import { tokenFile } from '../support/feeds.js';
import { browserRig } from '../support/page-browser.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';

/** The page for people at the admin port: its words, its hour of history, and all of it in a real browser. */

const { browser, skip } = browserRig(t);

t.setTimeout(300_000);

const status = {
  ...{ clients: 12_410, thrown: 7, acked: 4, waiting: 2, lost: 1, world: null },
  ...{ mailboxBytes: 0, feedMemory: 0, journalUnsyncedSeconds: 0.4, stateBlocked: 0 }
};
const overview = {
  ...{ unready: null, state: { file: '/var/s', sync: 'second' }, arenas: [] },
  ...{ disk: { folder: '/var', free: 2 ** 34, size: 2 ** 40 } },
  ...{ bounds: { feedMemory: 1000, mailboxMemory: 1000 }, status }
};

/** The same, but for what is said. */
const but = ({ status: its = {}, ...rest }) => ({
  ...overview,
  ...rest,
  status: { ...status, ...its }
});

t.test('the first sentence says what it serves, and what a crash would cost', async (t) => {
  t.equal(headline(overview), 'Serving 12,410 clients; last crash-safe point 0.4 s ago.');
  const served = { clients: 1, watching: 2, players: 3, journalUnsyncedSeconds: 0 };
  t.equal(
    headline(but({ status: served })),
    'Serving 1 client, 2 watchers and 3 players; everything is on the disk.'
  );
  t.match(headline(but({ state: null })), /; nothing is kept/);
  t.match(headline(but({ status: { stateBlocked: 1 } })), /can’t be written/);
  t.match(headline(but({ state: { file: '/s', sync: 'never' } })), /not waited for/);
  t.match(headline(but({ unready: 'The state cannot be written' })), /^Not ready: The state/);
  t.same(
    [0.42, 59, 61, 7300, 90_000].map((seconds) => span(seconds)),
    ['0.4 s', '59 s', '1 min', '2 h 1 min', '1 d 1 h']
  );
  t.same([0, 1023, 1536, 2 ** 31, 2 ** 60].map(bytes), [
    '0 B',
    '1,023 B',
    '1.5 kB',
    '2 GB',
    '1,048,576 TB'
  ]);
});

t.test('the law of sprites, within a world too', async (t) => {
  t.equal(lawOf(status).holds, true);
  t.equal(lawOf({ ...status, waiting: 1 }).holds, false);
  const law = lawOf({ ...status, world: {}, crossedIn: 2, crossedOut: 2 });
  t.equal(law.holds, true);
  t.same(
    [...law.promised, ...law.accounted].map(([words]) => words),
    ['thrown', 'from other servers', 'acknowledged', 'waiting', 'lost', 'to other servers']
  );
});

t.test('what wants attention', async (t) => {
  t.same(alarms(overview, { fetchesFailed: 0 }), []);
  const failed = { game: 'pong', why: 'late', message: 'it took longer than 1 s' };
  for (const [other, words, latest] of [
    [{ unready: 'The state cannot be written' }, /state cannot be written/],
    [{ status: { waiting: 3 } }, /law of sprites does not hold/],
    [{ status: { stateBlocked: 1 } }, /\/var\/s can’t be written/],
    [{ disk: { folder: '/var', free: 1000, size: 2 ** 40 } }, /\/var has 1,000 B left/],
    [{ status: { mailboxBytes: 900 } }, /Mailboxes are 90 % full/],
    [{ status: { feedMemory: 951 } }, /Feeds take 95 %/],
    [{}, /Fetches from --upstream fail/, { fetchesFailed: 0.1 }],
    [{ arenas: [{ name: 'hall', failed }] }, /arena hall the game pong was stopped \(late\)/],
    [{ status: { world: { problem: 'name-taken' } } }, /No member of its world: name-taken/],
    [{ status: { world: { problem: null, state: 'cut-off' } } }, /Cut off/],
    [{ status: { outOfFiles: 2 } }, /No file descriptor was left 2 times/]
  ]) {
    const said = alarms(but(other), latest);
    t.equal(said.length, 1, said.join('\n'));
    t.match(said[0], words);
  }
  t.same(alarms(but({ state: null, disk: null })), []);
});

t.test('an hour is kept, and no more', async (t) => {
  const now = {
    clients: 1,
    thrown: 0,
    refused: {},
    deliveryTimes: { bounds: [1, 2], counts: [0, 0, 0] }
  };
  const history = new History(() => structuredClone(now));
  t.teardown(() => history.close());
  t.match(history.samples, [{ clients: 1, throws: null, refused: null, p99: null, players: 0 }]);
  Object.assign(now, { clients: 2, thrown: 10, refused: { 'neighbor-busy': 3, 'bad-hold': 1 } });
  now.deliveryTimes.counts = [0, 4, 0];
  history.look();
  const [, second] = history.samples;
  t.equal(second.clients, 2);
  t.ok(second.throws > 0 && second.throws / second.refused === 2.5, 'by the same time');
  t.ok(second.p99 > 1 && second.p99 <= 2);
  now.deliveryTimes.counts = [0, 4, 0];
  for (let i = 0; i < 500; i += 1) history.look();
  t.equal(history.samples.length, 360);
  t.equal(history.samples.at(-1).p99, null, 'nothing arrived since');
});

t.test('how long ago the crash-safe point was', async (t) => {
  const join = (server) => fetch(new URL('join', server.addresses[0]), { method: 'POST' });
  for (const [sync, holds] of [
    ['never', (seconds) => seconds > 0.3],
    ['second', (seconds) => seconds === 0]
  ]) {
    const options = { host: '127.0.0.1', port: 0, adminPort: 0, drain: 0, lease: 600, sync };
    const server = await createServer({ ...options, state: `${temporary(t)}/state` });
    t.teardown(() => server.close());
    await join(server);
    await until(async () => {
      const { journalUnsynced, journalUnsyncedSeconds } = server.status();
      return holds(journalUnsyncedSeconds) && journalUnsynced > 0 === (sync === 'never');
    }, sync);
  }
});

const AXE = readFileSync(
  join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'),
  'utf8'
);

/** What axe finds wrong with a page, and whether it is wider than its window. */
async function faultsOf(page) {
  await page.evaluate(AXE);
  const { violations } = await page.evaluate(() => axe.run());
  const [wide, room] = await page.evaluate(() => [
    document.documentElement.scrollWidth,
    innerWidth
  ]);
  const found = violations.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html)}`);
  return wide > room ? [...found, `${wide} pixels wide`] : found;
}

t.test('the admin page, in a browser', { skip }, async (t) => {
  const publishTokenFile = tokenFile(t);
  const options = { host: '127.0.0.1', drain: 0, throwRate: 0, arena: 'hall', publishTokenFile };
  const server = await createServer({
    ...{ ...options, port: 0, adminPort: 0 },
    state: `${temporary(t)}/state`
  });
  t.teardown(() => server.close());
  const at = (path) => new URL(path, server.addresses[0]);
  const [token] = readFileSync(publishTokenFile, 'utf8').split('\n');
  const put = (key, value) =>
    fetch(at(`feed/${key}`), {
      method: 'PUT',
      headers: { Authorization: `Bearer ${token}` },
      body: JSON.stringify(value)
    });
  t.equal((await put('scores', { goals: [1, 2] })).status, 201);
  const watching = fetch(at('feed/scores')).then(async (answer) => {
    const { cursor } = await answer.json();
    return fetch(at(`feed/scores?after=${cursor}&hold=100`)).catch(() => undefined);
  });
  const visitor = await browser.visit(server.addresses[0]);
  const page = await visitor.context().newPage();
  await page.goto(server.adminAddresses[0]);
  /** The cells of a row, once they are as they should be. */
  const row = async (name, cells) => {
    const line = page.locator('tr', { has: page.getByRole('rowheader', { name, exact: true }) });
    await line.locator('td', { hasText: cells }).first().waitFor({ timeout: 60_000 });
    return line.locator('td').allTextContents();
  };
  await page.getByRole('heading', { name: /^Serving 1 client and 1 watcher; / }).waitFor();
  await page.getByText(/^Sprites \d+\.\d+\.\d+ on Node v/).waitFor();
  await page.getByText('Nothing wants attention.').waitFor();
  t.same((await row('with a place', '1'))[0], '1');
  t.same(await row('median wait, ms', '–'), ['–', ''], 'nothing was thrown yet');
  await page.getByText('1 row of 1 column; 1 of 1 place taken.').waitFor();
  t.match(await row('scores', '1'), ['1', /^\d+ B$/, '1']);
  t.match(await row('hall', 'pong'), ['pong, waiting', '0', '0']);
  t.match(await row(`main ${process.pid}`, /\d/), [/^\d/, /^\d/, / B$/]);
  await page.getByText('on the disk within a second.').waitFor();
  t.match(await page.locator('#disk').textContent(), /free[0-9.]+ .B of /);

  const { id } = await (await fetch(at('join'), { method: 'POST' })).json();
  let over = false;
  const throwing = (async () => {
    for (let n = 0; !over; n += 1) {
      await fetch(at(`throw/${id}/left?n=${n}`), { method: 'POST', body: '{"x":1}' });
      await page.waitForTimeout(20);
    }
  })();
  await fetch(at('throw/00000000-0000-8000-8000-000000000000/left'), {
    method: 'POST',
    body: '{}'
  });
  const [all, rate] = await row('thrown', / \/s$/);
  t.ok(Number(all.replace(/,/g, '')) > 0 && /^[0-9.,]+ \/s$/.test(rate), `${all}, ${rate}`);
  const [ever, lately] = await row('median wait, ms', / now$/);
  t.match([ever, lately], [/^[0-9.,]+$/, /^[0-9.,]+ now$/]);
  t.equal((await row('unknown-client', '1'))[0], '1');
  over = true;
  await throwing;
  await page.getByText('It holds: every sprite is accounted for.').waitFor();

  // An hour of history, of which there is one look at least.
  t.equal(await page.locator('.plot').count(), 6);
  t.ok(Number(await page.locator('#plot-clients .lines').getAttribute('data-points')) >= 1);

  // One client, by the keyboard alone.
  await page.getByLabel('Its id').focus();
  await page.keyboard.type(id);
  await page.keyboard.press('Enter');
  await page.locator('#found dt', { hasText: 'has joined from' }).waitFor();
  t.match(
    await page.locator('#found').textContent(),
    /a poll is parkedno.*has joined from127\.0\.0\.1$/
  );
  await page.getByLabel('Its id').fill('nobody');
  await page.getByRole('button', { name: 'Look it up' }).press('Enter');
  await page.locator('#found', { hasText: 'There is no client with this id.' }).waitFor();

  t.equal(await page.locator('main').count(), 1);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of [
      [1280, 800],
      [360, 740]
    ]) {
      await page.setViewportSize({ width, height });
      t.same(await faultsOf(page), [], `${colorScheme}, ${width} pixels`);
    }
  }
  t.same(browser.complaints, [], 'no error, and nothing that its policy forbids');
  await visitor.context().close();
  await server.close();
  await watching;
});
