import { CONTROL_BYTES, roleOf } from './control.js';

/**
 * The arenas for the routes of a worker: all of it is asked of the main process, which has the players.
 */
export class RemoteArena {
  #ask;
  #names;

  /**
   * @param {{arena: string[]}} options
   * @param {(what: string, ...rest: unknown[]) => Promise<object>} ask calls a function of the main
   *     process's arenas
   */
  constructor({ arena }, ask) {
    this.#names = arena;
    this.#ask = ask;
  }

  /** The largest command, in bytes. */
  get commandBytes() {
    return CONTROL_BYTES;
  }

  /** As Arena#owns. */
  owns(key) {
    return roleOf(key, (name) => this.#names.includes(name));
  }

  join(name, address) {
    return this.#ask('arena.join', name, address);
  }

  input(name, player, number, input) {
    return this.#ask('arena.input', name, player, number, input);
  }

  leave(name, player) {
    return this.#ask('arena.leave', name, player);
  }

  name(name, player, body) {
    return this.#ask('arena.name', name, player, body);
  }

  names(name, after) {
    return this.#ask('arena.names', name, after);
  }

  putName(name, number, body) {
    return this.#ask('arena.putName', name, number, body);
  }

  content(name, game) {
    return this.#ask('arena.content', name, game);
  }

  putContent(name, game, body) {
    return this.#ask('arena.putContent', name, game, body);
  }

  command(key, body) {
    return this.#ask('arena.command', key, body);
  }

  list() {
    return this.#ask('arena.list');
  }
}
