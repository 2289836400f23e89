/* global document, getComputedStyle */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { TOKEN } from '../support/feeds.js';
import { freePort } from '../support/addresses.js';
import { browserRig, hurl, look, online, resting, until } from '../support/page-browser.js';
import { temporary } from '../support/processes.js';
import { until as soon } from '../support/until.js';

/** The pages under a path of a proxy, and a page whose scripts don't come. */

const { browser, end, serve, skip } = browserRig(t);

t.setTimeout(300_000); // of all together, on a machine that does other things too

/** Debian keeps some programs where only root looks. */
process.env.PATH += ':/usr/sbin:/sbin';

/** What is asked for under /s/ is the server's; under /half/ the page itself alone. */
const configOf = ({ dir, port, upstream }) => `
  daemon off; master_process off; pid ${dir}/pid; error_log ${dir}/error.log;
  events {}
  http {
    access_log off; proxy_http_version 1.1; proxy_set_header Connection "";
    server {
      listen 127.0.0.1:${port};
      location /s/ { proxy_pass http://${upstream}/; }
      location = /half/ { proxy_pass http://${upstream}/; }
      location = /half/play/hall { proxy_pass http://${upstream}/play/hall; }
    }
  }`;

/** Starts nginx before a server. @returns {Promise<string>} its URL */
async function startProxy(t, base) {
  const dir = temporary(t);
  const port = await freePort();
  const file = join(dir, 'proxy.conf');
  writeFileSync(file, configOf({ dir, port, upstream: new URL(base).host }));
  const child = spawn('nginx', ['-e', '/dev/null', '-c', file], { stdio: 'ignore' });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const url = `http://127.0.0.1:${port}`;
  await soon(async () => {
    if (child.exitCode !== null) throw new Error(`nginx has ended: ${child.exitCode}`);
    return (await fetch(`${url}/s/status`).catch(() => ({ ok: false }))).ok;
  });
  return url;
}

const absent = spawnSync('nginx', ['-v']).error ? 'nginx is not installed' : false;
t.test('under a path, behind a proxy', { skip: skip || absent }, async (t) => {
  const folder = t.testdir({ tokens: `${TOKEN}\n` });
  const arena = ['--arena', 'hall', '--publish-token-file', join(folder, 'tokens')];
  const server = await serve(...arena);
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
    await one.locator('#root > *, #own > *').first().waitFor(); // what the game's own files show
    t.notOk(await one.locator('.late').isVisible(), path);
    await one.context().close();
  }
  const astray = browser.requests.filter(
    (url) => url.startsWith(proxy) && !url.startsWith(`${proxy}/s/`)
  );
  t.same(astray, [], 'every address is under the path');

  for (const path of ['', 'play/hall']) {
    const half = await browser.open(`${proxy}/half/${path}`);
    // Without its style sheet it would say so at once; with it, when it has waited.
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
    await page.route('**/client/client.js', (route) => route.fulfill({ status: 404 }));
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
