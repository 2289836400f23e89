/* global document */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { ROOT, tool } from '../support/cpp-build.js';
import { buildDesktop, DesktopProgram, noDesktop, Screen } from '../support/cpp-screen.js';
import {
  Browser,
  drag,
  hurl,
  look,
  noBrowser,
  place,
  resting,
  until
} from '../support/page-browser.js';
import { startServer } from '../support/server.js';

/**
 * Pages and a desktop on one server: a real browser, a real window, and a real pointer for each. With PICTURES set the
 * test takes the picture of the README again.
 */

const skip = noDesktop || noBrowser();

t.setTimeout(900_000);

/** Most tries of a throw. */
const HURLS = 5;

// A color that the desktop draws nowhere else in its window.
const GLASS = [0x45, 0xc8, 0xf1]; // of the rocket

const SIZE = { width: 640, height: 480 };
const WINDOW = { x: 0, y: 0, ...SIZE };
/** Height of the footer below the desktop, in pixels: a sprite that is dropped there is put away. */
const FOOTER = 70;

t.test('pages and a desktop', { skip }, async (t) => {
  const build = await buildDesktop({ sanitize: false }); // the users' build
  const browser = await new Browser().start();
  t.teardown(() => browser.stop());

  /** Starts a server, and a desktop with a rocket on a screen, which has the first place of the torus. */
  async function scene(t) {
    const server = await startServer(t);
    const screen = await Screen.start(t, SIZE);
    const desktop = new DesktopProgram(t, join(build, 'sprites-desktop'), screen, [
      '--server',
      server.url,
      '--window',
      `${SIZE.width}x${SIZE.height}+0+0`,
      '--sprite',
      'rocket'
    ]);
    await desktop.titled('Sprites - online.*');
    await server.until(({ parked }) => parked === 1);
    /** Opens a page, waits for its join, and moves its own sprite down, out of the way of others. */
    const visit = async () => {
      const { clients } = await server.status();
      const page = await browser.visit(`${server.url}/`, { viewport: SIZE, deviceScaleFactor: 1 });
      await server.until(({ parked }) => parked === clients + 1);
      await resting(page);
      const [{ x, y }] = (await look(page)).list;
      const { height } = await page.locator('#stage').boundingBox();
      await drag(page, { x, y }, { x, y: height - 60 }, { still: 300 });
      await resting(page);
      return page;
    };
    /** Takes the sprite at a point of the window, and throws it over an edge. */
    const fling = (from, edge) =>
      screen.fling(
        from,
        {
          right: { x: SIZE.width - 40, y: from.y },
          down: { x: from.x, y: SIZE.height - FOOTER - 40 }
        }[edge],
        { right: { dx: 24 }, down: { dy: 24 } }[edge]
      );
    let flicks = 0;
    /**
     * Throws the rocket from the window to a page, and returns it there, at rest. A flick that a busy machine made too
     * quick flies on through the page, round the torus: if it comes to rest in the window, it is thrown again.
     */
    async function flingTo(page, edge) {
      const { caught, list } = await look(page);
      const [own] = list;
      const restsHere = (id) => {
        const { moving, where } = document.getElementById('stage').dataset;
        return moving === 'false' && where.split(',').some((one) => !one.startsWith(id));
      };
      for (let tries = 1; tries <= HURLS; tries++) {
        await fling(await screen.until(GLASS, WINDOW, 20), edge);
        flicks++;
        await until(page, 'caught', caught + 1);
        const isHere = page.waitForFunction(restsHere, own.id).catch(() => false);
        await Promise.race([isHere, screen.until(GLASS, WINDOW, 20).catch(() => false)]);
        const rocket = (await look(page)).list.find(({ id }) => id !== own.id);
        if (rocket) return rocket;
      }
      throw new Error(`${HURLS} flicks were too quick`);
    }
    return { server, screen, desktop, visit, flingTo, flicks: () => flicks };
  }

  /** Throws a sprite over an edge. Tries again if a busy machine made the drag too slow. */
  async function throwFromPage(page, { id }, edge) {
    const { thrown } = await look(page);
    for (let tries = 0; tries < HURLS; tries++) {
      const sprite = (await look(page)).list.find((one) => one.id === id);
      if (sprite === undefined) break;
      await hurl(page, sprite, edge);
      await resting(page);
    }
    await until(page, 'thrown', thrown + 1);
  }

  t.test('a sprite goes through two pages and a desktop', async (t) => {
    const { server, screen, desktop, visit, flingTo, flicks } = await scene(t);
    const right = await visit();
    const below = await visit();
    // The window has the first place; the third client begins a second row.
    t.same(await place(below), [1, 0, 2, 2]);
    await right.waitForFunction(() => document.body.dataset.place === '0 1 2 2');

    const first = await flingTo(right, 'right');
    await screen.until(GLASS, WINDOW, 0);
    await throwFromPage(right, first, 'left');
    const second = await flingTo(below, 'down');
    t.equal(second.id, first.id, 'it is the same one');
    await screen.until(GLASS, WINDOW, 0);
    await throwFromPage(below, second, 'up');
    await screen.until(GLASS, WINDOW, 20);
    await picture(t, { screen, right, below });

    // One throw for each way, and more where a flick was made again.
    const isCounted = (thrown) => (flicks() === 2 ? thrown === 4 : thrown >= 4);
    await server.until(({ thrown, acked }) => isCounted(thrown) && acked === thrown);
    await desktop.close();
    await right.context().close();
    await below.context().close();
    t.equal(desktop.errors, '');
    const { thrown, acked, lost } = await server.status();
    t.ok(isCounted(thrown) && acked === thrown && lost === 0, `${thrown}, ${acked}, ${lost}`);
  });

  t.same(browser.complaints, [], 'no page complained');
});

/** With PICTURES set, takes the README's picture, with each window at its place in the torus. */
async function picture(t, { screen, right, below }) {
  if (!process.env.PICTURES) return;
  const dir = t.testdir();
  const file = (name) => join(dir, `${name}.png`);
  for (const [page, name] of [
    [right, 'right'],
    [below, 'below']
  ]) {
    // Each page gets further sprites of its own.
    for (const key of name === 'right' ? '25' : '32') await page.keyboard.press(key);
    await resting(page);
    await page.screenshot({ path: file(name) });
  }
  await screen.save(file('desktop'));
  const folder = join(ROOT, 'test/pictures');
  mkdirSync(folder, { recursive: true });
  await tool('montage', [
    file('desktop'),
    file('right'),
    file('below'),
    '-tile',
    '2x2',
    '-geometry',
    '+6+6',
    '-background',
    '#d8d2c4',
    file('all')
  ]);
  await tool('convert', [
    file('all'),
    '-strip',
    '-colors',
    '255',
    `png8:${join(folder, 'together.png')}`
  ]);
}
