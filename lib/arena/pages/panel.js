import { figures, make, put } from './elements.js';
import { arenaName, ask, base, GameStage, listGames, Room } from './room.js';
import { read, write } from '../page/store.js';

/** The names on the panel: a click hides a name, or shows it again. */

/** Most names in the list. The names on the big screen come first, then the newest. */
const MOST = 200;

class NamesList {
  #root;
  #names = [];
  #shown = new Set();
  #isLate = false;

  /** Version of the names; 0 before the first answer. */
  version = 0;

  /**
   * @param {HTMLElement} root
   * @param {(number: number, away: boolean) => void} choose
   */
  constructor(root, choose) {
    this.#root = root;
    root.addEventListener('click', ({ target }) => {
      const chip = target.closest('button');
      if (chip) choose(Number(chip.dataset.value), chip.getAttribute('aria-pressed') !== 'true');
    });
  }

  /** @param {{version: number, names?: {number: number, name: string, away: boolean}[]}} look the server's answer */
  show({ version, names }) {
    this.version = version;
    this.#names = names ?? this.#names;
    if (names !== undefined || this.#isLate) this.#draw();
  }

  /** @param {Record<string, string>} [names] the names on the big screen now */
  onScreen(names = {}) {
    const shown = new Set(Object.keys(names).map(Number));
    const isSame =
      shown.size === this.#shown.size && [...shown].every((one) => this.#shown.has(one));
    if (isSame) return;
    this.#shown = shown;
    this.#draw();
  }

  #draw() {
    // During a press, a redraw would move another name, or none, under the finger.
    this.#isLate = this.#root.querySelector(':active') !== null;
    if (this.#isLate) return;
    const first = ({ number }) => (this.#shown.has(number) ? 1 : 0);
    const list = this.#names.toSorted((a, b) => first(b) - first(a) || b.number - a.number);
    const sheet = this.#root.closest('section');
    sheet.hidden = list.length === 0;
    const focused = this.#root.contains(document.activeElement)
      ? document.activeElement.dataset.value
      : undefined;
    this.#root.replaceChildren();
    for (const { number, name, away } of list.slice(0, MOST)) {
      const attributes = { 'data-value': number, 'aria-pressed': away };
      const chip = make('button', { className: 'chip', attributes, into: this.#root });
      make('span', { className: 'unseen', text: `Put away player ${number}: `, into: chip });
      make('span', { className: 'called', text: name, into: chip });
      if (focused === String(number)) chip.focus();
    }
    const older = list.length - MOST;
    put(sheet.querySelector('.older'), older > 0 ? `And ${older} older ones.` : '');
  }
}

/** The server's counts as figures, some of them as rates per second since the last look. */

const MEGABYTE = 2 ** 20;

const whole = (value) => Math.round(value).toLocaleString('en');

/** The figures: title, and function of the text. `each` returns a count's growth per second. */
const SHOWN = [
  ['Players here', ({ players }) => whole(players)],
  ['Inputs a second', ({ each }) => whole(each('inputs'))],
  ['Reductions a second', ({ each }) => whole(each('reductions'))],
  ['CPU of one core', ({ each }) => `${whole(each('cpuSeconds') * 100)} %`],
  ['Memory', ({ status }) => `${whole(status.rss / MEGABYTE)} MB`],
  ['Longest stall, last minute', ({ status }) => `${Number(status.recentStallMs).toFixed(1)} ms`]
];

/**
 * @param {HTMLElement} list of definitions
 * @returns {(status: object, look: {players: number, now: number}) => void} shows the server's status, the players of
 *     this arena, and the time of the look, in ms
 */
function counts(list) {
  const show = figures(list, SHOWN);
  let last = null;
  return (status, { players, now }) => {
    const before = last?.status.run === status.run ? last : null;
    last = { status, now };
    const each = (name) =>
      before ? ((status[name] - before.status[name]) * 1000) / (now - before.now) : NaN;
    show({ status, players, each });
  };
}

/** The panel: sends commands with the publisher's token, and shows the value of the control feed. */

const $ = (id) => document.getElementById(id);

const KEY = 'sprites.token';
const LOOK = 1000; // ms between two looks at the server's counts
const name = arenaName();
const controlUrl = new URL(`feed/arena/${name}/control`, base);
const arenaUrl = (path) => new URL(`arena/${name}/${path}`, base);

/** The value of the control feed; and the members of commands that the feed does not have yet. */
let control = null;
let ahead = {};
let players = 0;
let contact = { state: 'joining', words: '' };
let isOut = false; // the last look got no answer
let token = String(read('sessionStorage', KEY) ?? '');
const showCounts = counts($('figures'));

/** Shows the game's panel.js, if it has one. */
let hasPanel = () => false;
const stage = new GameStage({
  file: 'panel.js',
  root: $('own'),
  parts: () => ({ command, content: contentOf(control.game), slider }),
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
    names.onScreen(reduced.names);
    stage.reduced(reduced);
  },
  state(state, words) {
    contact = { state, words };
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
  write('sessionStorage', KEY, null);
  askToken(wrong);
}

$('token-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const entered = $('token').value.trim();
  if (entered === '') return;
  token = entered;
  if (await look()) {
    $('token').value = '';
    write('sessionStorage', KEY, token);
    open();
    $('main').focus();
  }
});
$('forget').addEventListener('click', () => forget(''));

/** Returns the error of an answer, in words. */
const wrongIn = (json) => json?.detail ?? json?.title ?? 'No contact with the server. Try again.';

/** Fetches the counts and shows them. @returns {Promise<boolean>} whether the token is valid */
async function look() {
  if (token === '') return false;
  const used = token;
  const { status, json } = await ask(arenaUrl('status'), { headers: bearer() });
  if (used !== token) return false;
  if (isOut !== (status === 0)) {
    isOut = !isOut;
    if (!isOut) room.wake();
    show();
  }
  if (status === 401) forget('This token is not one of the server’s.');
  else if (status === 200) showLook(json, performance.now());
  // The server may be busy or restarting: the token may be valid, and the page stays as it is.
  else put($('token-wrong'), wrongIn(json));
  return status === 200;
}

function showLook(status, now) {
  showCounts(status, { players, now });
  stage.status(status, now);
  if ($('rate').max === String(status.arenaRate)) return;
  $('rate').max = status.arenaRate;
  show();
}

async function keepLooking() {
  if (!$('main').hidden) {
    if (await look()) await lookAtNames();
    if ($('games').childElementCount === 0) show(); // The list of games has not come yet.
  }
  setTimeout(keepLooking, LOOK);
}

// ---- names of players, and content of games

const names = new NamesList($('names'), async (number, away) => {
  refuse(await change(`names/${number}`, JSON.stringify({ away })));
  await lookAtNames();
});

async function lookAtNames() {
  const url = arenaUrl(`names?after=${names.version}`);
  const { status, json } = await ask(url, { headers: bearer() });
  if (status === 200) names.show(json);
}

/** Sends a change of the arena. @returns {Promise<string>} the error, in words; empty on success */
async function change(path, body) {
  const headers = { ...bearer(), 'Content-Type': 'application/json' };
  const { status, json } = await ask(arenaUrl(path), { method: 'PUT', headers, body });
  return status === 204 ? '' : wrongIn(json);
}

const contentOf = (game) => ({
  async read() {
    const { status, json } = await ask(arenaUrl(`content/${game}`), { headers: bearer() });
    return status === 200 ? json.content : undefined;
  },
  write: (value) => change(`content/${game}`, JSON.stringify(value))
});

// ---- commands

/** Members of the control that the panel shows at once, before the feed has them. */
const AHEAD = ['pace', 'rate', 'settings'];

const followsHand = (members) => Object.keys(members).every((name) => AHEAD.includes(name));

/** Merges two commands. Settings are merged one by one. */
const onTop = (before, members) => ({
  ...before,
  ...members,
  ...((before.settings || members.settings) && {
    settings: { ...before.settings, ...members.settings }
  })
});

/** Returns the control with the members of commands that the feed does not have yet. */
const expected = () => (control === null ? null : onTop(control, ahead));

/** The queue of commands. One is sent at a time, so that none overtakes another. Slider moves that wait are merged. */
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
  refuse('');
  const headers = { ...bearer(), 'Content-Type': 'application/merge-patch+json' };
  const body = JSON.stringify(members);
  const { status, json } = await ask(controlUrl, { method: 'PATCH', headers, body });
  if (status === 200) return;
  if (status === 401) return forget('This token is no longer one of the server’s.');
  refuse(wrongIn(json));
  ahead = {};
  show(); // Back to the values of the control feed.
}

function refuse(wrong) {
  put($('refused'), wrong);
  $('refused').hidden = wrong === '';
}

$('go').addEventListener('click', () => command({ running: !control?.running }));

/** Shows a row of buttons, one of them chosen. Makes new buttons only if the choices have changed. */
function chips(root, choices, chosen, choose) {
  if (root.dataset.choices !== String(choices)) {
    root.dataset.choices = choices;
    root.replaceChildren();
    for (const [value, text] of choices) {
      const attributes = { 'data-value': value };
      const chip = make('button', { className: 'chip', text, attributes, into: root });
      chip.addEventListener('click', () => choose(value));
    }
  }
  for (const chip of root.children) {
    chip.setAttribute('aria-pressed', chip.dataset.value === chosen);
  }
}

/** Makes a slider send its value when it is released. `place` sets it to the feed's value while it is not held. */
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

/** Ranges of the settings of the chosen game; and functions that update its sliders. */
let settings = {};
let sliders = [];

/**
 * Adds a slider for a setting of the game. It follows the setting until another game is chosen.
 *
 * @param {HTMLElement} into
 * @param {string} key
 */
function slider(into, key) {
  const { min, max, integer, title = key } = settings[key];
  // Without `for` the label would belong to the output.
  const id = `setting-${key}`;
  const how = { className: 'slide', text: title, attributes: { for: id } };
  const label = make('label', { ...how, into });
  const output = make('output', { into: label });
  const step = integer ? 1 : (max - min) / 100;
  const attributes = { type: 'range', id, min, max, step, name: key, 'aria-label': title };
  const input = make('input', { attributes, into: label });
  slide(input, output, (value) => command({ settings: { [key]: value } }));
  const follow = () => place(input, output, expected()?.settings[key]);
  sliders.push(follow);
  follow();
}

function showSettings(game) {
  settings = game?.settings ?? {};
  const root = $('settings');
  const has = !game?.panel && Object.keys(settings).length > 0;
  $('settings-sheet').hidden = !has;
  const shown = game === undefined ? '' : `${game.name} ${control?.version}`;
  if (root.dataset.game !== shown) {
    root.dataset.game = shown;
    root.replaceChildren();
    sliders = [];
    if (has) for (const key of Object.keys(settings)) slider(root, key);
  }
  for (const follow of sliders) follow();
}

// ---- what is shown

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

function showOwn(games) {
  hasPanel = (name) => games.some((game) => game.name === name && game.panel);
  $('own-sheet').hidden = !hasPanel(control?.game);
  if (control !== null) stage.control(expected());
}

const upper = (text) => `${text[0].toUpperCase()}${text.slice(1)}`;

async function show() {
  document.body.dataset.state = isOut ? 'offline' : contact.state;
  put($('state'), isOut ? 'No contact, trying again' : contact.words || 'Connected');
  const now = control;
  const games = await listGames(now?.version);
  if (now !== control) return; // The control has changed meanwhile.
  const game = games.find((one) => one.name === control?.game);
  const running = control?.running === true;
  document.body.dataset.running = running;
  put($('game-title'), game?.title ?? control?.game ?? 'No game');
  put($('game-about'), game?.about ?? '');
  const how = running ? 'running' : 'stopped';
  put($('round'), control?.begun ? `Round ${control.round}, ${how}` : 'Not started yet');
  put($('go'), running ? 'Stop' : 'Start');
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
// In the frames of `sprites play` the panel stays: its links open other tabs.
if (self !== top) for (const id of ['to-field', 'to-play']) $(id).target = '_blank';

show();
if (token === '') askToken();
else if (await look()) open();
else if (token !== '') open(); // No contact now: the looks continue.
keepLooking();
