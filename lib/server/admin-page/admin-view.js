/**
 * The page for people at the admin port: it asks for the counts every two seconds, and says how fast
 * those grow that only grow.
 */

const EVERY = 2000;

/** What is shown, by group: the member of /status, its name, and whether its rate is. */
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
    for (const [i, [member, , grows]] of rows.entries()) {
      cells[i][0].textContent = number.format(now[member] ?? 0);
      if (!grows || before === undefined) continue;
      const rate = (now[member] - before[member]) / seconds;
      cells[i][1].textContent = `${number.format(Math.round(rate * 10) / 10)} /s`;
    }
  };
}

const tables = Object.entries(GROUPS).map(([title, rows]) => table(title, rows));

/** Draws the torus: a field a place, those that are taken full. */
function draw({ clients, rows, columns }) {
  const places = rows * columns;
  element('torus').textContent =
    `${number.format(rows)} rows of ${number.format(columns)} columns;` +
    ` ${number.format(clients)} of ${number.format(places)} places are taken.` +
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

let before;
let askedAt;

async function look() {
  try {
    const response = await fetch('status', { cache: 'no-store' });
    const now = await response.json();
    const at = performance.now();
    for (const fill of tables) fill(now, before, (at - askedAt) / 1000);
    draw(now);
    [before, askedAt] = [now, at];
    element('state').textContent = `As of ${new Date().toLocaleTimeString()}.`;
  } catch {
    element('state').textContent = 'The server does not answer. Trying again …';
    before = undefined;
  }
  setTimeout(look, EVERY);
}

look();
