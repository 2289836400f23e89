/* global document, window */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import t from 'tap';

import { dataOf } from '../../lib/swarm/page.js';
import { reportOf } from '../../lib/swarm/report.js';
import { amissTo } from '../support/axe.js';
import { CHROMIUM, launchBrowser, noBrowser } from '../support/page-browser.js';
import { ROOT, startServer } from '../support/server.js';
import { start } from '../support/swarm.js';

const PHONE = {
  viewport: { width: 390, height: 800 },
  deviceScaleFactor: 2,
  hasTouch: true,
  isMobile: true
};

// Most of the time they wait.
t.jobs = 4;

async function launch(t) {
  // In the one without windows no chart notices a tap.
  const browser = await launchBrowser(CHROMIUM);
  t.teardown(() => browser.close());
  return browser;
}

/** @returns {Promise<string>} the file of the report of a run that went well */
async function reportFrom(t, server, args) {
  const cwd = t.testdir();
  const all = [...args, '--port', server.port, '--report', 'report.html'];
  const { code, out, err } = await start(t, all, { cwd }).result();
  t.equal(code, 0, `${out} ${err}`);
  return join(cwd, 'report.html');
}

const chartsIn = (html) =>
  JSON.parse(/<script type="application\/json" id="charts">(.*)<\/script>/.exec(html)[1]);

t.test('the report has the command line, the server, its CPU and memory', async (t) => {
  const server = await startServer(t);
  const args = ['throw', 50, '--rate', 100, '--time', 1, '--status-port', server.adminPort];
  const file = await reportFrom(t, server, [...args, '--p99', '20s']);
  const html = readFileSync(file, 'utf8');
  t.match(html, /Every sprite accounted for/);
  t.match(html, `sprites-swarm throw 50 --rate 100 --time 1`);
  t.match(html, /<dd>Sprites [0-9]+\.[0-9]+\.[0-9]+<\/dd>/);
  t.match(html, new RegExp(`By the kernel's account, of process \\S+ ${server.pid}`));
  t.match(html, /<b>[0-9.]+ MB<\/b><span>the server&#39;s memory/);
  t.match(html, /✓ kept<\/span> p99 /);
  t.notMatch(/<main>[^]*<\/main>/.exec(html)[0], /NaN|undefined|Infinity/);
  const { use, version, commandLine } = dataOf(html);
  t.equal(use.by, 'kernel');
  t.match(commandLine, /--p99 20s/);
  t.match(version, /^[0-9]/);
  t.ok(use.memory > 20e6 && use.most >= use.memory && use.cores >= 0);
  t.same(Object.keys(chartsIn(html)), [
    ...['percentiles', 'rates', 'times', 'parked', 'cores', 'memory']
  ]);
});

t.test("where --throw-rate bounds a run, the report says so in 'To know'", async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 5, 'throw-burst': 5 } });
  const file = await reportFrom(t, server, ['throw', 20, '--throwers', 2, '--time', 2]);
  const html = readFileSync(file, 'utf8');
  t.match(html, /<h2>To know<\/h2>[^]*--throw-rate bounds the [0-9]+ sprites a second, not what/);
  t.match(html, /sprites a second, as --throw-rate lets/);
});

t.test("the storm's charts show the drop", async (t) => {
  const server = await startServer(t);
  const charts = chartsIn(readFileSync(await reportFrom(t, server, ['storm', 200]), 'utf8'));
  for (const id of ['storm', 'parked']) {
    const [, parked] = charts[id].data;
    const bottom = parked.lastIndexOf(0);
    t.ok(bottom > 0, `${id} goes down to 0`);
    t.equal(Math.max(...parked.slice(0, bottom)), 200, `${id} comes from all`);
    t.equal(Math.max(...parked.slice(bottom)), 200, `${id} goes back to all`);
  }
});

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
            // What a chart's text is as the reader sees it: its canvas may be shown smaller than it is.
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

t.test('the report shows a fault as one, and trusts no text', async (t) => {
  const latency = { count: 0, p50: null, p90: null, p99: null, 'p99.9': null, max: null };
  const html = reportOf({
    command: 'park',
    commandLine: "sprites-swarm park '<i>'",
    started: '2026-01-01T00:00:00.000Z',
    seconds: 3,
    clients: 10,
    target: { host: '<b>', port: 1, transientPort: 1 },
    opened: { clients: 9, wanted: 10, seconds: 1, perSecond: 9 },
    latency: { arrival: latency, answer: latency, probe: latency },
    account: { sent: 0 },
    faults: ['9 of 10 clients got parked'],
    remarks: ['<script>'],
    series: [],
    phases: {},
    curves: { arrival: [], answer: [], probe: [] },
    interruptions: [],
    engines: {},
    connections: {},
    problems: { 'torus-full': 3 },
    connectErrors: {},
    server: null,
    use: null,
    version: null,
    engineCores: null,
    bounds: [{ holds: false, words: '</script><script>' }],
    parkedByServer: null
  });
  t.match(html, /class="verdict bad">One fault, One bound not kept/);
  t.match(html, /3 torus-full/);
  t.notMatch(html, /<b>:1|<i>'|<script><|<script>"/);
  t.equal(html.match(/<script/g).length, 3, 'its own');
  t.equal(dataOf(html).bounds[0].words, '</script><script>', 'the data come out as they went in');
});

/** Keeps what is to be seen for lib/swarm/README.md, when asked to. */
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
