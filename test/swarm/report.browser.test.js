/* global document, window */
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import t from 'tap';

import { amissTo, CHROMIUM, launchBrowser, noBrowser } from '../support/page-browser.js';
import { ROOT, startServer } from '../support/server.js';
import { reportFrom } from '../support/swarm.js';

const PHONE = {
  viewport: { width: 390, height: 800 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true
};

// The tests mostly wait.
t.jobs = 4;

async function launch(t) {
  // In the headless shell no chart notices a tap.
  const browser = await launchBrowser(CHROMIUM);
  t.teardown(() => browser.close());
  return browser;
}

t.test(
  'in a browser: it fetches nothing, and values stand under the pointer',
  { skip: noBrowser(CHROMIUM) },
  async (t) => {
    const server = await startServer(t);
    const file = await reportFrom(t, server, ['throw', 50, '--rate', 200, '--time', 1.5]);
    const browser = await launch(t);
    const pages = {
      'on a desktop': { viewport: { width: 1200, height: 900 } },
      'on a phone': PHONE
    };
    for (const [name, how] of Object.entries(pages)) {
      for (const colorScheme of ['light', 'dark']) {
        await t.test(`${name}, ${colorScheme}`, async (t) => {
          const context = await browser.newContext({ ...how, colorScheme });
          const page = await context.newPage();
          const fetched = [];
          page.on('request', (request) => fetched.push(request.url()));
          page.on('pageerror', (error) => t.fail(error.message));
          page.on('console', (message) => t.not(message.type(), 'error', message.text()));
          await page.goto(pathToFileURL(file).href);
          const over = page.locator('#percentiles .u-over');
          await over.waitFor();
          const { width, height } = await over.boundingBox();
          const position = { x: width / 2, y: height / 2 };
          await (how.hasTouch ? over.tap({ position }) : over.hover({ position }));
          await page
            .locator('#percentiles .u-legend .u-value', { hasText: /^[0-9.]+ (µs|ms|s)$/ })
            .first()
            .waitFor();
          t.same(fetched, [pathToFileURL(file).href]);
          const { wide, fonts, small } = await page.evaluate(() => ({
            wide: document.documentElement.scrollWidth - window.innerWidth,
            // The visible size of a chart's text: the page may show the canvas smaller than it is.
            fonts: [...document.querySelectorAll('canvas')].map((canvas) => {
              const [, size] = /([0-9.]+)px/.exec(canvas.getContext('2d').font);
              return (Number(size) * canvas.clientWidth) / canvas.width;
            }),
            small: [...document.querySelectorAll('main *, svg text')]
              .map((one) => Number.parseFloat(window.getComputedStyle(one).fontSize))
              .filter((size) => size < 12)
          }));
          t.ok(wide <= 0, 'as wide as the screen');
          t.equal(fonts.length, 6);
          t.ok(Math.min(...fonts) >= 12, `${fonts} pixels`);
          t.same(small, []);
          t.strictSame(await amissTo(page), []);
          await context.close();
        });
      }
    }
  }
);

/** With PICTURES set, takes the picture of lib/swarm/README.md. */
if (process.env.PICTURES) {
  t.test('a picture for the README', async (t) => {
    const server = await startServer(t);
    const args = ['throw', 500, '--rate', 1000, '--time', 12, '--status-port', server.adminPort];
    const file = await reportFrom(t, server, [...args, '--p99', '500ms', '--missing', 0]);
    const browser = await launch(t);
    const page = await browser.newPage({ viewport: { width: 1000, height: 1600 } });
    await page.goto(pathToFileURL(file).href);
    const over = page.locator('#percentiles .u-over');
    const { width, height } = await over.boundingBox();
    await over.hover({ position: { x: width * 0.8, y: height / 2 } });
    await page.screenshot({ path: join(ROOT, 'test/pictures/swarm-report.png') });
  });
}
