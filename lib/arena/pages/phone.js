import { put } from './elements.js';
import { NameForm } from './name-form.js';
import { Player } from '../client/player.js';
import {
  arenaName,
  base,
  grantOption,
  describeGame,
  GameStage,
  focusGame,
  INVITATION_WORDS,
  ArenaFeeds,
  stayAwake
} from './room.js';
import { isHeldByOtherTab, readStorage, writeStorage } from '../page/store.js';

/** The phone: joins the arena, and shows the game's phone.js. */

const $ = (id) => document.getElementById(id);

const TOAST_TIME = 4000; // ms
const KEY = `sprites.arena.${arenaName()}`;

// ---- the player: the tab's storage keeps it over a reload; a duplicated tab gets another player

const stored = readStorage('sessionStorage', KEY);
const isCopy = await isHeldByOtherTab(KEY, stored?.number ?? null, () => player.number);
const savedPlayer = (!isCopy && stored) || {};

/** Stores the player with its newest input and the control; before the first control, with those found in storage. */
function savePlayer(identity) {
  const gameState = control ? { control, input: player.newest } : savedPlayer;
  writeStorage('sessionStorage', KEY, identity && { ...gameState, ...identity });
}

let control = null;
let startedNumber; // the player's number with which the game was started
let contact = { state: 'joining', words: '' };
let shownGame = null; // the game
let gameError = ''; // the game's error, in words
let lastState = null; // details of the player's last state
let isResting = false; // out of the game until the page is visible again

const player = new Player({
  ...grantOption,
  base: new URL(`arena/${arenaName()}`, base).href,
  saved: savedPlayer,
  onSave: savePlayer,
  onState(state, about) {
    // Not every browser reports that the network is back: player and feeds wake each other.
    if (state === 'online' && lastState?.out) arenaFeeds.wake();
    lastState = { ...about, out: state === 'offline' };
    // In a hidden page timers may be slower than a lease: the player would join and expire repeatedly, though nobody
    // plays there.
    isResting = about.why === 'unknown-player' && document.hidden;
    if (isResting) player.stop();
    if (state === 'online') nameForm.setPlayer(player.nameUrl);
    if (about.again) showToast(`You were out of the game, and are in it again.`);
    if (player.number !== undefined && player.number !== startedNumber) showControl();
    render();
  }
});

const nameForm = new NameForm($);

const stage = new GameStage({
  file: 'phone.js',
  root: $('root'),
  startOptions: () => ({
    send: (input) => player.addInput(input),
    number: player.number,
    input: player.newest
  }),
  isRestart: isNewRound,
  // During a round the lobby only covers the game: the server still has its inputs.
  nameOf: ({ page, running, game }) => (page === 'lobby' && !running ? null : game),
  onChange(game, error = '') {
    gameError = error;
    shownGame = game;
    watchReduced();
    render();
  }
});

/** Returns whether a new round begins, in which every input is at its start, as on the server. */
function isNewRound(control, before) {
  const differs = (member) => control?.[member] !== before?.[member];
  return differs('game') || differs('version') || differs('round');
}

const arenaFeeds = new ArenaFeeds({
  onControl(value) {
    if (isNewRound(value, control ?? savedPlayer.control)) player.startGame();
    else if (control === null && player.number === savedPlayer.number)
      player.addInput(savedPlayer.input);
    control = value ?? null;
    if (control) player.setRate(control.rate);
    showControl();
    watchReduced();
    render();
  },
  onReduced(reduced) {
    stage.reduced(reduced);
    // A value of the next round may come before its control, and is no result.
    if (isRoundOver() && stage.result()) render();
  },
  onState(state, contactText) {
    if (state === 'online' && contact.state === 'offline') player.wake();
    contact = { state, words: contactText };
    render();
  }
});

/** Shows the game of the control, once the player is known. */
function showControl() {
  if (!control || player.number === undefined) return;
  const isOtherPlayer = startedNumber !== undefined && startedNumber !== player.number;
  startedNumber = player.number;
  stage.control(control);
  if (!isOtherPlayer) return;
  player.startGame(); // The game shows the start values.
  stage.restart();
}

// ---- words

const REASONS = {
  'arena-full': 'The game is full. You come in as soon as a player leaves.',
  'unknown-arena': 'There is no game at this address. Scan the code on the big screen again.',
  'too-many-joins': 'Many come at once. You are in soon.',
  'too-many-clients': 'Too many play from your network. You come in as soon as a player leaves.',
  ...INVITATION_WORDS,
  'state-unwritable': 'The server can keep nothing just now. You come in as soon as it can.',
  draining: 'The server is restarting.'
};

function offlineReason() {
  if (navigator.onLine === false) return 'Your phone is offline.';
  return REASONS[lastState?.why] ?? 'No contact: out of the game. Trying again…';
}

function stateWords() {
  if (player.state === 'joining') return 'Joining…';
  if (player.state === 'offline') return 'Out of the game';
  if (contact.words) return contact.words;
  if (lastState?.why === 'bad-input') return 'The server did not take what the game sent';
  if (!control?.game) return 'Waiting for a game';
  if (control.page === 'lobby' || !control.begun) return 'It begins soon';
  return control.running ? 'You play' : 'The round is over';
}

/** Returns whether the lobby is shown: also before a game's first round, on any page. */
function isInLobby() {
  return !control?.game || control.page === 'lobby' || !control.begun || gameError !== '';
}

function isRoundOver() {
  return !isInLobby() && !control.running;
}

/** Watches the reduced feed for the result, and during a round only if the game shows its value. */
function watchReduced() {
  arenaFeeds.watchReduced(isRoundOver() || typeof shownGame?.value === 'function');
}

/** Shows the result of a round instead of the game. */
function showResult() {
  const isOver = isRoundOver();
  const hadFocus = $('root').contains(document.activeElement);
  $('root').hidden = isOver || isInLobby();
  if (isOver || isInLobby()) nameForm.moveTo($(isOver ? 'over' : 'lobby'));
  if (!isOver && document.activeElement === $('over')) focusGame($('root'));
  $('over').hidden = !isOver;
  if (!isOver) return;
  const defaults = control.failed
    ? { title: 'The game has stopped', text: 'Something in it went wrong. It is not your phone.' }
    : { title: 'The round is over', text: 'The big screen shows how it went.' };
  const { title, text } = { ...defaults, ...(control.failed ? null : stage.result()) };
  put($('over-title'), title);
  put($('over-text'), text);
  if (hadFocus) $('over').focus();
}

async function render() {
  const isOut = player.state === 'offline';
  const { number } = player;
  const lobby = isInLobby();
  document.body.dataset.state = contact.state === 'offline' && !isOut ? 'offline' : player.state;
  document.body.dataset.page = lobby ? 'lobby' : control.page;
  document.body.dataset.running = Boolean(control?.running);
  document.title = control?.game ? `${number ?? '–'} · ${control.game}` : 'Play';
  $('lobby').hidden = !lobby;
  showResult();
  $('number').hidden = lobby || number === undefined;
  put($('big'), number ?? '–');
  $('big').classList.toggle('long', String(number).length > 3);
  put($('small'), number ?? '');
  put($('state'), stateWords());
  if (!isOut && document.activeElement === $('now')) focusGame($('root'));
  $('out').hidden = !isOut;
  if (isOut) put($('out-words'), offlineReason());
  const shownControl = control;
  const { title, about } = await describeGame(shownControl);
  if (shownControl !== control) return; // The control has changed meanwhile.
  put($('heading'), title || arenaName());
  put($('title'), title);
  put($('about'), gameError || about || 'The next game begins soon.');
}

let toastTimer;

function showToast(text) {
  put($('toast'), text);
  $('toast').hidden = false;
  clearTimeout(toastTimer);
  toastTimer = setTimeout(() => {
    $('toast').hidden = true;
  }, TOAST_TIME);
}

// ---- coming and going

let isReloading = false;

function wake() {
  player.wake();
  stayAwake();
}

$('now').addEventListener('click', wake);
document.addEventListener('visibilitychange', () => {
  if (document.hidden) return player.save(); // A browser may end a hidden page without a word.
  if (isResting) player.start();
  isResting = false;
  return wake();
});
for (const event of ['online', 'offline']) {
  addEventListener(event, () => {
    wake();
    render();
  });
}
// Prevents a zoom by two fingers on the thumb's control, also in browsers without touch-action. Elsewhere zoom works.
document.addEventListener('gesturestart', (event) => {
  if (event.target.closest('.thumb')) event.preventDefault();
});
globalThis.navigation?.addEventListener('navigate', (event) => {
  isReloading = event.navigationType === 'reload';
});
addEventListener('pagehide', (event) => {
  const { leaveUrl } = player;
  player.save();
  player.stop();
  if (event.persisted || isReloading || !leaveUrl || !globalThis.navigation) return;
  navigator.sendBeacon(leaveUrl);
  savePlayer(null);
});
addEventListener('pageshow', (event) => {
  if (!event.persisted) return;
  isResting = false;
  player.start(); // If its lease has ended, the player joins again.
});

player.start();
stayAwake();
render();
