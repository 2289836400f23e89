import { make, put, style } from '../../arena-pages/elements.js';
import { Plot, Track } from '../../arena-pages/plots.js';
import { plural, formatText } from '../../arena-pages/units.js';
import { describeMissing } from './batches.js';
import { saveButton } from './report.js';
import { stepper } from './stepper.js';

/** Load on the panel: steppers for the load, and plots and tables of the server under it. */

/** The plots: see Kind in plots.js. */
const PLOTS = [
  {
    id: 'connections',
    title: 'Connections',
    unit: 'count',
    most: 10,
    series: [
      { name: 'connections', words: 'of the load', color: 'self' },
      { name: 'parked', words: 'parked, by the server', color: 'along', dashed: true }
    ]
  },
  {
    id: 'rates',
    title: 'A second',
    unit: 'count',
    most: 10,
    series: [
      { name: 'sprites', words: 'sprites', color: 'self' },
      { name: 'inputs', words: 'inputs', color: 'along' }
    ]
  },
  {
    id: 'times',
    title: 'Time in flight',
    unit: 'time',
    series: [
      { name: 'p50', words: 'half', color: 'along' },
      { name: 'p99', words: '99%', color: 'across' },
      { name: 'phone99', words: '99%, phones', color: 'self', dashed: true }
    ]
  },
  {
    id: 'cpu',
    title: 'The server’s CPU',
    unit: 'cores',
    most: 0.1,
    series: [{ name: 'cpu', words: 'of one core', color: 'across' }]
  },
  {
    id: 'memory',
    title: 'The server’s memory',
    unit: 'bytes',
    most: 2 ** 26,
    series: [{ name: 'memory', words: 'resident', color: 'self' }]
  },
  {
    id: 'stall',
    title: 'Longest stall',
    unit: 'time',
    most: 10,
    series: [{ name: 'stall', words: 'in the last minute', color: 'across' }]
  },
  {
    id: 'missing',
    title: 'Missing',
    unit: 'count',
    most: 4,
    series: [{ name: 'missing', words: 'sprites', color: 'across' }]
  }
];

const SERIES = PLOTS.flatMap(({ unit, title, series }) =>
  series.map((one) => ({ ...one, unit, title }))
);

/** Columns of the table of machines and phones: title, and function of a cell's text. */
const COLUMNS = [
  ['Number', ({ number }) => number],
  [
    'What',
    ({ machine, bounded }) => (machine ? `machine${bounded ? ', at its bound' : ''}` : 'phone')
  ],
  ['Connections', ({ connections }) => formatText('count', connections)],
  ['Sprites a second', ({ perSecond }) => formatText('count', perSecond)],
  ['Half', ({ p50 }) => formatText('time', p50 < 0 ? null : p50)],
  ['99%', ({ p99 }) => formatText('time', p99 < 0 ? null : p99)],
  ['Its own stall', ({ machine, stall }) => (machine ? formatText('time', stall) : '–')]
];

/** The steppers: see stepper.js. */
const STEPPERS = [
  {
    name: 'clients',
    title: 'Clients on each machine',
    values: [0, 10, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000]
  },
  {
    name: 'throws',
    title: 'Throws a second on each machine',
    values: [0, 5, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
  },
  { name: 'polls', title: 'Polls on each phone', values: [0, 1, 2, 3] },
  { name: 'phoneThrows', title: 'Throws a second of each phone', values: [0, 1, 2, 3, 4, 5] }
];

function addSteppers(root, command) {
  const steps = make('div', { className: 'load-steps', into: root });
  return STEPPERS.map((how) => {
    const choose = (value) => command({ settings: { [how.name]: value } });
    return { name: how.name, ...stepper(steps, { ...how, choose }) };
  });
}

/** Returns the numbers of a moment, by series. */
function sampleOf(now, value, perSecond, missing) {
  return {
    connections: value?.connections ?? 0,
    parked: now.parked,
    sprites: value?.perSecond ?? 0,
    inputs: perSecond('inputs'),
    p50: value?.p50,
    p99: value?.p99,
    phone99: value?.phone99,
    cpu: perSecond('cpuSeconds'),
    memory: now.rss,
    stall: now.recentStallMs,
    missing: missing.count
  };
}

/** Returns a line of the table of figures. */
function figuresOf(track, { name, unit, title, words }) {
  const { now, least, most } = track.summary(name);
  return [`${title}: ${words}`, ...[now, least, most].map((one) => formatText(unit, one))];
}

/** Adds a table. Returns a function that shows rows, and reuses the elements of the rows before. */
function table(root, { title, id, heads }) {
  const region = { tabindex: 0, role: 'region', 'aria-label': title };
  const box = make('div', { className: 'table', ...region, into: root });
  const tableElement = make('table', { id, into: box });
  make('caption', { text: title, into: tableElement });
  const row = make('tr', { into: make('thead', { into: tableElement }) });
  for (const text of heads) make('th', { text, scope: 'col', into: row });
  const body = make('tbody', { into: tableElement });
  return (rows) => {
    while (body.rows.length > rows.length) body.deleteRow(-1);
    for (const [i, cells] of rows.entries()) {
      const line = body.rows[i] ?? body.insertRow();
      while (line.cells.length < cells.length) {
        const isFirst = line.cells.length === 0;
        make(isFirst ? 'th' : 'td', { ...(isFirst && { scope: 'row' }), into: line });
      }
      for (const [j, text] of cells.entries()) put(line.cells[j], text);
    }
  };
}

export function start({ root, control, command }) {
  const sheet = style(import.meta.url);
  const steppers = addSteppers(root, command);
  const reporters = make('p', { className: 'load-who', role: 'status', into: root });
  const missingLine = make('p', { className: 'load-missing', into: root });
  const grid = make('div', { className: 'load-plots', into: root });
  const track = new Track(SERIES.map(({ name }) => name));
  const plots = PLOTS.map((kind) => new Plot(grid, kind, track));
  const tables = make('div', { className: 'load-tables', into: root });
  const showFigures = table(tables, {
    id: 'load-figures',
    title: 'In figures',
    heads: ['Figure', 'Now', 'Least', 'Most']
  });
  const showPlayers = table(tables, {
    id: 'load-who',
    title: 'Machines and phones',
    heads: COLUMNS.map(([head]) => head)
  });
  let reduced = null;
  let currentControl = control;
  let firstStatus = null; // {now, at}
  let lastStatus = null;
  let lastValue = null; // The last value of the round: the lobby removes it from the feed.

  function showControl(nextControl) {
    currentControl = nextControl;
    for (const { name, show } of steppers) show(nextControl.settings[name]);
  }

  /** Clears all data, for another round, or a restarted server, whose counts start at 0. */
  function restart() {
    track.clear();
    [lastStatus, firstStatus, lastValue] = [null, null, null];
  }

  function status(now, at) {
    const { value = null } = reduced ?? {};
    if (lastStatus && lastStatus.now.run !== now.run) restart();
    // Plots, tables and report end with the round. Its last value stays in the feed.
    if (!currentControl.running && lastValue !== null && lastStatus !== null) {
      put(reporters, 'Not running');
      return;
    }
    const perSecond = (name) =>
      lastStatus ? ((now[name] - lastStatus.now[name]) * 1000) / (at - lastStatus.at) : null;
    firstStatus ??= { now, at };
    const missing = describeMissing(value, now, firstStatus.now);
    track.add((at - firstStatus.at) / 1000, sampleOf(now, value, perSecond, missing));
    lastStatus = { now, at, ended: Date.now() };
    for (const plot of plots) plot.show();
    const who =
      value && `${plural(value.machines, 'machine')} and ${plural(value.phones, 'phone')}`;
    put(reporters, who ? `${who} report` : 'Not running');
    put(missingLine, missing.words);
    missingLine.dataset.is = missing.is;
    showFigures(SERIES.map((series) => figuresOf(track, series)));
    showPlayers((value?.list ?? []).map((one) => COLUMNS.map(([, read]) => String(read(one)))));
  }

  const readRun = () =>
    lastStatus &&
    lastValue && {
      ...{ track, first: firstStatus.now, value: lastValue, control: currentControl },
      ...{ url: new URL(location.href), now: lastStatus.now, ended: lastStatus.ended }
    };
  saveButton(make('div', { className: 'load-acts', into: root }), readRun);
  showControl(control);
  return {
    control: showControl,
    value(next) {
      if (reduced !== null && next.round !== reduced.round) restart();
      reduced = next;
      lastValue = next.value ?? lastValue;
    },
    status,
    stop() {
      for (const plot of plots) plot.remove();
      sheet.remove();
    }
  };
}
