import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

import { imageSize } from '../../lib/client/image-size.js';
import { decodeDataUrl } from '../../lib/client/sprite.js';
import { joinAndCatch, formatComplaints } from '../support/catcher.js';
import { plainEnvironment, ROOT, tool } from '../support/cpp-build.js';
import { buildDesktop, DesktopProgram, noDesktop, Screen } from '../support/cpp-screen.js';
import { problem, Stub } from '../support/cpp-servers.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * The desktop program as people use it: windows on a screen, a real pointer, real keys. With
 * SPRITES_TEST_SANITIZE set (npm run test:sanitize) it is built with AddressSanitizer. With PICTURES set the test
 * takes the pictures of the README again, in test/pictures.
 */

t.setTimeout(900_000);

const vectors = JSON.parse(readFileSync(join(ROOT, 'test/vectors/sprites.json'), 'utf8'));

// A color of each picture that occurs nowhere else on the screen.
const GLASS = [0x45, 0xc8, 0xf1]; // of the rocket
const GILL = [0x7f, 0xe3, 0xd2]; // of the fish
const PETAL = [0xf7, 0x79, 0xb5]; // of the flower
const MAGENTA = [0xff, 0x00, 0xff]; // of an image file
const PAPER = [0xd8, 0xd2, 0xc4]; // of the torn photograph

const ALONG = [0x0f, 0x7f, 0x79]; // of the seams at the upper and lower edge
const SOFT = [0x6b, 0x61, 0x80]; // of the walls at edges without a neighbor
const SELF = [0x7a, 0x5c, 0xff]; // of this desktop on the map
const INK = [0x2a, 0x23, 0x42]; // of words
const WHITE = [0xff, 0xff, 0xff];

const LEFT = { x: 10, y: 20, width: 600, height: 440 };
const RIGHT = { x: 630, y: 20, width: 600, height: 440 };
const at = ({ x, y, width, height }) => `${width}x${height}+${x}+${y}`;
/** Drags the sprite in the middle of the left window to the right, and throws it over the right edge. */
const throwRight = (screen) => {
  const from = middle(LEFT);
  return screen.fling(from, { x: LEFT.x + LEFT.width - 40, y: from.y }, { dx: 24 });
};
/** Opens a sprite large by a double click. Tries again if a busy machine made two single clicks of it. */
async function openLarge(screen, color, area, { x, y, count }) {
  for (let tries = 5; ; tries -= 1) {
    await screen.hand('mousemove', x, y, 'click', '--repeat', 2, '--delay', 60, 1);
    try {
      return await screen.until(color, area, 10 * count, 10);
    } catch (error) {
      if (tries === 1) throw error;
    }
  }
}
/** Height of the footer below the desktop, in pixels. */
const FOOTER = 70;
const middle = ({ x, y, width, height }) => ({ x: x + width / 2, y: y + (height - FOOTER) / 2 });

t.test('the desktop', { skip: noDesktop }, async (t) => {
  const build = await buildDesktop();
  const program = join(build, 'sprites-desktop');

  /** Starts a server and a screen; returns them with a function that opens desktops. */
  async function scene(t, options) {
    const server = await startServer(t, { options });
    const screen = await Screen.start(t, { width: 1240, height: 480 });
    const open = async (area, ...args) => {
      const desktop = new DesktopProgram(t, program, screen, [
        '--server',
        server.url,
        '--window',
        at(area),
        ...args
      ]);
      await desktop.titled('Sprites - online.*');
      return desktop;
    };
    return { server, screen, open };
  }

  t.test('how sprites move and how they are drawn', async (t) => {
    t.match(await tool(join(build, 'desktop_unit'), []), /^[0-9]+ checks, 0 failed/);
  });

  t.test('the ground, its words, its map, and the names of sprites', async (t) => {
    // Fontconfig keeps its fonts until the end of the process, which is no leak.
    const env = plainEnvironment({ ASAN_OPTIONS: 'detect_leaks=0' });
    const output = await tool(join(build, 'desktop_drawing'), [], { env });
    t.match(output, /^[0-9]+ checks, 0 failed/);
  });

  t.test(
    'photographs become pictures that can be decoded, and what is none says why',
    async (t) => {
      for (const images of ['desktop_images', 'desktop_images_plain']) {
        t.match(
          await tool(join(build, images), [temporary(t)]),
          /^[0-9]+ checks, 0 failed/,
          images
        );
      }
    }
  );

  t.test('the command line', async (t) => {
    t.match(await tool(program, ['--help']), /--transparent/);
    const { version } = JSON.parse(await tool('cat', [join(ROOT, 'package.json')]));
    t.equal((await tool(program, ['--version'])).trim(), version);
    for (const wrong of [
      ['--window', '3'],
      ['--sprite', 'cat'],
      ['--name', 'x'.repeat(41)],
      ['--server', 'ftp://x/']
    ]) {
      const env = plainEnvironment({ SDL_VIDEODRIVER: 'dummy' });
      await t.rejects(tool(program, wrong, { env }), { cause: { code: 2 } }, wrong.join(' '));
    }
  });

  t.test('without a display it says so in one line, and ends', async (t) => {
    // Libraries that find no display leak memory: leaks are not checked.
    const leaks = { ASAN_OPTIONS: 'detect_leaks=0' };
    const env = plainEnvironment({ XDG_RUNTIME_DIR: temporary(t), DISPLAY: ':9999', ...leaks });
    for (const name of ['WAYLAND_DISPLAY', 'SDL_VIDEODRIVER']) delete env[name];
    const ended = tool(program, [], { env, timeout: 60_000 });
    const line = 'sprites-desktop: no display: .*\n';
    await t.rejects(ended, { cause: { code: 1, stderr: new RegExp(`^${line}$`) } });
  });

  t.test('a sprite thrown from one window is seen in the other', async (t) => {
    const { server, screen, open } = await scene(t);
    const one = await open(LEFT, '--name', 'Ada', '--sprite', 'rocket');
    const two = await open(RIGHT, '--sprite', 'fish');
    await screen.until(GLASS, LEFT, 20);
    await screen.until(GILL, RIGHT, 20);
    t.equal((await screen.find(GLASS, RIGHT)).count, 0);
    await picture(screen, 'desktop-before');

    await throwRight(screen);
    await server.until(({ acked }) => acked === 1);
    const came = await screen.until(GLASS, RIGHT, 20);
    await screen.until(GLASS, LEFT, 0);
    t.ok(
      came.x > RIGHT.x && Math.abs(came.y - middle(RIGHT).y) < 20,
      'it came in by the left edge, at the height where it left'
    );
    await picture(screen, 'desktop-after');

    t.comment('and back on foot');
    await screen.hand('mousemove', came.x, came.y, 'click', 1);
    await two.focus();
    await screen.hand('keydown', 'Left');
    await server.until(({ acked }) => acked === 2);
    await screen.hand('keyup', 'Left');
    const back = await screen.until(GLASS, LEFT, 20);
    t.ok(back.x > LEFT.x + LEFT.width / 2, 'by the right edge');

    t.comment('a double click opens one large, and a click beside it closes it');
    const fish = await screen.until(GILL, RIGHT, 20);
    await openLarge(screen, GILL, RIGHT, fish);
    await screen.hand('mousemove', RIGHT.x + 5, RIGHT.y + 60, 'click', 1);
    const again = await screen.until(GILL, RIGHT, 20);
    t.equal(again.count, fish.count);

    await one.close();
    await two.close();
    t.match(await server.status(), { clients: 0, thrown: 2, acked: 2, left: 2 });
    t.equal(one.errors + two.errors, '');
  });

  t.test('sprites are thrown, selected and put away by keys', async (t) => {
    const { server, screen, open } = await scene(t);
    const one = await open(LEFT, '--name', 'Ada', '--sprite', 'rocket');
    const two = await open(RIGHT, '--sprite', 'fish', '--sprite', 'flower');
    await screen.until(GLASS, LEFT, 20);
    await one.focus();
    await screen.hand('key', 'shift+Right');
    await server.until(({ acked }) => acked === 1);
    const rocket = await screen.until(GLASS, RIGHT, 20);
    await screen.until(GLASS, LEFT, 0);

    t.comment('it says from whom it is as it comes, and later when it is pointed at');
    const sender = () =>
      screen.find(INK, { x: rocket.x - 40, y: rocket.y + 20, width: 80, height: 60 });
    const showsSender = (isShown) =>
      until(async () => (await sender()).count > 300 === isShown, 'a label');
    await showsSender(true);
    await showsSender(false);
    await screen.hand('mousemove', rocket.x, rocket.y);
    await showsSender(true);
    await screen.hand('mousemove', RIGHT.x + 30, RIGHT.y + 30);
    await showsSender(false);

    t.comment('the flower came last and is selected; next are the rocket, then the fish');
    await two.focus();
    await screen.hand('key', 'n');
    await two.titled('Sprites - online - from Ada');
    await screen.hand('key', 'Delete');
    await screen.until(GLASS, RIGHT, 0);
    await screen.until(PETAL, RIGHT, 20);
    await screen.hand('key', 'n', 'key', 'n', 'key', 'BackSpace');
    await screen.until(GILL, RIGHT, 0);
    await screen.until(PETAL, RIGHT, 20);
    t.comment('and had back, the last one first');
    await screen.hand('key', 'ctrl+z');
    await screen.until(GILL, RIGHT, 20);
    t.equal((await screen.find(GLASS, RIGHT)).count, 0);
    await screen.hand('key', 'BackSpace', 'key', 'ctrl+z');
    const fish = await screen.until(GILL, RIGHT, 20);
    t.comment('or dragged to the words below; it is had back to where it was');
    const footer = { x: fish.x, y: RIGHT.y + RIGHT.height - FOOTER / 2 };
    const words = { ...RIGHT, y: footer.y - 20, width: 270, height: 40 };
    const usualWords = await screen.until(INK, words, 100);
    await screen.hand('mousemove', fish.x, fish.y, 'mousedown', 1);
    await screen.hand('mousemove', footer.x, footer.y - 20, 'mousemove', footer.x, footer.y);
    const hasOtherWords = async () => (await screen.find(INK, words)).count !== usualWords.count;
    await until(hasOtherWords, 'words that say so');
    // The hand stands still first, so that the release does not throw the sprite.
    await screen.hand('sleep', '0.2', 'mouseup', 1);
    await screen.until(GILL, RIGHT, 0);
    await screen.hand('key', 'ctrl+z');
    t.match(await screen.until(GILL, RIGHT, 20), { x: fish.x, y: fish.y });
    await one.close();
    await two.close();
    t.match(await server.status(), { thrown: 1, acked: 1 });
  });

  t.test(
    'seams, the map and the number of people; without a server the edges are walls',
    async (t) => {
      const { server, screen, open } = await scene(t);
      const one = await open(LEFT, '--sprite', 'rocket');
      const top = { ...LEFT, height: 4 };
      await screen.until(ALONG, top, LEFT.width * 2);
      const map = { ...LEFT, x: LEFT.x + LEFT.width - 170, y: LEFT.y + LEFT.height - FOOTER - 170 };
      await screen.until(SELF, { ...map, width: 170, height: 170 }, 20);
      const words = { ...LEFT, height: 110 };
      const { count: alone } = await screen.until(INK, words, 100);
      for (let i = 0; i < 9; i++) await server.join();
      await screen.until(INK, words, alone * 1.5);
      await server.kill();
      await one.titled('Sprites - offline');
      await screen.until(SOFT, top, LEFT.width * 4);
      await screen.until(SELF, { ...map, width: 170, height: 170 }, 0);
      await throwRight(screen);
      const rest = await screen.until(GLASS, LEFT, 20);
      t.ok(rest.x > LEFT.x && rest.x < LEFT.x + LEFT.width);
      await one.close();
    }
  );

  t.test('an image file becomes a sprite, and is thrown', async (t) => {
    const { server, screen, open } = await scene(t);
    const dir = t.testdir({ 'no-image.png': 'text' });
    // Larger than a throw with any compression: the middle is plain, the rest is noise.
    const image = join(dir, 'Große Sache.png');
    await tool('convert', [
      '-size',
      '900x700',
      '-seed',
      '7',
      'plasma:red-blue',
      '-fill',
      '#FF00FF',
      '-draw',
      'rectangle 250,150 650,550',
      image
    ]);
    const one = await open(LEFT, image, join(dir, 'no-image.png'), join(dir, 'nowhere.png'));
    t.comment('why the others are none is said, until something is pressed');
    const toast = { x: LEFT.x + 20, y: LEFT.y + 212, width: LEFT.width - 40, height: 40 };
    await screen.until(INK, toast, 2000);
    const two = await open(RIGHT, '--sprite', 'flower', '--folder', dir);
    await one.titled('Sprites - online - Gro.+e Sache');
    t.equal(
      (await screen.hand('getwindowname', one.window)).trim(),
      'Sprites - online - Große Sache'
    );
    const seen = await screen.until(MAGENTA, LEFT, 300);
    await screen.hand('mousemove', LEFT.x + 60, LEFT.y + 60, 'click', 1);
    t.comment('its name stands under it, where the words were');
    const label = ({ x, y }) => ({ x: x - 30, y: y + 61, width: 60, height: 14 });
    await screen.until(WHITE, label(seen), 200);
    await throwRight(screen);
    await server.until(({ acked }) => acked === 1);
    await screen.until(INK, toast, 0);
    const came = await screen.until(MAGENTA, RIGHT, 300);
    await screen.until(WHITE, label(came), 200);
    await screen.until(MAGENTA, LEFT, 0);
    t.comment('it opens large, from whom and how large it is, and is saved by its name');
    await openLarge(screen, MAGENTA, RIGHT, came);
    await two.focus();
    await screen.hand('key', 's');
    const saved = join(dir, 'Große Sache.webp');
    await until(() => existsSync(saved), 'a file of it');
    const [width] = (await tool('identify', ['-format', '%w %h', saved])).split(' ').map(Number);
    t.ok(width >= 250, `${width} pixels wide`);
    t.comment('Delete puts it away from there, too');
    await screen.hand('key', 'Delete');
    await screen.until(MAGENTA, RIGHT, 0);
    t.match(one.errors, /no-image\.png: it is no image that can be read here/);
    t.match(one.errors, /nowhere\.png: it can't be opened \(No such file or directory\)/);
    t.equal(one.errors.trim().split('\n').length, 2);
    await one.close();
    await two.close();
    t.equal(two.errors, '');
  });

  t.test('a photo is as large as the server takes it', async (t) => {
    const { server, screen, open } = await scene(t, { 'max-sprite': 65536 });
    const photo = join(temporary(t), 'Grandma.jpg');
    const draw = ['-fill', '#FF00FF', '-draw', 'rectangle 400,300 1200,900'];
    await tool('convert', ['-size', '1600x1200', 'gradient:red-blue', ...draw, photo]);
    const one = await open(LEFT, photo);
    const { client: neighbor, caught } = await joinAndCatch(t, server.url);
    await screen.until(MAGENTA, LEFT, 300);
    await server.until(({ clients }) => clients === 2);
    await throwRight(screen);
    const { sprite } = await until(() => caught[0]);
    t.match(sprite, {
      name: 'Grandma',
      picture: /^data:image\/webp;/,
      photo: /^data:image\/webp;/
    });
    t.same(formatComplaints(sprite), [], 'it keeps to the written format');
    const size = (url) => imageSize(decodeDataUrl(url).bytes);
    t.match(size(sprite.picture), { width: 512 }, 'for desktops without photos');
    t.match(size(sprite.photo), { width: 1600, height: 1200 });
    await neighbor.leave();
    await one.close();
  });

  t.test('a throw that is refused comes back from the edge', async (t) => {
    const { server, screen, open } = await scene(t, { mailbox: 1, lease: 3600 });
    const one = await open(LEFT, '--sprite', 'rocket');
    // Two clients stand in a row. The neighbor never polls, and fills its own mailbox: a sprite that it throws
    // up comes back from below.
    const neighbor = await server.join();
    const { status } = await fetch(`${server.url}/throw/${neighbor}/up`, {
      method: 'POST',
      body: '{}'
    });
    t.equal(status, 202);
    await throwRight(screen);
    const back = await screen.until(GLASS, LEFT, 20);
    t.ok(back.x < LEFT.x + LEFT.width);
    t.match(await server.status(), { thrown: 1, waiting: 1 }, 'it was not taken');
    await one.close();
  });

  t.test(
    'what a full desktop passes on comes back where nobody knows whether it arrived',
    async (t) => {
      const screen = await Screen.start(t, { width: 1240, height: 480 });
      const stub = await Stub.start(t);
      const options = ['--server', stub.url, '--window', at(LEFT), '--sprite', 'flower'];
      const one = new DesktopProgram(t, program, screen, options);
      await stub.join('one');
      const sprites = Array.from({ length: 400 }, (_, i) => {
        const sprite = {
          id: `s${i}`,
          picture: i < 399 ? 'ball' : 'rocket',
          at: 0.5,
          speed: [0.5, 0]
        };
        return { seq: i + 1, from: 'left', sprite };
      });
      (await stub.next(/^\/poll/)).answer(200, { seq: 400, sprites });
      stub.always(/^\/poll/, 200, { seq: 400, sprites: [] });
      stub.always(/^\/place/, 200, { row: 0, column: 0, rows: 1, columns: 2 });
      stub.always(/^\/leave/, 204);
      (await stub.next(/^\/throw/)).answer(502, 'oh');
      const again = await stub.next(/^\/throw/);
      t.equal((await screen.find(GLASS, LEFT)).count, 0);
      again.answer(409, problem('stale-number'));
      await screen.until(GLASS, LEFT, 20);
      await one.close();
      t.equal(one.errors, '');
    }
  );

  t.test("what strangers send can't hurt", async (t) => {
    const { server, screen, open } = await scene(t);
    const one = await open(LEFT, '--sprite', 'rocket');
    const stranger = await server.join();
    const torn = vectors.find(({ name }) => name.startsWith('a PNG damaged further in'));
    for (const body of ['{}', torn.json]) {
      const { status } = await fetch(`${server.url}/throw/${stranger}/left`, {
        method: 'POST',
        body
      });
      t.equal(status, 202, 'the server lets it through');
    }
    await server.until(({ acked }) => acked === 2);
    await screen.until(PAPER, LEFT, 200);
    await screen.until(GLASS, LEFT, 20);
    await one.close();
    t.match(one.errors, /1 sprites could not be read, for 0 there was no room/);
  });

  t.test('a transparent desktop has no ground, for the eye and for the pointer', async (t) => {
    const { server, screen, open } = await scene(t);
    const under = await open(LEFT, '--sprite', 'flower');
    const flower = await screen.until(PETAL, LEFT, 20);
    const over = await open({ ...LEFT, width: 1200 }, '--transparent', '--sprite', 'rocket');
    const glass = await screen.until(GLASS, { x: 0, y: 0, width: 1240, height: 480 }, 20);
    await screen.until(PETAL, LEFT, 20);

    t.comment('the pointer goes through where there is nothing');
    await openLarge(screen, PETAL, LEFT, flower);
    await screen.hand('mousemove', LEFT.x + 5, LEFT.y + 60, 'click', 1);
    await screen.until(PETAL, LEFT, 20);
    t.comment('and takes what is there');
    // At the edge the sprite flies even if the hand stood still before the release.
    await screen.fling(glass, { x: glass.x, y: LEFT.y + 16 }, { dy: -24 });
    await server.until(({ thrown }) => thrown >= 1);
    t.equal(over.errors, '', 'this system has transparent windows');
    await over.close();
    await under.close();
  });

  t.test('a transparent desktop fills the screen, also one that becomes smaller', async (t) => {
    const { server, screen } = await scene(t);
    const workArea = (...area) => screen.set('_NET_WORKAREA', '32c', `0, 0, ${area.join(', ')}`);
    await workArea(1240, 480);
    const options = ['--server', server.url, '--transparent', '--sprite', 'rocket'];
    const one = new DesktopProgram(t, program, screen, options);
    await one.titled('Sprites - online.*');
    const size = async () =>
      (await screen.hand('getwindowgeometry', one.window)).split(/\s+/).at(-2);
    t.equal(await size(), '1240x480');
    await workArea(700, 400);
    await until(async () => (await size()) === '700x400');
    await screen.until(GLASS, { x: 0, y: 0, width: 700, height: 400 }, 20);
    await one.close();
  });

  t.test(
    'where there are no transparent windows it says so in one line, and opens a plain one',
    async (t) => {
      const { server, screen } = await scene(t);
      const one = new DesktopProgram(
        t,
        program,
        screen,
        ['--server', server.url, '--transparent', '--sprite', 'rocket'],
        { SDL_VIDEODRIVER: 'dummy' }
      );
      await server.until(({ parked }) => parked === 1);
      await one.close();
      t.match(one.errors, /^sprites-desktop: a plain window, since .*\n$/);
    }
  );
});

/** With PICTURES set, takes a picture for the README. */
async function picture(screen, name) {
  if (!process.env.PICTURES) return;
  const folder = join(ROOT, 'test/pictures');
  mkdirSync(folder, { recursive: true });
  const file = join(folder, `${name}.png`);
  await screen.save(file);
  await tool('convert', [file, '-strip', '-colors', '128', `png8:${file}`]);
}
