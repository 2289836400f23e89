/* global document, getComputedStyle */
import t from 'tap';
import {
  amissTo,
  among,
  browserRig,
  contrast,
  fill,
  holds,
  hurl,
  look,
  online,
  reads,
  resting,
  until
} from '../support/page-browser.js';

/** Accessibility of the page: with a screen reader, by key, in high contrast, on a small screen, at 200% zoom. */

const { alone, beside, nothingElse } = browserRig(t);

const PHONE = { isMobile: true, hasTouch: true };

for (const [by, visit] of [
  ['fingers', PHONE],
  ['a mouse', {}]
]) {
  alone(
    `the words lie over no sprite, on any screen, whatever they say, by ${by}`,
    visit,
    async (t, { server, page }) => {
      const check = async (what) => {
        for (const [width, height] of [
          [740, 360], // a phone in landscape
          [640, 360], // 1280 by 720 at 200%
          [568, 320],
          [320, 568],
          [360, 740],
          [640, 480],
          [600, 520],
          [768, 1024],
          [920, 500],
          [1280, 800],
          [1920, 1080]
        ]) {
          await page.setViewportSize({ width, height });
          const [stage, state] = [
            await page.locator('#stage').boundingBox(),
            await page.locator('#state').boundingBox()
          ];
          const text = `${what} at ${width} by ${height}: ${JSON.stringify({ stage, state })}`;
          t.ok(stage.y + stage.height <= state.y, text);
          t.equal(stage.width, width, text);
          t.ok(stage.height >= height * 0.54, `the larger part is the desktop's: ${text}`);
          for (const part of await page.locator('#count, #state, #map, #place, .pick').all()) {
            const box = await part.boundingBox();
            const isInside = box.x >= 0 && box.y >= 0 && box.x + box.width <= width + 0.5;
            t.ok(isInside && box.y + box.height <= height + 0.5, `${JSON.stringify(box)} ${text}`);
          }
        }
      };
      await page.waitForFunction(() => document.body.dataset.people === '1');
      await reads(page, '#news', 'Only you');
      await check('alone');
      await server.stop();
      await online(page, 'offline');
      await check('offline');
    }
  );
}

alone('the words say what there is to do until it was done', async (t, { server, page }) => {
  const { client, edge, back } = await beside(server, page);
  await reads(page, '#state', 'Throw something over an edge');
  await resting(page);
  await hurl(page, (await look(page)).list[0], back);
  await until(page, 'thrown', 1);
  t.match(await page.textContent('#state'), /You threw 1, and 0 came in/);
  await client.throw(edge, { id: 'x', picture: 'fish', at: 0.5, speed: [0, 0] });
  await until(page, 'caught', 1);
  t.match(await page.textContent('#state'), /You threw 1, and 1 came in/);
});

alone('a screen reader hears what the keys do', { others: 11 }, async (t, { page }) => {
  await among(page);
  t.equal(await page.getByRole('heading', { level: 1 }).count(), 1);
  const stage = page.getByRole('application', { name: 'Your desktop' });
  t.match(await page.textContent(`#${await stage.getAttribute('aria-describedby')}`), /walk/);
  await stage.focus();
  await page.keyboard.press('3');
  await reads(page, '#news', 'You took a ghost.');
  await resting(page);
  await page.focus('#stage');
  await page.keyboard.press('n');
  await reads(page, '#news', ', 1 of 2, at the ');
  await page.keyboard.press('n');
  await reads(page, '#news', 'The ghost, 2 of 2, at the lower');
  // The page itself times the key: timed from here, on a busy machine, the ghost would walk over the edge.
  await page.evaluate(
    () =>
      new Promise((then) => {
        const send = (type) =>
          globalThis.dispatchEvent(new globalThis.KeyboardEvent(type, { key: 'ArrowUp' }));
        send('keydown');
        setTimeout(() => then(send('keyup')), 1200);
      })
  );
  await reads(page, '#news', 'The ghost is ');
  await page.keyboard.press('Shift+ArrowLeft');
  await reads(page, '#news', 'You threw the ghost over the left edge.');
  await holds(page, 1);
  await page.keyboard.press('n');
  await page.keyboard.press('Delete');
  await reads(page, '#news', 'You put away the ');
  await page.keyboard.press('ArrowLeft'); // Without a sprite there is nothing to walk.
  await page.focus('#name');
  await page.keyboard.type('Boo 4');
  t.equal((await look(page)).sprites, 0, 'what is typed elsewhere is not for the desktop');
  await page.focus('#stage');
  await page.keyboard.press('2');
  await reads(page, '#news', 'You took a star “Boo 4”.');
});

alone('letters and digits are the desktop’s, or switched off', async (t, { page }) => {
  await resting(page);
  const sprites = async () => (await look(page)).sprites;
  await page.keyboard.press('4');
  t.equal(await sprites(), 1, 'the desktop has no focus');
  await page.focus('#stage');
  await page.keyboard.press('4');
  t.equal(await sprites(), 2, 'the desktop has it');
  await page.click('#settings');
  await page.locator('#prefer-letters').uncheck();
  await page.locator('#settings-panel .close').click();
  await page.focus('#stage');
  for (const key of ['4', 'n', 'p', 'h']) await page.keyboard.press(key);
  t.equal(await sprites(), 2, 'switched off');
  await page.keyboard.press('PageDown');
  await reads(page, '#news', ', 1 of 2, ');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Delete');
  await holds(page, 1);
  t.notOk(await page.locator('#viewer').isVisible(), 'what it does has keys without letters');
});

/** Path of the counts, with or without a client's id. */
const STATUS = /\/status(\/[^/]*)?$/;

alone('axe finds nothing wrong', { deviceScaleFactor: 1 }, async (t, { server, page }) => {
  const fine = async (what) => t.same(await amissTo(page), [], what);
  await page.route(STATUS, (route) => route.abort());
  await page.reload();
  await online(page);
  t.equal(
    await page.textContent('#count'),
    '',
    'before the count is known nothing is in its place'
  );
  await fine('counting');
  await page.unroute(STATUS);
  await page.waitForFunction(() => document.body.dataset.people === '1');
  await fine('alone');
  await page.focus('#stage');
  await page.keyboard.press('Enter');
  await fine('one is open');
  await page.keyboard.press('Delete');
  await fine('put away');
  for (const panel of ['settings', 'invite']) {
    await page.click(`#${panel}`);
    await fine(panel);
    await page.keyboard.press('Escape');
  }
  await server.stop();
  await online(page, 'offline');
  await fine('offline');
});

alone('the tray is one stop of the tab key, and arrows go along it', async (t, { page }) => {
  const focused = () =>
    page.evaluate(
      () => document.activeElement.getAttribute('aria-label') ?? document.activeElement.id
    );
  await page.focus('#stage');
  for (const [key, wanted, why = key] of [
    ['Tab', 'Take a ball'],
    ['ArrowRight', 'Take a star'],
    ['ArrowLeft', 'Take a ball'],
    ['ArrowLeft', 'file', 'around'],
    ['Home', 'Take a ball'],
    ['End', 'file'],
    ['ArrowLeft', 'Take a flower'],
    ['Tab', 'The name of your sprites', 'out of it'],
    ['Shift+Tab', 'Take a flower', 'and back to where it was']
  ]) {
    await page.keyboard.press(key);
    t.equal(await focused(), wanted, why);
  }
  t.equal(await page.getByLabel('An image of your own').count(), 1);
  t.equal((await look(page)).sprites, 1, 'and none of this walked or took anything');
});

alone('other news leave a button and its focus, time does not', async (t, { server, page }) => {
  const { client, edge } = await beside(server, page);
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 2000); // From here on the clock runs only by runFor.
  const undo = page.getByRole('button', { name: 'Undo' });
  const putAway = async () => {
    await page.focus('#stage');
    await page.keyboard.press('n');
    await page.keyboard.press('Delete');
    await undo.focus();
  };
  await putAway();
  await client.throw(edge, { none: true });
  await until(page, 'refused', 1);
  t.match(await page.textContent('#toast'), /is no sprite/);
  await page.keyboard.press('Enter');
  t.equal((await look(page)).sprites, 1, 'it is had back');
  await putAway();
  await page.clock.runFor(7900);
  t.notOk(await page.getByText('is no sprite').isVisible(), 'the news are old');
  t.ok(await undo.isVisible());
  await page.clock.runFor(200);
  t.notOk(await page.isVisible('#toast'));
  t.equal(await page.evaluate(() => document.activeElement.id), 'stage');
});

alone('forced colors leave the edges', { forcedColors: 'active' }, async (t, { server, page }) => {
  const edges = () =>
    page.evaluate(() => {
      const across = getComputedStyle(document.getElementById('desk'), '::before');
      const along = getComputedStyle(document.getElementById('desk'), '::after');
      return [
        across.borderLeftStyle,
        across.borderRightWidth,
        along.borderTopStyle,
        along.borderBottomWidth
      ];
    });
  t.same(await edges(), ['dashed', '5px', 'dashed', '5px']);
  await server.stop();
  await online(page, 'offline');
  t.same(await edges(), ['solid', '5px', 'solid', '5px'], 'closed they are solid');
});

for (const colorScheme of ['light', 'dark']) {
  alone(
    `seams and fields can be told from their ground: ${colorScheme}`,
    { colorScheme },
    async (t, { page }) => {
      const colors = await page.evaluate(() => {
        const root = getComputedStyle(document.documentElement);
        const names = ['paper', 'card', 'grid', 'across', 'along', 'soft'];
        const get = (name) => [name, root.getPropertyValue(`--${name}`).trim()];
        const control = getComputedStyle(document.getElementById('name')).borderTopColor;
        return { ...Object.fromEntries(names.map(get)), control };
      });
      for (const [mark, grounds, least] of [
        ['across', ['paper', 'grid'], 3],
        ['along', ['paper', 'grid'], 3],
        ['control', ['paper', 'card'], 3],
        ['soft', ['paper', 'card'], 4.5]
      ]) {
        for (const ground of grounds) {
          const found = contrast(colors[mark], colors[ground]);
          t.ok(found >= least, `${mark} on ${ground}: ${found.toFixed(2)}`);
        }
      }
    }
  );
}

alone('every tool is on every screen, for a finger', PHONE, async (t, { page }) => {
  await fill(page, 3);
  for (const [width, height] of [
    [320, 568],
    [360, 640],
    [568, 320],
    [640, 360],
    [699, 900],
    [1000, 700]
  ]) {
    await page.setViewportSize({ width, height });
    for (const control of await page.locator('.pick, .tools > :visible').all()) {
      const box = await control.boundingBox();
      const text = `at ${width} by ${height}: ${JSON.stringify(box)}`;
      t.ok(box.width >= 44 && box.height >= 44, text);
      t.ok(box.x >= 0 && box.x + box.width <= width && box.y + box.height <= height, text);
    }
    const { width: name } = await page.locator('#name').boundingBox();
    t.ok(name >= 80, `the name's field at ${width} by ${height}: ${name}`);
  }
});

nothingElse();
