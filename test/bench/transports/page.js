/**
 * The report of the study: one HTML page that needs nothing else, made as the swarm's.
 */
import { bars, box, list, percentileChart } from '../../../lib/report/page-parts.js';
import { page as pageOf } from '../../../lib/report/page.js';
import { escape } from '../../../lib/report/words.js';
import { number } from '../figures.js';
import { LOAD_LIMIT, STEPPED } from './cells.js';
import { contenders, isDelta, isOurs } from './contenders.js';
import { breaksAt, columnsOf, count, limitText, percent, verdict } from './tables.js';

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
  'Contenders are configured as their documentation shows them. Any of them can be made to send the newest document to a new client, or to drop documents for a slow one, by a few lines more; the study has no such lines, only options (Socket.IO’s recovery, nchan’s buffer).',
  `Documents change by 5% from one to the next, in numbers of the same length. Deltas are as good as that is; a document that changes altogether is sent whole.`,
  'A cell lasts some seconds, after sixteen in which a server warms up by documents that come faster: what grows in hours is not in it.',
  'The search tries few numbers, each a third more than the one below: two contenders one step apart may be equally good. Where bare epoll breaks the machine is at its limit.',
  'Resident size is what the kernel counts, garbage that waits for its collection included; a Node.js process starts with some 45 MB and Sprites, with its worker threads, with some 80 MB.',
  'Socket memory is the kernel’s, of all sockets of this machine, both ends of each connection.',
  `Where the load generator takes more than ${percent(LOAD_LIMIT)} of its core (“load”), what is late may be its own.`,
  'A virtual machine’s times differ by half from minute to minute. Each cell is measured in rounds that are apart in time, and the lower CPU and lateness count; contenders whose rounds overlap have no order.',
  'Where a virtual machine gives its free memory back to its host, new memory is dear: on the one of the published run the first touch of a page took 11 µs, that of a page just freed 2 µs. A server that allocates more pays for it.',
  'The authors of this study wrote one of its contenders.'
];

const colorOf = (name) => (isDelta(name) ? 'answer' : isOurs(name) ? 'arrival' : 'calm');

function table(headings, rows) {
  const head = headings.map((heading) => `<th scope="col">${escape(heading)}</th>`).join('');
  const lines = rows.map(
    ({ ours, cells: [first, ...cells] }) =>
      `<tr><th scope="row">${ours ? `<b>${escape(first)}</b>` : escape(first)}</th>${cells
        .map((cell) => `<td>${escape(cell)}</td>`)
        .join('')}</tr>`
  );
  return `<div class="wide" tabindex="0"><table class="figures"><tr>${head}</tr>${lines.join('\n')}</table></div>`;
}

/** What the CPU takes, as bars; and how late the last byte came, by percentile. */
function cellSection(cell, charts) {
  const columns = columnsOf(cell);
  const all = Object.entries(cell.rows);
  const rows = all.map(([name, row]) => ({
    ours: isOurs(name),
    cells: [
      contenders[name].title,
      ...(row.failed === undefined ? columns.map(([, of]) => of(row)) : [`failed: ${row.failed}`])
    ]
  }));
  const cpu = all.map(([name, row]) => ({
    name: contenders[name].title,
    value: row.cpu ?? 0,
    words: row.failed ? `failed: ${row.failed}`.slice(0, 90) : `${number(row.cpu)} µs`,
    className: colorOf(name)
  }));
  const curves = all
    .filter(([, { p50 }]) => typeof p50 === 'number')
    .map(([name, { p50, p99, p999 }]) => ({
      ...{ name: contenders[name].title, color: colorOf(name) },
      points: Object.entries({ 50: p50, 99: p99, 99.9: p999 }).map(([at, ms]) => [Number(at), ms])
    }));
  const id = `late-${Object.keys(charts).length}`;
  if (curves.length > 0) charts[id] = percentileChart(curves);
  return `<section><h2>${escape(cell.name)}</h2>
${bars(cpu)}
${curves.length > 0 ? box(id, `${cell.name}: how late, by percentile`) : ''}
<details><summary>Every figure</summary>${table(['server', ...columns.map(([heading]) => heading)], rows)}</details>
</section>`;
}

function breakSection(study) {
  const all = Object.entries(study.breaks);
  if (all.length === 0) return '';
  const held = all.map(([name, { holds, breaks }]) => ({
    name: contenders[name].title,
    value: holds,
    words: `${count(holds)}${breaks === null ? ' or more' : ''}`,
    className: colorOf(name)
  }));
  const rows = all.map(([name, found]) => ({
    ours: isOurs(name),
    cells: [
      ...[contenders[name].title, count(found.holds), breaksAt(found, study.most)],
      found.why ?? '–'
    ]
  }));
  return `<section><h2>${STEPPED.bytes / 1000} KB a second, to more and more, until it breaks</h2>
<p>Broken is: p99 above a second, or more than 1% missing that no newer version replaced, or resident size
doubled. What is shown was held for ${study.held} seconds;
“more” is beyond what there are files for here, or what it was told to try.</p>
${bars(held)}
${table(['server', 'held', 'breaks at', 'by'], rows)}
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
  const limits = limitText(study)
    .split('\n')
    .filter((line) => line.startsWith('- '))
    .map((line) => escape(line.slice(2)));
  const charts = {};
  const body = `<h1>One document to many</h1>
<p>${escape(verdict(study))}</p>
<p class="soft"><i class="arrival key"></i>Sprites, whole documents <i class="answer key"></i>Sprites, deltas
<i class="calm key"></i>others. The bars: server CPU a document, of the quickest round. The curves: how late the last byte
came, from p50 to p99.9; both axes are logarithmic.</p>
${study.cells.map((cell) => cellSection(cell, charts)).join('\n')}
${breakSection(study)}
<section><h2>Where the load generator ends</h2>
${list(limits)}
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
<code>npm install &amp;&amp; npm install --prefix test/bench/transports
${escape(study.command)}</code>
</section>`;
  return pageOf({ title: 'One document to many: the transport study', body, charts, data: study });
}
