import { box, figures, percentileChart, timeChart } from '../report/page-parts.js';
import { page } from '../report/page.js';
import { contentOf, fromDrop, notes, titleOf } from '../report/report-body.js';
import { changeWords, escape } from '../report/words.js';

/**
 * @param {import('./result.js').Result} result
 * @returns {string} a whole HTML page
 */
export const reportOf = (result) => page(contentOf(result));

/** The report of two runs, side by side: one HTML file, like the report of one run. */

const COLORS = ['answer', 'arrival'];

/**
 * @param {object} comparison the result of compare(), with the `files` and their results `a` and `b`
 * @returns {string} a whole HTML page
 */
export function comparisonOf({ files, a, b, rows, remarks, faults }) {
  const charts = {};
  const runs = [a, b];
  const body = [
    `<h1>Two runs compared</h1>`,
    ...runs.map((run, i) => introduction('AB'[i], COLORS[i], files[i], run)),
    notes({ faults, remarks }),
    table(rows),
    flight(runs, charts),
    overTime(runs, charts)
  ];
  return page({
    title: 'Two runs compared',
    body: body.filter(Boolean).join('\n'),
    charts,
    data: {}
  });
}

function introduction(name, color, file, run) {
  const date = new Date(run.started).toISOString().replace('T', ' ').slice(0, 16);
  return `<p><i class="${color} key"></i><b>${name}</b>: ${escape(titleOf(run))}
<span class="soft">(${escape(file)}, ${date} UTC)</span></p>
<code>${escape(run.commandLine ?? '')}</code>`;
}

const CLASS = { better: 'good', worse: 'bad', same: 'soft' };

function table(rows) {
  const lines = rows.map(({ name, words, change, verdict }) => {
    const more = verdict === 'same' ? '' : `<small>${verdict}</small>`;
    const changed = `<span class="${CLASS[verdict]}">${escape(changeWords(change))}${more}</span>`;
    return [escape(name), ...words.map(escape), changed];
  });
  return `<section><h2>The figures</h2>
${figures(['What', 'A', 'B', 'B to A'], lines)}</section>`;
}

function named(runs, pick) {
  return runs.map((run, i) => ({ name: 'AB'[i], color: COLORS[i], points: pick(run) }));
}

function flight(runs, charts) {
  const curves = named(runs, ({ command, curves }) =>
    command === 'latency' ? curves.probe : curves.arrival
  );
  if (curves.some(({ points }) => points.length === 0)) return '';
  charts.percentiles = percentileChart(curves);
  return `<section><h2>How long a sprite flies</h2>
<p class="soft">From throw to arrival, by percentile; both axes are logarithmic.</p>
${box('percentiles', 'Latency by percentile of both runs')}</section>`;
}

function overTime(runs, charts) {
  const sections = [];
  const add = (id, title, unit, pick) => {
    const chart = timeChart(unit, named(runs, pick), { shared: 'time', joined: true });
    if (!chart || chart.data.slice(1).some((values) => values.every((value) => !value))) return;
    charts[id] = chart;
    sections.push(
      `<section><h2>${title}</h2>${box(id, `${title} of both runs over time`)}</section>`
    );
  };
  const pick = (name) => (run) => run.series.map((point) => [point.at, point[name]]);
  add('rates', 'Sprites a second', 'count', pick('received'));
  add('times', '99% in flight', 'time', pick('p99'));
  if (runs.every(({ storm }) => storm)) {
    add('storm', 'Clients parked from the drop on', 'count', fromDrop);
  }
  const used = (name) => (run) => (run.use?.series ?? []).map((point) => [point.at, point[name]]);
  add('cores', "The server's CPU", 'cores', used('cores'));
  add('memory', "The server's memory", 'bytes', used('memory'));
  return sections.join('\n');
}
