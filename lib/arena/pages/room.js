import { Feeds } from '../client/feeds.js';
import { DEFAULTS } from '../client/limits.js';
import { grantOfLink } from '../client/link-grant.js';
import { globalTimers, ignoreFailure, Requests } from '../client/requests.js';
import { read, write } from '../page/store.js';

/** What every page of an arena knows: its name, its control feed, and which game is shown. */

/** @returns {string} the arena's name, from the page's path */
export const arenaName = () => location.pathname.split('/').at(-1);

/** The grant of the page's link, as an option. */
export const byLink = grantOfLink();

/** The server's address. */
export const base = new URL('../', location.href).href;

const requests = new Requests(globalThis.fetch, globalTimers(), DEFAULTS);

/** Asks the server. @returns {Promise<{status: number, json?: any}>} status 0: no answer in time, or none of this server's */
export async function ask(url, init = {}) {
  try {
    return await requests.ask(url, init);
  } catch (error) {
    ignoreFailure(error);
    return { status: 0 };
  }
}

/** Why a page gets no answer, or a phone does not get in, where its link is the reason. */
export const INVITATIONS = {
  'grant-required': 'This game wants an invitation. Open the link you were given.',
  'bad-grant': 'Your invitation is not valid. Ask for a new link.',
  'grant-expired': 'Your invitation has ended. Ask for a new link.',
  'not-granted': 'Your invitation does not let you in. Ask for another link.'
};

/** How it stands with the contact, in words; empty where a control is there. */
function contactWords({ state, why, control, problem }) {
  const invitation = INVITATIONS[why ?? problem];
  if (invitation !== undefined) return invitation;
  if (state === 'offline') return 'No contact, trying again';
  if (state !== 'online') return 'Connecting…';
  return control === undefined ? 'There is no such arena' : '';
}

/**
 * Watches an arena. Only pages that show it watch the reduced feed: it has a version
 * some twenty times a second, and every one wakes all its watchers.
 */
export class Room {
  #feeds;
  #reduced = null;
  #onReduced;

  /**
   * @param {object} on
   * @param {(control: object|undefined) => void} on.control each new one; undefined: there is no such arena
   * @param {(reduced: object) => void} on.reduced
   * @param {(state: string, words: string) => void} on.state of the contact: `joining`, `online` or `offline`; empty words: all is well
   */
  constructor({ control, reduced, state }) {
    this.#onReduced = reduced;
    const now = {};
    const tell = (news) => {
      Object.assign(now, news);
      state(now.state === 'asking' ? 'joining' : now.state, contactWords(now));
    };
    this.#feeds = new Feeds({
      ...byLink,
      base,
      limits: { feedHold: 15 }, // A screen that all look at is not to stand still where a connection has died unseen.
      onState: (to, { why }) => tell({ state: to, why })
    });
    this.#feeds.watch(`arena/${arenaName()}/control`, (value, { problem }) => {
      control(value);
      tell({ control: value, problem });
    });
    for (const event of ['online', 'offline']) addEventListener(event, () => this.wake());
    document.addEventListener('visibilitychange', () => document.hidden || this.wake());
  }

  /** Trying now is worthwhile. */
  wake() {
    this.#feeds.wake();
  }

  /** @param {boolean} wanted whether the reduced feed is */
  watchReduced(wanted) {
    if (!wanted) this.#reduced?.close();
    if (wanted === (this.#reduced !== null)) return;
    const told = (value) => value !== undefined && this.#onReduced(value);
    this.#reduced = wanted ? this.#feeds.watch(`arena/${arenaName()}`, told) : null;
  }
}

let lock = null;

/** The screen stays on, where the browser lets it: on https and localhost only. To be called when the page is seen again. */
export async function stayAwake() {
  if (document.hidden || !navigator.wakeLock || (lock && !lock.released)) return;
  try {
    lock = await navigator.wakeLock.request('screen');
  } catch {
    lock = null; // The battery is low, or it is forbidden: the game goes on without.
  }
}

const nameOutsideLobby = ({ page, game }) => (page === 'lobby' ? null : game);

/** Gives the focus to what a game is played with; until that is there, to where it will be. */
export const goInto = (root) => (root.querySelector('[tabindex], button, input') ?? root).focus();

/** Loads what a game shows on this page, and ends it when there is another one. */
export class GameStage {
  #file;
  #root;
  #parts;
  #onChange;
  #nameOf;
  #isNew;
  #name = null;
  #turn = 0;
  #game = null;
  #control = null;
  #reduced = null;

  /**
   * @param {object} how
   * @param {'phone.js'|'field.js'|'panel.js'} how.file
   * @param {HTMLElement} how.root
   * @param {() => object} how.parts what its `start` gets, besides root and control
   * @param {(game: object|null, trouble?: string) => void} how.onChange another one is shown, or none
   * @param {(control: object) => string|null} [how.nameOf] of the game to show: none in the lobby
   * @param {(control: object, before: object|null) => boolean} [how.isNew] whether the same game begins anew
   */
  constructor({ file, root, parts, onChange, nameOf = nameOutsideLobby, isNew = () => false }) {
    this.#file = file;
    this.#root = root;
    this.#parts = parts;
    this.#onChange = onChange;
    this.#nameOf = nameOf;
    this.#isNew = isNew;
  }

  /** @param {object} control in the lobby no game is shown */
  control(control) {
    const before = this.#control;
    // One that has thrown is tried again in the next round.
    const isNew =
      this.#isNew(control, before) ||
      control.version !== before?.version ||
      (this.#game === null && control.round !== before?.round);
    this.#control = control;
    const name = this.#nameOf(control);
    if (name !== this.#name || (isNew && name !== null)) this.#change(name);
    else this.#call('control', control);
    // A server that has started anew counts from the start, and its values may have come first.
    if (control.round < before?.round) this.#tellReduced();
  }

  /** @param {object} reduced kept for a game that is still being loaded */
  reduced(reduced) {
    this.#reduced = reduced;
    this.#tellReduced();
  }

  /** The two feeds come in any order: what is left of an earlier round, or of another game, is not this one's. */
  #tellReduced() {
    const { game, round } = this.#reduced ?? {};
    if (this.#game === null || game !== this.#name || round < this.#control.round) return;
    this.#call('value', this.#reduced);
  }

  /** @param {number} now ms, of the screen's clock */
  frame(now) {
    this.#call('frame', now);
  }

  /** @param {unknown[]} look what the server says of itself, and when, for a panel */
  status(...look) {
    this.#call('status', ...look);
  }

  /** @returns {{title?: string, text?: string}|undefined} how the round ended, as the game says it, if it has begun */
  result() {
    const { game, round, value } = this.#reduced ?? {};
    const isNow = game === this.#name && round === this.#control?.round && value !== null;
    return isNow ? this.#call('result', this.#reduced) : undefined;
  }

  /** Begins again, with another player. */
  again() {
    if (this.#name !== null) this.#change(this.#name);
  }

  async #change(name) {
    const turn = ++this.#turn;
    this.#end();
    this.#name = name;
    this.#root.dataset.game = name ?? '';
    if (name === null) return this.#onChange(null);
    const { version } = this.#control;
    const folder = `games/${name}${version ? `~${version}` : ''}`;
    const module = await this.#import(new URL(`${folder}/${this.#file}`, base).href, turn);
    if (module === undefined || turn !== this.#turn) return undefined;
    try {
      const game = module.start({ root: this.#root, control: this.#control, ...this.#parts() });
      const isGame = typeof game?.stop === 'function';
      if (!isGame) throw new TypeError('start must return the game at once: an object with stop');
      this.#game = game;
    } catch (error) {
      return this.#trouble(error);
    }
    this.#onChange(this.#game);
    this.#tellReduced();
    if (document.activeElement === this.#root) goInto(this.#root);
    return undefined;
  }

  /** Imports a game's module. @returns {Promise<object|undefined>} undefined where that failed, which is said */
  async #import(url, turn) {
    const isWanted = () => turn === this.#turn;
    try {
      const module = await import(url);
      imported();
      return module;
    } catch (error) {
      if (!isWanted()) return undefined;
      this.#trouble(error);
      // What can't be fetched is a TypeError, another one each time; what is wrong with its own code stays as it is.
      const again = error instanceof TypeError && (await import(url).catch((same) => same));
      if (again && again !== error) reloadFor(url, isWanted);
      return undefined;
    }
  }

  /** A game that throws is ended on this page, and on this page alone. */
  #call(what, ...given) {
    if (this.#game === null) return undefined;
    try {
      return this.#game[what]?.(...given);
    } catch (error) {
      this.#end();
      this.#trouble(error);
      return undefined;
    }
  }

  #trouble(error) {
    console.error(error);
    this.#onChange(null, `${this.#name} can't be shown here: ${error.message}`);
  }

  #end() {
    const game = this.#game;
    this.#game = null;
    try {
      game?.stop();
    } catch (error) {
      console.error(error);
    }
    if (this.#root.contains(document.activeElement)) this.#root.focus();
    this.#root.replaceChildren();
  }
}

/**
 * A module that could not be fetched: a browser keeps that failure for as long as the page lives, for every import of it
 * again (whatwg/html issue 6768), and those that it imports as well. Only a page that is loaded anew asks again.
 */

const KEY = 'sprites.reloads';

/** Milliseconds until the first reload, and at most: twice as many each time, until one has helped. */
const FIRST = 1000;
const MOST = 60_000;

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Whether the server gives the file now: a page that is loaded anew without it would be an error page. */
async function isThere(url) {
  try {
    const { ok } = await fetch(url, { cache: 'no-store' });
    return ok;
  } catch {
    return false; // No contact: asked again.
  }
}

/**
 * Loads the page anew as soon as the server gives a file of it that could not be imported. A room full of phones
 * does not do so at once.
 *
 * @param {string} url the file's
 * @param {() => boolean} isWanted whether it still is; asked before each step
 */
async function reloadFor(url, isWanted) {
  const before = Number(read('sessionStorage', KEY)) || 0;
  const wait = Math.min(MOST, FIRST * 2 ** before);
  do {
    await pause(wait * (1 + Math.random()));
    if (!isWanted()) return;
  } while (!(await isThere(url)));
  if (!isWanted()) return;
  write('sessionStorage', KEY, before + 1);
  location.reload();
}

/** Says that a module was imported: the next failure is a first one. */
function imported() {
  write('sessionStorage', KEY, null);
}

/** What there is to play, as GET /games says: asked until it has answered, then when a game has another version. */

let asked = null;
let askedFor;

async function askGames() {
  const { status, json } = await ask(new URL('games', base));
  if (status === 200) return json.games;
  asked = null; // The next question asks again.
  return [];
}

/**
 * @param {string|null} [version] of the game that is played
 * @returns {Promise<object[]>}
 */
export function listGames(version = null) {
  if (version !== null && version !== askedFor) asked = null;
  askedFor = version ?? askedFor;
  asked ??= askGames();
  return asked;
}

/**
 * @param {{game: string|null, version: string|null}|null} control
 * @returns {Promise<{title: string, about: string}>} empty where there is no game
 */
export async function describeGame(control) {
  const name = control?.game;
  if (!name) return { title: '', about: '' };
  const games = await listGames(control.version);
  return games.find((game) => game.name === name) ?? { title: name, about: '' };
}
