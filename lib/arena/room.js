import { ENDED } from '../feeds/feeds.js';
import { applyCommand, lobbyControl, renewedControl } from './control.js';
import { firstGame } from './games.js';
import { Reducer } from './reducer.js';

/**
 * One arena: its control, its game's reducer at the game's pace, and the two feeds that they publish.
 *
 *   panel ─▶ command ─▶ control ─▶ feed arena/{name}/control
 *   inputs (native) ─take─▶ reducer (a thread) ─▶ feed arena/{name}
 */

/** Intervals of publications while no game runs, and of requests for a running game's memory, in milliseconds. */
const IDLE_INTERVAL = 500;
const MEMORY_INTERVAL = 1000;

/** Problems that the value itself causes: nested too deep, no JSON, larger than `--feed-bytes`. */
const VALUE_PROBLEMS = ['bad-value', 'feed-too-large'];

export class Room {
  name;
  control;
  reductions = 0;
  /** Number of games that were stopped because they failed. */
  stopped = 0;
  #parts;
  #number;
  #reducer;
  #stepTimer;
  #idleTimer;
  /** Times of performance.now(): when the next reduction is due, the round began, the last reduction started. */
  #nextStepAt = 0;
  #roundBeganAt = 0;
  #lastStepAt = 0;
  #memoryRequestedAt = 0;
  /** The page that the last reduction got. */
  #reducedPage;
  #memory = '{}';
  /**
   * The last value, as JSON; the numbers of the players whose names are published with it; its time in the round, in
   * milliseconds; and the published text without its time.
   */
  #value = 'null';
  #namedPlayers = [];
  #time = 0;
  #publishedText = '';
  /** Whether the last publication of the control failed. */
  #isControlUnpublished = false;
  #isPublishing = false;
  /** The problem of the last publication of the reduced feed. */
  #publishProblem;
  #publication = Promise.resolve();
  #isStale = false;
  #isClosed = false;
  /** Whether the inputs of the last run belong to another game. */
  #hasForeignInputs = false;

  /**
   * @param {object} parts
   * @param {string} parts.name
   * @param {number} parts.number the native room
   * @param {object} parts.native the native arena
   * @param {Map<string, import('./games.js').Game>} parts.games
   * @param {number} parts.mostRate --arena-rate
   * @param {boolean} parts.isTrial whether `sprites play` runs the game
   * @param {(key: string, text: string) => Promise<object>} parts.publish
   * @param {(state: object) => boolean} parts.saveState notes the state for the next run
   * @param {import('./names.js').Names} parts.names the names of its players
   * @param {(game: string) => string | undefined} parts.contentOf returns the host's content of a game, as JSON;
   *     undefined: its own content.json counts
   * @param {import('pino').Logger} parts.log
   */
  constructor({ name, number, ...parts }) {
    this.#parts = parts;
    this.name = name;
    this.#number = number;
    this.control = lobbyControl(firstGame(parts.games), parts.mostRate);
    this.#resetInputs();
  }

  get players() {
    return this.#parts.native.players(this.#number);
  }

  get #game() {
    return this.#parts.games.get(this.control.game);
  }

  /** Resets the inputs of all players to their `start`. Waiting inputs belong to the game or round before. */
  #resetInputs() {
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
    if (this.#isClosed) return ENDED;
    const { games, mostRate } = this.#parts;
    return this.#setControl(applyCommand(this.control, members, games, mostRate));
  }

  /** Sets a new control: starts or ends a round accordingly, and publishes the control. */
  #setControl(next) {
    const before = this.control;
    this.control = next;
    const isOtherGame = next.game !== before.game || next.version !== before.version;
    const isNewRound = next.round !== before.round;
    if (isNewRound || isOtherGame) {
      this.#endRound();
      this.#value = 'null';
      this.#namedPlayers = [];
      this.#time = 0;
      this.#memory = '{}';
      this.#resetInputs();
    }
    if (isNewRound) this.#beginRound();
    else if (!next.running) this.#endRound();
    this.#saveState();
    this.#publishReduced();
    return this.#publishControl();
  }

  /** Publishes the control. The timer of `start` retries a failed publication. */
  async #publishControl() {
    this.#isControlUnpublished = false;
    const answer = await this.#parts.publish(
      `arena/${this.name}/control`,
      JSON.stringify(this.control)
    );
    this.#isControlUnpublished = answer.problem !== undefined;
    return answer;
  }

  /** Changes the control by the arena itself. No caller waits for its publication. */
  async #changeControl(change) {
    const { problem } = await this.#setControl({ ...this.control, ...change });
    if (problem !== undefined)
      this.#parts.log.error({ arena: this.name, problem }, 'a control is not published');
  }

  /** Returns whether a round of this game runs. */
  isPlaying(game) {
    return this.control.running && this.control.game === game;
  }

  /** Applies changed files of games. In `sprites play` a new round begins, also after a failure. */
  applyChangedGames() {
    if (this.#game === undefined || this.#game.version === this.control.version) return;
    const { games, mostRate, isTrial } = this.#parts;
    const next = renewedControl(this.control, this.#game, mostRate);
    this.#changeControl(isTrial ? applyCommand(next, { running: true }, games, mostRate) : next);
  }

  // ---- Names, and a game's content

  /** The names of the players. */
  get names() {
    return this.#parts.names;
  }

  /** Changes names. @param {(names: import('./names.js').Names) => string} change @returns {string} its result */
  changeNames(change) {
    const outcome = change(this.names);
    this.#publishReduced();
    return outcome;
  }

  /** @param {string} game the name of a known game @returns {string} its content, as JSON */
  content(game) {
    return this.#parts.contentOf(game) ?? this.#parts.games.get(game).content;
  }

  /** Gives a running round of a game its new content. */
  applyContent(game) {
    if (this.isPlaying(game)) this.#reducer?.setContent(this.content(game));
  }

  // ---- Reducing

  /** Starts a round, or continues that of the server's last run. */
  #beginRound() {
    const now = performance.now();
    this.#roundBeganAt = now - this.#time;
    this.#lastStepAt = now;
    this.#nextStepAt = now;
    const { game } = this.control;
    const content = this.content(game);
    this.#reducer = new Reducer({ ...this.#game, content }, this.#memory, {
      onResult: (result) => this.#acceptResult(result),
      onFailure: (failure) => this.#stopFailedGame(game, failure)
    });
    this.#scheduleStep();
  }

  /** Stops a game that has failed. */
  #stopFailedGame(game, failure) {
    // A failure may be reported twice: for a value that can't be published, and for the next value.
    if (this.control.failed !== null) return;
    this.#endRound();
    this.stopped += 1;
    this.#parts.log.warn({ arena: this.name, game, ...failure }, 'a game was stopped');
    this.#changeControl({ running: false, failed: { game, ...failure } });
  }

  #endRound() {
    clearTimeout(this.#stepTimer);
    this.#reducer?.close();
    this.#reducer = undefined;
  }

  #scheduleStep() {
    clearTimeout(this.#stepTimer);
    const now = performance.now();
    // Late reductions are not made up for.
    this.#nextStepAt = Math.max(this.#nextStepAt + 1000 / this.control.pace, now);
    this.#stepTimer = setTimeout(() => this.#step(), this.#nextStepAt - now);
  }

  #step() {
    this.#scheduleStep();
    // Skips this reduction while the last one runs, or its value is being published.
    if (!this.#reducer.isIdle || this.#isPublishing) return;
    const now = performance.now();
    const { page, round, settings } = this.control;
    const remember = now - this.#memoryRequestedAt >= MEMORY_INTERVAL;
    if (remember) this.#memoryRequestedAt = now;
    this.#reducedPage = page;
    this.#time = Math.round(now - this.#roundBeganAt);
    this.reductions += 1;
    this.#reducer.reduce(
      this.players,
      ({ numbers, fresh, values }) =>
        this.#parts.native.collectInputs(this.#number, numbers, fresh, values),
      { time: this.#time, step: now - this.#lastStepAt, page, round, settings, remember }
    );
    this.#lastStepAt = now;
  }

  /** Stores and publishes a reducer's result. */
  #acceptResult({ text, memory, page, over, named }) {
    this.#value = text;
    this.#namedPlayers = named;
    if (memory !== undefined) {
      this.#memory = memory;
      this.#saveState();
    }
    this.#publishReduced();
    // If the panel has changed the page since the reduction began, the panel's page counts.
    const changesPage =
      this.#reducedPage === this.control.page &&
      page !== this.#reducedPage &&
      this.#game.format.pages.includes(page);
    if (changesPage || over) {
      this.#changeControl({ ...(changesPage && { page }), ...(over && { running: false }) });
    }
  }

  // ---- Publishing

  /** Publishes the reduced feed, unless only its time has changed. */
  async #publishReduced() {
    if (this.#isClosed) return;
    // One publication at a time. The newest value follows it; values in between are conflated.
    this.#isStale = this.#isPublishing;
    if (this.#isPublishing) return;
    const { game, round, page } = this.control;
    const value = page === 'lobby' ? 'null' : this.#value;
    const head = `{"game":${JSON.stringify(game)},"round":${round},"players":${this.players}`;
    const names =
      this.#namedPlayers.length === 0 || page === 'lobby'
        ? ''
        : `,"names":${JSON.stringify(this.#parts.names.shownNames(this.#namedPlayers))}`;
    const textWithoutTime = `${head}${names},"value":${value}}`;
    if (textWithoutTime === this.#publishedText) return;
    this.#isPublishing = true;
    this.#publication = this.#parts.publish(
      `arena/${this.name}`,
      `${head},"time":${this.#time}${names},"value":${value}}`
    );
    const { problem, detail } = await this.#publication;
    this.#isPublishing = false;
    if (problem === undefined) this.#publishedText = textWithoutTime;
    else if (!this.#isClosed) this.#handlePublishProblem({ game, round, value }, problem, detail);
    this.#publishProblem = problem;
    if (this.#isStale) this.#publishReduced();
  }

  /** Stops a game whose value can't be published. Logs any other problem once; the next `#publishReduced` retries. */
  #handlePublishProblem({ game, round, value }, problem, detail) {
    if (VALUE_PROBLEMS.includes(problem)) {
      if (this.#value === value) this.#value = 'null';
      if (round === this.control.round)
        this.#stopFailedGame(game, { why: 'bad-value', message: detail ?? problem });
    } else if (problem !== this.#publishProblem)
      this.#parts.log.error({ arena: this.name, problem }, 'a reduced feed is not published');
  }

  /**
   * Publishes both feeds, and continues the round of the last run.
   *
   * @throws {Error} if the control can't be published
   */
  async start() {
    this.#idleTimer = setInterval(() => {
      if (!this.control.running) this.#publishReduced();
      if (this.#isControlUnpublished) {
        this.#saveState();
        this.#publishControl();
      }
    }, IDLE_INTERVAL).unref();
    if (this.control.running) this.#beginRound();
    this.#publishReduced();
    const { problem } = await this.#publishControl();
    if (problem !== undefined)
      throw new Error(`the arena ${this.name} can't be published: ${problem}`);
  }

  // ---- From one run to the next

  /** Notes the state for the next run. The journal gets it with the turn in which it is published. */
  #saveState() {
    this.#parts.saveState({
      control: this.control,
      inputs: this.#game?.format.inputs ?? {},
      memory: this.#memory,
      value: this.#value,
      named: this.#namedPlayers,
      time: this.#time
    });
  }

  /**
   * Restores the notes of the last run. To be called before its players are restored.
   *
   * @param {object} saved
   */
  restore({ control, inputs, memory, value, named = [], time }) {
    const { games, mostRate } = this.#parts;
    const game = games.get(control.game);
    // A removed game, or one with other inputs now, starts in the lobby.
    const hasSameInputs = JSON.stringify(game?.format.inputs ?? {}) === JSON.stringify(inputs);
    if (control.game !== null && (game === undefined || !hasSameInputs)) {
      this.control = lobbyControl(game ?? firstGame(games), mostRate, control.round);
    } else {
      const { version, settings } = renewedControl(control, game, mostRate);
      const page = game?.format.pages.includes(control.page) ? control.page : 'lobby';
      const rate = Math.min(control.rate, mostRate);
      const { begun = control.round > 0 } = control; // Notes of earlier versions have no `begun`.
      this.control = { ...control, begun, version, settings, page, rate };
      this.#value = value;
      this.#namedPlayers = named;
      this.#time = time;
      this.#memory = memory;
    }
    this.#hasForeignInputs = !hasSameInputs;
    this.#resetInputs();
  }

  /** Restores what needs the players of the last run. To be called after they are restored. */
  restorePlayers() {
    this.names.restore();
    if (this.#hasForeignInputs) this.#resetInputs();
  }

  /** Ends the round. @returns {Promise<void>} resolves when the last publication has ended */
  async close() {
    this.#isClosed = true;
    clearInterval(this.#idleTimer);
    this.#endRound();
    await this.#publication;
  }
}
