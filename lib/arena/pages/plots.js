import '../swarm/language.js';
import uPlot from '../uplot.js';
import { make, palette, put } from './elements.js';
import { isNumber, formatText, formatAxis } from './units.js';

/**
 * Plots of values over time, by uPlot: one point per look. A plot is rebuilt when the colors or its width change. The
 * newest values are above each plot as text, and its label describes it for people who can't see it.
 *
 * Only the lines move, once per look, also with prefers-reduced-motion.
 */

/** Most points in a plot. Above this, every second point is dropped. */
const MAX_POINTS = 600;

/** Size of the labels, in CSS pixels: 12, and on a big screen in proportion to the plot. Distances are in it. */
const labelSize = (height) => Math.max(12, Math.round(height / 18));
const FONTS = 'ui-rounded, system-ui, sans-serif';

/** Width of the labels at the left, and least distance of two labels below. */
const AXIS_WIDTH = 4.8;
const LABEL_DISTANCE = 4.7;

/** Room for the right half of a label below. */
const RIGHT_ROOM = 1.7;

/** Possible steps of an axis of bytes: whole megabytes. */
const MEGABYTES = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].map(
  (megabytes) => megabytes * 2 ** 20
);

/** Returns the labels of an axis: of equal neighbors, only the first stays. */
const distinct = (labels) => labels.map((label, i) => (label === labels[i - 1] ? '' : label));

const formatClock = (seconds) =>
  `${Math.floor(seconds / 60)}:${String(Math.floor(seconds % 60)).padStart(2, '0')}`;

/** Loads the library's style sheet, and that of plots. */
for (const name of ['../uplot.css', 'plots.css']) {
  const { href } = new URL(name, import.meta.url);
  make('link', { rel: 'stylesheet', href, into: document.head });
}

/** The values of all looks, for all plots of a page. */
export class Track {
  #names;
  #looksPerPoint = 1;
  #skipped = 0;

  /** @type {number[]} seconds */
  at = [];
  /** @type {Record<string, Array<?number>>} */
  values;

  /** @param {string[]} names */
  constructor(names) {
    this.#names = names;
    this.clear();
  }

  clear() {
    this.at = [];
    this.values = Object.fromEntries(this.#names.map((name) => [name, []]));
    this.#looksPerPoint = 1;
    this.#skipped = 0;
  }

  /**
   * @param {number} at seconds
   * @param {Record<string, ?number>} sample
   */
  add(at, sample) {
    this.#skipped += 1;
    if (this.#skipped < this.#looksPerPoint) return;
    this.#skipped = 0;
    this.at.push(at);
    for (const name of this.#names)
      this.values[name].push(isNumber(sample[name]) ? sample[name] : null);
    if (this.at.length <= MAX_POINTS) return;
    const half = (list) => list.filter((one, i) => i % 2 === 1);
    this.at = half(this.at);
    for (const name of this.#names) this.values[name] = half(this.values[name]);
    this.#looksPerPoint *= 2;
  }

  /** @returns {{now: ?number, least: ?number, most: ?number}} of the values of one name */
  summary(name) {
    const numbers = this.values[name].filter(isNumber);
    const isEmpty = numbers.length === 0;
    return {
      now: this.values[name].at(-1) ?? null,
      least: isEmpty ? null : Math.min(...numbers),
      most: isEmpty ? null : Math.max(...numbers)
    };
  }
}

/**
 * @typedef {object} Kind
 * @property {string} id
 * @property {string} title
 * @property {'count'|'time'|'cores'|'bytes'} unit
 * @property {Array<{name: string, words: string, color: string, dashed?: boolean}>} series the track's names; colors
 *     are names of custom properties
 * @property {number} [most] least upper end of the axis of values
 * @property {object} [time] options of uPlot's axis of time; by default minutes and seconds
 * @property {number} [span] seconds shown, up to the newest point; by default all
 */

/** One plot: a figure with its title, the newest values as text, and the lines. */
export class Plot {
  #kind;
  #track;
  #chart;
  #values;
  #plot = null;
  #width = 0;
  #height;
  #resizeObserver;
  #redraw = () => this.#draw();
  #colorScheme = matchMedia('(prefers-color-scheme: dark)');

  /**
   * @param {HTMLElement} root
   * @param {Kind} kind
   * @param {Track} track
   * @param {number} [height] CSS pixels
   */
  constructor(root, kind, track, height = 150) {
    this.#kind = kind;
    this.#track = track;
    this.#height = height;
    const figure = make('figure', { className: 'plot', id: `plot-${kind.id}`, into: root });
    const caption = make('figcaption', { into: figure });
    make('h3', { text: kind.title, into: caption });
    this.#values = kind.series.map(({ words, color, dashed }) => {
      const line = make('p', { className: dashed ? 'key dashed' : 'key', into: caption });
      line.style.setProperty('--key', `var(--${color})`);
      make('span', { text: words, into: line });
      return make('b', { text: '–', into: line });
    });
    this.#chart = make('div', { className: 'lines', role: 'img', into: figure });
    this.#resizeObserver = new ResizeObserver(() => {
      if (this.#chart.clientWidth !== this.#width) this.#draw();
    });
    this.#resizeObserver.observe(this.#chart);
    this.#colorScheme.addEventListener('change', this.#redraw);
    this.show();
  }

  /** The points of the lines, in uPlot's form. */
  get #data() {
    return [this.#track.at, ...this.#kind.series.map(({ name }) => this.#track.values[name])];
  }

  #draw() {
    this.#width = this.#chart.clientWidth;
    if (this.#width === 0) return;
    const color = palette();
    const { unit, series, most = 1, time = {}, span } = this.#kind;
    const em = labelSize(this.#height);
    const axis = { font: `${em}px ${FONTS}`, stroke: color('soft'), ticks: { show: false } };
    const grid = { stroke: color('line'), width: 1 };
    const range = (u, low, high) => [0, Math.max(most, isNumber(high) ? high : 0) * 1.08];
    this.#plot?.destroy();
    this.#plot = new uPlot(
      {
        width: this.#width,
        height: this.#height,
        padding: [8, RIGHT_ROOM * em, 0, 0],
        scales: {
          x: { time: false, ...(span && { range: (u, low, high) => [high - span, high] }) },
          y: { range }
        },
        axes: [
          {
            ...axis,
            space: LABEL_DISTANCE * em,
            size: 2 * em,
            gap: 4,
            grid: { show: false },
            values: (u, all) => distinct(all.map(formatClock)),
            ...time
          },
          {
            ...axis,
            ...(unit === 'bytes' && { incrs: MEGABYTES }),
            grid,
            size: AXIS_WIDTH * em,
            gap: 6,
            space: 2.8 * em,
            values: (u, all) => distinct(all.map((one) => formatAxis(unit, one)))
          }
        ],
        series: [
          {},
          ...series.map(({ color: name, dashed }, i) => ({
            stroke: color(name),
            width: 0.19 * em,
            spanGaps: true,
            points: { show: false },
            ...(dashed ? { dash: [6, 5] } : i === 0 && { fill: `${color(name)}22` })
          }))
        ],
        cursor: { show: false },
        legend: { show: false }
      },
      this.#data,
      this.#chart
    );
  }

  /** Draws the track's current values, and updates the texts. */
  show() {
    const { unit, title, series } = this.#kind;
    const parts = series.map(({ name, words }, i) => {
      const { now, most } = this.#track.summary(name);
      put(this.#values[i], formatText(unit, now));
      return `${words} ${formatText(unit, now)}, at most ${formatText(unit, most)}`;
    });
    this.#chart.setAttribute('aria-label', `${title} over time: ${parts.join('; ')}`);
    this.#chart.dataset.points = this.#track.at.length;
    if (this.#plot === null) this.#draw();
    else this.#plot.setData(this.#data);
  }

  remove() {
    this.#resizeObserver.disconnect();
    this.#colorScheme.removeEventListener('change', this.#redraw);
    this.#plot?.destroy();
  }
}
