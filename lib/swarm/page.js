import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { escape } from './words.js';

/**
 * The HTML of a report: one file that fetches nothing. uPlot and what draws the charts are inside it, the
 * only script that may run there, by its hash; what the server or a file said can be no script.
 */

const here = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');
const uplot = (file) => readFileSync(new URL(import.meta.resolve(`uplot/${file}`)), 'utf8');

/** A module as part of one script: its imports are in the same script. */
const inlined = (text) => text.replace(/^import .*;$/gm, '').replace(/^export /gm, '');

/** In a script element nothing may look like its end. */
const json = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/**
 * @param {object} content
 * @param {string} content.title
 * @param {string} content.body HTML
 * @param {Record<string, object>} content.charts by the id of their box: see report-charts.js
 * @param {object} content.data what `sprites-swarm compare` reads out of the file again
 * @returns {string} a whole HTML page
 */
export function page({ title, body, charts, data }) {
  const license = uplot('LICENSE').replaceAll('*/', '');
  const script = [
    `/* uPlot:\n${license}*/`,
    uplot('dist/uPlot.iife.min.js'),
    inlined(here('words.js')),
    inlined(here('report-page/view.js'))
  ].join('\n');
  const hash = createHash('sha256').update(script).digest('base64');
  const policy =
    `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${hash}'; base-uri 'none'; ` +
    "form-action 'none'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title>
<style>${uplot('dist/uPlot.min.css')}
${here('report-page/report.css')}</style></head>
<body><main>
${body}
</main>
<noscript><main class="soft">The charts need JavaScript; all that they show is in this file's data, too.
</main></noscript>
<script type="application/json" id="charts">${json(charts)}</script>
<script type="application/json" id="result">${json(data)}</script>
<script type="module">${script}</script>
</body></html>
`;
}

/**
 * @param {string} html of page()
 * @returns {?object} its data; null when it is no such page
 */
export function dataOf(html) {
  const [, text] = /<script type="application\/json" id="result">(.*)<\/script>$/m.exec(html) ?? [];
  return text === undefined ? null : JSON.parse(text);
}

/** @param {string} id of a chart @param {string} label what it shows @returns {string} HTML */
export function box(id, label) {
  return `<div class="chart" id="${id}" role="img" aria-label="${escape(label)}"></div>`;
}

/**
 * @param {string} value
 * @param {string} name
 * @param {string | false} [className] `bad` for what should not be
 * @returns {string} HTML
 */
export function tile(value, name, className = '') {
  return `<div class="tile ${className || ''}"><b>${escape(value)}</b><span>${escape(name)}</span></div>`;
}

/** @param {string[]} lines escaped @param {string} [className] @returns {string} HTML */
export function list(lines, className = '') {
  return `<ul class="${className}">${lines.map((line) => `<li>${line}</li>`).join('\n')}</ul>`;
}
