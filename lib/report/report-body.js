import { bars, box, figures, list, percentileChart, tile, timeChart } from './page-parts.js';
import { digits, escape, lawOf, n, named, size, thousandths, time } from './words.js';

/**
 * The report of one run: one HTML file that fetches nothing, for light and dark screens, phones and paper.
 * Each part returns its HTML, and adds its charts to the charts of the page.
 */

/**
 * @param {import('../swarm/result.js').Result} result
 * @returns {{title: string, body: string, charts: Record<string, object>, data: object}} the content
 *     for fill()
 */
export function contentOf(result) {
  const title = titleOf(result);
  const charts = {};
  const body = [
    header(result, title),
    tiles(result),
    notes(result),
    bounds(result),
    stages(result),
    latency(result, charts),
    storm(result, charts),
    overTime(result, charts),
    account(result),
    use(result, charts),
    server(result),
    facts(result)
  ];
  return { title, body: body.filter(Boolean).join('\n'), charts, data: result };
}

/** @param {import('../swarm/result.js').Result} result @returns {string} a line that describes the run */
export function titleOf({ command, clients, throwing, storm, stages }) {
  const upTo = stages ? 'up to ' : '';
  if (stages && !throwing) return `Up to ${n(clients)} clients parked`;
  const who = `${n(clients)} client${clients === 1 ? '' : 's'}`;
  if (storm) return `A storm of ${who}`;
  if (command === 'latency') return `Quiet clients beside ${who}`;
  if (!throwing) return `${who} parked`;
  return throwing.rate === null
    ? `${who}, ${n(throwing.throwers)} throwing as fast as they are answered`
    : `${who}, ${upTo}${n(throwing.rate)} sprites a second`;
}

function header(result, title) {
  const { faults, bounds, account, started, target, interrupted, commandLine } = result;
  const passed = bounds.filter(({ holds }) => !holds).length;
  const all = account.missing > 0 ? 'No more missing than may be' : 'Every sprite accounted for';
  const good = `${account.sent > 0 ? all : 'All went well'}${interrupted ? ', stopped early' : ''}`;
  const words = [
    faults.length > 0 && (faults.length === 1 ? 'One fault' : `${faults.length} faults`),
    passed > 0 && (passed === 1 ? 'One bound not kept' : `${passed} bounds not kept`)
  ].filter(Boolean);
  const date = new Date(started).toISOString().replace('T', ' ').slice(0, 16);
  return `<h1>${escape(title)}</h1>
<p class="soft">A swarm against ${escape(urlOf(target))}, ${date} UTC</p>
<code>${escape(commandLine)}</code>
<p class="verdict ${words.length > 0 ? 'bad' : 'good'}">${words.join(', ') || good}</p>`;
}

const urlOf = ({ tls, host, port }) => `${tls ? 'https' : 'http'}://${host}:${port}`;

function tiles({ command, opened, throwing, latency, account, storm, stages, use }) {
  const felt = command === 'latency' ? latency.probe : latency.arrival;
  const whose = command === 'latency' ? "of the probe's " : '';
  const limited = account.refusals?.['too-many-throws'] > 0 ? ', as --throw-rate lets' : '';
  const list = [];
  if (opened) {
    const label = `clients parked${stages && !throwing ? ' at first' : ''}`;
    list.push(tile(n(opened.clients), label, opened.clients < opened.wanted && 'bad'));
  }
  if (throwing?.perSecond !== undefined) {
    list.push(tile(n(throwing.perSecond), `sprites a second${limited}`));
  }
  if (storm) {
    for (const part of [50, 99, 100]) {
      const seconds = storm.seconds[part];
      const value = seconds === null ? 'never' : time(seconds * 1000);
      list.push(tile(value, `until ${part}% were back`, seconds === null && 'bad'));
    }
  }
  if (felt.count > 0) {
    list.push(
      tile(time(felt.p50), `half ${whose}arrive within`),
      tile(time(felt.p99), `99% ${whose}within`),
      tile(time(felt.max), `the slowest ${whose}`)
    );
  }
  if (use?.perSpriteMs) list.push(tile(time(use.perSpriteMs), "of the server's CPU a sprite"));
  if (use) list.push(tile(size(use.memory), "the server's memory"));
  if (account.sent > 0) {
    list.push(tile(n(account.missing), 'sprites missing', account.missing > 0 && 'bad'));
  }
  return `<div class="tiles">${list.join('')}</div>`;
}

/** @param {{faults: string[], remarks: string[]}} result of a run, or of a comparison @returns {string} HTML */
export function notes({ faults, remarks }) {
  if (faults.length + remarks.length === 0) return '';
  const lines = faults.map((one) => `<span class="bad">${escape(one)}</span>`);
  return `<section><h2>To know</h2>${list([...lines, ...remarks.map(escape)])}</section>`;
}

function bounds({ bounds }) {
  if (bounds.length === 0) return '';
  const lines = bounds.map(
    ({ words, holds }) =>
      `<span class="${holds ? 'good' : 'bad'}">${holds ? '✓ kept' : '✗ not kept'}</span> ${escape(words)}`
  );
  return `<section><h2>Bounds</h2>${list(lines, 'plain')}</section>`;
}

const CURVES = {
  probe: 'the quiet probe: throw to arrival',
  arrival: 'throw to arrival',
  answer: 'throw to its answer'
};

const MARKS = { p50: 50, p90: 90, p99: 99, 'p99.9': 99.9, max: 100 };

function latency({ latency, curves, command, throwing }, charts) {
  const names = (
    command === 'latency' ? ['probe', 'arrival', 'answer'] : ['arrival', 'answer']
  ).filter((name) => curves[name].length > 0);
  if (names.length === 0) return '';
  const first = latency[names[0]];
  const marks = Object.entries(MARKS)
    .filter(([, percent]) => percent === 100 || first.count * (100 - percent) >= 100)
    .map(([label, percent]) => [percent, first[label]]);
  charts.percentiles = percentileChart(
    names.map((name) => ({ name: CURVES[name], color: name, points: curves[name] })),
    marks
  );
  const from =
    throwing.mode === 'open loop'
      ? 'Each sprite is timed from the moment it was due, so a server that stalls is charged for ' +
        'all that should have been thrown meanwhile.'
      : 'Each thrower waits for its answer before it throws again: a server that stalls is asked ' +
        'less.';
  const rows = Object.keys(MARKS).map((mark) => [
    mark,
    ...names.map((name) => time(latency[name][mark]))
  ]);
  return `<section><h2>How long a sprite flies</h2>
<p class="soft">Both axes are logarithmic: as much room for the slowest in ten thousand as for the
fastest half. ${from}</p>
${box('percentiles', 'Latency by percentile: the table below has the figures')}
${figures(['Of all sprites', ...names.map((name) => CURVES[name])], rows)}
</section>`;
}

function stages({ stages = [], throwing }) {
  if (stages.length === 0) return '';
  const columns = throwing
    ? {
        'a second': ({ perSecond }) => (perSecond === null ? '–' : n(perSecond)),
        p50: ({ p50 }) => time(p50),
        p99: ({ p99 }) => time(p99),
        max: ({ max }) => time(max)
      }
    : { 'parked at its end': ({ parked }) => n(parked) };
  const rows = stages.map((stage) => [
    `${n(stage.from)} to ${n(stage.target)} in ${time(stage.seconds * 1000)}`,
    ...Object.values(columns).map((tell) => tell(stage))
  ]);
  const head = [throwing ? 'Sprites a second' : 'Clients', ...Object.keys(columns)];
  return `<section><h2>Stage by stage</h2>
${figures(head, rows)}</section>`;
}

function storm(result, charts) {
  const { storm, clients } = result;
  if (!storm) return '';
  const noticed =
    storm.dropNoticed === null
      ? ''
      : ` The server had noticed that all were gone after ${time(storm.dropNoticed * 1000)}.`;
  const how = storm.spread > 0 ? `within ${storm.spread} s` : 'at once';
  const chart = timeChart('count', [
    {
      name: `parked, counted by the ${storm.countedBy}`,
      color: 'arrival',
      filled: true,
      stepped: true,
      points: fromDrop(result)
    }
  ]);
  if (chart) charts.storm = chart;
  const most = Math.max(...Object.values(storm.seconds).map((seconds) => seconds ?? 0));
  const back = Object.entries(storm.seconds).map(([part, seconds]) => ({
    name: `${part}%`,
    value: seconds ?? most,
    words: seconds === null ? 'never' : time(seconds * 1000),
    className: seconds === null ? 'missing' : 'arrival'
  }));
  return `<section><h2>Until all were back</h2>
<p class="soft">${n(clients)} clients closed their connections, and came back ${how}: how many were parked
from the drop on, and the time until so many were parked again, counted by the
${storm.countedBy}.${noticed}</p>
${chart ? box('storm', 'Clients parked from the drop on') : ''}
${bars(back)}</section>`;
}

/** Returns a storm's track in seconds since the drop, extended a little to show that the clients stay. */
export function fromDrop({ storm: { track }, phases }) {
  const from = phases.storm?.from ?? 0;
  const points = track.map(([at, parked]) => [Math.max(0, at - from), Math.max(0, parked)]);
  if (points.length > 0) points.push([points.at(-1)[0] * 1.06, points.at(-1)[1]]);
  return points.map(([at, parked]) => [thousandths(at), parked]);
}

function overTime({ series, phases, throwing, interruptions, storm }, charts) {
  const pick = (name) => series.map((point) => [point.at, point[name] ?? null]);
  const [phase] = Object.values(phases);
  const more = { shared: 'time', ...(phase && { phase }) };
  const sections = [];
  const asked = series.some((point) => point.asked !== undefined)
    ? [{ name: 'asked', color: 'slow', dashed: true, points: pick('asked') }]
    : [];
  const add = (id, title, chart, words = '') => {
    if (!chart) return;
    charts[id] = chart;
    const text = words && `<p class="soft">${escape(words)}</p>`;
    sections.push(`<section><h2>${title}</h2>${text}${box(id, `${title} over time`)}</section>`);
  };
  if (throwing) {
    const rates = [
      { name: 'arrived', color: 'arrival', filled: true, points: pick('received') },
      { name: 'accepted', color: 'answer', points: pick('accepted') },
      ...asked
    ];
    add('rates', 'Sprites a second', timeChart('count', rates, more));
    const times = [
      { name: 'slowest', color: 'slow', points: pick('max') },
      { name: '99%', color: 'answer', points: pick('p99') },
      { name: 'half', color: 'arrival', points: pick('p50') }
    ];
    add('times', 'Time in flight', timeChart('time', times, more));
  }
  const dips = interruptions.map(
    ({ at, lowest, seconds }) =>
      `At ${at} s down to ${n(lowest)}; ` +
      (seconds === null ? 'not back by the end.' : `99% were back after ${time(seconds * 1000)}.`)
  );
  // A storm may be over between two points of the series, so the samples of its track are added.
  const drop = (storm?.track ?? []).map(([at, parked]) => [at, Math.max(0, parked)]);
  const parked = [
    { name: 'parked', color: 'calm', filled: true, points: [[0, 0], ...pick('parked'), ...drop] },
    ...(throwing ? [] : asked)
  ];
  add('parked', 'Clients parked', timeChart('count', parked, more), dips.join(' '));
  return sections.join('\n');
}

/** The section on the server's CPU time and memory. */
function use({ use, phases, version }, charts) {
  if (!use) {
    return `<section><h2>What the server took</h2><p class="soft">Not known: it is on another host, or
another user's. By --status-port with its admin port it tells its CPU time and memory.</p></section>`;
  }
  const [phase] = Object.values(phases);
  const more = { shared: 'time', ...(phase && { phase }) };
  const line = (name) =>
    use.series.slice(name === 'cores' ? 1 : 0).map((point) => [point.at, point[name]]);
  const cores = timeChart('cores', [{ name: 'CPU', color: 'slow', points: line('cores') }], more);
  const memory = timeChart(
    'bytes',
    [{ name: 'resident', color: 'probe', filled: true, points: line('memory') }],
    more
  );
  if (cores) charts.cores = cores;
  if (memory) charts.memory = memory;
  const whose = {
    kernel: `By the kernel's account, of process ${escape(use.process)} and those below it.`,
    metrics: 'By /metrics of its admin port.',
    arena: 'By its own account.'
  }[use.by];
  const busy =
    use.cores === null
      ? ''
      : `It kept ${digits(use.cores)} processor cores busy` +
        (use.perSpriteMs === null ? '. ' : `, ${time(use.perSpriteMs)} for each sprite. `);
  return `<section><h2>What the server took</h2>
<p class="soft">${version ? `Sprites ${escape(version)}. ` : ''}${busy}Its memory was
${size(use.memoryBefore)} before the load, ${size(use.memory)} at the end of it, ${size(use.most)} at the
most. ${whose}</p>
${cores ? box('cores', 'CPU of the server over time') : ''}
${memory ? box('memory', 'Memory of the server over time') : ''}</section>`;
}

/** Parts of the account that are listed also when they are 0. */
const ALWAYS = ['arrived', 'missing', 'repeated'];

function account({ account }) {
  if (account.sent === 0) return '';
  const resent = `${n(account.resent)} more in answers sent again`;
  const unanswered = account.unanswered - account.unconfirmed;
  const refusals = named(account.refusals) || 'stayed with their throwers';
  // Parts with a colour are drawn in the bar.
  const parts = [
    ['arrived', account.received, `came to one of the swarm's clients (${resent})`, 'arrival'],
    ['missing', account.missing, 'accepted by the server, never received', 'missing'],
    [
      'landed elsewhere',
      account.landedElsewhere,
      'at clients of others in the same torus',
      'probe'
    ],
    ['refused', account.refused, refusals, 'answer'],
    ['unanswered', unanswered, 'sent without an answer: the server may have them', 'calm'],
    ['repeated', account.repeated, 'received twice, under different sequence numbers'],
    ['duplicate', account.duplicates, 'throws repeated after a broken connection, and known'],
    ['changed', account.mangled, 'or in by the wrong side'],
    ['from others', account.foreign, 'thrown by other clients']
  ].filter(([name, count]) => count > 0 || ALWAYS.includes(name));
  const rows = parts.map(
    ([name, count, why, color]) => `<tr><td class="number">${n(count)}</td>
<td>${color ? `<i class="${color} key"></i>` : ''}${escape(name)}
<span class="why">${escape(why)}</span></td></tr>`
  );
  // Every part has a visible width.
  const bar = parts
    .filter(([, count, , color]) => color && count > 0)
    .map(
      ([name, count, , color]) =>
        `<i class="${color}" style="flex: ${count} 1 0" title="${escape(`${name}: ${n(count)}`)}"></i>`
    );
  const ways =
    account.delivered === null
      ? '.'
      : `: ${n(account.delivered)} delivered at once, ${n(account.queued)} queued in a mailbox until the ` +
        'neighbor polled again.';
  return `<section><h2>Where the sprites are</h2>
<p class="soft">${n(account.sent)} thrown, ${n(account.accepted)} accepted${ways}</p>
<div class="bar">${bar.join('')}</div>
<table class="figures">${rows.join('\n')}</table></section>`;
}

function server({ server }) {
  const law = lawOf(server?.after);
  if (law === null) return '';
  const { thrown, acked, waiting, lost, crossedIn, crossedOut, holds } = law;
  const plus = (count, what) =>
    count === undefined ? '' : ` + ${n(count)} <small>${what}</small>`;
  const stall =
    server.longestStallMs === null
      ? ''
      : `<p class="soft">Its event loop was late by ${time(server.longestStallMs)} at the longest` +
        (server.stalledBeforeMs === null
          ? ''
          : `, by ${time(server.stalledBeforeMs)} before the load`) +
        '.</p>';
  return `<section><h2>The server's own account</h2>
<p class="law">${n(thrown)} <small>thrown</small>${plus(crossedIn, 'crossed in')} ${holds ? '=' : '≠'}
${n(acked)} <small>acked</small> +
${n(waiting)} <small>waiting</small> + ${n(lost)} <small>lost</small>${plus(crossedOut, 'crossed out')}</p>${stall}</section>`;
}

function facts(run) {
  const { target, engines, opened, throwing, connections, problems, connectErrors } = run;
  const { seed, parkedByServer, version, use, engineCores } = run;
  const list = [
    [
      'Server',
      version ? `Sprites ${version}` : 'version not told (--status-port with its admin port)'
    ],
    [
      "The server's CPU",
      use?.cores != null && `${digits(use.cores)} cores, ${digits(use.cpuSeconds)} s`
    ],
    ["The server's memory", use && `${size(use.memory)}, ${size(use.most)} at the most`],
    ["The busiest engine's CPU", engineCores !== null && `${digits(engineCores)} cores`],
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
