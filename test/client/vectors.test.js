import { readFileSync } from 'node:fs';

import t from 'tap';

import { readResume } from '../../lib/client/answers.js';
import { Client } from '../../lib/client/client.js';
import { Feeds } from '../../lib/client/feeds.js';
import { longestWait } from '../../lib/client/limits.js';
import { applyPatch, freeze, ValueError } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { answer, Clock, HANG, RESET, scripted } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/stuck.js';

failWhenStuck(t);

/** The JavaScript client against the vectors that every client is held to. */

const { scenarios, waits, resumes } = JSON.parse(
  readFileSync(new URL('../vectors/client.json', import.meta.url))
);

/** The server of the program, and another one of its world. */
const [OWN, OTHER] = ['torus.test', 'other.test'];

/** Plays one scenario, on a clock moved by hand. @returns {Promise<object>} as its `sees` */
async function play({ server, resume, does = [], noRoomOnceFor, sees }) {
  const clock = new Clock();
  const script = Object.fromEntries(
    Object.entries(server).map(([route, answers]) => [route, answers.map(toEntry)])
  );
  const fetch = scripted(script);
  const seen = { states: [], sprites: [], outcomes: [] };
  let full = noRoomOnceFor;
  const client = new Client({
    base: `http://${OWN}/`,
    fetch,
    timers: clock,
    random: () => 0.5,
    resume,
    onSprite(sprite, { seq }) {
      if (seq === full) {
        full = null;
        return false;
      }
      seen.sprites.push(seq);
      return undefined;
    },
    onState: (state, { why }) => seen.states.push(why ? `${state}: ${why}` : state)
  });
  client.start();
  await clock.until(() => client.state === 'online');
  for (const { throw: edge, sprite, unawaited, look, leave, pass, wake, ...waits } of does) {
    const { waitForSprites = 0, waitForPolls = 0, waitForThrows = 0 } = waits;
    const under = [];
    if (pass) await clock.pass(pass);
    if (wake) client.wake();
    if (edge) {
      const thrown = client.throw(edge, sprite, { patience: 0 });
      const told = thrown.then(({ state }) => seen.outcomes.push(state));
      if (!unawaited) under.push(told);
    }
    if (look) under.push(client[look]());
    if (leave) under.push(client.leave());
    let over = false;
    Promise.all(under).then(() => (over = true));
    await clock.until(
      () =>
        over &&
        seen.sprites.length >= waitForSprites &&
        fetch.of('poll').length >= waitForPolls &&
        fetch.of('throw').length >= waitForThrows
    );
  }
  const requests = (route) =>
    fetch.of(route).map(({ url }) => {
      const at = url.host === OTHER ? '@' : '';
      return at + url.pathname.split('/').slice(2).join('/') + url.search;
    });
  const polls = sees.requests?.poll?.length ?? 0;
  await clock.until(
    () =>
      seen.states.length >= (sees.states?.length ?? 0) &&
      seen.sprites.length >= (sees.sprites?.length ?? 0) &&
      seen.outcomes.length >= (sees.outcomes?.length ?? 0) &&
      requests('poll').length >= polls
  );
  if (client.state !== 'left') {
    await clock.pass(100);
    client.stop();
    seen.states.pop();
  }
  await clock.settle();
  return {
    ...seen,
    throwRequests: requests('throw').length,
    throwsMost: Math.max(sees.throwsMost, requests('throw').length),
    requests: Object.fromEntries(
      Object.keys(sees.requests ?? {}).map((route) => [
        route,
        route === 'poll' ? requests(route).slice(0, polls) : requests(route)
      ])
    )
  };
}

function toEntry(entry) {
  if (entry === 'reset') return RESET;
  if (entry === 'hang') return HANG;
  const { status, headers, body, location } = entry;
  if (location === undefined) return answer(status, body, headers);
  // The same, at the server of that name; or what is no such thing.
  return ({ url }) => {
    const there = { home: `http://${OWN}`, elsewhere: `http://${OTHER}` }[location];
    const to = there ? `${there}${url.pathname}${url.search}` : location;
    return answer(status, body, { ...headers, location: to });
  };
}

for (const scenario of scenarios) {
  t.test(scenario.name, async (t) => {
    const seen = await play(scenario);
    for (const [what, wanted] of Object.entries(scenario.sees)) t.same(seen[what], wanted, what);
  });
}

t.test('waits grow with failures, and with the number of clients', async (t) => {
  for (const { failures, clients, most } of waits) {
    t.equal(longestWait(failures, clients), most, `${failures} failures, ${clients} clients`);
  }
});

t.test('a place to resume is taken whole, or not at all', async (t) => {
  for (const { resume, taken } of resumes) {
    t.equal(readResume(resume) !== null, taken, JSON.stringify(resume));
  }
});

/** The JavaScript client of feeds against the vectors that every client is held to. */

const {
  scenarios: feedScenarios,
  patches,
  publications
} = JSON.parse(readFileSync(new URL('../vectors/feeds.json', import.meta.url)));

/** What the program gives as its grant. */
function give(left) {
  const grant = left.length > 1 ? left.shift() : left[0];
  if (grant === 'fails') throw new Error('no grant to be had');
  return grant ?? undefined;
}

const bearerIn = (headers) => headers?.authorization?.replace('Bearer ', '') ?? null;

/** Plays one scenario, on a clock moved by hand. @returns {Promise<object>} as its `sees` */
async function playFeeds(scenario) {
  const { watches, follows = [], kept = {}, server, does = [], sees } = scenario;
  const { cached, grants } = scenario;
  const left = [...(grants ?? [])];
  const clock = new Clock();
  const script = Object.entries(Array.isArray(server) ? { feeds: server } : server);
  const fetch = scripted(
    Object.fromEntries(script.map(([route, answers]) => [route, answers.map(toEntry)]))
  );
  const seen = { changes: [], states: [] };
  const feeds = new Feeds({
    base: 'http://feeds.test/',
    cached,
    grant: grants && (() => give(left)),
    fetch,
    timers: clock,
    random: () => 0.5,
    onState: (state, { why }) => seen.states.push(why ? `${state}: ${why}` : state)
  });
  const open = new Map();
  const watch = (key) => {
    const onChange = (value, { problem }) =>
      seen.changes.push(problem === undefined ? { key, value } : { key, problem });
    open.set(key, feeds.watch(key, onChange, { kept: kept[key] }));
  };
  const follow = (key) => {
    const onItems = (items, { problem, gap }) =>
      seen.changes.push(problem ? { key, problem } : { key, items, ...(gap && { gap }) });
    open.set(key, feeds.follow(key, onItems, { after: kept[key]?.cursor }));
  };
  watches.forEach(watch);
  follows.forEach(follow);
  const asks = () =>
    fetch.of('feeds').flatMap(({ body }) => (body === undefined ? [] : [JSON.parse(body)]));
  const gets = () =>
    fetch.calls
      .filter(({ body }) => body === undefined)
      .map(({ url }) => url.pathname.slice(6) + url.search);
  for (const { afterAsks = 0, watch: key, follow: log, close } of does) {
    await clock.until(() => asks().length >= afterAsks);
    if (close !== undefined) open.get(close).close();
    if (key !== undefined) watch(key);
    if (log !== undefined) follow(log);
  }
  const { asks: wanted = [], changes = [], states = [], gets: got = [], grants: sent = [] } = sees;
  await clock.until(
    () =>
      asks().length >= Math.max(wanted.length, sent.length) &&
      gets().length >= got.length &&
      seen.changes.length >= changes.length &&
      seen.states.length >= states.length
  );
  await clock.pass(100);
  feeds.close();
  if (seen.states.pop() !== 'idle') throw new Error('it has not ended');
  const first = asks().slice(0, Math.max(wanted.length, sees.holds?.length ?? 0));
  await clock.settle();
  return {
    ...seen,
    asks: first.map(({ feeds }) => feeds),
    holds: first.map(({ hold = null }) => hold),
    gets: gets(),
    grants: fetch.of('feeds').map(({ headers }) => bearerIn(headers)),
    isOver: clock.pending === 0
  };
}

for (const scenario of feedScenarios) {
  t.test(scenario.name, async (t) => {
    const seen = await playFeeds(scenario);
    for (const [what, wanted] of Object.entries(scenario.sees)) {
      t.strictSame(seen[what], wanted, what);
    }
    t.ok(seen.isOver, 'no timer is left');
  });
}

function errorOf(call) {
  try {
    return { result: call() };
  } catch (error) {
    return error;
  }
}

t.test('patches', async (t) => {
  // Those that a publisher alone may send fit no value.
  const refused = publications.map(({ why, value, patch }) => ({ why, value, patch, problem: '' }));
  for (const { why, value, patch, result, problem } of [...patches, ...refused]) {
    const before = canonical(value);
    freeze(value);
    if (problem === undefined) {
      t.equal(canonical(applyPatch(value, patch)), canonical(result), why);
    } else {
      t.type(
        errorOf(() => applyPatch(value, patch)),
        ValueError,
        why
      );
    }
    t.equal(canonical(value), before, 'the value before stays');
  }
});
