import {
  Announcer,
  returnWords,
  senderWords,
  capitalize,
  sideName,
  describeSprite,
  describePosition
} from './announcer.js';
import { Companion } from './companion.js';
import { Covers } from './covers.js';
import { Desktop } from './desktop.js';
import { toSpriteName, addFiles } from './images.js';
import { connectInvitation, connectPanels, fillInvitation } from './panels.js';
import { TorusMap } from './map.js';
import { Preferences } from './preferences.js';
import { PICTURES, SpriteError, readSprite, writeSprite } from '../client/sprite.js';
import { PollTurns } from './poll-turns.js';
import { resetReloadDelay, sleep } from './reload.js';
import { Session } from './session.js';
import { Sound } from './sound.js';
import { Stage } from './stage.js';
import { Store, randomName } from './store.js';
import { fillTray, acceptDrops } from './tray.js';
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

const MAX_SPRITES = 200; // sprites on a full desktop; sprites that come in then fly on
const MAX_BODIES = 400; // sprites with flying ones; above this, sprites wait in the mailbox
const RETRY_DELAY = 4000; // ms until a throw without an answer is repeated, on average
const MAX_PHOTO_LENGTH = 64_000_000; // characters of all photos on a desktop; a further sprite has only its picture
const MAX_STORED_PHOTOS = 2_000_000; // most characters of photos that a tab remembers: browsers store 5 MB for a site
const UNDO_TIME = 8000; // ms for which putting away can be undone
const ADOPT_DELAY = 2000; // ms until sprites of closed tabs are adopted: a reopened tab claims its own before

const ALONE = 'Only you, right now: what you throw over one edge comes back by the other.';
const ALONE_WITH_PIP = 'Only you, right now. Pip, behind the edge, throws back what you throw.';

const $ = (id) => document.getElementById(id);
const reducedMotion = matchMedia('(prefers-reduced-motion: reduce)');
const preferences = new Preferences();
const isStill = () => reducedMotion.matches || !preferences.get('lively');
const sound = new Sound(() => preferences.get('sound'));
const store = new Store();
const announcer = new Announcer($('toast'), $('news'), $('stage'));
const covers = new Covers(
  () => preferences.get('cover'),
  announcer,
  () => {
    updateAllImages();
    publishState();
  }
);
const showToast = (text) => announcer.showToast(text);
const announce = (text, subject) => announcer.announce(text, subject);
const tally = { thrown: 0, caught: 0, passed: 0, bounced: 0, refused: 0 };

const desktop = new Desktop(throwOff, (strength) => sound.bump(strength));
const companion = new Companion(desktop, onReturn);
const viewer = new Viewer(covers, putAway);
const stage = new Stage({ canvas: $('stage'), tray: $('tray') }, desktop, {
  isStill,
  letters: () => preferences.get('letters'),
  onChange: publishState,
  onPutAway: putAway,
  onOpen: (body) => viewer.open(body),
  onPick: (picture) => takeSprite({ picture }),
  onSelect: announceSelected,
  onGrab: (body) => covers.offer(body),
  onCover: (body) => covers.toggle(body),
  isCovered: (body) => covers.isCovered(body),
  onWalked: announceWalked
});
const map = new TorusMap($('map'), isStill);

let session;
let client;
let saveTimer = 0;
let hasAnnouncedFull = false;
let areSpritesWaiting = false;
let removedBodies = []; // bodies whose removal can be undone, the last one last

// ---- sprites ----

/** Takes a new sprite from the tray, by a key, or from a file. Returns null when the desktop is full. */
function takeSprite(image, position) {
  const body = addSprite(image, position);
  if (body) {
    announce(`You took ${describeSprite(body.sprite, 'a')}.`);
    sound.play('take');
  }
  return body;
}

function addSprite({ picture, photo, name: defaultName = '' }, { x, y } = {}) {
  if (hasNoRoom()) return null;
  const sprite = { id: randomName(), picture, at: 0.5, speed: [0, 0], photo };
  const name = toSpriteName($('name').value) || defaultName;
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
  stage.updateImages(body);
  publishState();
  return body;
}

/** Announces a sprite that was selected by key. */
function announceSelected(body) {
  const free = landedBodies();
  const position = free.length > 1 ? `, ${free.indexOf(body) + 1} of ${free.length}` : '';
  const sender = body.stranger ? senderWords(body.sprite) : '';
  announce(
    `${capitalize(describeSprite(body.sprite))}${sender}${position}, ${describePosition(body, desktop)}.`,
    'selected'
  );
  covers.offer(body);
}

function updateAllImages() {
  for (const body of desktop.bodies) stage.updateImages(body);
}

function announceWalked(body) {
  announce(
    `${capitalize(describeSprite(body.sprite))} is ${describePosition(body, desktop)} now.`,
    'walked'
  );
}

const landedBodies = () => desktop.bodies.filter(({ flight }) => !flight);

const isFull = () => landedBodies().length >= MAX_SPRITES;

/** Returns whether the desktop is full, and then says so. */
function hasNoRoom() {
  if (!isFull()) return false;
  showToast(`This desktop is full, with ${MAX_SPRITES} sprites. Throw one, or put one away.`);
  return true;
}

function putAway(body) {
  // A flying sprite may be the neighbor's already. A held sprite may have been put away by a key before.
  if (body.flight || !desktop.bodies.includes(body)) return;
  desktop.remove(body);
  const removed = { ...body, x: body.x / desktop.width, y: body.y / desktop.height };
  removedBodies.push(removed);
  setTimeout(() => {
    removedBodies = removedBodies.filter((other) => other !== removed);
  }, UNDO_TIME);
  sound.play('away');
  announcer.offer(`You put away ${describeSprite(body.sprite)}.`, 'Undo', UNDO_TIME, {
    act: undo,
    key: 'Control and Z'
  });
  stage.wake();
  publishState();
}

/** Puts a sprite where it was: `x` and `y` are shares of the desktop's size. */
function putBack(sprite, { x, y, stranger }) {
  const half = stage.half(sprite.picture);
  const body = desktop.add(sprite, { x: x * desktop.width, y: y * desktop.height, half });
  body.stranger = stranger;
  stage.updateImages(body);
  return body;
}

/** Brings back the sprite that was put away last. */
function undo() {
  if (removedBodies.length === 0) return;
  if (hasNoRoom()) return;
  // After an undo by key the toast's button has nothing left to do.
  announcer.withdraw(undo);
  const { sprite, x, y, stranger } = removedBodies.pop();
  desktop.selected = putBack(sprite, { x, y, stranger });
  stage.wake();
  announce(`${capitalize(describeSprite(sprite))} is back.`);
  publishState();
}

/** Takes a sprite that comes in. @returns {boolean} false: there is no room, not even to let it fly on */
function receive(value, { from: edge }) {
  if (desktop.bodies.length >= MAX_BODIES) {
    areSpritesWaiting = true;
    return false;
  }
  let sprite;
  try {
    sprite = readSprite(value);
  } catch (error) {
    if (!(error instanceof SpriteError)) throw error;
    tally.refused += 1;
    showToast('Something came in that is no sprite. It was not let onto the desktop.');
    publishState();
    return true;
  }
  const thrown = companion.findThrown(sprite);
  const isStranger = thrown?.stranger ?? true;
  // If it has come around the torus before its throw was answered, the throw was accepted, whatever the answer is.
  if (thrown) desktop.markAccepted(sprite.id);
  if (isFull()) {
    passOn(sprite, edge, isStranger);
    return true;
  }
  map.showFlight(edge, false);
  if (thrown && session.people === 1 && preferences.get('companion')) {
    stage.updateImages(companion.catchSprite(sprite, edge, stage.half(sprite.picture)));
    announce(`Pip has ${describeSprite(sprite)}.`, 'Pip');
    stage.wake();
    publishState();
    return true;
  }
  if (photoLength() + (sprite.photo?.length ?? 0) > MAX_PHOTO_LENGTH) delete sprite.photo;
  const body = desktop.enter(sprite, edge, stage.half(sprite.picture));
  body.stranger = isStranger;
  showArrival(body, edge);
  stage.showSender(body);
  const arrival = `${capitalize(describeSprite(sprite, 'a'))}${senderWords(sprite)}`;
  announce(`${arrival} came in by the ${sideName(edge)} edge.`, 'came in');
  return true;
}

/** Announces that Pip has thrown a sprite back over an edge. */
function onReturn(body, edge) {
  showArrival(body, edge);
  announce(
    `Pip threw ${describeSprite(body.sprite)} back over the ${sideName(edge)} edge.`,
    'came in'
  );
}

function showArrival(body, edge) {
  stage.updateImages(body);
  stage.ripple(body.x, body.y, colorOf(edge));
  sound.play('catch');
  tally.caught += 1;
  session.showWords();
  publishState();
}

/**
 * Lets a sprite fly on, since the desktop is full: it never replaces a sprite that is here. It keeps its direction
 * and its speed. If its throw is refused, it comes back from the opposite edge, and stays here.
 */
function passOn(sprite, edge, isStranger) {
  const { body, time } = desktop.passThrough(sprite, edge, stage.half(sprite.picture));
  body.stranger = isStranger;
  stage.updateImages(body);
  tally.passed += 1;
  if (!hasAnnouncedFull)
    showToast('This desktop is full: what comes in flies on, by the opposite edge.');
  hasAnnouncedFull = true;
  publishState();
  setTimeout(() => {
    const { at } = desktop.crossing(body, body.flight);
    body.sprite = { ...body.sprite, at: Math.min(1, Math.max(0, at)) };
    body.ticket = client.ticket();
    sendThrow(body, body.flight);
  }, time * 1000);
}

/** Throws a sprite whose middle has crossed an edge. */
function throwOff(body, edge) {
  const crossing = desktop.crossing(body, edge);
  const by = toSpriteName(preferences.get('desktop')) || undefined;
  body.sprite = readSprite({ ...JSON.parse(writeSprite({ ...body.sprite, ...crossing, by })) });
  body.ticket = client.ticket();
  companion.rememberThrow(body);
  stage.ripple(body.x, body.y, colorOf(edge));
  publishState();
  sendThrow(body, edge);
}

async function sendThrow(body, edge) {
  save();
  const outcome = await client.throw(edge, writeSprite(body.sprite, client.maxSprite), {
    patience: 0,
    ticket: body.ticket
  });
  if (body.flight !== edge) return;
  if (outcome.thrown === true) {
    tally.thrown += 1;
    map.showFlight(edge, true);
    sound.play('throw');
    announce(`You threw ${describeSprite(body.sprite)} over the ${sideName(edge)} edge.`, 'thrown');
    session.showWords();
    // The sprite is still drawn as it leaves. A reload meanwhile must not throw it again.
    body.isAccepted = true;
    if (body.flightTime < 0.25) await sleep(250);
    desktop.remove(body);
    stage.wake();
  } else if (outcome.state === 'unanswered') {
    body.ticket = outcome.ticket;
    // The server is reachable, and this throw still gets no answer: the photo is too much for the network.
    if (body.sprite.photo && client.state === 'online' && !outcome.problem) {
      body.sprite = { ...body.sprite, photo: undefined };
      showToast('The network is too slow for that photo: it is thrown smaller.');
    }
    setTimeout(
      () => {
        if (body.flight === edge && desktop.bodies.includes(body)) sendThrow(body, edge);
      },
      RETRY_DELAY * (0.5 + Math.random())
    );
  } else if (body.isAccepted) {
    desktop.remove(body);
    stage.wake();
  } else {
    // The throw was refused, or its outcome stays unknown: a sprite seen twice is better than a lost one.
    tally.bounced += 1;
    desktop.returnFromEdge(body);
    stage.wake();
    showToast(returnWords(outcome, neighbor(edge)));
  }
  publishState();
}

// ---- callbacks of the session ----

function onState(online) {
  desktop.isOpen = online;
  stage.wake();
}

function onLeave(closed) {
  save();
  if (closed) store.close(snapshot());
}

// ---- words ----

function neighbor(edge) {
  return session.people === 1 ? 'other edge' : `${sideName(edge)} neighbor`;
}

function colorOf(edge) {
  const name = edge === 'left' || edge === 'right' ? '--across' : '--along';
  return getComputedStyle(document.body).getPropertyValue(name).trim();
}

// ---- memory ----

/** Publishes a change in data attributes, for programs that watch the page, and schedules a save. */
function publishState() {
  const canvas = $('stage');
  const { bodies } = desktop;
  if (hasAnnouncedFull && !isFull()) hasAnnouncedFull = false;
  if (areSpritesWaiting && bodies.length < MAX_BODIES) {
    areSpritesWaiting = false;
    client.wake();
  }
  const at = (body) => `${body.sprite.id} ${Math.round(body.x)} ${Math.round(body.y)}`;
  const landed = landedBodies();
  canvas.dataset.sprites = landed.length;
  canvas.dataset.flying = bodies.length - landed.length;
  canvas.dataset.moving = desktop.isMoving;
  canvas.dataset.where = landed.slice(-20).map(at).join(',');
  for (const [name, number] of Object.entries(tally)) canvas.dataset[name] = number;
  saveTimer ||= setTimeout(save, 300);
}

const photoLength = () =>
  desktop.bodies.reduce((length, { sprite }) => length + (sprite.photo?.length ?? 0), 0);

function snapshot() {
  let photoRoom = MAX_STORED_PHOTOS;
  const withinPhotoRoom = ({ sprite }) => {
    photoRoom -= sprite.photo?.length ?? 0;
    return photoRoom >= 0 ? sprite : { ...sprite, photo: undefined };
  };
  return {
    sprites: desktop.bodies
      .filter((body) => !body.isAccepted)
      .map((body) => ({
        sprite: withinPhotoRoom(body),
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
  clearTimeout(saveTimer);
  saveTimer = 0;
  store.saveDesktop(snapshot());
}

/** Brings back the sprites that this tab remembers. The memory is not trusted: its owner can write anything into it. */
function restore(stored) {
  const list = Array.isArray(stored?.sprites) ? stored.sprites.slice(-MAX_BODIES) : [];
  for (const entry of list) {
    try {
      const sprite = readSprite(entry?.sprite);
      const toShare = (value) => (value >= 0 && value <= 1 ? value : 0.5);
      if (entry.hidden === true) covers.hide(sprite.picture);
      const body = putBack(sprite, {
        x: toShare(entry.x),
        y: toShare(entry.y),
        stranger: entry.stranger === true
      });
      const { ticket, flight } = entry;
      if (['left', 'right', 'up', 'down'].includes(flight) && Number.isSafeInteger(ticket?.n)) {
        // Its throw was under way. The server recognizes a repeated throw by its number.
        body.flight = flight;
        body.flightTime = 1;
        body.ticket = { id: String(ticket.id), n: ticket.n, tried: true };
        companion.rememberThrow(body);
        sendThrow(body, flight);
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
    stage.readColors();
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
function focusStage() {
  $('stage').focus({ preventScroll: true });
}

/** Takes a new sprite into the hand of a pointer, wherever the pointer is. */
function takeInHand(image, event) {
  const box = $('stage').getBoundingClientRect();
  const x = event.clientX - box.left;
  const y = event.clientY - box.top;
  const body = takeSprite(image, { x, y: Math.min(y, desktop.height) });
  if (body) stage.grab(body, event);
}

function connectControls() {
  fillTray({
    tray: $('tray'),
    file: $('file'),
    take: (picture, event) => (event ? takeInHand({ picture }, event) : takeSprite({ picture })),
    open: addFromFiles,
    focusStage
  });
  acceptDrops($('desk'), addFromFiles);
  connectPanels(preferences, fillInvitation);
  connectInvitation();
  preferences.onChange((name) => {
    if (name === 'cover') updateAllImages();
    if (name === 'companion') session.showWords();
    stage.wake();
  });
  $('name').addEventListener('input', () => {
    const body = desktop.selected;
    if (!body || body.flight) return;
    const name = toSpriteName($('name').value);
    body.sprite = readSprite({ ...body.sprite, name: name || undefined });
    stage.updateImages(body);
    publishState();
  });
  $('name').addEventListener('keydown', (event) => {
    if (event.key === 'Enter') $('stage').focus();
  });
}

/** Makes sprites of image files, side by side. */
async function addFromFiles(files = [], { x, y } = {}) {
  const problems = await addFiles(files, client?.maxSprite, (image, step) => {
    const position = x === undefined ? {} : { x: x + 24 * step, y: y + 24 * step };
    return takeSprite(image, position) !== null;
  });
  if (problems) showToast(problems);
}

async function main() {
  resetReloadDelay();
  connectControls();
  stage.resize();
  const stored = await store.load();
  session = new Session({
    resume: stored.place,
    onResume: (resume) => store.savePlace(resume),
    onSprite: receive,
    fetch: (await PollTurns.isNeeded()) ? new PollTurns().fetch : undefined,
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
  restore(stored.desktop);
  if (desktop.bodies.length === 0) {
    const picture = PICTURES[Math.floor(Math.random() * PICTURES.length)];
    addSprite({ picture }, { x: desktop.width * 0.5, y: desktop.height * 0.78 });
  }
  publishState();
  setTimeout(() => {
    restore({ sprites: store.takeShelved(MAX_SPRITES - desktop.bodies.length) });
    publishState();
  }, ADOPT_DELAY);
}

main();
