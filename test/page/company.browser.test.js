/* global AudioContext, CanvasRenderingContext2D, document, requestAnimationFrame */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import t from 'tap';
import {
  browserRig,
  edgeBetween,
  fill,
  holds,
  hurl,
  imageFile,
  kept,
  look,
  noisePng,
  online,
  reads,
  reloadItself,
  remembers,
  resting,
  until
} from '../support/page-browser.js';

/** Company on the page: names, sounds, a companion, an invitation, and hidden pictures. */

const { alone, beside, browser, clients, end, nothingElse, serve, skip } = browserRig(t);

/** Opens the settings, calls `act`, and closes them again. */
async function settings(page, act) {
  await page.locator('#settings').click();
  await act();
  await page.locator('#settings-panel .close').click();
}

/** Records the first pitch of each sound of a page from now on, in Hz. */
const listen = (page) =>
  page.evaluate(() => {
    globalThis.pitches = [];
    const { createOscillator } = AudioContext.prototype;
    AudioContext.prototype.createOscillator = function () {
      const tone = createOscillator.call(this);
      const { frequency } = tone;
      const set = frequency.setValueAtTime.bind(frequency);
      frequency.setValueAtTime = (pitch, time) => {
        globalThis.pitches.push(pitch);
        return set(pitch, time);
      };
      return tone;
    };
  });
const pitches = (page) => page.evaluate(() => globalThis.pitches);

/** Makes Pip hold its sprites until `letPipGo` is called in the page. */
const holdPip = (page) =>
  page.evaluate(() => {
    const { setTimeout: later } = globalThis;
    const held = [];
    globalThis.setTimeout = (act, ms, ...more) => {
      const isLong = ms > 850 && ms < 2000;
      if (isLong) held.push(() => act(...more));
      return isLong ? 0 : later(act, ms, ...more);
    };
    globalThis.letPipGo = () => {
      globalThis.setTimeout = later;
      for (const act of held) act();
    };
  });

alone('Pip throws back, to a desktop that is alone', async (t, { server, page }) => {
  await reads(page, '#state', 'Pip');
  const [sprite] = (await look(page)).list;
  const { width } = await page.locator('#stage').boundingBox();
  await holdPip(page);
  await hurl(page, sprite, 'left');
  await until(page, 'thrown', 1);
  await reads(page, '#news', 'Pip has');
  t.equal((await look(page)).caught, 0, 'Pip has it for a moment');
  await page.evaluate(() => globalThis.letPipGo());
  await until(page, 'caught', 1);
  await resting(page);
  await holds(page, 1);
  const [back] = (await look(page)).list;
  t.equal(back.id, sprite.id);
  t.ok(back.x < width * 0.8, 'from the left, where it went');
  t.match(await server.status(), { thrown: 1, acked: 1, lost: 0 });

  // Without Pip a sprite comes in at the other edge.
  await settings(page, () => page.locator('#prefer-companion').uncheck());
  await reads(page, '#state', 'comes back by the other');
  await hurl(page, back, 'left');
  await until(page, 'caught', 2);
  t.notMatch(await page.textContent('#news'), /Pip has/);
  await settings(page, () => page.locator('#prefer-companion').check());

  // With a neighbor Pip does not appear.
  const { client, edge } = await beside(server, page);
  await client.throw(edge, { id: 'guest', picture: 'fish', at: 0.3, speed: [0.5, 0] });
  await page.waitForFunction(() =>
    document.getElementById('stage').dataset.where.includes('guest')
  );
  t.pass('a guest comes in as it came');
});

alone('a page that goes while Pip has its sprite has it again', async (t, { page }) => {
  const [sprite] = (await look(page)).list;
  await holdPip(page);
  // The sprite comes around the torus; its throw is never answered.
  await page.route('**/throw/**', async (route) => {
    await route.fetch();
  });
  await hurl(page, sprite, 'up');
  await reads(page, '#news', 'Pip has');
  await page.unroute('**/throw/**');
  await page.reload();
  await online(page);
  await holds(page, 1);
  t.equal((await look(page)).list[0].id, sprite.id);
  t.match(await look(page), { bounced: 0 }, 'it was accepted, though the page never heard so');
});

t.test("a desktop's name goes with what it throws", { skip }, async (t) => {
  const server = await serve();
  const one = await browser.visit(server.base);
  const two = await browser.visit(server.base);
  await clients(server, 2);
  await settings(one, () => one.fill('#prefer-desktop', '  Ada <b>  '));
  const [there] = await edgeBetween(one, two);
  await resting(one);
  await hurl(one, (await look(one)).list[0], there);
  await reads(two, '#news', ' from Ada <b> came in by the ');
  await remembers(two, 2);
  t.equal((await kept(two)).at(-1).sprite.by, 'Ada <b>');
  await one.reload();
  await online(one);
  t.equal(await one.inputValue('#prefer-desktop'), 'Ada <b>', 'it is remembered');
  await end(server, one, two);
});

alone('a sender is seen as a sprite comes in, and when asked for', async (t, { server, page }) => {
  // Records the text of each label, and the labels in the stage's last frame.
  await page.evaluate(() => {
    const { fillText, drawImage, clearRect } = CanvasRenderingContext2D.prototype;
    Object.assign(CanvasRenderingContext2D.prototype, {
      fillText(text, ...more) {
        this.canvas.text = text;
        return fillText.call(this, text, ...more);
      },
      drawImage(image, ...more) {
        if (this.canvas.id === 'stage' && image.text) globalThis.labels.push(image.text);
        return drawImage.call(this, image, ...more);
      },
      clearRect(...more) {
        if (this.canvas.id === 'stage') globalThis.labels = [];
        return clearRect.apply(this, more);
      }
    });
  });
  const { client, edge } = await beside(server, page);
  // All announcements are made: no timer from before the clock's installation is pending.
  await page.waitForFunction(() => {
    const text = (selector) => document.querySelector(selector).textContent;
    return document.body.dataset.people === '2' && text('#news').endsWith(text('#state span'));
  });
  await page.clock.install();
  await page.clock.pauseAt(Date.now() + 2000); // From here on the clock runs only by runFor.
  const guest = { id: 'guest', picture: 'ghost', at: 0.3, speed: [0.3, 0], by: 'Ada', name: 'Boo' };
  await client.throw(edge, guest);
  await until(page, 'caught', 1);
  const labels = async (ms) => {
    await page.clock.runFor(ms);
    return page.evaluate(() => globalThis.labels);
  };
  t.same(await labels(3000), ['Boo', 'from Ada']);
  t.same(await labels(8000), ['Boo'], 'not for ever');

  const { x, y } = (await look(page)).list.find(({ id }) => id === 'guest');
  await page.mouse.move(x, y);
  t.same(await labels(100), ['Boo', 'from Ada'], 'under a pointer');
  await page.mouse.move(x - 200, y - 200);
  t.same(await labels(100), ['Boo']);
  await page.focus('#stage');
  await page.keyboard.press('n');
  t.same(await labels(1000), ['Boo', 'from Ada'], 'chosen by key');
  t.match(await page.textContent('#news'), 'The ghost “Boo” from Ada, 2 of 2, ');
  await page.keyboard.press('Enter');
  await page.locator('#viewer').waitFor();
  t.equal(await page.textContent('#viewer-words'), 'A ghost from Ada');
});

alone('throwing and taking are heard, or muted', { others: 11 }, async (t, { page }) => {
  await listen(page);
  await page.locator('.pick').first().click();
  t.match(await pitches(page), [420], 'taken');
  await resting(page);
  await page.keyboard.press('Shift+ArrowLeft');
  await until(page, 'thrown', 1);
  t.ok((await pitches(page)).includes(300), 'thrown');
  const button = page.getByRole('button', { name: 'Sound' });
  t.equal(await button.getAttribute('aria-pressed'), 'true');
  await button.click();
  t.equal(await button.getAttribute('aria-pressed'), 'false');
  const before = await pitches(page);
  await page.locator('.pick').first().click();
  await resting(page);
  t.same(await pitches(page), before, 'muted');
  await page.reload();
  await online(page);
  t.equal(await button.getAttribute('aria-pressed'), 'false', 'and remembered');
});

for (const [how, reducedMotion] of [
  ['flies', 'no-preference'],
  ['does not fly where motion troubles', 'reduce']
]) {
  alone(`what is thrown ${how} on the map`, { others: 11 }, async (t, { page }) => {
    await page.waitForFunction(() => / 4$| 3$/.test(document.body.dataset.place ?? ''));
    // The map has its place without a glide: one by the real clock would not end by the clock below, which begins at 0.
    await page.evaluate(() => new Promise((go) => void requestAnimationFrame(go)));
    await page.emulateMedia({ reducedMotion });
    await page.evaluate(() => {
      globalThis.seen = new Set();
      const { arc } = CanvasRenderingContext2D.prototype;
      CanvasRenderingContext2D.prototype.arc = function (x, y, radius, ...more) {
        // No other dot on the map has the size of a flight's dot.
        if (this.canvas.id === 'map' && radius === 0.07) globalThis.seen.add(x);
        return arc.call(this, x, y, radius, ...more);
      };
    });
    await page.clock.install();
    await page.clock.pauseAt(Date.now() + 2000); // From here on the clock runs only by runFor.
    await page.keyboard.press('Shift+ArrowLeft');
    await page.clock.runFor(1000);
    await reads(page, '#state', 'You threw 1');
    await page.clock.runFor(1000);
    const places = await page.evaluate(() => globalThis.seen.size);
    t.equal(places > 2, reducedMotion !== 'reduce', `${places} places`);
  });
}

/** @returns {Promise<string[]>} ids of the sprites that the tab remembers as hidden */
const hiddenIn = async (page) =>
  (await kept(page)).filter(({ hidden }) => hidden).map(({ sprite }) => sprite.id);

alone("a stranger's picture can be hidden, and stays so", async (t, { server, page }) => {
  const { client, edge } = await beside(server, page);
  const picture = `data:image/png;base64,${noisePng(40, 40).toString('base64')}`;
  const guest = { picture, at: 0.3, speed: [0.3, 0], by: 'Mallory' };
  await client.throw(edge, { ...guest, id: 'guest' });
  await until(page, 'caught', 1);
  await resting(page);
  const { x, y } = (await look(page)).list.find(({ id }) => id === 'guest');
  await page.mouse.click(x, y);
  const before = await page.locator('#stage').screenshot();
  // The button is shown for six seconds, which may be over.
  const offered = await page.evaluate(() => {
    const offer = document.getElementById('toast').lastElementChild;
    offer.lastElementChild.click();
    return offer.textContent;
  });
  t.equal(offered, 'Mallory sent this picture. Hide it');
  t.match(await page.textContent('#toast'), /The picture is hidden/);
  await page.waitForFunction(() =>
    JSON.parse(sessionStorage.getItem('sprites.desktop')).sprites.some(({ hidden }) => hidden)
  );
  t.notSame(await page.locator('#stage').screenshot(), before);

  // The same picture on another sprite, and after a reload.
  await client.throw(edge, { ...guest, id: 'again', at: 0.7 });
  await until(page, 'caught', 2);
  await remembers(page, 3);
  t.same((await hiddenIn(page)).sort(), ['again', 'guest']);
  await page.reload();
  await online(page);
  await holds(page, 3);
  await page.focus('#stage');
  for (let i = 0; i < 3; i += 1) {
    await page.keyboard.press('n');
    if (/sent this picture/.test(await page.textContent('#toast'))) break;
  }
  await page.keyboard.press('h');
  t.match(await page.textContent('#toast'), /The picture is shown/);
  t.notOk(await page.isVisible('#toast .act'), 'nothing is left for its button to do');

  // All pictures of strangers, until the visitor shows one. The visitor's own are never covered.
  await page.setInputFiles('#file', imageFile('own.png'));
  await holds(page, 4);
  await settings(page, () => page.locator('#prefer-cover').check());
  await client.throw(edge, { ...guest, picture: picture.replace('AAAA', 'AAAB'), id: 'new' });
  await until(page, 'caught', 1);
  await remembers(page, 5);
  t.same(await hiddenIn(page), ['new'], 'the one that was asked for is shown, and so is its own');
  await page.reload();
  await online(page);
  await remembers(page, 5);
  t.same((await hiddenIn(page)).length, 3, 'after a reload none was asked for');
  await settings(page, () => page.locator('#prefer-cover').uncheck());
  await page.focus('#stage');
  await page.keyboard.press('1');
  await remembers(page, 6);
  t.same(await hiddenIn(page), [], 'of these none was hidden itself');
});

alone('across a full desktop no picture comes uncovered', async (t, { server, page }) => {
  const { client, edge } = await beside(server, page);
  await settings(page, () => page.locator('#prefer-cover').check());
  await fill(page, 200);
  const json = { type: 'urn:sprites:state-unwritable', status: 503 };
  await page.route('**/throw/**', (route) => route.fulfill({ status: 503, json }));
  const picture = `data:image/png;base64,${noisePng(40, 40).toString('base64')}`;
  await client.throw(edge, { id: 'passer', picture, at: 0.5, speed: [0.3, 0] });
  await until(page, 'bounced', 1);
  t.match(await page.textContent('#toast'), /can keep nothing just now: it came back/);
  await remembers(page, 201);
  t.same(await hiddenIn(page), ['passer']);
});

alone('what was under way at a reload is its own when it comes around', async (t, { page }) => {
  await settings(page, () => page.locator('#prefer-companion').uncheck());
  await resting(page);
  await page.route('**/throw/**', (route) => route.abort());
  await hurl(page, (await look(page)).list[0], 'left');
  const remembersFlight = (edge) =>
    page.waitForFunction(
      (flight) => sessionStorage.getItem('sprites.desktop').includes(flight),
      `"flight":"${edge}"`
    );
  await remembersFlight('left');
  await reloadItself(page);
  await page.unroute('**/throw/**');
  await until(page, 'caught', 1);
  await remembersFlight('');
  t.equal((await kept(page))[0].stranger, false);
});

/** Returns false if there is a program that reads QR codes, or the reason to skip a test. */
function noZbar() {
  try {
    execFileSync('zbarimg', ['--version'], { stdio: 'ignore' });
    return false;
  } catch {
    return 'there is no zbarimg: apt-get install zbar-tools';
  }
}

t.test('an invitation that a phone can read', { skip: skip || noZbar() }, async (t) => {
  const server = await serve();
  const page = await browser.visit(server.base, { deviceScaleFactor: 1 });
  await page.locator('#invite').click();
  await page.waitForFunction(() => document.getElementById('invitation-link').value !== '');
  t.match(await page.textContent('#invitation-words'), /this machine only.*--host 0\.0\.0\.0/s);
  t.equal(await page.inputValue('#invitation-link'), server.base);
  const words = await page.locator('#invitation-words').boundingBox();
  const link = await page.locator('#invitation-link').boundingBox();
  t.ok(words.y + words.height + 4 < link.y, "the field's ring is not over the words");
  t.notOk(await page.locator('#qr').isVisible(), 'no phone need scan it');
  const window = page.viewportSize();
  await page.setViewportSize({ width: 320, height: 256 }); // 1280 by 1024 at 400%
  t.ok((await page.locator('#invitation-words').boundingBox()).width > 200);
  await page.setViewportSize(window);
  await page.keyboard.press('Escape');

  const url = 'http://192.168.1.20:8080/';
  await page.route('**/addresses', (route) => route.fulfill({ json: { addresses: [url, 'x'] } }));
  await page.locator('#invite').click();
  await page.waitForFunction(
    (address) => document.getElementById('invitation-link').value === address,
    url
  );
  await page.locator('#qr').waitFor({ state: 'visible' });
  await page.waitForFunction(() => document.getElementById('qr').width > 300);
  const picture = `${t.testdir()}/qr.png`;
  writeFileSync(picture, await page.locator('#qr').screenshot());
  const read = execFileSync('zbarimg', ['--nodbus', '--quiet', '--raw', picture]).toString().trim();
  t.equal(read, url, 'a phone reads the address');
  await page.locator('#copy').click();
  await reads(page, '#copy', /Copied|by hand/);

  await page.unroute('**/addresses');
  const asked = new Promise((go) => void page.route('**/addresses', go));
  await page.reload();
  await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.locator('#invite').click();
  await page.locator('#copy').click();
  await page.evaluate(() => new Promise(requestAnimationFrame)); // Without the address nothing is copied.
  await (await asked).fulfill({ json: { addresses: [url] } });
  await reads(page, '#copy', 'Copied');
  t.equal(await page.evaluate(() => navigator.clipboard.readText()), url);
  t.equal((await look(page)).sprites, 1, 'no key or click of this was for the desktop');
  await end(server, page);
});

nothingElse();
