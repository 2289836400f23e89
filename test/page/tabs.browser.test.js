import t from 'tap';
import { among, browserRig, look, online, resting, soon, until } from '../support/page-browser.js';

/** Many tabs of one browser, which has six connections for all of them. */

const { alone, beside, browser, clients, end, nothingElse, serve, skip } = browserRig(t);

t.setTimeout(300_000); // of all together, on a machine that does other things too

const TABS = 8;
const PARKED = 4;

/** Opens tabs of one browser, with one storage. */
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

t.test(
  'eight tabs: all join, all throw, all catch, and none loses its place',
  { skip },
  async (t) => {
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

    // Longer than a lease: those that wait for their turn have not left.
    await pages[0].waitForTimeout(15_000);
    const { joined, expired, left } = await server.status();
    t.same({ joined, expired, left }, { joined: TABS, expired: 0, left: 0 });

    // A tab that is closed makes room at once.
    for (const page of pages.splice(2)) await page.close({ runBeforeUnload: true });
    t.ok(await clients(server, 2));
    t.ok(await soon(async () => (await server.status()).parked === 2));
    await end(server, ...pages.slice(0, 1));
  }
);

alone('alone, a tab polls as ever', async (t, { server, page }) => {
  const { client, edges } = await beside(server, page);
  const held = [];
  page.on('request', (request) => {
    const url = new URL(request.url());
    if (url.pathname.startsWith('/poll/')) held.push(url.searchParams.get('hold'));
  });
  const thrown = { id: 'one', picture: 'ghost', at: 0.5, speed: [0.2, 0] };
  t.match(await client.throw(edges[0], thrown), { thrown: true, state: 'delivered' });
  await until(page, 'caught', 1);
  t.ok(await soon(async () => held.length === 1));
  t.same(held, ['120']);
  await client.leave();
});

t.test('nothing outside was asked for, and no page complained', { skip }, async (t) => {
  nothingElse(t);
});
