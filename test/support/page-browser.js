import { existsSync, readFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { crc32, deflateSync } from 'node:zlib';

import { chromium } from 'playwright-core';

import { Client } from '../../lib/client/client.js';
import { launch, SPRITES } from './launch.js';
import { endProcess } from './processes.js';
import { failWhenStuck } from './until.js';

/* global axe, CSSTransition, LockManager, document, KeyboardEvent, dispatchEvent, location, requestAnimationFrame */

/** Starts a real server and a real browser for the tests of the pages. */

/** The full Chromium. */
export const CHROMIUM = process.env.CHROMIUM ?? '/usr/bin/chromium';

/** Chromium without windows. It takes half the CPU time of the full Chromium, which draws its whole window unseen. */
const SHELL = '/usr/bin/chromium-headless-shell';

/** The default browser of the tests. */
const USUAL = process.env.CHROMIUM === undefined && existsSync(SHELL) ? SHELL : CHROMIUM;

/**
 * Timeout of a test in milliseconds, enough on a busy machine. It is below the timeout of a test file: a test that
 * hangs fails under its own name, and the next tests run.
 */
const TEST = 120_000;

/**
 * Device pixels per CSS pixel. No layout depends on it, and without a GPU each pixel costs CPU time in each frame.
 * Tests of pixels and runs with PICTURES use more.
 */
const COARSE = process.env.PICTURES ? 1 : 0.5;

const STEPS = 6; // steps of a drag
const SPEED = 0.8; // edge lengths a second

/**
 * @param {string} [program] the browser that a test needs
 * @returns {string|false} for a test's `skip`: the reason why the browser tests can't run here, or false
 */
export function noBrowser(program = USUAL) {
  return existsSync(program)
    ? false
    : `there is no ${program}: apt-get install chromium, or set CHROMIUM`;
}

/**
 * @param {string} [program]
 * @returns {Promise<import('playwright-core').Browser>} a browser without windows; the caller closes it
 */
export function launchBrowser(program = USUAL) {
  const args = ['--no-sandbox', '--disable-gpu', '--disable-quic'];
  return chromium.launch({ executablePath: program, args });
}

/** A server process that can be killed and started again on the same port. */
class Server {
  #args;
  #child;
  #admin;
  #port = 0;

  /** @param {string[]} args arguments of bin/sprites, besides port and host */
  constructor(...args) {
    this.#args = args;
  }

  /** @returns {string} its URL */
  get base() {
    return `http://127.0.0.1:${this.#port}/`;
  }

  async start() {
    const options = { port: this.#port, capacity: 1000, 'throw-rate': 0, drain: 0 };
    const { child, listening } = launch(options, { command: [...SPRITES, ...this.#args] });
    this.#child = child;
    const { port, adminPort } = await listening;
    this.#port = port;
    this.#admin = `http://127.0.0.1:${adminPort}/`;
    return this;
  }

  /** @param {NodeJS.Signals} signal */
  async stop(signal = 'SIGTERM') {
    if (this.#child) await endProcess(this.#child, signal);
  }

  /** @returns {Promise<object>} /status of the admin port, which the server must have */
  async wholeStatus() {
    return (await fetch(new URL('status', this.#admin))).json();
  }

  /** @returns {Promise<object>} /status */
  async status() {
    return (await fetch(new URL('status', this.base))).json();
  }

  /** Joins idle clients. They stay until their lease ends. */
  async fill(count) {
    const ids = [];
    for (let i = 0; i < count; i += 1) {
      const response = await fetch(new URL('join', this.base), { method: 'POST' });
      ids.push((await response.json()).id);
    }
    return ids;
  }
}

export class Browser {
  #browser;
  /** All complaints of the pages: console errors, violations of the policy, exceptions. */
  complaints = [];
  /** The URLs of all requests of all pages. */
  requests = [];

  /** @param {string} [program] default: USUAL */
  async start(program) {
    this.#browser = await launchBrowser(program);
    return this;
  }

  async stop() {
    await this.#browser?.close();
  }

  /** @returns {Promise<string[]>} each page's state now, one line a page, for the message of a failed test */
  async pages() {
    const open = this.#browser?.contexts().flatMap((context) => context.pages()) ?? [];
    return Promise.all(
      open.map(async (page) => {
        const asked = page.evaluate(() => ({
          body: { ...document.body.dataset },
          stage: { ...document.getElementById('stage')?.dataset },
          news: document.getElementById('news')?.textContent,
          toast: document.getElementById('toast')?.textContent
        }));
        // A page that has crashed or hangs does not answer.
        const late = pause(2000, 'no answer within 2 s');
        const said = await Promise.race([asked.catch((error) => error.message), late]);
        return `${page.url()}: ${JSON.stringify(said)}`;
      })
    );
  }

  /**
   * Opens a page as a new visitor, with its own storage, and waits until the page has joined.
   *
   * @param {string} base
   * @param {object} [options] options of the browser context
   * @returns {Promise<import('playwright-core').Page>}
   */
  async visit(base, options = {}) {
    const page = await this.open(base, options);
    await online(page);
    return page;
  }

  /** Opens a page as `visit` does, but does not wait until the page has joined. */
  async open(base, options = {}) {
    const context = await this.#browser.newContext({
      viewport: { width: 1000, height: 700 },
      deviceScaleFactor: COARSE,
      reducedMotion: 'reduce', // Without it some animations never end.
      ...options
    });
    context.on('request', (request) => this.requests.push(request.url()));
    context.on('page', (page) => this.#watch(page));
    const page = await context.newPage();
    await page.goto(base);
    return page;
  }

  #watch(page) {
    page.on('pageerror', (error) => this.complaints.push(error.stack));
    page.on('console', (message) => {
      // Tests stop servers on purpose: a failed request is no complaint. A violation of the policy is one.
      const expected = /Failed to load resource|ERR_(CONNECTION|INTERNET|EMPTY)/.test(
        message.text()
      );
      if (['error', 'warning'].includes(message.type()) && !expected)
        this.complaints.push(message.text());
    });
  }
}

/** An init script that acts like blocked cookies: reading the storage throws; in Firefox a channel throws too. */
export function denyStorage() {
  const deny = function deny() {
    throw new DOMException('Access is denied for this document.', 'SecurityError');
  };
  for (const name of ['localStorage', 'sessionStorage'])
    Object.defineProperty(globalThis, name, { get: deny });
  globalThis.BroadcastChannel = deny;
  for (const name of ['request', 'query']) LockManager.prototype[name] = async () => deny();
}

/** Duplicates a tab as a browser does, with its sessionStorage. The copy waits 4 s for the original's answer. */
export async function duplicate(page) {
  await page.context().addInitScript(() => {
    const { setTimeout: later } = globalThis;
    const ANSWER_TIME = 160; // of store.js
    globalThis.setTimeout = (act, ms, ...more) =>
      later(act, ms === ANSWER_TIME ? 4000 : ms, ...more);
  });
  const opened = page.waitForEvent('popup');
  await page.evaluate(() => globalThis.open(location.href) !== null);
  const copy = await opened;
  await online(copy);
  return copy;
}

/** Lets a page's visitor undo for a minute, not for eight seconds, however slow the machine is. */
export const undoLonger = (page) =>
  page.evaluate(() => {
    const { setTimeout: later } = globalThis;
    const UNDO_TIME = 8000; // of page.js
    globalThis.setTimeout = (act, ms, ...more) =>
      later(act, ms === UNDO_TIME ? 60_000 : ms, ...more);
  });

/** Waits until the page shows this state. */
export function online(page, state = 'online') {
  return page.waitForSelector(`body[data-state=${state}]`);
}

/** Makes a page reload itself, with its `pagehide` handlers. Returns when the new document has loaded. */
export async function reloadItself(page) {
  const loaded = page.waitForEvent('load');
  await page.evaluate(() => void setTimeout(() => location.reload()));
  await loaded;
}

/** @returns {Promise<object>} the desktop's data attributes: numbers, and `list` of sprites */
export async function look(page) {
  const data = await page.evaluate(() => ({ ...document.getElementById('stage').dataset }));
  const { where = '', ...numbers } = data;
  const entries = where.split(',').filter(Boolean);
  const list = entries.map((entry) => {
    const [id, x, y] = entry.split(' ');
    return { id, x: Number(x), y: Number(y) };
  });
  return {
    ...Object.fromEntries(Object.entries(numbers).map(([key, value]) => [key, Number(value)])),
    list
  };
}

/** Waits until an element shows this text. The page itself looks, so that it does not miss a short-lived text. */
export function reads(page, selector, text) {
  return page.waitForFunction(
    ([which, part]) => {
      const { textContent } = document.querySelector(which);
      return part instanceof RegExp ? part.test(textContent) : textContent.includes(part);
    },
    [selector, text]
  );
}

/** Waits until a number of the desktop is at least `least`. */
export function until(page, name, least) {
  return page.waitForFunction(
    ([key, number]) => Number(document.getElementById('stage').dataset[key]) >= number,
    [name, least]
  );
}

/** Waits until the desktop has exactly `count` sprites, and none in flight. */
export function holds(page, count) {
  return page.waitForFunction((number) => {
    const { sprites, flying } = document.getElementById('stage').dataset;
    return Number(sprites) === number && Number(flying) === 0;
  }, count);
}

/** Adds sprites by the keyboard until the desktop has `count`. */
export async function fill(page, count) {
  await page.focus('#stage');
  await page.evaluate((number) => {
    const { dataset } = document.getElementById('stage');
    for (let i = Number(dataset.sprites); i < number; i += 1) {
      dispatchEvent(new KeyboardEvent('keydown', { key: String((i % 6) + 1) }));
    }
  }, count);
  await until(page, 'sprites', count);
}

/** Waits until the page shows that it is not alone on the torus. */
export function among(page) {
  return page.waitForFunction(() => !/ 1 1$/.test(document.body.dataset.place ?? ' 1 1'));
}

/** @returns {Promise<object>} the tab's stored place or desktop */
export function memory(page, of) {
  return page.evaluate((key) => JSON.parse(sessionStorage.getItem(key)), `sprites.${of}`);
}

/** @returns {Promise<object[]>} the tab's stored sprites, entries of lib/page/store.js */
export async function kept(page) {
  return (await memory(page, 'desktop')).sprites;
}

/** Waits until the tab has stored `count` sprites. */
export function remembers(page, count) {
  return page.waitForFunction(
    (number) => JSON.parse(sessionStorage.getItem('sprites.desktop'))?.sprites.length === number,
    count
  );
}

/** Waits until nothing on the desktop moves: before that the sprites' places are unknown. */
export function resting(page) {
  return page.waitForFunction(() => document.getElementById('stage').dataset.moving === 'false');
}

/**
 * Moves the mouse or a finger along a line. The events' timestamps have the given pace, however slow the machine is.
 *
 * @param {import('playwright-core').Page} page
 * @param {{x: number, y: number}} from where the button or finger goes down
 * @param {{x: number, y: number}} to where it goes up
 * @param {{finger?: boolean, pace?: number, still?: number}} [how] `pace`: ms from step to step;
 *     `still`: ms without movement before it goes up
 */
export async function drag(page, from, to, { finger = false, pace = 16, still = 0 } = {}) {
  const session = await page.context().newCDPSession(page);
  const begin = Date.now() / 1000;
  const send = (step, { x, y }, time = step * pace) => {
    const timestamp = begin + time / 1000;
    const type = step === 0 ? 0 : step <= STEPS ? 1 : 2;
    return finger
      ? session.send('Input.dispatchTouchEvent', {
          type: ['touchStart', 'touchMove', 'touchEnd'][type],
          touchPoints: type === 2 ? [] : [{ x, y }],
          timestamp
        })
      : session.send('Input.dispatchMouseEvent', {
          type: ['mousePressed', 'mouseMoved', 'mouseReleased'][type],
          button: 'left',
          buttons: type === 2 ? 0 : 1,
          clickCount: 1,
          x,
          y,
          timestamp
        });
  };
  for (let step = 0; step <= STEPS; step += 1) {
    const share = step / STEPS;
    await send(step, { x: from.x + (to.x - from.x) * share, y: from.y + (to.y - from.y) * share });
  }
  await send(STEPS + 1, to, STEPS * pace + 8 + still);
  await session.detach();
}

/** Throws the sprite at a point over an edge, at a speed with which it stays on the next desktop. */
export async function hurl(page, { x, y }, edge, how) {
  const { width, height } = await page.locator('#stage').boundingBox();
  const to = {
    left: { x: 2, y },
    right: { x: width - 2, y },
    up: { x, y: 2 },
    down: { x, y: height - 2 }
  }[edge];
  const share = Math.abs(to.x - x) / width + Math.abs(to.y - y) / height;
  await drag(page, { x, y }, to, { pace: (share / STEPS / SPEED) * 1000, ...how });
}

/** @returns {Promise<number[]>} the row, column, rows and columns that the page shows */
export async function place(page) {
  await page.waitForSelector('body[data-place]');
  return (await page.evaluate(() => document.body.dataset.place)).split(' ').map(Number);
}

/** Returns a PNG of noise, which does not compress. */
export function noisePng(width, height) {
  const rows = Buffer.alloc(height * (1 + width * 3));
  let seed = 1;
  for (let i = 0; i < rows.length; i += 1) {
    seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
    rows[i] = i % (1 + width * 3) === 0 ? 0 : seed >>> 24;
  }
  return png(width, height, deflateSync(rows, { level: 1 }));
}

/** Returns a file for `setInputFiles`. */
export const imageFile = (name, data = noisePng(30, 30), mimeType = 'image/png') => ({
  ...{ name, mimeType, buffer: Buffer.from(data) }
});

/** Returns a PNG with this size and data, which need not match. */
export function png(width, height, data) {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const signature = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  return Buffer.concat([
    signature,
    chunk('IHDR', head),
    chunk('IDAT', data),
    chunk('IEND', Buffer.alloc(0))
  ]);
}

function chunk(type, data) {
  const out = Buffer.alloc(data.length + 12);
  out.writeUInt32BE(data.length, 0);
  out.write(type, 4, 'latin1');
  data.copy(out, 8);
  out.writeUInt32BE(crc32(out.subarray(4, data.length + 8)), data.length + 8);
  return out;
}

/**
 * Returns the browser and the helpers of one file's browser tests. The end of the file closes the browser and the
 * servers.
 *
 * @param {import('tap').Test} t the test file's root test
 * @returns {object} `browser`; `skip`, for every test; `serve(...args)` starts a server for one
 *     test; `end(server, ...pages)` ends a server and its visitors; `alone(name, [how], test)` is a test with
 *     one visitor, `page`, on its own `server`. `how.args`: the server's arguments, `how.others`: the number of idle
 *     clients on it, the rest: options of the visit; `clients(server, count)` waits until the server has `count`
 *     clients; `beside(server, page, onSprite)` joins one other client, until the server ends: its throws over `edge`
 *     come to the page by `back`; `nothingElse()` is the last test: no page has complained or sent a request to another
 *     host
 */
export function browserRig(t) {
  // For all tests of the file, on a busy machine.
  t.setTimeout(500_000);
  const clients = (server, count) => soon(async () => (await server.status()).clients === count);
  const skip = noBrowser();
  const browser = new Browser();
  const servers = [];
  const guests = [];
  t.before(async () => {
    if (!skip) await browser.start();
  });
  failWhenStuck(t);
  t.beforeEach((t) => t.setTimeout(TEST));
  t.afterEach(async (t) => {
    if (t.passing()) return;
    for (const line of [...browser.complaints, ...(await browser.pages())]) t.comment(line);
  });
  t.teardown(async () => {
    await browser.stop();
    for (const server of servers) await server.stop('SIGKILL');
  });
  const serve = async (...args) => {
    const server = await new Server(...args).start();
    servers.push(server);
    return server;
  };
  const end = async (server, ...pages) => {
    for (const page of pages) await page.context().close();
    for (const client of guests.splice(0)) client.stop();
    await server.stop('SIGKILL');
  };
  return {
    browser,
    skip,
    serve,
    end,
    alone(name, how, test = how) {
      const { args = [], others = 0, ...visit } = how;
      t.test(name, { skip }, async (t) => {
        // The idle clients stay for the whole test: a sprite for a client that has left would fly on, maybe back here.
        const server = await serve(...(others > 0 ? ['--lease', '300'] : []), ...args);
        await server.fill(others);
        const page = await browser.visit(server.base, visit);
        await test(t, { server, page });
        await end(server, page);
      });
    },
    clients,
    async beside(server, page, onSprite = () => {}) {
      const client = new Client({ base: server.base, onSprite });
      guests.push(client);
      client.start();
      await clients(server, 2);
      await among(page);
      const [, , rows] = await place(page);
      const [edge, back] = rows === 1 ? ['left', 'right'] : ['up', 'down'];
      return { client, rows, edge, back };
    },
    nothingElse() {
      t.test('nothing outside was asked for, and no page complained', { skip }, async (t) => {
        t.ok(browser.requests.length > 50);
        const isOwn = (url) => /^(http:\/\/127\.0\.0\.1:\d+\/|data:|blob:|file:)/.test(url);
        t.same(
          browser.requests.filter((url) => !isOwn(url)),
          []
        );
        t.same(browser.complaints, []);
      });
    }
  };
}

/** Polls `isSo` for half a minute. @returns {Promise<boolean>} whether it became true */
export async function soon(isSo) {
  for (let i = 0; i < 600; i += 1) {
    if (await isSo()) return true;
    await pause(50);
  }
  return false;
}

/** @returns {Promise<string[]>} the edge from this page to the other of two pages, and the edge back */
export async function edgeBetween(page, other) {
  const [[row, , rows], [otherRow]] = [await place(page), await place(other)];
  return rows === 1 || row === otherRow ? ['right', 'left'] : ['down', 'up'];
}

/** Duration of a frame at 60 frames a second, in milliseconds. */
export const FRAME = 1000 / 60;

/** Frames of one measurement. */
const FRAMES = 20;

/** Most measurements. */
const LOOKS = 8;

/** @returns {Promise<number>} frames a second that a page draws, over a number of frames or a time in milliseconds */
export const framesPerSecond = (page, { frames = 1, ms = 0 }) =>
  page.evaluate(
    ([least, duration]) =>
      new Promise((go) => {
        const first = performance.now();
        let count = 0;
        const tick = (now) => {
          count += 1;
          if (count < least || now - first < duration) requestAnimationFrame(tick);
          else go((count * 1000) / (now - first));
        };
        requestAnimationFrame(tick);
      }),
    [frames, ms]
  );

/**
 * Returns the CPU time of a page's frame, on the page's main thread. Other programs only make a frame dearer: the
 * result is the least of some measurements. Call it while something moves all the time.
 *
 * @param {import('tap').Test} t gets a comment for each measurement
 * @param {import('playwright-core').Page} page
 * @returns {Promise<number>} milliseconds; the first measurement below FRAME is the last one
 */
export async function costOfFrame(t, page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' }); // CPU, not wall clock
  const measure = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    const get = (name) => metrics.find((metric) => metric.name === name).value;
    return { task: get('TaskDuration'), script: get('ScriptDuration') };
  };
  let least = Infinity;
  for (let looks = 0; looks < LOOKS && least >= FRAME; looks += 1) {
    const begin = await measure();
    const rate = await framesPerSecond(page, { frames: FRAMES });
    const after = await measure();
    const each = (part) => ((after[part] - begin[part]) * 1000) / FRAMES;
    least = Math.min(least, each('task'));
    t.comment(
      `${rate.toFixed(1)} frames a second without a GPU; of the page's thread a frame takes ` +
        `${each('task').toFixed(2)} ms, ${each('script').toFixed(2)} of them in scripts`
    );
  }
  await session.detach();
  return least;
}

const SOURCE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/**
 * Returns everything that axe-core finds wrong on a page, in light and dark colors, with best practices.
 *
 * @param {import('playwright-core').Page} page
 * @returns {Promise<string[]>} a line for each element; empty for a good page
 */
export async function amissTo(page) {
  const found = [];
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(SOURCE);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    // The colors must have finished their transition between the schemes.
    await page.evaluate(() => {
      const underWay = document.getAnimations().filter((one) => one instanceof CSSTransition);
      return Promise.allSettled(underWay.map(({ finished }) => finished));
    });
    const { violations } = await page.evaluate(() => axe.run(document));
    for (const { id, help, nodes } of violations) {
      for (const { html, failureSummary } of nodes) {
        found.push(`${colorScheme}: ${id}: ${help}: ${html.slice(0, 200)} ${failureSummary}`);
      }
    }
  }
  await page.emulateMedia({ colorScheme: null });
  return found;
}

/**
 * Returns the contrast ratio of two colors, as WCAG 2 defines it.
 *
 * @param {string} one a color, `rgb(…)` or #rrggbb
 * @param {string} other
 * @returns {number} 1 to 21
 */
export function contrast(one, other) {
  const [light, dark] = [luminance(one), luminance(other)].sort((a, b) => b - a);
  return (light + 0.05) / (dark + 0.05);
}

function luminance(color) {
  const parts = color.startsWith('#')
    ? [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16))
    : color.match(/\d+/g).slice(0, 3).map(Number);
  const [r, g, b] = parts.map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
