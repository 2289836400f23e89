import { figures, make, put } from './elements.js';
import { arenaName, ask, base, GameStage, listGames, Room } from './room.js';
import { read, write } from '../page/store.js';

/** The names on the panel: a click puts one away, or brings it back. */

/** Names that are shown: those on the screen first, then the newest. */
const MOST = 200;

class NamesList {
  #root;
  #names = [];
  #shown = new Set();
  #isLate = false;

  /** What the list is of; 0: nothing yet. */
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

  /** @param {{version: number, names?: {number: number, name: string, away: boolean}[]}} look as the server says */
  show({ version, names }) {
    this.version = version;
    this.#names = names ?? this.#names;
    if (names !== undefined || this.#isLate) this.#draw();
  }

  /** @param {Record<string, string>} [names] that are on the big screen now */
  onScreen(names = {}) {
    const shown = new Set(Object.keys(names).map(Number));
    const isSame =
      shown.size === this.#shown.size && [...shown].every((one) => this.#shown.has(one));
    if (isSame) return;
    this.#shown = shown;
    this.#draw();
  }

  #draw() {
    // A finger that is on a name would let go on another one, or on none.
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

/** The server's counts as figures: what has happened each second since the last look. */

const MEGABYTE = 2 ** 20;

const whole = (value) => Math.round(value).toLocaleString('en');

/** What is shown: its words, and how it is found in a look and the difference to the one before. */
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
 * @returns {(status: object, look: {players: number, now: number}) => void} is told what the server says, of the players
 *     of this arena, and when, in ms
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

/** The panel: says what is played, with the publisher's token. What it shows is what the control feed says. */

const $ = (id) => document.getElementById(id);

const KEY = 'sprites.token';
const LOOK = 1000; // ms between two looks at the server's counts
const name = arenaName();
const controlUrl = new URL(`feed/arena/${name}/control`, base);
const arenaUrl = (path) => new URL(`arena/${name}/${path}`, base);

/** What the control feed says, and what commands say that it does not say yet. */
let control = null;
let ahead = {};
let players = 0;
let contact = { state: 'joining', words: '' };
let isOut = false; // the last look got no answer
let token = String(read('sessionStorage', KEY) ?? '');
const showCounts = counts($('figures'));

/** What a game has for the panel itself: its panel.js, where it has one. */
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

/** What an answer says is wrong. */
const wrongIn = (json) => json?.detail ?? json?.title ?? 'No contact with the server. Try again.';

/** Looks at the counts. @returns {Promise<boolean>} whether the token is good */
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
  // Of a server that is busy or starts anew: the token may be good, and what is shown stays.
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
    if ($('games').childElementCount === 0) show(); // The list of them has not come yet.
  }
  setTimeout(keepLooking, LOOK);
}

// ---- what the players call themselves, and what a game is about

const names = new NamesList($('names'), async (number, away) => {
  refuse(await change(`names/${number}`, JSON.stringify({ away })));
  await lookAtNames();
});

async function lookAtNames() {
  const url = arenaUrl(`names?after=${names.version}`);
  const { status, json } = await ask(url, { headers: bearer() });
  if (status === 200) names.show(json);
}

/** Changes something of the arena. @returns {Promise<string>} what is wrong, in words; empty: it is changed */
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
  refuse('');
  const headers = { ...bearer(), 'Content-Type': 'application/merge-patch+json' };
  const body = JSON.stringify(members);
  const { status, json } = await ask(controlUrl, { method: 'PATCH', headers, body });
  if (status === 200) return;
  if (status === 401) return forget('This token is no longer one of the server’s.');
  refuse(wrongIn(json));
  ahead = {};
  show(); // What the control feed says holds.
}

function refuse(wrong) {
  put($('refused'), wrong);
  $('refused').hidden = wrong === '';
}

$('go').addEventListener('click', () => command({ running: !control?.running }));

/** A row of buttons, of which one is chosen; they are made anew only when they are others. */
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

/** A slider sends its value when it is let go, and follows the feed when it is not held. */
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

/** What the settings of the game that is chosen may be. */
let settings = {};
let sliders = [];

/**
 * A slider for a setting of the game, which follows it until there is another game.
 *
 * @param {HTMLElement} into
 * @param {string} key
 */
function slider(into, key) {
  const { min, max, integer, title = key } = settings[key];
  // Without `for` a label is that of its output.
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
  if (now !== control) return; // The list has come late.
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
// In the window of a game that is tried the panel stays where it is.
if (self !== top) for (const id of ['to-field', 'to-play']) $(id).target = '_blank';

show();
if (token === '') askToken();
else if (await look()) open();
else if (token !== '') open(); // No contact just now: the looks go on.
keepLooking();
