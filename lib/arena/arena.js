import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../base/addon.js';
import { readContent } from './content.js';
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

/** @throws {Refusal} where a request's outcome is the name of a problem */
function expectOk(outcome) {
  if (outcome !== 'ok') throw new Refusal(outcome);
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
   * @returns {Promise<object>} what a join answers
   * @throws {Refusal|Unanswerable}
   */
  async join(name, address) {
    const id = new Uint8Array(16);
    const number = new Uint32Array(1);
    expectOk(this.#outcomes[this.#native.join(name, address, id, number)]);
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
   * @param {string} name
   * @param {string} player
   * @param {number} number the player's own counter, or -1
   * @param {Uint8Array} input its JSON text
   * @throws {Refusal|Unanswerable}
   */
  async input(name, player, number, input) {
    await this.#written(this.#input(name, player, number, input));
  }

  #input(name, player, number, input) {
    this.#room(name);
    if (!validate(player)) return 'unknown-player';
    return this.#outcomes[this.#native.input(name, parse(player), number, input)];
  }

  /** Takes a player out; does nothing where there is no such player. @throws {Refusal|Unanswerable} */
  async leave(name, player) {
    this.#room(name);
    if (!validate(player)) return;
    await this.#written(this.#outcomes[this.#native.leave(name, parse(player))]);
  }

  #room(name) {
    const room = this.#rooms.get(name);
    if (room === undefined) throw new Refusal('unknown-arena');
    return room;
  }

  /** What was decided is in the journal before it is answered. @throws {Refusal|Unanswerable} */
  async #written(outcome) {
    expectOk(outcome);
    await this.#pool.endTurn();
  }

  /** The same where the caller is told that it could not be written, and may ask again. @throws {Refusal} */
  async #kept(outcome) {
    try {
      await this.#written(outcome);
    } catch (error) {
      throw error instanceof Unanswerable ? new Refusal('state-unwritable') : error;
    }
  }

  /**
   * Gives a player a name. For the rate of inputs, and the lease, that is an input.
   *
   * @param {string} name the arena's
   * @param {string} player
   * @param {Uint8Array} body such as `{"name":"Ada"}`
   * @throws {Refusal}
   */
  async name(name, player, body) {
    const text = readName(body);
    expectOk(this.#input(name, player, -1, HERE));
    await this.#kept(this.#room(name).rename((names) => names.give(player, text)));
  }

  // ---- The panel

  /**
   * What the players call themselves: see Names#list.
   *
   * @param {string} name the arena's
   * @param {number} [after]
   * @returns {{version: number, names?: object[]}}
   * @throws {Refusal}
   */
  names(name, after) {
    return this.#room(name).names.list(after);
  }

  /**
   * Puts a name away, or brings it back.
   *
   * @param {string} name the arena's
   * @param {number} number the player's
   * @param {Uint8Array} body such as `{"away":true}`
   * @throws {Refusal}
   */
  async putName(name, number, body) {
    const away = readAway(body);
    await this.#kept(this.#room(name).rename((names) => names.put(number, away)));
  }

  /**
   * What a game is about.
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
   * Says what a game is about from now on, in a round of it that runs as well.
   *
   * @param {string} name the arena's
   * @param {string} game
   * @param {Uint8Array} body any JSON; null: what the game's own content.json says
   * @throws {Refusal}
   */
  async putContent(name, game, body) {
    this.content(name, game);
    const text = readContent(body);
    const key = `${name}/${game}`;
    const isKept =
      text === 'null' ? this.#pool.unnote(CONTENT + key) : this.#pool.note(CONTENT + key, text);
    if (!isKept) throw new Refusal('state-unwritable');
    if (text === 'null') this.#contents.delete(key);
    else this.#contents.set(key, text);
    this.#rooms.get(name).contentChanged(game);
    await this.#kept('ok');
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
      if (!(error instanceof Refusal)) throw error;
      return { problem: error.problem, detail: error.detail };
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
