/* global uPlot */
import { digits, number, nines, size, time } from '../words.js';

/**
 * Draws a report's charts in the browser, with uPlot. The legend shows the values under the pointer. The charts over
 * time share the cursor. A drag zooms in, and a double click zooms out. A change of the colours or the width redraws
 * a chart. The text keeps its size on narrow screens.
 */

const FONT = '13px system-ui, "Segoe UI", Roboto, sans-serif';
const BOLD_FONT = `600 ${FONT}`;

/** Widest label, in CSS pixels. */
const LABEL_WIDTH = 58;

const NARROW_WIDTH = 600;

const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

/** For each unit: the format of the axis, and of the legend. */
const UNITS = {
  time: [time, time],
  count: [(value) => compact.format(value), (value) => number(Math.round(value))],
  cores: [digits, (value) => `${digits(value)} cores`],
  bytes: [size, size]
};

const color = (name) =>
  getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Returns the ticks with room for a label. Whole numbers have priority, then lower ticks. */
function ticksWithRoom(u, ticks) {
  const [low, high] = [u.scales.x.min, u.scales.x.max];
  const axisWidth = u.bbox.width / window.devicePixelRatio;
  const pixelOf = (tick) => ((tick - low) / (high - low || 1)) * axisWidth;
  const shownTicks = [];
  for (const tick of [...ticks].sort(
    (a, b) => Number.isInteger(b) - Number.isInteger(a) || a - b
  )) {
    if (shownTicks.every((other) => Math.abs(pixelOf(other) - pixelOf(tick)) >= LABEL_WIDTH))
      shownTicks.push(tick);
  }
  return shownTicks.sort((a, b) => a - b);
}

const PERCENTS = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999];

function percentAt(x, top) {
  if (x >= top) return '100%';
  const percent = 100 * (1 - 10 ** -x);
  return `${Number(percent.toFixed(Math.ceil(x) + 1))}%`;
}

function decadeTicks([low, high]) {
  const isShortRange = high / low <= 100;
  const ticks = [];
  for (let tick = low; tick <= high * 1.0001; tick *= 10) {
    for (const step of isShortRange ? [1, 2, 5] : [1]) {
      if (tick * step <= high * 1.0001) ticks.push(Number((tick * step).toPrecision(1)));
    }
  }
  return ticks;
}

function axesOf(chart) {
  const common = {
    font: FONT,
    stroke: color('soft'),
    grid: { stroke: color('rule'), width: 1 },
    ticks: { show: false }
  };
  const x =
    chart.kind === 'percentile'
      ? {
          splits: (u) =>
            ticksWithRoom(
              u,
              PERCENTS.map(nines).filter((one) => one <= chart.top)
            ),
          values: (u, ticks) => ticks.map((tick) => percentAt(tick, Infinity))
        }
      : { space: LABEL_WIDTH, values: (u, ticks) => ticks.map((tick) => `${digits(tick)} s`) };
  const y = {
    size: 64,
    gap: 8,
    ...(chart.range && { splits: () => decadeTicks(chart.range), filter: (u, ticks) => ticks }),
    values: (u, ticks) => ticks.map(UNITS[chart.unit][0])
  };
  return [
    { ...common, ...x, size: 30, gap: 6, grid: { show: false } },
    { ...common, ...y }
  ];
}

function seriesOf(chart) {
  const xSeries = {
    label: chart.kind === 'percentile' ? 'of all' : 'at',
    value: (u, x) => {
      if (x === null || x === undefined) return '–';
      return chart.kind === 'percentile' ? percentAt(x, chart.top) : `${digits(x)} s`;
    }
  };
  const valueSeries = chart.series.map(({ name, color: named, filled, dashed, stepped }) => ({
    label: name,
    stroke: color(named),
    width: 2,
    spanGaps: chart.kind === 'percentile' || chart.joined === true,
    points: { show: false },
    ...(dashed && { dash: [6, 4] }),
    ...(filled && { fill: `${color(named)}24` }),
    ...(stepped && { paths: uPlot.paths.stepped({ align: 1 }) }),
    value: (u, value) => (value === null || value === undefined ? '–' : UNITS[chart.unit][1](value))
  }));
  return [xSeries, ...valueSeries];
}

function shadePhase(u, phase) {
  const [from, to] = [phase.from, phase.to].map((at) => u.valToPos(at, 'x', true));
  u.ctx.fillStyle = color('shade');
  u.ctx.fillRect(from, u.bbox.top, to - from, u.bbox.height);
}

/** Draws the marks, from the slowest one on. A value that would overlap another one is not written. */
function drawMarks(u, { marks, top }) {
  const scale = window.devicePixelRatio;
  let freeUntil = Infinity;
  u.ctx.save();
  u.ctx.font = BOLD_FONT.replace('13px', `${13 * scale}px`);
  for (const [percent, ms] of [...marks].reverse()) {
    const x = u.valToPos(percent >= 100 ? top : nines(percent), 'x', true);
    const y = u.valToPos(ms, 'y', true);
    u.ctx.fillStyle = color('card');
    u.ctx.strokeStyle = color(u.marked);
    u.ctx.lineWidth = 2 * scale;
    u.ctx.beginPath();
    u.ctx.arc(x, y, 4 * scale, 0, 7);
    u.ctx.fill();
    u.ctx.stroke();
    const textEnd = Math.min(x + u.ctx.measureText(time(ms)).width / 2, u.bbox.left + u.bbox.width);
    if (textEnd > freeUntil) continue;
    u.ctx.textAlign = 'right';
    u.ctx.lineWidth = 4 * scale;
    u.ctx.strokeStyle = color('card');
    u.ctx.strokeText(time(ms), textEnd, y - 12 * scale);
    u.ctx.fillStyle = color('ink');
    u.ctx.fillText(time(ms), textEnd, y - 12 * scale);
    freeUntil = textEnd - u.ctx.measureText(time(ms)).width - 8 * scale;
  }
  u.ctx.restore();
}

function drawChart(box, chart) {
  const width = box.clientWidth;
  const isPercentileChart = chart.kind === 'percentile';
  const height = isPercentileChart ? (width < NARROW_WIDTH ? 300 : 380) : 200;
  const y = chart.range
    ? { distr: 3, range: chart.range }
    : { range: (u, low, high) => [0, (high || 1) * 1.06] };
  const options = {
    width,
    height,
    padding: [18, 20, 0, 0],
    scales: { x: { time: false, range: (u, low, high) => [chart.from ?? low, high] }, y },
    axes: axesOf(chart),
    series: seriesOf(chart),
    cursor: {
      y: false,
      points: { size: 9, fill: (u, i) => u.series[i].stroke(u, i) },
      ...(chart.shared && { sync: { key: chart.shared, scales: ['x', null] } })
    },
    // A series without fill shows its colour in the legend, too.
    legend: { markers: { width: 0, fill: (u, i) => u.series[i].stroke(u, i) } },
    hooks: {
      drawClear: [(u) => chart.phase && shadePhase(u, chart.phase)],
      draw: [
        (u) => chart.marks && drawMarks(Object.assign(u, { marked: chart.series[0].color }), chart)
      ]
    }
  };
  box.replaceChildren();
  return new uPlot(options, chart.data, box);
}

const charts = JSON.parse(document.getElementById('charts').textContent);

for (const [id, chart] of Object.entries(charts)) {
  const box = document.getElementById(id);
  let plot = drawChart(box, chart);
  const redraw = () => {
    plot.destroy();
    plot = drawChart(box, chart);
  };
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
  matchMedia('print').addEventListener('change', redraw);
  let { width } = plot;
  new ResizeObserver(() => {
    if (box.clientWidth === width) return;
    width = box.clientWidth;
    redraw();
  }).observe(box);
}
