/* global document */
import t from 'tap';

import {
  browserRig,
  costOfFrame,
  fill,
  FRAME,
  place,
  resting,
  soon
} from '../support/page-browser.js';

const { alone, browser, end, nothingElse, serve, skip } = browserRig(t);

/** Cost of pages at the server: their polls are parked natively, and no request of theirs reaches JavaScript. */

const PAGES = 12;
// Bytes of user space, as in the README's figures.
const CLIENT = 125;
const CONNECTION = 76;

t.test('twelve pages are parked natively, for 2 kB each', { skip }, async (t) => {
  const server = await serve('--idle-time', '5', '--admin-port', '0');
  const pages = [];
  for (let i = 0; i < PAGES; i += 1) pages.push(await browser.visit(server.base));
  // Three idle times of the pages' usual requests: counts, places, polls.
  await pages[0].waitForTimeout(15_000);
  let status;
  const seen = async () => (status = await server.wholeStatus()).parked === PAGES;
  t.ok(await soon(seen), JSON.stringify(status));
  t.equal(status.handled, 0, 'JavaScript was never asked');
  const bytes =
    status.clients * CLIENT +
    status.connections * CONNECTION +
    status.heldBytes +
    status.mailboxBytes;
  t.ok(bytes / PAGES <= 2000, `${bytes / PAGES} bytes a page`);
  await end(server, ...pages);
});

/** Motion of sprites by themselves, in a browser, and its cost. */

/** Makes sprites stroll and blink sooner. Call it before there are any. */
const hurry = (page, pace) =>
  page.evaluate(async (given) => Object.assign((await import('/page/life.js')).PACE, given), pace);

const LIVELY = { reducedMotion: 'no-preference' };

alone('it lives: the desktop looks different after a while', LIVELY, async (t, { page }) => {
  // Short strolls: the page writes the sprites' places only when all of them stand.
  await hurry(page, { rest: [0.5, 0.8], stroll: [0.1, 0.2], blink: [0.3, 0.6] });
  await page.focus('#stage');
  await page.keyboard.press('3');
  await resting(page); // From now on sprites move only by themselves.
  const places = () => page.evaluate(() => document.getElementById('stage').dataset.where);
  const before = await places();
  await page.waitForFunction((was) => {
    const { where } = document.getElementById('stage').dataset;
    return was.split(',').some((one) => !where.includes(one));
  }, before);
  t.pass('one has walked');
});

alone('where motion troubles nothing moves, and no frame is drawn', async (t, { page }) => {
  await hurry(page, { rest: [0.1, 0.2], blink: [0.3, 0.6] });
  await page.focus('#stage');
  await page.keyboard.press('3');
  await place(page); // The words and the map about the others are complete.
  await resting(page);
  const [frames, same] = await page.evaluate(
    () =>
      new Promise((go) => {
        const stage = document.getElementById('stage');
        const before = stage.toDataURL();
        const request = globalThis.requestAnimationFrame;
        let asked = 0;
        globalThis.requestAnimationFrame = (callback) => {
          asked += 1;
          return request(callback);
        };
        setTimeout(() => {
          globalThis.requestAnimationFrame = request;
          go([asked, before === stage.toDataURL()]);
        }, 1500);
      })
  );
  t.equal(frames, 0);
  t.ok(same);
});

const DESK = { ...LIVELY, viewport: { width: 1280, height: 800 }, deviceScaleFactor: 1 };

alone('a hundred sprites that walk by themselves', { others: 11, ...DESK }, async (t, { page }) => {
  await hurry(page, { rest: [0, 0], stroll: [1000, 1000], blink: [0.5, 1] });
  await fill(page, 100);
  await costOfFrame(t, page); // The sprites land, set out and find room.
  t.ok((await costOfFrame(t, page)) < FRAME, 'a frame of 60 a second, in CPU time');
});

nothingElse();
