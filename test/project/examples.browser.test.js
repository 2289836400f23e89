/* global document */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';

import t from 'tap';

import { measure } from '../bench/deltas.js';
import { amissTo, launchBrowser, noBrowser } from '../support/page-browser.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { documentAt } from '../support/documents.js';
import { endProcess } from '../support/processes.js';
import { ROOT } from '../support/server.js';
import { until } from '../support/until.js';

/** The examples, each run by its command in lib/examples/README.md. */

t.setTimeout(300_000);

const COMMANDS = [
  ...documentAt('lib/examples/README.md').matchAll(/`node (lib\/examples\/\w+\.js)`/g)
].map(([, file]) => file);

/** Runs an example with a page. @returns {Promise<string>} its address */
async function run(t, file) {
  const child = spawn(process.execPath, [file, '0'], { cwd: ROOT, env: plainEnvironment() });
  t.teardown(() => endProcess(child, 'SIGKILL'));
  child.stderr.pipe(process.stderr);
  const [line] = await once(createInterface({ input: child.stdout }), 'line');
  return /^Open (http:\S+\/),/.exec(line)[1];
}

const isFeeds = ({ pathname }) => pathname.startsWith('/feed');

/** By example, an element of its page, and the text that must appear there. */
const EXPECTED_TEXTS = {
  football: ['#traffic', /^The last answer: a patch, [\d,]+ bytes of [\d,]+ bytes$/],
  chat: ['#messages', /^Ann: hello <b>Ann: two$/],
  dashboard: ['#figures', /^Load of the last minute: [\d.]+.*Memory of this program, MB: \d+/s]
};

t.test('the examples with a page', { skip: noBrowser() }, async (t) => {
  const browser = await launchBrowser();
  t.teardown(() => browser.close());
  for (const [name, [selector, pattern]] of Object.entries(EXPECTED_TEXTS)) {
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    const faults = [];
    page.on('pageerror', (error) => faults.push(error.message));
    const base = await run(
      t,
      COMMANDS.find((file) => file.includes(name))
    );
    let beginFeeds;
    const feedsMayBegin = new Promise((resolve) => (beginFeeds = resolve));
    if (name === 'chat') {
      await page.route(isFeeds, async (route) => {
        await feedsMayBegin;
        await route.continue();
      });
    }
    await page.goto(base);
    if (name === 'chat') {
      await page.fill('#name', 'Ann');
      await page.fill('#text', 'hello <b>');
      const isSaid = (text) =>
        page.waitForFunction((part) => document.getElementById('state').value === part, text);
      await page.route('**/say', (route) => route.abort(), { times: 1 });
      await page.click('button');
      await isSaid('not sent: no contact');
      beginFeeds();
      await page.waitForFunction(() => document.getElementById('contact').value === '');
      t.equal(await page.textContent('#state'), 'not sent: no contact', 'contact does not hide it');
      t.equal(await page.inputValue('#text'), 'hello <b>', 'it can be sent again');
      const twice = () => [1, 2].map(() => document.querySelector('button').click());
      t.ok(await page.evaluate(twice), 'and is said once');
      await page.locator('#messages li').waitFor();
      t.equal(await page.textContent('#state'), '');
      // Of two that are under way the first is not sent, and the second is.
      const held = [];
      await page.route('**/say', (route) => void held.push(route), { times: 2 });
      for (const words of ['one', 'two']) {
        await page.fill('#text', words);
        await page.press('#text', 'Enter');
      }
      await until(() => held.length === 2);
      await held[0].abort();
      await isSaid('not sent: no contact');
      const answered = page.waitForResponse('**/say');
      await held[1].continue();
      await answered;
      await page.locator('#messages', { hasText: 'Ann: two' }).waitFor();
      t.equal(await page.textContent('#state'), 'not sent: no contact', 'nor does another message');
      t.equal(await page.inputValue('#text'), 'one');
      for (const body of ['{}', '{"name":"","text":"x"}', 'none', 'x'.repeat(3000)]) {
        t.equal(
          (await fetch(`${base}say`, { method: 'POST', body })).status,
          400,
          body.slice(0, 30)
        );
      }
    }
    await page.waitForFunction(
      ([where, source, flags]) =>
        new RegExp(source, flags).test(document.querySelector(where).textContent),
      [selector, pattern.source, pattern.flags],
      { timeout: 60_000 }
    );
    if (name === 'football') {
      const event = await page.waitForSelector('#events li', { timeout: 60_000 });
      const was = await page.textContent('#score');
      const isOther = (then) => document.getElementById('score').textContent !== then;
      await page.waitForFunction(isOther, was);
      t.ok(await event.evaluate((one) => one.isConnected), 'an event is read aloud once');
    }
    t.strictSame(faults, [], `${name} runs`);
    t.strictSame(await amissTo(page), [], `${name} is accessible`);
    t.equal((await fetch(`${base}client/..%2fpackage.json`)).status, 404);
    await page.close();
  }
});

t.test('the embedded server', async (t) => {
  const file = COMMANDS.find((one) => one.includes('embedded'));
  const { stdout } = await promisify(execFile)(process.execPath, [file], {
    cwd: ROOT,
    env: plainEnvironment()
  });
  t.match(stdout, /\nthrown 10, acknowledged 10, lost 0\n$/);
});

t.test('patches of a football match are at most a tenth of whole values', async (t) => {
  const { versions, whole, patches } = measure(1);
  t.equal(versions, 300);
  t.ok(patches * 10 <= whole, `${patches} of ${whole} bytes`);
});
