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

/**
 * Contrast as WCAG 2 defines it.
 *
 * @param {string} one a color, written as `rgb(…)` or #rrggbb
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
