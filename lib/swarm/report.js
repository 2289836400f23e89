import { accountBar, escape, percentileChart, stormChart, time, timeChart } from './charts.js';

/**
 * The report: one HTML file, no script, nothing fetched, for light and dark and for paper.
 */

const big = new Intl.NumberFormat('en-US');
const n = (value) => big.format(value);

const STYLE = `
:root { color-scheme: light dark;
  --paper: #f7f7f4; --card: #ffffff; --ink: #1d2326; --soft: #667077; --rule: #e3e4df;
  --arrival: #0b7a75; --answer: #c98a1b; --probe: #7a4fbf; --slow: #c4472f; --calm: #9fb4b1;
  --good: #1c7d4d; --bad: #c0301f; --shade: #0b7a750f; }
@media (prefers-color-scheme: dark) { :root {
  --paper: #121618; --card: #1b2124; --ink: #e8ebe9; --soft: #98a3a6; --rule: #2d3539;
  --arrival: #45c4b8; --answer: #e5b454; --probe: #b394ec; --slow: #f0806a; --calm: #58686a;
  --good: #5fce94; --bad: #ff8674; --shade: #45c4b812; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 1040px; margin: 0 auto; padding: 40px 20px 64px; }
h1 { font-size: 30px; line-height: 1.2; margin: 0 0 6px; letter-spacing: -0.01em; }
h2 { font-size: 18px; margin: 0 0 2px; }
p { margin: 0; } .soft { color: var(--soft); }
section { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 20px 24px; margin-top: 20px; break-inside: avoid; }
.verdict { display: inline-block; margin: 14px 0 0; padding: 5px 14px; border-radius: 99px;
  font-weight: 600; border: 1.5px solid currentColor; }
.verdict.good { color: var(--good); } .verdict.bad { color: var(--bad); }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(140px, 1fr)); gap: 12px;
  margin-top: 24px; }
.tile { background: var(--card); border: 1px solid var(--rule); border-radius: 12px;
  padding: 12px 16px; }
.tile b { display: block; font-size: 25px; line-height: 1.25; letter-spacing: -0.01em;
  font-variant-numeric: tabular-nums; white-space: nowrap; }
.tile.bad b { color: var(--bad); }
.tile span, .legend, caption { color: var(--soft); font-size: 14px; }
.legend { display: flex; flex-wrap: wrap; gap: 4px 18px; margin: 6px 0 8px; }
.legend i { display: inline-block; width: 18px; height: 4px; border-radius: 2px;
  margin: 0 7px 4px 0; }
svg { display: block; width: 100%; height: auto; margin-top: 8px; overflow: visible; }
svg text { font: 13px system-ui, "Segoe UI", Roboto, sans-serif; fill: var(--soft);
  font-variant-numeric: tabular-nums; }
svg .mark { fill: var(--ink); font-weight: 600; paint-order: stroke; stroke: var(--card);
  stroke-width: 5px; stroke-linejoin: round; }
svg .name { fill: var(--ink); }
.grid { stroke: var(--rule); stroke-width: 1; }
.drop { stroke: var(--arrival); stroke-width: 1; stroke-dasharray: 2 4; opacity: 0.6; }
.phase { fill: var(--shade); }
.line { fill: none; stroke: currentColor; stroke-width: 2.2; stroke-linejoin: round; }
.area { fill: currentColor; opacity: 0.14; }
.dot { fill: var(--card); stroke: var(--arrival); stroke-width: 2.4; }
.line.answer { stroke-width: 1.6; }
svg .arrival, i.arrival { color: var(--arrival); } svg .answer, i.answer { color: var(--answer); }
svg .probe, i.probe { color: var(--probe); } svg .slow, i.slow { color: var(--slow); }
svg .calm, i.calm { color: var(--calm); } svg .missing, i.missing { color: var(--bad); }
svg rect.arrival, svg rect.answer, svg rect.probe, svg rect.slow, svg rect.calm, svg rect.missing {
  fill: currentColor; } i { background: currentColor; }
table { border-collapse: collapse; width: 100%; margin-top: 10px;
  font-variant-numeric: tabular-nums; }
td { padding: 5px 0; border-top: 1px solid var(--rule); vertical-align: top; }
tr:first-child td { border-top: 0; }
td.number { text-align: right; white-space: nowrap; padding-right: 20px; width: 1%;
  font-weight: 600; }
i.key { display: inline-block; width: 10px; height: 10px; border-radius: 3px; margin-right: 8px; }
td .why { color: var(--soft); }
.law { font-size: 20px; margin-top: 8px; font-variant-numeric: tabular-nums; }
.law small { color: var(--soft); font-size: 14px; }
.facts { display: grid; grid-template-columns: repeat(auto-fill, minmax(220px, 1fr)); gap: 6px 24px;
  margin: 12px 0 0; } .facts dt { color: var(--soft); font-size: 14px; } .facts dd { margin: 0; }
ul { margin: 8px 0 0; padding-left: 20px; } li.bad { color: var(--bad); }
`;

/**
 * @param {import('./result.js').Result} result
 * @returns {string} a whole HTML page
 */
export function reportOf(result) {
  const title = titleOf(result);
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${escape(title)}</title><style>${STYLE}</style></head>
<body><main>
${header(result, title)}
${tiles(result)}
${notes(result)}
${latency(result)}
${storm(result)}
${overTime(result)}
${account(result)}
${server(result)}
${facts(result)}
</main></body></html>
`;
}

function titleOf({ command, clients, throwing, storm }) {
  const who = `${n(clients)} client${clients === 1 ? '' : 's'}`;
  if (storm) return `A storm of ${who}`;
  if (command === 'latency') return `One quiet desktop beside ${who}`;
  if (!throwing) return `${who} parked`;
  return throwing.rate === null
    ? `${who}, ${n(throwing.throwers)} throwing as fast as they are answered`
    : `${who}, ${n(throwing.rate)} sprites a second`;
}

function header({ faults, account, started, target, interrupted }, title) {
  const all = account.sent > 0 ? 'Every sprite accounted for' : 'All went well';
  const verdict =
    faults.length > 0
      ? `<p class="verdict bad">${faults.length === 1 ? 'One fault' : `${faults.length} faults`}</p>`
      : `<p class="verdict good">${all}${interrupted ? ', stopped early' : ''}</p>`;
  const date = new Date(started).toISOString().replace('T', ' ').slice(0, 16);
  return `<h1>${escape(title)}</h1>
<p class="soft">A swarm against ${escape(target.host)}:${target.port}, ${date} UTC</p>${verdict}`;
}

function tile(value, name, className = '') {
  return `<div class="tile ${className}"><b>${value}</b><span>${name}</span></div>`;
}

function tiles({ command, opened, throwing, latency, account, storm }) {
  const felt = command === 'latency' ? latency.probe : latency.arrival;
  const whose = command === 'latency' ? "of the probe's " : '';
  const list = [];
  if (opened) {
    list.push(tile(n(opened.clients), 'clients parked', opened.clients < opened.wanted && 'bad'));
  }
  if (throwing?.perSecond !== undefined) list.push(tile(n(throwing.perSecond), 'sprites a second'));
  if (storm) {
    for (const part of [50, 99, 100]) {
      const value = storm.seconds[part];
      list.push(
        tile(
          value === null ? 'never' : time(value * 1000),
          `until ${part}% were back`,
          value === null && 'bad'
        )
      );
    }
  }
  if (felt.count > 0) {
    list.push(
      tile(time(felt.p50), `half ${whose}arrive within`),
      tile(time(felt.p99), `99% ${whose}within`),
      tile(time(felt.max), `the slowest ${whose}`)
    );
  }
  if (account.sent > 0) {
    list.push(tile(n(account.missing), 'sprites missing', account.missing > 0 && 'bad'));
  }
  return `<div class="tiles">${list.join('')}</div>`;
}

function notes({ faults, remarks }) {
  if (faults.length + remarks.length === 0) return '';
  const lines = [
    ...faults.map((one) => `<li class="bad">${escape(one)}</li>`),
    ...remarks.map((one) => `<li>${escape(one)}</li>`)
  ];
  return `<section><h2>To know</h2><ul>${lines.join('\n')}</ul></section>`;
}

function legend(entries) {
  return `<div class="legend">${entries
    .map(([className, name]) => `<span><i class="${className}"></i>${escape(name)}</span>`)
    .join('')}</div>`;
}

const CURVES = {
  probe: 'the quiet probe: throw to arrival',
  arrival: 'throw to arrival',
  answer: 'throw to its answer'
};

function latency({ latency, curves, command, throwing }) {
  const names = (
    command === 'latency' ? ['probe', 'arrival', 'answer'] : ['arrival', 'answer']
  ).filter((name) => curves[name].length > 0);
  if (names.length === 0) return '';
  const first = latency[names[0]];
  const marks = [
    ['p50', 50],
    ['p90', 90],
    ['p99', 99],
    ['p99.9', 99.9],
    ['max', 100]
  ]
    .filter(([, percent]) => percent === 100 || first.count * (100 - percent) >= 100)
    .map(([label, percent]) => [label, percent, first[label]]);
  const from =
    throwing.mode === 'open loop'
      ? 'Each sprite is timed from the moment it was due, so a server that stalls is charged for ' +
        'all that should have been thrown meanwhile.'
      : 'Each thrower waits for its answer before it throws again: a server that stalls is asked ' +
        'less.';
  return `<section><h2>How long a sprite flies</h2>
<p class="soft">Both axes are logarithmic: as much room for the slowest in ten thousand as for the
fastest half. ${from}</p>
${legend(names.map((name) => [name, CURVES[name]]))}
${percentileChart(
  names.map((name) => ({ className: name, points: curves[name] })),
  marks
)}
</section>`;
}

function storm({ storm, clients }) {
  if (!storm) return '';
  const noticed =
    storm.dropNoticed === null
      ? ''
      : ` The server had noticed that all were gone after ${time(storm.dropNoticed * 1000)}.`;
  const how = storm.spread > 0 ? `within ${storm.spread} s` : 'at once';
  return `<section><h2>Until all were back</h2>
<p class="soft">${n(clients)} clients closed their connections, and came back ${how}: the time until
so many were parked again, counted by the ${storm.countedBy}.${noticed}</p>
${stormChart(storm.seconds)}</section>`;
}

function overTime({ series, phases, seconds, throwing, interruptions }) {
  if (series.length < 2) return '';
  const pick = (name) => series.map((point) => [point.at, point[name]]);
  const end = Math.max(seconds, series.at(-1).at);
  const phase = Object.values(phases)[0];
  const charts = [];
  if (throwing) {
    const rates = legend([
      ['arrival', 'arrived'],
      ['answer', 'accepted']
    ]);
    charts.push(
      `<h2>Sprites a second</h2>${rates}` +
        timeChart({
          label: 'Sprites a second over time',
          seconds: end,
          phase,
          curves: [
            { className: 'arrival', points: pick('received'), filled: true },
            { className: 'answer', points: pick('accepted') }
          ]
        })
    );
    const times = legend([
      ['slow', 'slowest'],
      ['answer', '99%'],
      ['arrival', 'half']
    ]);
    charts.push(
      `<h2>Time in flight</h2>${times}` +
        timeChart({
          label: 'Latency over time',
          seconds: end,
          phase,
          times: true,
          curves: [
            { className: 'slow', points: pick('max') },
            { className: 'answer', points: pick('p99') },
            { className: 'arrival', points: pick('p50') }
          ]
        })
    );
  }
  const dips = interruptions.map(
    ({ at, lowest, seconds }) =>
      `At ${at} s down to ${n(lowest)}; ` +
      (seconds === null ? 'not back by the end.' : `99% were back after ${time(seconds * 1000)}.`)
  );
  charts.push(
    `<h2>Clients parked</h2><p class="soft">${escape(dips.join(' '))}</p>` +
      timeChart({
        label: 'Clients parked over time',
        seconds: end,
        phase,
        curves: [{ className: 'calm', points: pick('parked'), filled: true }]
      })
  );
  return charts.map((chart) => `<section>${chart}</section>`).join('\n');
}

function account({ account }) {
  if (account.sent === 0) return '';
  const parts = [
    {
      className: 'arrival',
      name: 'arrived',
      count: account.received,
      why: `came to one of the swarm's clients (${n(account.resent)} more in answers sent again)`
    },
    {
      className: 'missing',
      name: 'missing',
      count: account.missing,
      why: 'accepted by the server, received by nobody'
    },
    {
      className: 'probe',
      name: 'landed elsewhere',
      count: account.landedElsewhere,
      why: 'at clients of others in the same torus'
    },
    {
      className: 'answer',
      name: 'refused',
      count: account.refused,
      why: named(account.refusals) || 'stayed with their throwers'
    },
    {
      className: 'calm',
      name: 'unanswered',
      count: account.unanswered - account.unconfirmed,
      why: 'nobody knows whether the server took them'
    }
  ].filter(({ name, count }) => count > 0 || name === 'missing' || name === 'arrived');
  const other = [
    [account.repeated, 'repeated', 'received twice, under different sequence numbers'],
    [account.duplicates, 'duplicate', 'throws repeated after a broken connection, and known'],
    [account.mangled, 'changed', 'or in by the wrong side'],
    [account.foreign, 'from others', "thrown by somebody else's clients"]
  ].filter(([count, name]) => count > 0 || name === 'repeated');
  const row = (count, name, why, className) => `<tr><td class="number">${n(count)}</td>
<td>${className ? `<i class="${className} key"></i>` : ''}${escape(name)}
<span class="why">${escape(why)}</span></td></tr>`;
  return `<section><h2>Where the sprites are</h2>
<p class="soft">${n(account.sent)} thrown, ${n(account.accepted)} accepted:
${n(account.delivered)} delivered at once, ${n(account.queued)} queued in a mailbox
until the neighbor polled again.</p>
${accountBar(parts)}
<table>${parts.map(({ className, name, count, why }) => row(count, name, why, className)).join('')}
${other.map(([count, name, why]) => row(count, name, why)).join('')}</table></section>`;
}

function server({ server }) {
  if (!server?.law) return '';
  const { thrown, acked, waiting, lost, holds } = server.law;
  const stall =
    server.longestStallMs === null
      ? ''
      : `<p class="soft">Its event loop was late by ${time(server.longestStallMs)} at the longest` +
        (server.stalledBeforeMs === null
          ? ''
          : `, by ${time(server.stalledBeforeMs)} before the load`) +
        '.</p>';
  return `<section><h2>The server's own account</h2>
<p class="law">${n(thrown)} <small>thrown</small> ${holds ? '=' : '≠'}
${n(acked)} <small>acked</small> +
${n(waiting)} <small>waiting</small> + ${n(lost)} <small>lost</small></p>${stall}</section>`;
}

function named(counts) {
  return Object.entries(counts)
    .map(([name, count]) => `${n(count)} ${name}`)
    .join(', ');
}

function facts({
  target,
  engines,
  opened,
  throwing,
  connections,
  problems,
  connectErrors,
  seed,
  parkedByServer
}) {
  const list = [
    ['Transient port', target.transientPort === target.port ? 'none' : target.transientPort],
    ['Engine processes', engines.processes],
    ['Source addresses', engines.addresses || "the host's own"],
    ['Opened', opened && `${n(opened.perSecond)} a second, ${opened.seconds} s`],
    ['Parked, by the server', parkedByServer === null ? 'not told' : n(parkedByServer)],
    ['Throwing', throwing && `${throwing.mode}, ${n(throwing.throwers)} connections`],
    ['A sprite', throwing && `${n(throwing.size)} bytes`],
    ["The swarm's own longest stall", throwing && time(throwing.swarmStallMs)],
    ['Fell behind its rate', throwing?.rate && `${n(throwing.behind)} sprites`],
    ['Connections', `${n(connections.connections)} opened, ${n(connections.closed)} broke`],
    ['Polls answered', `${n(connections.answers)}, ${n(connections.empty)} empty`],
    ['Joined again', connections.rejoined > 0 && n(connections.rejoined)],
    ['Problems', named(problems)],
    ['Connect errors', named(connectErrors)],
    ['Seed', seed]
  ].filter(([, value]) => value || value === 0);
  return `<section><h2>The run</h2><dl class="facts">${list
    .map(([name, value]) => `<div><dt>${escape(name)}</dt><dd>${escape(value)}</dd></div>`)
    .join('')}</dl></section>`;
}
