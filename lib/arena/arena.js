import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { readContent } from './content.js';
import { readCommand } from './control.js';
import { NAME_PREFIX, Names, readAway, readName } from './names.js';
import { Room } from './room.js';
import { Refusal } from '../base/refusal.js';
import { tagOf } from '../base/tag.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The arenas, for the routes. Players and inputs are native (native/arena/arena.h), games run in threads
 * (lib/arena/reducer.js), and each arena is a Room.
 */

/** Counts of /status without an arena. */
const ZERO_COUNTS = {
  ...{ players: 0, playersJoined: 0, playersLeft: 0, playersExpired: 0 },
  ...{ inputs: 0, inputsReduced: 0, inputsSuperseded: 0, inputsWaiting: 0, inputsRepeated: 0 }
};

/** Prefix of the notes with the control and the game's memory and value of each arena. */
const CONTROL_PREFIX = 'control/';

/** Prefix of the notes with the host's own content, by arena and game. */
const CONTENT_PREFIX = 'content/';

/** An input that only renews the player's lease. */
const EMPTY_INPUT = Buffer.from('{}');

/** @throws {Refusal} if a request's outcome is the name of a problem */
function expectOk(outcome) {
  if (outcome !== 'ok') throw new Refusal(outcome);
}

export class Arena {
  /** The native arenas, for the native front door; undefined without an arena. */
  native;
  #outcomes;
  #options;
  #games;
  #pool;
  /** @type {Map<string, Room>} */
  #rooms = new Map();
  /** Content that the host has set, as JSON, by arena and game. @type {Map<string, string>} */
  #contents = new Map();

  /** Largest command, in bytes. */
  commandBytes = 4096;

  /**
   * @param {object} parts
   * @param {object} parts.options arena, arenaPlayers, arenaRate, lease
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('../torus/pool.js').Pool} parts.pool keeps players and controls in its state
   * @param {import('pino').Logger} parts.log
   */
  constructor({ options, games, limits, feeds, pool, log }) {
    this.#options = options;
    this.#games = games;
    this.#pool = pool;
    for (const prefix of [CONTROL_PREFIX, CONTENT_PREFIX, NAME_PREFIX]) {
      for (const [key] of pool.notes(prefix)) {
        if (!options.arena.includes(key.split('/')[0])) pool.removeNote(prefix + key);
      }
    }
    const savedControls = new Map(pool.notes(CONTROL_PREFIX));
    if (options.arena.length === 0) {
      pool.attachArena();
      return;
    }
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    this.native = new addon.Arena(
      {
        rooms: options.arena,
        players: options.arenaPlayers,
        lease: options.lease,
        rate: options.arenaRate,
        tag: tagOf(options.name)
      },
      limits.native
    );
    const publish = async (key, text) => {
      const publishValue = () => feeds.publish(key, 'value', Buffer.from(text));
      const answer = await publishValue();
      if (answer.problem !== 'other-kind') return answer;
      // Clients can't delete the log: its key is reserved for the arena.
      log.warn({ feed: key }, 'a log of a run without this arena is deleted');
      await feeds.remove(key);
      return publishValue();
    };
    for (const [number, name] of options.arena.entries()) {
      const room = new Room({
        ...{ name, number, native: this.native, games, mostRate: options.arenaRate },
        isTrial: options.play !== undefined,
        ...{
          publish,
          log,
          saveState: (state) => pool.note(CONTROL_PREFIX + name, JSON.stringify(state))
        },
        names: new Names({
          ...{ arena: name, maxPlayers: options.arenaPlayers, pool },
          numberOf: (player) => this.native.playerNumber(name, parse(player))
        }),
        contentOf: (game) => this.#contents.get(`${name}/${game}`)
      });
      this.#rooms.set(name, room);
      if (savedControls.has(name)) room.restore(JSON.parse(savedControls.get(name).toString()));
    }
    for (const [key, text] of pool.notes(CONTENT_PREFIX)) this.#contents.set(key, text.toString());
    pool.attachArena(this.native);
    for (const room of this.#rooms.values()) room.restorePlayers();
  }

  /** Publishes all arenas, and continues the rounds of the last run. */
  async start() {
    await Promise.all([...this.#rooms.values()].map((room) => room.start()));
  }

  /** Most inputs per second of each player. */
  get mostRate() {
    return this.#options.arenaRate;
  }

  /**
   * Returns the role of a feed in the arenas; undefined for any other feed.
   *
   * @param {string} key
   * @returns {undefined | 'reduced' | 'control'}
   */
  feedRole(key) {
    const [, name, control] = /^arena\/([^/]+)(\/control)?$/.exec(key) ?? [];
    if (!this.#rooms.has(name)) return undefined;
    return control === undefined ? 'reduced' : 'control';
  }

  // ---- Players

  /**
   * Adds a player.
   *
   * @param {string} name the arena's
   * @param {string} address the player's address
   * @returns {Promise<object>} the answer to the join
   * @throws {Refusal|Unanswerable}
   */
  async join(name, address) {
    const id = new Uint8Array(16);
    const number = new Uint32Array(1);
    expectOk(this.#outcomes[this.native.join(name, address, id, number)]);
    await this.#pool.endTurn();
    const { rate } = this.#rooms.get(name).control;
    return {
      player: stringify(id),
      number: number[0],
      rate,
      lease: this.#options.lease,
      feed: `arena/${name}`,
      control: `arena/${name}/control`
    };
  }

  /**
   * Stores a player's input.
   *
   * @param {string} name
   * @param {string} player
   * @param {number} number the player's own counter, or -1
   * @param {Uint8Array} input its JSON text
   * @throws {Refusal|Unanswerable}
   */
  async input(name, player, number, input) {
    await this.#awaitJournal(this.#storeInput(name, player, number, input));
  }

  #storeInput(name, player, number, input) {
    this.#room(name);
    if (!validate(player)) return 'unknown-player';
    return this.#outcomes[this.native.input(name, parse(player), number, input)];
  }

  /** Removes a player; does nothing for an unknown player. @throws {Refusal|Unanswerable} */
  async leave(name, player) {
    this.#room(name);
    if (!validate(player)) return;
    await this.#awaitJournal(this.#outcomes[this.native.leave(name, parse(player))]);
  }

  #room(name) {
    const room = this.#rooms.get(name);
    if (room === undefined) throw new Refusal('unknown-arena');
    return room;
  }

  /** Waits until the journal has the outcome, so that the answer comes after that. @throws {Refusal|Unanswerable} */
  async #awaitJournal(outcome) {
    expectOk(outcome);
    await this.#pool.endTurn();
  }

  /**
   * Waits like `#awaitJournal`, but a failed write is a `state-unwritable`, so that clients may retry.
   *
   * @throws {Refusal}
   */
  async #awaitJournalOrRefuse(outcome) {
    try {
      await this.#awaitJournal(outcome);
    } catch (error) {
      throw error instanceof Unanswerable ? new Refusal('state-unwritable') : error;
    }
  }

  /**
   * Sets a player's name. A name counts as an input for the rate limit and the lease.
   *
   * @param {string} name the arena's
   * @param {string} player
   * @param {Uint8Array} body such as `{"name":"Ada"}`
   * @throws {Refusal}
   */
  async setName(name, player, body) {
    const text = readName(body);
    expectOk(this.#storeInput(name, player, -1, EMPTY_INPUT));
    await this.#awaitJournalOrRefuse(
      this.#room(name).changeNames((names) => names.setName(player, text))
    );
  }

  // ---- The panel

  /**
   * Returns the names of the players: see Names#list.
   *
   * @param {string} name the arena's
   * @param {number} [after]
   * @returns {{version: number, names?: object[]}}
   * @throws {Refusal}
   */
  listNames(name, after) {
    return this.#room(name).names.list(after);
  }

  /**
   * Hides or shows a name.
   *
   * @param {string} name the arena's
   * @param {number} number the player's
   * @param {Uint8Array} body such as `{"away":true}`
   * @throws {Refusal}
   */
  async setNameAway(name, number, body) {
    const away = readAway(body);
    await this.#awaitJournalOrRefuse(
      this.#room(name).changeNames((names) => names.setAway(number, away))
    );
  }

  /**
   * Returns a game's content.
   *
   * @param {string} name the arena's
   * @param {string} game
   * @returns {unknown}
   * @throws {Refusal}
   */
  content(name, game) {
    const room = this.#room(name);
    if (!this.#games.has(game)) throw new Refusal('unknown-game');
    return JSON.parse(room.content(game));
  }

  /**
   * Sets a game's content, also for its running round.
   *
   * @param {string} name the arena's
   * @param {string} game
   * @param {Uint8Array} body any JSON; null for the game's own content.json
   * @throws {Refusal}
   */
  async setContent(name, game, body) {
    this.content(name, game);
    const text = readContent(body);
    const key = `${name}/${game}`;
    const isSaved =
      text === 'null'
        ? this.#pool.removeNote(CONTENT_PREFIX + key)
        : this.#pool.note(CONTENT_PREFIX + key, text);
    if (!isSaved) throw new Refusal('state-unwritable');
    if (text === 'null') this.#contents.delete(key);
    else this.#contents.set(key, text);
    this.#rooms.get(name).applyContent(game);
    await this.#awaitJournalOrRefuse('ok');
  }

  /**
   * Runs a command of a panel.
   *
   * @param {string} key of a control feed
   * @param {Uint8Array} body
   * @returns {Promise<{cursor: string, watching: number} | {problem: string, detail?: string}>}
   */
  async command(key, body) {
    const [, name] = key.split('/');
    try {
      return await this.#rooms.get(name).command(readCommand(body));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return { problem: error.problem, detail: error.detail };
    }
  }

  /** @returns {boolean} whether a round of this game runs in any arena */
  isPlayed(game) {
    return [...this.#rooms.values()].some((room) => room.isPlaying(game));
  }

  /** Applies changed files of games. To be called while no changed game is played. */
  applyChangedGames() {
    for (const room of this.#rooms.values()) room.applyChangedGames();
  }

  /** @returns {{name: string, game: string | null, players: number}[]} the list for GET /arena */
  list() {
    return [...this.#rooms.values()].map(({ name, players, control: { game } }) => ({
      name,
      game,
      players
    }));
  }

  /** @returns {object[]} the list for the admin port's page; `failed`: why a game was stopped, or null */
  overview() {
    return [...this.#rooms.values()].map(({ name, players, reductions, control }) => {
      const { game, running, failed } = control;
      return { name, game, running, players, reductions, failed };
    });
  }

  /** @returns {object} the live counts: see /status in lib/server/README.md */
  status() {
    const rooms = [...this.#rooms.values()];
    const counts = this.native?.status() ?? ZERO_COUNTS;
    const sum = (name) => rooms.reduce((all, room) => all + room[name], 0);
    const played = { reductions: sum('reductions'), gamesStopped: sum('stopped') };
    return { arenas: rooms.length, ...counts, ...played };
  }

  /** Refuses joins from now on. */
  drain() {
    this.native?.drain();
  }

  /** Ends all rounds. Resolves when all publications have ended. */
  async endRounds() {
    await Promise.all([...this.#rooms.values()].map((room) => room.close()));
  }

  close() {
    for (const room of this.#rooms.values()) room.close();
    this.native?.close();
  }
}
