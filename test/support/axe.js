/* global axe, CSSTransition, document */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SOURCE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/**
 * Everything that axe-core finds amiss on a page, by day and by night, best practices as well.
 *
 * @param {import('playwright-core').Page} page
 * @returns {Promise<string[]>} a line for each element: none, or the page is to be mended
 */
export async function amissTo(page) {
  const found = [];
  if (!(await page.evaluate(() => 'axe' in globalThis))) await page.evaluate(SOURCE);
  for (const colorScheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme });
    // Colors that are on their way from day to night are neither's.
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
