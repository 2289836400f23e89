import { once } from 'node:events';
import http from 'node:http';
import { randomUUID } from 'node:crypto';

import { findGames } from '../../lib/arena/games.js';
import { TOKEN } from './feeds.js';

/**
 * Stands in for the server's half of the arena as long as that is not built: joins, inputs, reductions and
 * commands of one arena "hall" before a real server, which has the pages, the games' files and the
 * feeds. To be thrown away then: `arenaBase` uses the server's own where there is one.
 */

const BEARER = { Authorization: `Bearer ${TOKEN}` };
const LEASE = 30;

/**
 * @param {import('tap').Test} t
 * @param {string} base of a server with --arena hall and --publish-token-file
 * @param {string} [games] what it has as --games
 * @returns {Promise<string>} where the arena is
 */
export async function arenaBase(t, base, games = 'none') {
  const join = await fetch(new URL('arena/hall', base), { method: 'POST' });
  await join.arrayBuffer();
  if (join.status === 201) return base;
  const arena = new StandIn(base, findGames({ arena: ['hall'], games }));
  t.teardown(() => arena.close());
  return arena.open();
}

class StandIn {
  #base;
  #games;
  #server;
  #timer;
  #players = new Map(); // by id: {number, input, fresh}
  #numbers = 0;
  #reducer = null;
  #memory = {};
  #began = 0;
  #last = 0;
  #value = null;
  #counts = { inputs: 0, reductions: 0 };
  #control;

  constructor(base, games) {
    this.#base = base;
    this.#games = games;
    this.#control = this.#begin([...games.keys()][0]);
  }

  #begin(game) {
    const { rate, pace, settings } = this.#games.get(game).format;
    const starts = Object.entries(settings).map(([name, { start }]) => [name, start]);
    return {
      game,
      page: 'lobby',
      rate,
      pace,
      running: false,
      round: this.#control?.round ?? 0,
      settings: Object.fromEntries(starts),
      failed: null
    };
  }

  async open() {
    this.#server = http.createServer((request, response) => {
      this.#answer(request, response).catch(() => response.destroy());
    });
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    await this.#publish();
    this.#tick();
    return `http://127.0.0.1:${this.#server.address().port}/`;
  }

  close() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#server.close();
    this.#server.closeAllConnections();
  }

  async #answer(request, response) {
    const { method } = request;
    const { pathname } = new URL(request.url, this.#base);
    const [, first, name, player, last] = pathname.split('/');
    const isCommand = pathname === '/feed/arena/hall/control' && method !== 'GET';
    if (!isCommand && first !== 'arena') return this.#pass(request, response);
    const text = Buffer.concat(await request.toArray()).toString();
    const send = (status, json) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(json === undefined ? undefined : JSON.stringify(json));
    };
    const problem = (status, type, detail) =>
      send(status, { type: `urn:sprites:${type}`, title: type, status, detail });
    const isOpen = request.headers.authorization === BEARER.Authorization;
    if (isCommand) {
      if (!isOpen) return problem(401, 'bad-token', 'ask the operator for a token');
      await this.#command(JSON.parse(text));
      return send(200, { cursor: 'x-1', watching: 1 });
    }
    if (name !== 'hall') return problem(404, 'unknown-arena', 'there is no such arena');
    if (player === 'status') {
      if (!isOpen) return problem(401, 'bad-token', 'ask the operator for a token');
      const { rss } = process.memoryUsage();
      const cpuSeconds = process.cpuUsage().user / 1e6;
      const times = { rss, longestStallMs: 1.25, cpuSeconds };
      return send(200, { ...this.#counts, players: this.#players.size, ...times });
    }
    if (player === undefined) {
      const id = randomUUID();
      this.#numbers += 1;
      const number = this.#numbers;
      this.#players.set(id, { number, input: this.#starts(), fresh: 0 });
      const { rate } = this.#control;
      return send(201, { player: id, number, rate, lease: LEASE });
    }
    if (last === 'leave') {
      this.#players.delete(player);
      return send(204);
    }
    const one = this.#players.get(player);
    if (one === undefined) return problem(404, 'unknown-player', 'join again');
    const input = JSON.parse(text);
    const { inputs } = this.#games.get(this.#control.game).format;
    const isGood = ([key, value]) => value >= inputs[key]?.min && value <= inputs[key]?.max;
    if (!Object.entries(input).every(isGood)) return problem(400, 'bad-input', 'see inputs.json');
    Object.assign(one.input, input);
    one.fresh = 1;
    this.#counts.inputs += 1;
    return send(204);
  }

  #starts() {
    const { inputs } = this.#games.get(this.#control.game).format;
    return Object.fromEntries(Object.entries(inputs).map(([name, { start }]) => [name, start]));
  }

  async #command({ settings, ...members }) {
    const before = this.#control;
    if ('game' in members && members.game !== before.game) {
      this.#control = this.#begin(members.game);
      this.#value = null;
      for (const one of this.#players.values()) one.input = this.#starts();
    }
    const now = { ...this.#control, ...members };
    now.settings = { ...this.#control.settings, ...settings };
    if (now.running && !this.#control.running) {
      Object.assign(now, { round: now.round + 1, failed: null });
      now.page = members.page ?? this.#games.get(now.game).format.pages[0];
      this.#reducer = (await import(this.#games.get(now.game).reduce)).reduce;
      this.#memory = {};
      this.#value = null;
      this.#began = performance.now();
      this.#last = this.#began;
    }
    this.#control = now;
    await this.#publish();
  }

  async #tick() {
    await this.#reduce();
    if (this.#timer === null) return;
    this.#timer = setTimeout(() => this.#tick(), 1000 / this.#control.pace);
  }

  async #reduce() {
    const { game, running, page, round, settings } = this.#control;
    const time = performance.now();
    if (running) {
      const list = [...this.#players.values()];
      const { inputs } = this.#games.get(game).format;
      const columns = Object.keys(inputs).map((name) => [
        name,
        Float64Array.from(list, ({ input }) => input[name])
      ]);
      try {
        this.#value = this.#reducer(
          {
            players: list.length,
            numbers: Uint32Array.from(list, ({ number }) => number),
            fresh: Uint8Array.from(list, ({ fresh }) => fresh),
            inputs: Object.fromEntries(columns),
            time: time - this.#began,
            step: time - this.#last,
            page,
            round,
            settings
          },
          this.#memory
        );
      } catch (error) {
        const failed = { game, why: 'threw', message: error.message };
        this.#control = { ...this.#control, running: false, failed };
        return this.#publish();
      }
      this.#memory = JSON.parse(JSON.stringify(this.#memory));
      this.#last = time;
      this.#counts.reductions += 1;
      for (const one of list) one.fresh = 0;
      const { page: to = page, over } = this.#value;
      if (to !== page || over) {
        this.#control = { ...this.#control, page: to, running: !over };
        await this.#publish();
      }
    }
    const players = this.#players.size;
    const elapsed = Math.round(time - this.#began);
    return this.#put('arena/hall', { game, round, players, time: elapsed, value: this.#value });
  }

  #publish() {
    return this.#put('arena/hall/control', this.#control);
  }

  async #put(key, value) {
    const url = new URL(`feed/${key}`, this.#base);
    const init = { method: 'PUT', headers: BEARER, body: JSON.stringify(value) };
    // A server that has ended takes no more: what a test misses it says itself.
    const answer = await fetch(url, init).catch(() => null);
    await answer?.arrayBuffer();
  }

  /** What the server has anyway. */
  #pass(request, response) {
    const { method, headers, url } = request;
    const forward = http.request(new URL(url, this.#base), { method, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forward.on('error', () => response.destroy());
    response.on('close', () => forward.destroy());
    request.pipe(forward);
  }
}
