import t from 'tap';

import { createServer } from 'sprites-server';

import { skip as noNats, startNats } from '../support/nats.js';
import { browserRig } from '../support/page-browser.js';
import { until } from '../support/until.js';

/** The ring of a world on the page and on the admin port's page, in a real browser. */

const { browser, skip: noBrowser } = browserRig(t);
const skip = noNats || noBrowser;

t.test('the ring of a world', { skip }, async (t) => {
  const nats = await startNats(t);
  const enter = async (name) => {
    const server = await createServer({
      ...{ host: '127.0.0.1', port: 0, adminPort: 0, drain: 0, lease: 300 },
      ...{ world: nats.url, name, worldLease: 3 }
    });
    t.teardown(() => server.close());
    return server;
  };
  const [a, b] = [await enter('a'), await enter('b')];
  const join = async (server) => {
    const answer = await fetch(new URL('join', server.addresses[0]), { method: 'POST' });
    return (await answer.json()).id;
  };
  for (let i = 0; i < 5; i++) await join(a);
  const page = await browser.visit(b.addresses[0], {
    ...(process.env.PICTURES ? { colorScheme: 'light' } : {})
  });
  const ring = page.locator('#world svg');
  /** Waits until the ring's description contains a text. */
  const described = (words) =>
    page.waitForFunction(
      (text) =>
        globalThis.document.querySelector('#world svg').getAttribute('aria-label')?.includes(text),
      words,
      { timeout: 60_000 }
    );
  await described('This is server b, one of 2 that are one torus');
  await described('Off the right end of a row it goes on at a, off the left end at a.');
  t.equal(await page.locator('#world p').textContent(), 'server b, one of 2');
  await page.waitForFunction(() => globalThis.document.body.dataset.people === '6');
  t.equal(await ring.getAttribute('role'), 'img');
  t.equal(await page.getByRole('img', { name: 'This is server b, one of 2' }).count(), 1);
  t.equal(await ring.locator('.arc').count(), 2);
  t.equal(await ring.locator('.own').count(), 1);
  t.equal(await ring.locator('.seam').count(), 2);
  t.same(await ring.locator('.name').allTextContents(), ['a', 'b']);
  const color = (name) =>
    ring
      .locator(name)
      .first()
      .evaluate((one) => globalThis.getComputedStyle(one).stroke);
  t.not(await color('.own'), await color('.arc:not(.own)'), 'this one is marked');
  const own = await ring.locator('.own').boundingBox();
  const other = await ring.locator('.arc:not(.own)').boundingBox();
  t.ok(own.y > other.y, 'this one is at the bottom');

  // A third server, to the right of this one: announced to screen readers.
  const c = await enter('c');
  await join(c);
  await described('one of 3');
  await described('right end of a row it goes on at c, off the left end at a');
  const told = page.locator('#news', { hasText: 'one of 3' });
  await told.waitFor({ state: 'attached' });
  const [right] = await ring.locator('.name', { hasText: 'c' }).all();
  const [left] = await ring.locator('.name', { hasText: 'a' }).all();
  t.ok((await right.boundingBox()).x > (await left.boundingBox()).x, 'right is right');

  const admin = await page.context().newPage();
  await admin.goto(b.adminAddresses[0]);
  const words = admin.locator('#world-words', { hasText: '7 clients together' });
  await words.waitFor();
  t.match(
    await words.textContent(),
    /one of 3 .* It is member, in epoch \d+\. All have 7 clients together\.$/
  );
  const cells = await admin.locator('#servers tr').allTextContents();
  t.equal(cells.length, 3);
  t.match(cells[0], /^aca9781http:\/\/127\.0\.0\.1:\d+025$/);
  t.match(cells[1], /^b \(this one\)3e23e8/);
  t.equal(await admin.locator('#ring .arc').count(), 3);
  t.equal(await admin.locator('#world-problem').isVisible(), false);
  if (process.env.PICTURES) {
    await page.bringToFront();
    await page.screenshot({ path: `${process.env.PICTURES}/page-world.png` });
    await admin.screenshot({ path: `${process.env.PICTURES}/admin-world.png`, fullPage: true });
  }

  // Without the broker the server is cut off, and the pages show it.
  await nats.kill();
  await described('It has no contact with the others now.');
  await admin.locator('#world-problem', { hasText: 'unreachable' }).waitFor();
  t.equal(await page.locator('#world p').textContent(), 'server b, one of 3, cut off');
  await until(() => c.status().world.state === 'cut-off');

  t.same(browser.complaints, [], 'no error, and nothing that its policy forbids');
  await page.context().close();
});

t.test('without a world there is none to see', { skip: noBrowser }, async (t) => {
  const server = await createServer({ host: '127.0.0.1', port: 0, adminPort: 0, drain: 0 });
  t.teardown(() => server.close());
  const page = await browser.visit(server.addresses[0]);
  await page.waitForSelector('body[data-place]');
  t.equal(await page.locator('#world').isVisible(), false);
  const admin = await page.context().newPage();
  await admin.goto(server.adminAddresses[0]);
  await admin.getByText('1 of 1 place taken.').waitFor();
  t.equal(await admin.locator('#world').isVisible(), false);
  t.same(browser.complaints, []);
  await page.context().close();
});
