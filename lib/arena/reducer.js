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

/** Timeouts of the load of a module, and of a reduction, in milliseconds. */
const LOAD_TIME = 10_000;
const STEP_TIME = 1000;

/** Number of timers that make one timeout. In a stall of this process, however long, only one of them expires. */
const BEATS = 10;

/** Longest text of a value, and of a game's memory, in bytes. */
const TEXT = 65536;

/** Reasons of a failure that a thread may report. */
const WHY = ['threw', 'bad-value', 'not-loaded'];

/** Longest reported message and frame of a stack, in characters; most frames. */
const MESSAGE = 200;
const FRAMES = 8;

const isText = (text) => typeof text === 'string' && text.length <= TEXT;

/** Most players in the `named` of a value. A longer list, or anything but a list of numbers, counts as empty. */
const NAMED = 100;
const namedIn = (named) =>
  Array.isArray(named) && named.length <= NAMED && named.every(Number.isSafeInteger) ? named : [];

/** Returns whether a message of the thread is a result. */
const isResult = ({ text, memory }) => isText(text) && (memory === undefined || isText(memory));

/** Returns the message of a thrown value, which may be anything: null, a number, an object without a prototype. */
const wordsOf = (thrown) =>
  typeof thrown?.message === 'string' ? thrown.message : inspect(thrown);

/** Initial length of the columns, in players. It doubles as needed. */
const PLAYERS = 64;

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
    .slice(0, FRAMES)
    .map((line) => line.replaceAll(folder, '').trim().replace(/^at /, '').slice(0, MESSAGE));
}

/** Returns the first line of a message, without the server's paths: Node names the file whose import failed. */
function shown(message, folder) {
  const [line] = message.split('\n');
  const games = folder.replace(/[^/]+\/$/, '');
  return [folder, games, String(new URL('.', PROGRAM))]
    .filter((url) => url.startsWith('file:'))
    .flatMap((url) => [url, fileURLToPath(url)])
    .reduce((text, path) => text.replaceAll(path, ''), line)
    .slice(0, MESSAGE);
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
  #told;
  #failed;
  #limit;
  #ready = false;
  #busy = false;
  #closed = false;

  /**
   * @param {import('./games.js').Game} game
   * @param {string} memory the game's memory, as JSON
   * @param {object} told the callbacks
   * @param {(result: {text: string, memory?: string, page?: unknown, over: boolean, named: number[]}) => void} told.value
   * @param {(failed: {why: string, message: string, at?: string, stack?: string[]}) => void} told.failed
   *     called once; the reducer is closed by then. `at`: the file and line in the game's own code, `stack`: its frames
   *     there
   */
  constructor(game, memory, { value, failed }) {
    const names = Object.keys(game.format.inputs);
    this.#fields = names.length;
    this.#columns = makeColumns(PLAYERS, names.length);
    this.#folder = game.reduce.slice(0, game.reduce.lastIndexOf('/') + 1);
    this.#told = value;
    this.#failed = failed;
    this.#worker = new Worker(PROGRAM, {
      workerData: { reduce: game.reduce, content: game.content, names, memory, most: TEXT },
      resourceLimits: MEMORY,
      // A game gets no environment variables and no options of the command line.
      env: {},
      execArgv: [],
      stdin: false
    });
    this.#worker.unref();
    this.#worker.on('message', (message) => this.#hear(message));
    this.#worker.on('messageerror', () => this.#hear(undefined));
    this.#worker.on('error', (thrown) => this.#fail('threw', wordsOf(thrown), thrown?.stack));
    this.#worker.on('exit', () => this.#fail('threw', 'it has ended its thread'));
    this.#bound(LOAD_TIME, 'not-loaded', 'it takes too long to load');
    this.#sendColumns = true;
  }

  /** Whether the thread does not have the current columns yet. */
  #sendColumns;

  /** Whether a reduction may begin. */
  get idle() {
    return this.#ready && !this.#busy;
  }

  /** Sets other content, for the next reduction. @param {string} content as JSON */
  renew(content) {
    this.#content = content;
  }

  #bound(milliseconds, why, message, beats = BEATS) {
    clearTimeout(this.#limit);
    const next = () =>
      beats > 1 ? this.#bound(milliseconds, why, message, beats - 1) : this.#fail(why, message);
    this.#limit = setTimeout(next, milliseconds / BEATS).unref();
  }

  #hear(message) {
    if (this.#closed) return;
    const { failed, ready, text, memory, page, over, named } = message ?? {};
    const begins = ready === true && !this.#ready;
    if (WHY.includes(failed?.why)) this.#fail(failed.why, wordsOf(failed), failed.stack);
    else if (begins || (this.#busy && isResult({ text, memory }))) {
      clearTimeout(this.#limit);
      this.#ready = true;
      this.#busy = false;
      if (!begins) this.#told({ text, memory, page, over: over === true, named: namedIn(named) });
    } else this.#fail('bad-value', 'it has sent a message that is none of a reducer’s');
  }

  #fail(why, message, thrown) {
    if (this.#closed) return;
    this.close();
    const stack = framesOf(thrown, this.#folder);
    const at = stack[0]?.match(/([^\s(:]+:\d+)(?::\d+)?\)?$/)?.[1];
    const where = at === undefined ? {} : { at, stack };
    this.#failed({ why, message: shown(message, this.#folder), ...where });
  }

  /**
   * Starts a reduction. To be called when `idle`.
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
      this.#sendColumns = true;
    }
    const count = fill(this.#columns);
    const columns = this.#sendColumns ? this.#columns : undefined;
    this.#sendColumns = false;
    this.#busy = true;
    this.#bound(STEP_TIME, 'too-slow', `a reduction takes more than ${STEP_TIME} ms`);
    this.#worker.postMessage({ ...now, players: count, columns, content: this.#content });
    this.#content = undefined;
  }

  /** Ends the thread. No callback is called any more. */
  close() {
    if (this.#closed) return undefined;
    this.#closed = true;
    clearTimeout(this.#limit);
    return this.#worker.terminate();
  }
}
