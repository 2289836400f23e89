import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { readContent } from './body.js';
import { readCommand } from './control.js';
import { NAME, Names, readAway, readName } from './names.js';
import { Room } from './room.js';
import { Refusal } from '../base/refusal.js';
import { tagOf } from '../base/tag.js';
import { Unanswerable } from '../torus/pool.js';

/**
 * The arenas as the routes see them. Players and inputs are native (native/arena/arena.h), games are
 * reduced in threads (lib/arena/reducer.js), and each arena is a Room.
 */

/** What /status says where there is no arena. */
const NOBODY = {
  ...{ players: 0, playersJoined: 0, playersLeft: 0, playersExpired: 0 },
  ...{ inputs: 0, inputsReduced: 0, inputsSuperseded: 0, inputsWaiting: 0, inputsRepeated: 0 }
};

/** Names of the notes of what is played in each arena: the control, and where its game is. */
const CONTROL = 'control/';

/** Names of the notes of what games are about, by arena and game: the host's own content. */
const CONTENT = 'content/';

/** The input of a player that only renews its lease. */
const HERE = Buffer.from('{}');

/** What is wrong with a request of a player's or the panel's, as a problem; else the error goes on. */
function problemIn(error) {
  if (error instanceof Refusal) return { problem: error.problem, detail: error.detail };
  if (error instanceof Unanswerable) return { problem: 'state-unwritable' };
  throw error;
}

export class Arena {
  #native;
  #outcomes;
  #options;
  #games;
  #pool;
  /** @type {Map<string, Room>} */
  #rooms = new Map();
  /** What games are about where the host has said so, as JSON, by arena and game. @type {Map<string, string>} */
  #contents = new Map();

  /** The largest command. */
  commandBytes = 4096;

  /**
   * @param {object} parts
   * @param {object} parts.options arena, arenaPlayers, arenaRate, lease
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {import('../torus/address-limits.js').AddressLimits} parts.limits
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('../torus/pool.js').Pool} parts.pool whose state keeps players and controls
   * @param {import('pino').Logger} parts.log
   */
  constructor({ options, games, limits, feeds, pool, log }) {
    this.#options = options;
    this.#games = games;
    this.#pool = pool;
    for (const prefix of [CONTROL, CONTENT, NAME]) {
      for (const [key] of pool.notes(prefix)) {
        if (!options.arena.includes(key.split('/')[0])) pool.unnote(prefix + key);
      }
    }
    const kept = new Map(pool.notes(CONTROL));
    if (options.arena.length === 0) {
      pool.attachArena();
      return;
    }
    const addon = loadAddon();
    this.#outcomes = addon.outcomes;
    this.#native = new addon.Arena(
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
      const say = () => feeds.publish(key, 'value', Buffer.from(text));
      const said = await say();
      if (said.problem !== 'other-kind') return said;
      // No client may delete it, now that the arena has its key.
      log.warn({ feed: key }, 'a log of a run without this arena is deleted');
      await feeds.remove(key);
      return say();
    };
    for (const [number, name] of options.arena.entries()) {
      const room = new Room({
        ...{ name, number, native: this.#native, games, mostRate: options.arenaRate },
        tried: options.play !== undefined,
        ...{ publish, log, keep: (what) => pool.note(CONTROL + name, JSON.stringify(what)) },
        names: new Names({
          ...{ arena: name, most: options.arenaPlayers, pool },
          numberOf: (player) => this.#native.playerNumber(name, parse(player))
        }),
        contentOf: (game) => this.#contents.get(`${name}/${game}`)
      });
      this.#rooms.set(name, room);
      if (kept.has(name)) room.restore(JSON.parse(kept.get(name).toString()));
    }
    for (const [key, text] of pool.notes(CONTENT)) this.#contents.set(key, text.toString());
    pool.attachArena(this.#native);
    for (const room of this.#rooms.values()) room.settled();
  }

  /** Opens: publishes what there is, and goes on with what was played. */
  async start() {
    await Promise.all([...this.#rooms.values()].map((room) => room.start()));
  }

  /** The native arenas, for the native front door; undefined where there is none. */
  get native() {
    return this.#native;
  }

  /** The most inputs a second of each player. */
  get mostRate() {
    return this.#options.arenaRate;
  }

  /**
   * What a feed is to the arenas.
   *
   * @param {string} key
   * @returns {undefined | 'reduced' | 'control'}
   */
  owns(key) {
    const [, name, control] = /^arena\/([^/]+)(\/control)?$/.exec(key) ?? [];
    if (!this.#rooms.has(name)) return undefined;
    return control === undefined ? 'reduced' : 'control';
  }

  // ---- Players

  /**
   * @param {string} name the arena's
   * @param {string} address where the player comes from
   * @returns {Promise<{outcome: string, player?: object}>} `ok`, and what a join answers; or the name of a problem
   * @throws {Unanswerable}
   */
  async join(name, address) {
    const id = new Uint8Array(16);
    const number = new Uint32Array(1);
    const outcome = this.#outcomes[this.#native.join(name, address, id, number)];
    if (outcome !== 'ok') return { outcome };
    await this.#pool.endTurn();
    const { rate } = this.#rooms.get(name).control;
    return {
      outcome,
      player: {
        player: stringify(id),
        number: number[0],
        rate,
        lease: this.#options.lease,
        feed: `arena/${name}`,
        control: `arena/${name}/control`
      }
    };
  }

  /**
   * @param {string} name
   * @param {string} player
   * @param {number} number the player's own counter, or -1
   * @param {Uint8Array} input its JSON text
   * @returns {Promise<string>} `ok` or the name of a problem
   */
  async input(name, player, number, input) {
    return this.#written(this.#input(name, player, number, input));
  }

  #input(name, player, number, input) {
    if (!this.#rooms.has(name)) return 'unknown-arena';
    if (!validate(player)) return 'unknown-player';
    return this.#outcomes[this.#native.input(name, parse(player), number, input)];
  }

  /** Takes a player out; does nothing where there is no such player. */
  async leave(name, player) {
    if (!this.#rooms.has(name)) return 'unknown-arena';
    if (!validate(player)) return 'ok';
    return this.#written(this.#outcomes[this.#native.leave(name, parse(player))]);
  }

  /** What was decided is in the journal before it is answered. @throws {Unanswerable} */
  async #written(outcome) {
    if (outcome === 'ok') await this.#pool.endTurn();
    return outcome;
  }

  /**
   * Gives a player a name. For the rate of inputs, and the lease, that is an input.
   *
   * @param {string} name the arena's
   * @param {string} player
   * @param {Uint8Array} body such as `{"name":"Ada"}`
   * @returns {Promise<{problem?: string, detail?: string}>}
   */
  async name(name, player, body) {
    return this.#change(() => {
      const text = readName(body);
      const outcome = this.#input(name, player, -1, HERE);
      return outcome === 'ok' ? this.#rooms.get(name).nameIt(player, text) : outcome;
    });
  }

  // ---- The panel

  /**
   * Changes something that is kept with the state, and answers when it is.
   *
   * @param {() => string} change gives `ok`, or the name of a problem
   * @returns {Promise<{problem?: string, detail?: string}>}
   */
  async #change(change) {
    try {
      const outcome = change();
      if (outcome !== 'ok') return { problem: outcome };
      await this.#pool.endTurn();
      return {};
    } catch (error) {
      return problemIn(error);
    }
  }

  /**
   * What the players call themselves: see Names#list.
   *
   * @param {string} name the arena's
   * @param {number} [after]
   * @returns {{problem: string} | {version: number, names?: object[]}}
   */
  names(name, after) {
    return this.#rooms.get(name)?.names.list(after) ?? { problem: 'unknown-arena' };
  }

  /**
   * Puts a name away, or brings it back.
   *
   * @param {string} name the arena's
   * @param {number} number the player's
   * @param {Uint8Array} body such as `{"away":true}`
   * @returns {Promise<{problem?: string, detail?: string}>}
   */
  async putName(name, number, body) {
    return this.#change(() => {
      const away = readAway(body);
      return this.#rooms.get(name)?.putName(number, away) ?? 'unknown-arena';
    });
  }

  /**
   * What a game is about.
   *
   * @param {string} name the arena's
   * @param {string} game
   * @returns {{problem: string} | {content: unknown}}
   */
  content(name, game) {
    const room = this.#rooms.get(name);
    if (room === undefined) return { problem: 'unknown-arena' };
    if (!this.#games.has(game)) return { problem: 'unknown-game' };
    return { content: JSON.parse(room.content(game)) };
  }

  /**
   * Says what a game is about from now on, in a round of it that runs as well.
   *
   * @param {string} name the arena's
   * @param {string} game
   * @param {Uint8Array} body any JSON; null: what the game's own content.json says
   * @returns {Promise<{problem?: string, detail?: string}>}
   */
  async putContent(name, game, body) {
    return this.#change(() => {
      const { problem } = this.content(name, game);
      if (problem !== undefined) return problem;
      const text = readContent(body);
      const key = `${name}/${game}`;
      const isKept =
        text === 'null' ? this.#pool.unnote(CONTENT + key) : this.#pool.note(CONTENT + key, text);
      if (!isKept) return 'state-unwritable';
      if (text === 'null') this.#contents.delete(key);
      else this.#contents.set(key, text);
      this.#rooms.get(name).contentChanged(game);
      return 'ok';
    });
  }

  /**
   * Does what a panel says.
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
      return problemIn(error);
    }
  }

  /** @returns {boolean} whether a round of this game runs in any of them */
  isPlayed(game) {
    return [...this.#rooms.values()].some((room) => room.plays(game));
  }

  /** The games' files have changed: to be called while none of those that have is played. */
  renew() {
    for (const room of this.#rooms.values()) room.renew();
  }

  /** @returns {{name: string, game: string | null, players: number}[]} what GET /arena lists */
  list() {
    return [...this.#rooms.values()].map(({ name, players, control: { game } }) => ({
      name,
      game,
      players
    }));
  }

  /** @returns {object[]} the same for the admin port's page: `failed` is why its game was stopped, or null */
  overview() {
    return [...this.#rooms.values()].map(({ name, players, reductions, control }) => {
      const { game, running, failed } = control;
      return { name, game, running, players, reductions, failed };
    });
  }

  /** @returns {object} the live counts: see /status in lib/server/README.md */
  status() {
    const rooms = [...this.#rooms.values()];
    const counts = this.#native?.status() ?? { ...NOBODY, refused: {} };
    const sum = (name) => rooms.reduce((all, room) => all + room[name], 0);
    const played = { reductions: sum('reductions'), gamesStopped: sum('stopped') };
    return { arenas: rooms.length, ...counts, ...played };
  }

  /** Joins are refused from now on. */
  drain() {
    this.#native?.drain();
  }

  /** Ends what is played, and resolves when nothing of it is being published any more. */
  async rest() {
    await Promise.all([...this.#rooms.values()].map((room) => room.close()));
  }

  close() {
    for (const room of this.#rooms.values()) room.close();
    this.#native?.close();
  }
}
