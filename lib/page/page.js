import { Announcer, cameBack, from, sentence, side, what, where } from './announcer.js';
import { Companion } from './companion.js';
import { Covers } from './covers.js';
import { Desktop } from './desktop.js';
import { asName, takeFiles } from './images.js';
import { furnishInvitation, furnishPanels, invite } from './panels.js';
import { TorusMap } from './map.js';
import { Preferences } from './preferences.js';
import { PICTURES, SpriteError, readSprite, writeSprite } from '../client/sprite.js';
import { PollTurns } from './poll-turns.js';
import { Session } from './session.js';
import { Sound } from './sound.js';
import { Stage } from './stage.js';
import { Store, makeName } from './store.js';
import { furnishTray, takeDrops } from './tray.js';
import { Viewer } from './viewer.js';

/**
 * The page: connects the client, the desktop, the stage and the messages.
 *
 *     server ◀─▶ Client ──sprite──▶ Desktop ◀──▶ Stage ◀── pointers, keys
 *                  ▲                   │
 *                  └──── throw ◀── over an edge           Store: the tab's memory
 *
 * A sprite belongs to this desktop until the server has accepted its throw. So a flying sprite stays
 * on the desktop, out of sight. If the throw is refused, the sprite bounces back. Without an answer
 * it waits at its edge and is thrown again with the same number.
 */

const MOST = 200; // sprites on a full desktop; sprites that come in then fly on
const MOST_OF_ALL = 400; // sprites with flying ones; above this, sprites wait in the mailbox
const AGAIN = 4000; // ms until a throw without an answer is repeated, on average
const PHOTOS = 64_000_000; // most characters of all photos on a desktop; a further sprite has only its picture
const KEPT_PHOTOS = 2_000_000; // most characters of photos that a tab remembers: browsers store 5 MB for a site
const UNDO = 8000; // ms for which putting away can be undone
const ADOPT = 2000; // ms after the start until sprites of closed tabs are adopted: a reopened tab claims its own before

const ALONE = 'Only you, right now: what you throw over one edge comes back by the other.';
const ALONE_WITH_PIP = 'Only you, right now. Pip, behind the edge, throws back what you throw.';

const $ = (id) => document.getElementById(id);
const reduced = matchMedia('(prefers-reduced-motion: reduce)');
const preferences = new Preferences();
const still = () => reduced.matches || !preferences.get('lively');
const sound = new Sound(() => preferences.get('sound'));
const store = new Store();
const announcer = new Announcer($('toast'), $('news'), $('stage'));
const covers = new Covers(
  () => preferences.get('cover'),
  announcer,
  () => {
    dressAll();
    changed();
  }
);
const say = (text) => announcer.say(text);
const hear = (text, subject) => announcer.hear(text, subject);
const tally = { thrown: 0, caught: 0, passed: 0, bounced: 0, refused: 0 };

const desktop = new Desktop(leave, (strength) => sound.bump(strength));
const companion = new Companion(desktop, thrownBack);
const viewer = new Viewer(covers, putAway);
const stage = new Stage({ canvas: $('stage'), tray: $('tray') }, desktop, {
  still,
  letters: () => preferences.get('letters'),
  onChange: changed,
  onAway: putAway,
  onOpen: (body) => viewer.open(body),
  onPick: (picture) => take({ picture }),
  onSelect: selected,
  onGrab: (body) => covers.offer(body),
  onCover: (body) => covers.toggle(body),
  isCovered: (body) => covers.isCovered(body),
  onWalked: walked
});
const map = new TorusMap($('map'), still);

let session;
let client;
let saving = 0;
let toldFull = false;
let keptWaiting = false;
let away = []; // bodies whose removal can be undone, the last one last

// ---- sprites ----

/** Takes a new sprite from the tray, by a key, or from a file. Returns null when the desktop is full. */
function take(image, how) {
  const body = put(image, how);
  if (body) {
    hear(`You took ${what(body.sprite, 'a')}.`);
    sound.play('take');
  }
  return body;
}

function put({ picture, photo, name: usual = '' }, { x, y } = {}) {
  if (isFull()) {
    sayFull();
    return null;
  }
  const sprite = { id: makeName(), picture, at: 0.5, speed: [0, 0], photo };
  const name = asName($('name').value) || usual;
  if (name) sprite.name = name;
  const half = stage.half(picture);
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

/** Announces a sprite that was selected by key. */
function selected(body) {
  const free = desktop.bodies.filter(({ flight }) => !flight);
  const which = free.length > 1 ? `, ${free.indexOf(body) + 1} of ${free.length}` : '';
  const whose = body.stranger ? from(body.sprite) : '';
  hear(`${sentence(what(body.sprite))}${whose}${which}, ${where(body, desktop)}.`, 'selected');
  covers.offer(body);
}

function dressAll() {
  for (const body of desktop.bodies) stage.dress(body);
}

function walked(body) {
  hear(`${sentence(what(body.sprite))} is ${where(body, desktop)} now.`, 'walked');
}

function isFull() {
  let here = 0;
  for (const body of desktop.bodies) if (!body.flight) here += 1;
  return here >= MOST;
}

function sayFull() {
  say(`This desktop is full, with ${MOST} sprites. Throw one, or put one away.`);
}

function putAway(body) {
  // A flying sprite may be the neighbor's already. A held sprite may have been put away by a key before.
  if (body.flight || !desktop.bodies.includes(body)) return;
  desktop.gone(body);
  const kept = { ...body, x: body.x / desktop.width, y: body.y / desktop.height };
  away.push(kept);
  setTimeout(() => {
    away = away.filter((other) => other !== kept);
  }, UNDO);
  sound.play('away');
  announcer.offer(`You put away ${what(body.sprite)}.`, 'Undo', UNDO, {
    act: undo,
    key: 'Control and Z'
  });
  stage.wake();
  changed();
}

/** Brings back the sprite that was put away last. */
function undo() {
  if (away.length === 0) return;
  if (isFull()) {
    sayFull();
    return;
  }
  // After an undo by key the toast's button has nothing left to do.
  announcer.withdraw(undo);
  const { sprite, x, y, stranger } = away.pop();
  const body = desktop.add(sprite, {
    x: x * desktop.width,
    y: y * desktop.height,
    half: stage.half(sprite.picture)
  });
  body.stranger = stranger;
  desktop.selected = body;
  stage.dress(body);
  stage.wake();
  hear(`${sentence(what(body.sprite))} is back.`);
  changed();
}

/** Takes a sprite that comes in. @returns {boolean} false: there is no room, not even to let it fly on */
function enter(value, { from: edge }) {
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
  const own = companion.knows(sprite);
  const isStranger = own?.stranger ?? true;
  // If it has come around the torus before its throw was answered, the throw was accepted, whatever the answer is.
  if (own) desktop.arrived(sprite.id);
  if (isFull()) {
    passOn(sprite, edge, isStranger);
    return true;
  }
  map.fly(edge, false);
  if (own && session.people === 1 && preferences.get('companion')) {
    stage.dress(companion.take(sprite, edge, stage.half(sprite.picture)));
    hear(`Pip has ${what(sprite)}.`, 'Pip');
    stage.wake();
    changed();
    return true;
  }
  if (photoLength() + (sprite.photo?.length ?? 0) > PHOTOS) delete sprite.photo;
  const body = desktop.enter(sprite, edge, stage.half(sprite.picture));
  body.stranger = isStranger;
  cameIn(body, edge);
  stage.introduce(body);
  const which = `${sentence(what(sprite, 'a'))}${from(sprite)}`;
  hear(`${which} came in by the ${side(edge)} edge.`, 'came in');
  return true;
}

/** Announces that Pip has thrown a sprite back over an edge. */
function thrownBack(body, edge) {
  cameIn(body, edge);
  hear(`Pip threw ${what(body.sprite)} back over the ${side(edge)} edge.`, 'came in');
}

function cameIn(body, edge) {
  stage.dress(body);
  stage.ripple(body.x, body.y, colorOf(edge));
  sound.play('catch');
  tally.caught += 1;
  session.words();
  changed();
}

/**
 * Lets a sprite fly on, since the desktop is full: it never replaces a sprite that is here. It keeps its direction
 * and its speed. If its throw is refused, it comes back from the opposite edge, and stays here.
 */
function passOn(sprite, edge, isStranger) {
  const { body, time } = desktop.pass(sprite, edge, stage.half(sprite.picture));
  body.stranger = isStranger;
  stage.dress(body);
  tally.passed += 1;
  if (!toldFull) say('This desktop is full: what comes in flies on, by the opposite edge.');
  toldFull = true;
  changed();
  setTimeout(() => {
    const { at } = desktop.crossing(body, body.flight);
    body.sprite = { ...body.sprite, at: Math.min(1, Math.max(0, at)) };
    body.ticket = client.ticket();
    throwIt(body, body.flight);
  }, time * 1000);
}

/** Throws a sprite whose middle has crossed an edge. */
function leave(body, edge) {
  const crossing = desktop.crossing(body, edge);
  const by = asName(preferences.get('desktop')) || undefined;
  body.sprite = readSprite({ ...JSON.parse(writeSprite({ ...body.sprite, ...crossing, by })) });
  body.ticket = client.ticket();
  companion.saw(body);
  stage.ripple(body.x, body.y, colorOf(edge));
  changed();
  throwIt(body, edge);
}

async function throwIt(body, edge) {
  save();
  const outcome = await client.throw(edge, writeSprite(body.sprite, client.maxSprite), {
    patience: 0,
    ticket: body.ticket
  });
  if (body.flight !== edge) return;
  if (outcome.thrown === true) {
    tally.thrown += 1;
    map.fly(edge, true);
    sound.play('throw');
    hear(`You threw ${what(body.sprite)} over the ${side(edge)} edge.`, 'thrown');
    session.words();
    // The sprite is still drawn as it leaves. A reload meanwhile must not throw it again.
    body.arrived = true;
    if (body.flightTime < 0.25) await new Promise((go) => void setTimeout(go, 250));
    desktop.gone(body);
    stage.wake();
  } else if (outcome.state === 'unanswered') {
    body.ticket = outcome.ticket;
    // The server is reachable, and this throw still gets no answer: the photo is too much for the network.
    if (body.sprite.photo && client.state === 'online' && !outcome.problem) {
      body.sprite = { ...body.sprite, photo: undefined };
      say('The network is too slow for that photo: it is thrown smaller.');
    }
    setTimeout(
      () => {
        if (body.flight === edge && desktop.bodies.includes(body)) throwIt(body, edge);
      },
      AGAIN * (0.5 + Math.random())
    );
  } else if (body.arrived) {
    desktop.gone(body);
    stage.wake();
  } else {
    // The throw was refused, or its outcome stays unknown: a sprite seen twice is better than a lost one.
    tally.bounced += 1;
    desktop.back(body);
    stage.wake();
    say(cameBack(outcome, neighbor(edge)));
  }
  changed();
}

// ---- callbacks of the session ----

function onState(online) {
  desktop.open = online;
  stage.wake();
}

function onLeave(closed) {
  save();
  if (closed) store.close(memory());
}

// ---- words ----

function neighbor(edge) {
  return session.people === 1 ? 'other edge' : `${side(edge)} neighbor`;
}

function colorOf(edge) {
  const name = edge === 'left' || edge === 'right' ? '--across' : '--along';
  return getComputedStyle(document.body).getPropertyValue(name).trim();
}

// ---- memory ----

/** Publishes a change in data attributes, for programs that watch the page, and schedules a save. */
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

function photoLength() {
  let length = 0;
  for (const { sprite } of desktop.bodies) length += sprite.photo?.length ?? 0;
  return length;
}

function memory() {
  let left = KEPT_PHOTOS;
  const remembered = ({ sprite }) => {
    left -= sprite.photo?.length ?? 0;
    return left >= 0 ? sprite : { ...sprite, photo: undefined };
  };
  return {
    sprites: desktop.bodies
      .filter((body) => !body.arrived)
      .map((body) => ({
        sprite: remembered(body),
        x: body.x / desktop.width,
        y: body.y / desktop.height,
        flight: body.flight,
        ticket: body.ticket,
        stranger: body.stranger,
        // true: hidden by the visitor, also after a reload; 'with-all': only the preference covers it.
        hidden: covers.isHidden(body) || (covers.isCovered(body) && 'with-all')
      }))
  };
}

function save() {
  clearTimeout(saving);
  saving = 0;
  store.keepDesktop(memory());
}

/** Brings back the sprites that this tab remembers. The memory is not trusted: its owner can write anything into it. */
function recall(kept) {
  const list = Array.isArray(kept?.sprites) ? kept.sprites.slice(-MOST_OF_ALL) : [];
  for (const entry of list) {
    try {
      const sprite = readSprite(entry?.sprite);
      const share = (value) => (value >= 0 && value <= 1 ? value : 0.5);
      const body = desktop.add(sprite, {
        x: share(entry.x) * desktop.width,
        y: share(entry.y) * desktop.height,
        half: stage.half(sprite.picture)
      });
      body.stranger = entry.stranger === true;
      if (entry.hidden === true) covers.hide(sprite.picture);
      stage.dress(body);
      const { ticket, flight } = entry;
      if (['left', 'right', 'up', 'down'].includes(flight) && Number.isSafeInteger(ticket?.n)) {
        // Its throw was under way. The server recognizes a repeated throw by its number.
        body.flight = flight;
        body.flightTime = 1;
        body.ticket = { id: String(ticket.id), n: ticket.n, tried: true };
        companion.saw(body);
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
  document.addEventListener('visibilitychange', () => stage.wake());
  addEventListener('keydown', (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === 'z' && !isTyping(event)) undo();
  });
}

function isTyping({ target }) {
  return target instanceof HTMLInputElement && target.type !== 'file';
}

/** Moves the focus to the stage: the next keys then move the sprite that was taken, and don't press its button. */
function toStage() {
  $('stage').focus({ preventScroll: true });
}

/** Takes a new sprite into the hand of a pointer, wherever the pointer is. */
function takeInHand(image, event) {
  const box = $('stage').getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  const body = take(image, { x, y: Math.min(y, desktop.height) });
  if (body) stage.grab(body, event);
}

function furnish() {
  furnishTray({
    tray: $('tray'),
    file: $('file'),
    take: (picture, event) => (event ? takeInHand({ picture }, event) : take({ picture })),
    open,
    toStage
  });
  takeDrops($('desk'), open);
  furnishPanels(preferences, invite);
  furnishInvitation();
  preferences.onChange((name) => {
    if (name === 'cover') dressAll();
    if (name === 'companion') session.words();
    stage.wake();
  });
  $('name').addEventListener('input', () => {
    const body = desktop.selected;
    if (!body || body.flight) return;
    const name = asName($('name').value);
    body.sprite = readSprite({ ...body.sprite, name: name || undefined });
    stage.dress(body);
    changed();
  });
  $('name').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') $('stage').focus();
  });
}

/** Makes sprites of image files, side by side. */
async function open(files = [], { x, y } = {}) {
  const amiss = await takeFiles(files, client?.maxSprite, (image, step) => {
    const at = x === undefined ? {} : { x: x + 24 * step, y: y + 24 * step };
    return take(image, at) !== null;
  });
  if (amiss) say(amiss);
}

async function main() {
  furnish();
  stage.resize();
  const kept = await store.open();
  session = new Session({
    resume: kept.place,
    onResume: (resume) => store.keepPlace(resume),
    onSprite: enter,
    fetch: (await PollTurns.needed()) ? new PollTurns().fetch : undefined,
    announcer,
    tally,
    alone: () => (preferences.get('companion') ? ALONE_WITH_PIP : ALONE),
    onPlace: (place) => map.show(place),
    onState,
    onLeave
  });
  client = session.client;
  listen();
  session.start();
  recall(kept.desktop);
  if (desktop.bodies.length === 0) {
    const picture = PICTURES[Math.floor(Math.random() * PICTURES.length)];
    put({ picture }, { x: desktop.width * 0.5, y: desktop.height * 0.78 });
  }
  changed();
  setTimeout(() => {
    recall({ sprites: store.adopt(MOST - desktop.bodies.length) });
    changed();
  }, ADOPT);
}

main();
