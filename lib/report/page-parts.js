import { digits, escape, nines } from './words.js';

/** Parts of a report's page. They run in Node and in browsers: the panel of an arena saves reports, too. */

/** JSON for a script element, in which nothing may look like the end of the element. */
const scriptJson = (value) => JSON.stringify(value).replaceAll('<', '\\u003c');

/** @param {string} name @returns {string} the mark that fill() replaces with a part of the content */
export const placeholder = (name) => `<!--${name}-->`;

/**
 * @param {string} template the template of lib/report/page.js
 * @param {object} content
 * @param {string} content.title
 * @param {string} content.body HTML
 * @param {Record<string, object>} content.charts charts by the id of their box: see percentileChart() and timeChart()
 * @param {object} content.data the result, which `sprites-swarm compare` reads from the file
 * @returns {string} a whole HTML page
 */
export function fill(template, { title, body, charts, data }) {
  const parts = { title: escape(title), body, charts: scriptJson(charts), data: scriptJson(data) };
  // One pass for all marks, so that text like a mark within a part stays unchanged.
  return template.replace(/<!--(title|body|charts|data)-->/g, (all, name) => parts[name]);
}

/** @param {string} id id of a chart @param {string} label description of the chart @returns {string} HTML */
export function chartBox(id, label) {
  return `<div class="chart" id="${id}" role="img" aria-label="${escape(label)}"></div>`;
}

/**
 * @param {string} value
 * @param {string} name
 * @param {string | false} [className] `bad` for a bad value
 * @returns {string} HTML
 */
export function tile(value, name, className = '') {
  return `<div class="tile ${className || ''}"><b>${escape(value)}</b><span>${escape(name)}</span></div>`;
}

/**
 * @param {Array<{name: string, value: number, words: string, className: string}>} rows
 * @returns {string} HTML: a bar for each row, the longest for the largest value
 */
export function barChart(rows) {
  const largest = Math.max(...rows.map(({ value }) => value), 1e-3);
  const lines = rows.map(
    ({ name, value, words, className }) => `<span>${escape(name)}</span><div><i class="${className}"
style="width: ${digits((value / largest) * 100)}%"></i><b>${escape(words)}</b></div>`
  );
  return `<div class="bars">${lines.join('')}</div>`;
}

/**
 * @param {string[]} head HTML: the title of the first column, and the names of the figures
 * @param {string[][]} rows HTML: the name of each row, and its figures
 * @returns {string} HTML: a table
 */
export function figureTable(head, rows) {
  const row = (tag, [first, ...others]) =>
    `<tr><th>${first}</th>${others.map((one) => `<${tag} class="number">${one}</${tag}>`).join('')}</tr>`;
  const lines = rows.map((cells) => row('td', cells));
  return `<table class="figures even">${row('th', head)}${lines.join('\n')}</table>`;
}

/** @param {string[]} lines escaped lines @param {string} [className] @returns {string} HTML */
export function htmlList(lines, className = '') {
  return `<ul class="${className}">${lines.map((line) => `<li>${line}</li>`).join('\n')}</ul>`;
}

/**
 * The charts of a report, as data: report-page/view.js draws them.
 *
 * @typedef {object} Chart
 * @property {'percentile' | 'time'} kind
 * @property {'time' | 'count' | 'cores' | 'bytes'} unit unit of the values; a time is in ms
 * @property {Array<{name: string, color: string, filled?: boolean, dashed?: boolean,
 *     stepped?: boolean}>} series
 * @property {Array<Array<?number>>} data x, then the values of each series; null is a gap
 * @property {[number, number]} [range] range of a logarithmic axis of values, in whole decades
 * @property {number} [from] start of the x axis
 * @property {{from: number, to: number}} [phase] shaded phase, in seconds
 * @property {number} [top] percentile: x of the slowest value, 100%
 * @property {Array<[number, number]>} [marks] percentile: pairs of percent and ms, drawn on the first series
 * @property {boolean} [joined] draws lines across gaps: the series have points at different times
 * @property {string} [shared] charts with the same name share the cursor
 */

/** Returns the whole decades around the values, for a logarithmic axis. */
function decadesAround(values) {
  const positiveValues = values.filter((value) => value > 0);
  if (positiveValues.length === 0) return undefined;
  const low = 10 ** Math.floor(Math.log10(Math.min(...positiveValues)));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...positiveValues) * 1.001));
  return [low, Math.max(high, low * 10)];
}

/**
 * @param {Array<Array<[number, ?number]>>} pointLists points of each line
 * @returns {Array<Array<?number>>} all x, then the values of each line
 */
function mergedOnX(pointLists) {
  const xs = [...new Set(pointLists.flatMap((points) => points.map(([x]) => x)))].sort(
    (a, b) => a - b
  );
  return [
    xs,
    ...pointLists.map((points) => {
      const values = new Map(points);
      return xs.map((x) => values.get(x) ?? null);
    })
  ];
}

/**
 * Returns a chart of latency by percentile. Both axes are logarithmic, so that the slowest values have as much room
 * as the fastest half.
 *
 * @param {Array<{name: string, color: string, points: Array<[number, number]>}>} curves pairs of percent
 *     and ms, ascending
 * @param {Array<[number, number]>} [marks] pairs of percent and ms, on the first curve
 * @returns {Chart}
 */
export function percentileChart(curves, marks) {
  const percents = curves.flatMap(({ points }) => points.map(([percent]) => percent));
  const mostNines = Math.max(1, ...percents.filter((percent) => percent < 100).map(nines));
  const top = mostNines * 1.06;
  const xOf = (percent) => Math.round((percent >= 100 ? top : nines(percent)) * 1e4) / 1e4;
  const data = mergedOnX(
    curves.map(({ points }) => points.map(([percent, ms]) => [xOf(percent), Math.max(ms, 1e-4)]))
  );
  return {
    kind: 'percentile',
    unit: 'time',
    series: curves.map(({ points, ...one }) => (void points, one)),
    data,
    range: decadesAround(data.slice(1).flat()),
    top: xOf(100),
    marks
  };
}

/**
 * Returns a chart of values over time.
 *
 * @param {Chart['unit']} unit the axis of values begins at 0; for `time` it is logarithmic
 * @param {Array<{name: string, color: string, points: Array<[number, ?number]>}>} lines points of seconds and value
 * @param {object} [extras] further members of the chart: `phase`, `shared`, `joined`
 * @returns {?Chart} null when there is nothing to draw
 */
export function timeChart(unit, lines, extras = {}) {
  const isLogarithmic = unit === 'time';
  const data = mergedOnX(
    lines.map(({ points }) =>
      points.map(([at, value]) => [at, isLogarithmic && value === 0 ? null : value])
    )
  );
  const values = data.slice(1).flat();
  if (data[0].length < 2 || values.every((value) => value === null)) return null;
  return {
    kind: 'time',
    unit,
    series: lines.map(({ points, ...one }) => (void points, one)),
    data,
    ...(isLogarithmic && { range: decadesAround(values) }),
    from: 0,
    ...extras
  };
}
