import { mkdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Client } from '../lib/page/protocol.js';
import {
  Browser, Server, drag, holds, hurl, look, noBrowser, noisePng, online, place, png, resting,
  until,
} from './support/page-browser.js';

const PICTURES = fileURLToPath(new URL('./pictures/', import.meta.url));
const skip = noBrowser();
const browser = new Browser();
const servers = [];

/** A server for one test. */
async function serve(...args) {
  const server = await new Server(...args).start();
  servers.push(server);
  return server;
}

t.before(async () => {
  if (!skip) await browser.start();
});

t.teardown(async () => {
  await browser.stop();
  for (const server of servers) await server.stop('SIGKILL');
});

/** Closes the visitors and ends the server. */
async function end(server, ...pages) {
  for (const page of pages) await page.context().close();
  await server.stop('SIGKILL');
}

/** Over which edge the first page's sprites reach the second one's, of two. */
async function edgeBetween(page, other) {
  const [[row, , rows], [otherRow]] = [await place(page), await place(other)];
  return rows === 1 || row === otherRow ? ['right', 'left'] : ['down', 'up'];
}

/** What the server knows to be joined. */
function clients(server, count) {
  return poll(async () => (await server.status()).clients === count);
}

async function poll(isSo) {
  for (let i = 0; i < 300; i += 1) {
    if (await isSo()) return true;
    await new Promise((go) => { setTimeout(go, 50); });
  }
  return false;
}

t.test('a page alone says so, and catches what it throws', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  await page.waitForFunction(() => document.getElementById('count').textContent === '1');
  t.match(await page.textContent('#state'), /Only you/);
  t.match(await page.title(), /^1 /);
  t.same(await place(page), [0, 0, 1, 1]);
  const [sprite] = (await look(page)).list;
  for (const [i, edge] of ['left', 'right', 'up', 'down'].entries()) {
    const [{ x, y }] = (await look(page)).list;
    await hurl(page, { x, y }, edge);
    await until(page, 'caught', i + 1);
    await holds(page, 1);
    t.equal((await look(page)).list[0].id, sprite.id, `by the ${edge} edge and in again`);
    await resting(page);
  }
  const counts = await server.status();
  t.equal(counts.thrown, counts.acked + counts.waiting + counts.lost);
  t.ok(counts.thrown >= 4);
  await end(server, page);
});

t.test('two pages throw to each other, both ways', { skip }, async (t) => {
  const server = await serve();
  const one = await browser.visit(server.base);
  const two = await browser.visit(server.base, { viewport: { width: 700, height: 900 } });
  await clients(server, 2);
  for (const page of [one, two]) {
    await page.waitForFunction(() => document.getElementById('count').textContent === '2');
    t.match(await page.textContent('#state'), /Throw something over an edge/);
  }
  await one.waitForFunction(() => document.body.dataset.place.split(' ').slice(2).join(' ') !== '1 1');
  const [there, back] = await edgeBetween(one, two);
  const [sprite] = (await look(one)).list;
  await hurl(one, sprite, there);
  await until(two, 'caught', 1);
  await holds(two, 2);
  t.ok((await look(two)).list.some(({ id }) => id === sprite.id), 'it is over there');
  t.notOk((await look(one)).list.some(({ id }) => id === sprite.id), 'and no longer here');
  const caught = (await look(one)).caught;
  await resting(two);
  const other = (await look(two)).list.find(({ id }) => id !== sprite.id);
  await hurl(two, other, back);
  await until(one, 'caught', caught + 1);
  t.ok((await look(one)).list.some(({ id }) => id === other.id));
  const counts = await server.status();
  t.equal(counts.lost, 0);
  await end(server, one, two);
});

t.test('it enters by the opposite edge, at the same height and as fast', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  const seen = [];
  const client = new Client({
    base: server.base, onSprite: (sprite, { from }) => seen.push({ ...sprite, from }),
  });
  client.start();
  await clients(server, 2);
  await page.waitForFunction(() => document.body.dataset.place.split(' ').slice(2).join(' ') !== '1 1');
  const [, , rows] = await place(page);
  const [there, back] = rows === 1 ? ['right', 'left'] : ['down', 'up'];
  const { width, height } = await page.locator('#stage').boundingBox();
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, there);
  t.ok(await poll(async () => seen.length > 0));
  const share = rows === 1 ? sprite.y / height : sprite.x / width;
  t.ok(Math.abs(seen[0].at - share) < 0.05, `thrown at ${share}, seen at ${seen[0].at}`);
  t.ok(seen[0].speed[0] > 0.5 && Math.abs(seen[0].speed[1]) < 0.5, `as fast as ${seen[0].speed}`);
  t.equal(seen[0].from, back);

  // From the other side: where it comes in tells where it was thrown.
  const thrown = { id: 'from-node', picture: 'ghost', at: 0.25, speed: [0.2, 0], name: 'Boo' };
  t.match(await client.throw(back, thrown), { thrown: true });
  await page.waitForFunction(() => document.getElementById('stage').dataset.where.includes('from-node'));
  await resting(page);
  const found = (await look(page)).list.find(({ id }) => id === 'from-node');
  const at = rows === 1 ? found.y / height : found.x / width;
  t.ok(Math.abs(at - 0.25) < 0.01, `thrown at 0.25, found at ${at}`);
  await client.leave();
  await end(server, page);
});

t.test('a throw the neighbor has no room for bounces back', { skip }, async (t) => {
  const server = await serve('--mailbox', '1');
  await server.fill(11);
  const page = await browser.visit(server.base);
  const [first] = (await look(page)).list;
  await hurl(page, first, 'left');
  await until(page, 'thrown', 1);
  await holds(page, 0);
  await page.locator('.pick').first().click();
  await resting(page);
  await holds(page, 1);
  const [second] = (await look(page)).list;
  await hurl(page, second, 'left');
  await until(page, 'bounced', 1);
  await holds(page, 1);
  const seen = await look(page);
  t.equal(seen.list[0].id, second.id, 'it is still here');
  t.equal(seen.thrown, 1);
  t.match(await page.textContent('#toast'), /left neighbor has no room/);
  t.equal((await server.status()).thrown, 1);
  await end(server, page);
});

t.test('a server restart in between: nothing gets lost, and it goes on', { skip }, async (t) => {
  const server = await serve('--drain', '0');
  const one = await browser.visit(server.base);
  const two = await browser.visit(server.base);
  await clients(server, 2);
  await server.stop();
  await Promise.all([online(one, 'offline'), online(two, 'offline')]);
  t.match(await one.textContent('#state'), /Trying again/);
  const [sprite] = (await look(one)).list;
  await hurl(one, sprite, 'right');
  await resting(one);
  await holds(one, 1);
  t.equal((await look(one)).thrown, 0, 'the edges are walls meanwhile');
  await server.start();
  await Promise.all([online(one), online(two)]);
  t.ok(await clients(server, 2), 'both have joined anew');
  await one.waitForFunction(() => document.body.dataset.place.split(' ').slice(2).join(' ') !== '1 1');
  const [there] = await edgeBetween(one, two);
  await resting(one);
  const [{ x, y }] = (await look(one)).list;
  await hurl(one, { x, y }, there);
  await until(two, 'caught', 1);
  t.ok((await look(two)).list.some(({ id }) => id === sprite.id));
  await end(server, one, two);
});

t.test('a throw without an answer waits at its edge and is thrown again with its number', { skip }, async (t) => {
  const server = await serve();
  await server.fill(11);
  const page = await browser.visit(server.base);
  const numbers = new Set();
  let tries = 0;
  await page.route('**/throw/**', async (route) => {
    tries += 1;
    numbers.add(new URL(route.request().url()).search);
    // The first one arrives, and its answer is lost; of the others nothing arrives.
    if (tries === 1) await fetch(route.request().url(), { method: 'POST', body: route.request().postData() });
    await (tries <= 5 ? route.abort('connectionreset') : route.continue());
  });
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'up');
  await until(page, 'flying', 1);
  await until(page, 'thrown', 1);
  await holds(page, 0);
  t.equal(numbers.size, 1, 'always by the same number');
  t.ok(tries > 5, `${tries} tries`);
  const counts = await server.status();
  t.equal(counts.thrown, 1);
  t.equal(counts.duplicates, 1);
  await end(server, page);
});

t.test('the server dies with a throw under way: the sprite comes back', { skip }, async (t) => {
  const server = await serve();
  await server.fill(11);
  const page = await browser.visit(server.base);
  await page.route('**/throw/**', async (route) => {
    await server.stop('SIGKILL');
    await route.abort('connectionreset');
  });
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'up');
  await online(page, 'offline');
  t.equal((await look(page)).flying, 1, 'nobody knows yet');
  await page.unroute('**/throw/**');
  await server.start();
  await holds(page, 1);
  t.equal((await look(page)).list[0].id, sprite.id);
  await end(server, page);
});

t.test('a reload comes back to its place, with its sprites; closing leaves at once', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  await page.locator('.pick').nth(2).click();
  await holds(page, 2);
  const id = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.place')).id);
  const before = await id();
  const ids = (await look(page)).list.map((sprite) => sprite.id);
  await page.reload();
  await online(page);
  await holds(page, 2);
  t.equal(await id(), before, 'the same place');
  t.same((await look(page)).list.map((sprite) => sprite.id), ids, 'the same sprites');
  const { joined } = await server.status();
  t.equal(joined, 1);
  await page.close({ runBeforeUnload: true });
  t.ok(await clients(server, 0), 'gone without waiting for the lease');
  await end(server, page);
});

t.test('a duplicated tab joins anew and has no copies of the sprites', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  const [{ id }] = (await look(page)).list;
  const opened = page.waitForEvent('popup');
  await page.evaluate(() => window.open('/') !== null);
  const copy = await opened;
  await online(copy);
  t.ok(await clients(server, 2));
  await holds(copy, 1);
  t.not((await look(copy)).list[0].id, id);
  t.equal(await page.evaluate(() => document.body.dataset.state), 'online', 'and the first one noticed nothing');
  await end(server, page);
});

t.test('a tab whose place another takes over says so and joins anew', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  const resume = await page.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.place')));
  const other = new Client({ base: server.base, resume, onSprite() {} });
  const said = page.waitForFunction(() => /Another tab has taken over/.test(document.getElementById('state').textContent));
  other.start();
  await said;
  await online(page);
  t.ok(await clients(server, 2));
  t.not((await page.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.place')))).id, resume.id);
  t.equal(other.id, resume.id);
  await other.leave();
  await end(server, page);
});

t.test('keys: arrows walk, space jumps, shift throws, numbers take, delete puts away', { skip }, async (t) => {
  const server = await serve();
  await server.fill(11);
  const page = await browser.visit(server.base);
  const [before] = (await look(page)).list;
  await page.focus('#stage');
  await page.keyboard.down('ArrowRight');
  await page.waitForFunction(() => performance.now() - (globalThis.pressed ??= performance.now()) > 400);
  await page.keyboard.up('ArrowRight');
  await page.keyboard.press(' ');
  await page.waitForFunction((x) => Number(document.getElementById('stage').dataset.where.split(' ')[1]) > x, before.x + 20);
  t.ok(true, 'it has walked');
  await page.keyboard.press('4');
  await until(page, 'sprites', 2);
  await page.keyboard.press('Delete');
  await holds(page, 1);
  t.equal((await look(page)).list[0].id, before.id, 'the one just taken was put away');
  await page.keyboard.press('n');
  await page.keyboard.press('Shift+ArrowLeft');
  await until(page, 'thrown', 1);
  await holds(page, 0);
  await page.keyboard.press('ArrowLeft');
  t.equal((await look(page)).sprites, 0, 'with none there is nothing to walk');
  await page.focus('#name');
  await page.keyboard.type('4 n');
  t.equal((await look(page)).sprites, 0, 'what is typed elsewhere is not for the desktop');
  await end(server, page);
});

t.test('an image file becomes a sprite that fits a throw, and is seen by the neighbor', { skip }, async (t) => {
  const server = await serve();
  const one = await browser.visit(server.base);
  const two = await browser.visit(server.base);
  await clients(server, 2);
  await one.waitForFunction(() => document.body.dataset.place.split(' ').slice(2).join(' ') !== '1 1');
  await one.setInputFiles('#file', [
    { name: 'noise.png', mimeType: 'image/png', buffer: noisePng(900, 600) },
    { name: 'text.png', mimeType: 'image/png', buffer: Buffer.from('this is no image') },
  ]);
  await holds(one, 2);
  t.match(await one.textContent('#toast'), /text\.png is no image/);
  const kept = await one.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.desktop')));
  t.ok(kept);
  const [there] = await edgeBetween(one, two);
  await one.waitForFunction(() => JSON.parse(sessionStorage.getItem('sprites.desktop')).sprites.length === 2);
  const { picture } = (await one.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.desktop')))).sprites[1].sprite;
  t.match(picture, /^data:image\/(webp|png);base64,/);
  t.ok(picture.length <= 12_000, `${picture.length} characters`);
  await one.focus('#stage');
  await one.keyboard.press(there === 'right' ? 'Shift+ArrowRight' : 'Shift+ArrowDown');
  await until(two, 'caught', 1);
  await two.waitForFunction(() => JSON.parse(sessionStorage.getItem('sprites.desktop')).sprites
    .some(({ sprite }) => sprite.picture.startsWith('data:')));

  // Dropped from a file manager.
  await two.evaluate(async () => {
    const canvas = document.createElement('canvas');
    canvas.width = 40;
    canvas.height = 80;
    canvas.getContext('2d').fillRect(0, 0, 40, 80);
    const blob = await new Promise((go) => { canvas.toBlob(go); });
    const data = new DataTransfer();
    data.items.add(new File([blob], 'black.png', { type: 'image/png' }));
    const event = { bubbles: true, cancelable: true, dataTransfer: data, clientX: 300, clientY: 200 };
    document.getElementById('stage').dispatchEvent(new DragEvent('dragover', event));
    document.getElementById('stage').dispatchEvent(new DragEvent('drop', event));
  });
  await two.waitForFunction(() => /\b300 200\b/.test(document.getElementById('stage').dataset.where));
  t.ok(true, 'it lies where it was dropped');
  await end(server, one, two);
});

t.test('what comes in is never trusted', { skip }, async (t) => {
  const server = await serve('--throw-rate', '0');
  const page = await browser.visit(server.base);
  const client = new Client({ base: server.base, onSprite() {} });
  client.start();
  await clients(server, 2);
  await page.waitForFunction(() => document.body.dataset.place.split(' ').slice(2).join(' ') !== '1 1');
  const [, , rows] = await place(page);
  const edge = rows === 1 ? 'left' : 'up';
  const good = { id: 'x', picture: 'ball', at: 0.5, speed: [0, 0] };
  const bad = [
    { ...good, picture: 'javascript:document.title="owned"' },
    { ...good, picture: 'https://example.org/track.png' },
    { ...good, picture: 'data:image/svg+xml;base64,PHN2ZyBvbmxvYWQ9ImFsZXJ0KDEpIi8+' },
    { ...good, picture: 'data:text/html;base64,PHNjcmlwdD4=' },
    { ...good, speed: [1e6, 0] }, { ...good, at: 2 }, { ...good, id: '<b>' }, {},
    '{"id":"x","picture":"ball","at":1e999,"speed":[0,0]}',
    '{"__proto__":{"picture":"ball"},"id":"x","at":0.5,"speed":[0,0]}',
  ];
  for (const sprite of bad) t.match(await client.throw(edge, sprite), { thrown: true });
  await until(page, 'refused', bad.length);
  t.equal((await look(page)).caught, 0);

  // In the written format, but no image: nothing decodes it, and a torn sticker is shown.
  const bomb = png(30_000, 30_000, Buffer.alloc(40)).toString('base64');
  const url = (type, data) => `data:image/${type};base64,${data}`;
  const odd = [
    url('png', bomb), url('jpeg', bomb), url('png', 'AAAA'), url('gif', Buffer.from('GIF89a').toString('base64')),
    url('webp', Buffer.from('<svg onload=alert(1)>').toString('base64')),
  ];
  for (const [i, picture] of odd.entries()) await client.throw(edge, { ...good, id: `odd${i}`, picture });
  await client.throw(edge, { ...good, id: 'last', name: '<img src=x onerror=alert(1)>' });
  await until(page, 'caught', odd.length + 1);
  await holds(page, odd.length + 2);
  t.equal(await page.locator('img').count(), 0, 'names are drawn, not parsed');
  t.not(await page.title(), 'owned');
  await client.leave();
  await end(server, page);
});

t.test('a phone: fingers throw, and take from the tray', { skip }, async (t) => {
  const server = await serve();
  await server.fill(11);
  const page = await browser.visit(server.base, {
    viewport: { width: 390, height: 844 }, deviceScaleFactor: 2, isMobile: true, hasTouch: true,
  });
  await page.locator('.pick').nth(3).tap();
  await resting(page);
  await holds(page, 2);
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'left', { finger: true });
  await until(page, 'thrown', 1);
  await holds(page, 1);

  // Out of the tray onto the desktop in one movement.
  const box = await page.locator('.pick').first().boundingBox();
  const from = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await drag(page, from, { x: from.x + 120, y: from.y - 360 }, { finger: true, still: 300 });
  await resting(page);
  await holds(page, 2);
  const { x, y } = (await look(page)).list.at(-1);
  t.ok(Math.abs(x - from.x - 120) < 20 && Math.abs(y - from.y + 360) < 20, `it lies where the finger left it: ${x} ${y}`);

  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  t.equal(wide, 390, 'nothing sticks out');
  for (const button of await page.locator('.pick').all()) {
    const { width, height } = await button.boundingBox();
    t.ok(width >= 44 && height >= 44, `large enough for a finger: ${width} by ${height}`);
  }
  await end(server, page);
});

t.test('reduced motion: no ornament moves, and it still throws', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base, { reducedMotion: 'reduce' });
  await page.waitForFunction(() => document.getElementById('count').textContent === '1');
  t.equal(await page.evaluate(() => document.getAnimations().length), 0);
  const [sprite] = (await look(page)).list;
  await hurl(page, sprite, 'left');
  await until(page, 'caught', 1);
  await end(server, page);
});

t.test('it is usable without seeing it', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base);
  const stage = page.getByRole('application', { name: 'Your desktop' });
  t.equal(await stage.count(), 1);
  t.match(await page.evaluate(() => document.getElementById('stage').getAttribute('aria-describedby')), 'keys');
  t.match(await page.textContent('#keys'), /walk/);
  for (const name of ['Take a ball', 'Take a flower']) t.equal(await page.getByRole('button', { name }).count(), 1);
  t.equal(await page.getByLabel('An image of your own').count(), 1);
  await page.waitForFunction(() => /Only you/.test(document.getElementById('news').textContent));
  t.ok(true, 'a live region says the state');
  await end(server, page);
});

t.test('a hundred sprites at once', { skip }, async (t) => {
  const server = await serve();
  await server.fill(11);
  const page = await browser.visit(server.base);
  for (let i = 0; i < 99; i += 1) await page.keyboard.press(String((i % 6) + 1));
  await until(page, 'sprites', 100);
  const rate = await page.evaluate(() => new Promise((go) => {
    let frames = 0;
    const begin = performance.now();
    const tick = (now) => {
      frames += 1;
      if (now - begin < 1500) requestAnimationFrame(tick);
      else go((frames * 1000) / (now - begin));
    };
    requestAnimationFrame(tick);
    // Keep one walking, so that every frame is drawn.
    dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowUp' }));
    setTimeout(() => dispatchEvent(new KeyboardEvent('keyup', { key: 'ArrowUp' })), 1200);
  }));
  t.comment(`${rate.toFixed(1)} frames a second with 100 sprites, drawn without a GPU`);
  t.ok(rate > 0);
  await end(server, page);
});

t.test('nothing outside was asked for, and no page complained', { skip }, async (t) => {
  t.ok(browser.requests.length > 100);
  t.same(browser.requests.filter((url) => !/^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:)/.test(url)), []);
  t.same(browser.complaints, []);
});

t.test('pictures for README', { skip: skip || (process.env.PICTURES ? false : 'set PICTURES=1') }, async (t) => {
  mkdirSync(PICTURES, { recursive: true });
  const server = await serve();
  await server.fill(40);
  const clip = { timeout: 10_000 };
  for (const [name, options] of [
    ['page-desktop', { viewport: { width: 1200, height: 750 }, colorScheme: 'light' }],
    ['page-dark', { viewport: { width: 1200, height: 750 }, colorScheme: 'dark' }],
    ['page-phone', {
      viewport: { width: 390, height: 780 }, isMobile: true, hasTouch: true, colorScheme: 'light',
    }],
  ]) {
    const page = await browser.visit(server.base, options);
    await page.waitForFunction(() => Number(document.body.dataset.people) > 40);
    for (const i of [0, 2, 3, 4]) await page.locator('.pick').nth(i).click();
    await holds(page, 5);
    await page.evaluate(() => document.activeElement.blur());
    await page.mouse.move(0, 0);
    await page.evaluate(() => new Promise((go) => { setTimeout(go, 3500); }));
    await page.screenshot({ path: `${PICTURES}${name}.png`, ...clip });
    await page.context().close();
    t.pass(name);
  }
  await end(server);
});
