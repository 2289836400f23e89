import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';

/**
 * A game's reducer, in its own thread: a game that throws or never returns stops alone. A game can post messages
 * itself, so every message of the thread is checked.
 */

const PROGRAM = new URL('reducer-thread.js', import.meta.url);

/** Most memory of a game, in MiB. */
const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

/**
 * Timeouts of the load of a module, and of a reduction, in milliseconds. On a busy host a thread may get no core for a
 * second, and a game in front of a hall must not stop for that.
 */
const LOAD_TIME = 10_000;
const STEP_TIME = 2000;

/** Number of timers that make one timeout. In a stall of this process, however long, only one of them expires. */
const TIMERS_PER_TIMEOUT = 10;

/** Longest text of a value, and of a game's memory, in bytes. */
const MAX_TEXT_BYTES = 65536;

/** Reasons of a failure that a thread may report. */
const FAILURE_REASONS = ['threw', 'bad-value', 'not-loaded'];

/** Longest reported message and frame of a stack, in characters; most frames. */
const MAX_MESSAGE = 200;
const MAX_FRAMES = 8;

const isText = (text) => typeof text === 'string' && text.length <= MAX_TEXT_BYTES;

/** Most players in the `named` of a value. A longer list, or anything but a list of numbers, counts as empty. */
const MAX_NAMED = 100;
const readNamed = (named) =>
  Array.isArray(named) && named.length <= MAX_NAMED && named.every(Number.isSafeInteger)
    ? named
    : [];

/** Returns whether a message of the thread is a result. */
const isResult = ({ text, memory }) => isText(text) && (memory === undefined || isText(memory));

/** Returns the message of a thrown value, which may be anything: null, a number, an object without a prototype. */
const messageOf = (thrown) =>
  typeof thrown?.message === 'string' ? thrown.message : inspect(thrown);

/** Initial length of the columns, in players. It doubles as needed. */
const INITIAL_PLAYERS = 64;

/**
 * Returns the frames of a stack in the game's own files, with file names relative to its folder:
 * `reduce (reduce.js:12:9)`. The server's path on its disk stays secret.
 *
 * @param {unknown} stack
 * @param {string} folder its URL
 * @returns {string[]} the innermost first
 */
function framesOf(stack, folder) {
  if (typeof stack !== 'string') return [];
  return stack
    .split('\n', 100)
    .filter((line) => line.includes(folder) && /:\d+\)?$/.test(line))
    .slice(0, MAX_FRAMES)
    .map((line) => line.replaceAll(folder, '').trim().replace(/^at /, '').slice(0, MAX_MESSAGE));
}

/** Returns the first line of a message, without the server's paths: Node names the file whose import failed. */
function withoutPaths(message, folder) {
  const [line] = message.split('\n');
  const games = folder.replace(/[^/]+\/$/, '');
  return [folder, games, String(new URL('.', PROGRAM))]
    .filter((url) => url.startsWith('file:'))
    .flatMap((url) => [url, fileURLToPath(url)])
    .reduce((text, path) => text.replaceAll(path, ''), line)
    .slice(0, MAX_MESSAGE);
}

/** Makes columns in memory that both threads share. */
function makeColumns(most, fields) {
  const bytes = Float64Array.BYTES_PER_ELEMENT * fields + Uint32Array.BYTES_PER_ELEMENT + 1;
  const shared = new SharedArrayBuffer(most * bytes);
  const values = new Float64Array(shared, 0, most * fields);
  const numbers = new Uint32Array(shared, values.byteLength, most);
  return {
    most,
    values,
    numbers,
    fresh: new Uint8Array(shared, values.byteLength + numbers.byteLength, most)
  };
}

export class Reducer {
  #worker;
  #folder;
  #fields;
  #columns;
  #content;
  #onResult;
  #onFailure;
  #timeout;
  #isReady = false;
  #isBusy = false;
  #isClosed = false;

  /**
   * @param {import('./games.js').Game} game
   * @param {string} memory the game's memory, as JSON
   * @param {object} callbacks
   * @param {(result: {text: string, memory?: string, page?: unknown, over: boolean, named: number[]}) => void}
   *     callbacks.onResult
   * @param {(failure: {why: string, message: string, at?: string, stack?: string[]}) => void} callbacks.onFailure
   *     called once; the reducer is closed by then. `at`: the file and line in the game's own code, `stack`: its frames
   *     there
   */
  constructor(game, memory, { onResult, onFailure }) {
    const names = Object.keys(game.format.inputs);
    this.#fields = names.length;
    this.#columns = makeColumns(INITIAL_PLAYERS, names.length);
    this.#folder = game.reduce.slice(0, game.reduce.lastIndexOf('/') + 1);
    this.#onResult = onResult;
    this.#onFailure = onFailure;
    this.#worker = new Worker(PROGRAM, {
      workerData: {
        reduce: game.reduce,
        content: game.content,
        names,
        memory,
        most: MAX_TEXT_BYTES
      },
      resourceLimits: MEMORY,
      // A game gets no environment variables and no options of the command line.
      env: {},
      execArgv: [],
      stdin: false
    });
    this.#worker.unref();
    this.#worker.on('message', (message) => this.#handleMessage(message));
    this.#worker.on('messageerror', () => this.#handleMessage(undefined));
    this.#worker.on('error', (thrown) =>
      this.#reportFailure('threw', messageOf(thrown), thrown?.stack)
    );
    this.#worker.on('exit', () => this.#reportFailure('threw', 'it has ended its thread'));
    this.#startTimeout(LOAD_TIME, 'not-loaded', 'it takes too long to load');
    this.#mustSendColumns = true;
  }

  /** Whether the thread does not have the current columns yet. */
  #mustSendColumns;

  /** Whether a reduction may begin. */
  get isIdle() {
    return this.#isReady && !this.#isBusy;
  }

  /** Sets other content, for the next reduction. @param {string} content as JSON */
  setContent(content) {
    this.#content = content;
  }

  #startTimeout(milliseconds, why, message, timersLeft = TIMERS_PER_TIMEOUT) {
    clearTimeout(this.#timeout);
    const onTimer = () =>
      timersLeft > 1
        ? this.#startTimeout(milliseconds, why, message, timersLeft - 1)
        : this.#reportFailure(why, message);
    this.#timeout = setTimeout(onTimer, milliseconds / TIMERS_PER_TIMEOUT).unref();
  }

  #handleMessage(message) {
    if (this.#isClosed) return;
    const { failed, ready, text, memory, page, over, named } = message ?? {};
    const isLoaded = ready === true && !this.#isReady;
    if (FAILURE_REASONS.includes(failed?.why))
      this.#reportFailure(failed.why, messageOf(failed), failed.stack);
    else if (isLoaded || (this.#isBusy && isResult({ text, memory }))) {
      clearTimeout(this.#timeout);
      this.#isReady = true;
      this.#isBusy = false;
      if (!isLoaded)
        this.#onResult({ text, memory, page, over: over === true, named: readNamed(named) });
    } else this.#reportFailure('bad-value', 'it has sent a message that is none of a reducer’s');
  }

  #reportFailure(why, message, errorStack) {
    if (this.#isClosed) return;
    this.close();
    const stack = framesOf(errorStack, this.#folder);
    const at = stack[0]?.match(/([^\s(:]+:\d+)(?::\d+)?\)?$/)?.[1];
    const position = at === undefined ? {} : { at, stack };
    this.#onFailure({ why, message: withoutPaths(message, this.#folder), ...position });
  }

  /**
   * Starts a reduction. To be called when `isIdle`.
   *
   * @param {number} players most players
   * @param {(columns: {most: number, numbers: Uint32Array, fresh: Uint8Array, values: Float64Array}) => number} fill
   *     fills the columns with their inputs, and returns the number of players
   * @param {object} now time, step, page, round, settings; `remember`: whether the result needs the memory
   */
  reduce(players, fill, now) {
    let { most } = this.#columns;
    while (most < players) most *= 2;
    if (most !== this.#columns.most) {
      this.#columns = makeColumns(most, this.#fields);
      this.#mustSendColumns = true;
    }
    const count = fill(this.#columns);
    const columns = this.#mustSendColumns ? this.#columns : undefined;
    this.#mustSendColumns = false;
    this.#isBusy = true;
    this.#startTimeout(STEP_TIME, 'too-slow', `a reduction takes more than ${STEP_TIME} ms`);
    this.#worker.postMessage({ ...now, players: count, columns, content: this.#content });
    this.#content = undefined;
  }

  /** Ends the thread. No callback is called any more. */
  close() {
    if (this.#isClosed) return undefined;
    this.#isClosed = true;
    clearTimeout(this.#timeout);
    return this.#worker.terminate();
  }
}
