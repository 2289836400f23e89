import { isObject } from '../client/answers.js';
import { readJson } from '../base/read-json.js';
import { checkFor } from '../base/refusal.js';

/**
 * The names of the players of one arena, by their numbers; and whether the host has hidden a name (`away`).
 *
 *   name/hall/7  ─▶  {"player":"<id>","name":"Ada","away":false}      one note (native/store/feeds_and_notes.h)
 *
 * A name outlives its player, so that a podium can still show it. At most twice --arena-players names are kept: when
 * there is no room, the names of all players that have left are removed.
 */

/** Prefix of the notes' names. */
export const NAME_PREFIX = 'name/';

/** Largest request with a name, in bytes. */
export const NAME_BYTES = 512;

/** Longest name, in code points. */
const MAX_LENGTH = 24;

/** Control characters, unpaired surrogates, line breaks, and characters that change the direction of text. */
const FORBIDDEN = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/u;

/** A visible character. Some letters and one symbol are blank. */
const VISIBLE = /(?![\p{Default_Ignorable_Code_Point}\u2800])[\p{L}\p{N}\p{P}\p{S}]/u;

const check = checkFor('bad-name');
const checkNumber = checkFor('unknown-player');

/** @returns {unknown} the only member of the JSON object in a request */
function readOnlyMember(body, member, detail) {
  const value = readJson(body);
  check(isObject(value) && Object.keys(value).join() === member, detail);
  return value[member];
}

/**
 * @param {Uint8Array} body such as `{"name":"Ada"}`
 * @returns {string} without outer spaces; several spaces become one
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readName(body) {
  const name = readOnlyMember(body, 'name', 'Send one JSON object in UTF-8: {"name":"Ada"}.');
  check(typeof name === 'string', '"name" must be a text.');
  const trimmed = name.trim();
  check(!FORBIDDEN.test(trimmed), 'A name may have no control characters.');
  const text = trimmed.normalize('NFC').replace(/\s+/g, ' ');
  const { length } = [...text];
  check(
    length >= 1 && length <= MAX_LENGTH && VISIBLE.test(text),
    `A name has 1 to ${MAX_LENGTH} characters, and at least one that can be seen.`
  );
  return text;
}

/**
 * @param {Uint8Array} body such as `{"away":true}`
 * @returns {boolean}
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readAway(body) {
  const detail = 'Send one JSON object: {"away":true}, or {"away":false}.';
  const away = readOnlyMember(body, 'away', detail);
  check(typeof away === 'boolean', detail);
  return away;
}

export class Names {
  #prefix;
  #maxPlayers;
  #numberOf;
  #pool;
  /** @type {Map<number, {player: string, name: string, away: boolean}>} */
  #entries = new Map();
  /** Starts at a random number: a panel may still have a version of the last run. */
  #version = Math.floor(Math.random() * 2 ** 40);

  /**
   * @param {object} parts
   * @param {string} parts.arena its name
   * @param {number} parts.maxPlayers most players
   * @param {(player: string) => number} parts.numberOf returns a player's number; 0 for an unknown player
   * @param {import('../torus/pool.js').Pool} parts.pool keeps the names in its state
   */
  constructor({ arena, maxPlayers, numberOf, pool }) {
    this.#prefix = `${NAME_PREFIX}${arena}/`;
    this.#maxPlayers = maxPlayers;
    this.#numberOf = numberOf;
    this.#pool = pool;
  }

  /** Restores the names of the last run. To be called after its players are restored. */
  restore() {
    for (const [number, text] of this.#pool.notes(this.#prefix)) {
      this.#entries.set(Number(number), JSON.parse(text.toString()));
    }
    this.#removeDeparted();
  }

  /** Removes the names of players that have left. */
  #removeDeparted() {
    for (const [number, { player }] of this.#entries) {
      if (this.#numberOf(player) === number) continue;
      this.#entries.delete(number);
      this.#pool.removeNote(this.#prefix + number);
    }
  }

  #set(number, entry) {
    if (!this.#pool.note(this.#prefix + number, JSON.stringify(entry))) return 'state-unwritable';
    this.#entries.set(number, entry);
    this.#version += 1;
    return 'ok';
  }

  /**
   * Sets a player's name. A hidden name stays hidden, also with another text.
   *
   * @param {string} player its id
   * @param {string} name from readName
   * @returns {string} `ok`; or `state-unwritable`, and nothing has changed
   */
  setName(player, name) {
    const number = this.#numberOf(player);
    const entry = this.#entries.get(number);
    if (entry?.name === name) return 'ok';
    if (entry === undefined && this.#entries.size >= 2 * this.#maxPlayers) this.#removeDeparted();
    return this.#set(number, { player, name, away: entry?.away ?? false });
  }

  /**
   * Hides or shows a name.
   *
   * @param {number} number the player's
   * @param {boolean} away
   * @returns {string} `ok`, or `state-unwritable`
   * @throws {import('../base/refusal.js').Refusal} for a player without a name
   */
  setAway(number, away) {
    const entry = this.#entries.get(number);
    checkNumber(entry, 'No player of that number has a name: GET /arena/{name}/names lists all.');
    return entry.away === away ? 'ok' : this.#set(number, { ...entry, away });
  }

  /**
   * @param {number[]} numbers
   * @returns {Record<number, string>} their names, without hidden ones
   */
  shownNames(numbers) {
    const shown = numbers.filter((number) => this.#entries.get(number)?.away === false);
    return Object.fromEntries(shown.map((number) => [number, this.#entries.get(number).name]));
  }

  /**
   * Returns all names, for the panel.
   *
   * @param {number} [after] the version that the panel has
   * @returns {{version: number, names?: {number: number, name: string, away: boolean}[]}} without `names` if
   *     nothing has changed; the newest player last
   */
  list(after) {
    const version = this.#version;
    if (after === version) return { version };
    const names = [...this.#entries].map(([number, { name, away }]) => ({ number, name, away }));
    return { version, names: names.toSorted((a, b) => a.number - b.number) };
  }
}
