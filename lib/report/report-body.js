import {
  barChart,
  chartBox,
  figureTable,
  htmlList,
  percentileChart,
  tile,
  timeChart
} from './page-parts.js';
import { digits, escape, lawOf, number, countsText, size, roundedToMs, time } from './words.js';

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
    headerSection(result, title),
    tilesSection(result),
    notesSection(result),
    boundsSection(result),
    stagesSection(result),
    latencySection(result, charts),
    stormSection(result, charts),
    timeSections(result, charts),
    accountSection(result),
    useSection(result, charts),
    serverSection(result),
    factsSection(result)
  ];
  return { title, body: body.filter(Boolean).join('\n'), charts, data: result };
}

/** @param {import('../swarm/result.js').Result} result @returns {string} a line that describes the run */
export function titleOf({ command, clients, throwing, storm, stages }) {
  const upToText = stages ? 'up to ' : '';
  if (stages && !throwing) return `Up to ${number(clients)} clients parked`;
  const clientsText = `${number(clients)} client${clients === 1 ? '' : 's'}`;
  if (storm) return `A storm of ${clientsText}`;
  if (command === 'latency') return `Quiet clients beside ${clientsText}`;
  if (!throwing) return `${clientsText} parked`;
  return throwing.rate === null
    ? `${clientsText}, ${number(throwing.throwers)} throwing as fast as they are answered`
    : `${clientsText}, ${upToText}${number(throwing.rate)} sprites a second`;
}

function headerSection(result, title) {
  const { faults, bounds, account, started, target, interrupted, commandLine } = result;
  const exceededCount = bounds.filter(({ holds }) => !holds).length;
  const accountText =
    account.missing > 0 ? 'No more missing than may be' : 'Every sprite accounted for';
  const goodText = `${account.sent > 0 ? accountText : 'All went well'}${interrupted ? ', stopped early' : ''}`;
  const badWords = [
    faults.length > 0 && (faults.length === 1 ? 'One fault' : `${faults.length} faults`),
    exceededCount > 0 &&
      (exceededCount === 1 ? 'One bound not kept' : `${exceededCount} bounds not kept`)
  ].filter(Boolean);
  const date = new Date(started).toISOString().replace('T', ' ').slice(0, 16);
  return `<h1>${escape(title)}</h1>
<p class="soft">A swarm against ${escape(urlOf(target))}, ${date} UTC</p>
<code>${escape(commandLine)}</code>
<p class="verdict ${badWords.length > 0 ? 'bad' : 'good'}">${badWords.join(', ') || goodText}</p>`;
}

const urlOf = ({ tls, host, port }) => `${tls ? 'https' : 'http'}://${host}:${port}`;

function tilesSection({ command, opened, throwing, latency, account, storm, stages, use }) {
  const latencyTimes = command === 'latency' ? latency.probe : latency.arrival;
  const probeText = command === 'latency' ? "of the probe's " : '';
  const limitText = account.refusals?.['too-many-throws'] > 0 ? ', as --throw-rate lets' : '';
  const tiles = [];
  if (opened) {
    const label = `clients parked${stages && !throwing ? ' at first' : ''}`;
    tiles.push(tile(number(opened.clients), label, opened.clients < opened.wanted && 'bad'));
  }
  if (throwing?.perSecond !== undefined) {
    tiles.push(tile(number(throwing.perSecond), `sprites a second${limitText}`));
  }
  if (storm) {
    for (const part of [50, 99, 100]) {
      const seconds = storm.seconds[part];
      const value = seconds === null ? 'never' : time(seconds * 1000);
      tiles.push(tile(value, `until ${part}% were back`, seconds === null && 'bad'));
    }
  }
  if (latencyTimes.count > 0) {
    tiles.push(
      tile(time(latencyTimes.p50), `half ${probeText}arrive within`),
      tile(time(latencyTimes.p99), `99% ${probeText}within`),
      tile(time(latencyTimes.max), `the slowest ${probeText}`)
    );
  }
  if (use?.perSpriteMs) tiles.push(tile(time(use.perSpriteMs), "of the server's CPU a sprite"));
  if (use) tiles.push(tile(size(use.memory), "the server's memory"));
  if (account.sent > 0) {
    tiles.push(tile(number(account.missing), 'sprites missing', account.missing > 0 && 'bad'));
  }
  return `<div class="tiles">${tiles.join('')}</div>`;
}

/** @param {{faults: string[], remarks: string[]}} result of a run, or of a comparison @returns {string} HTML */
export function notesSection({ faults, remarks }) {
  if (faults.length + remarks.length === 0) return '';
  const lines = faults.map((one) => `<span class="bad">${escape(one)}</span>`);
  return `<section><h2>To know</h2>${htmlList([...lines, ...remarks.map(escape)])}</section>`;
}

function boundsSection({ bounds }) {
  if (bounds.length === 0) return '';
  const lines = bounds.map(
    ({ words, holds }) =>
      `<span class="${holds ? 'good' : 'bad'}">${holds ? '✓ kept' : '✗ not kept'}</span> ${escape(words)}`
  );
  return `<section><h2>Bounds</h2>${htmlList(lines, 'plain')}</section>`;
}

const CURVE_TITLES = {
  probe: 'the quiet probe: throw to arrival',
  arrival: 'throw to arrival',
  answer: 'throw to its answer'
};

const MARKS = { p50: 50, p90: 90, p99: 99, 'p99.9': 99.9, max: 100 };

function latencySection({ latency, curves, command, throwing }, charts) {
  const names = (
    command === 'latency' ? ['probe', 'arrival', 'answer'] : ['arrival', 'answer']
  ).filter((name) => curves[name].length > 0);
  if (names.length === 0) return '';
  const firstTimes = latency[names[0]];
  const marks = Object.entries(MARKS)
    .filter(([, percent]) => percent === 100 || firstTimes.count * (100 - percent) >= 100)
    .map(([label, percent]) => [percent, firstTimes[label]]);
  charts.percentiles = percentileChart(
    names.map((name) => ({ name: CURVE_TITLES[name], color: name, points: curves[name] })),
    marks
  );
  const timingText =
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
fastest half. ${timingText}</p>
${chartBox('percentiles', 'Latency by percentile: the table below has the figures')}
${figureTable(['Of all sprites', ...names.map((name) => CURVE_TITLES[name])], rows)}
</section>`;
}

function stagesSection({ stages = [], throwing }) {
  if (stages.length === 0) return '';
  const columns = throwing
    ? {
        'a second': ({ perSecond }) => (perSecond === null ? '–' : number(perSecond)),
        p50: ({ p50 }) => time(p50),
        p99: ({ p99 }) => time(p99),
        max: ({ max }) => time(max)
      }
    : { 'parked at its end': ({ parked }) => number(parked) };
  const rows = stages.map((stage) => [
    `${number(stage.from)} to ${number(stage.target)} in ${time(stage.seconds * 1000)}`,
    ...Object.values(columns).map((format) => format(stage))
  ]);
  const head = [throwing ? 'Sprites a second' : 'Clients', ...Object.keys(columns)];
  return `<section><h2>Stage by stage</h2>
${figureTable(head, rows)}</section>`;
}

function stormSection(result, charts) {
  const { storm, clients } = result;
  if (!storm) return '';
  const noticedText =
    storm.dropNoticed === null
      ? ''
      : ` The server had noticed that all were gone after ${time(storm.dropNoticed * 1000)}.`;
  const spreadText = storm.spread > 0 ? `within ${storm.spread} s` : 'at once';
  const chart = timeChart('count', [
    {
      name: `parked, counted by the ${storm.countedBy}`,
      color: 'arrival',
      filled: true,
      stepped: true,
      points: pointsSinceDrop(result)
    }
  ]);
  if (chart) charts.storm = chart;
  const longest = Math.max(...Object.values(storm.seconds).map((seconds) => seconds ?? 0));
  const barRows = Object.entries(storm.seconds).map(([part, seconds]) => ({
    name: `${part}%`,
    value: seconds ?? longest,
    words: seconds === null ? 'never' : time(seconds * 1000),
    className: seconds === null ? 'missing' : 'arrival'
  }));
  return `<section><h2>Until all were back</h2>
<p class="soft">${number(clients)} clients closed their connections, and came back ${spreadText}: how many were parked
from the drop on, and the time until so many were parked again, counted by the
${storm.countedBy}.${noticedText}</p>
${chart ? chartBox('storm', 'Clients parked from the drop on') : ''}
${barChart(barRows)}</section>`;
}

/** Returns a storm's track in seconds since the drop, extended a little to show that the clients stay. */
export function pointsSinceDrop({ storm: { track }, phases }) {
  const from = phases.storm?.from ?? 0;
  const points = track.map(([at, parked]) => [Math.max(0, at - from), Math.max(0, parked)]);
  if (points.length > 0) points.push([points.at(-1)[0] * 1.06, points.at(-1)[1]]);
  return points.map(([at, parked]) => [roundedToMs(at), parked]);
}

function timeSections({ series, phases, throwing, interruptions, storm }, charts) {
  const pointsOf = (name) => series.map((point) => [point.at, point[name] ?? null]);
  const [phase] = Object.values(phases);
  const chartExtras = { shared: 'time', ...(phase && { phase }) };
  const sections = [];
  const askedSeries = series.some((point) => point.asked !== undefined)
    ? [{ name: 'asked', color: 'slow', dashed: true, points: pointsOf('asked') }]
    : [];
  const addChart = (id, title, chart, words = '') => {
    if (!chart) return;
    charts[id] = chart;
    const text = words && `<p class="soft">${escape(words)}</p>`;
    sections.push(
      `<section><h2>${title}</h2>${text}${chartBox(id, `${title} over time`)}</section>`
    );
  };
  if (throwing) {
    const rates = [
      { name: 'arrived', color: 'arrival', filled: true, points: pointsOf('received') },
      { name: 'accepted', color: 'answer', points: pointsOf('accepted') },
      ...askedSeries
    ];
    addChart('rates', 'Sprites a second', timeChart('count', rates, chartExtras));
    const times = [
      { name: 'slowest', color: 'slow', points: pointsOf('max') },
      { name: '99%', color: 'answer', points: pointsOf('p99') },
      { name: 'half', color: 'arrival', points: pointsOf('p50') }
    ];
    addChart('times', 'Time in flight', timeChart('time', times, chartExtras));
  }
  const dipTexts = interruptions.map(
    ({ at, lowest, seconds }) =>
      `At ${at} s down to ${number(lowest)}; ` +
      (seconds === null ? 'not back by the end.' : `99% were back after ${time(seconds * 1000)}.`)
  );
  // A storm may be over between two points of the series, so the samples of its track are added.
  const stormPoints = (storm?.track ?? []).map(([at, parked]) => [at, Math.max(0, parked)]);
  const parked = [
    {
      name: 'parked',
      color: 'calm',
      filled: true,
      points: [[0, 0], ...pointsOf('parked'), ...stormPoints]
    },
    ...(throwing ? [] : askedSeries)
  ];
  addChart('parked', 'Clients parked', timeChart('count', parked, chartExtras), dipTexts.join(' '));
  return sections.join('\n');
}

/** The section on the server's CPU time and memory. */
function useSection({ use, phases, version }, charts) {
  if (!use) {
    return `<section><h2>What the server took</h2><p class="soft">Not known: it is on another host, or
another user's. By --status-port with its admin port it tells its CPU time and memory.</p></section>`;
  }
  const [phase] = Object.values(phases);
  const chartExtras = { shared: 'time', ...(phase && { phase }) };
  const pointsOf = (name) =>
    use.series.slice(name === 'cores' ? 1 : 0).map((point) => [point.at, point[name]]);
  const cores = timeChart(
    'cores',
    [{ name: 'CPU', color: 'slow', points: pointsOf('cores') }],
    chartExtras
  );
  const memory = timeChart(
    'bytes',
    [{ name: 'resident', color: 'probe', filled: true, points: pointsOf('memory') }],
    chartExtras
  );
  if (cores) charts.cores = cores;
  if (memory) charts.memory = memory;
  const sourceText = {
    kernel: `By the kernel's account, of process ${escape(use.process)} and those below it.`,
    metrics: 'By /metrics of its admin port.',
    arena: 'By its own account.'
  }[use.by];
  const busyText =
    use.cores === null
      ? ''
      : `It kept ${digits(use.cores)} processor cores busy` +
        (use.perSpriteMs === null ? '. ' : `, ${time(use.perSpriteMs)} for each sprite. `);
  return `<section><h2>What the server took</h2>
<p class="soft">${version ? `Sprites ${escape(version)}. ` : ''}${busyText}Its memory was
${size(use.memoryBefore)} before the load, ${size(use.memory)} at the end of it, ${size(use.most)} at the
most. ${sourceText}</p>
${cores ? chartBox('cores', 'CPU of the server over time') : ''}
${memory ? chartBox('memory', 'Memory of the server over time') : ''}</section>`;
}

/** Parts of the account that are listed also when they are 0. */
const ALWAYS_LISTED = ['arrived', 'missing', 'repeated'];

function accountSection({ account }) {
  if (account.sent === 0) return '';
  const resent = `${number(account.resent)} more in answers sent again`;
  const unanswered = account.unanswered - account.unconfirmed;
  const refusals = countsText(account.refusals) || 'stayed with their throwers';
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
  ].filter(([name, count]) => count > 0 || ALWAYS_LISTED.includes(name));
  const rows = parts.map(
    ([name, count, why, color]) => `<tr><td class="number">${number(count)}</td>
<td>${color ? `<i class="${color} key"></i>` : ''}${escape(name)}
<span class="why">${escape(why)}</span></td></tr>`
  );
  // Every part has a visible width.
  const bar = parts
    .filter(([, count, , color]) => color && count > 0)
    .map(
      ([name, count, , color]) =>
        `<i class="${color}" style="flex: ${count} 1 0" title="${escape(`${name}: ${number(count)}`)}"></i>`
    );
  const acceptedText =
    account.delivered === null
      ? '.'
      : `: ${number(account.delivered)} delivered at once, ${number(account.queued)} queued in a mailbox until the ` +
        'neighbor polled again.';
  return `<section><h2>Where the sprites are</h2>
<p class="soft">${number(account.sent)} thrown, ${number(account.accepted)} accepted${acceptedText}</p>
<div class="bar">${bar.join('')}</div>
<table class="figures">${rows.join('\n')}</table></section>`;
}

function serverSection({ server }) {
  const law = lawOf(server?.after);
  if (law === null) return '';
  const { thrown, acked, waiting, lost, crossedIn, crossedOut, holds } = law;
  const crossedText = (count, what) =>
    count === undefined ? '' : ` + ${number(count)} <small>${what}</small>`;
  const stall =
    server.longestStallMs === null
      ? ''
      : `<p class="soft">Its event loop was late by ${time(server.longestStallMs)} at the longest` +
        (server.stalledBeforeMs === null
          ? ''
          : `, by ${time(server.stalledBeforeMs)} before the load`) +
        '.</p>';
  return `<section><h2>The server's own account</h2>
<p class="law">${number(thrown)} <small>thrown</small>${crossedText(crossedIn, 'crossed in')} ${holds ? '=' : '≠'}
${number(acked)} <small>acked</small> +
${number(waiting)} <small>waiting</small> + ${number(lost)} <small>lost</small>${crossedText(crossedOut, 'crossed out')}</p>${stall}</section>`;
}

function factsSection(run) {
  const { target, engines, opened, throwing, connections, problems, connectErrors } = run;
  const { seed, parkedByServer, version, use, engineCores } = run;
  const facts = [
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
    ['Opened', opened && `${number(opened.perSecond)} a second, ${opened.seconds} s`],
    ['Parked, by the server', parkedByServer === null ? 'not told' : number(parkedByServer)],
    ['Throwing', throwing && `${throwing.mode}, ${number(throwing.throwers)} connections`],
    ['A sprite', throwing && `${number(throwing.size)} bytes`],
    ["The swarm's own longest stall", throwing && time(throwing.swarmStallMs)],
    ['Fell behind its rate', throwing?.rate && `${number(throwing.behind)} sprites`],
    [
      'Connections',
      `${number(connections.connections)} opened, ${number(connections.closed)} broke`
    ],
    ['Polls answered', `${number(connections.answers)}, ${number(connections.empty)} empty`],
    ['Joined again', connections.rejoined > 0 && number(connections.rejoined)],
    ['Problems', countsText(problems)],
    ['Connect errors', countsText(connectErrors)],
    ['Seed', seed]
  ].filter(([, value]) => value || value === 0);
  return `<section><h2>The run</h2><dl class="facts">${facts
    .map(([name, value]) => `<div><dt>${escape(name)}</dt><dd>${escape(value)}</dd></div>`)
    .join('')}</dl></section>`;
}
