import { chartBox, figureTable, percentileChart, timeChart } from '../report/page-parts.js';
import { page } from '../report/page.js';
import { contentOf, pointsSinceDrop, notesSection, titleOf } from '../report/report-body.js';
import { changeWords, escape } from '../report/words.js';

/**
 * @param {import('./result.js').Result} result
 * @returns {string} a whole HTML page
 */
export const reportOf = (result) => page(contentOf(result));

/** The report of two runs, side by side: one HTML file, like the report of one run. */

const RUN_COLORS = ['answer', 'arrival'];

/**
 * @param {object} comparison the result of compare(), with the `files` and their results `a` and `b`
 * @returns {string} a whole HTML page
 */
export function comparisonOf({ files, a, b, rows, remarks, faults }) {
  const charts = {};
  const runs = [a, b];
  const body = [
    `<h1>Two runs compared</h1>`,
    ...runs.map((run, i) => introduction('AB'[i], RUN_COLORS[i], files[i], run)),
    notesSection({ faults, remarks }),
    figuresSection(rows),
    latencySection(runs, charts),
    timeSections(runs, charts)
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

const VERDICT_CLASS = { better: 'good', worse: 'bad', same: 'soft' };

function figuresSection(rows) {
  const lines = rows.map(({ name, words, change, verdict }) => {
    const verdictText = verdict === 'same' ? '' : `<small>${verdict}</small>`;
    const changeCell = `<span class="${VERDICT_CLASS[verdict]}">${escape(changeWords(change))}${verdictText}</span>`;
    return [escape(name), ...words.map(escape), changeCell];
  });
  return `<section><h2>The figures</h2>
${figureTable(['What', 'A', 'B', 'B to A'], lines)}</section>`;
}

function seriesOfRuns(runs, pointsOf) {
  return runs.map((run, i) => ({ name: 'AB'[i], color: RUN_COLORS[i], points: pointsOf(run) }));
}

function latencySection(runs, charts) {
  const curves = seriesOfRuns(runs, ({ command, curves }) =>
    command === 'latency' ? curves.probe : curves.arrival
  );
  if (curves.some(({ points }) => points.length === 0)) return '';
  charts.percentiles = percentileChart(curves);
  return `<section><h2>How long a sprite flies</h2>
<p class="soft">From throw to arrival, by percentile; both axes are logarithmic.</p>
${chartBox('percentiles', 'Latency by percentile of both runs')}</section>`;
}

function timeSections(runs, charts) {
  const sections = [];
  const addChart = (id, title, unit, pointsOf) => {
    const chart = timeChart(unit, seriesOfRuns(runs, pointsOf), { shared: 'time', joined: true });
    if (!chart || chart.data.slice(1).some((values) => values.every((value) => !value))) return;
    charts[id] = chart;
    sections.push(
      `<section><h2>${title}</h2>${chartBox(id, `${title} of both runs over time`)}</section>`
    );
  };
  const seriesPoints = (name) => (run) => run.series.map((point) => [point.at, point[name]]);
  addChart('rates', 'Sprites a second', 'count', seriesPoints('received'));
  addChart('times', '99% in flight', 'time', seriesPoints('p99'));
  if (runs.every(({ storm }) => storm)) {
    addChart('storm', 'Clients parked from the drop on', 'count', pointsSinceDrop);
  }
  const usePoints = (name) => (run) =>
    (run.use?.series ?? []).map((point) => [point.at, point[name]]);
  addChart('cores', "The server's CPU", 'cores', usePoints('cores'));
  addChart('memory', "The server's memory", 'bytes', usePoints('memory'));
  return sections.join('\n');
}
