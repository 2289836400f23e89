/* global MutationObserver, dispatchEvent, document */
import t from 'tap';

import { hmac, inSeconds, keyFile } from '../support/grants.js';
import {
  among,
  browserRig,
  fill,
  holds,
  hurl,
  imageFile,
  look,
  noisePng,
  online,
  reads,
  remembers,
  resting,
  soon,
  undoLonger,
  until
} from '../support/page-browser.js';

const { alone, beside, browser, clients, end, nothingElse, serve, skip } = browserRig(t);

const POST = { method: 'POST' };

/** Many tabs of one browser, which share six connections. */

const TABS = 8;
const PARKED = 4;

/** Opens tabs of one browser that share a storage. */
async function open(server, count) {
  const pages = [await browser.visit(server.base)];
  while (pages.length < count) {
    const page = await pages[0].context().newPage();
    await page.goto(server.base);
    await online(page);
    pages.push(page);
  }
  return pages;
}

t.test('eight tabs throw, catch, and keep their places', { skip }, async (t) => {
  const server = await serve('--lease', '12');
  const pages = await open(server, TABS);
  t.ok(await clients(server, TABS), 'tabs seven and eight have joined, too');

  // Two of the six connections are free for throws, at any time; and every tab gets its turn.
  const polled = new Set();
  for (const [i, page] of pages.entries()) {
    page.on('request', (request) => {
      if (request.url().includes('/poll/')) polled.add(i);
    });
  }
  let most = 0;
  const turns = async () => {
    most = Math.max(most, (await server.status()).parked);
    return polled.size === TABS;
  };
  t.ok(await soon(turns), `${polled.size} tabs have polled`);
  for (let i = 0; i < 40; i += 1) await turns();
  t.ok(most > 1 && most <= PARKED, `${most} polls were parked at a time`);

  for (const page of pages) {
    await page.bringToFront();
    await among(page);
    await resting(page);
    const [sprite] = (await look(page)).list;
    await page.focus('#stage');
    t.ok(sprite);
    await page.keyboard.press('Shift+ArrowRight');
    await until(page, 'thrown', 1);
  }
  const caught = async () => {
    const { acked, thrown, waiting } = await server.status();
    return thrown >= TABS && acked === thrown && waiting === 0;
  };
  t.ok(await soon(caught), 'whatever was thrown is caught');

  // Longer than a lease: tabs that wait for their turn keep their places.
  await pages[0].waitForTimeout(15_000);
  const { joined, expired, left } = await server.status();
  t.same({ joined, expired, left }, { joined: TABS, expired: 0, left: 0 });

  // A closed tab frees its slot at once.
  for (const page of pages.splice(2)) await page.close({ runBeforeUnload: true });
  t.ok(await clients(server, 2));
  t.ok(await soon(async () => (await server.status()).parked === 2));
  await end(server, ...pages.slice(0, 1));
});

/** How a page keeps its place, and where its sprites go when it is closed. */

const hidden = (page, selector) => page.isHidden(selector);

alone('contact is proven by what is answered at once, and never by a poll', async (t, { page }) => {
  await page.waitForFunction(() => document.body.dataset.people === '1');
  // The network is down: parked polls break, and no request gets through.
  await page.context().setOffline(true);
  await online(page, 'offline');
  await reads(page, '#state', /You are offline.*edges are walls/);
  await reads(page, '#state', /Trying (again in 1 s|now)/);
  t.notOk(await hidden(page, '#state .act'), 'one may try now');
  // The network is back, but no poll is answered: the page is online all the same.
  await page.route('**/poll/**', () => {});
  await page.context().setOffline(false);
  await online(page);
  t.match(await page.textContent('#state'), /Only you/);
  t.ok(await hidden(page, '#state .act'));
});

alone('"try now" tries now', async (t, { page }) => {
  let asked = 0;
  let answers = false;
  await page.route(/\/(place|poll|status)\b/, async (route) => {
    if (route.request().url().includes('/place/')) asked += 1;
    await (answers ? route.continue() : route.abort('connectionreset'));
  });
  await page.evaluate(() => dispatchEvent(new Event('offline')));
  await online(page, 'offline');
  // The browser reports a little later that it is offline.
  const words = await page.evaluate(() => {
    Object.defineProperty(navigator, 'onLine', { value: false });
    dispatchEvent(new Event('offline'));
    return document.getElementById('state').textContent;
  });
  t.match(words, /^\s*You are offline/);
  await page.focus('#state .act');
  answers = true;
  const before = asked;
  // By a script: the client may have retried meanwhile, and then the button is hidden from a mouse.
  await page.evaluate(() => document.querySelector('#state .act').click());
  await online(page);
  t.ok(asked > before);
  t.equal(await page.evaluate(() => document.activeElement.id), 'stage', 'the keys go on there');
});

alone('a slow count, or a poll that breaks, is no reason to say "offline"', async (t, { page }) => {
  const states = await page.evaluateHandle(() => {
    const seen = [];
    new MutationObserver(() => seen.push(document.body.dataset.state)).observe(document.body, {
      attributeFilter: ['data-state']
    });
    return seen;
  });
  // Two of each kind: three broken polls in a row would be reason enough.
  const requestCounts = { poll: 0, status: 0 };
  await page.route(/\/(poll|status)\b/, async (route) => {
    const [, kind] = /\/(poll|status)\b/.exec(route.request().url());
    requestCounts[kind] += 1;
    await (requestCounts[kind] > 2 ? route.continue() : route.abort('connectionreset'));
  });
  const placed = page.waitForRequest(/\/place\//);
  await page.evaluate(() => dispatchEvent(new Event('online')));
  await placed;
  t.ok(await soon(() => requestCounts.poll > 2 && requestCounts.status > 2));
  t.same(await states.jsonValue(), []);
});

alone('a closed tab leaves its sprites to the next, photos too', async (t, { server, page }) => {
  await page.setInputFiles('#file', imageFile('noise.png', noisePng(300, 200)));
  await holds(page, 2);
  await resting(page);
  const ids = (await look(page)).list.map(({ id }) => id);
  const context = page.context();
  await page.close({ runBeforeUnload: true });
  t.ok(await clients(server, 0));
  const next = await context.newPage();
  await next.goto(server.base);
  await online(next);
  await until(next, 'sprites', 2 + 1); // and the sprite that a page starts with
  const now = (await look(next)).list.map(({ id }) => id);
  for (const id of ids) t.ok(now.includes(id));
  t.equal(await next.evaluate(() => localStorage.length), 0, 'nothing is left on the shelf');
  await remembers(next, 3);
  // A third tab gets no copies.
  const third = await context.newPage();
  await third.goto(server.base);
  await online(third);
  await third.waitForTimeout(2500); // by then the page has read the shelf
  await holds(third, 1);
});

alone('a reload doubles no sprite that is seen leaving', async (t, { server, page }) => {
  const seen = [];
  const { back } = await beside(server, page, ({ id }) => seen.push(id));
  await resting(page);
  const [sprite] = (await look(page)).list;
  // Once the flight is stored, no frame is drawn, and the wait for its end never ends: the sprite is drawn as it
  // leaves until the reload.
  await page.evaluate(() => {
    const { setItem } = Storage.prototype;
    const { setTimeout } = globalThis;
    Storage.prototype.setItem = function (key, value) {
      if (/"flight":"[a-z]/.test(value)) globalThis.requestAnimationFrame = () => 0;
      setItem.call(this, key, value);
    };
    globalThis.setTimeout = (act, time, ...rest) =>
      time === 250 ? 0 : setTimeout(act, time, ...rest);
  });
  await hurl(page, sprite, back);
  t.ok(await soon(async () => /You threw 1/.test(await page.textContent('#state'))));
  t.equal((await look(page)).flying, 1, 'it is still seen');
  // As by the browser's button: the page leaves and joins again, and no server knows the number of that throw.
  await page.reload();
  await online(page);
  await holds(page, 1);
  t.not(
    (await look(page)).list[0].id,
    sprite.id,
    'what is here is the one that the page greets with'
  );
  t.ok(await soon(() => seen.length > 0));
  t.same(seen, [sprite.id], 'the thrown one is there, once');
});

alone('what is put away can be had back for some seconds', async (t, { page }) => {
  await undoLonger(page);
  await page.focus('#stage');
  await fill(page, 3);
  await resting(page);
  const before = (await look(page)).list.map(({ id }) => id).sort();
  await page.keyboard.press('Delete');
  await holds(page, 2);
  t.match(await page.textContent('#toast'), /You put away the \w+\. Undo/);
  await page.click('#toast .act');
  await holds(page, 3);
  t.same((await look(page)).list.map(({ id }) => id).sort(), before);
  t.ok(await hidden(page, '#toast'));
  t.equal(await page.evaluate(() => document.activeElement.id), 'stage', 'the focus is not lost');
  await page.keyboard.press('Delete');
  await holds(page, 2);
  await page.keyboard.press('n');
  await page.keyboard.press('Delete');
  await holds(page, 1);
  await page.keyboard.press('Control+z');
  t.ok(await hidden(page, '#toast'), 'nothing is left for its button to do');
  await page.keyboard.press('Control+z');
  await holds(page, 3);
  await page.keyboard.press('Control+z');
  t.same((await look(page)).list.map(({ id }) => id).sort(), before, 'there is no more to undo');
});

alone('what is had back fits the window as it is by now', async (t, { page }) => {
  await undoLonger(page);
  await page.focus('#stage');
  await page.keyboard.press('n');
  await page.keyboard.press('Delete');
  await page.setViewportSize({ width: 400, height: 700 });
  await page.waitForFunction(() => document.getElementById('stage').width === 200);
  await page.keyboard.press('Control+z');
  await holds(page, 1);
  await resting(page);
  const [{ x, y }] = (await look(page)).list;
  t.equal(x, 200, 'in the middle, as it was');
  await page.mouse.move(x, y);
  await page.waitForSelector('#stage.over');
  await page.mouse.move(x, y - 34);
  await page.waitForSelector('#stage:not(.over)');
});

t.test('why there is no way in; a grant is in the link', { skip }, async (t) => {
  const keys = keyFile(t);
  const server = await serve('--grants', keys, '--private-join', 'yes', '--arena', 'hall');
  const grant = (claims) => `#grant=${hmac({ exp: inSeconds(60), ...claims })}`;
  for (const [path, words, leave] of [
    ['', '#state', '/leave/{id}'],
    ['play/hall', '#out-words', '/arena/hall/{player}/leave']
  ]) {
    const at = new URL(path, server.base).href;
    const page = await browser.open(at);
    const says = (what) => page.waitForSelector(`${words}:has-text("${what}")`);
    let self;
    let why = 'state-unwritable';
    await page.route(/\/(join|arena\/hall)$/, async (route) => {
      if (why) return route.fulfill({ status: 503, json: { type: `urn:sprites:${why}` } });
      const response = await route.fetch();
      if (response.status() === 201) self = await response.json();
      return route.fulfill({ response });
    });
    await page.reload();
    await says('can keep nothing');
    for (const [problem, what] of [
      ['too-many-clients', 'from your network'],
      ['too-many-joins', 'at once']
    ]) {
      why = problem;
      await page.reload();
      await says(what);
    }
    why = '';
    await page.reload();
    await says('wants an invitation');
    // A link opened in this tab: only the fragment changes.
    await page.goto(at + grant({ join: false }));
    await says('does not let you');
    for (const noGrant of ['x.y.z%E2%82%AC%0A', 'x'.repeat(20_000)]) {
      await page.goto(`${at}#grant=${noGrant}`);
      await page.waitForURL(at);
      await says('not valid');
      await page.evaluate(() => sessionStorage.removeItem('sprites.grant'));
      await page.reload();
      await says('wants an invitation');
    }
    const isJoin = (answer) => answer.status() === 201;
    const joined = page.waitForResponse(isJoin);
    await page.goto(`${at + grant({ join: true })})`);
    await joined;
    t.equal(page.url(), at, 'the address does not show it');
    await page.reload();
    // A client that the server has forgotten joins again, with the grant that the tab has stored.
    const again = page.waitForResponse(isJoin);
    await fetch(
      new URL(
        leave.replace(/\{(.*)\}/, (_, name) => self[name]),
        server.base
      ),
      POST
    );
    t.ok(await again);
    await page.context().close();
  }
  await end(server);
});

nothingElse();
