/* global axe, CanvasRenderingContext2D, document, drawnLabels, innerWidth */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { createServer } from 'sprites-server';

import { tokenFile } from '../support/feeds.js';
import { browserRig } from '../support/page-browser.js';
import { temporary } from '../support/processes.js';

/** The status page at the admin port. admin.test.js tests its texts and its hour of history. */

const { browser, skip } = browserRig(t);

t.setTimeout(300_000);

const AXE = readFileSync(
  join(import.meta.dirname, '../../node_modules/axe-core/axe.min.js'),
  'utf8'
);

/** Returns the faults that axe finds on a page, and a line if the page is wider than its window. */
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

/** In the page, before its scripts: notes the centered texts on each canvas, those below a plot. */
function noteLabels() {
  const { clearRect, fillText } = CanvasRenderingContext2D.prototype;
  globalThis.drawnLabels = new Map();
  CanvasRenderingContext2D.prototype.clearRect = function (...box) {
    drawnLabels.set(this.canvas, []);
    clearRect.apply(this, box);
  };
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const half = this.measureText(text).width / 2;
    if (this.textAlign === 'center')
      drawnLabels.get(this.canvas)?.push({ text, left: x - half, right: x + half });
    fillText.call(this, text, x, y);
  };
}

/** In the page: returns the labels below plots that run into the next one, or over the edge. */
const crowdedLabels = () =>
  [...drawnLabels].flatMap(([canvas, labels]) => {
    const inOrder = canvas.isConnected ? labels.toSorted((a, b) => a.left - b.left) : [];
    const gap = (4 * canvas.width) / canvas.clientWidth;
    const isCrowded = ({ right }, i) =>
      i + 1 < inOrder.length ? right + gap > inOrder[i + 1].left : right > canvas.width;
    return inOrder.filter(isCrowded).map(({ text }) => text);
  });

/** In the page: whether each plot is as wide as its place. */
const arePlotsDrawn = () =>
  [...document.querySelectorAll('.plot .lines')].every(
    (place) => place.querySelector('canvas')?.clientWidth === place.clientWidth
  );

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
  await page.addInitScript(noteLabels);
  await page.goto(server.adminAddresses[0]);
  /** Waits until a cell of a row matches `cells`. Returns the texts of all cells of that row, as they were then. */
  const row = async (name, cells) => {
    const found = await page.waitForFunction(
      ([head, pattern]) => {
        const isIt = (line) => line.querySelector('[scope=row]')?.textContent === head;
        const line = [...document.querySelectorAll('tr')].find(isIt);
        const texts = line ? [...line.querySelectorAll('td')].map((one) => one.textContent) : [];
        return texts.some((text) => pattern.test(text)) && texts;
      },
      [name, cells],
      { timeout: 60_000 }
    );
    return found.jsonValue();
  };
  await page.getByRole('heading', { name: /^Serving 1 client and 1 watcher; / }).waitFor();
  await page.getByText(/^Sprites \d+\.\d+\.\d+ on Node v/).waitFor();
  await page.getByText('Nothing wants attention.').waitFor();
  t.same((await row('with a place', /1/))[0], '1');
  t.same(await row('median wait, ms', /–/), ['–', ''], 'nothing was thrown yet');
  await page.getByText('1 row of 1 column; 1 of 1 place taken.').waitFor();
  t.match(await row('scores', /1/), ['1', /^\d+ B$/, '1']);
  t.match(await row('hall', /pong/), ['pong, waiting', '0', '0']);
  t.match(await row('all', /\d/), [/^\d/, /^\d/, / B$/]);
  await page.getByText('on the disk within a second.').waitFor();
  // By then the server has asked the file system for its free space.
  await page.locator('#disk', { hasText: /free[0-9.]+ .B of / }).waitFor();

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
  const [all, rate] = await row('thrown', /[1-9][0-9.,]* \/s$/);
  t.ok(Number(all.replace(/,/g, '')) > 0 && /^[0-9.,]+ \/s$/.test(rate), `${all}, ${rate}`);
  const [ever, lately] = await row('median wait, ms', / now$/);
  t.match([ever, lately], [/^[0-9.,]+$/, /^[0-9.,]+ now$/]);
  t.equal((await row('unknown-client', /1/))[0], '1');
  over = true;
  await throwing;
  await page.getByText('It holds: every sprite is accounted for.').waitFor();

  // The plots of the last hour have one sample at least.
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
  const noClient = page.locator('#found', { hasText: 'There is no client with this id.' });
  await noClient.waitFor();

  // An answer that comes after that to a later question.
  let first;
  await page.route(`**/clients/${id}`, (route) => void (first = route));
  const answered = [id, 'nobody'].map((asked) => page.waitForResponse(`**/clients/${asked}`));
  for (const asked of [id, 'nobody']) {
    await page.getByLabel('Its id').fill(asked);
    await page.getByLabel('Its id').press('Enter');
  }
  await answered[1];
  await first.continue();
  await answered[0];
  await page.evaluate(async () => (await fetch('overview')).text()); // By then the page has read it.
  t.ok(await noClient.isVisible(), 'what is shown is of the client that was asked for last');

  t.equal(await page.locator('main').count(), 1);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    for (const [width, height] of [
      [1280, 800],
      [360, 740]
    ]) {
      await page.setViewportSize({ width, height });
      t.same(await faultsOf(page), [], `${colorScheme}, ${width} pixels`);
      await page.waitForFunction(arePlotsDrawn);
      t.same(await page.evaluate(crowdedLabels), [], `${colorScheme}, ${width} pixels`);
    }
  }
  // The page gets one answer of a restarted server, and no answer after that.
  let looks = 0;
  await page.route('**/overview', async (route) => {
    looks += 1;
    if (looks > 1) return;
    const overview = await (await route.fetch()).json();
    Object.assign(overview.status, { uptime: -1, thrown: 0, clients: 7 });
    await route.fulfill({ json: overview });
  });
  await page.getByRole('heading', { name: /^Serving 7 clients/ }).waitFor();
  t.strictSame(await row('thrown', /0/), ['0', ''], 'nothing was thrown backwards');
  t.same(browser.complaints, [], 'no error, and nothing that its policy forbids');
  await visitor.context().close();
  await server.close();
  await watching;
});
