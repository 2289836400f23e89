import t from 'tap';
import { browserRig, soon } from '../support/page-browser.js';

/** What pages cost the server: their polls are parked natively, and nothing of theirs is JavaScript's. */

const { browser, end, nothingElse, serve, skip } = browserRig(t);

t.setTimeout(300_000); // of all together, on a machine that does other things too

const PAGES = 12;
// Bytes of user space: README's own figures.
const CLIENT = 125;
const CONNECTION = 76;

t.test('twelve pages are parked natively, for 2 kB each', { skip }, async (t) => {
  const server = await serve('--idle-time', '5', '--admin-port', '0');
  const pages = [];
  for (let i = 0; i < PAGES; i += 1) pages.push(await browser.visit(server.base));
  // What pages do all the time, three idle times long: looks at the counts, at their place, polls.
  await pages[0].waitForTimeout(15_000);
  const seen = async () => {
    const status = await server.status();
    return status.parked === PAGES;
  };
  t.ok(await soon(seen), JSON.stringify(await server.status()));
  const status = await server.wholeStatus();
  t.equal(status.parked, PAGES);
  t.equal(status.handled, 0, 'JavaScript was never asked');
  const bytes =
    status.clients * CLIENT +
    status.connections * CONNECTION +
    status.heldBytes +
    status.mailboxBytes;
  t.ok(bytes / PAGES <= 2000, `${bytes / PAGES} bytes a page`);
  await end(server, ...pages);
});

t.test('nothing outside was asked for, and no page complained', { skip }, async (t) => {
  nothingElse(t);
});
