/* global document */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';

import { dataOf } from '../../lib/report/page.js';

import { arenaRig, PAGES, says, unlock } from '../support/arena-pages.js';
import { amissTo, noBrowser } from '../support/page-browser.js';
import { start } from '../support/swarm.js';

/** Load in browsers: steps on the panel, two machines, three phones, and moving plots. */

/** Returns of each plot its text, its number of points, and the pixels of its canvas. */
const plotsOf = (page) =>
  page.evaluate(() =>
    Object.fromEntries(
      [...document.querySelectorAll('.load-plots .plot')].map((plot) => [
        plot.id.slice(5),
        {
          text: plot.querySelector('b').textContent,
          label: plot.querySelector('.lines').getAttribute('aria-label'),
          points: Number(plot.querySelector('.lines').dataset.points),
          drawn: plot.querySelector('canvas').toDataURL()
        }
      ])
    )
  );

const PLOTS = ['connections', 'cpu', 'memory', 'missing', 'rates', 'stall', 'times'];

const rig = arenaRig(t);

t.test('load', { skip: noBrowser() }, async (t) => {
  const { base, visit } = await rig.room(t);
  const panel = await visit(PAGES.panel, 'big');
  const step = (name, button) =>
    panel.click(`.stepper[data-name=${name}] .step:${button === '+' ? 'last' : 'first'}-of-type`);
  const machines = (count) =>
    panel.waitForFunction(
      (wanted) => document.querySelectorAll('#load-who tbody tr').length === wanted,
      count,
      { timeout: 60_000 }
    );

  await t.test('the panel chooses it, and has its steps and plots', async (t) => {
    await unlock(panel);
    await panel.click('[data-value=load]');
    await panel.waitForSelector('.stepper[data-name=clients]');
    t.strictSame(Object.keys(await plotsOf(panel)).sort(), PLOTS);
    t.equal(await panel.isVisible('#settings-sheet'), false);
    const spin = panel.locator('.stepper[data-name=clients] output');
    await spin.press('Home');
    await spin.press('ArrowUp');
    await says(panel, '.stepper[data-name=clients] output', '10');
    const more = '.stepper[data-name=phoneThrows] .step:last-of-type';
    for (let i = 0; i < 4; i += 1) await panel.press(more, 'Enter'); // 5 is the most.
    await panel.locator(`${more}:focus`).waitFor();
  });

  const agents = [1, 2].map(() => start(t, ['agent', `${base}play/hall`, '--clients-max', '40']));
  const phones = await Promise.all([1, 2, 3].map(() => visit(PAGES.phone)));

  await t.test('two machines and three phones carry it', async (t) => {
    await panel.click('#go');
    await machines(5);
    await panel.waitForFunction(
      () => document.querySelector('#plot-connections b').textContent === '23',
      undefined,
      { timeout: 60_000 }
    );
    for (const phone of phones) await phone.waitForSelector('#root[data-connections="1"]');
    t.pass('10 on each machine, 1 on each phone');
  });

  await t.test('a step up moves the plots, and what is drawn', async (t) => {
    const before = await plotsOf(panel);
    await step('clients', '+');
    await step('polls', '+');
    await step('throws', '+');
    await panel.waitForFunction(
      () => document.querySelector('#plot-connections b').textContent === '86',
      undefined,
      { timeout: 60_000 }
    );
    const after = await plotsOf(panel);
    for (const name of PLOTS) {
      t.ok(after[name].points > before[name].points, `${name} has more points`);
      t.not(after[name].drawn, before[name].drawn, `${name} is drawn anew`);
    }
    t.match(after.connections.label, /^Connections over time: of the load 86, at most 86/);
    t.match(await panel.textContent('#load-who'), /machine, at its bound.*phone/);
    const field = await visit(PAGES.field, 'wide', { viewport: { width: 640, height: 300 } });
    await says(field, '.load-who', 'phones');
    for (const page of [panel, phones[0], field]) t.strictSame(await amissTo(page), []);
    t.ok((await field.locator('.load-tiles').boundingBox()).y >= 0);
    await field.close();
    const big = await visit(PAGES.field, 'big');
    // The style sheet of plots may come after the plot.
    await big.waitForFunction(() => {
      const left = (selector) => document.querySelector(selector)?.getBoundingClientRect().x;
      return left('.u-over') - left('.uplot') > 80;
    });
    t.pass('the labels are larger on a big screen');
    await big.close();
  });

  await t.test('nothing is missing', async (t) => {
    await panel.waitForFunction(
      () =>
        Number(
          /of ([0-9,]+) sprites/
            .exec(document.querySelector('.load-missing').textContent)?.[1]
            .replace(',', '')
        ) > 100,
      undefined,
      { timeout: 90_000 }
    );
    t.match(await panel.textContent('.load-missing:not([role])'), /^Missing: 0 of /);
    t.match(await panel.textContent('#load-figures tbody tr:last-child'), /Missing: sprites000$/);
    const rowHeads = await panel.locator('#load-figures tbody th[scope=row]').count();
    t.equal(rowHeads, await panel.locator('#load-figures tbody tr').count());
    for (const phone of phones) {
      const thrown = await phone.evaluate(() =>
        Number(document.getElementById('root').dataset.thrown)
      );
      t.ok(thrown > 3, `${thrown} thrown by a phone`);
    }
  });

  await t.test('the run is saved as the swarm’s report, which needs nothing else', async (t) => {
    // The report's modules have loaded with the panel, since a browser caches the failure of an import.
    await panel.route(/\/swarm\/.*\.js$/, (route) => route.abort());
    const [download] = await Promise.all([
      panel.waitForEvent('download'),
      panel.click('#load-save')
    ]);
    const file = join(t.testdir({}), 'report.html');
    await download.saveAs(file);
    const result = dataOf(readFileSync(file, 'utf8'));
    t.match(result, { command: 'panel', clients: 86, faults: [], account: { missing: 0 } });
    t.ok(result.account.accepted > 100 && result.use.memory > 1e6 && result.series.length > 5);
    const report = await panel.context().newPage();
    await report.goto(pathToFileURL(file).href);
    await report.waitForSelector('#parked canvas');
    t.match(await report.textContent('h1'), /^86 clients, /);
    t.match(await report.textContent('.verdict'), /Every sprite accounted for/);
    await report.close();
  });

  await t.test('what is drawn ends with the round', async (t) => {
    const field = await visit(PAGES.field, 'big');
    const looks = () => panel.waitForRequest(/\/names\?/); // by then the page has shown a status
    const points = (page, plot) => page.locator(`${plot} .lines`).getAttribute('data-points');
    await field.waitForSelector('.lines[data-points="2"]');
    await panel.click('#go');
    await says(panel, '.load-who', 'Not running');
    await says(field, '#toast', 'The round is over');
    const before = [await points(panel, '#plot-connections'), await points(field, '.plot')];
    await field.evaluate(() => new Promise((go) => void setTimeout(go, 1100))); // a point a second
    await looks();
    t.strictSame([await points(panel, '#plot-connections'), await points(field, '.plot')], before);
    t.match(await panel.textContent('.load-missing'), /^Missing: 0 of /);
    await panel.click('[data-value=lobby]');
    await looks();
    await looks();
    t.match(await panel.textContent('.load-missing'), /^Missing: 0 of /);
  });

  for (const one of agents) one.kill('SIGKILL');
});

rig.nothingElse();
