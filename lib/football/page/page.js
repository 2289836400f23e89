import { Feeds } from './client/feeds.js';

/** The match centre: shows the newest value of one feed, and marks what has changed in it. */

const { sprites, feed } = document.body.dataset;
const byId = (id) => document.getElementById(id);

const SIDES = ['home', 'away'];

const TOTALS = {
  possession: 'Possession, %',
  shots: 'Shots',
  shotsOnTarget: 'On target',
  expectedGoals: 'Expected goals',
  corners: 'Corners',
  passes: 'Passes',
  accuracy: 'Arrived, %',
  fouls: 'Fouls'
};

const COLUMNS = {
  '#': ({ number }) => number,
  Player: ({ name }) => name,
  Pos: ({ position }) => position,
  Touches: ({ numbers }) => numbers.touches,
  Passes: ({ numbers }) => `${numbers.passesCompleted}/${numbers.passes}`,
  Shots: ({ numbers }) => numbers.shots,
  Won: ({ numbers }) => numbers.duelsWon + numbers.interceptions,
  km: ({ numbers }) => (numbers.metres / 1000).toFixed(1),
  Rating: (player) => (hasPlayed(player) ? player.rating.toFixed(1) : '–')
};

const hasPlayed = ({ on, numbers }) => on || numbers.touches > 0;

/** What shows a part of the value: {element, read, shown}. */
const bindings = [];

function make(tag, { className = '', text = '', into } = {}) {
  const element = document.createElement(tag);
  element.className = className;
  element.textContent = text;
  into?.append(element);
  return element;
}

/** Has an element show what `read` says of the match, from now on. */
function bind(element, read) {
  bindings.push({ element, read, shown: undefined });
  return element;
}

/** Builds what depends on who plays; the numbers come by `bindings`. */
function build(match) {
  bindings.length = 0;
  bind(byId('competition'), ({ competition, venue }) => `${competition} · ${venue.name}`);
  bind(byId('period'), ({ period }) => period);
  bind(
    byId('clock'),
    ({ clock: { minute, second } }) => `${minute}:${String(second).padStart(2, 0)}`
  );
  for (const old of document.querySelectorAll('.player')) old.remove();
  for (const side of SIDES) {
    const { name, color } = match.teams[side];
    document.documentElement.style.setProperty(`--${side}`, color);
    byId(`${side}-name`).textContent = name;
    byId(`${side}-players-name`).textContent = name;
    bind(byId(`${side}-goals`), ({ score }) => score[side]);
    buildPlayers(side, match.teams[side].players);
  }
  const totals = byId('totals');
  totals.replaceChildren();
  for (const [name, title] of Object.entries(TOTALS)) {
    const row = make('div', { className: 'total', into: totals });
    bind(make('b', { into: row }), ({ teams }) => teams.home.totals[name]);
    make('span', { text: title, into: row });
    bind(make('b', { into: row }), ({ teams }) => teams.away.totals[name]);
    const bar = make('i', { className: 'bar', into: row });
    bar.dataset.name = name;
  }
}

function buildPlayers(side, players) {
  const table = byId(`${side}-players`);
  table.replaceChildren();
  const head = make('tr', { into: make('thead', { into: table }) });
  for (const title of Object.keys(COLUMNS)) make('th', { text: title, into: head }).scope = 'col';
  const body = make('tbody', { into: table });
  for (const [at, { id, number, name }] of players.entries()) {
    const row = make('tr', { into: body });
    row.dataset.player = id;
    for (const read of Object.values(COLUMNS)) {
      bind(make('td', { into: row }), ({ teams }) => read(teams[side].players[at]));
    }
    const dot = make('i', { className: `player ${side}`, text: number, into: byId('pitch') });
    dot.dataset.player = id;
    dot.title = name;
  }
}

/** Marks it until the next version comes; then it fades. */
const mark = (element) => element.classList.add('changed');

function show(match) {
  for (const element of document.querySelectorAll('.changed')) element.classList.remove('changed');
  for (const binding of bindings) {
    const text = String(binding.read(match));
    if (text === binding.shown) continue;
    binding.element.textContent = text;
    // The clock always changes: nobody needs to be told.
    if (binding.shown !== undefined && binding.element.id !== 'clock') mark(binding.element);
    binding.shown = text;
  }
  for (const bar of document.querySelectorAll('.bar')) {
    const [home, away] = SIDES.map((side) => match.teams[side].totals[bar.dataset.name]);
    bar.style.setProperty('--share', home + away === 0 ? 0.5 : home / (home + away));
  }
  for (const side of SIDES) showTeam(side, match);
  showEvents(match);
  showMomentum(match);
  place(byId('ball'), match.ball);
}

function place(element, { x, y }) {
  element.style.left = `${x}%`;
  element.style.top = `${y}%`;
}

function showTeam(side, { teams, events }) {
  const { players } = teams[side];
  for (const { id, on, place: at, rating } of players) {
    const dot = document.querySelector(`.player[data-player="${id}"]`);
    dot.hidden = !on;
    place(dot, { x: side === 'home' ? at.x : 100 - at.x, y: at.y });
    const row = document.querySelector(`tr[data-player="${id}"]`);
    row.classList.toggle('off', !on);
    row.lastChild.dataset.grade = rating >= 8 ? 'high' : rating < 6 ? 'low' : 'usual';
  }
  const goals = events.filter(({ type, team }) => type === 'goal' && team === side).reverse();
  const scorers = goals.map(({ player, minute }) => {
    const { name } = players.find(({ id }) => id === player);
    return make('li', { text: `${name} ${minute}′` });
  });
  byId(`${side}-scorers`).replaceChildren(...scorers);
}

/** New ones come on top, those too old go at the bottom; the others stay as they are. */
function showEvents({ events }) {
  const list = byId('events');
  const known = new Set(Array.from(list.children, ({ dataset }) => dataset.event));
  const isFirst = known.size === 0;
  for (const { id, type, minute, text, team } of [...events].reverse()) {
    if (known.delete(String(id))) continue;
    const item = make('li', { className: `${type} ${team ?? ''}` });
    item.dataset.event = id;
    make('time', { text: `${minute}′`, into: item });
    make('span', { text, into: item });
    list.prepend(item);
    if (!isFirst) mark(item);
  }
  for (const id of known) list.querySelector(`[data-event="${id}"]`).remove();
}

function showMomentum({ momentum }) {
  const chart = byId('momentum');
  while (chart.children.length > momentum.length) chart.lastChild.remove();
  for (const [minute, height] of momentum.entries()) {
    const bar = chart.children[minute] ?? make('i', { into: chart });
    bar.className = height >= 0 ? 'home' : 'away';
    bar.style.setProperty('--height', Math.min(1, Math.abs(height) / 12));
  }
}

// ---- what it takes to bring it

const size = (bytes) => (bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} kB`);
const bytesOf = (value) => new TextEncoder().encode(JSON.stringify(value)).length;

function showTraffic(value, patch) {
  const whole = bytesOf(value);
  const came = patch
    ? `${patch.length} changes in ${size(bytesOf(patch))}, where the whole match is ${size(whole)}`
    : `the whole match, ${size(whole)}`;
  byId('traffic').textContent = `The last answer: ${came}.`;
}

// ---- the feed

let shown; // the match that the page is built for

const feeds = new Feeds({
  base: sprites,
  onState: (state) => {
    const words = { asking: 'connecting', online: 'live', offline: 'no contact, trying again' };
    byId('contact').textContent = words[state] ?? state;
    byId('contact').dataset.state = state;
  }
});

feeds.watch(feed, (match, { patch, problem, cursor }) => {
  if (problem) {
    byId('traffic').textContent = `No match: ${problem}. Is the provider running?`;
    return;
  }
  if (shown !== match.id) {
    byId('events').replaceChildren();
    build(match);
  }
  shown = match.id;
  document.querySelector('main').hidden = false;
  show(match);
  showTraffic(match, patch);
  document.body.dataset.cursor = cursor;
});

addEventListener('online', () => feeds.wake());
document.addEventListener('visibilitychange', () => {
  if (document.visibilityState === 'visible') feeds.wake();
});
