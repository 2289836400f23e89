import { make, put } from './elements.js';
import { arenaName, base, describeGame, GameStage, ArenaFeeds, stayAwake } from './room.js';
import { drawSticker } from '../page/pictures.js';
import { addressesOf, drawQr } from '../page/qr.js';

/** The big screen: the game at the screen's frame rate, the address to join, and the number of players. */

const $ = (id) => document.getElementById(id);

/** Words below the number of players, where they are not `play`. */
const PLAYER_WORDS = { 0: 'Nobody yet', 1: 'plays' };

/** Longest wait until something is asked for again, in ms. A hall waits for this screen. Phones spread their retries. */
const RETRY_DELAY = 2000;

let control = null;
let players; // not known yet
let contact = { state: 'joining', words: '' };
let gameError = '';

const stage = new GameStage({
  file: 'field.js',
  root: $('root'),
  startOptions: () => ({}),
  onChange(game, error = '') {
    gameError = error;
    render();
  }
});

const arenaFeeds = new ArenaFeeds({
  backoffMost: RETRY_DELAY,
  onControl(value) {
    control = value ?? null;
    if (control) stage.control(control);
    render();
  },
  onReduced(reduced) {
    showCount(reduced.players);
    document.body.dataset.time = reduced.time;
    stage.reduced(reduced);
  },
  onState(state, contactText) {
    contact = { state, words: contactText };
    render();
  }
});
arenaFeeds.watchReduced(true);

function showCount(playerCount) {
  const text = String(playerCount);
  if ($('count').textContent === text) return;
  players = playerCount;
  render();
  put($('count'), text);
  $('count').classList.toggle('long', text.length > 3);
  $('count').classList.remove('bump');
  void $('count').offsetWidth; // Restarts the animation.
  $('count').classList.add('bump');
}

function stateWords() {
  if (contact.words || !control) return contact.words;
  if (control.failed) return 'The game has stopped';
  if (control.page === 'lobby') return 'Lobby';
  return control.running ? `Round ${control.round}` : pauseWords();
}

const pauseWords = () => (control.begun ? 'The round is over' : 'It begins soon');

/** Returns the text over a game: nobody plays; or, on the game's first page, no round runs. */
function ribbonWords({ pages = [] }) {
  if (isInLobby() || control.failed) return '';
  if (control.running) return players === 0 ? 'Nobody plays yet: scan to join' : '';
  return control.page === pages[0] ? pauseWords() : '';
}

function isInLobby() {
  return !control?.game || control.page === 'lobby' || gameError !== '';
}

async function render() {
  const lobby = isInLobby();
  const hasFailed = !lobby && control.failed !== null;
  const { dataset } = document.body;
  dataset.state = contact.state;
  dataset.page = lobby ? 'lobby' : control.page;
  dataset.running = Boolean(control?.running);
  dataset.players = players;
  document.body.toggleAttribute('data-failed', Boolean(control?.failed));
  $('lobby').hidden = !lobby;
  $('over').hidden = !hasFailed;
  $('root').hidden = lobby || hasFailed;
  put($('state'), stateWords());
  put($('count-words'), PLAYER_WORDS[players] ?? 'play');
  const shownControl = control;
  const game = await describeGame(shownControl);
  if (shownControl !== control) return; // The control has changed meanwhile.
  const { title, about } = game;
  put($('heading'), title || arenaName());
  put($('title'), title || arenaName());
  put($('about'), gameError || about || (title ? '' : contact.words || 'No game yet.'));
  put($('over-title'), `${title} has stopped`);
  put($('over-text'), 'Something in it went wrong. The host sees what, and can begin again.');
  put($('toast'), ribbonWords(game));
  $('toast').hidden = ribbonWords(game) === '';
  document.title = `${title || 'Field'} · ${arenaName()}`;
}

// ---- how to join

async function showAddress() {
  const addresses = await addressesOf(base);
  if (addresses === null) setTimeout(showAddress, RETRY_DELAY);
  const [address = base] = addresses ?? [];
  const { href, host, pathname } = new URL(`play/${arenaName()}`, address);
  $('address').replaceChildren(...addressLines(host, pathname));
  fitAddress();
  await drawQr(href, $('code'));
  $('code').dataset.url = href;
}

/** Returns the lines of an address. It may break before its path and before dots only. */
function addressLines(host, pathname) {
  return [host.split(/(?=\.)/), [pathname]].map((parts) => {
    const line = make('span');
    for (const [i, part] of parts.entries()) {
      if (i > 0) make('wbr', { into: line });
      line.append(part);
    }
    return line;
  });
}

/** Makes the letters of an address smaller if it is still too long for its line. */
function fitAddress() {
  const address = $('address');
  address.style.fontSize = '';
  const { clientWidth, scrollWidth } = address;
  if (scrollWidth <= clientWidth) return;
  const { fontSize } = getComputedStyle(address);
  address.style.fontSize = `${(parseFloat(fontSize) * clientWidth) / scrollWidth}px`;
}

new ResizeObserver(fitAddress).observe($('address'));

// ---- the screen

function draw(now) {
  stage.frame(now);
  requestAnimationFrame(draw);
}

function toggleFullScreen() {
  const change = document.fullscreenElement
    ? document.exitFullscreen()
    : document.documentElement.requestFullscreen();
  change.catch(() => {}); // The browser refuses: the page stays as it is.
}

stayAwake();
document.addEventListener('visibilitychange', stayAwake);
$('full').hidden = !document.fullscreenEnabled;
$('full').addEventListener('click', toggleFullScreen);
addEventListener('keydown', (event) => {
  const hasNoModifier = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.key === 'f' && hasNoModifier && document.fullscreenEnabled) toggleFullScreen();
});

for (const name of ['star', 'ball', 'ghost']) {
  const sticker = drawSticker(name, 400);
  sticker.className = 'sticker';
  $('stickers').append(sticker);
}
requestAnimationFrame(draw);
render();
showAddress();
