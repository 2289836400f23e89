import { ENDED } from '../feeds/feeds.js';
import { command, lobby, renewed } from './control.js';
import { firstGame } from './games.js';
import { Reducer } from './reducer.js';

/**
 * One arena: its control, its game's reducer at the game's pace, and what both publish.
 *
 *   panel ─▶ command ─▶ control ─▶ feed arena/{name}/control
 *   inputs (native) ─take─▶ reducer (a thread) ─▶ feed arena/{name}
 */

/** How often players are told while no game runs, and a running game's memory is asked for, in milliseconds. */
const LOOK = 500;
const REMEMBER = 1000;

/** Problems of a publication that are the value's own: nested too deep, no JSON, larger than `--feed-bytes`. */
const UNFIT = ['bad-value', 'feed-too-large'];

export class Room {
  #parts;
  #number;
  #name;
  #control;
  #reducer;
  #timer;
  #look;
  /** When the next reduction is due, when the round began, and when the last one was. */
  #due = 0;
  #began = 0;
  #last = 0;
  #remembered = 0;
  /** The page that the reduction was given which is under way. */
  #asked;
  #memory = '{}';
  /**
   * What was reduced last, as JSON, whose names are told with it, and when in the round; and what is published, without
   * its time.
   */
  #value = 'null';
  #named = [];
  #time = 0;
  #published = '';
  /** The control was not published. */
  #unsaid = false;
  #publishing = false;
  /** For what a reduced feed was not published last. */
  #unpublished;
  #telling = Promise.resolve();
  #stale = false;
  #reductions = 0;
  #stopped = 0;
  #closed = false;
  /** The last run's inputs are of another game. */
  #inputsAnew = false;

  /**
   * @param {object} parts
   * @param {string} parts.name
   * @param {number} parts.number the native room
   * @param {object} parts.native the native arena
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {number} parts.mostRate --arena-rate
   * @param {boolean} parts.tried whether its author tries the game alone
   * @param {(key: string, text: string) => Promise<object>} parts.publish
   * @param {(what: object) => boolean} parts.keep notes what the next run needs
   * @param {import('./names.js').Names} parts.names of its players
   * @param {(game: string) => string | undefined} parts.contentOf what a game is about here, as JSON; undefined: what
   *     its own content.json says
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

  /** How often a game was stopped since it failed. */
  get stopped() {
    return this.#stopped;
  }

  get #game() {
    return this.#parts.games.get(this.#control.game);
  }

  /** Every player's inputs begin at their `start`; those that wait are of what was before. */
  #setFields() {
    const inputs = Object.entries(this.#game?.format.inputs ?? {});
    this.#parts.native.setFields(
      this.#number,
      inputs.map(([name, field]) => ({ name, ...field }))
    );
  }

  /**
   * Does what the panel says.
   *
   * @param {object} members as readCommand gives it
   * @returns {Promise<object>} what publishing the control answers
   * @throws {import('../base/refusal.js').Refusal} and nothing is changed
   */
  async command(members) {
    if (this.#closed) return ENDED;
    const { games, mostRate } = this.#parts;
    return this.#become(command(this.#control, members, games, mostRate));
  }

  /** Takes a new control: begins or ends what it says, and publishes it. */
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

  /** Publishes the control; what fails is tried again when players are told. */
  async #say() {
    this.#unsaid = false;
    const said = await this.#parts.publish(
      `arena/${this.#name}/control`,
      JSON.stringify(this.#control)
    );
    this.#unsaid = said.problem !== undefined;
    return said;
  }

  /** A control that the arena itself has changed; no caller waits for its publication. */
  async #change(change) {
    const { problem } = await this.#become({ ...this.#control, ...change });
    if (problem !== undefined)
      this.#parts.log.error({ arena: this.#name, problem }, 'a control is not published');
  }

  /** Whether a round of this game runs. */
  plays(game) {
    return this.#control.running && this.#control.game === game;
  }

  /** The games' files have changed. Of a game that is tried a round begins, also after a fault. */
  renew() {
    if (this.#game === undefined || this.#game.version === this.#control.version) return;
    const { games, mostRate, tried } = this.#parts;
    const next = renewed(this.#control, this.#game, mostRate);
    this.#change(tried ? command(next, { running: true }, games, mostRate) : next);
  }

  // ---- Names, and what a game is about

  /** What the players call themselves. */
  get names() {
    return this.#parts.names;
  }

  /** Changes them. @param {(names: import('./names.js').Names) => string} change @returns {string} what `change` does */
  rename(change) {
    const outcome = change(this.names);
    this.#tell();
    return outcome;
  }

  /** @param {string} game one that there is @returns {string} what it is about, as JSON */
  content(game) {
    return this.#parts.contentOf(game) ?? this.#parts.games.get(game).content;
  }

  /** Other content of a game: a round of it goes on with that. */
  contentChanged(game) {
    if (this.plays(game)) this.#reducer?.renew(this.content(game));
  }

  // ---- Reducing

  /** A round begins, or goes on where the last run of the server was. */
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

  /** A game is stopped that does what none should. */
  #fail(game, failed) {
    // It may have come to be known in two ways: by a value that no feed takes, and by the next one.
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
    // A late round does not catch up.
    this.#due = Math.max(this.#due + 1000 / this.#control.pace, now);
    this.#timer = setTimeout(() => this.#step(), this.#due - now);
  }

  #step() {
    this.#wait();
    // A value that is still being published is older than the next: that waits for its turn.
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

  /** A reducer has given back a value. */
  #take({ text, memory, page, over, named }) {
    this.#value = text;
    this.#named = named;
    if (memory !== undefined) {
      this.#memory = memory;
      this.#keep();
    }
    this.#tell();
    // Where the panel has turned the page meanwhile, the game has not seen that yet.
    const turns =
      this.#asked === this.#control.page &&
      page !== this.#asked &&
      this.#game.format.pages.includes(page);
    if (turns || over) {
      this.#change({ ...(turns && { page }), ...(over && { running: false }) });
    }
  }

  // ---- Publishing

  /** Publishes the reduced feed if there is something new in it. */
  async #tell() {
    if (this.#closed) return;
    // One at a time; the last of what has come meanwhile comes next.
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

  /** What no feed takes was the game's to see to; what the server can't do is said once, and tried again. */
  #unpublishable({ game, round, value }, problem, detail) {
    if (UNFIT.includes(problem)) {
      if (this.#value === value) this.#value = 'null';
      if (round === this.#control.round)
        this.#fail(game, { why: 'bad-value', message: detail ?? problem });
    } else if (problem !== this.#unpublished)
      this.#parts.log.error({ arena: this.#name, problem }, 'a reduced feed is not published');
  }

  /**
   * Publishes what there is, and goes on with what the last run has left.
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

  /** Notes what the next run needs; it is written with the turn in which it is published. */
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
   * Takes over what the last run has noted; before its players are there.
   *
   * @param {object} kept
   */
  restore({ control, inputs, memory, value, named = [], time }) {
    const { games, mostRate } = this.#parts;
    const game = games.get(control.game);
    // A game that has been taken away, or that takes other inputs now, begins anew.
    const same = JSON.stringify(game?.format.inputs ?? {}) === JSON.stringify(inputs);
    if (control.game !== null && (game === undefined || !same)) {
      this.#control = lobby(game ?? firstGame(games), mostRate, control.round);
    } else {
      const { version, settings } = renewed(control, game, mostRate);
      const page = game?.format.pages.includes(control.page) ? control.page : 'lobby';
      const rate = Math.min(control.rate, mostRate);
      const { begun = control.round > 0 } = control; // Earlier versions have kept none.
      this.#control = { ...control, begun, version, settings, page, rate };
      this.#value = value;
      this.#named = named;
      this.#time = time;
      this.#memory = memory;
    }
    this.#inputsAnew = !same;
    this.#setFields();
  }

  /** The players of the last run are there. */
  settled() {
    this.names.restore();
    if (this.#inputsAnew) this.#setFields();
  }

  /** @returns {Promise<void>} when nothing of it is under way any more */
  async close() {
    this.#closed = true;
    clearInterval(this.#look);
    this.#end();
    await this.#telling;
  }
}
