import { fileURLToPath } from 'node:url';
import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';

/**
 * A game's reducer in a thread of its own, so that a game that throws or runs for ever stops alone.
 * A game can send messages by itself: nothing that comes from its thread is taken unchecked.
 */

const PROGRAM = new URL('reducer-thread.js', import.meta.url);

/** Memory a game may use, in MiB. */
const MEMORY = { maxOldGenerationSizeMb: 64, maxYoungGenerationSizeMb: 16 };

/** Milliseconds that a module may take to load, and a reduction. */
const LOAD_TIME = 10_000;
const STEP_TIME = 1000;

/** A time is counted in so many beats: one in which this process stood still is one beat, however long. */
const BEATS = 10;

/** The longest text of a value, and of a game's memory, in bytes. */
const TEXT = 65536;

/** Why a thread says that its game has failed. */
const WHY = ['threw', 'bad-value', 'not-loaded'];

/** Characters of a message that is told, and of a frame of the stack; frames. */
const MESSAGE = 200;
const FRAMES = 8;

const isText = (text) => typeof text === 'string' && text.length <= TEXT;

/** Players whose names are to be told with a value; what is no list of so many is none. */
const NAMED = 100;
const namedIn = (named) =>
  Array.isArray(named) && named.length <= NAMED && named.every(Number.isSafeInteger) ? named : [];

/** What a thread says that has made a value. */
const isResult = ({ text, memory }) => isText(text) && (memory === undefined || isText(memory));

/** What was thrown in words, which may be anything: null, a number, an object without a prototype. */
const wordsOf = (thrown) =>
  typeof thrown?.message === 'string' ? thrown.message : inspect(thrown);

/** The columns' first size, in players; it doubles. */
const PLAYERS = 64;

/**
 * The frames of a stack that are in the game's own files, by their names in its folder:
 * `reduce (reduce.js:12:9)`. The path of the server on its disk stays secret.
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

/** The first line of a message, with as little of those paths: Node says from where a file is missed. */
function shown(message, folder) {
  const [line] = message.split('\n');
  const games = folder.replace(/[^/]+\/$/, '');
  return [folder, games, String(new URL('.', PROGRAM))]
    .filter((url) => url.startsWith('file:'))
    .flatMap((url) => [url, fileURLToPath(url)])
    .reduce((text, path) => text.replaceAll(path, ''), line)
    .slice(0, MESSAGE);
}

/** Columns in memory that both threads see. */
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
   * @param {string} memory the game's, as JSON
   * @param {object} told
   * @param {(result: {text: string, memory?: string, page?: unknown, over: boolean, named: number[]}) => void} told.value
   * @param {(failed: {why: string, message: string, at?: string, stack?: string[]}) => void} told.failed
   *     once; it has ended by then. `at`: the file and line of its own where that was, `stack`: how it came there
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
      // Of the environment and the command line nothing is a game's.
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

  /** Whether the columns are new to the thread. */
  #sendColumns;

  /** Whether a reduction may begin. */
  get idle() {
    return this.#ready && !this.#busy;
  }

  /** What the game is about is other content now: the next reduction has it. @param {string} content as JSON */
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
   * Begins a reduction; to be called when `idle`.
   *
   * @param {number} players how many there are at most
   * @param {(columns: {most: number, numbers: Uint32Array, fresh: Uint8Array, values: Float64Array}) => number} fill
   *     puts their inputs there, and gives how many
   * @param {object} now time, step, page, round, settings; `remember`: the memory is wanted
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

  /** Ends the thread; nothing is told any more. */
  close() {
    if (this.#closed) return undefined;
    this.#closed = true;
    clearTimeout(this.#limit);
    return this.#worker.terminate();
  }
}
