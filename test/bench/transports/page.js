/**
 * The charts of the report, as SVG in its page: bars of what the CPU takes, ranges of what is late.
 */
import { LOAD_LIMIT, STEPPED } from './cells.js';
import { contenders, isDelta, isOurs } from './contenders.js';
import { breaksAt, columnsOf, count, limitText, number, percent, verdict } from './tables.js';

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

/**
 * The report of the study: one HTML page that needs nothing else.
 */

/** What can't be measured here, with what its own people published. */
const PUBLISHED = [
  [
    'The study of 2014',
    '165 KB each second: its contenders broke at 410, 140 and 230 clients',
    'https://medium.com/@denizozger/finding-the-right-node-js-websocket-implementation-b63bfca0539'
  ],
  [
    'uWebSockets.js',
    'it is on no package registry, and its engine is measured as Bun’s server; others found it the leanest of five a connection, and seconds slow after a storm of reconnections',
    'https://evilmartians.com/chronicles/choose-your-fighter-benchmarking-5-websocket-servers-for-nodejs'
  ]
];

/** What a reader should not believe without thinking. */
const DISTRUST = [
  'Server and load share one machine and its loopback: no network, no loss, no TLS, no compression. Where there are two cores each has one, and the kernel’s work for a received byte is partly paid by the sender.',
  'A reset stands for the cut of a network: each client loses its connection and comes again after two seconds. A real loss of packets that ends before TCP gives up loses nothing.',
  'Contenders are configured as their documentation shows them. Any of them can be made to send the newest document to who comes, or to drop for who is slow, by a few lines more; nobody wrote those lines here but where it is an option (Socket.IO’s recovery, nchan’s buffer).',
  `Documents change by 5% from one to the next, in numbers of the same length. Deltas are as good as that is; a document that changes altogether is sent whole.`,
  'A cell lasts some seconds, after six in which a server warms up by documents that come faster: what grows in hours is not in it.',
  'The search tries few numbers, each a third more than the one below: two who are one step apart may be as good as each other. Where bare epoll breaks it is the machine that ends.',
  'Resident size is what the kernel counts, garbage that waits for its collection included; a Node.js process starts with some 45 MB and Sprites, with its worker threads, with some 80 MB.',
  'Socket memory is the kernel’s, of all sockets of this machine, both ends of each connection.',
  `Where the load generator takes more than ${percent(LOAD_LIMIT)} of its core (“load”), what is late may be its own.`,
  'A virtual machine’s times differ by half from minute to minute. Each cell is measured in rounds that are apart in time, and the lower CPU and lateness count; two whose rounds overlap are in no order that one should believe.',
  'Where a virtual machine gives its free memory back to its host, new memory is dear: on the one of the published run the first touch of a page took 11 µs, that of a page just freed 2 µs. Who allocates more pays for it.',
  'Whoever wrote this study wrote one of its contenders.'
];

const list = (items) => `<ul>${items.map((item) => `<li>${item}</li>`).join('')}</ul>`;

function table(headings, rows) {
  const head = headings.map((heading) => `<th>${escape(heading)}</th>`).join('');
  const body = rows
    .map(
      ({ ours, cells }) =>
        `<tr${ours ? ' class="ours"' : ''}>${cells.map((cell) => `<td>${escape(cell)}</td>`).join('')}</tr>`
    )
    .join('\n');
  return `<div class="wide" tabindex="0"><table><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
}

function cellSection(cell) {
  const columns = columnsOf(cell);
  const rows = Object.entries(cell.rows).map(([name, row]) => ({
    ours: isOurs(name),
    cells: [
      contenders[name].title,
      ...(row.failed === undefined ? columns.map(([, of]) => of(row)) : [`failed: ${row.failed}`])
    ]
  }));
  return `<section><h2>${escape(cell.name)}</h2>
${cellChart(cell)}
<details><summary>Every figure</summary>${table(['server', ...columns.map(([heading]) => heading)], rows)}</details>
</section>`;
}

function breakSection(study) {
  if (Object.keys(study.breaks).length === 0) return '';
  const rows = Object.entries(study.breaks).map(([name, found]) => ({
    ours: isOurs(name),
    cells: [
      contenders[name].title,
      count(found.holds),
      breaksAt(found, study.most),
      found.why ?? '–'
    ]
  }));
  return `<section><h2>${STEPPED.bytes / 1000} KB a second, to more and more, until it breaks</h2>
<p>Broken is: p99 above a second, or more than 1% missing that no newer version replaced, or resident size
doubled. What is shown was held for ${study.held} seconds;
“more” is beyond what there are files for here, or what it was told to try.</p>
${breakChart(study)}
${table(['server', 'held for a minute', 'breaks at', 'by'], rows)}
</section>`;
}

/** @param {object} study of run.js @returns {string} HTML */
export function page(study) {
  const missing = Object.entries(study.missing).map(
    ([name, why]) => `${escape(contenders[name].title)}: ${escape(why)}`
  );
  const published = PUBLISHED.map(
    ([name, what, source]) =>
      `<b>${escape(name)}</b>: ${escape(what)} (<a href="${source}">source</a>)`
  );
  const { loadBefore, loadAfter, ...machine } = study.machine;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>One document to many: the transport study</title>
<style>${STYLE}</style>
</head>
<body>
<main>
<h1>One document to many</h1>
<p class="verdict">${escape(verdict(study))}</p>
<p class="key"><i class="mine"></i> Sprites, whole documents <i class="delta"></i> Sprites, deltas
<i class="other"></i> others. Left: server CPU a document, of the quickest round; the thin line ends where
the slowest does. Right: how late the last byte came, from p50 to
p99 (thick) and p99.9 (thin), on a logarithmic scale; the line is one second.</p>
${study.cells.map(cellSection).join('\n')}
${breakSection(study)}
<section><h2>Where the load generator ends</h2>
${list(
  limitText(study)
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .map((line) => escape(line.slice(2)))
)}
</section>
<section><h2>What was not measured</h2>
${list([...missing, ...published])}
</section>
<section><h2>What to distrust</h2>
${list(DISTRUST.map(escape))}
</section>
<section><h2>The machine, the versions, and how to repeat it</h2>
<p>${escape(Object.values(machine).join('; '))}; load average ${loadBefore.toFixed(1)} before, ${loadAfter.toFixed(1)}
after. ${study.minutes.toFixed(0)} minutes; rounds: ${study.rounds}, ${study.seconds} s a cell at least.</p>
<p>${escape(study.versions.join('; '))}.</p>
<pre>npm install &amp;&amp; npm install --prefix test/bench/transports
${escape(study.command)}</pre>
</section>
</main>
</body>
</html>
`;
}
