import { readFileSync } from 'node:fs';

/**
 * The vectors that every client is held to, and how one is played. A stage is a client and its scripted server: the
 * JavaScript client's moves a clock by hand (test/client/vectors.test.js), the C++ client's is real (client-cpp.test.js).
 *
 * @typedef {object} Request as the server has it
 * @property {string} route the first segment of its path
 * @property {string} method
 * @property {string} target what follows in its path, and its query; a @ before where another server was asked
 * @property {string|null} grant that it has carried
 * @property {string} [body]
 * @property {number} at ms
 *
 * @typedef {object} Stage
 * @property {Record<string, any[]>} seen what the program was told, by the names that `sees` has
 * @property {Request[]} requests whole ones, so far
 * @property {(isSo: () => boolean) => Promise<unknown>} until lets time pass until something is so
 * @property {boolean} isExact its clock is moved by hand, and chance says 0.5
 * @property {() => Promise<void>} end gives what comes too much the time to come, and ends the client
 */

const read = (name) =>
  JSON.parse(readFileSync(new URL(`../vectors/${name}.json`, import.meta.url), 'utf8'));

export const CLIENT = read('client');
export const FEEDS = read('feeds');

/** How much shorter a wait may look, in milliseconds: two clocks measure it, and one of Windows ticks every 16 ms. */
const CLOCKS = 20;

/** What the server of a scenario answers, by route. */
export const answersOf = ({ server }) =>
  Array.isArray(server) ? { feeds: server } : { ...CLIENT.usual, ...server };

/** Answers of a scripted server that wait until so many requests have come, by route; then all at once. */
export class Held {
  #waiting = new Map();
  #count;

  /** @param {(route: string) => number} count how many have come */
  constructor(count) {
    this.#count = count;
  }

  /** @param {Record<string, number>} [after] @returns {Promise<void>} when they have come */
  until(after = {}) {
    return new Promise((go) => {
      this.#waiting.set(go, Object.entries(after));
      this.look();
    });
  }

  /** A request has come. */
  look() {
    for (const [go, after] of this.#waiting) {
      if (!after.every(([route, least]) => this.#count(route) >= least)) continue;
      this.#waiting.delete(go);
      go();
    }
  }
}

const lengthOf = (list = []) => list.length;

/** Whether the program was told as much as it is to be told. */
const isTold = ({ seen }, sees) =>
  Object.keys(sees).every((what) => !seen[what] || seen[what].length >= sees[what].length);

/** Returns each of the wanted pauses that came true as it is, and of another one how long it `took`. */
const pausesOf = (stage, pauses = []) =>
  pauses.map((wanted) => {
    const sent = stage.requests.filter(({ route }) => route === wanted.route);
    const took = sent[wanted.to].at - sent[wanted.from].at;
    const isSo = stage.isExact ? took === wanted.exact : took + CLOCKS >= wanted.least;
    return isSo ? wanted : { ...wanted, took };
  });

/**
 * Plays a scenario of client.json.
 *
 * @param {Stage & {throw: Function, look: Function, leave: Function, wake: Function, pass: Function}} stage
 * @param {object} scenario
 * @returns {Promise<object>} as its `sees`
 */
export async function playClient(stage, { begins = 'online', does = [], sees }) {
  const sent = (route) => stage.requests.filter((one) => one.route === route);
  const count = (what) => lengthOf(stage.seen[what] ?? sent(what));
  await stage.until(() => stage.seen.states.some((state) => state.startsWith(begins)));
  for (const { throw: edge, sprite, unawaited, look, leave, pass, wake, waitFor = {} } of does) {
    if (pass) await stage.pass(pass);
    if (wake) stage.wake();
    const told = [];
    if (edge) told.push(stage.throw(edge, sprite));
    if (look) told.push(stage.look(look));
    if (leave) told.push(stage.leave());
    let isOver = Boolean(unawaited);
    Promise.all(told).then(() => (isOver = true));
    const wanted = Object.entries(waitFor);
    await stage.until(() => isOver && wanted.every(([what, least]) => count(what) >= least));
  }
  const { requests = {}, pauses = [] } = sees;
  const polls = lengthOf(requests.poll);
  await stage.until(
    () =>
      isTold(stage, sees) &&
      count('poll') >= polls &&
      pauses.every(({ route, to }) => count(route) > to)
  );
  await stage.end();
  /** In real time a client on a busy machine has longer to throw. */
  const extraThrows = () => {
    const throws = stage.isExact ? [] : sent('throw');
    return throws.length > 1 ? Math.floor((throws.at(-1).at - throws[0].at) / 250) : 0;
  };
  const retryOf = (ms, [least, most, exact] = []) => {
    const isSo = stage.isExact ? ms === exact : ms >= least && ms <= most;
    return isSo ? [least, most, exact] : ms;
  };
  const of = (route, what) => {
    const all = sent(route).map((one) => one[what]);
    return route === 'poll' ? all.slice(0, polls) : all;
  };
  const by = (routes, what) =>
    Object.fromEntries(Object.keys(routes ?? {}).map((route) => [route, of(route, what)]));
  const { seen } = stage;
  return {
    ...seen,
    retries: seen.retries.map((ms, i) => retryOf(ms, sees.retries?.[i])),
    throwRequests: count('throw'),
    throwsMost: Math.max(sees.throwsMost, count('throw') - extraThrows()),
    requests: by(requests, 'target'),
    grants: by(sees.grants, 'grant'),
    pauses: pausesOf(stage, pauses)
  };
}

/**
 * Plays a scenario of feeds.json.
 *
 * @param {Stage & {watch: Function, follow: Function, close: Function}} stage
 * @param {object} scenario
 * @returns {Promise<object>} as its `sees`
 */
export async function playFeeds(stage, { does = [], sees }) {
  const posts = () => stage.requests.filter(({ method }) => method === 'POST');
  const gets = () => stage.requests.filter(({ method }) => method === 'GET');
  for (const { afterAsks = 0, ...step } of does) {
    await stage.until(() => posts().length >= afterAsks);
    for (const what of ['close', 'watch', 'follow']) {
      if (step[what] !== undefined) stage[what](step[what]);
    }
  }
  const first = Math.max(lengthOf(sees.asks), lengthOf(sees.holds));
  await stage.until(
    () =>
      posts().length >= Math.max(first, lengthOf(sees.grants)) &&
      gets().length >= lengthOf(sees.gets) &&
      isTold(stage, sees)
  );
  await stage.end();
  const asked = posts()
    .slice(0, first)
    .map(({ body }) => JSON.parse(body));
  return {
    ...stage.seen,
    asks: asked.map(({ feeds }) => feeds),
    holds: asked.map(({ hold = null }) => hold),
    gets: gets().map(({ target }) => target),
    grants: posts().map(({ grant }) => grant),
    pauses: pausesOf(stage, sees.pauses)
  };
}
