import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';

import { fill, placeholder } from './page-parts.js';

/**
 * The HTML of a report: one file that fetches nothing. It contains one script, with uPlot and the code that draws the
 * charts. The content security policy allows only this script, by its hash, so that no text of a server or a file can
 * run.
 */

const readHere = (file) => readFileSync(new URL(file, import.meta.url), 'utf8');
const readUplot = (file) => readFileSync(new URL(import.meta.resolve(`uplot/${file}`)), 'utf8');

/** Returns a module's text without imports and exports: all modules are in the same script. */
const withoutImports = (text) => text.replace(/^import .*;$/gm, '').replace(/^export /gm, '');

/** @returns {string} the template of a report's page, for fill() */
export function template() {
  const license = readUplot('LICENSE').replaceAll('*/', '');
  const script = [
    readHere('language.js'),
    `/* uPlot:\n${license}*/`,
    readUplot('dist/uPlot.iife.min.js'),
    withoutImports(readHere('words.js')),
    withoutImports(readHere('report-page/view.js'))
  ].join('\n');
  const hash = createHash('sha256').update(script).digest('base64');
  const policy =
    `default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-${hash}'; base-uri 'none'; ` +
    "form-action 'none'";
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${placeholder('title')}</title>
<style>${readUplot('dist/uPlot.min.css')}
${readHere('report-page/report.css')}</style></head>
<body><main>
${placeholder('body')}
</main>
<noscript><main class="soft">The charts need JavaScript; all that they show is in this file's data, too.
</main></noscript>
<script type="application/json" id="charts">${placeholder('charts')}</script>
<script type="application/json" id="result">${placeholder('data')}</script>
<script type="module">${script}</script>
</body></html>
`;
}

/**
 * @param {Parameters<typeof fill>[1]} content
 * @returns {string} a whole HTML page
 */
export const page = (content) => fill(template(), content);

/**
 * @param {string} html a page of page()
 * @returns {?object} the data of the page; null for any other page
 */
export function dataOf(html) {
  const [, text] =
    /<script type="application\/json" id="result">([^<]*)<\/script>$/m.exec(html) ?? [];
  return text === undefined ? null : JSON.parse(text);
}
