/* global CanvasRenderingContext2D, DataTransfer, DragEvent, Image, KeyboardEvent,
   MutationObserver, createImageBitmap, document, requestAnimationFrame */
import { mkdirSync } from 'node:fs';
import { readFile, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { Client } from '../../lib/client/client.js';
import {
  browserRig,
  denyStorage,
  drag,
  duplicate,
  edgeBetween,
  fill,
  holds,
  hurl,
  imageFile,
  kept,
  look,
  memory,
  noisePng,
  online,
  png,
  reads,
  reloadItself,
  remembers,
  resting,
  soon,
  undoLonger,
  until
} from '../support/page-browser.js';
import { until as waitUntil } from '../support/until.js';

/** One visitor: how a page comes and goes, which sprites and files it accepts, and its use by mouse, finger and key. */

const PICTURES = fileURLToPath(new URL('../pictures/', import.meta.url));

const { alone, beside, browser, clients, end, nothingElse, serve, skip } = browserRig(t);

const PHONE = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

alone('a reload keeps place and sprites; closing leaves at once', async (t, { server, page }) => {
  await page.locator('.pick').nth(2).click();
  await resting(page);
  await holds(page, 2);
  const id = () => page.evaluate(() => JSON.parse(sessionStorage.getItem('sprites.place')).id);
  const sprites = async () => (await look(page)).list.map((sprite) => sprite.id);
  const before = { id: await id(), sprites: await sprites() };
  const reloads = {
    'by a script': () => reloadItself(page),
    'by a key': async () => {
      await page.keyboard.press('F5'); // A headless browser only reports this key to the page.
      await page.reload();
    }
  };
  for (const [how, reload] of Object.entries(reloads)) {
    await reload();
    await online(page);
    await holds(page, 2);
    t.equal(await id(), before.id, `the same place: ${how}`);
    t.same(await sprites(), before.sprites, 'the same sprites');
    t.equal((await server.status()).joined, 1);
  }

  // As by the browser's button, of which the page gets no notice: it leaves, and joins again.
  await page.reload();
  await online(page);
  await holds(page, 2);
  t.same(await sprites(), before.sprites, 'the same sprites all the same');
  t.ok(await clients(server, 1), 'and no place is left behind');

  await page.close({ runBeforeUnload: true });
  t.ok(await clients(server, 0), 'gone without waiting for the lease');
});

alone('a duplicated tab joins anew, without copies', async (t, { server, page }) => {
  const [{ id }] = (await look(page)).list;
  const copy = await duplicate(page);
  t.ok(await clients(server, 2));
  await holds(copy, 1);
  t.not((await look(copy)).list[0].id, id);
  t.equal(
    await page.evaluate(() => document.body.dataset.state),
    'online',
    'and the first one noticed nothing'
  );
});

alone('a tab that loses its place says so and joins anew', async (t, { server, page }) => {
  const resume = await memory(page, 'place');
  const other = new Client({ base: server.base, resume, onSprite() {} });
  // A poll of the page that came after the other client's would take the place back.
  t.ok(await soon(async () => (await server.status()).parked === 1));
  const said = reads(page, '#toast', 'Another tab has taken over');
  other.start();
  await said;
  await online(page);
  t.ok(await clients(server, 2));
  t.not((await memory(page, 'place')).id, resume.id);
  t.equal(other.id, resume.id);
  await other.leave();
});

alone('an image dropped from a file manager lies where it was dropped', async (t, { page }) => {
  await page.evaluate(
    (bytes) => {
      const dataTransfer = new DataTransfer();
      dataTransfer.items.add(new File([new Uint8Array(bytes)], 'a.png', { type: 'image/png' }));
      const where = { clientX: 300, clientY: 200 };
      const event = { bubbles: true, cancelable: true, dataTransfer, ...where };
      for (const type of ['dragover', 'drop'])
        document.getElementById('stage').dispatchEvent(new DragEvent(type, event));
    },
    [...noisePng(40, 80)]
  );
  await page.waitForFunction(() =>
    /\b300 200\b/.test(document.getElementById('stage').dataset.where)
  );
  t.pass('it lies there');
});

/** Runs in a page: waits until all sprites have come to rest again. */
const rest = () =>
  new Promise((go) => {
    const stage = document.getElementById('stage');
    const observer = new MutationObserver(() => {
      if (stage.dataset.moving !== 'false') return;
      observer.disconnect();
      go();
    });
    observer.observe(stage, { attributeFilter: ['data-moving'] });
  });

/** Runs in a page: holds an arrow key for six frames, and waits until the walking sprite has come to rest. */
const walk = async (key) => {
  const frame = () => new Promise((go) => void requestAnimationFrame(go));
  document.activeElement.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
  for (let i = 0; i < 6; i += 1) await frame();
  document.activeElement.dispatchEvent(new KeyboardEvent('keyup', { key, bubbles: true }));
  await globalThis.rest();
};

alone('what is taken by hand is walked by key', { others: 11 }, async (t, { page }) => {
  await page.evaluate(`globalThis.rest = ${rest}`);
  const walks = async (how) => {
    await resting(page);
    const before = await look(page);
    const { id, x } = before.list.at(-1);
    // To the middle: on a busy machine a frame counts as 50 ms (desktop.js), and six frames may lead over an edge.
    const [key, way] = x < page.viewportSize().width / 2 ? ['ArrowRight', 1] : ['ArrowLeft', -1];
    await page.evaluate(walk, key);
    const after = await look(page);
    t.equal(after.list.at(-1).id, id, how);
    t.ok((after.list.at(-1).x - x) * way > 0, `an arrow walks it: from ${x} by ${key}`);
    await page.evaluate(() => {
      globalThis.rested = globalThis.rest();
    });
    await page.keyboard.press(' ');
    await page.evaluate(() => globalThis.rested);
    t.equal((await look(page)).sprites, before.sprites, 'space is a jump, not the button again');
  };
  await page.locator('.pick').nth(1).click();
  await holds(page, 2);
  await walks('clicked');

  const box = await page.locator('.pick').nth(2).boundingBox();
  const from = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
  await drag(page, from, { x: from.x + 40, y: from.y - 300 }, { still: 300 });
  await holds(page, 3);
  await walks('dragged out of the tray');

  await page.setInputFiles('#file', imageFile('noise.png'));
  await holds(page, 4);
  await walks('an image file');

  // After a take by key the tray keeps the focus, for the next key.
  await page.locator('.pick').nth(1).focus();
  await page.keyboard.press('Enter');
  await holds(page, 5);
  t.match(await page.evaluate(() => document.activeElement.className), 'pick');
});

alone("what can't be taken is said: too many files, too large ones", async (t, { page }) => {
  const ten = [...'abcdefghij'].map((name) => imageFile(`${name}.png`));
  await page.setInputFiles('#file', ten);
  await reads(page, '#toast', 'Eight at a time: 2');
  await holds(page, 9);

  const large = join(t.testdir(), 'large.png');
  await writeFile(large, '');
  await truncate(large, 32 * 1024 * 1024 + 1);
  await page.setInputFiles('#file', large);
  await reads(page, '#toast', /^large.png is too large: 32 MB at most.$/);

  // A drawing, with a script that doesn't run and a picture that is never requested.
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 20 10" width="20" height="10"
    onload="fetch('/owned')"><rect width="20" height="10" fill="red"/>
    <image href="http://127.0.0.1:9/outside.png"/></svg>`;
  await page.setInputFiles('#file', imageFile('drawing.svg', svg, 'image/svg+xml'));
  await holds(page, 10);
  await remembers(page, 10);
  const { picture } = (await kept(page)).at(-1).sprite;
  const color = await page.evaluate(async (url) => {
    const element = new Image();
    element.src = url;
    await element.decode();
    const canvas = document.createElement('canvas');
    const context = canvas.getContext('2d');
    context.drawImage(element, 0, 0);
    const { naturalWidth: width, naturalHeight: height } = element;
    return [width / height, context.getImageData(width / 2, height / 2, 1, 1).data[0] > 240];
  }, picture);
  t.same(color, [2, true], 'an SVG is drawn');
  for (const [name, mimeType, text] of [
    ['broken.svg', 'image/svg+xml', '<svg'],
    ['text.png', 'image/png', 'this is no image']
  ]) {
    await page.setInputFiles('#file', imageFile(name, text, mimeType));
    await reads(page, '#toast', `${name} is no image`);
  }
  t.notOk(browser.requests.some((url) => /owned|outside/.test(url)));
});

alone('a double click, two taps and Enter open one large', async (t, { server, page }) => {
  await resting(page);
  const [one] = (await look(page)).list;
  const viewer = page.locator('#viewer');
  await page.mouse.dblclick(one.x, one.y);
  await viewer.waitFor();
  await page.keyboard.press('Escape');
  await viewer.waitFor({ state: 'hidden' });
  t.equal(await page.evaluate(() => document.activeElement.id), 'stage');
  await page.keyboard.press('Enter');
  await viewer.waitFor();
  await holds(page, 1);
  // Closed, and opened again in the same frame: the close event comes with the next frame.
  await page.evaluate(async () => {
    const viewer = document.getElementById('viewer');
    const closed = new Promise((go) => void viewer.addEventListener('close', go, { once: true }));
    viewer.close();
    document.activeElement.dispatchEvent(
      new KeyboardEvent('keydown', { key: 'Enter', bubbles: true })
    );
    await closed;
  });
  await page.locator('#viewer-save').waitFor();
  await page.getByRole('button', { name: 'Put away' }).click();
  await holds(page, 0);
  t.notOk(await viewer.isVisible());
  await page.close();

  const phone = await browser.visit(server.base, PHONE);
  t.match(await phone.locator('.hint').textContent(), /two taps open one/i);
  t.ok(await phone.locator('.hint').isVisible(), 'a phone is told');
  await resting(phone);
  const [other] = (await look(phone)).list;
  // The events carry their own times, and are sent together: so the taps are short even on a slow machine.
  const session = await phone.context().newCDPSession(phone);
  const begin = Date.now() / 1000;
  await Promise.all(
    ['touchStart', 'touchEnd', 'touchStart', 'touchEnd'].map((type, i) =>
      session.send('Input.dispatchTouchEvent', {
        type,
        touchPoints: type === 'touchStart' ? [{ x: other.x, y: other.y }] : [],
        timestamp: begin + i / 20
      })
    )
  );
  await phone.locator('#viewer').waitFor();
  await phone.context().close();
});

alone('a drag to the tray puts one away; a flick over it throws', async (t, { page }) => {
  const tray = await page.locator('#tray').boundingBox();
  const to = { x: tray.x + tray.width / 2, y: tray.y + tray.height / 2 };
  await resting(page);
  await page.evaluate(() => {
    const tray = document.getElementById('tray');
    globalThis.said = [];
    const observer = new MutationObserver(() => globalThis.said.push(tray.className));
    observer.observe(tray, { attributeFilter: ['class'] });
  });
  const [one] = (await look(page)).list;
  await drag(page, one, to, { still: 300 });
  await holds(page, 0);
  t.match(await page.textContent('#toast'), /You put away the /);
  t.same(
    await page.evaluate(() => globalThis.said),
    ['tray taking', 'tray'],
    'the tray said so before'
  );
  t.equal((await look(page)).thrown, 0);
  await page.keyboard.press('Control+z');
  await holds(page, 1);
  await resting(page);
  await drag(page, (await look(page)).list[0], to, { pace: 10 });
  await until(page, 'thrown', 1);
});

alone('one that is put away by key while it is held is had back once', async (t, { page }) => {
  await resting(page);
  const [{ x, y }] = (await look(page)).list;
  await page.mouse.move(x, y);
  await page.mouse.down();
  await page.keyboard.press('Delete');
  const tray = await page.locator('#tray').boundingBox();
  await page.mouse.move(tray.x + tray.width / 2, tray.y + 5);
  await page.waitForTimeout(200); // held still: no flick
  await page.mouse.up();
  for (let i = 0; i < 2; i += 1) await page.keyboard.press('Control+z');
  t.equal((await look(page)).sprites, 1);
});

alone('the right button takes nothing out of the tray', async (t, { page }) => {
  const { x, y } = await page.locator('.pick').first().boundingBox();
  await page.mouse.move(x + 8, y + 20);
  await page.mouse.down({ button: 'right' });
  await page.mouse.up({ button: 'right' });
  await page.mouse.move(x + 40, y + 20, { steps: 4 }); // a grabbed sprite would move with the mouse
  t.equal((await look(page)).sprites, 1);
});

alone('a name that is too long stops nothing', { others: 11 }, async (t, { page }) => {
  await page.evaluate((desktop) => {
    localStorage.setItem('sprites.preferences', JSON.stringify({ desktop }));
  }, 'x'.repeat(41));
  await page.reload();
  await online(page);
  await page.focus('#stage');
  await page.keyboard.press('Shift+ArrowLeft');
  await until(page, 'thrown', 1);
});

/** Returns a photograph like a phone's: a JPEG of 1600 by 1200. */
async function photograph(page) {
  const base64 = await page.evaluate(async () => {
    const canvas = document.createElement('canvas');
    [canvas.width, canvas.height] = [1600, 1200];
    const context = canvas.getContext('2d');
    for (let i = 0; i < 600; i += 1) {
      context.fillStyle = `hsl(${(i * 47) % 360} 60% ${20 + ((i * 31) % 60)}%)`;
      context.beginPath();
      context.arc((i * 397) % 1600, (i * 251) % 1200, 20 + ((i * 17) % 120), 0, 7);
      context.fill();
    }
    return canvas.toDataURL('image/jpeg', 0.9).split(',')[1];
  });
  return imageFile('Grandma.jpg', Buffer.from(base64, 'base64'), 'image/jpeg');
}

/** Saves the open sprite, and returns its file. */
async function saved(t, page) {
  await page.locator('#viewer-save').waitFor();
  const download = page.waitForEvent('download');
  await page.click('#viewer-save');
  const file = join(t.testdir(), 'saved');
  await (await download).saveAs(file);
  return {
    words: await page.textContent('#viewer-words'),
    title: await page.textContent('#viewer-title'),
    name: (await download).suggestedFilename(),
    bytes: await readFile(file)
  };
}

for (const [maxSprite, side, hasPhoto, most = maxSprite] of [
  [16_384, 250, false],
  [65_536, 800, true],
  [65_536, 250, false, 16_384]
]) {
  const name = `a photograph in a sprite of ${maxSprite} bytes, of which ${most} get through`;
  t.test(name, { skip }, async (t) => {
    const server = await serve('--max-sprite', maxSprite);
    const one = await browser.visit(server.base);
    const two = await browser.visit(server.base);
    await clients(server, 2);
    const [there] = await edgeBetween(one, two);
    await one.route('**/throw/**', (route) =>
      route.request().postData().length > most ? route.abort() : route.continue()
    );
    await one.setInputFiles('#file', await photograph(one));
    await holds(one, 2);
    await one.focus('#stage');
    await one.keyboard.press(there === 'right' ? 'Shift+ArrowRight' : 'Shift+ArrowDown');
    await until(two, 'caught', 1);
    await remembers(two, 2);
    const { sprite } = (await kept(two)).find(({ stranger }) => stranger);
    t.match(sprite, { name: 'Grandma', picture: /^data:image\/webp;/ });
    t.ok(sprite.picture.length <= 12_000, 'a picture that every reader shows');
    t.equal(sprite.photo !== undefined, hasPhoto);
    t.ok(JSON.stringify(sprite).length > most / 2, 'there is room for no more');

    await two.focus('#stage');
    await two.keyboard.press('PageDown');
    await two.keyboard.press('PageUp');
    for (let i = 0; i < 2 && !(await two.locator('#viewer').isVisible()); i += 1) {
      await two.keyboard.press('PageDown');
      await two.keyboard.press('Enter');
      if ((await two.textContent('#viewer-title')) !== 'Grandma')
        await two.keyboard.press('Escape');
    }
    const { words, title, name, bytes } = await saved(t, two);
    t.match([title, name], ['Grandma', 'Grandma.webp']);
    const url = `data:image/webp;base64,${bytes.toString('base64')}`;
    t.equal(url, sprite.photo ?? sprite.picture, 'saved as it came');
    const [, width, height] = words
      .match(/^A picture from a stranger · (\d+) × (\d+)$/)
      .map(Number);
    t.ok(width >= side && Math.abs(width / height - 4 / 3) < 0.02, words);
    await end(server, one, two);
  });
}

alone('a browser that may keep nothing has a desktop', { others: 11 }, async (t, { page }) => {
  await page.addInitScript(denyStorage);
  await page.reload();
  await online(page);
  await holds(page, 1);
  await page.focus('#stage');
  await page.keyboard.press('Shift+ArrowLeft');
  await until(page, 'thrown', 1);
});

alone('after a sleep it asks again at once: the parked poll may be dead', async (t, { page }) => {
  const isPoll = (request) => /\/poll\//.test(request.url());
  // A request whose answer is slower than this clock would count as one without an answer.
  const underWay = new Set();
  page.on('request', (request) => !isPoll(request) && underWay.add(request));
  for (const end of ['requestfinished', 'requestfailed'])
    page.on(end, (request) => underWay.delete(request));
  await page.clock.install();
  await page.reload(); // A timer from before would not go by this clock.
  await online(page);
  await page.waitForFunction(() => document.body.dataset.people === '1');
  await page.clock.pauseAt(Date.now() + 2000); // From here on the clock runs only by runFor and fastForward.
  const run = async (seconds) => {
    for (let second = 0; second < seconds; second += 1) {
      await page.clock.runFor(1000);
      await waitUntil(() => underWay.size === 0);
    }
  };
  await run(4); // A poll is parked longer than a second.
  const [polls, looks] = [[], []];
  page.on('request', (request) => (isPoll(request) ? polls : looks).push(request.url()));
  await run(8);
  t.ok(looks.length > 0);
  t.same(polls, [], 'as long as it is awake the poll stays parked');
  const asked = [page.waitForRequest(/\/place\//), page.waitForRequest(/\/poll\//)];
  await page.clock.fastForward(60_000); // shorter than any timeout of the poll
  await Promise.all(asked);
  t.pass('it asks for its place, which is answered at once, and polls anew');
});

alone('what comes in is never trusted', async (t, { server, page }) => {
  const { client, edge } = await beside(server, page);
  const good = { id: 'x', picture: 'ball', at: 0.5, speed: [0, 0] };
  const url = (type, bytes) => `data:image/${type};base64,${bytes.toString('base64')}`;
  // Other invalid sprites: test/vectors/sprites.json.
  const bad = [
    { ...good, picture: 'javascript:document.title="owned"' },
    { ...good, picture: url('png', png(30_000, 30_000, Buffer.alloc(40))) },
    '{"__proto__":{"picture":"ball"},"id":"x","at":0.5,"speed":[0,0]}'
  ];
  for (const sprite of bad) t.match(await client.throw(edge, sprite), { thrown: true });
  await until(page, 'refused', bad.length);
  t.equal((await look(page)).caught, 0);

  // An image damaged behind its first bytes: a torn sticker is shown.
  await client.throw(edge, {
    ...good,
    id: 'torn',
    picture: url('png', png(9, 9, Buffer.alloc(40)))
  });
  await client.throw(edge, { ...good, id: 'last', name: '<img src=x onerror=alert(1)>' });
  await until(page, 'caught', 2);
  await holds(page, 3);
  t.equal(await page.locator('img').count(), 0, 'names are drawn, not parsed');
  t.not(await page.title(), 'owned');
});

alone('pictures are decoded one by one, within bounds', async (t, { page }) => {
  const url = (width, height) =>
    `data:image/png;base64,${noisePng(width, height).toString('base64')}`;
  const scans = (count) =>
    `data:image/jpeg;base64,${Buffer.from(`ffd8${'ffda'.repeat(count)}`, 'hex').toString('base64')}`;
  const sizes = await page.evaluate(
    async (urls) => {
      const { decodePicture } = await import('/page/images.js');
      const decode = createImageBitmap;
      let under = 0;
      let most = 0;
      const tried = [];
      globalThis.createImageBitmap = async (blob) => {
        under += 1;
        most = Math.max(most, under);
        tried.push(blob.size);
        try {
          return await decode(blob);
        } finally {
          under -= 1;
        }
      };
      const bitmaps = await Promise.all(urls.map((url) => decodePicture(url)));
      const sides = bitmaps.map((bitmap) => bitmap && [bitmap.width, bitmap.height]);
      return { most, sides, scanned: tried.slice(4) };
    },
    [url(512, 1), url(513, 1), url(1, 513), url(9, 9), scans(101), scans(100)]
  );
  t.same(sizes, { most: 1, sides: [[512, 1], null, null, [9, 9], null, null], scanned: [202] });
});

alone('on a full desktop its own sprites stay; none is lost', async (t, { server, page }) => {
  await undoLonger(page);
  await fill(page, 200);
  await page.keyboard.press('Delete');
  await remembers(page, 199); // so that the 200 below are those after this
  await fill(page, 200);
  await page.keyboard.press('Control+z');
  t.match(await page.textContent('#toast'), /full, with 200 sprites/, 'nor is one had back');
  const ids = async () => (await kept(page)).map(({ sprite }) => sprite.id);
  await remembers(page, 200);
  const own = (await ids()).sort();
  await page.locator('.pick').first().click();
  t.match(await page.textContent('#toast'), /full, with 200 sprites/);
  t.equal((await look(page)).sprites, 200, 'and what the visitor takes changes nothing');

  const seen = [];
  const {
    client,
    edge,
    back: from
  } = await beside(server, page, (sprite, { from: by }) => seen.push({ ...sprite, from: by }));
  const guest = { id: 'guest', picture: 'ghost', at: 0.25, speed: [2.5, 0], name: 'Boo' };
  t.match(await client.throw(edge, guest), { thrown: true });
  t.ok(await soon(async () => seen.length > 0), 'it flies on, by the opposite edge');
  t.same(seen, [{ ...guest, from }], 'as fast as it came, at the same height');
  t.match(await page.textContent('#toast'), /full: what comes in flies on/);
  await holds(page, 200);
  await remembers(page, 200);
  t.same((await ids()).sort(), own);

  // A sprite that can't fly on comes back, up to 400 sprites; further ones wait in the mailbox.
  const busy = {
    status: 503,
    contentType: 'application/problem+json',
    body: JSON.stringify({ type: 'urn:sprites:neighbor-busy', status: 503 })
  };
  await page.route('**/throw/**', (route) => route.fulfill(busy));
  const more = [];
  for (let i = 0; i < 206; i += 1) more.push(`more-${i}`);
  for (const id of more) await client.throw(edge, { ...guest, id });
  await holds(page, 400);
  t.ok(await soon(async () => (await server.status()).waiting === 6));
  await page.unroute('**/throw/**');
  await resting(page);
  await page.evaluate(() => document.activeElement.blur());
  for (let i = 0; i < 12; i += 1) {
    await page.keyboard.press('PageDown');
    await page.keyboard.press('Delete');
  }
  await page.waitForFunction(() => {
    const { passed, flying } = document.getElementById('stage').dataset;
    return passed === '207' && flying === '0';
  });
  t.ok(await soon(async () => (await server.status()).waiting === 0));
  const counts = await server.status();
  t.match(counts, { thrown: counts.acked, lost: 0 });
  // 400 and the 6 from the mailbox, without the 12 put away and the guest, which was counted before.
  const here = async () => (await look(page)).sprites + seen.length - 1;
  t.ok(await soon(async () => (await here()) === 394), `none is missing: ${await here()}`);
});

alone(
  'fingers throw, and take from the tray',
  { others: 11, deviceScaleFactor: 2, ...PHONE },
  async (t, { page }) => {
    await page.locator('.pick').nth(3).tap();
    await resting(page);
    await holds(page, 2);
    const [sprite] = (await look(page)).list;
    await hurl(page, sprite, 'left', { finger: true });
    await until(page, 'thrown', 1);
    await holds(page, 1);

    // Out of the tray onto the desktop in one movement.
    const box = await page.locator('.pick').first().boundingBox();
    const from = { x: box.x + box.width / 2, y: box.y + box.height / 2 };
    await drag(page, from, { x: from.x + 120, y: from.y - 360 }, { finger: true, still: 300 });
    await resting(page);
    await holds(page, 2);
    const { x, y } = (await look(page)).list.at(-1);
    t.ok(
      Math.abs(x - from.x - 120) < 20 && Math.abs(y - from.y + 360) < 20,
      `it lies where the finger left it: ${x} ${y}`
    );
  }
);

for (const [reducedMotion, name] of [
  ['reduce', 'reduced motion: no ornament moves, and it still throws'],
  ['no-preference', 'else a throw leaves a ripple, and what is quick leans']
]) {
  alone(name, { reducedMotion }, async (t, { page }) => {
    await page.waitForFunction(() => document.getElementById('count').textContent === '1');
    if (reducedMotion === 'reduce') {
      t.equal(await page.evaluate(() => document.getAnimations().length), 0);
    }
    // Counts the stage's calls for rings and for turned pictures.
    await page.evaluate(() => {
      const seen = { rings: 0, leaning: 0 };
      globalThis.drawn = seen;
      const { arc, setTransform } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.arc = function (...args) {
        if (this.canvas.id === 'stage') seen.rings += 1;
        return arc.apply(this, args);
      };
      CanvasRenderingContext2D.prototype.setTransform = function (...args) {
        if (this.canvas.id === 'stage' && args[1]) seen.leaning += 1;
        return setTransform.apply(this, args);
      };
    });
    const [sprite] = (await look(page)).list;
    await hurl(page, sprite, 'left');
    await until(page, 'caught', 1);
    await resting(page);
    const { rings, leaning } = await page.evaluate(() => globalThis.drawn);
    const moves = reducedMotion !== 'reduce';
    t.equal(rings > 0, moves, `${rings} rings`);
    t.equal(leaning > 0, moves, `${leaning} leaning`);
  });
}

nothingElse();

/** Takes screenshots for the README, if PICTURES is set. */
if (process.env.PICTURES) {
  t.test('pictures for the README', { skip }, async (t) => {
    mkdirSync(PICTURES, { recursive: true });
    const server = await serve();
    await server.fill(40);
    for (const [name, options] of [
      ['page-desktop', { viewport: { width: 1200, height: 750 }, colorScheme: 'light' }],
      [
        'page-phone',
        {
          viewport: { width: 390, height: 780 },
          isMobile: true,
          hasTouch: true,
          colorScheme: 'light'
        }
      ]
    ]) {
      const page = await browser.visit(server.base, { deviceScaleFactor: 1, ...options });
      await page.waitForFunction(() => Number(document.body.dataset.people) > 40);
      for (const i of [0, 2, 3, 4]) await page.locator('.pick').nth(i).click();
      await holds(page, 5);
      await page.evaluate(() => document.activeElement.blur());
      await page.mouse.move(0, 0);
      await page.waitForTimeout(3500);
      await page.screenshot({ path: `${PICTURES}${name}.png`, timeout: 10_000 });
      await page.context().close();
      t.pass(name);
    }
    await end(server);
  });
}
