import { Client } from '../client/client.js';
import { grantOfLink } from '../client/link-grant.js';
import { WorldView } from './ring.js';

/**
 * The page's place in the torus: its client, the words about its state, and how the page comes and goes.
 *
 * Going away. A closed page leaves the torus at once, by a beacon, so that no neighbor throws into a
 * desktop that is not there. A reload should come back to its place instead, but a browser doesn't
 * tell a reload from a close. So a page that sees a reload coming (by a key, or by a script, which
 * the Navigation API announces) keeps its place, and any other page leaves. A reload by the browser's
 * button counts as a leave, and does no harm: sprites in the mailbox fly on, this desktop's sprites
 * are on the browser's shelf, and the join fills the hole that the leave has made. A page in the
 * back-forward cache, or discarded by the system, keeps its place as long as its lease.
 */

const LOOK_INTERVAL = 2000; // ms between two requests of the counts, in a small torus
const OFFLINE_LOOK_INTERVAL = 6000;
const SLEEP_DELAY = 12_000; // ms of delay of a look from which the machine must have slept
const COUNTDOWN_INTERVAL = 250; // ms between two updates of the countdown

const $ = (id) => document.getElementById(id);

export class Session {
  client;
  #options;
  #world;
  /** Number of connected clients at the last look; 0: not known. */
  people = 0;
  #lookTimer = 0;
  #lookDueAt = Infinity;
  #countdownTimer = 0;
  #isReloading = false;

  /**
   * @param {object} options
   * @param {unknown} options.resume the place as the store remembers it
   * @param {(place: object|null) => void} options.onResume called when the store must remember another place
   * @param {import('../client/loop.js').OnSprite} options.onSprite
   * @param {(url: string, init: object) => Promise<Response>} [options.fetch]
   * @param {import('./announcer.js').Announcer} options.announcer
   * @param {{thrown: number, caught: number}} options.tally
   * @param {() => string} options.alone returns the words for a desktop that is alone
   * @param {(place: object|null) => void} options.onPlace called with the place on the torus; null: unknown
   * @param {(online: boolean) => void} options.onState
   * @param {(closed: boolean) => void} options.onLeave called when the page is hidden or shown, or goes
   *     away; `closed`: it leaves the torus
   */
  constructor(options) {
    this.#options = options;
    this.#world = new WorldView($('world'), options.announcer);
    const { resume, onResume, onSprite, fetch } = options;
    this.client = new Client({
      ...grantOfLink(),
      base: new URL('.', location.href).href,
      resume,
      fetch,
      onSprite,
      onResume,
      onState: () => this.#onStateChange()
    });
    $('try-now').addEventListener('click', () => this.client.wake());
    $('state-words').textContent = 'Joining…';
  }

  start() {
    this.#listen();
    this.client.start();
  }

  #onStateChange() {
    const { state } = this.client;
    document.body.dataset.state = state;
    if (state !== 'online') {
      this.#options.onPlace(null);
      $('place').textContent = 'somewhere on the torus';
    }
    this.#options.onState(state === 'online');
    // In a toast, since the client may have joined again before the words below were read.
    if (state === 'superseded')
      this.#options.announcer.showToast('Another tab has taken over this place.');
    this.showWords();
    this.#look();
  }

  // ---- words ----

  /** Updates the words about the client's state. */
  showWords() {
    const { state, why } = this.client;
    const stateWords = {
      joining:
        why === 'unknown-client'
          ? 'The server has forgotten this place. Joining anew…'
          : 'Joining…',
      online: this.people === 1 ? this.#options.alone() : this.#thrownAndCaught(),
      offline: `${reasonWords(why)}. Meanwhile the edges are walls, and nothing gets lost.`,
      superseded: 'Joining anew…',
      left: 'You have left the torus.'
    }[state];
    const whenWords = this.people > 0 && state !== 'online' ? 'when last seen' : 'right now';
    const people = this.people === 1 ? 'person' : 'people';
    // While the number is unknown, these words stay as they are.
    if (this.people > 0) $('count-words').textContent = `${people} connected ${whenWords}`;
    this.#showCountdown();
    if ($('state-words').textContent === stateWords) return;
    $('state-words').textContent = stateWords;
    const { thrown, caught } = this.#options.tally;
    if (state !== 'online' || thrown + caught === 0)
      this.#options.announcer.announce(stateWords, 'state');
  }

  /** Returns a hint until the first throw or catch, then the numbers of throws and catches. */
  #thrownAndCaught() {
    const { thrown, caught } = this.#options.tally;
    return thrown + caught === 0
      ? 'Throw something over an edge.'
      : `You threw ${thrown}, and ${caught} came in.`;
  }

  /** Shows the time until the next try, while the client is offline. */
  #showCountdown() {
    clearTimeout(this.#countdownTimer);
    const isOffline = this.client.state === 'offline';
    const wait = isOffline ? this.client.nextTry : null;
    $('countdown').textContent = !isOffline
      ? ''
      : wait
        ? ` Trying again in ${Math.ceil(wait.ms / 1000)} s. `
        : ' Trying now… ';
    // While the client tries, the button stays, so that it does not jump from under a finger.
    const isOver = !isOffline || wait?.asked === true;
    if (isOver && document.activeElement === $('try-now')) $('stage').focus();
    $('try-now').hidden = isOver;
    if (isOffline)
      this.#countdownTimer = setTimeout(() => this.#showCountdown(), COUNTDOWN_INTERVAL);
  }

  // ---- looking around ----

  /** Requests the live counts and the place; less often in a larger torus. */
  async #look() {
    clearTimeout(this.#lookTimer);
    const client = this.client;
    const isOnline = client.state === 'online';
    const interval = Math.min(
      30_000,
      Math.max(LOOK_INTERVAL, LOOK_INTERVAL * Math.sqrt(this.people / 300))
    );
    const wait = (isOnline ? interval : OFFLINE_LOOK_INTERVAL) * (0.85 + 0.3 * Math.random());
    this.#lookTimer = setTimeout(() => this.#look(), wait);
    // A machine that slept may hold a poll on a connection that is long dead.
    if (!document.hidden && Date.now() - this.#lookDueAt > SLEEP_DELAY) client.wake();
    this.#lookDueAt = document.hidden ? Infinity : Date.now() + wait;
    if (document.hidden || client.state === 'left') return;
    const { id } = client;
    const [status, place] = await Promise.all([client.status(), client.place()]);
    const people = status?.world?.clients ?? status?.clients;
    if (Number.isSafeInteger(people) && people >= 0) this.#setPeople(people);
    // Without a place, another server of the world may have answered.
    if (status && id !== null && id === client.id) this.#world.show(status);
    if (place && client.state === 'online') this.#showPlace(place);
  }

  #setPeople(clients) {
    // Between a join and the next look this desktop may not be counted yet.
    const now = this.client.state === 'online' ? Math.max(1, clients) : clients;
    if (now === this.people) return;
    this.people = now;
    const text = now.toLocaleString('en');
    $('count').textContent = text;
    $('count').classList.toggle('long', text.length > 4);
    $('count').classList.remove('bump');
    void $('count').offsetWidth; // So that the animation restarts.
    $('count').classList.add('bump');
    document.title = `${text} · Sprites`;
    document.body.dataset.people = now;
    this.showWords();
  }

  #showPlace({ row, column, rows, columns }) {
    this.#options.onPlace({ row, column, rows, columns });
    document.body.dataset.place = [row, column, rows, columns].join(' ');
    $('place').textContent = `row ${row + 1} of ${rows}, column ${column + 1} of ${columns}`;
  }

  // ---- coming and going ----

  #listen() {
    const client = this.client;
    document.addEventListener('visibilitychange', () => {
      this.#options.onLeave(false);
      if (document.hidden) return;
      client.wake(); // After a sleep the parked poll may hang on a connection that is dead.
      this.#look();
    });
    // Neither event is trusted: the client asks the server whether there is contact.
    for (const event of ['online', 'offline']) {
      addEventListener(event, () => {
        client.wake();
        this.showWords(); // The client may have lost contact before the browser knew it was offline.
      });
    }
    globalThis.navigation?.addEventListener('navigate', (event) => {
      this.#isReloading = event.navigationType === 'reload';
    });
    addEventListener('keydown', (event) => {
      const isReload =
        event.key === 'F5' || ((event.ctrlKey || event.metaKey) && event.key === 'r');
      if (!isReload) return;
      this.#isReloading = true;
      setTimeout(() => {
        this.#isReloading = false;
      }, 3000);
    });
    addEventListener('pagehide', (event) => {
      const isClosed = !event.persisted && !this.#isReloading;
      const { leaveUrl } = client;
      client.stop();
      this.#options.onLeave(isClosed);
      if (isClosed && leaveUrl) navigator.sendBeacon(leaveUrl);
    });
    addEventListener('pageshow', (event) => {
      if (event.persisted) client.start(); // If the lease has run out, the client joins again.
    });
  }
}

function reasonWords(why) {
  return (
    {
      draining: 'The server is restarting',
      restarting: 'The server is restarting',
      'grant-required': 'This server wants an invitation: open the link you were given',
      'bad-grant': 'Your invitation is not valid: ask for a new link',
      'grant-expired': 'Your invitation has ended: ask for a new link',
      'not-granted': 'Your invitation does not let you in: ask for another link',
      'torus-full': 'The torus is full',
      'state-unwritable': 'The server can keep nothing just now',
      'too-many-clients': 'Too many are here from your network',
      'too-many-joins': 'Too many came at once',
      'too-many-connections': 'The server is full'
    }[why] ?? (navigator.onLine === false ? 'You are offline' : 'The server does not answer')
  );
}
