import { digits, escape, nines } from './words.js';

/** Parts of a report's page, made in Node or in a browser: the panel of an arena saves one, too. */

/** In a script element nothing may look like its end. */
const json = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/** @param {string} name @returns {string} where fill() puts a part of the content */
export const mark = (name) => `<!--${name}-->`;

/**
 * @param {string} template of lib/report/page.js
 * @param {object} content
 * @param {string} content.title
 * @param {string} content.body HTML
 * @param {Record<string, object>} content.charts by the id of their box: see percentileChart() and timeChart()
 * @param {object} content.data what `sprites-swarm compare` reads out of the file again
 * @returns {string} a whole HTML page
 */
export function fill(template, { title, body, charts, data }) {
  const parts = { title: escape(title), body, charts: json(charts), data: json(data) };
  // In one go: what looks like a mark in a part stays as it is.
  return template.replace(/<!--(title|body|charts|data)-->/g, (all, name) => parts[name]);
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

/**
 * @param {Array<{name: string, value: number, words: string, className: string}>} rows
 * @returns {string} HTML: a bar each, the longest for the largest value
 */
export function bars(rows) {
  const most = Math.max(...rows.map(({ value }) => value), 1e-3);
  const lines = rows.map(
    ({ name, value, words, className }) => `<span>${escape(name)}</span><div><i class="${className}"
style="width: ${digits((value / most) * 100)}%"></i><b>${escape(words)}</b></div>`
  );
  return `<div class="bars">${lines.join('')}</div>`;
}

/**
 * @param {string[]} head HTML: what a row is of, and the names of its figures
 * @param {string[][]} rows HTML: what it is of, and its figures
 * @returns {string} HTML: a table
 */
export function figures(head, rows) {
  const row = (tag, [first, ...others]) =>
    `<tr><th>${first}</th>${others.map((one) => `<${tag} class="number">${one}</${tag}>`).join('')}</tr>`;
  const lines = rows.map((cells) => row('td', cells));
  return `<table class="figures even">${row('th', head)}${lines.join('\n')}</table>`;
}

/** @param {string[]} lines escaped @param {string} [className] @returns {string} HTML */
export function list(lines, className = '') {
  return `<ul class="${className}">${lines.map((line) => `<li>${line}</li>`).join('\n')}</ul>`;
}

/**
 * The charts of a report, as data: report-page/view.js draws them.
 *
 * @typedef {object} Chart
 * @property {'percentile' | 'time'} kind
 * @property {'time' | 'count' | 'cores' | 'bytes'} unit of the values; a time is in ms
 * @property {Array<{name: string, color: string, filled?: boolean, dashed?: boolean,
 *     stepped?: boolean}>} series
 * @property {Array<Array<?number>>} data x, then the values of each series; null is a gap
 * @property {[number, number]} [range] of the values, whole decades: their axis is logarithmic
 * @property {number} [from] where the x axis begins
 * @property {{from: number, to: number}} [phase] seconds, shaded
 * @property {number} [top] percentile: where the slowest of all stands
 * @property {Array<[number, number]>} [marks] percentile: percent and ms, written on the first series
 * @property {boolean} [joined] a gap is no gap: the series have points at different times
 * @property {string} [shared] charts of the same name show the same moment under the pointer
 */

/** Whole decades around the values, for a logarithmic axis. */
function decadesAround(values) {
  const known = values.filter((value) => value > 0);
  if (known.length === 0) return undefined;
  const low = 10 ** Math.floor(Math.log10(Math.min(...known)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...known) * 1.001));
  return [low, Math.max(high, low * 10)];
}

/** @param {Array<Array<[number, ?number]>>} lines points @returns {Array<Array<?number>>} over one x */
function joined(lines) {
  const at = [...new Set(lines.flatMap((points) => points.map(([x]) => x)))].sort((a, b) => a - b);
  return [
    at,
    ...lines.map((points) => {
      const values = new Map(points);
      return at.map((x) => values.get(x) ?? null);
    })
  ];
}

/**
 * Latency by percentile, both axes logarithmic, so that the slowest one in ten thousand has as much room
 * as the fastest half.
 *
 * @param {Array<{name: string, color: string, points: Array<[number, number]>}>} curves percent and ms,
 *     rising
 * @param {Array<[number, number]>} [marks] percent and ms, on the first curve
 * @returns {Chart}
 */
export function percentileChart(curves, marks) {
  const below = curves.flatMap(({ points }) => points.map(([percent]) => percent));
  const most = Math.max(1, ...below.filter((percent) => percent < 100).map(nines));
  const top = most * 1.06;
  const at = (percent) => Math.round((percent >= 100 ? top : nines(percent)) * 1e4) / 1e4;
  const data = joined(
    curves.map(({ points }) => points.map(([percent, ms]) => [at(percent), Math.max(ms, 1e-4)]))
  );
  return {
    kind: 'percentile',
    unit: 'time',
    series: curves.map(({ points, ...one }) => (void points, one)),
    data,
    range: decadesAround(data.slice(1).flat()),
    top: at(100),
    marks
  };
}

/**
 * Something over time.
 *
 * @param {Chart['unit']} unit counts from 0; `time` has a logarithmic axis
 * @param {Array<{name: string, color: string, points: Array<[number, ?number]>}>} lines seconds and value
 * @param {object} [more] members of the chart: `phase`, `shared`, `joined`
 * @returns {?Chart} null when there is nothing to draw
 */
export function timeChart(unit, lines, more = {}) {
  const logarithmic = unit === 'time';
  const data = joined(
    lines.map(({ points }) =>
      points.map(([at, value]) => [at, logarithmic && value === 0 ? null : value])
    )
  );
  const values = data.slice(1).flat();
  if (data[0].length < 2 || values.every((value) => value === null)) return null;
  return {
    kind: 'time',
    unit,
    series: lines.map(({ points, ...one }) => (void points, one)),
    data,
    ...(logarithmic && { range: decadesAround(values) }),
    from: 0,
    ...more
  };
}
