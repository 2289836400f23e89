import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';

import { freePort } from './addresses.js';
import { missing, plainEnvironment } from './cpp-build.js';
import { Screen } from './cpp-screen.js';
import { endProcess, temporary } from './processes.js';
import { until } from './until.js';

/** Drives WebKitGTK and Firefox by WebDriver: Playwright drives its own builds, not the distribution's. */

/** By browser: `start` starts it; `skip` is the reason why it can't run here, or false. */
export const BROWSERS = {
  WebKit: { start: startWebKit, skip: missing({ programs: ['WebKitWebDriver', 'Xvfb'] }) },
  Firefox: { start: startFirefox, skip: missing({ programs: ['firefox-esr'] }) }
};

/** Timeout of a page's action, in milliseconds, on a busy machine. */
const PATIENCE = 45_000;

/** Steps of a drag, and the time between two steps, in milliseconds. */
const STEPS = 6;
const PACE = 20;

/** WebDriver's commands by name, with their HTTP methods and paths. */
const COMMANDS = {
  DeleteSession: ['DELETE', ''],
  ExecuteAsyncScript: ['POST', '/execute/async'],
  Navigate: ['POST', '/url'],
  PerformActions: ['POST', '/actions'],
  SetTimeouts: ['POST', '/timeouts'],
  SetWindowRect: ['POST', '/window/rect'],
  TakeScreenshot: ['GET', '/screenshot']
};

/** Starts a process. The test's end calls `bye()`, and then ends the process. */
function starts(t, command, args, { env, bye }) {
  const child = spawn(command, args, { env, stdio: 'ignore' });
  t.teardown(async () => {
    await bye().catch(() => {}); // the process is gone
    await endProcess(child);
  });
}

/** @returns {Promise<(name: string, params?: object) => Promise<any>>} sends commands to WebKit over HTTP */
async function startWebKit(t) {
  const screen = await Screen.start(t, { width: 1400, height: 1000 });
  const port = await freePort();
  const env = {
    // In the locale C.UTF-8 pages have the language "C", which Intl refuses.
    ...screen.env,
    LIBGL_ALWAYS_SOFTWARE: '1',
    // The sandbox needs namespaces, which containers lack. The pages are our own.
    WEBKIT_DISABLE_SANDBOX_THIS_IS_DANGEROUS: '1'
  };
  const base = `http://127.0.0.1:${port}/session`;
  let session;
  const ask = (name, params) => {
    const [method, path] = COMMANDS[name];
    return send(method, `${base}/${session}${path}`, params);
  };
  starts(t, 'WebKitWebDriver', [`--port=${port}`], { env, bye: () => ask('DeleteSession') });
  await until(() => fetch(`http://127.0.0.1:${port}/status`).catch(() => false));
  session = (await send('POST', base, { capabilities: {} })).sessionId;
  return ask;
}

/** @returns {Promise<(name: string, params?: object) => Promise<any>>} sends commands to Firefox by Marionette */
async function startFirefox(t) {
  const profile = temporary(t);
  writeFileSync(join(profile, 'user.js'), 'user_pref("marionette.port", 0);\n');
  const args = ['--headless', '--no-remote', '--marionette', '--profile', profile];
  const waiting = new Map();
  let socket;
  let count = 0;
  const ask = (name, params = {}) =>
    new Promise((resolve, reject) => {
      const id = ++count;
      waiting.set(id, { resolve, reject });
      const text = JSON.stringify([0, id, `WebDriver:${name}`, params]);
      socket.write(`${Buffer.byteLength(text)}:${text}`);
    });
  const env = plainEnvironment({ HOME: profile, MOZ_DISABLE_CONTENT_SANDBOX: '1' });
  starts(t, 'firefox-esr', args, { env, bye: async () => socket?.destroy() });
  const file = join(profile, 'MarionetteActivePort');
  const port = await until(() => existsSync(file) && Number(readFileSync(file, 'utf8')));
  socket = connect(port, '127.0.0.1');
  let bytes = Buffer.alloc(0);
  socket.on('data', (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    for (let at; (at = bytes.indexOf(':')) > 0;) {
      const end = at + 1 + Number(bytes.subarray(0, at));
      if (bytes.length < end) return;
      const [, id, error, result] = [JSON.parse(bytes.subarray(at + 1, end))].flat();
      bytes = bytes.subarray(end);
      const { resolve, reject } = waiting.get(id) ?? {}; // the greeting has no command
      if (error) reject(new Error(JSON.stringify(error)));
      else resolve?.(result.value);
    }
  });
  await ask('NewSession');
  return ask;
}

/** A window with one page. It has the members of Playwright's Page that the helpers of page-browser.js use. */
export class DrivenPage {
  #ask;

  /**
   * @param {import('tap').Test} t its end closes the window
   * @param {keyof typeof BROWSERS} browser
   * @param {string} url
   * @param {{width: number, height: number}} [size]
   */
  static async open(t, browser, url, size = { width: 1000, height: 700 }) {
    const page = new DrivenPage();
    page.browser = browser;
    page.#ask = await BROWSERS[browser].start(t);
    await page.#ask('SetTimeouts', { script: PATIENCE });
    await page.#ask('SetWindowRect', { x: 0, y: 0, ...size });
    await page.#ask('Navigate', { url });
    // WebDriver has no console: from here on the page records its own errors and violations.
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

  /** @returns {Promise<string[]>} the page's errors and violations since it was loaded */
  complaints() {
    return this.evaluate(() => globalThis.complaints);
  }

  /** Calls a function in the page. @returns {Promise<any>} its result, or that of its promise, as JSON */
  async evaluate(call, arg) {
    const script = `const done = arguments[1];
      Promise.resolve(arguments[0]).then(${call}).then((value) => done({ value }), (error) => done({ error: String(error.stack ?? error) }));`;
    const { value, error } = await this.#ask('ExecuteAsyncScript', {
      script,
      args: [arg ?? null],
      // With a fixed sandbox Firefox keeps the global variables of earlier calls.
      sandbox: 'default',
      newSandbox: false
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

  /** Moves the mouse along a line; `still`: milliseconds without movement before the button goes up. */
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
    await this.#ask('PerformActions', { actions: [mouse] });
  }

  /** Writes a screenshot as a PNG. */
  async screenshot(path) {
    writeFileSync(path, Buffer.from(await this.#ask('TakeScreenshot', { full: false }), 'base64'));
  }
}

/** Sends a command of WebDriver. @returns {Promise<any>} the answer's value */
async function send(method, url, body = {}) {
  const text = method === 'POST' ? JSON.stringify(body) : undefined;
  const response = await fetch(url, { method, body: text });
  const { value } = await response.json();
  assert.equal(response.status, 200, `${method} ${url}: ${JSON.stringify(value)}`);
  return value;
}
