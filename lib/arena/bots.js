import { join, resolve } from 'node:path';
import { existsSync, statSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

import { Player } from '../client/player.js';

/**
 * Bots: players without a person, for `sprites play`. They send random inputs within the ranges of inputs.json, or the
 * results of the game's bot.js:
 *
 *     export function play({ value, number, inputs, random }) { return { y: 0.42 }; }
 */

/** Intervals of a bot's moves, and of looks at the reduced feed and the games, in milliseconds. */
const MOVE_INTERVAL = 250;
const REFRESH_INTERVAL = 500;

/** Width above which a range of whole numbers counts as a counter, for example of claps or taps. */
const COUNTER_RANGE = 64;

/** Largest move of a bot, as a share of the range; and the probability that a counter goes up by one in a move. */
const MAX_STEP = 0.15;
const COUNT_PROBABILITY = 0.3;

/** Returns the next value of one input, near the last one. */
function nextInput(value, { min, max, integer }) {
  if (integer && max - min > COUNTER_RANGE)
    return Math.min(max, value + (Math.random() < COUNT_PROBABILITY ? 1 : 0));
  const moved = value + (2 * Math.random() - 1) * MAX_STEP * (max - min + (integer ? 1 : 0));
  const near = integer ? Math.round(moved) : moved;
  return Math.min(max, Math.max(min, near));
}

/** Returns the random inputs of a bot without bot.js. */
function randomInputs(previous, inputs) {
  const moves = Object.entries(inputs).map(([name, range]) => [
    name,
    nextInput(previous[name] ?? range.start, range)
  ]);
  return Object.fromEntries(moves);
}

/** @returns {Promise<Function|undefined>} the function of the current bot.js; undefined without one */
async function importPlay(folder) {
  const path = join(resolve(folder), 'bot.js');
  if (!existsSync(path)) return undefined;
  return (await import(`${pathToFileURL(path).href}?at=${statSync(path).mtimeMs}`)).play;
}

async function readJson(url) {
  try {
    const response = await fetch(url);
    return response.ok ? await response.json() : undefined;
  } catch {
    return undefined; // The server is closing.
  }
}

class Bot {
  #player;
  #namedUrl;
  #lastInputs = {};

  constructor(base, name) {
    this.#player = new Player({
      base,
      onState: (state) => {
        const { nameUrl } = this.#player;
        if (state !== 'online' || nameUrl === this.#namedUrl) return;
        this.#namedUrl = nameUrl;
        fetch(nameUrl, { method: 'POST', body: JSON.stringify({ name }) }).catch(() => {});
      }
    });
    this.#player.start();
  }

  /** @param {{inputs: object, value: unknown, round: number}} now @param {Function} [play] */
  move({ inputs, value }, play) {
    const { number } = this.#player;
    const move = play
      ? play({ value, number, inputs, random: Math.random })
      : randomInputs(this.#lastInputs, inputs);
    if (move === undefined || number === undefined) return;
    this.#lastInputs = move;
    this.#player.addInput(move);
  }

  resetInputs() {
    this.#lastInputs = {};
    this.#player.startGame();
  }

  stop() {
    this.#player.stop();
  }
}

/**
 * @param {object} how
 * @param {string} how.base the server's URL
 * @param {string} how.arena
 * @param {number} how.count
 * @param {string} how.folder the game's
 * @param {{inputs: object}} how.format the game's
 * @param {import('pino').Logger} how.log
 * @returns {{stop: () => void}}
 */
export function startBots({ base, arena, count, folder, format, log }) {
  const url = new URL(`arena/${arena}`, base).href;
  const bots = Array.from({ length: count }, (_, index) => new Bot(url, `Bot ${index + 1}`));
  const gameState = { inputs: format.inputs, value: null, round: undefined };
  let play;
  let lastLogged = '';

  /** Logs an error of bot.js, a repeated one only once. The other bots go on. */
  function logError({ message }) {
    if (message !== lastLogged) log.warn({ why: message }, 'a bot of the game has failed');
    lastLogged = message;
  }

  async function refresh() {
    const reduced = await readJson(new URL(`feed/arena/${arena}`, base));
    const { games = [] } = (await readJson(new URL('games', base))) ?? {};
    if (games.length > 0) gameState.inputs = games[0].inputs;
    const { value = null, round } = reduced?.value ?? {};
    if (round !== gameState.round) for (const bot of bots) bot.resetInputs();
    Object.assign(gameState, { value, round });
    try {
      play = await importPlay(folder);
    } catch (error) {
      logError(error);
    }
  }

  function move() {
    for (const bot of bots) {
      try {
        bot.move(gameState, play);
      } catch (error) {
        logError(error);
      }
    }
  }

  const timers =
    count === 0 ? [] : [setInterval(refresh, REFRESH_INTERVAL), setInterval(move, MOVE_INTERVAL)];
  return {
    stop() {
      for (const timer of timers) clearInterval(timer);
      for (const bot of bots) bot.stop();
    }
  };
}
