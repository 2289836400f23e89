import { make, put } from './arena-pages/elements.js';
import { Plot } from './arena-pages/plots.js';
import { alarms, bytes, count, headline, number, program, span } from './admin-words.js';
import { between, quantile } from './quantile.js';
import { describeWorld, drawRing, readWorld } from './ring.js';

/**
 * The page for people at the admin port: it asks for everything every two seconds, for the last hour every ten, and says
 * how fast those counts grow that only grow.
 */

const EVERY = 2000;
const HISTORY_EVERY = 10_000;

/**
 * The counts that are shown: the member of /status, its name, and what of it since the last look: true for
 * its rate, a number for that quantile of the delivery times.
 */
const COUNTS = [
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

/** Plots are of an hour; the time below them is that of the wall. */
const hour = {
  span: 3600,
  time: {
    incrs: [60, 120, 300, 600, 900, 1800],
    values: (plot, all) =>
      all.map((at) =>
        new Date(at * 1000).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' })
      )
  }
};

const line = (name, words, color = 'along', dashed = false) => ({ name, words, color, dashed });

const PLOTS = [
  {
    ...{ id: 'clients', title: 'Clients', unit: 'count', ...hour },
    series: [line('clients', 'with a place'), line('watching', 'watchers', 'self', true)]
  },
  {
    ...{ id: 'rates', title: 'Traffic, a second', unit: 'count', ...hour },
    series: [
      line('throws', 'throws', 'across'),
      line('documents', 'documents', 'self', true),
      line('inputs', 'inputs', 'along', true)
    ]
  },
  {
    ...{ id: 'wait', title: 'Wait of 99 in 100', unit: 'time', ...hour },
    series: [line('p99', 'sprites', 'across')]
  },
  {
    ...{ id: 'cpu', title: 'Processor', unit: 'cores', ...hour, most: 0.1 },
    series: [line('cpu', 'of a core', 'self')]
  },
  {
    ...{ id: 'memory', title: 'Memory', unit: 'bytes', ...hour, most: 2 ** 20 },
    series: [line('rss', 'resident'), line('feedMemory', 'feeds', 'self', true)]
  },
  {
    ...{ id: 'refused', title: 'Refused a second', unit: 'count', ...hour },
    series: [line('refused', 'requests', 'across')]
  }
];

const element = (id) => document.getElementById(id);

/** The heads of the tables, by the ids of their bodies. */
const TABLES = {
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
for (const [id, heads] of Object.entries(TABLES)) {
  const table = make('table', { into: element(`${id}-rows`) });
  const row = make('tr', { into: make('thead', { into: table }) });
  for (const text of heads) make('th', { text, attributes: { scope: 'col' }, into: row });
  make('tbody', { attributes: { id }, into: table });
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
function fill(id, rows, ifNone) {
  const body = element(id);
  const texts = rows.length > 0 ? rows : [[ifNone]];
  while (body.rows.length > texts.length) body.deleteRow(-1);
  for (const [at, [head, ...cells]] of texts.entries()) {
    const row = body.rows[at] ?? body.insertRow();
    if (row.cells.length !== cells.length + 1) {
      row.replaceChildren(make('th', { attributes: { scope: 'row' } }));
      for (let i = 0; i < cells.length; i += 1) row.insertCell();
    }
    for (const [i, text] of [head, ...cells].entries()) put(row.cells[i], text);
  }
}

/** Fills a list of terms. */
function list(box, terms) {
  const parts = terms.flatMap(([name, text]) => [
    make('dt', { text: name }),
    make('dd', { text: String(text) })
  ]);
  box.replaceChildren(...parts);
}

function showCounts(now, before, seconds) {
  const rows = COUNTS.filter(([member]) => now[member] !== undefined).map(
    ([member, name, lately]) => {
      const value = now[member];
      const shown = lately === 'bytes' ? bytes(value) : value === null ? '–' : number(value);
      if (before === undefined || lately === undefined || lately === 'bytes') {
        return [name, shown, ''];
      }
      if (lately === true) return [name, shown, rateOf(value, before[member], seconds)];
      const share = quantile(between(before.deliveryTimes, now.deliveryTimes), lately);
      return [name, shown, share === null ? '' : `${number(share)} now`];
    }
  );
  fill('counts', rows);
}

function showRefused({ refused = {} }, before, seconds) {
  const rows = Object.entries(refused)
    .toSorted(([, one], [, other]) => other - one)
    .map(([problem, many]) => [
      problem,
      number(many),
      before === undefined ? '' : rateOf(many, before.refused[problem] ?? 0, seconds)
    ]);
  fill('refused', rows, 'nothing since the start');
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
  const { feeds: all = 0, watching = 0, feedMemory = 0 } = status;
  put(
    element('feeds-words'),
    `${count(all, 'feed')} of ${number(bounds.feeds)} and ${count(watching, 'watcher')}; ` +
      `${bytes(feedMemory)} of ${bytes(bounds.feedMemory)}.` +
      (all > feeds.length ? ` The ${feeds.length} with the most watchers:` : '')
  );
  const rows = feeds.map(({ key, watching: many, bytes: size, version, upstream }) => [
    upstream ? `${key} (fetched)` : key,
    number(many),
    bytes(size),
    number(version)
  ]);
  fill('feeds', rows, 'none');
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
  fill('arenas', rows);
}

function showThreads({ workers, status }) {
  const row = (words, { connections = 0, requests = 0, heldBytes = 0 }) => [
    words,
    number(connections),
    number(requests),
    bytes(heldBytes)
  ];
  fill('threads', [row('all', status), ...workers.map((one, i) => row(`worker ${i + 1}`, one))]);
}

function showDisk({ state, disk, status }) {
  put(
    element('disk-words'),
    state === null
      ? 'No state is kept: when the process ends, places and sprites are gone (--state).'
      : `${state.file}, on the disk ${{ never: 'when the system likes', second: 'within a second', turn: 'before answers go' }[state.sync]}.`
  );
  const room = disk && `${bytes(disk.free)} of ${bytes(disk.size)} in ${disk.folder}`;
  list(
    element('disk'),
    state === null
      ? []
      : [
          ['free', room ?? 'not known'],
          ['journal', bytes(status.journalBytes)],
          ['not yet on the disk', bytes(status.journalUnsynced)],
          ['not yet written', bytes(status.journalBacklog)],
          ['longest write', span(status.journalLongestWriteSeconds)],
          ['snapshots', `${number(status.snapshots)}, ${number(status.snapshotsFailed)} failed`]
        ]
  );
}

/** Draws the torus: a field a place, those that are taken full. */
function draw({ clients, rows, columns }) {
  const places = rows * columns;
  put(
    element('torus'),
    `${count(rows, 'row')} of ${count(columns, 'column')};` +
      ` ${number(clients)} of ${count(places, 'place')} taken.` +
      ' (The map shows how many, not which.)'
  );
  const map = element('map');
  const paint = map.getContext('2d');
  paint.clearRect(0, 0, map.width, map.height);
  if (places === 0) return;
  paint.fillStyle = getComputedStyle(map).color;
  const [wide, high] = [map.width / columns, map.height / rows];
  const gap = Math.min(wide, high) > 4 ? 1 : 0;
  // A map of a million places has fewer points than they are: then it is as full as they are.
  if (Math.min(wide, high) < 1) {
    paint.globalAlpha = clients / places;
    paint.fillRect(0, 0, map.width, map.height);
    paint.globalAlpha = 1;
    return;
  }
  for (let i = 0; i < clients; i += 1) {
    const [column, row] = [i % columns, Math.floor(i / columns)];
    paint.fillRect(column * wide, row * high, wide - gap, high - gap);
  }
}

/** The last of it that is shown, as JSON. */
let shownWorld;

/** Shows the servers of the ring. */
function showWorld({ world }) {
  const news = JSON.stringify(world);
  if (news === shownWorld) return;
  shownWorld = news;
  const read = readWorld(world);
  element('world').hidden = read === null;
  if (read === null) return;
  const { name, state, problem, epoch, servers, outboxes, clients } = world;
  put(
    element('world-words'),
    `${describeWorld(read)} It is ${state}, in epoch ${epoch ?? '–'}. All have ${count(clients, 'client')} together.`
  );
  element('world-problem').hidden = problem === null;
  put(element('world-problem'), `Why it is no member: ${problem}. The log says more.`);
  drawRing(element('ring'), read);
  const waiting = new Map(outboxes.map((one) => [one.name, one.waiting]));
  const rows = servers.map((server) => [
    server.name === name ? `${name} (this one)` : server.name,
    ...[server.tag, server.url ?? '–', number(waiting.get(server.name) ?? 0)],
    ...[number(server.rows), number(server.clients)]
  ]);
  fill('servers', rows);
}

const yesNo = (is) => (is ? 'yes' : 'no');
const fromOne = (at) => number(at + 1);

/** What an operator is told of one client: its name, and how its value is said. */
const OF_CLIENT = {
  row: ['row', fromOne],
  column: ['column', fromOne],
  parked: ['a poll is parked', yesNo],
  waiting: ['sprites wait', number],
  unsent: ['of them not sent yet', number],
  bytes: ['their memory', bytes],
  sequence: ["the newest one's number", number],
  address: ['has joined from', (address) => address ?? 'not known since the restart']
};

async function lookUp(event) {
  event.preventDefault();
  const box = element('found');
  const id = element('id').value.trim();
  try {
    const response = await fetch(`clients/${encodeURIComponent(id)}`, { cache: 'no-store' });
    const answer = await response.json();
    if (!response.ok) {
      box.replaceChildren(make('p', { text: answer.detail ?? answer.title }));
      return;
    }
    const terms = make('dl');
    const worded = Object.entries(OF_CLIENT).map(([member, [name, say]]) => [
      name,
      say(answer[member])
    ]);
    list(terms, worded);
    box.replaceChildren(terms);
  } catch {
    box.replaceChildren(make('p', { text: 'The server does not answer.' }));
  }
}

let before;
let askedAt;
let plots;
let latest;

function showAlarms(overview) {
  const all = alarms(overview, latest);
  const words = all.length > 0 ? all : ['Nothing wants attention.'];
  const box = element('alarms');
  if ([...box.children].map((one) => one.textContent).join('\n') === words.join('\n')) return;
  const className = all.length > 0 ? '' : 'calm';
  box.replaceChildren(...words.map((text) => make('li', { text, className })));
}

async function look() {
  try {
    const response = await fetch('overview', { cache: 'no-store' });
    const overview = await response.json();
    const at = performance.now();
    const { status } = overview;
    const seconds = (at - askedAt) / 1000;
    // Another one has begun in its place.
    if (status.uptime < before?.uptime) before = undefined;
    put(element('headline'), headline(overview));
    put(element('program'), program(overview));
    document.title = `${number(status.clients)} · Sprites: status`;
    showAlarms(overview);
    showLaw(overview);
    showCounts(status, before, seconds);
    showRefused(status, before, seconds);
    showFeeds(overview);
    showArenas(overview);
    showThreads(overview);
    showDisk(overview);
    showWorld(status);
    draw(status);
    [before, askedAt] = [status, at];
    put(element('asked'), '');
  } catch {
    put(element('asked'), 'The server does not answer: what is here is old. Trying again …');
    before = undefined;
  }
  setTimeout(look, EVERY);
}

async function lookBack() {
  try {
    const samples = await (await fetch('history', { cache: 'no-store' })).json();
    track.take(samples);
    latest = samples.at(-1);
    plots ??= PLOTS.map((kind) => new Plot(element('plots'), kind, track, 130));
    for (const plot of plots) plot.show();
  } catch {
    // `look` says so.
  }
  setTimeout(lookBack, HISTORY_EVERY);
}

element('one').addEventListener('submit', lookUp);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => before && draw(before));
lookBack();
look();
