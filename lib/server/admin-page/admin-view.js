import { quantile } from './quantile.js';
import { drawRing, longWords, readWorld } from './ring.js';

/**
 * The page for people at the admin port: it asks for the counts every two seconds, and says how fast
 * those grow that only grow.
 */

const EVERY = 2000;

/**
 * What is shown, by group: the member of /status, its name, and what of it since the last look: true for
 * its rate, a number for that quantile of the delivery times.
 */
const GROUPS = {
  Clients: [
    ['clients', 'with a place'],
    ['parked', 'polls parked'],
    ['joined', 'joined', true],
    ['left', 'left', true],
    ['expired', 'expired', true]
  ],
  Sprites: [
    ['thrown', 'thrown', true],
    ['acked', 'acknowledged', true],
    ['waiting', 'waiting'],
    ['lost', 'lost', true],
    ['crossedIn', 'came from other servers', true],
    ['crossedOut', 'taken by other servers', true],
    ['deliveryMsP50', 'median wait, ms', 0.5],
    ['deliveryMsP99', 'wait of 99 in 100, ms', 0.99],
    ['mailboxBytes', 'bytes in mailboxes']
  ],
  Server: [
    ['connections', 'connections'],
    ['nodeConnections', "of them Node's"],
    ['workers', 'workers'],
    ['workerDeaths', 'worker deaths'],
    ['rss', 'resident bytes'],
    ['longestStallMs', 'longest stall, ms'],
    ['uptime', 'uptime, s']
  ]
};

const element = (id) => document.getElementById(id);
const number = new Intl.NumberFormat('en');

const count = (many, what) => `${number.format(many)} ${what}${many === 1 ? '' : 's'}`;
const tenths = (value) => number.format(Math.round(value * 10) / 10);

/** What was counted between two looks. */
const since = (before, { bounds, counts }) => ({
  bounds,
  counts: counts.map((count, i) => count - before.counts[i])
});

/** A table of a group's counts; gives what fills it in. */
function table(title, rows) {
  const made = document.createElement('table');
  const caption = made.createCaption();
  caption.textContent = title;
  const cells = rows.map(([, name]) => {
    const row = made.insertRow();
    const head = document.createElement('th');
    head.scope = 'row';
    head.textContent = name;
    row.append(head);
    return [row.insertCell(), row.insertCell()];
  });
  element('groups').append(made);
  return (now, before, seconds) => {
    for (const [i, [member, , lately]] of rows.entries()) {
      const [whole, part] = cells[i];
      whole.textContent = now[member] === null ? '–' : number.format(now[member] ?? 0);
      if (before === undefined) continue;
      if (lately === true) {
        const rate = (now[member] - before[member]) / seconds;
        part.textContent = `${tenths(rate)} /s`;
      } else if (lately !== undefined) {
        const share = quantile(since(before.deliveryTimes, now.deliveryTimes), lately);
        part.textContent = share === null ? '' : `${tenths(share)} now`;
      }
    }
  };
}

const tables = Object.entries(GROUPS).map(([title, rows]) => table(title, rows));

/** Draws the torus: a field a place, those that are taken full. */
function draw({ clients, rows, columns }) {
  const places = rows * columns;
  element('torus').textContent =
    `${count(rows, 'row')} of ${count(columns, 'column')};` +
    ` ${number.format(clients)} of ${count(places, 'place')} taken.` +
    ' (The map shows how many, not which.)';
  const map = element('map');
  const paint = map.getContext('2d');
  paint.clearRect(0, 0, map.width, map.height);
  if (places === 0) return;
  paint.fillStyle = getComputedStyle(document.body).color;
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

/** Shows who is in the ring. */
function showWorld({ world }) {
  const news = JSON.stringify(world);
  if (news === shownWorld) return;
  shownWorld = news;
  const read = readWorld(world);
  element('world').hidden = read === null;
  if (read === null) return;
  const { name, state, problem, epoch, servers, outboxes } = world;
  element('world-words').textContent =
    `${longWords(read)} It is ${state}, in epoch ${epoch ?? '–'}.`;
  element('world-problem').hidden = problem === null;
  element('world-problem').textContent = `Why it is no member: ${problem}. The log says more.`;
  drawRing(element('ring'), read);
  const waiting = new Map(outboxes.map((one) => [one.name, one.waiting]));
  const rows = servers.map((server) => {
    const row = document.createElement('tr');
    const head = document.createElement('th');
    head.scope = 'row';
    head.textContent = server.name === name ? `${name} (this one)` : server.name;
    row.append(head);
    const cells = [server.tag, server.url ?? '–', waiting.get(server.name) ?? 0, server.rows];
    for (const cell of cells) row.insertCell().textContent = cell;
    return row;
  });
  element('servers').replaceChildren(...rows);
}

let before;
let askedAt;

async function look() {
  try {
    const response = await fetch('status', { cache: 'no-store' });
    const now = await response.json();
    const at = performance.now();
    for (const fill of tables) fill(now, before, (at - askedAt) / 1000);
    draw(now);
    showWorld(now);
    [before, askedAt] = [now, at];
    element('state').textContent = `As of ${new Date().toLocaleTimeString()}.`;
  } catch {
    element('state').textContent = 'The server does not answer. Trying again …';
    before = undefined;
  }
  setTimeout(look, EVERY);
}

look();
