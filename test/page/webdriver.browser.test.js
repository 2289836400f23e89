/* global document, innerHeight */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import t from 'tap';

import { Client } from '../../lib/client/client.js';
import { arenaOptions, tell } from '../support/arena.js';
import { put, tokenFile } from '../support/feeds.js';
import { among, look, online, place, resting, until } from '../support/page-browser.js';
import { startServer } from '../support/server.js';
import { reportFrom } from '../support/swarm.js';
import { until as soon } from '../support/until.js';
import { BROWSERS, DrivenPage } from '../support/webdriver.js';

/** The page, an arena's pages, plots and the client as a module in WebKit, with an invalid language, and in Firefox. */

t.setTimeout(300_000);

/** Defines a test for each browser. */
function inEach(name, test) {
  for (const [browser, { skip }] of Object.entries(BROWSERS)) {
    const visit = (t) => (url, size) => DrivenPage.open(t, browser, url, size);
    t.test(`${browser}: ${name}`, { skip }, (t) => test(t, visit(t)));
  }
}

const at = (server, path = '') => `http://127.0.0.1:${server.port}/${path}`;

/** Asserts that the page has no complaints. With PICTURES set, saves a screenshot there. */
async function well(t, page, name) {
  const picture = `${page.browser}-${name}.png`;
  if (process.env.PICTURES) await page.screenshot(join(process.env.PICTURES, picture));
  t.strictSame(await page.complaints(), [], name);
}

inEach('the page throws, and catches', async (t, visit) => {
  const server = await startServer(t, { options: { lease: 60 } });
  const page = await visit(at(server));
  await online(page);
  const seen = [];
  const client = new Client({
    base: `http://127.0.0.1:${server.port}`,
    onSprite: (sprite) => seen.push(sprite)
  });
  t.teardown(() => client.stop());
  client.start();
  await among(page);
  const [, , rows] = await place(page);
  const [sprite] = (await look(page)).list;
  const to = rows === 1 ? { x: 2, y: sprite.y } : { x: sprite.x, y: 0 };
  await page.drag(sprite, to);
  await until(page, 'thrown', 1);
  await soon(() => seen.length === 1, 'it is over there');
  t.equal(seen[0].id, sprite.id);
  await client.throw(rows === 1 ? 'left' : 'up', { ...seen[0], speed: [0.3, 0] });
  await until(page, 'caught', 1);
  await resting(page);
  t.ok(
    (await look(page)).list.some(({ id }) => id === sprite.id),
    'and back'
  );
  await well(t, page, 'page');
  await client.leave();
});

inEach('the phone of an arena, and its big screen', async (t, visit) => {
  const server = await startServer(t, { options: arenaOptions(t) });
  await tell(server, { game: 'pong' });
  const phone = await visit(at(server, 'play/hall'), { width: 400, height: 700 });
  const field = await visit(at(server, 'field/hall'), { width: 1280, height: 800 });
  await online(phone);
  await tell(server, { running: true });
  for (const page of [phone, field]) await page.waitForSelector('body[data-page=play]');
  const height = await phone.evaluate(() => innerHeight);
  await phone.waitForSelector('[role=slider]');
  await phone.drag({ x: 180, y: height / 2 }, { x: 180, y: 20 });
  await phone.waitForSelector('[role=slider][aria-valuenow="100"]');
  await server.until(({ inputsReduced }) => inputsReduced > 0);
  await field.waitForFunction(() => Number(document.getElementById('root').dataset.drawn) > 5);
  await well(t, phone, 'phone');
  await well(t, field, 'field');
});

inEach('the plots of the admin page, and of a report', async (t, visit) => {
  const server = await startServer(t, { options: { arena: 'hall' } });
  const file = await reportFrom(t, server, ['throw', 20, '--rate', 100, '--time', 1]);
  for (const [name, url, plots] of [
    ['admin', `http://127.0.0.1:${server.adminPort}/`, '.uplot canvas'],
    ['report', pathToFileURL(file).href, '#percentiles .uplot canvas']
  ]) {
    const page = await visit(url);
    await page.waitForSelector(plots);
    t.match(await page.evaluate(() => globalThis.navigator.language), /^en\b/, name);
    await well(t, page, name);
  }
});

inEach('the client, feeds and a player as modules', async (t, visit) => {
  const server = await startServer(t, {
    options: { arena: 'hall', 'publish-token-file': tokenFile(t) }
  });
  const page = await visit(at(server, 'client/place.js'));
  await put(server, 'a', { list: [1, 2, 3], text: 'x'.repeat(200) });
  await page.evaluate(async () => {
    const base = globalThis.location.origin;
    const [{ Client, Feeds }, { Player }] = await Promise.all([
      import(`${base}/client/client.js`),
      import(`${base}/client/player.js`)
    ]);
    const heard = { sprites: [], values: [], states: [] };
    const client = new Client({
      base,
      onSprite: (sprite, { from }) => heard.sprites.push([sprite, from])
    });
    client.start();
    new Feeds({ base }).watch('a', (value, { patch }) =>
      heard.values.push([value.list, patch?.length])
    );
    const player = new Player({
      base: `${base}/arena/hall`,
      onState: (state) => heard.states.push(state)
    });
    player.start();
    player.addInput({ y: 0.25 });
    Object.assign(globalThis, { heard, client, player });
  });
  await page.waitForFunction(() => globalThis.heard.values.length === 1);
  await put(server, 'a', { list: [1, 2, 3, 4], text: 'x'.repeat(200) });
  const thrown = await page.evaluate(() => globalThis.client.throw('left', { a: 1 }));
  t.match(thrown, { thrown: true, state: 'delivered' });
  await page.waitForFunction(() => {
    const { sprites, values } = globalThis.heard;
    return sprites.length === 1 && values.length === 2;
  });
  const { sprites, values } = await page.evaluate(() => globalThis.heard);
  t.strictSame(sprites, [[{ a: 1 }, 'right']]);
  t.strictSame(values, [
    [[1, 2, 3], null],
    [[1, 2, 3, 4], 1]
  ]);
  await server.until(({ players, inputs }) => players === 1 && inputs > 0);
  await page.evaluate(() => globalThis.client.leave());
  t.equal((await server.status()).clients, 0);
  await well(t, page, 'clients');
});
