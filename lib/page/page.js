import { Announcer } from './announcer.js';
import { sentence, side, what, where } from './describe.js';
import { Desktop } from './desktop.js';
import { FILE_MOST, shrink } from './images.js';
import { TorusMap } from './map.js';
import { Client } from '../client/client.js';
import { BOUNDS, PICTURES, SpriteError, readSprite, writeSprite } from '../client/sprite.js';
import { Stage } from './stage.js';
import { Store, makeName } from './store.js';
import { furnishTray, takeDrops } from './tray.js';

/**
 * The page: puts the client, the desktop, the stage and the words together.
 *
 *     server ◀─▶ Client ──sprite──▶ Desktop ◀──▶ Stage ◀── pointers, keys
 *                  ▲                   │
 *                  └──── throw ◀── over an edge           Store: the tab's memory
 *
 * A sprite belongs to this desktop until the server has said that it takes it. So one that flies
 * stays on the desktop, out of sight; refused, it bounces back; without an answer it waits at its
 * edge and is thrown again with the same number.
 *
 * Going away. A page that is closed leaves the torus at once, by a beacon, so that nobody throws
 * into a desktop that is not there. A reload should come back to its place instead; but a browser
 * doesn't say which of the two it is. So a page that sees a reload coming (by a key, or by a
 * script: the Navigation API announces it) keeps its place, and any other leaves. A reload taken
 * for a leave, by the browser's button, does no harm: what waits in the mailbox flies on, this
 * desktop's sprites are in the tab's memory, and the join fills the hole that the leave has made.
 * A page in the back-forward cache, or discarded by the system, keeps its place as long as its
 * lease.
 */

const MOST = 200; // sprites on a desktop: then it is full, and what comes in flies on
const MOST_OF_ALL = 400; // with those flying: then what comes in waits in the mailbox
const LOOK = 2000; // ms between two looks at the counts, in a small torus
const LOOK_OFFLINE = 6000;
const SLEPT = 12_000; // ms a look may come late before the machine must have slept
const FILES = 8; // that are taken at a time
const AGAIN = 4000; // ms until a throw without an answer is thrown again

const $ = (id) => document.getElementById(id);
const reduced = matchMedia('(prefers-reduced-motion: reduce)');
const still = () => reduced.matches;
const store = new Store();
const announcer = new Announcer($('toast'), $('news'));
const say = (text) => announcer.say(text);
const hear = (text, subject) => announcer.hear(text, subject);
const tally = { thrown: 0, caught: 0, passed: 0, bounced: 0, refused: 0 };

const desktop = new Desktop(leave);
const stage = new Stage($('stage'), desktop, {
  still,
  onChange: changed,
  onAway: putAway,
  onPick: (picture) => take(picture),
  onSelect: selected,
  onWalked: walked
});
const map = new TorusMap($('map'), still);

let client;
let people = 0;
let saving = 0;
let looking = 0;
let lookDue = Infinity;
let reloading = false;
let toldFull = false;
let keptWaiting = false;

// ---- sprites ----

/** Takes a new sprite: from the tray, a key, or a file. Null where the desktop is full. */
function take(picture, how) {
  const body = put(picture, how);
  if (body) hear(`You took ${what(body.sprite, 'a')}.`);
  return body;
}

function put(picture, { x, y, name = $('name').value.trim() } = {}) {
  if (isFull()) {
    say(`This desktop is full, with ${MOST} sprites. Throw one, or put one away.`);
    return null;
  }
  const sprite = { id: makeName(), picture, at: 0.5, speed: [0, 0] };
  if (name) sprite.name = [...name].slice(0, BOUNDS.name).join('');
  const { half } = stage;
  const body = desktop.add(sprite, {
    x: x ?? desktop.width * (0.3 + 0.4 * Math.random()),
    y: y ?? desktop.height - half * 1.6 - Math.random() * half,
    vx: x === undefined ? (Math.random() - 0.5) * desktop.width * 0.5 : 0,
    vy: y === undefined ? -desktop.height * (0.02 + 0.07 * Math.random()) : 0,
    vz: x === undefined ? 420 : 0,
    half
  });
  desktop.selected = body;
  stage.dress(body);
  changed();
  return body;
}

/** By key another one was chosen. */
function selected(body) {
  const free = desktop.bodies.filter(({ flight }) => !flight);
  const which = free.length > 1 ? `, ${free.indexOf(body) + 1} of ${free.length}` : '';
  hear(`${sentence(what(body.sprite))}${which}, ${where(body, desktop)}.`, 'selected');
}

function walked(body) {
  hear(`${sentence(what(body.sprite))} is ${where(body, desktop)} now.`, 'walked');
}

function isFull() {
  let here = 0;
  for (const body of desktop.bodies) if (!body.flight) here += 1;
  return here >= MOST;
}

function putAway(body) {
  if (body.flight) return; // It may be the neighbor's already.
  desktop.gone(body);
  hear(`You put away ${what(body.sprite)}.`);
  stage.wake();
  changed();
}

/** A sprite comes in. @returns {boolean} false: there is no room, not even to let it fly on */
function enter(value, { from }) {
  if (desktop.bodies.length >= MOST_OF_ALL) {
    keptWaiting = true;
    return false;
  }
  let sprite;
  try {
    sprite = readSprite(value);
  } catch (error) {
    if (!(error instanceof SpriteError)) throw error;
    tally.refused += 1;
    say('Something came in that is no sprite. It was not let onto the desktop.');
    changed();
    return true;
  }
  if (isFull()) {
    passOn(sprite, from);
    return true;
  }
  const body = desktop.enter(sprite, from, stage.half);
  stage.dress(body);
  stage.ripple(body.x, body.y, colorOf(from));
  tally.caught += 1;
  hear(`${sentence(what(sprite, 'a'))} came in by the ${side(from)} edge.`, 'came in');
  words();
  changed();
  return true;
}

/**
 * Full: nobody's own sprite makes way for a stranger's. It flies on the way it was going, as fast
 * as it came. What nobody takes comes back and stays after all.
 */
function passOn(sprite, from) {
  const { body, time } = desktop.pass(sprite, from, stage.half);
  stage.dress(body);
  tally.passed += 1;
  if (!toldFull) say('This desktop is full: what comes in flies on, by the opposite edge.');
  toldFull = true;
  changed();
  setTimeout(() => {
    const edge = body.flight;
    const { at } = desktop.crossing(body, edge);
    body.sprite = { ...body.sprite, at: Math.min(1, Math.max(0, at)) };
    body.ticket = client.ticket();
    throwIt(body, edge);
  }, time * 1000);
}

/** A sprite's middle has crossed an edge: throw it. */
function leave(body, edge) {
  const crossing = desktop.crossing(body, edge);
  body.sprite = readSprite({ ...JSON.parse(writeSprite({ ...body.sprite, ...crossing })) });
  body.ticket = client.ticket();
  stage.ripple(body.x, body.y, colorOf(edge));
  changed();
  throwIt(body, edge);
}

async function throwIt(body, edge) {
  save();
  const outcome = await client.throw(edge, writeSprite(body.sprite), {
    patience: 0,
    ticket: body.ticket
  });
  if (body.flight !== edge) return;
  if (outcome.thrown === true) {
    tally.thrown += 1;
    hear(`You threw ${what(body.sprite)} over the ${side(edge)} edge.`, 'thrown');
    words();
    if (body.flightTime < 0.25) await rest(250); // It is still to be seen leaving.
    desktop.gone(body);
    stage.wake();
  } else if (outcome.state === 'unanswered') {
    body.ticket = outcome.ticket;
    setTimeout(
      () => {
        if (body.flight === edge && desktop.bodies.includes(body)) throwIt(body, edge);
      },
      AGAIN * (0.5 + Math.random())
    );
  } else {
    // Refused, or nobody will ever know: a sprite seen twice is better than one lost.
    tally.bounced += 1;
    desktop.back(body);
    stage.wake();
    if (outcome.state === 'busy') {
      say(
        outcome.problem === 'neighbor-busy'
          ? `The ${neighbor(edge)} has no room: it came back.`
          : 'Too much at once: it came back. Try again in a moment.'
      );
    } else if (outcome.problem === 'sprite-too-large') {
      say('That one is too large for this server: it came back.');
    } else {
      say('It could not be thrown: it came back.');
    }
  }
  changed();
}

// ---- what the client says ----

function onState(state, { why }) {
  document.body.dataset.state = state;
  desktop.open = state === 'online';
  if (state !== 'online') {
    map.show(null);
    $('place').textContent = 'somewhere on the torus';
  }
  words(why);
  look();
  stage.wake();
}

function words(why = client.why) {
  const { state } = client;
  const text = {
    joining:
      why === 'unknown-client' ? 'The server has forgotten this place. Joining anew…' : 'Joining…',
    online:
      people === 1
        ? 'Only you, right now: what you throw over one edge comes back by the other.'
        : thrownAndCaught(),
    offline: offline(why),
    superseded: 'Another tab has taken over this place. Joining anew…',
    left: 'You have left the torus.'
  }[state];
  const when = people > 0 && state !== 'online' ? 'when last seen' : 'right now';
  $('count-words').textContent = `${people === 1 ? 'person' : 'people'} connected ${when}`;
  if ($('state').textContent === text) return;
  $('state').textContent = text;
  if (state !== 'online' || tally.thrown + tally.caught === 0) hear(text, 'state');
}

/** What there is to do, as long as it was not done; then what was. */
function thrownAndCaught() {
  const { thrown, caught } = tally;
  return thrown + caught === 0
    ? 'Throw something over an edge.'
    : `You threw ${thrown}, and ${caught} came in.`;
}

function offline(why) {
  const reason =
    {
      draining: 'The server is restarting',
      'torus-full': 'The torus is full',
      'too-many-joins': 'Too many came at once',
      'too-many-connections': 'The server is full'
    }[why] ?? (navigator.onLine === false ? 'You are offline' : 'The server does not answer');
  return `${reason}. Trying again… Until then the edges are walls, and nothing gets lost.`;
}

/** The live counts, and the place; politely: the more there are, the more seldom. */
async function look() {
  clearTimeout(looking);
  const online = client.state === 'online';
  const pace = Math.min(30_000, Math.max(LOOK, LOOK * Math.sqrt(people / 300)));
  const wait = (online ? pace : LOOK_OFFLINE) * (0.85 + 0.3 * Math.random());
  looking = setTimeout(look, wait);
  // A machine that slept may hold a poll on a connection that is long dead.
  if (!document.hidden && Date.now() - lookDue > SLEPT) client.wake();
  lookDue = document.hidden ? Infinity : Date.now() + wait;
  if (document.hidden || client.state === 'left') return;
  const [status, place] = await Promise.all([client.status(), client.place()]);
  if (status && Number.isSafeInteger(status.clients) && status.clients >= 0) count(status.clients);
  if (place) showPlace(place);
}

function count(clients) {
  // Between a join and the next look this desktop may not be counted yet.
  const now = client.state === 'online' ? Math.max(1, clients) : clients;
  if (now === people) return;
  people = now;
  const text = now.toLocaleString('en');
  $('count').textContent = text;
  $('count').classList.toggle('long', text.length > 4);
  $('count').classList.remove('bump');
  void $('count').offsetWidth; // So that the animation begins anew.
  $('count').classList.add('bump');
  document.title = `${text} · Sprites`;
  document.body.dataset.people = now;
  words();
}

function showPlace({ row, column, rows, columns }) {
  if (client.state !== 'online') return;
  map.show({ row, column, rows, columns });
  document.body.dataset.place = [row, column, rows, columns].join(' ');
  $('place').textContent = `row ${row + 1} of ${rows}, column ${column + 1} of ${columns}`;
}

// ---- words ----

function neighbor(edge) {
  return people === 1 ? 'other edge' : `${side(edge)} neighbor`;
}

function colorOf(edge) {
  const name = edge === 'left' || edge === 'right' ? '--across' : '--along';
  return getComputedStyle(document.body).getPropertyValue(name).trim();
}

function rest(ms) {
  return new Promise((resolve) => {
    setTimeout(resolve, ms);
  });
}

// ---- memory ----

/** Something has changed: say so to who looks at the page from outside, and remember it. */
function changed() {
  const canvas = $('stage');
  const { bodies } = desktop;
  if (toldFull && !isFull()) toldFull = false;
  if (keptWaiting && bodies.length < MOST_OF_ALL) {
    keptWaiting = false;
    client.wake();
  }
  const at = (body) => `${body.sprite.id} ${Math.round(body.x)} ${Math.round(body.y)}`;
  const flying = bodies.filter((body) => body.flight).length;
  canvas.dataset.sprites = bodies.length - flying;
  canvas.dataset.flying = flying;
  canvas.dataset.moving = desktop.moving;
  canvas.dataset.where = bodies
    .filter((body) => !body.flight)
    .slice(-20)
    .map(at)
    .join(',');
  for (const [name, number] of Object.entries(tally)) canvas.dataset[name] = number;
  saving ||= setTimeout(save, 300);
}

function save() {
  clearTimeout(saving);
  saving = 0;
  store.keepDesktop({
    sprites: desktop.bodies.map(({ sprite, x, y, flight, ticket }) => ({
      sprite,
      x: x / desktop.width,
      y: y / desktop.height,
      flight,
      ticket
    }))
  });
}

/** Brings back what this tab remembers. It may be anything: whoever owns the tab may write it. */
function recall(kept) {
  const list = Array.isArray(kept?.sprites) ? kept.sprites.slice(-MOST_OF_ALL) : [];
  for (const entry of list) {
    try {
      const sprite = readSprite(entry?.sprite);
      const share = (value) => (value >= 0 && value <= 1 ? value : 0.5);
      const body = desktop.add(sprite, {
        x: share(entry.x) * desktop.width,
        y: share(entry.y) * desktop.height,
        half: stage.half
      });
      stage.dress(body);
      const { ticket, flight } = entry;
      if (['left', 'right', 'up', 'down'].includes(flight) && Number.isSafeInteger(ticket?.n)) {
        // Its throw was under way. Asked again with the same number, the server knows.
        body.flight = flight;
        body.flightTime = 1;
        body.ticket = { id: String(ticket.id), n: ticket.n, tried: true };
        throwIt(body, flight);
      }
    } catch (error) {
      if (!(error instanceof SpriteError)) throw error;
      console.warn('a remembered sprite is none:', error.message);
    }
  }
}

// ---- coming and going ----

function listen() {
  new ResizeObserver(() => {
    stage.resize();
    map.redraw();
  }).observe($('desk'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    stage.colors();
    map.redraw();
  });
  document.addEventListener('visibilitychange', () => {
    save();
    if (document.hidden) return;
    client.wake(); // After a sleep the parked poll may hang on a connection that is dead.
    look();
    stage.wake();
  });
  addEventListener('online', () => {
    client.wake();
    look();
  });
  addEventListener('offline', () => look());
  globalThis.navigation?.addEventListener('navigate', (event) => {
    reloading = event.navigationType === 'reload';
  });
  addEventListener('keydown', (event) => {
    const reload = event.key === 'F5' || ((event.ctrlKey || event.metaKey) && event.key === 'r');
    if (!reload) return;
    reloading = true;
    setTimeout(() => {
      reloading = false;
    }, 3000);
  });
  addEventListener('pagehide', (event) => {
    save();
    const { leaveUrl } = client;
    client.stop();
    if (event.persisted || reloading || !leaveUrl) return;
    navigator.sendBeacon(leaveUrl);
    store.keepPlace(null);
  });
  addEventListener('pageshow', (event) => {
    if (event.persisted) client.start(); // If its lease has run out, it will join anew.
  });
}

/** What was taken by hand is walked by key: the next one is not for the button. */
function toStage() {
  $('stage').focus({ preventScroll: true });
}

/** Takes a new sprite into the hand of a pointer, wherever that is. */
function takeInHand(picture, event) {
  const box = $('stage').getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  const body = take(picture, { x, y: Math.min(y, desktop.height) });
  if (body) stage.grab(body, event);
}

function furnish() {
  furnishTray({
    tray: $('tray'),
    file: $('file'),
    take: (picture, event) => (event ? takeInHand(picture, event) : take(picture)),
    open,
    toStage
  });
  takeDrops($('desk'), open);
  $('name').addEventListener('input', () => {
    const body = desktop.selected;
    if (!body || body.flight) return;
    const name = $('name').value.trim();
    body.sprite = readSprite({ ...body.sprite, name: name || undefined });
    stage.dress(body);
    changed();
  });
  $('name').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') $('stage').focus();
  });
}

/** Makes sprites of image files. */
async function open(files = [], { x, y } = {}) {
  const chosen = [...files];
  const amiss = [];
  if (chosen.length > FILES)
    amiss.push(`Eight at a time: ${chosen.length - FILES} were not taken.`);
  let step = 0;
  for (const file of chosen.slice(0, FILES)) {
    if (file.size > FILE_MOST) {
      amiss.push(`${file.name} is too large: 32 MB at most.`);
      continue;
    }
    const picture = await shrink(file);
    if (!picture) {
      amiss.push(`${file.name} is no image this browser can read.`);
    } else if (take(picture, x === undefined ? {} : { x: x + step, y: y + step })) {
      step += 24;
    } else {
      break; // The desktop is full, and has said so.
    }
  }
  if (amiss.length > 0) say(amiss.join(' '));
}

async function main() {
  furnish();
  stage.resize();
  const kept = await store.open();
  client = new Client({
    base: location.href.replace(/[?#].*/, ''),
    resume: kept.place,
    onSprite: enter,
    onState,
    onResume: (resume) => store.keepPlace(resume)
  });
  listen();
  client.start();
  recall(kept.desktop);
  if (desktop.bodies.length === 0) {
    put(PICTURES[Math.floor(Math.random() * PICTURES.length)], {
      x: desktop.width * 0.5,
      y: desktop.height * 0.78
    });
  }
  changed();
}

main();
