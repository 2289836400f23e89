import { Feeds } from '../client/feeds.js';
import { DEFAULTS } from '../client/limits.js';
import { grantOfLink } from '../client/link-grant.js';
import { globalTimers, ignoreFailure, Requests } from '../client/requests.js';
import { reloadWhenServed, resetReloadDelay } from '../page/reload.js';

/** The common part of all pages of an arena: its name, its feeds, and the game that is shown. */

/** @returns {string} the arena's name, from the page's path */
export const arenaName = () => location.pathname.split('/').at(-1);

/** The grant of the page's link, as an option. */
export const grantOption = grantOfLink();

/** The server's address. */
export const base = new URL('../', location.href).href;

const requests = new Requests(globalThis.fetch, globalTimers(), DEFAULTS);

/** Sends a request. @returns {Promise<{status: number, json?: any}>} status 0: no answer in time, or an invalid one */
export async function sendRequest(url, init = {}) {
  try {
    return await requests.send(url, init);
  } catch (error) {
    ignoreFailure(error);
    return { status: 0 };
  }
}

/** Words for the problems of the grant in a page's link. */
export const INVITATION_WORDS = {
  'grant-required': 'This game wants an invitation. Open the link you were given.',
  'bad-grant': 'Your invitation is not valid. Ask for a new link.',
  'grant-expired': 'Your invitation has ended. Ask for a new link.',
  'not-granted': 'Your invitation does not let you in. Ask for another link.'
};

/** Returns the state of the connection in words; empty if there is a control. */
function contactWords({ state, why, control, problem }) {
  const invitation = INVITATION_WORDS[why ?? problem];
  if (invitation !== undefined) return invitation;
  if (state === 'offline') return 'No contact, trying again';
  // A malformed name is never asked for.
  if (state !== 'online' && problem !== 'bad-key') return 'Connecting…';
  return control === undefined ? 'There is no such arena' : '';
}

/**
 * Watches an arena. Pages watch the reduced feed only while they show it: it has some twenty versions a second, and
 * each of them wakes all watchers.
 */
export class ArenaFeeds {
  #feeds;
  #reduced = null;
  #onReduced;
  #contact = {};
  #onState;

  /**
   * @param {object} callbacks
   * @param {(control: object|undefined) => void} callbacks.onControl each new control; undefined without
   *     such an arena
   * @param {(reduced: object) => void} callbacks.onReduced
   * @param {(state: string, words: string) => void} callbacks.onState state of the connection, `joining`, `online` or
   *     `offline`; the words are empty without trouble
   * @param {number} [callbacks.backoffMost] longest wait after a failure, in ms
   */
  constructor({ onControl, onReduced, onState, backoffMost = DEFAULTS.backoffMost }) {
    this.#onReduced = onReduced;
    this.#onState = onState;
    this.#feeds = new Feeds({
      ...grantOption,
      base,
      // Seconds. Short: a silently dead connection must not freeze the big screen.
      limits: { feedHold: 15, backoffMost },
      onState: (to, { why }) => this.#report({ state: to, why })
    });
    this.#feeds.watch(`arena/${arenaName()}/control`, (value, { problem }) => {
      onControl(value);
      this.#report({ control: value, problem });
    });
    for (const event of ['online', 'offline']) addEventListener(event, () => this.wake());
    document.addEventListener('visibilitychange', () => document.hidden || this.wake());
  }

  #report(changes) {
    const contact = Object.assign(this.#contact, changes);
    this.#onState(contact.state === 'asking' ? 'joining' : contact.state, contactWords(contact));
  }

  /** Retries at once. */
  wake() {
    this.#feeds.wake();
  }

  /** @param {boolean} isWanted whether to watch the reduced feed */
  watchReduced(isWanted) {
    if (!isWanted) this.#reduced?.close();
    if (isWanted === (this.#reduced !== null)) return;
    const onValue = (value) => value !== undefined && this.#onReduced(value);
    this.#reduced = isWanted ? this.#feeds.watch(`arena/${arenaName()}`, onValue) : null;
  }
}

let lock = null;

/** Keeps the screen on; browsers allow that on https and localhost only. To be called when the page gets visible. */
export async function stayAwake() {
  if (document.hidden || !navigator.wakeLock || (lock && !lock.released)) return;
  try {
    lock = await navigator.wakeLock.request('screen');
  } catch {
    lock = null; // The battery is low, or a policy forbids it: the game works without a lock.
  }
}

/** Focuses a game's first control; before there is one, the game's root. */
export const focusGame = (root) =>
  (root.querySelector('[tabindex], button, input') ?? root).focus();

/** Loads a game's module for this page, and stops it when another game is to be shown. */
export class GameStage {
  #how;
  #name = null;
  #loadCount = 0;
  #game = null;
  #control = null;
  #reduced = null;

  /**
   * @param {object} how
   * @param {'phone.js'|'field.js'|'panel.js'} how.file
   * @param {HTMLElement} how.root
   * @param {() => object} how.startOptions returns further arguments of its `start`, besides root and control
   * @param {(game: object|null, trouble?: string) => void} how.onChange called when another game, or none, is shown
   * @param {(control: object) => string|null} [how.nameOf] name of the game to show; by default none in the lobby
   * @param {(control: object, before: object|null) => boolean} [how.isRestart] whether the same game is to be restarted
   */
  constructor(how) {
    this.#how = {
      nameOf: ({ page, game }) => (page === 'lobby' ? null : game),
      isRestart: () => false,
      ...how
    };
  }

  /** @param {object} control in the lobby no game is shown */
  control(control) {
    const before = this.#control;
    // A game that has thrown is started again in the next round.
    const isRestart =
      this.#how.isRestart(control, before) ||
      control.version !== before?.version ||
      (this.#game === null && control.round !== before?.round);
    this.#control = control;
    const name = this.#how.nameOf(control);
    if (name !== this.#name || (isRestart && name !== null)) this.#loadGame(name);
    else this.#callGame('control', control);
    // A restarted server counts rounds from the start again, and its values may have come first.
    if (control.round < before?.round) this.#passReduced();
  }

  /** @param {object} reduced kept for a game that is still being loaded */
  reduced(reduced) {
    this.#reduced = reduced;
    this.#passReduced();
  }

  /** Passes the value on, unless it belongs to an earlier round or another game: the two feeds come in any order. */
  #passReduced() {
    const { game, round } = this.#reduced ?? {};
    if (this.#game === null || game !== this.#name || round < this.#control.round) return;
    this.#callGame('value', this.#reduced);
  }

  /** @param {number} now ms, by the screen's clock */
  frame(now) {
    this.#callGame('frame', now);
  }

  /** @param {unknown[]} look the server's status and its time, for a panel */
  status(...look) {
    this.#callGame('status', ...look);
  }

  /** @returns {{title?: string, text?: string}|undefined} the game's words on the result of the round */
  result() {
    const { game, round, value } = this.#reduced ?? {};
    const isCurrent = game === this.#name && round === this.#control?.round && value !== null;
    return isCurrent ? this.#callGame('result', this.#reduced) : undefined;
  }

  /** Restarts the game, for another player. */
  restart() {
    if (this.#name !== null) this.#loadGame(this.#name);
  }

  async #loadGame(name) {
    const loadNumber = ++this.#loadCount;
    this.#stopGame();
    this.#name = name;
    const { root, file, startOptions, onChange } = this.#how;
    root.dataset.game = name ?? '';
    if (name === null) return onChange(null);
    const { version } = this.#control;
    const folder = `games/${name}${version ? `~${version}` : ''}`;
    const module = await this.#import(new URL(`${folder}/${file}`, base).href, loadNumber);
    if (module === undefined || loadNumber !== this.#loadCount) return undefined;
    try {
      const game = module.start({ root, control: this.#control, ...startOptions() });
      const isGame = typeof game?.stop === 'function';
      if (!isGame) throw new TypeError('start must return the game at once: an object with stop');
      this.#game = game;
    } catch (error) {
      return this.#reportError(error);
    }
    onChange(this.#game);
    this.#passReduced();
    if (document.activeElement === root) focusGame(root);
    return undefined;
  }

  /** Imports a game's module. @returns {Promise<object|undefined>} undefined on failure, which is shown */
  async #import(url, loadNumber) {
    const isWanted = () => loadNumber === this.#loadCount;
    try {
      const module = await import(url);
      resetReloadDelay();
      return module;
    } catch (error) {
      if (!isWanted()) return undefined;
      this.#reportError(error);
      // A failed fetch is a new TypeError each time. An error in the module's code is the same object each time.
      const secondError = error instanceof TypeError && (await import(url).catch((same) => same));
      if (secondError && secondError !== error) reloadWhenServed(url, isWanted);
      return undefined;
    }
  }

  /** Calls a function of the game. If it throws, the game ends, on this page only. */
  #callGame(method, ...args) {
    if (this.#game === null) return undefined;
    try {
      return this.#game[method]?.(...args);
    } catch (error) {
      this.#stopGame();
      this.#reportError(error);
      return undefined;
    }
  }

  #reportError(error) {
    console.error(error);
    this.#how.onChange(null, `${this.#name} can't be shown here: ${error.message}`);
  }

  #stopGame() {
    const game = this.#game;
    this.#game = null;
    try {
      game?.stop();
    } catch (error) {
      console.error(error);
    }
    const { root } = this.#how;
    if (root.contains(document.activeElement)) root.focus();
    root.replaceChildren();
  }
}

/** The games, from GET /games: requested until an answer comes, then again when a game has another version. */

let gamesAnswer = null;
let gamesVersion;

async function fetchGames() {
  const { status, json } = await sendRequest(new URL('games', base));
  if (status === 200) return json.games;
  gamesAnswer = null; // The next call requests them again.
  return [];
}

/**
 * @param {string|null} [version] of the current game
 * @returns {Promise<object[]>}
 */
export function listGames(version = null) {
  if (version !== null && version !== gamesVersion) gamesAnswer = null;
  gamesVersion = version ?? gamesVersion;
  gamesAnswer ??= fetchGames();
  return gamesAnswer;
}

/**
 * @param {{game: string|null, version: string|null}|null} control
 * @returns {Promise<{title: string, about: string}>} empty without a game
 */
export async function describeGame(control) {
  const name = control?.game;
  if (!name) return { title: '', about: '' };
  const games = await listGames(control.version);
  return games.find((game) => game.name === name) ?? { title: name, about: '' };
}
