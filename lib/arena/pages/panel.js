import { figures, make, put } from './elements.js';
import { arenaName, sendRequest, base, GameStage, listGames, ArenaFeeds } from './room.js';
import { readStorage, writeStorage } from '../page/store.js';

/** The names on the panel: a click hides a name, or shows it again. */

/** Most names in the list. The names on the big screen come first, then the newest. */
const MAX_LISTED = 200;

class NamesList {
  #root;
  #names = [];
  #numbersOnScreen = new Set();
  #isRedrawPending = false;

  /** Version of the names; 0 before the first answer. */
  version = 0;

  /**
   * @param {HTMLElement} root
   * @param {(number: number, away: boolean) => void} onChoose
   */
  constructor(root, onChoose) {
    this.#root = root;
    root.addEventListener('click', ({ target }) => {
      const chip = target.closest('button');
      if (chip) onChoose(Number(chip.dataset.value), chip.getAttribute('aria-pressed') !== 'true');
    });
  }

  /** @param {{version: number, names?: {number: number, name: string, away: boolean}[]}} look the server's answer */
  show({ version, names }) {
    this.version = version;
    this.#names = names ?? this.#names;
    if (names !== undefined || this.#isRedrawPending) this.#draw();
  }

  /** @param {Record<string, string>} [names] the names on the big screen now */
  setOnScreen(names = {}) {
    const shown = new Set(Object.keys(names).map(Number));
    const isSame =
      shown.size === this.#numbersOnScreen.size &&
      [...shown].every((one) => this.#numbersOnScreen.has(one));
    if (isSame) return;
    this.#numbersOnScreen = shown;
    this.#draw();
  }

  #draw() {
    // During a press, a redraw would move another name, or none, under the finger.
    this.#isRedrawPending = this.#root.querySelector(':active') !== null;
    if (this.#isRedrawPending) return;
    const rank = ({ number }) => (this.#numbersOnScreen.has(number) ? 1 : 0);
    const list = this.#names.toSorted((a, b) => rank(b) - rank(a) || b.number - a.number);
    const sheet = this.#root.closest('section');
    sheet.hidden = list.length === 0;
    const focused = this.#root.contains(document.activeElement)
      ? document.activeElement.dataset.value
      : undefined;
    this.#root.replaceChildren();
    for (const { number, name, away } of list.slice(0, MAX_LISTED)) {
      const how = { className: 'chip', 'data-value': number, 'aria-pressed': away };
      const chip = make('button', { ...how, into: this.#root });
      make('span', { className: 'unseen', text: `Put away player ${number}: `, into: chip });
      make('span', { className: 'called', text: name, into: chip });
      if (focused === String(number)) chip.focus();
    }
    const olderCount = list.length - MAX_LISTED;
    put(sheet.querySelector('.older'), olderCount > 0 ? `And ${olderCount} older ones.` : '');
  }
}

/** The server's counts as figures, some of them as rates per second since the last look. */

const MEGABYTE = 2 ** 20;

const formatWhole = (value) => Math.round(value).toLocaleString('en');

/** The figures: title, and function of the text. `perSecond` returns a count's growth per second. */
const FIGURES = [
  ['Players here', ({ players }) => formatWhole(players)],
  ['Inputs a second', ({ perSecond }) => formatWhole(perSecond('inputs'))],
  ['Reductions a second', ({ perSecond }) => formatWhole(perSecond('reductions'))],
  ['CPU of one core', ({ perSecond }) => `${formatWhole(perSecond('cpuSeconds') * 100)} %`],
  ['Memory', ({ status }) => `${formatWhole(status.rss / MEGABYTE)} MB`],
  ['Longest stall, last minute', ({ status }) => `${Number(status.recentStallMs).toFixed(1)} ms`]
];

/**
 * @param {HTMLElement} list of definitions
 * @returns {(status: object, look: {players: number, now: number}) => void} shows the server's status, the players of
 *     this arena, and the time of the look, in ms
 */
function makeCountsView(list) {
  const show = figures(list, FIGURES);
  let last = null;
  return (status, { players, now }) => {
    const before = last?.status.run === status.run ? last : null;
    last = { status, now };
    const perSecond = (name) =>
      before ? ((status[name] - before.status[name]) * 1000) / (now - before.now) : NaN;
    show({ status, players, perSecond });
  };
}

/** The panel: sends commands with the publisher's token, and shows the value of the control feed. */

const $ = (id) => document.getElementById(id);

const KEY = 'sprites.token';
const LOOK_INTERVAL = 1000; // ms between two looks at the server's counts
const name = arenaName();
const controlUrl = new URL(`feed/arena/${name}/control`, base);
const arenaUrl = (path) => new URL(`arena/${name}/${path}`, base);

/** The value of the control feed; and the members of commands that the feed does not have yet. */
let control = null;
let pendingMembers = {};
let players = 0;
let contact = { state: 'joining', words: '' };
let isUnanswered = false; // the last look got no answer
let token = String(readStorage('sessionStorage', KEY) ?? '');
const showCounts = makeCountsView($('figures'));

/** Shows the game's panel.js, if it has one. */
let hasPanel = () => false;
const stage = new GameStage({
  file: 'panel.js',
  root: $('own'),
  startOptions: () => ({ command, content: contentOf(control.game), slider }),
  nameOf: ({ game }) => (hasPanel(game) ? game : null),
  onChange: (game, why = '') => put($('own-failed'), why)
});

const arenaFeeds = new ArenaFeeds({
  onControl(value) {
    if (!commands.busy || value?.game !== control?.game) pendingMembers = {};
    control = value ?? null;
    render();
  },
  onReduced(reduced) {
    players = reduced.players;
    namesList.setOnScreen(reduced.names);
    stage.reduced(reduced);
  },
  onState(state, words) {
    contact = { state, words };
    render();
  }
});

// ---- the token

const bearer = () => ({ Authorization: `Bearer ${token}` });

function askToken(error = '') {
  $('token-form').hidden = false;
  $('main').hidden = true;
  $('forget').hidden = true;
  put($('token-wrong'), error);
  $('token').focus();
}

function showMain() {
  $('token-form').hidden = true;
  $('main').hidden = false;
  $('forget').hidden = false;
  arenaFeeds.watchReduced(true);
}

function forgetToken(error) {
  token = '';
  pendingMembers = {};
  commands.waiting.length = 0;
  writeStorage('sessionStorage', KEY, null);
  askToken(error);
}

$('token-form').addEventListener('submit', async (event) => {
  event.preventDefault();
  const entered = $('token').value.trim();
  if (entered === '') return;
  token = entered;
  if (await refreshStatus()) {
    $('token').value = '';
    writeStorage('sessionStorage', KEY, token);
    showMain();
    $('main').focus();
  }
});
$('forget').addEventListener('click', () => forgetToken(''));

/** Returns the error of an answer, in words. */
const errorOf = (json) => json?.detail ?? json?.title ?? 'No contact with the server. Try again.';

/** Fetches the counts and shows them. @returns {Promise<boolean>} whether the token is valid */
async function refreshStatus() {
  if (token === '') return false;
  const usedToken = token;
  const { status, json } = await sendRequest(arenaUrl('status'), { headers: bearer() });
  if (usedToken !== token) return false;
  if (isUnanswered !== (status === 0)) {
    isUnanswered = !isUnanswered;
    if (!isUnanswered) arenaFeeds.wake();
    render();
  }
  if (status === 401) forgetToken('This token is not one of the server’s.');
  else if (status === 200) showStatus(json, performance.now());
  // The server may be busy or restarting: the token may be valid, and the page stays as it is.
  else put($('token-wrong'), errorOf(json));
  return status === 200;
}

function showStatus(status, now) {
  showCounts(status, { players, now });
  stage.status(status, now);
  if ($('rate').max === String(status.arenaRate)) return;
  $('rate').max = status.arenaRate;
  render();
}

async function refreshRepeatedly() {
  if (!$('main').hidden) {
    if (await refreshStatus()) await refreshNames();
    if ($('games').childElementCount === 0) render(); // The list of games has not come yet.
  }
  setTimeout(refreshRepeatedly, LOOK_INTERVAL);
}

// ---- names of players, and content of games

const namesList = new NamesList($('names'), async (number, away) => {
  hideError();
  const error = await putChange(`names/${number}`, JSON.stringify({ away }));
  if (error !== '') showError(error);
  await refreshNames();
});

async function refreshNames() {
  const url = arenaUrl(`names?after=${namesList.version}`);
  const { status, json } = await sendRequest(url, { headers: bearer() });
  if (status === 200) namesList.show(json);
}

/** Sends a change of the arena. @returns {Promise<string>} the error, in words; empty on success */
async function putChange(path, body) {
  const headers = { ...bearer(), 'Content-Type': 'application/json' };
  const { status, json } = await sendRequest(arenaUrl(path), { method: 'PUT', headers, body });
  return status === 204 ? '' : errorOf(json);
}

const contentOf = (game) => ({
  async read() {
    const { status, json } = await sendRequest(arenaUrl(`content/${game}`), { headers: bearer() });
    return status === 200 ? json.content : undefined;
  },
  write: (value) => putChange(`content/${game}`, JSON.stringify(value))
});

// ---- commands

/** Members of the control that the panel shows at once, before the feed has them. */
const SHOWN_AHEAD = ['pace', 'rate', 'settings'];

const isShownAhead = (members) => Object.keys(members).every((name) => SHOWN_AHEAD.includes(name));

/** Merges two commands. Settings are merged one by one. */
const mergeCommands = (before, members) => ({
  ...before,
  ...members,
  ...((before.settings || members.settings) && {
    settings: { ...before.settings, ...members.settings }
  })
});

/** Returns the control with the members of commands that the feed does not have yet. */
const expectedControl = () => (control === null ? null : mergeCommands(control, pendingMembers));

/** The queue of commands. One is sent at a time, so that none overtakes another. Slider moves that wait are merged. */
const commands = { busy: false, waiting: [] };

/** @param {object} members of the control feed's value */
async function command(members) {
  hideError(); // Not when it is sent: it may wait for the command whose error this is.
  const { waiting } = commands;
  if (isShownAhead(members)) pendingMembers = mergeCommands(pendingMembers, members);
  const last = waiting.at(-1);
  const canMerge = last !== undefined && isShownAhead(last) && isShownAhead(members);
  if (canMerge) waiting.splice(-1, 1, mergeCommands(last, members));
  else waiting.push(members);
  if (commands.busy) return;
  commands.busy = true;
  while (waiting.length > 0) await sendCommand(waiting.shift());
  commands.busy = false;
}

async function sendCommand(members) {
  const usedToken = token;
  const headers = { ...bearer(), 'Content-Type': 'application/merge-patch+json' };
  const body = JSON.stringify(members);
  const { status, json } = await sendRequest(controlUrl, { method: 'PATCH', headers, body });
  if (status === 200 || usedToken !== token) return;
  if (status === 401) return forgetToken('This token is no longer one of the server’s.');
  showError(errorOf(json));
  pendingMembers = {};
  render(); // Back to the values of the control feed.
}

/** Shows an error until the host's next act. */
function showError(error) {
  put($('refused'), error);
  $('refused').hidden = false;
}

function hideError() {
  $('refused').hidden = true;
}

$('go').addEventListener('click', ({ detail }) => {
  if (detail < 2) command({ running: !control?.running }); // The second of a double click would stop the round.
});

/** Shows a row of buttons, one of them chosen. Makes new buttons only if the choices have changed. */
function showChips(root, choices, chosen, choose) {
  if (root.dataset.choices !== String(choices)) {
    root.dataset.choices = choices;
    root.replaceChildren();
    for (const [value, text] of choices) {
      const chip = make('button', { className: 'chip', text, 'data-value': value, into: root });
      chip.addEventListener('click', () => choose(value));
    }
  }
  for (const chip of root.children) {
    chip.setAttribute('aria-pressed', chip.dataset.value === chosen);
  }
}

/** Makes a slider send its value when it is released. `setSlider` sets it to the feed's value while it is not held. */
function connectSlider(input, output, send) {
  input.addEventListener('input', () => put(output, input.value));
  input.addEventListener('change', () => send(Number(input.value)));
}

function setSlider(input, output, value) {
  if (value === undefined || input.matches(':active')) return;
  input.value = value;
  put(output, value);
}

connectSlider($('pace'), $('pace-value'), (pace) => command({ pace }));
connectSlider($('rate'), $('rate-value'), (rate) => command({ rate }));

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
  const label = make('label', { className: 'slide', text: title, for: id, into });
  const output = make('output', { into: label });
  const step = integer ? 1 : (max - min) / 100;
  const range = { type: 'range', id, min, max, step, name: key, 'aria-label': title };
  const input = make('input', { ...range, into: label });
  connectSlider(input, output, (value) => command({ settings: { [key]: value } }));
  const follow = () => setSlider(input, output, expectedControl()?.settings[key]);
  sliders.push(follow);
  follow();
}

function showSettings(game) {
  settings = game?.settings ?? {};
  const root = $('settings');
  const hasSettings = !game?.panel && Object.keys(settings).length > 0;
  $('settings-sheet').hidden = !hasSettings;
  const shown = game === undefined ? '' : `${game.name} ${control?.version}`;
  if (root.dataset.game !== shown) {
    root.dataset.game = shown;
    root.replaceChildren();
    sliders = [];
    if (hasSettings) for (const key of Object.keys(settings)) slider(root, key);
  }
  for (const follow of sliders) follow();
}

// ---- what is shown

const FAILURE_WORDS = {
  threw: 'its reducer threw',
  'too-slow': 'its reducer took too long',
  'bad-value': 'its reducer gave back what can’t be published',
  'not-loaded': 'it could not be loaded'
};

function showFailure(games) {
  const { failed = null } = control ?? {};
  $('failed').hidden = failed === null;
  if (failed === null) return;
  const { game, why, message, at, stack = [] } = failed;
  const title = games.find((one) => one.name === game)?.title ?? game;
  const position = at ? ` (${at})` : '';
  put(
    $('failed-words'),
    `${title} was stopped: ${FAILURE_WORDS[why] ?? why}. ${message ?? ''}${position}`
  );
  put($('failed-stack'), stack.length > 1 ? stack.map((line) => `at ${line}`).join('\n') : '');
}

function showGamePanel(games) {
  hasPanel = (name) => games.some((game) => game.name === name && game.panel);
  $('own-sheet').hidden = !hasPanel(control?.game);
  if (control !== null) stage.control(expectedControl());
}

const capitalize = (text) => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;

async function render() {
  document.body.dataset.state = isUnanswered ? 'offline' : contact.state;
  put($('state'), isUnanswered ? 'No contact, trying again' : contact.words || 'Connected');
  const shownControl = control;
  const games = await listGames(shownControl?.version);
  if (shownControl !== control) return; // The control has changed meanwhile.
  const game = games.find((one) => one.name === control?.game);
  const running = control?.running === true;
  document.body.dataset.running = running;
  put($('game-title'), game?.title ?? control?.game ?? 'No game');
  put($('game-about'), game?.about ?? '');
  const runState = running ? 'running' : 'stopped';
  put($('round'), control?.begun ? `Round ${control.round}, ${runState}` : 'Not started yet');
  put($('go'), running ? 'Stop' : 'Start');
  $('go').disabled = !control?.game;
  const choices = games.map((one) => [one.name, one.title]);
  showChips($('games'), choices, control?.game, (chosen) => command({ game: chosen }));
  const pages = ['lobby', ...(game?.pages ?? [])].map((page) => [page, capitalize(page)]);
  showChips($('pages'), pages, control?.page, (page) => command({ page }));
  setSlider($('pace'), $('pace-value'), expectedControl()?.pace);
  setSlider($('rate'), $('rate-value'), expectedControl()?.rate);
  showSettings(game);
  showGamePanel(games);
  showFailure(games);
}

put($('heading'), capitalize(name));
document.title = `Panel · ${name}`;
$('to-field').href = new URL(`field/${name}`, base).href;
$('to-play').href = new URL(`play/${name}`, base).href;
// In the frames of `sprites play` the panel stays: its links open other tabs.
if (self !== top) for (const id of ['to-field', 'to-play']) $(id).target = '_blank';

render();
if (token === '') askToken();
else if (await refreshStatus()) showMain();
else if (token !== '') showMain(); // No contact now: the looks continue.
refreshRepeatedly();
