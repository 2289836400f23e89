import t from 'tap';

import { createServer } from 'sprites';

import { browserRig } from '../support/page-browser.js';

/** The page for people at the admin port, in a real browser. */

const { browser, skip } = browserRig(t);

t.setTimeout(300_000);

t.test('the admin page shows counts, rates, waits and the torus', { skip }, async (t) => {
  const options = { host: '127.0.0.1', drain: 0, throwRate: 0 };
  const server = await createServer({ ...options, port: 0, adminPort: 0 });
  t.teardown(() => server.close());
  const visitor = await browser.visit(server.addresses[0]);
  const page = await visitor.context().newPage();
  await page.goto(server.adminAddresses[0]);
  /** The cells of a row, once they are as they should be. */
  const row = async (name, cells) => {
    const line = page.locator('tr', { has: page.getByRole('rowheader', { name, exact: true }) });
    await line.locator('td', { hasText: cells }).first().waitFor({ timeout: 60_000 });
    return line.locator('td').allTextContents();
  };
  t.same(await row('with a place', '1'), ['1', '']);
  t.same(await row('median wait, ms', '–'), ['–', ''], 'nothing was thrown yet');
  await page.getByText('1 row of 1 column; 1 of 1 place taken.').waitFor();

  const at = (path) => new URL(path, server.addresses[0]);
  const { id } = await (await fetch(at('join'), { method: 'POST' })).json();
  let over = false;
  const throwing = (async () => {
    for (let n = 0; !over; n += 1) {
      await fetch(at(`throw/${id}/left?n=${n}`), { method: 'POST', body: '{"x":1}' });
      await page.waitForTimeout(20);
    }
  })();
  const [all, rate] = await row('thrown', / \/s$/);
  t.ok(Number(all.replace(/,/g, '')) > 0 && /^[0-9.,]+ \/s$/.test(rate), `${all}, ${rate}`);
  const [ever, lately] = await row('median wait, ms', / now$/);
  t.match([ever, lately], [/^[0-9.]+$/, /^[0-9.]+ now$/]);
  over = true;
  await throwing;
  t.same(browser.complaints, [], 'no error, and nothing that its policy forbids');
  await visitor.context().close();
});
