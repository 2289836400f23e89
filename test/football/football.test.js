/* global document */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';

import t from 'tap';

import { Match, STEPS } from '../../lib/football/match.js';
import { KEY, readOptions, startProvider } from '../../lib/football/provider.js';
import { measure } from '../bench/deltas.js';
import { amissTo } from '../support/axe.js';
import { plainEnvironment } from '../support/cpp-build.js';
import { launchBrowser, noBrowser } from '../support/page-browser.js';
import { documentAt, shown } from '../support/readme.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** The example: a match, its provider, and the page that shows it live. */

t.setTimeout(300_000);

t.test('a match is the same from the same seed, and adds up', async (t) => {
  for (const seed of [1, 2, 3]) {
    const [match, again] = [new Match(seed), new Match(seed)];
    for (let step = 0; step < STEPS; step += 1) {
      match.step();
      again.step();
    }
    const { value } = match;
    t.ok(match.isOver);
    t.same(again.value, value, `seed ${seed}`);
    const bytes = JSON.stringify(value).length;
    t.ok(bytes > 35_000 && bytes < 48_000, `${bytes} bytes`);
    for (const side of ['home', 'away']) {
      const { players } = value.teams[side];
      t.equal(players.filter(({ on }) => on).length, 11);
      const scored = players.reduce((goals, { numbers }) => goals + numbers.goals, 0);
      t.equal(scored, value.score[side]);
    }
    match.step();
    t.same(value, again.value, 'after the final whistle nobody plays');
  }
});

t.test('patches are at most a tenth of whole values, and as the README says', async (t) => {
  const { versions, whole, patches } = measure(1);
  t.equal(versions, STEPS);
  t.ok(patches * 10 <= whole, `${patches} of ${whole} bytes`);
  const readme = documentAt('lib/football/README.md');
  for (const bytes of [whole, patches]) t.match(readme, ` ${bytes.toLocaleString('en')} `);
});

t.test("the provider's options, in plain words where they are wrong", (t) => {
  t.match(readOptions(['--port', '0', '--sprites=https://a.example:8443']), {
    ...{ port: 0, host: '0.0.0.0', sprites: 'https://a.example:8443', pace: 1000, seed: 1 }
  });
  t.strictSame(readOptions(['--help']), { help: true });
  for (const [args, message] of [
    [['--port', '-1'], '--port takes a whole number from 0 to 65535, not "-1"'],
    [['--pace'], /^--pace takes a whole number .*, and nothing follows it$/],
    [['--sprites', 'localhost'], /^--sprites takes the address of a server, .*not "localhost"$/],
    [['--sprites', 'http://a:99999'], /^--sprites takes/],
    [['--spritse', 'x'], /^there is no option --spritse; did you mean --sprites\?$/]
  ]) {
    t.throws(() => readOptions(args), { message }, args.join(' '));
  }
  t.end();
});

t.test('the provider answers as an API does', async (t) => {
  const provider = await startProvider({ pace: 0 });
  t.teardown(() => provider.close());
  const base = `http://127.0.0.1:${provider.port}`;
  const first = await fetch(`${base}/${KEY}`);
  const etag = first.headers.get('etag');
  t.match(await first.json(), { period: 'first half' });
  const known = () => fetch(`${base}/${KEY}`, { headers: { 'If-None-Match': etag } });
  t.equal((await known()).status, 304);
  // What is no path ends nothing.
  for (const path of ['//', '//[', '/%']) t.equal((await fetch(base + path)).status, 404, path);
  provider.step();
  t.equal((await known()).status, 200);
  t.equal((await fetch(`${base}/nothing`)).status, 404);
  t.equal((await fetch(`${base}/`, { method: 'POST' })).status, 405);
  t.equal((await fetch(`${base}/client/..%2fpackage.json`)).status, 404);
  const page = await fetch(`${base}/`);
  t.match(page.headers.get('content-security-policy'), "connect-src 'self' http://localhost:8080;");
  for (let step = 0; step <= STEPS + 20; step += 1) provider.step();
  t.match(provider.step(), { id: 'match-2' }, 'the next match follows');
});

t.test('the two commands are those of the README', async (t) => {
  const readme = 'lib/football/README.md';
  t.equal(shown(readme, 'In one terminal'), 'npm run football\n');
  const { scripts } = JSON.parse(documentAt('package.json'));
  const [program, ...args] = scripts.football.split(' ');
  t.equal(program, 'node');
  const child = spawn(process.execPath, [...args, '--port', '0'], {
    cwd: ROOT,
    env: plainEnvironment()
  });
  const ended = once(child, 'close');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  const lines = [];
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(line));
  await until(() => lines.length === 2);
  const [, port] = /localhost:(\d+)/.exec(lines[1]);
  t.equal(`${lines[1].replace(port, '8090')}\n`, shown(readme, 'and in another'));
  const bad = execFile(process.execPath, [...args, '--pace', 'fast'], { cwd: ROOT });
  t.same(await once(bad, 'exit'), [1, null]);
});

t.test(
  'the page shows the match live, and marks what changed',
  { skip: noBrowser() },
  async (t) => {
    let server;
    const provider = await startProvider({
      pace: 0,
      seed: 3,
      sprites: () => `http://127.0.0.1:${server.port}`
    });
    t.teardown(() => provider.close());
    const base = `http://127.0.0.1:${provider.port}`;
    const options = { upstream: `${base}/{key}`, 'upstream-every': 1, drain: 1 };
    server = await startServer(t, { options });
    for (let step = 0; step < 60; step += 1) provider.step();
    const browser = await launchBrowser();
    t.teardown(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 390, height: 844 } });
    const faults = [];
    page.on('pageerror', (error) => faults.push(error.message));
    await page.goto(base);
    await page.waitForSelector('main:not([hidden])', { timeout: 60_000 });

    const see = () =>
      page.evaluate(() => {
        const text = (selector) => document.querySelector(selector).textContent;
        return {
          cursor: document.body.dataset.cursor,
          clock: text('#clock'),
          score: [text('#home-goals'), text('#away-goals')].map(Number),
          events: document.querySelectorAll('#events li').length,
          marked: Array.from(document.querySelectorAll('.changed'), (one) => one.textContent),
          traffic: text('#traffic'),
          contact: text('#contact'),
          width: document.documentElement.scrollWidth,
          seen: document.querySelectorAll('.player:not([hidden])').length
        };
      });
    /** Plays on, and waits until the page shows it. */
    const follow = async (steps) => {
      let value;
      for (let step = 0; step < steps; step += 1) value = provider.step();
      const { minute, second } = value.clock;
      const clock = `${minute}:${String(second).padStart(2, '0')}`;
      await page.waitForFunction(
        (wanted) => document.querySelector('#clock').textContent === wanted,
        clock,
        { timeout: 60_000 }
      );
      return value;
    };
    const first = await see();
    t.match(first.traffic, 'the whole match');
    t.same(first.marked, [], 'nothing has changed yet');
    t.equal(first.contact, 'live');

    const value = await follow(1);
    const second = await see();
    t.ok(
      second.marked.length > 3 && second.marked.length < 80,
      `${second.marked.length} are marked`
    );
    t.match(
      second.traffic,
      /^The last answer: \d+ changes in [\d.]+ kB, where the whole match is 3\d/
    );
    t.same(second.score, [value.score.home, value.score.away]);
    t.equal(second.seen, 22);

    const later = await follow(120);
    t.same((await see()).score, [later.score.home, later.score.away]);
    t.equal((await see()).events, later.events.length);
    t.ok((await see()).width <= 390, 'nothing is wider than a phone');

    const { port } = server;
    await server.stop();
    await page.waitForFunction(() => document.querySelector('#contact').textContent !== 'live');
    server = await startServer(t, { options: { ...options, port } });
    const after = await follow(1);
    t.same((await see()).score, [after.score.home, after.score.away], 'it goes on by itself');
    t.same(faults, []);
    t.strictSame(await amissTo(page), []);
    await page.close();
    await server.stop();
  }
);
