import { isObject } from '../client/answers.js';
import { checkFor, readJson } from './body.js';

/**
 * What the players of one arena call themselves, by their numbers; and which names the host has put away.
 *
 *   name/hall/7  ─▶  {"player":"<id>","name":"Ada","away":false}      a note each (native/store/shelf.h)
 *
 * A name outlives its player, so that a podium still has it. There are at most twice as many as there may be players:
 * when there is no room the names of all players that have left go.
 */

/** Names of their notes begin so. */
export const NAME = 'name/';

/** The largest request with a name, in bytes. */
export const NAME_BYTES = 512;

/** Characters of a name: code points. */
const MOST = 24;

/** Control characters, halves of a pair, breaks of a line, and what turns the direction of the text behind it. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** What can be seen: some letters, and a symbol, are blanks. */
const VISIBLE = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}]/u;

const check = checkFor('bad-name');
const checkNumber = checkFor('unknown-player');

/** @returns {object} what the JSON text of a request says: one object with one member */
function readOne(body, member, says) {
  const value = readJson(body);
  check(isObject(value) && Object.keys(value).join() === member, says);
  return value[member];
}

/**
 * @param {Uint8Array} body such as `{"name":"Ada"}`
 * @returns {string} without spaces around it, and with one where there are several
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readName(body) {
  const name = readOne(body, 'name', 'Send one JSON object in UTF-8: {"name":"Ada"}.');
  check(typeof name === 'string', '"name" must be a text.');
  const trimmed = name.trim();
  check(!FORBIDDEN.test(trimmed), 'A name may have no control characters.');
  const text = trimmed.normalize('NFC').replace(/\s+/g, ' ');
  const { length } = [...text];
  check(
    length >= 1 && length <= MOST && VISIBLE.test(text),
    `A name has 1 to ${MOST} characters, and at least one that can be seen.`
  );
  return text;
}

/**
 * @param {Uint8Array} body such as `{"away":true}`
 * @returns {boolean}
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readAway(body) {
  const says = 'Send one JSON object: {"away":true}, or {"away":false}.';
  const away = readOne(body, 'away', says);
  check(typeof away === 'boolean', says);
  return away;
}

export class Names {
  #prefix;
  #most;
  #numberOf;
  #pool;
  /** @type {Map<number, {player: string, name: string, away: boolean}>} */
  #known = new Map();
  /** Begins anywhere: a panel may have one of the last run. */
  #version = Math.floor(Math.random() * 2 ** 40);

  /**
   * @param {object} parts
   * @param {string} parts.arena its name
   * @param {number} parts.most players that there may be
   * @param {(player: string) => number} parts.numberOf a player's number; 0: there is no such player
   * @param {import('../torus/pool.js').Pool} parts.pool whose state keeps them
   */
  constructor({ arena, most, numberOf, pool }) {
    this.#prefix = `${NAME}${arena}/`;
    this.#most = most;
    this.#numberOf = numberOf;
    this.#pool = pool;
  }

  /** Takes over those of the last run, whose players are there. */
  restore() {
    for (const [number, text] of this.#pool.notes(this.#prefix)) {
      this.#known.set(Number(number), JSON.parse(text.toString()));
    }
    this.#sweep();
  }

  /** Forgets the names of players that there are no more. */
  #sweep() {
    for (const [number, { player }] of this.#known) {
      if (this.#numberOf(player) === number) continue;
      this.#known.delete(number);
      this.#pool.unnote(this.#prefix + number);
    }
  }

  #set(number, entry) {
    if (!this.#pool.note(this.#prefix + number, JSON.stringify(entry))) return 'state-unwritable';
    this.#known.set(number, entry);
    this.#version += 1;
    return 'ok';
  }

  /**
   * Gives a player a name. One that was put away stays so, whatever it is called next.
   *
   * @param {string} player its id
   * @param {string} name as readName gives it
   * @returns {string} `ok`, or `state-unwritable` and nothing has changed
   */
  give(player, name) {
    const number = this.#numberOf(player);
    const known = this.#known.get(number);
    if (known?.name === name) return 'ok';
    if (known === undefined && this.#known.size >= 2 * this.#most) this.#sweep();
    return this.#set(number, { player, name, away: known?.away ?? false });
  }

  /**
   * Puts a name away, or brings it back.
   *
   * @param {number} number the player's
   * @param {boolean} away
   * @returns {string} `ok`, or `state-unwritable`
   * @throws {import('../base/refusal.js').Refusal} where there is no such name
   */
  put(number, away) {
    const known = this.#known.get(number);
    checkNumber(known, 'No player of that number has a name: GET /arena/{name}/names lists all.');
    return known.away === away ? 'ok' : this.#set(number, { ...known, away });
  }

  /**
   * @param {number[]} numbers
   * @returns {Record<number, string>} the names of those that have one which is not put away
   */
  of(numbers) {
    const shown = numbers.filter((number) => this.#known.get(number)?.away === false);
    return Object.fromEntries(shown.map((number) => [number, this.#known.get(number).name]));
  }

  /**
   * What the panel asks for.
   *
   * @param {number} [after] the version that the panel has
   * @returns {{version: number, names?: {number: number, name: string, away: boolean}[]}} without names where
   *     they are the same; the newest player last
   */
  list(after) {
    const version = this.#version;
    if (after === version) return { version };
    const names = [...this.#known].map(([number, { name, away }]) => ({ number, name, away }));
    return { version, names: names.toSorted((a, b) => a.number - b.number) };
  }
}
