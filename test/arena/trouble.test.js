/* global document */
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { arenaRig, call, PAGES, says, unlock, unlocked } from '../support/arena-pages.js';
import { MIRROR } from '../support/arena.js';
import { TOKEN } from '../support/feeds.js';
import { keyFile, reads } from '../support/grants.js';
import { online } from '../support/page-browser.js';
import { until } from '../support/until.js';

/** Trouble between an arena's pages and its server, from which the pages recover by themselves. */

const { browser, playing, room, skip } = arenaRig(t);

const QUICK = { args: ['--arena-rate', '50'] };

const BUSY = {
  status: 503,
  contentType: 'application/problem+json',
  headers: { 'Access-Control-Allow-Origin': '*' },
  body: JSON.stringify({ title: 'Too many connections', detail: 'Ask again.' })
};

/** Makes the first matching request fail. @returns {() => number} returns the number of requests */
async function failOnce(page, pattern, fail) {
  let requestCount = 0;
  await page.route(pattern, (route) => {
    requestCount += 1;
    return requestCount === 1 ? fail(route) : route.fallback();
  });
  return () => requestCount;
}

playing('a game whose file did not come is shown later', async (t, { command, visit }) => {
  const phone = await visit(PAGES.phone);
  const field = await visit(PAGES.field, 'big');
  let reload; // The page reloads a second later, and its words are gone then.
  const isSeen = new Promise((go) => (reload = go));
  await phone.route('**/games/worm/phone.js', (route) => isSeen.then(() => route.continue()));
  const first = await failOnce(phone, '**/games/worm/phone.js', (route) => route.abort());
  // A module that the game imports: the browser caches its failure, too.
  const second = await failOnce(field, '**/games/worm/face.js', (route) => route.fulfill(BUSY));
  await command({ game: 'worm', running: true });
  await says(phone, '#about', "worm can't be shown here");
  reload();
  await phone.locator('[role=slider]').waitFor({ timeout: 60_000 });
  await field.locator('.worm-mood').waitFor({ timeout: 60_000 });
  t.ok(first() > 1 && second() > 1);
  t.equal(browser.complaints.length, 2, browser.complaints.join('\n'));
  for (const text of browser.complaints.splice(0)) t.match(text, 'dynamically imported module');
});

playing('a page whose own script did not come loads itself again', async (t, { visit }) => {
  const phone = await visit(PAGES.phone);
  let requestCount = 0;
  await phone.route('**/arena-pages/phone.js', (route) => {
    requestCount += 1;
    return requestCount < 3 ? route.abort() : route.fallback();
  });
  await phone.reload();
  await online(phone);
  t.equal(requestCount, 4, 'not before the server is there');
  const busy = await failOnce(phone, '**/client/player.js', (route) => route.fulfill(BUSY));
  await phone.reload(); // Its own script imports that one.
  await online(phone);
  t.ok(busy() > 1);
});

t.test('a game whose own code fails as it begins is not asked for again', { skip }, async (t) => {
  const { command, visit } = await room(t, {
    games: { early: { ...MIRROR, 'phone.js': 'null.x' } }
  });
  const phone = await visit(PAGES.phone);
  let requestCount = 0;
  phone.on('request', (request) => {
    if (request.url().includes('/early')) requestCount += 1;
  });
  await phone.clock.install();
  await command({ game: 'early', running: true });
  await says(phone, '#about', "early can't be shown here: Cannot read properties of null");
  await phone.clock.runFor(3000);
  await phone.evaluate(async () => (await fetch('../games')).text()); // any further request has come before this answer
  t.equal(requestCount, 1);
  t.equal(browser.complaints.splice(0).length, 1);
});

playing('a field asks a server that is gone every 2 s', async (t, { command, visit }) => {
  const field = await visit(PAGES.field, 'big');
  await field.addInitScript(() => {
    Math.random = () => 0.75;
    const { setTimeout: later } = globalThis;
    globalThis.waits = 0;
    globalThis.setTimeout = (act, ms, ...more) => {
      if (ms !== 1500) return later(act, ms, ...more);
      globalThis.waits += 1;
      return later(act, 0, ...more);
    };
  });
  await field.reload();
  await says(field, '#count', '0');
  await field.route('**/feeds', (route) => route.abort());
  await command({ rate: 5 }); // answers the parked poll
  await field.waitForFunction(() => globalThis.waits > 3);
});

playing('a QR code that could not be drawn is there when it can be', async (t, { visit }) => {
  const field = await visit(PAGES.field, 'big');
  const countRequests = await failOnce(field, '**/page/qrcode.js*', (route) => route.abort());
  await field.reload();
  await field.waitForFunction(() => document.getElementById('code').width > 100);
  t.ok(countRequests() > 1);
});

playing('an address that phones reach comes later, if it did not at once', async (t, { visit }) => {
  const field = await visit(PAGES.field, 'big');
  const addresses = ['http://192.168.1.20:8080/'];
  await field.route('**/addresses', (route) => route.fulfill({ json: { addresses } }));
  for (const fail of [(route) => route.abort(), (route) => route.fulfill(BUSY)]) {
    const countRequests = await failOnce(field, '**/addresses', fail);
    await field.reload();
    await field.locator(`#code[data-url="${addresses}play/hall"]`).waitFor();
    t.equal(countRequests(), 2);
  }
  const missing = await failOnce(field, '**/addresses', (route) => route.fulfill({ status: 404 }));
  await field.clock.install();
  await field.reload();
  await field.locator('#code[data-url*="//127.0.0.1:"]').waitFor();
  await field.clock.runFor(5000);
  await field.evaluate(async () => (await fetch('../games')).text());
  t.equal(missing(), 1, 'a server without this request is not asked again');
});

playing('a list of games that did not come is asked for again', async (t, { visit }) => {
  const panel = await unlocked(visit);
  const countRequests = await failOnce(panel, '**/games', (route) => route.fulfill(BUSY));
  await panel.reload();
  await panel.locator('.chip[data-value=pong]').waitFor();
  t.ok(countRequests() > 1);
});

playing('a panel stays open while the server is busy', async (t, { visit }) => {
  const panel = await unlocked(visit);
  const countRequests = await failOnce(panel, '**/arena/hall/status', (route) =>
    route.fulfill(BUSY)
  );
  await until(() => countRequests() >= 3);
  t.ok(await panel.isVisible('#main'));
  t.notOk(await panel.isVisible('#token-form'));
});

playing('what is set quickly holds in the end', QUICK, async (t, { command, feed, visit }) => {
  await command({ game: 'load', pace: 20, rate: 49, settings: { clients: 0 } });
  const panel = await unlocked(visit, 'desk');
  await says(panel, '#pace-value', '20');
  await says(panel, '[data-name=clients] [role=spinbutton]', '0');
  await panel.route('**/feed/arena/hall/control', async (route) => {
    if (route.request().method() === 'PATCH') await pause(150); // A hall's wireless network.
    return route.fallback();
  });
  await panel.focus('#pace');
  for (let i = 0; i < 10; i += 1) await panel.keyboard.press('ArrowRight', { delay: 30 });
  await until(async () => (await feed('/control')).pace >= 30);
  t.equal(await panel.inputValue('#pace'), '30');
  const more = panel.locator('[data-name=clients] .step').last();
  for (let i = 0; i < 3; i += 1) await more.click();
  await until(async () => (await feed('/control')).settings.clients === 100);
  await says(panel, '[data-name=clients] [role=spinbutton]', '100');
  await panel.locator('#rate[max="50"]').waitFor();
  await panel.press('#rate', 'ArrowRight');
  await until(async () => (await feed('/control')).rate === 50);
  // A value from another panel is shown, too.
  await command({ pace: 7 });
  await says(panel, '#pace-value', '7');
});

t.test('a list of games that comes late says nothing of the next game', { skip }, async (t) => {
  const inputs = MIRROR['inputs.json'];
  const called = (title) => ({ ...MIRROR, 'inputs.json': inputs.replace('Mirror', title) });
  const games = { one: called('One'), two: called('Two'), three: called('Three') };
  const { command, visit } = await room(t, { games });
  const pages = [
    await visit(PAGES.phone),
    await visit(PAGES.field, 'big'),
    await visit(PAGES.panel)
  ];
  await unlock(pages[2]);
  await pages[2].locator('.chip[data-value=two]').waitFor();
  const late = new Map();
  for (const page of pages) await failOnce(page, '**/games', (route) => void late.set(page, route));
  await command({ game: 'two' });
  await until(() => late.size === pages.length);
  await command({ game: 'three' });
  const titles = pages.map((page) => page.locator('#title, #game-title'));
  for (const title of titles) await title.filter({ hasText: 'Three' }).waitFor();
  for (const [i, page] of pages.entries()) {
    const gamesAnswered = page.waitForResponse('**/games');
    await late.get(page).continue();
    await gamesAnswered;
    await page.evaluate(() => new Promise((go) => void setTimeout(go, 100))); // the page has read it
    t.equal(await titles[i].textContent(), 'Three');
  }
});

t.test('field and panel say that a link must have a grant; load takes it', { skip }, async (t) => {
  const args = ['--grants', keyFile(t), '--private', 'arena/*', '--private-join', 'yes'];
  const { command, open, visit } = await room(t, { args });
  await command({ game: 'load', running: true });
  for (const path of [PAGES.field, PAGES.panel]) {
    await says(await open(path), '#state', 'This game wants an invitation.');
  }
  const grant = reads('arena/*', { join: true });
  const phone = await visit(`play/hall#grant=${grant}`);
  await phone.waitForSelector('#root[data-connections="1"]');
  const blind = await visit(`play/hall#grant=${reads('other', { join: true })}`);
  await says(blind, '#state', 'Your invitation does not let you in. Ask for another link.');
});

playing('a page at the address of no arena says so', async (t, { open }) => {
  for (const name of ['attic', '']) {
    const phone = await open(`play/${name}`);
    await says(phone, '#out-words', /^There is no game at this address\. Scan the code/);
    await says(await open(`field/${name}`), '#about', 'There is no such arena');
    await says(await open(`control/${name}`), '#state', 'There is no such arena');
  }
});

playing('a command without an answer does not keep back the next ones', async (t, { visit }) => {
  const panel = await unlocked(visit);
  await says(panel, '#go', 'Start');
  const countRequests = await failOnce(panel, '**/feed/arena/hall/control', () => {}); // no answer comes
  await panel.clock.install();
  await panel.click('#go');
  await until(() => countRequests() === 1);
  await panel.click('#go');
  await panel.clock.fastForward(11_000);
  await says(panel, '#go', 'Stop');
});

playing('a late refusal of an old token leaves the panel open', async (t, { visit }) => {
  const panel = await visit(PAGES.panel);
  // Only the status takes the old token, as before the host has rolled it.
  await panel.route('**/hall/status', (route) => {
    const authorization = `Bearer ${TOKEN}`;
    return route.continue({ headers: { ...route.request().headers(), authorization } });
  });
  await unlock(panel, 'old');
  let late;
  await failOnce(panel, '**/feed/arena/hall/control', (route) => void (late = route));
  await panel.click('#go');
  await until(() => late);
  await panel.click('#forget');
  await unlock(panel);
  const refused = panel.waitForResponse((answer) => answer.status() === 401);
  await late.continue();
  await refused;
  // When a later answer has come, the page has read the one before.
  await panel.evaluate(async () => (await fetch('../games')).text());
  t.ok(await panel.isVisible('#main'));
});

playing('a refusal stays to be read until the next act', async (t, { command, visit }) => {
  await command({ game: 'quiz' });
  const panel = await unlocked(visit);
  await call(await visit(PAGES.phone), 'Ada');
  const held = [];
  for (const pattern of ['**/hall/names/*', '**/hall/control'])
    await panel.route(pattern, (route) => void held.push(route));
  const isHeld = (count) => until(() => held.length === count);
  await panel.click('#names button');
  await isHeld(1);
  await panel.click('#go');
  await isHeld(2);
  await panel.click('.chip[data-value=pong]'); // waits for the answer before
  await held[1].fulfill(BUSY);
  await says(panel, '#refused', 'Ask again.');
  await isHeld(3);
  t.equal(await panel.isVisible('#refused'), true, 'the next of the queue is sent');
  for (const at of [0, 2]) await held[at].continue();
  await says(panel, '#game-title', 'Pong');
  await panel.locator('#names [aria-pressed=true]').waitFor();
  t.equal(await panel.isVisible('#refused'), true, 'others are taken');
  await panel.click('#go');
  await panel.locator('#refused').waitFor({ state: 'hidden' });
});

playing('a right answer too late has no points', async (t, { base, command, feed, visit }) => {
  await command({ game: 'quiz', settings: { seconds: 120 }, running: true });
  await fetch(new URL('arena/hall', base), { method: 'POST' }); // a player that never answers keeps the question open
  const phone = await visit(PAGES.phone);
  await phone.click('.choice[data-at="0"]');
  await until(async () => (await feed()).value?.answered === 1);
  await phone.route('**/arena/hall/*', () => {}); // the input is lost
  await phone.click('.choice[data-at="1"]');
  await command({ settings: { end: (await feed()).value.step } });
  await says(phone, '.verdict', 'Right, but too late. You are 1st of 1.');
});

t.test('nothing else was complained of', { skip }, async (t) => {
  t.strictSame(browser.complaints, []);
});
