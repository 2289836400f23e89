/**
 * The charts of the report, as SVG in its page: bars of what the CPU takes, ranges of what is late.
 */
import { contenders, isDelta, isOurs } from './contenders.js';
import { count, number } from './tables.js';

const ROW = 24;
const NAME = 210;
const PANEL = 300;
const GAP = 70;
const WIDTH = NAME + 2 * PANEL + 2 * GAP;

/** Milliseconds at the ends of the scale of what is late. */
const LEAST = 0.1;
const MOST = 10000;

export const STYLE = `
:root { color-scheme: light dark; --paper: #fff; --ink: #1d2326; --link: #0b5cad; --shade: #f1f2f3;
  --mine: #d9480f; --delta: #b8690f; --other: #5c7c99; --line: #8884; --late: #c92a2a }
@media (prefers-color-scheme: dark) { :root { --paper: #121618; --ink: #e8ebe9; --link: #8ec5ff; --shade: #1e2427;
  --mine: #ff8a50; --delta: #f2c078; --other: #8fb0cc; --late: #ff7b72 } }
html { background: var(--paper); color: var(--ink) }
a { color: var(--link) }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 2.2rem; margin-bottom: .5rem }
h2 { margin: 2.5rem 0 .5rem; font-size: 1.25rem }
.verdict { font-size: 1.15rem; border-left: 4px solid var(--mine); padding-left: 1rem }
.key { font-size: .9rem }
.key i { display: inline-block; width: .8em; height: .8em; border-radius: 2px }
i.mine { background: var(--mine) } i.delta { background: var(--delta) } i.other { background: var(--other) }
svg { width: 100%; height: auto; font: 12px system-ui, sans-serif; fill: currentColor }
svg .mine { fill: var(--mine) } svg .delta { fill: var(--delta) } svg .other { fill: var(--other) }
svg line { stroke: var(--line) } svg line.late { stroke: var(--late); stroke-dasharray: 3 3 }
svg .dim { opacity: .8 }
.wide { overflow-x: auto }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; white-space: nowrap }
th, td { text-align: right; padding: .2rem .6rem; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { text-align: left } tr.ours td:first-child { font-weight: 600 }
summary { cursor: pointer }
pre { overflow-x: auto; padding: 1rem; background: var(--shade); border-radius: 6px }
`;

const ENTITIES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

/** @param {string} text @returns {string} as it may stand in a page */
export const escape = (text) => String(text).replace(/[&<>"]/g, (c) => ENTITIES[c]);

const kind = (name) => (isDelta(name) ? 'delta' : isOurs(name) ? 'mine' : 'other');

const text = (x, y, content, more = '') =>
  `<text x="${x.toFixed(1)}" y="${y}"${more}>${escape(content)}</text>`;
const bar = (x, y, width, height, name) =>
  `<rect class="${kind(name)}" x="${x.toFixed(1)}" y="${y}" width="${Math.max(1, width).toFixed(1)}" height="${height}" rx="2"/>`;

const picture = (label, height, parts) =>
  `<svg viewBox="0 0 ${WIDTH} ${height}" role="img" aria-label="${escape(label)}">${parts.join('')}</svg>`;

/** Where a lateness is on its scale. */
function late(milliseconds) {
  const within = Math.min(MOST, Math.max(LEAST, milliseconds));
  const share = Math.log(within / LEAST) / Math.log(MOST / LEAST);
  return NAME + PANEL + GAP + share * PANEL;
}

function range({ p50, p99, p999 }, top, name) {
  return [
    bar(late(p50), top + 9, late(p999) - late(p50), 2, name),
    bar(late(p50), top + 5, late(p99) - late(p50), 10, name),
    text(late(p999) + 5, top + 14, `${number(p99)} ms`)
  ];
}

/** @param {{name: string, rows: Record<string, object>}} cell @returns {string} SVG */
export function cellChart({ name: label, rows }) {
  const list = Object.entries(rows);
  const most = Math.max(...list.map(([, row]) => row.ranges?.cpu[1] ?? 0));
  const height = ROW * list.length + 24;
  const scale = [0.1, 1, 10, 100, 1000, 10000].flatMap((at) => [
    `<line${at === 1000 ? ' class="late"' : ''} x1="${late(at).toFixed(1)}" x2="${late(at).toFixed(1)}" y1="0" y2="${height - 18}"/>`,
    text(
      late(at),
      height - 4,
      at < 1000 ? `${at} ms` : `${at / 1000} s`,
      ' text-anchor="middle" class="dim"'
    )
  ]);
  const parts = list.flatMap(([name, row], i) => {
    const top = i * ROW;
    const title = text(NAME - 8, top + 14, contenders[name].title, ' text-anchor="end"');
    if (row.failed !== undefined)
      return [title, text(NAME, top + 14, `failed: ${row.failed}`.slice(0, 90))];
    if (row.cpu === null) return [title, text(NAME, top + 14, 'nothing came')];
    const [width, slowest] = row.ranges.cpu.map((value) => (value / most) * PANEL);
    return [
      title,
      bar(NAME, top + 3, width, 14, name),
      bar(NAME, top + 9, slowest, 2, name),
      text(NAME + slowest + 5, top + 14, `${number(row.cpu)} µs`),
      ...(row.p50 === null ? [] : range(row, top, name))
    ];
  });
  return picture(label, height, [...scale, ...parts]);
}

/** @param {object} study @returns {string} SVG */
export function breakChart({ breaks }) {
  const list = Object.entries(breaks);
  const most = Math.max(1, ...list.map(([, { holds }]) => holds));
  const parts = list.flatMap(([name, { holds, breaks: at }], i) => {
    const top = i * ROW;
    const width = (holds / most) * (2 * PANEL);
    const beyond = at === null ? ' or more' : '';
    return [
      text(NAME - 8, top + 14, contenders[name].title, ' text-anchor="end"'),
      bar(NAME, top + 3, width, 14, name),
      text(NAME + width + 5, top + 14, `${count(holds)}${beyond}`)
    ];
  });
  return picture('clients until it breaks', ROW * list.length, parts);
}
