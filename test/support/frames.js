/* global requestAnimationFrame */

/** Milliseconds that a frame of sixty a second may take. */
export const FRAME = 1000 / 60;

/** Frames of a look. */
const FRAMES = 20;

/** Looks at the most. */
const LOOKS = 8;

/**
 * What a frame of a page costs, in CPU time of the page's own thread. Who shares the processor makes a frame dearer,
 * never cheaper: so the least of some looks is its price. To be called while something moves all the time.
 *
 * @param {import('tap').Test} t is told of each look
 * @param {import('playwright-core').Page} page
 * @returns {Promise<number>} milliseconds; the looks end with the first below FRAME
 */
export async function costOfFrame(t, page) {
  const session = await page.context().newCDPSession(page);
  await session.send('Performance.enable', { timeDomain: 'threadTicks' }); // CPU, not wall clock
  const measure = async () => {
    const { metrics } = await session.send('Performance.getMetrics');
    const get = (name) => metrics.find((metric) => metric.name === name).value;
    return { task: get('TaskDuration'), script: get('ScriptDuration') };
  };
  const draw = () =>
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
      FRAMES
    );
  let least = Infinity;
  for (let looks = 0; looks < LOOKS && least >= FRAME; looks += 1) {
    const begin = await measure();
    const rate = await draw();
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
