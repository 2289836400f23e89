/**
 * The report's drawings: SVG as text, coloured by the page's own variables. Everything is in the
 * units of its viewBox; the page lets it grow and shrink.
 */

const WIDTH = 960;
const PAD = { left: 66, right: 24, top: 18, bottom: 34 };

const fixed = (value) => Math.round(value * 10) / 10;

/** @param {string} text @returns {string} for HTML and SVG */
export function escape(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}

/**
 * @param {number} ms
 * @returns {string} as a person would say it: 85 µs, 1.2 ms, 3 s
 */
export function time(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return `${trim(ms * 1000)} µs`;
  return ms < 1000 ? `${trim(ms)} ms` : `${trim(ms / 1000)} s`;
}

function trim(value) {
  return Number(value.toPrecision(3)).toString();
}

const compact = new Intl.NumberFormat('en-US', { notation: 'compact', maximumFractionDigits: 1 });

function frame(height, label, content) {
  return (
    `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escape(label)}">` +
    `${content}</svg>`
  );
}

function linear(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

function logarithmic(low, high, from, to) {
  const scale = linear(Math.log10(low), Math.log10(high), from, to);
  return (value) => scale(Math.log10(Math.max(value, low)));
}

/** Powers of ten around the values, so that no curve lies on the frame. */
function decades(values) {
  const low = 10 ** Math.floor(Math.log10(Math.max(1e-4, Math.min(...values))));
  const high = 10 ** Math.ceil(Math.log10(Math.max(...values) * 1.001));
  const ticks = [];
  for (let tick = low; tick <= high * 1.0001; tick *= 10) ticks.push(Number(tick.toPrecision(1)));
  return { low, high: Math.max(high, low * 10), ticks };
}

/** A handful of round numbers from 0 to above `most`. */
function roundTicks(most) {
  const rough = Math.max(most, 1e-9) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const count = Math.max(1, Math.ceil(most / step - 1e-9));
  return Array.from({ length: count + 1 }, (_, i) => Number((i * step).toPrecision(6)));
}

function rows(ticks, y, name) {
  return ticks
    .map((tick) => {
      const at = fixed(y(tick));
      return (
        `<line class="grid" x1="${PAD.left}" x2="${WIDTH - PAD.right}" y1="${at}" y2="${at}"/>` +
        `<text class="tick" x="${PAD.left - 10}" y="${at + 4}" text-anchor="end">` +
        `${name(tick)}</text>`
      );
    })
    .join('');
}

function columns(ticks, x, bottom, name) {
  return ticks
    .map(
      (tick) =>
        `<text class="tick" x="${fixed(x(tick))}" y="${bottom + 22}" ` +
        `text-anchor="middle">${name(tick)}</text>`
    )
    .join('');
}

function line(points, className) {
  if (points.length === 0) return '';
  const path = points.map(([x, y], i) => `${i === 0 ? 'M' : 'L'}${fixed(x)} ${fixed(y)}`).join('');
  return `<path class="line ${className}" d="${path}"/>`;
}

function area(points, bottom, className) {
  if (points.length === 0) return '';
  const path = points.map(([x, y]) => `L${fixed(x)} ${fixed(y)}`).join('');
  return (
    `<path class="area ${className}" d="M${fixed(points[0][0])} ${bottom}${path}` +
    `L${fixed(points.at(-1)[0])} ${bottom}Z"/>`
  );
}

/** Splits at gaps: points without a value are not drawn over. */
function pieces(points) {
  const parts = [[]];
  for (const point of points) {
    if (point[1] !== null) parts.at(-1).push(point);
    else if (parts.at(-1).length > 0) parts.push([]);
  }
  return parts.filter((part) => part.length > 0);
}

/**
 * Latency by percentile, both axes logarithmic: 90, 99, 99.9 … are equal steps, so that the slowest
 * one in ten thousand has as much room as the fastest half.
 *
 * @param {Array<{className: string, points: Array<[number, number]>}>} curves percent and ms,
 *     rising; the first one gets its percentiles written on
 * @param {Array<[string, number, number]>} marks label, percent and ms, on the first curve
 * @returns {string} SVG
 */
export function percentileChart(curves, marks) {
  const height = 400;
  const bottom = height - PAD.bottom;
  const nines = (percent) => -Math.log10(Math.max(1e-9, 1 - percent / 100));
  const most = Math.max(
    1,
    ...curves.flatMap(({ points }) =>
      points.filter(([percent]) => percent < 100).map(([percent]) => nines(percent))
    )
  );
  const { low, high, ticks } = decades(curves.flatMap(({ points }) => points.map(([, ms]) => ms)));
  const x = linear(0, most * 1.06, PAD.left, WIDTH - PAD.right);
  const y = logarithmic(low, high, bottom, PAD.top + 14);
  const at = (percent) => x(percent >= 100 ? most * 1.06 : nines(percent));
  const names = [0, 50, 90, 99, 99.9, 99.99, 99.999, 99.9999].filter((one) => nines(one) <= most);
  const drawn = [...curves]
    .reverse()
    .map(({ className, points }) =>
      line(
        points.map(([percent, ms]) => [at(percent), y(ms)]),
        className
      )
    )
    .join('');
  const labels = marks
    .map(([label, percent, ms]) => {
      const [cx, cy] = [fixed(at(percent)), fixed(y(ms))];
      const anchor = percent >= 100 ? 'end' : 'middle';
      return (
        `<line class="drop" x1="${cx}" x2="${cx}" y1="${cy}" y2="${bottom}"/>` +
        `<circle class="dot" cx="${cx}" cy="${cy}" r="4.5">` +
        `<title>${label}: ${time(ms)}</title></circle>` +
        `<text class="mark" x="${percent >= 100 ? cx + 4 : cx}" y="${cy - 13}" ` +
        `text-anchor="${anchor}">${time(ms)}</text>`
      );
    })
    .join('');
  return frame(
    height,
    'Latency by percentile',
    rows(ticks, y, time) +
      columns(
        names,
        (one) => x(nines(one)),
        bottom,
        (one) => `${one}%`
      ) +
      drawn +
      labels
  );
}

/**
 * Something over time.
 *
 * @param {object} chart
 * @param {string} chart.label
 * @param {Array<{className: string, points: Array<[number, ?number]>,
 *     filled?: boolean}>} chart.curves seconds and value; null is a gap
 * @param {?{from: number, to: number}} chart.phase seconds, shaded
 * @param {boolean} [chart.times] values are ms on a logarithmic axis; else counts from 0
 * @param {number} chart.seconds where the axis ends
 * @returns {string} SVG
 */
export function timeChart({ label, curves, phase, times = false, seconds }) {
  const height = 230;
  const bottom = height - PAD.bottom;
  const values = curves
    .flatMap(({ points }) => points.map(([, value]) => value))
    .filter((value) => value !== null && (!times || value > 0));
  if (values.length === 0) return '';
  const x = linear(0, seconds, PAD.left, WIDTH - PAD.right);
  let y, ticks;
  if (times) {
    const axis = decades(values);
    [ticks, y] = [axis.ticks, logarithmic(axis.low, axis.high, bottom, PAD.top)];
  } else {
    ticks = roundTicks(Math.max(...values));
    y = linear(0, ticks.at(-1), bottom, PAD.top);
  }
  const shade = phase
    ? `<rect class="phase" x="${fixed(x(phase.from))}" y="${PAD.top}" ` +
      `width="${fixed(x(phase.to) - x(phase.from))}" height="${bottom - PAD.top}"/>`
    : '';
  const drawn = curves
    .map(({ className, points, filled }) =>
      pieces(points)
        .map((piece) => {
          const placed = piece.map(([at, value]) => [x(at), y(value)]);
          return (filled ? area(placed, bottom, className) : '') + line(placed, className);
        })
        .join('')
    )
    .join('');
  return frame(
    height,
    label,
    shade +
      rows(ticks, y, times ? time : (n) => compact.format(n)) +
      columns(
        roundTicks(seconds).filter((tick) => tick <= seconds),
        x,
        bottom,
        (tick) => `${tick} s`
      ) +
      drawn
  );
}

/**
 * What became of the sprites, as one bar: every part at least wide enough to be seen.
 *
 * @param {Array<{className: string, name: string, count: number}>} parts of the whole
 * @returns {string} SVG
 */
export function accountBar(parts) {
  const shown = parts.filter(({ count }) => count > 0);
  const all = shown.reduce((sum, { count }) => sum + count, 0);
  const least = 14;
  const room = WIDTH - 3 * (shown.length - 1);
  const wide = shown.map(({ count }) => Math.max(least, (count / all) * room));
  const extra = wide.reduce((sum, width) => sum + width, 0) - room;
  wide[wide.indexOf(Math.max(...wide))] -= extra;
  let at = 0;
  const bars = shown.map(({ className, name, count }, i) => {
    const bar =
      `<rect class="${className}" x="${fixed(at)}" y="0" width="${fixed(wide[i])}" ` +
      `height="30" rx="4"><title>${escape(name)}: ${count}</title></rect>`;
    at += wide[i] + 3;
    return bar;
  });
  return frame(30, 'What became of the sprites', bars.join(''));
}

/**
 * How long until so many percent were parked again.
 *
 * @param {Record<string, ?number>} seconds by percent
 * @returns {string} SVG
 */
export function stormChart(seconds) {
  const parts = Object.entries(seconds);
  const most = Math.max(...parts.map(([, value]) => value ?? 0), 0.001);
  const x = linear(0, most, 0, WIDTH - 230);
  return frame(
    parts.length * 40,
    'Time until parked again',
    parts
      .map(([part, value], i) => {
        const y = i * 40;
        const width = value === null ? WIDTH - 230 : Math.max(3, x(value));
        return (
          `<text class="name" x="${PAD.left - 10}" y="${y + 23}" text-anchor="end">` +
          `${part}%</text>` +
          `<rect class="${value === null ? 'missing' : 'arrival'}" x="${PAD.left}" y="${y + 6}" ` +
          `width="${fixed(width)}" height="26" rx="4"/>` +
          `<text class="mark" x="${fixed(PAD.left + width + 10)}" y="${y + 24}">` +
          `${value === null ? 'never' : time(value * 1000)}</text>`
        );
      })
      .join('')
  );
}
