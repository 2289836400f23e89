import { make, put } from './arena-pages/elements.js';
import { Plot } from './arena-pages/plots.js';
import { alarms, bytes, count, headline, number, programText, duration } from './admin-words.js';
import { countsBetween, quantile } from './quantile.js';
import { describeWorld, drawRing, readWorld } from './ring.js';

/**
 * The page for people at the admin port: it asks for everything every two seconds, for the last hour every ten, and says
 * how fast those counts grow that only grow.
 */

const STATUS_INTERVAL = 2000;
const HISTORY_INTERVAL = 10_000;

/**
 * The counts that are shown: the member of /status, its name, and what of it since the last look: true for
 * its rate, a number for that quantile of the delivery times.
 */
const SHOWN_COUNTS = [
  ['clients', 'with a place'],
  ['parked', 'polls parked'],
  ['joined', 'joined', true],
  ['left', 'left', true],
  ['expired', 'expired', true],
  ['thrown', 'thrown', true],
  ['acked', 'acknowledged', true],
  ['deliveryMsP50', 'median wait, ms', 0.5],
  ['deliveryMsP99', 'wait of 99 in 100, ms', 0.99],
  ['mailboxBytes', 'in mailboxes', 'bytes'],
  ['inputs', 'inputs of players', true],
  ['documents', 'documents of feeds', true],
  ['patches', 'patches of feeds', true],
  ['fetches', 'fetches from upstream', true],
  ['fetchesFailed', 'of them failed', true],
  ['outboxSprites', 'wait for other servers'],
  ['longestStallMs', 'longest stall since the start, ms'],
  ['rss', 'resident', 'bytes']
];

const CLOCK = { hour: '2-digit', minute: '2-digit', hourCycle: 'h23' };

/** Plots are of an hour; the time below them is that of the wall. */
const hourAxis = {
  span: 3600,
  time: {
    incrs: [60, 120, 300, 600, 900, 1800],
    // Twelve hours would need a word beside each label, and labels on a phone would overlap.
    values: (plot, all) => all.map((at) => new Date(at * 1000).toLocaleTimeString([], CLOCK))
  }
};

const line = (name, words, color = 'along', dashed = false) => ({ name, words, color, dashed });

const PLOTS = [
  {
    ...{ id: 'clients', title: 'Clients', unit: 'count', ...hourAxis },
    series: [line('clients', 'with a place'), line('watching', 'watchers', 'self', true)]
  },
  {
    ...{ id: 'rates', title: 'Traffic, a second', unit: 'count', ...hourAxis },
    series: [
      line('throws', 'throws', 'across'),
      line('documents', 'documents', 'self', true),
      line('inputs', 'inputs', 'along', true)
    ]
  },
  {
    ...{ id: 'wait', title: 'Wait of 99 in 100', unit: 'time', ...hourAxis },
    series: [line('p99', 'sprites', 'across')]
  },
  {
    ...{ id: 'cpu', title: 'Processor', unit: 'cores', ...hourAxis, most: 0.1 },
    series: [line('cpu', 'of a core', 'self')]
  },
  {
    ...{ id: 'memory', title: 'Memory', unit: 'bytes', ...hourAxis, most: 2 ** 20 },
    series: [line('rss', 'resident'), line('feedMemory', 'feeds', 'self', true)]
  },
  {
    ...{ id: 'refused', title: 'Refused a second', unit: 'count', ...hourAxis },
    series: [line('refused', 'requests', 'across')]
  }
];

const element = (id) => document.getElementById(id);

/** The heads of the tables, by the ids of their bodies. */
const TABLE_HEADS = {
  servers: [
    ...['server', 'its ids begin with', 'clients reach it at'],
    ...['waiting for it', 'rows', 'clients']
  ],
  counts: ['what', 'now, or since the start', 'lately'],
  refused: ['reason', 'since the start', 'lately'],
  feeds: ['feed', 'watchers', 'bytes', 'version'],
  arenas: ['arena', 'game', 'players', 'reductions'],
  threads: ['thread', 'connections', 'requests', 'held for them']
};
for (const [id, heads] of Object.entries(TABLE_HEADS)) {
  const table = make('table', { into: element(`${id}-rows`) });
  const row = make('tr', { into: make('thead', { into: table }) });
  for (const text of heads) make('th', { text, scope: 'col', into: row });
  make('tbody', { id, into: table });
}

/** The last hour, as the plots read it. */
const track = {
  at: [],
  values: Object.fromEntries(PLOTS.flatMap(({ series }) => series.map(({ name }) => [name, []]))),
  take(samples) {
    this.at = samples.map(({ at }) => at);
    for (const name of Object.keys(this.values)) {
      this.values[name] = samples.map((sample) => sample[name]);
    }
  },
  summary(name) {
    const known = this.values[name].filter((value) => value !== null);
    const most = known.length === 0 ? null : Math.max(...known);
    return { now: this.values[name].at(-1) ?? null, most };
  }
};

const rateOf = (now, before, seconds) => `${number((now - before) / seconds)} /s`;

/** Fills a table's body: in each row the first is its head. */
function fillTable(id, rows, textIfEmpty) {
  const body = element(id);
  const texts = rows.length > 0 ? rows : [[textIfEmpty]];
  while (body.rows.length > texts.length) body.deleteRow(-1);
  for (const [rowIndex, [head, ...cells]] of texts.entries()) {
    const row = body.rows[rowIndex] ?? body.insertRow();
    if (row.cells.length !== cells.length + 1) {
      row.replaceChildren(make('th', { scope: 'row' }));
      for (let i = 0; i < cells.length; i += 1) row.insertCell();
    }
    for (const [i, text] of [head, ...cells].entries()) put(row.cells[i], text);
  }
}

/** Fills a list of terms. */
function fillTerms(box, terms) {
  const parts = terms.flatMap(([name, text]) => [
    make('dt', { text: name }),
    make('dd', { text: String(text) })
  ]);
  box.replaceChildren(...parts);
}

function showCounts(status, lastStatus, seconds) {
  const rows = SHOWN_COUNTS.filter(([member]) => status[member] !== undefined).map(
    ([member, name, change]) => {
      const value = status[member];
      const shown = change === 'bytes' ? bytes(value) : value === null ? '–' : number(value);
      if (lastStatus === undefined || change === undefined || change === 'bytes') {
        return [name, shown, ''];
      }
      if (change === true) return [name, shown, rateOf(value, lastStatus[member], seconds)];
      const share = quantile(countsBetween(lastStatus.deliveryTimes, status.deliveryTimes), change);
      return [name, shown, share === null ? '' : `${number(share)} now`];
    }
  );
  fillTable('counts', rows);
}

function showRefused({ refused = {} }, lastStatus, seconds) {
  const rows = Object.entries(refused)
    .toSorted(([, one], [, other]) => other - one)
    .map(([problem, refusals]) => [
      problem,
      number(refusals),
      lastStatus === undefined ? '' : rateOf(refusals, lastStatus.refused[problem] ?? 0, seconds)
    ]);
  fillTable('refused', rows, 'nothing since the start');
}

/** How the terms of the law are called where /status says it otherwise. */
const TERMS = {
  ...{ crossedIn: 'from other servers', acked: 'acknowledged', crossedOut: 'to other servers' }
};

function showLaw({ law }) {
  const terms = (names) =>
    names
      .filter((name) => name in law)
      .flatMap((name, i) => [
        ...(i > 0 ? [make('i', { text: '+' })] : []),
        make('span', { text: `${TERMS[name] ?? name} ` }),
        make('b', { text: number(law[name]) })
      ]);
  element('law').replaceChildren(
    ...terms(['thrown', 'crossedIn']),
    make('i', { text: law.holds ? '=' : '≠' }),
    ...terms(['acked', 'waiting', 'lost', 'crossedOut'])
  );
  put(
    element('law-words'),
    law.holds ? 'It holds: every sprite is accounted for.' : 'It does not hold.'
  );
}

function showFeeds({ feeds, status, bounds }) {
  const { feeds: feedCount = 0, watching = 0, feedMemory = 0 } = status;
  put(
    element('feeds-words'),
    `${count(feedCount, 'feed')} of ${number(bounds.feeds)} and ${count(watching, 'watcher')}; ` +
      `${bytes(feedMemory)} of ${bytes(bounds.feedMemory)}.` +
      (feedCount > feeds.length ? ` The ${feeds.length} with the most watchers:` : '')
  );
  const rows = feeds.map(({ key, watching: watchers, bytes: size, version, upstream }) => [
    upstream ? `${key} (fetched)` : key,
    number(watchers),
    bytes(size),
    number(version)
  ]);
  fillTable('feeds', rows, 'none');
}

function showArenas({ arenas }) {
  element('arenas-box').hidden = arenas.length === 0;
  const stateOf = ({ game, running, failed }) =>
    game === null ? 'no game' : `${game}, ${failed ? 'stopped' : running ? 'running' : 'waiting'}`;
  const rows = arenas.map((one) => [
    one.name,
    stateOf(one),
    number(one.players),
    number(one.reductions)
  ]);
  fillTable('arenas', rows);
}

function showThreads({ workers, status }) {
  const row = (words, { connections = 0, requests = 0, heldBytes = 0 }) => [
    words,
    number(connections),
    number(requests),
    bytes(heldBytes)
  ];
  fillTable('threads', [
    row('all', status),
    ...workers.map((one, i) => row(`worker ${i + 1}`, one))
  ]);
}

function showDisk({ state, disk, status }) {
  put(
    element('disk-words'),
    state === null
      ? 'No state is kept: when the process ends, places and sprites are gone (--state).'
      : `${state.file}, on the disk ${{ never: 'when the system likes', second: 'within a second', turn: 'before answers go' }[state.sync]}.`
  );
  const room = disk && `${bytes(disk.free)} of ${bytes(disk.size)} in ${disk.folder}`;
  fillTerms(
    element('disk'),
    state === null
      ? []
      : [
          ['free', room ?? 'not known'],
          ['journal', bytes(status.journalBytes)],
          ['not yet on the disk', bytes(status.journalUnsynced)],
          ['not yet written', bytes(status.journalBacklog)],
          ['longest write', duration(status.journalLongestWriteSeconds)],
          ['snapshots', `${number(status.snapshots)}, ${number(status.snapshotsFailed)} failed`]
        ]
  );
}

/** Draws the torus: a field a place, those that are taken full. */
function drawTorus({ clients, rows, columns }) {
  const places = rows * columns;
  put(
    element('torus'),
    `${count(rows, 'row')} of ${count(columns, 'column')};` +
      ` ${number(clients)} of ${count(places, 'place')} taken.` +
      ' (The map shows how many, not which.)'
  );
  const map = element('map');
  const context = map.getContext('2d');
  context.clearRect(0, 0, map.width, map.height);
  if (places === 0) return;
  context.fillStyle = getComputedStyle(map).color;
  const [cellWidth, cellHeight] = [map.width / columns, map.height / rows];
  const gap = Math.min(cellWidth, cellHeight) > 4 ? 1 : 0;
  // A map of a million places has fewer points than they are: then it is as full as they are.
  if (Math.min(cellWidth, cellHeight) < 1) {
    context.globalAlpha = clients / places;
    context.fillRect(0, 0, map.width, map.height);
    context.globalAlpha = 1;
    return;
  }
  for (let i = 0; i < clients; i += 1) {
    const [column, row] = [i % columns, Math.floor(i / columns)];
    context.fillRect(column * cellWidth, row * cellHeight, cellWidth - gap, cellHeight - gap);
  }
}

/** The last of it that is shown, as JSON. */
let shownWorldJson;

/** Shows the servers of the ring. */
function showWorld({ world }) {
  const worldJson = JSON.stringify(world);
  if (worldJson === shownWorldJson) return;
  shownWorldJson = worldJson;
  const ring = readWorld(world);
  element('world').hidden = ring === null;
  if (ring === null) return;
  const { name, state, problem, epoch, servers, outboxes, clients } = world;
  put(
    element('world-words'),
    `${describeWorld(ring)} It is ${state}, in epoch ${epoch ?? '–'}. All have ${count(clients, 'client')} together.`
  );
  element('world-problem').hidden = problem === null;
  put(element('world-problem'), `Why it is no member: ${problem}. The log says more.`);
  drawRing(element('ring'), ring);
  const waitingByServer = new Map(outboxes.map((one) => [one.name, one.waiting]));
  const rows = servers.map((server) => [
    server.name === name ? `${name} (this one)` : server.name,
    ...[server.tag, server.url ?? '–', number(waitingByServer.get(server.name) ?? 0)],
    ...[number(server.rows), number(server.clients)]
  ]);
  fillTable('servers', rows);
}

const yesOrNo = (is) => (is ? 'yes' : 'no');
const oneBased = (at) => number(at + 1);

/** What an operator is told of one client: its name, and how its value is said. */
const CLIENT_TERMS = {
  row: ['row', oneBased],
  column: ['column', oneBased],
  parked: ['a poll is parked', yesOrNo],
  waiting: ['sprites wait', number],
  unsent: ['of them not sent yet', number],
  bytes: ['their memory', bytes],
  sequence: ["the newest one's number", number],
  address: ['has joined from', (address) => address ?? 'not known since the restart']
};

/** Returns what is found of a client, as an element. */
async function findClient(id) {
  try {
    const response = await fetch(`clients/${encodeURIComponent(id)}`, { cache: 'no-store' });
    const answer = await response.json();
    if (!response.ok) return make('p', { text: answer.detail ?? answer.title });
    const terms = make('dl');
    const shownTerms = Object.entries(CLIENT_TERMS).map(([member, [name, toText]]) => [
      name,
      toText(answer[member])
    ]);
    fillTerms(terms, shownTerms);
    return terms;
  } catch {
    return make('p', { text: 'The server does not answer.' });
  }
}

let lookUpCount = 0;

async function lookUpClient(event) {
  event.preventDefault();
  const lookUp = (lookUpCount += 1);
  const found = await findClient(element('id').value.trim());
  if (lookUp === lookUpCount) element('found').replaceChildren(found); // Else another one was asked for meanwhile.
}

let lastStatus;
let lastStatusAt;
let plots;
let latestSample;

function showAlarms(overview) {
  const all = alarms(overview, latestSample);
  const words = all.length > 0 ? all : ['Nothing wants attention.'];
  const box = element('alarms');
  if ([...box.children].map((one) => one.textContent).join('\n') === words.join('\n')) return;
  const className = all.length > 0 ? '' : 'calm';
  box.replaceChildren(...words.map((text) => make('li', { text, className })));
}

async function refreshStatus() {
  try {
    const response = await fetch('overview', { cache: 'no-store' });
    const overview = await response.json();
    const receivedAt = performance.now();
    const { status } = overview;
    const seconds = (receivedAt - lastStatusAt) / 1000;
    // Another one has begun in its place.
    if (status.uptime < lastStatus?.uptime) lastStatus = undefined;
    put(element('headline'), headline(overview));
    put(element('program'), programText(overview));
    document.title = `${number(status.clients)} · Sprites: status`;
    showAlarms(overview);
    showLaw(overview);
    showCounts(status, lastStatus, seconds);
    showRefused(status, lastStatus, seconds);
    showFeeds(overview);
    showArenas(overview);
    showThreads(overview);
    showDisk(overview);
    showWorld(status);
    drawTorus(status);
    [lastStatus, lastStatusAt] = [status, receivedAt];
    put(element('asked'), '');
  } catch {
    put(element('asked'), 'The server does not answer: what is here is old. Trying again …');
    lastStatus = undefined;
  }
  setTimeout(refreshStatus, STATUS_INTERVAL);
}

async function refreshHistory() {
  try {
    const samples = await (await fetch('history', { cache: 'no-store' })).json();
    track.take(samples);
    latestSample = samples.at(-1);
    plots ??= PLOTS.map((kind) => new Plot(element('plots'), kind, track, 130));
    for (const plot of plots) plot.show();
  } catch {
    // `refreshStatus` says so.
  }
  setTimeout(refreshHistory, HISTORY_INTERVAL);
}

element('one').addEventListener('submit', lookUpClient);
matchMedia('(prefers-color-scheme: dark)').addEventListener(
  'change',
  () => lastStatus && drawTorus(lastStatus)
);
refreshHistory();
refreshStatus();
