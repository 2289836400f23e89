import { parse, stringify, validate } from 'uuid';

import { loadAddon } from '../server/addon.js';
import { ControlError, readCommand } from './control.js';
import { roleOf } from './keys.js';
import { Room } from './room.js';
import { tagOf } from '../world/tag.js';

/**
 * The arenas as the routes see them. Players and inputs are native (native/pool/arena.h), games are
 * reduced in threads (lib/arena/reducer.js), and each arena is a Room.
 */

/** What /status says where there is no arena. */
const NOBODY = {
  ...{ players: 0, playersJoined: 0, playersLeft: 0, playersExpired: 0 },
  ...{ inputs: 0, inputsReduced: 0, inputsSuperseded: 0, inputsWaiting: 0, inputsRepeated: 0 }
};

/** Names of the notes of what is played in each arena: the control, and where its game is. */
const CONTROL = 'control/';

export class Arena {
  #native;
  #outcomes;
  #options;
  /** @type {Map<string, Room>} */
  #rooms = new Map();

  /**
   * @param {object} parts
   * @param {object} parts.options arena, arenaPlayers, arenaRate, lease
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {import('../server/address-limits.js').AddressLimits} parts.limits
   * @param {import('../feeds/feeds.js').Feeds} parts.feeds
   * @param {import('../server/pool.js').Pool} parts.pool whose state keeps players and controls
   * @param {import('pino').Logger} parts.log
   */
  constructor({ options, games, limits, feeds, pool, log }) {
    this.#options = options;
    const kept = new Map(pool.notes(CONTROL));
    for (const name of kept.keys()) if (!options.arena.includes(name)) pool.unnote(CONTROL + name);
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
    const publish = (key, text) => feeds.publish(key, 'value', Buffer.from(text));
    for (const [number, name] of options.arena.entries()) {
      const room = new Room({
        ...{ name, number, native: this.#native, games, mostRate: options.arenaRate },
        ...{ publish, log, keep: (what) => pool.note(CONTROL + name, JSON.stringify(what)) }
      });
      this.#rooms.set(name, room);
      if (kept.has(name)) room.restore(JSON.parse(kept.get(name).toString()));
    }
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

  /**
   * What a feed is to the arenas.
   *
   * @param {string} key
   * @returns {undefined | 'reduced' | 'control'}
   */
  owns(key) {
    return roleOf(key, (name) => this.#rooms.has(name));
  }

  // ---- Players

  /**
   * @param {string} name the arena's
   * @param {string} address where the player comes from
   * @returns {{outcome: string, player?: object}} `ok`, and what a join answers; or the name of a problem
   */
  join(name, address) {
    const id = new Uint8Array(16);
    const number = new Uint32Array(1);
    const outcome = this.#outcomes[this.#native.join(name, address, id, number)];
    if (outcome !== 'ok') return { outcome };
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
   * @returns {string} `ok` or the name of a problem
   */
  input(name, player, number, input) {
    if (!this.#rooms.has(name)) return 'unknown-arena';
    if (!validate(player)) return 'unknown-player';
    return this.#outcomes[this.#native.input(name, parse(player), number, input)];
  }

  /** Takes a player out; does nothing where there is no such player. */
  leave(name, player) {
    if (!this.#rooms.has(name)) return 'unknown-arena';
    if (!validate(player)) return 'ok';
    return this.#outcomes[this.#native.leave(name, parse(player))];
  }

  // ---- The panel

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
      if (error instanceof ControlError) return { problem: 'bad-control', detail: error.message };
      throw error;
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

  /** Nobody joins any more. */
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
