import { ENDED } from '../feeds/feeds.js';
import { command, lobby, renewed } from './control.js';
import { firstGame } from './games.js';
import { Reducer } from './reducer.js';

/**
 * One arena: its control, its game's reducer at the game's pace, and the two feeds that they publish.
 *
 *   panel ─▶ command ─▶ control ─▶ feed arena/{name}/control
 *   inputs (native) ─take─▶ reducer (a thread) ─▶ feed arena/{name}
 */

/** Intervals of publications while no game runs, and of requests for a running game's memory, in milliseconds. */
const LOOK = 500;
const REMEMBER = 1000;

/** Problems that the value itself causes: nested too deep, no JSON, larger than `--feed-bytes`. */
const UNFIT = ['bad-value', 'feed-too-large'];

export class Room {
  #parts;
  #number;
  #name;
  #control;
  #reducer;
  #timer;
  #look;
  /** Times of performance.now(): when the next reduction is due, the round began, the last reduction started. */
  #due = 0;
  #began = 0;
  #last = 0;
  #remembered = 0;
  /** The page that the last reduction got. */
  #asked;
  #memory = '{}';
  /**
   * The last value, as JSON; the numbers of the players whose names are published with it; its time in the round, in
   * milliseconds; and the published text without its time.
   */
  #value = 'null';
  #named = [];
  #time = 0;
  #published = '';
  /** Whether the last publication of the control failed. */
  #unsaid = false;
  #publishing = false;
  /** The problem of the last publication of the reduced feed. */
  #unpublished;
  #telling = Promise.resolve();
  #stale = false;
  #reductions = 0;
  #stopped = 0;
  #closed = false;
  /** Whether the inputs of the last run belong to another game. */
  #inputsAnew = false;

  /**
   * @param {object} parts
   * @param {string} parts.name
   * @param {number} parts.number the native room
   * @param {object} parts.native the native arena
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {number} parts.mostRate --arena-rate
   * @param {boolean} parts.tried whether `sprites play` runs the game
   * @param {(key: string, text: string) => Promise<object>} parts.publish
   * @param {(what: object) => boolean} parts.keep notes the state for the next run
   * @param {import('./names.js').Names} parts.names the names of its players
   * @param {(game: string) => string | undefined} parts.contentOf returns the host's content of a game, as JSON;
   *     undefined: its own content.json counts
   * @param {import('pino').Logger} parts.log
   */
  constructor({ name, number, ...parts }) {
    this.#parts = parts;
    this.#name = name;
    this.#number = number;
    this.#control = lobby(firstGame(parts.games), parts.mostRate);
    this.#setFields();
  }

  get name() {
    return this.#name;
  }

  get control() {
    return this.#control;
  }

  get players() {
    return this.#parts.native.players(this.#number);
  }

  get reductions() {
    return this.#reductions;
  }

  /** Number of games that were stopped because they failed. */
  get stopped() {
    return this.#stopped;
  }

  get #game() {
    return this.#parts.games.get(this.#control.game);
  }

  /** Resets the inputs of all players to their `start`. Waiting inputs belong to the game or round before. */
  #setFields() {
    const inputs = Object.entries(this.#game?.format.inputs ?? {});
    this.#parts.native.setFields(
      this.#number,
      inputs.map(([name, field]) => ({ name, ...field }))
    );
  }

  /**
   * Runs a command of the panel.
   *
   * @param {object} members from readCommand
   * @returns {Promise<object>} the answer to the publication of the control
   * @throws {import('../base/refusal.js').Refusal} and nothing is changed
   */
  async command(members) {
    if (this.#closed) return ENDED;
    const { games, mostRate } = this.#parts;
    return this.#become(command(this.#control, members, games, mostRate));
  }

  /** Sets a new control: starts or ends a round accordingly, and publishes the control. */
  #become(next) {
    const before = this.#control;
    this.#control = next;
    const isOther = next.game !== before.game || next.version !== before.version;
    const begins = next.round !== before.round;
    if (begins || isOther) {
      this.#end();
      this.#value = 'null';
      this.#named = [];
      this.#time = 0;
      this.#memory = '{}';
      this.#setFields();
    }
    if (begins) this.#begin();
    else if (!next.running) this.#end();
    this.#keep();
    this.#tell();
    return this.#say();
  }

  /** Publishes the control. The timer of `start` retries a failed publication. */
  async #say() {
    this.#unsaid = false;
    const said = await this.#parts.publish(
      `arena/${this.#name}/control`,
      JSON.stringify(this.#control)
    );
    this.#unsaid = said.problem !== undefined;
    return said;
  }

  /** Changes the control by the arena itself. No caller waits for its publication. */
  async #change(change) {
    const { problem } = await this.#become({ ...this.#control, ...change });
    if (problem !== undefined)
      this.#parts.log.error({ arena: this.#name, problem }, 'a control is not published');
  }

  /** Returns whether a round of this game runs. */
  plays(game) {
    return this.#control.running && this.#control.game === game;
  }

  /** Applies changed files of games. In `sprites play` a new round begins, also after a failure. */
  renew() {
    if (this.#game === undefined || this.#game.version === this.#control.version) return;
    const { games, mostRate, tried } = this.#parts;
    const next = renewed(this.#control, this.#game, mostRate);
    this.#change(tried ? command(next, { running: true }, games, mostRate) : next);
  }

  // ---- Names, and a game's content

  /** The names of the players. */
  get names() {
    return this.#parts.names;
  }

  /** Changes names. @param {(names: import('./names.js').Names) => string} change @returns {string} its result */
  rename(change) {
    const outcome = change(this.names);
    this.#tell();
    return outcome;
  }

  /** @param {string} game the name of a known game @returns {string} its content, as JSON */
  content(game) {
    return this.#parts.contentOf(game) ?? this.#parts.games.get(game).content;
  }

  /** Gives a running round of a game its new content. */
  contentChanged(game) {
    if (this.plays(game)) this.#reducer?.renew(this.content(game));
  }

  // ---- Reducing

  /** Starts a round, or continues that of the server's last run. */
  #begin() {
    const now = performance.now();
    this.#began = now - this.#time;
    this.#last = now;
    this.#due = now;
    const { game } = this.#control;
    const content = this.content(game);
    this.#reducer = new Reducer({ ...this.#game, content }, this.#memory, {
      value: (result) => this.#take(result),
      failed: (failed) => this.#fail(game, failed)
    });
    this.#wait();
  }

  /** Stops a game that has failed. */
  #fail(game, failed) {
    // A failure may be reported twice: for a value that can't be published, and for the next value.
    if (this.#control.failed !== null) return;
    this.#end();
    this.#stopped += 1;
    this.#parts.log.warn({ arena: this.#name, game, ...failed }, 'a game was stopped');
    this.#change({ running: false, failed: { game, ...failed } });
  }

  #end() {
    clearTimeout(this.#timer);
    this.#reducer?.close();
    this.#reducer = undefined;
  }

  #wait() {
    clearTimeout(this.#timer);
    const now = performance.now();
    // Late reductions are not made up for.
    this.#due = Math.max(this.#due + 1000 / this.#control.pace, now);
    this.#timer = setTimeout(() => this.#step(), this.#due - now);
  }

  #step() {
    this.#wait();
    // Skips this reduction while the last one runs, or its value is being published.
    if (!this.#reducer.idle || this.#publishing) return;
    const now = performance.now();
    const { page, round, settings } = this.#control;
    const remember = now - this.#remembered >= REMEMBER;
    if (remember) this.#remembered = now;
    this.#asked = page;
    this.#time = Math.round(now - this.#began);
    this.#reductions += 1;
    this.#reducer.reduce(
      this.players,
      ({ numbers, fresh, values }) => this.#parts.native.take(this.#number, numbers, fresh, values),
      { time: this.#time, step: now - this.#last, page, round, settings, remember }
    );
    this.#last = now;
  }

  /** Stores and publishes a reducer's result. */
  #take({ text, memory, page, over, named }) {
    this.#value = text;
    this.#named = named;
    if (memory !== undefined) {
      this.#memory = memory;
      this.#keep();
    }
    this.#tell();
    // If the panel has changed the page since the reduction began, the panel's page counts.
    const turns =
      this.#asked === this.#control.page &&
      page !== this.#asked &&
      this.#game.format.pages.includes(page);
    if (turns || over) {
      this.#change({ ...(turns && { page }), ...(over && { running: false }) });
    }
  }

  // ---- Publishing

  /** Publishes the reduced feed, unless only its time has changed. */
  async #tell() {
    if (this.#closed) return;
    // One publication at a time. The newest value follows it; values in between are conflated.
    this.#stale = this.#publishing;
    if (this.#publishing) return;
    const { game, round, page } = this.#control;
    const value = page === 'lobby' ? 'null' : this.#value;
    const head = `{"game":${JSON.stringify(game)},"round":${round},"players":${this.players}`;
    const names =
      this.#named.length === 0 || page === 'lobby'
        ? ''
        : `,"names":${JSON.stringify(this.#parts.names.of(this.#named))}`;
    const what = `${head}${names},"value":${value}}`;
    if (what === this.#published) return;
    this.#publishing = true;
    this.#telling = this.#parts.publish(
      `arena/${this.#name}`,
      `${head},"time":${this.#time}${names},"value":${value}}`
    );
    const { problem, detail } = await this.#telling;
    this.#publishing = false;
    if (problem === undefined) this.#published = what;
    else if (!this.#closed) this.#unpublishable({ game, round, value }, problem, detail);
    this.#unpublished = problem;
    if (this.#stale) this.#tell();
  }

  /** Stops a game whose value can't be published. Logs any other problem once; the next `#tell` retries. */
  #unpublishable({ game, round, value }, problem, detail) {
    if (UNFIT.includes(problem)) {
      if (this.#value === value) this.#value = 'null';
      if (round === this.#control.round)
        this.#fail(game, { why: 'bad-value', message: detail ?? problem });
    } else if (problem !== this.#unpublished)
      this.#parts.log.error({ arena: this.#name, problem }, 'a reduced feed is not published');
  }

  /**
   * Publishes both feeds, and continues the round of the last run.
   *
   * @throws {Error} if the control can't be published
   */
  async start() {
    this.#look = setInterval(() => {
      if (!this.#control.running) this.#tell();
      if (this.#unsaid) {
        this.#keep();
        this.#say();
      }
    }, LOOK).unref();
    if (this.#control.running) this.#begin();
    this.#tell();
    const { problem } = await this.#say();
    if (problem !== undefined)
      throw new Error(`the arena ${this.#name} can't be published: ${problem}`);
  }

  // ---- From one run to the next

  /** Notes the state for the next run. The journal gets it with the turn in which it is published. */
  #keep() {
    this.#parts.keep({
      control: this.#control,
      inputs: this.#game?.format.inputs ?? {},
      memory: this.#memory,
      value: this.#value,
      named: this.#named,
      time: this.#time
    });
  }

  /**
   * Restores the notes of the last run. To be called before its players are restored.
   *
   * @param {object} kept
   */
  restore({ control, inputs, memory, value, named = [], time }) {
    const { games, mostRate } = this.#parts;
    const game = games.get(control.game);
    // A removed game, or one with other inputs now, starts in the lobby.
    const same = JSON.stringify(game?.format.inputs ?? {}) === JSON.stringify(inputs);
    if (control.game !== null && (game === undefined || !same)) {
      this.#control = lobby(game ?? firstGame(games), mostRate, control.round);
    } else {
      const { version, settings } = renewed(control, game, mostRate);
      const page = game?.format.pages.includes(control.page) ? control.page : 'lobby';
      const rate = Math.min(control.rate, mostRate);
      const { begun = control.round > 0 } = control; // Notes of earlier versions have no `begun`.
      this.#control = { ...control, begun, version, settings, page, rate };
      this.#value = value;
      this.#named = named;
      this.#time = time;
      this.#memory = memory;
    }
    this.#inputsAnew = !same;
    this.#setFields();
  }

  /** Restores what needs the players of the last run. To be called after they are restored. */
  settled() {
    this.names.restore();
    if (this.#inputsAnew) this.#setFields();
  }

  /** Ends the round. @returns {Promise<void>} resolves when the last publication has ended */
  async close() {
    this.#closed = true;
    clearInterval(this.#look);
    this.#end();
    await this.#telling;
  }
}
