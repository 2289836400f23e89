/* global document, requestAnimationFrame */
import t from 'tap';
import { browserRig, fill, resting } from '../support/page-browser.js';

/** What moves on the page by itself, in a browser; and what it costs. */

const { alone, nothingElse, skip } = browserRig(t);

t.setTimeout(300_000); // of all together, on a machine that does other things too

/** Lets sprites stroll and blink sooner, before there are any. */
const hurry = (page, pace) =>
  page.evaluate(async (given) => Object.assign((await import('/life.js')).PACE, given), pace);

const LIVELY = { reducedMotion: 'no-preference' };

alone(
  'it lives: the desktop looks different after a while',
  { visit: LIVELY },
  async (t, { page }) => {
    // Short strolls: where they are is written when all of them stand.
    await hurry(page, { rest: [0.5, 0.8], stroll: [0.1, 0.2], blink: [0.3, 0.6] });
    await page.keyboard.press('3');
    await resting(page); // Nothing but themselves moves them from now on.
    const places = () => page.evaluate(() => document.getElementById('stage').dataset.where);
    const before = await places();
    await page.waitForFunction(
      (was) => {
        const { where } = document.getElementById('stage').dataset;
        return was.split(',').some((one) => !where.includes(one));
      },
      before,
      { timeout: 30_000 }
    );
    t.pass('one has walked');
  }
);

alone(
  'where motion troubles nothing moves by itself, and no frame is drawn',
  async (t, { page }) => {
    await hurry(page, { rest: [0.1, 0.2], blink: [0.3, 0.6] });
    await page.keyboard.press('3');
    await resting(page);
    const [frames, same] = await page.evaluate(
      () =>
        new Promise((go) => {
          const stage = document.getElementById('stage');
          const before = stage.toDataURL();
          const request = globalThis.requestAnimationFrame;
          let asked = 0;
          globalThis.requestAnimationFrame = (callback) => {
            asked += 1;
            return request(callback);
          };
          setTimeout(() => {
            globalThis.requestAnimationFrame = request;
            go([asked, before === stage.toDataURL()]);
          }, 1500);
        })
    );
    t.equal(frames, 0);
    t.ok(same);
  }
);

alone(
  'a hundred sprites that walk by themselves',
  { others: 11, visit: { ...LIVELY, viewport: { width: 1280, height: 800 } } },
  async (t, { page }) => {
    await hurry(page, { rest: [0, 0], stroll: [1000, 1000], blink: [0.5, 1] });
    await fill(page, 100);
    const session = await page.context().newCDPSession(page);
    await session.send('Performance.enable', { timeDomain: 'threadTicks' }); // CPU, not wall clock
    const measure = async () => {
      const { metrics } = await session.send('Performance.getMetrics');
      const get = (name) => metrics.find((metric) => metric.name === name).value;
      return { task: get('TaskDuration'), script: get('ScriptDuration') };
    };
    const frames = (most) =>
      page.evaluate(
        (enough) =>
          new Promise((go) => {
            const first = performance.now();
            let count = 0;
            const tick = (now) => {
              count += 1;
              if (count < enough) requestAnimationFrame(tick);
              else go((count * 1000) / (now - first));
            };
            requestAnimationFrame(tick);
          }),
        most
      );
    await frames(20); // They land, set out and find room.
    // Who shares the processor makes a frame dearer, never cheaper: the least of some looks is its price.
    const FRAMES = 20;
    let least = Infinity;
    for (let looks = 0; looks < 8 && least >= 1000 / 60; looks += 1) {
      const begin = await measure();
      const rate = await frames(FRAMES);
      const after = await measure();
      const each = (part) => ((after[part] - begin[part]) * 1000) / FRAMES;
      least = Math.min(least, each('task'));
      t.comment(
        `${rate.toFixed(1)} frames a second with 100 sprites that walk and no GPU; of the page's thread ` +
          `a frame takes ${each('task').toFixed(2)} ms, ${each('script').toFixed(2)} of them in scripts`
      );
    }
    t.ok(least < 1000 / 60, 'a frame of 60 a second, in CPU time');
  }
);

t.test('nothing outside was asked for, and no page complained', { skip }, async (t) => {
  nothingElse(t);
});
