import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:net';

import { missing } from './cpp-build.js';
import { Screen } from './cpp-screen.js';
import { until } from './until.js';

/** WebKitGTK, by its WebDriver: what Playwright drives is another build than people have. */

/** Why it can't run here, for a test's `skip`. */
export const noWebKit = missing({ programs: ['WebKitWebDriver', 'Xvfb'] });

/** Milliseconds that a page may take for what is waited for, on a machine that does other things too. */
const PATIENCE = 45_000;

/** Of a drag: steps, and milliseconds from one to the next. */
const STEPS = 6;
const PACE = 20;

async function freePort() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address();
  server.close();
  await once(server, 'close');
  return port;
}

/** A window of WebKit with one page in it, of which the helpers of page-browser.js can ask what they ask of Playwright's. */
export class WebKitPage {
  #session;

  /**
   * @param {import('tap').Test} t it ends with
   * @param {string} url
   * @param {{width: number, height: number}} [size]
   */
  static async open(t, url, size = { width: 1000, height: 700 }) {
    const page = new WebKitPage();
    const screen = await Screen.start(t, { width: 1400, height: 1000 });
    const port = await freePort();
    const driver = spawn('WebKitWebDriver', [`--port=${port}`], {
      env: {
        ...screen.env,
        LIBGL_ALWAYS_SOFTWARE: '1',
        // By this its pages have the language "C", which Intl refuses.
        LC_ALL: 'C.UTF-8',
        // Its sandbox wants namespaces, which containers do not give; the pages are ours.
        WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1'
      },
      stdio: 'ignore'
    });
    const ended = once(driver, 'close');
    t.teardown(async () => {
      await page.#ask('DELETE', '').catch(() => {});
      driver.kill();
      await ended;
    });
    const base = `http://127.0.0.1:${port}/session`;
    await until(() => fetch(`http://127.0.0.1:${port}/status`).catch(() => false));
    const { sessionId } = await send('POST', base, { capabilities: {} });
    page.#session = `${base}/${sessionId}`;
    await page.#ask('POST', '/timeouts', { script: PATIENCE });
    await page.#ask('POST', '/window/rect', { x: 0, y: 0, ...size });
    await page.#ask('POST', '/url', { url });
    // WebDriver has no console: from here on the page takes down what it complains about.
    await page.evaluate(() => {
      const complaints = (globalThis.complaints = []);
      for (const name of ['error', 'unhandledrejection', 'securitypolicyviolation']) {
        globalThis.addEventListener(name, (event) => {
          const { message, reason, violatedDirective } = event;
          complaints.push(`${name}: ${message ?? reason?.stack ?? violatedDirective}`);
        });
      }
      for (const name of ['error', 'warn'])
        console[name] = (...all) => complaints.push(all.join(' '));
    });
    return page;
  }

  /** @returns {Promise<string[]>} what went wrong in the page since it was loaded */
  complaints() {
    return this.evaluate(() => globalThis.complaints);
  }

  #ask(method, path, body) {
    return send(method, this.#session + path, body);
  }

  /** Calls a function in the page. @returns {Promise<any>} its result as JSON has it, or what its promise resolves to */
  async evaluate(call, arg) {
    const script = `const done = arguments[1];
      Promise.resolve(arguments[0]).then(${call}).then((value) => done({ value }), (error) => done({ error: String(error.stack ?? error) }));`;
    const { value, error } = await this.#ask('POST', '/execute/async', {
      script,
      args: [arg ?? null]
    });
    assert.equal(error, undefined);
    return value;
  }

  waitForFunction(holds, arg) {
    return until(() => this.evaluate(holds, arg), `${holds}`, PATIENCE / 1000);
  }

  waitForSelector(selector) {
    return until(
      () => this.evaluate((one) => globalThis.document.querySelector(one) !== null, selector),
      selector,
      PATIENCE / 1000
    );
  }

  /** Moves the mouse along a line; `still`: milliseconds before it goes up. */
  async drag(from, to, { still = 400 } = {}) {
    const move = (share, duration = PACE) => ({
      type: 'pointerMove',
      duration,
      x: Math.round(from.x + (to.x - from.x) * share),
      y: Math.round(from.y + (to.y - from.y) * share)
    });
    const actions = [
      move(0, 0),
      { type: 'pointerDown', button: 0 },
      ...Array.from({ length: STEPS }, (_, i) => move((i + 1) / STEPS)),
      { type: 'pause', duration: still },
      { type: 'pointerUp', button: 0 }
    ];
    const mouse = { type: 'pointer', id: 'mouse', parameters: { pointerType: 'mouse' }, actions };
    await this.#ask('POST', '/actions', { actions: [mouse] });
  }

  /** Writes what is to be seen as a PNG. */
  async screenshot(path) {
    writeFileSync(path, Buffer.from(await this.#ask('GET', '/screenshot'), 'base64'));
  }
}

/** A command of WebDriver. @returns {Promise<any>} its value */
async function send(method, url, body = {}) {
  const text = method === 'POST' ? JSON.stringify(body) : undefined;
  const response = await fetch(url, { method, body: text });
  const { value } = await response.json();
  assert.equal(response.status, 200, `${method} ${url}: ${JSON.stringify(value)}`);
  return value;
}
