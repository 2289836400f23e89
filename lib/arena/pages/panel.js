import { make, put } from './elements.js';
import { listGames } from './games-list.js';
import { Figures } from './figures.js';
import { arenaName, base, GameStage, Room } from './room.js';

/** The panel: says what is played, with the publisher's token. What it shows is what the control feed says. */

const $ = (id) => document.getElementById(id);

const KEY = 'sprites.token';
const LOOK = 1000; // ms between two looks at the server's counts
const name = arenaName();
const controlUrl = new URL(`feed/arena/${name}/control`, base);

/** What the control feed says, and what commands say that it does not say yet. */
let control = null;
let ahead = {};
let players = 0;
let contact = 'asking';
let token = sessionStorage.getItem(KEY) ?? '';
const figures = new Figures($('figures'));

/** What a game has for the panel itself: its panel.js, where it has one. */
let hasPanel = () => false;
const stage = new GameStage({
  file: 'panel.js',
  root: $('own'),
  parts: () => ({ command }),
  nameOf: ({ game }) => (hasPanel(game) ? game : null),
  onChange: (game, why = '') => put($('own-failed'), why)
});

const room = new Room({
  control(value) {
    if (!commands.busy || value?.game !== control?.game) ahead = {};
    control = value ?? null;
    show();
  },
  reduced(reduced) {
    players = reduced.players;
    stage.reduced(reduced);
  },
  state(state) {
    contact = state;
    show();
  }
});

// ---- the token

const bearer = () => ({ Authorization: `Bearer ${token}` });

function askToken(wrong = '') {
  $('token-form').hidden = false;
  $('main').hidden = true;
  $('forget').hidden = true;
  put($('token-wrong'), wrong);
  $('token').focus();
}

function open() {
  $('token-form').hidden = true;
  $('main').hidden = false;
  $('forget').hidden = false;
  room.watchReduced(true);
}

function forget(wrong) {
  token = '';
  ahead = {};
  commands.waiting.length = 0;
  sessionStorage.removeItem(KEY);
  askToken(wrong);
}

$('token-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const entered = $('token').value.trim();
  if (entered === '') return;
  token = entered;
  if (await look()) {
    $('token').value = '';
    sessionStorage.setItem(KEY, token);
    open();
  }
});
$('forget').addEventListener('click', () => forget(''));

/** Looks at the counts. @returns {Promise<boolean>} whether the token is good */
async function look() {
  if (token === '') return false;
  const used = token;
  try {
    const response = await fetch(new URL(`arena/${name}/status`, base), { headers: bearer() });
    const json = await response.json();
    if (used !== token) return false;
    if (response.status === 401) forget('This token is not one of the server’s.');
    else if (response.ok) showLook(json, performance.now());
    // Of a server that is busy or starts anew: the token may be good, and what is shown stays.
    else put($('token-wrong'), json.detail ?? json.title);
    return response.ok;
  } catch {
    put($('token-wrong'), 'No contact with the server.');
    return false;
  }
}

function showLook(status, now) {
  figures.show(status, { players, now });
  stage.status(status, now);
}

async function keepLooking() {
  if (!$('main').hidden) {
    await look();
    if ($('games').childElementCount === 0) show(); // The list of them has not come yet.
  }
  setTimeout(keepLooking, LOOK);
}

// ---- commands

/** Members of the control feed's value that follow the hand at once, before the feed has them. */
const AHEAD = ['pace', 'rate', 'settings'];

const followsHand = (members) => Object.keys(members).every((name) => AHEAD.includes(name));

/** A command on top of others: settings are added to. */
const onTop = (before, members) => ({
  ...before,
  ...members,
  ...((before.settings || members.settings) && {
    settings: { ...before.settings, ...members.settings }
  })
});

/** The control feed's value as it will be. */
const expected = () => (control === null ? null : onTop(control, ahead));

/** One command at a time, so that none overtakes another; what the hand does meanwhile goes as one. */
const commands = { busy: false, waiting: [] };

/** @param {object} members of the control feed's value */
async function command(members) {
  const { waiting } = commands;
  if (followsHand(members)) ahead = onTop(ahead, members);
  const last = waiting.at(-1);
  const isOne = last !== undefined && followsHand(last) && followsHand(members);
  if (isOne) waiting.splice(-1, 1, onTop(last, members));
  else waiting.push(members);
  if (commands.busy) return;
  commands.busy = true;
  while (waiting.length > 0) await send(waiting.shift());
  commands.busy = false;
}

async function send(members) {
  put($('refused'), '');
  $('refused').hidden = true;
  let wrong = 'No contact with the server: nothing has changed.';
  try {
    const response = await fetch(controlUrl, {
      method: 'PATCH',
      headers: { ...bearer(), 'Content-Type': 'application/merge-patch+json' },
      body: JSON.stringify(members)
    });
    if (response.ok) return;
    const { detail, title } = await response.json();
    if (response.status === 401) return forget('This token is no longer one of the server’s.');
    wrong = detail ?? title;
  } catch {
    // No answer, or none of this server's: said below.
  }
  put($('refused'), wrong);
  $('refused').hidden = false;
  ahead = {};
  show(); // What the control feed says holds.
}

$('go').addEventListener('click', () => command({ running: !control?.running }));

/** A row of buttons, of which one is chosen; they are made anew only when they are others. */
function chips(root, choices, chosen, choose) {
  const names = choices.map(([value]) => value).join(' ');
  if (root.dataset.names !== names) {
    root.dataset.names = names;
    root.replaceChildren();
    for (const [value, text] of choices) {
      const attributes = { type: 'button', 'data-value': value };
      const chip = make('button', { className: 'chip', text, attributes, into: root });
      chip.addEventListener('click', () => choose(value));
    }
  }
  for (const chip of root.children) {
    chip.setAttribute('aria-pressed', chip.dataset.value === chosen);
  }
}

/** A slider sends its value when it is let go, and follows the feed when nobody holds it. */
function slide(input, output, send) {
  input.addEventListener('input', () => put(output, input.value));
  input.addEventListener('change', () => send(Number(input.value)));
}

function place(input, output, value) {
  if (value === undefined || input.matches(':active')) return;
  input.value = value;
  put(output, value);
}

slide($('pace'), $('pace-value'), (pace) => command({ pace }));
slide($('rate'), $('rate-value'), (rate) => command({ rate }));

function showSettings(game) {
  const settings = Object.entries(game?.settings ?? {});
  const root = $('settings');
  $('settings-sheet').hidden = settings.length === 0 || game.panel;
  const shown = game === undefined ? '' : `${game.name} ${control?.version}`;
  if (root.dataset.game !== shown) {
    root.dataset.game = shown;
    root.replaceChildren();
    for (const [key, { min, max, integer, title = key }] of settings) {
      // Without `for` a label is that of its output.
      const id = `setting-${key}`;
      const how = { className: 'slide', text: title, attributes: { for: id } };
      const label = make('label', { ...how, into: root });
      const output = make('output', { into: label });
      const step = integer ? 1 : (max - min) / 100;
      const attributes = { type: 'range', id, min, max, step, name: key, 'aria-label': title };
      const input = make('input', { attributes, into: label });
      slide(input, output, (value) => command({ settings: { [key]: value } }));
    }
  }
  for (const input of root.querySelectorAll('input')) {
    place(input, input.previousElementSibling, expected()?.settings?.[input.name]);
  }
}

// ---- what holds

const WHY = {
  threw: 'its reducer threw',
  'too-slow': 'its reducer took too long',
  'bad-value': 'its reducer gave back what can’t be published',
  'not-loaded': 'it could not be loaded'
};

function showFailed(games) {
  const { failed = null } = control ?? {};
  $('failed').hidden = failed === null;
  if (failed === null) return;
  const { game, why, message, at, stack = [] } = failed;
  const title = games.find((one) => one.name === game)?.title ?? game;
  const where = at ? ` (${at})` : '';
  put($('failed-words'), `${title} was stopped: ${WHY[why] ?? why}. ${message ?? ''}${where}`);
  put($('failed-stack'), stack.length > 1 ? stack.map((line) => `at ${line}`).join('\n') : '');
}

function stateWords() {
  if (contact === 'offline') return 'No contact, trying again';
  if (contact !== 'online') return 'Connecting…';
  return control === null ? 'There is no such arena' : 'Connected';
}

function showOwn(games) {
  hasPanel = (name) => games.some((game) => game.name === name && game.panel);
  $('own-sheet').hidden = !hasPanel(control?.game);
  if (control !== null) stage.control(expected());
}

const upper = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

async function show() {
  document.body.dataset.state = { asking: 'joining' }[contact] ?? contact;
  put($('state'), stateWords());
  const games = await listGames(control?.version);
  const game = games.find((one) => one.name === control?.game);
  const running = control?.running === true;
  document.body.dataset.running = running;
  put($('game-title'), game?.title ?? control?.game ?? 'No game');
  put($('game-about'), game?.about ?? '');
  put(
    $('round'),
    control?.round > 0
      ? `Round ${control.round}, ${running ? 'running' : 'stopped'}`
      : 'Not started yet'
  );
  put($('go'), running ? 'Stop' : 'Start');
  $('go').setAttribute('aria-pressed', running);
  $('go').disabled = !control?.game;
  const choices = games.map((one) => [one.name, one.title]);
  chips($('games'), choices, control?.game, (chosen) => command({ game: chosen }));
  const pages = ['lobby', ...(game?.pages ?? [])].map((page) => [page, upper(page)]);
  chips($('pages'), pages, control?.page, (page) => command({ page }));
  place($('pace'), $('pace-value'), expected()?.pace);
  place($('rate'), $('rate-value'), expected()?.rate);
  showSettings(game);
  showOwn(games);
  showFailed(games);
}

put($('heading'), upper(name));
document.title = `Panel · ${name}`;
$('to-field').href = new URL(`field/${name}`, base).href;
$('to-play').href = new URL(`play/${name}`, base).href;

show();
if (token === '') askToken();
else if (await look()) open();
else if (token !== '') open(); // No contact just now: the looks go on.
keepLooking();
