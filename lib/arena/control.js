import { isObject } from '../client/answers.js';
import { readJson } from '../base/read-json.js';
import { checkFor, Refusal } from '../base/refusal.js';

/**
 * The control of an arena: its game, page, rates and settings. A command of the panel makes the next control, by a pure
 * function. README.md has the members.
 */

/** Most reductions per second that a command may set. */
const MAX_PACE = 60;

const check = checkFor('bad-control');

const COMMANDS = ['game', 'page', 'rate', 'pace', 'running', 'settings'];

/** Returns the settings with which a game starts. */
const startSettings = (settings) =>
  Object.fromEntries(Object.entries(settings).map(([name, { start }]) => [name, start]));

/**
 * Returns the control of an arena in the lobby.
 *
 * @param {import('./games.js').Game} [game] no game by default
 * @param {number} mostRate --arena-rate
 * @param {number} [round]
 * @returns {object}
 */
export function lobbyControl(game, mostRate, round = 0) {
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
    settings: startSettings(settings),
    failed: null
  };
}

function readWholeNumber(value, gameDefault, max, name) {
  if (value === null) return gameDefault;
  const isValid = Number.isInteger(value) && value >= 1 && value <= max;
  check(isValid, `"${name}" must be a whole number from 1 to ${max}, or null for the game's own.`);
  return value;
}

function readSettings(changes, current, format) {
  if (changes === null) return startSettings(format.settings);
  check(
    isObject(changes),
    '"settings" must be an object of numbers, or null for what they are at the start.'
  );
  const settings = { ...current };
  for (const [name, value] of Object.entries(changes)) {
    check(Object.hasOwn(format.settings, name), `The game has no setting ${JSON.stringify(name)}.`);
    const { min, max, integer, start } = format.settings[name];
    const target = value === null ? start : value;
    check(
      Number.isFinite(target) &&
        target >= min &&
        target <= max &&
        (!integer || Number.isInteger(target)),
      `The setting "${name}" must be ${integer ? 'a whole number' : 'a number'} from ${min} to ${max}.`
    );
    settings[name] = target;
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
  check(isObject(command), 'Send one JSON object in UTF-8, no name twice.');
  for (const name of Object.keys(command)) {
    const list = COMMANDS.join(', ');
    check(COMMANDS.includes(name), `${JSON.stringify(name)} is no command: there are ${list}.`);
  }
  return command;
}

/**
 * Returns the control after its game's files have changed: in the lobby, with those settings that are still valid.
 *
 * @param {object} current
 * @param {import('./games.js').Game} game
 * @param {number} mostRate --arena-rate
 */
export function renewedControl(current, game, mostRate) {
  const renewed = lobbyControl(game, mostRate, current.round);
  for (const [name, value] of Object.entries(current.settings)) {
    try {
      renewed.settings = readSettings({ [name]: value }, renewed.settings, game.format);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error; // An invalid setting gets its start value.
    }
  }
  return renewed;
}

/**
 * Returns the control after a command.
 *
 * @param {object} current the control before
 * @param {object} command from readCommand
 * @param {Map<string, import('./games.js').Game>} games
 * @param {number} mostRate --arena-rate
 * @returns {object} a new object
 * @throws {import('../base/refusal.js').Refusal}
 */
export function applyCommand(
  current,
  { game, page, rate, pace, running, settings },
  games,
  mostRate
) {
  let next = { ...current };
  if (game !== undefined && game !== current.game) {
    check(
      game === null || games.has(game),
      `There is no game ${JSON.stringify(game)}: GET /games.`
    );
    next = lobbyControl(games.get(game), mostRate, current.round);
  }
  const format = games.get(next.game)?.format;
  const defaults = lobbyControl(games.get(next.game), mostRate);
  if (rate !== undefined) next.rate = readWholeNumber(rate, defaults.rate, mostRate, 'rate');
  if (pace !== undefined) next.pace = readWholeNumber(pace, defaults.pace, MAX_PACE, 'pace');
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
