import { isObject } from '../client/answers.js';
import { Refusal } from '../base/refusal.js';
import { checkFor, readJson } from './body.js';

/**
 * The control of an arena: its game, page, rates and settings. A command of the panel makes the next control, by a pure
 * function. README.md has the members.
 */

/** Most reductions per second that a command may set. */
const MOST_PACE = 60;

const check = checkFor('bad-control');

const COMMANDS = ['game', 'page', 'rate', 'pace', 'running', 'settings'];

/** Returns the settings with which a game starts. */
const startOf = (settings) =>
  Object.fromEntries(Object.entries(settings).map(([name, { start }]) => [name, start]));

/**
 * Returns the control of an arena in the lobby.
 *
 * @param {import('./games.js').Game} [game] no game by default
 * @param {number} mostRate --arena-rate
 * @param {number} [round]
 * @returns {object}
 */
export function lobby(game, mostRate, round = 0) {
  const { rate = 4, pace = 20, settings = {} } = game?.format ?? {};
  return {
    game: game?.name ?? null,
    version: game?.version ?? null,
    page: 'lobby',
    rate: Math.min(rate, mostRate),
    pace,
    running: false,
    begun: false,
    round,
    settings: startOf(settings),
    failed: null
  };
}

function readWhole(value, usual, most, name) {
  if (value === null) return usual;
  const good = Number.isInteger(value) && value >= 1 && value <= most;
  check(good, `"${name}" must be a whole number from 1 to ${most}, or null for the game's own.`);
  return value;
}

function readSettings(given, now, format) {
  if (given === null) return startOf(format.settings);
  check(
    isObject(given),
    '"settings" must be an object of numbers, or null for what they are at the start.'
  );
  const settings = { ...now };
  for (const [name, value] of Object.entries(given)) {
    check(Object.hasOwn(format.settings, name), `The game has no setting ${JSON.stringify(name)}.`);
    const { min, max, integer, start } = format.settings[name];
    const wanted = value === null ? start : value;
    check(
      Number.isFinite(wanted) &&
        wanted >= min &&
        wanted <= max &&
        (!integer || Number.isInteger(wanted)),
      `The setting "${name}" must be ${integer ? 'a whole number' : 'a number'} from ${min} to ${max}.`
    );
    settings[name] = wanted;
  }
  return settings;
}

/**
 * @param {Uint8Array} body of a command
 * @returns {object}
 * @throws {import('../base/refusal.js').Refusal}
 */
export function readCommand(body) {
  const command = readJson(body);
  check(isObject(command), 'Send one JSON object in UTF-8.');
  for (const name of Object.keys(command)) {
    const list = COMMANDS.join(', ');
    check(COMMANDS.includes(name), `${JSON.stringify(name)} is no command: there are ${list}.`);
  }
  return command;
}

/**
 * Returns the control after its game's files have changed: in the lobby, with those settings that are still valid.
 *
 * @param {object} now
 * @param {import('./games.js').Game} game
 * @param {number} mostRate --arena-rate
 */
export function renewed(now, game, mostRate) {
  const next = lobby(game, mostRate, now.round);
  for (const [name, value] of Object.entries(now.settings)) {
    try {
      next.settings = readSettings({ [name]: value }, next.settings, game.format);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // An invalid setting gets its start value.
    }
  }
  return next;
}

/**
 * Returns the control after a command.
 *
 * @param {object} now the control before
 * @param {object} command from readCommand
 * @param {Map<string, import('./games.js').Game>} games
 * @param {number} mostRate --arena-rate
 * @returns {object} a new object
 * @throws {import('../base/refusal.js').Refusal}
 */
export function command(now, { game, page, rate, pace, running, settings }, games, mostRate) {
  let next = { ...now };
  if (game !== undefined && game !== now.game) {
    check(
      game === null || games.has(game),
      `There is no game ${JSON.stringify(game)}: GET /games.`
    );
    next = lobby(games.get(game), mostRate, now.round);
  }
  const format = games.get(next.game)?.format;
  const own = lobby(games.get(next.game), mostRate);
  if (rate !== undefined) next.rate = readWhole(rate, own.rate, mostRate, 'rate');
  if (pace !== undefined) next.pace = readWhole(pace, own.pace, MOST_PACE, 'pace');
  if (settings !== undefined) {
    next.settings = readSettings(settings, next.settings, format ?? { settings: {} });
  }
  if (running !== undefined) {
    check(typeof running === 'boolean', '"running" must be true or false.');
    check(!running || format !== undefined, 'Choose a game before you start it.');
    if (running && !next.running) {
      const [page] = format.pages;
      next = { ...next, running, begun: true, round: next.round + 1, page, failed: null };
    }
    next.running = running;
  }
  if (page !== undefined) {
    const pages = ['lobby', ...(format?.pages ?? [])];
    check(pages.includes(page), `"page" must be one of ${pages.join(', ')}.`);
    next.page = page;
  }
  return next;
}
