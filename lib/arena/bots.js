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
const MOVE = 250;
const LOOK = 500;

/** Width above which a range of whole numbers counts as a counter, for example of claps or taps. */
const COUNTER = 64;

/** Largest move of a bot, as a share of the range; and the probability that a counter goes up by one in a move. */
const STEP = 0.15;
const OFTEN = 0.3;

/** Returns the next value of one input, near the last one. */
function next(value, { min, max, integer }) {
  if (integer && max - min > COUNTER) return Math.min(max, value + (Math.random() < OFTEN ? 1 : 0));
  const moved = value + (2 * Math.random() - 1) * STEP * (max - min + (integer ? 1 : 0));
  const near = integer ? Math.round(moved) : moved;
  return Math.min(max, Math.max(min, near));
}

/** Returns the random inputs of a bot without bot.js. */
function wander(last, inputs) {
  const moves = Object.entries(inputs).map(([name, one]) => [
    name,
    next(last[name] ?? one.start, one)
  ]);
  return Object.fromEntries(moves);
}

/** @returns {Promise<Function|undefined>} the function of the current bot.js; undefined without one */
async function brainOf(folder) {
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
  #named;
  #last = {};

  constructor(base, name) {
    this.#player = new Player({
      base,
      onState: (state) => {
        const { nameUrl } = this.#player;
        if (state !== 'online' || nameUrl === this.#named) return;
        this.#named = nameUrl;
        fetch(nameUrl, { method: 'POST', body: JSON.stringify({ name }) }).catch(() => {});
      }
    });
    this.#player.start();
  }

  /** @param {{inputs: object, value: unknown, round: number}} now @param {Function} [brain] */
  move({ inputs, value }, brain) {
    const { number } = this.#player;
    const move = brain
      ? brain({ value, number, inputs, random: Math.random })
      : wander(this.#last, inputs);
    if (move === undefined || number === undefined) return;
    this.#last = move;
    this.#player.addInput(move);
  }

  forget() {
    this.#last = {};
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
  const bots = Array.from({ length: count }, (_, at) => new Bot(url, `Bot ${at + 1}`));
  const now = { inputs: format.inputs, value: null, round: undefined };
  let brain;
  let told = '';

  /** Logs an error of bot.js, a repeated one only once. The other bots go on. */
  function tell({ message }) {
    if (message !== told) log.warn({ why: message }, 'a bot of the game has failed');
    told = message;
  }

  async function look() {
    const reduced = await readJson(new URL(`feed/arena/${arena}`, base));
    const { games = [] } = (await readJson(new URL('games', base))) ?? {};
    if (games.length > 0) now.inputs = games[0].inputs;
    const { value = null, round } = reduced?.value ?? {};
    if (round !== now.round) for (const bot of bots) bot.forget();
    Object.assign(now, { value, round });
    try {
      brain = await brainOf(folder);
    } catch (error) {
      tell(error);
    }
  }

  function move() {
    for (const bot of bots) {
      try {
        bot.move(now, brain);
      } catch (error) {
        tell(error);
      }
    }
  }

  const timers = count === 0 ? [] : [setInterval(look, LOOK), setInterval(move, MOVE)];
  return {
    stop() {
      for (const timer of timers) clearInterval(timer);
      for (const bot of bots) bot.stop();
    }
  };
}
