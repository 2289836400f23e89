/* global document, getComputedStyle */
import { createServer, request } from 'node:http';

import t from 'tap';

import { listening } from '../support/addresses.js';
import { TOKEN, tokenFile } from '../support/feeds.js';
import { browserRig, hurl, look, online, resting, until } from '../support/page-browser.js';

/** The pages under a path of a proxy, and pages whose scripts don't load. */

const { browser, end, serve, skip } = browserRig(t);

/**
 * Starts a proxy before a server: /s/ leads to all of the server, /half/ only to the document of a page.
 *
 * @returns {Promise<string>} its URL
 */
async function startProxy(t, base) {
  const proxy = createServer((incoming, response) => {
    const { method, url, headers } = incoming;
    const [, path] = /^\/s(\/.*)$/.exec(url) ?? /^\/half(\/(?:play\/hall)?)$/.exec(url) ?? [];
    if (path === undefined) return response.writeHead(404).end();
    const { host } = new URL(base);
    const onward = request(new URL(path, base), { method, headers: { ...headers, host } });
    onward.on('response', (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    response.on('close', () => onward.destroy());
    return incoming.pipe(onward);
  });
  return `http://127.0.0.1:${await listening(t, proxy)}`;
}

t.test('under a path, behind a proxy', { skip }, async (t) => {
  const server = await serve('--arena', 'hall', '--publish-token-file', tokenFile(t));
  const proxy = await startProxy(t, server.base);
  const page = await browser.visit(`${proxy}/s/`);
  await resting(page);
  await hurl(page, (await look(page)).list[0], 'left');
  await until(page, 'caught', 1);
  await page.click('#invite');
  await page.waitForFunction(() => document.getElementById('qr').width > 100);
  t.notOk(await page.locator('.late').isVisible());
  await page.context().close();

  const headers = { Authorization: `Bearer ${TOKEN}`, 'Content-Type': 'application/json' };
  const control = { method: 'PUT', headers, body: '{"game":"load","page":"play","running":true}' };
  t.equal((await fetch(`${proxy}/s/feed/arena/hall/control`, control)).status, 200);
  for (const path of ['play/hall', 'field/hall', 'control/hall']) {
    const one = await browser.open(`${proxy}/s/${path}`);
    await online(one);
    if (path.startsWith('control')) {
      await one.fill('#token', TOKEN);
      await one.click('#token-form button');
    }
    await one.locator('#root > *, #own > *').first().waitFor(); // shown by the game's own files
    t.notOk(await one.locator('.late').isVisible(), path);
    await one.context().close();
  }
  const astray = browser.requests.filter(
    (url) => url.startsWith(proxy) && !url.startsWith(`${proxy}/s/`)
  );
  t.same(astray, [], 'every address is under the path');

  for (const path of ['', 'play/hall']) {
    const half = await browser.open(`${proxy}/half/${path}`);
    // Without its style sheet the page shows this at once, with it after a while.
    const late = half.getByText('This page needs JavaScript, and its own has not loaded.');
    await late.waitFor();
    t.equal(await half.getAttribute('body', 'data-state'), 'loading');
    await half.context().close();
  }
  await end(server);
});

t.test('scripts that do not load say so, after a while', { skip }, async (t) => {
  const server = await serve();
  for (const reducedMotion of ['reduce', 'no-preference']) {
    const page = await browser.open('about:blank', { reducedMotion });
    await page.route('**/page/page.js', (route) => route.fulfill({ status: 404 }));
    await page.goto(server.base);
    const late = page.locator('.late');
    t.notOk(await late.isVisible(), 'it may still come');
    await late.evaluate((element) => element.getAnimations().forEach((one) => one.finish()));
    t.ok(await late.isVisible());
    t.equal(await late.evaluate((element) => getComputedStyle(element).position), 'fixed');
    await page.context().close();
  }
  await end(server);
});

t.test('a script that did not come comes with a reload', { skip }, async (t) => {
  const server = await serve();
  const page = await browser.open('about:blank');
  for (const file of ['page/page.js', 'client/client.js']) {
    await page.route(`**/${file}`, (route) => route.abort(), { times: 1 });
    await page.goto(server.base);
    await online(page);
  }
  t.equal(await page.evaluate(() => sessionStorage.getItem('sprites.reloads')), null);
  await end(server, page);
});
