import { put } from './elements.js';
import { describeGame } from './games-list.js';
import { arenaName, base, GameStage, Room } from './room.js';
import { drawSticker } from '../page/pictures.js';
import { drawQr } from '../page/qr.js';
import { addressesOf } from '../page/reachable.js';

/** The big screen: the game at the screen's rate, how to join, and how many play. */

const $ = (id) => document.getElementById(id);

let control = null;
let contact = 'asking';
let trouble = '';

const stage = new GameStage({
  file: 'field.js',
  root: $('root'),
  parts: () => ({}),
  onChange(game, why = '') {
    trouble = why;
    words();
  }
});

const room = new Room({
  control(value) {
    control = value ?? null;
    if (control) stage.control(control);
    words();
  },
  reduced(reduced) {
    count(reduced.players);
    document.body.dataset.time = reduced.time;
    stage.reduced(reduced);
  },
  state(state) {
    contact = state;
    words();
  }
});
room.watchReduced(true);

function count(players) {
  const text = String(players);
  if ($('count').textContent === text) return;
  put($('count'), text);
  put($('count-words'), players === 1 ? 'plays' : 'play');
  $('count').classList.toggle('long', text.length > 3);
  $('count').classList.remove('bump');
  void $('count').offsetWidth; // So that the animation begins anew.
  $('count').classList.add('bump');
}

function stateWords() {
  if (contact === 'offline') return 'No contact, trying again';
  if (contact !== 'online') return 'Connecting…';
  if (!control) return 'There is no such arena';
  if (control.failed) return 'The game has stopped: see the panel';
  if (control.page === 'lobby') return 'Lobby';
  return control.running ? `Round ${control.round}` : 'Stopped';
}

async function words() {
  const lobby = control === null || control.page === 'lobby' || control.game === null || trouble;
  document.body.dataset.state = { asking: 'joining' }[contact] ?? contact;
  document.body.dataset.page = lobby ? 'lobby' : control.page;
  document.body.dataset.running = Boolean(control?.running);
  $('lobby').hidden = !lobby;
  $('root').hidden = Boolean(lobby);
  put($('state'), stateWords());
  const { title, about } = await describeGame(control?.game);
  put($('title'), title || arenaName());
  put($('about'), trouble || about || 'No game yet.');
  document.title = `${title || 'Field'} · ${arenaName()}`;
}

// ---- how to join

async function invite() {
  const [address = base] = await addressesOf(base);
  const { href, host, pathname } = new URL(`play/${arenaName()}`, address);
  put($('address'), `${host}${pathname}`);
  await drawQr(href, $('code'));
  $('code').dataset.url = href;
}

// ---- the screen

function draw(now) {
  stage.frame(now);
  requestAnimationFrame(draw);
}

function toggleFull() {
  const done = document.fullscreenElement
    ? document.exitFullscreen()
    : document.documentElement.requestFullscreen();
  done.catch(() => {}); // The browser does not want to: the page stays as it is.
}

$('full').hidden = !document.fullscreenEnabled;
$('full').addEventListener('click', toggleFull);
addEventListener('keydown', (event) => {
  const plain = !event.ctrlKey && !event.metaKey && !event.altKey;
  if (event.key === 'f' && plain && document.fullscreenEnabled) toggleFull();
});

for (const name of ['star', 'ball', 'ghost']) {
  const sticker = drawSticker(name, 400);
  sticker.className = 'sticker';
  $('stickers').append(sticker);
}
requestAnimationFrame(draw);
words();
invite();
