import t from 'tap';

import { readResume } from '../../lib/client/answers.js';
import { Client } from '../../lib/client/client.js';
import { Feeds } from '../../lib/client/feeds.js';
import { longestWait } from '../../lib/client/limits.js';
import { applyPatch, freeze, ValueError } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import {
  answersOf,
  CLIENT,
  FEEDS,
  Held,
  playClient,
  playFeeds
} from '../support/client-vectors.js';
import { answer, HANG, RESET, scripted } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/until.js';
import { VirtualTime } from '../support/virtual-time.js';

failWhenStuck(t);

/** The JavaScript clients with the vectors of all clients, on a clock that is moved by hand. */

/** The program's server, and another server of its world. */
const [OWN, OTHER] = ['torus.test', 'other.test'];

const stateOf = (state, { why }) => (why ? `${state}: ${why}` : state);

/** Returns a stage, with a clock moved by hand and a scripted server, and the options of its client. */
function onClock(scenario) {
  const clock = new VirtualTime();
  const toEntry = (entry) => {
    if (entry === 'reset') return RESET;
    if (entry === 'hang') return HANG;
    return async ({ url }) => {
      await held.until(entry.after);
      if (entry.late) await new Promise((go) => clock.setTimeout(go, entry.late));
      if (entry.reset) return RESET;
      const { status, body, headers, location, half } = entry;
      if (location === undefined) return { ...answer(status, body, headers), half };
      // A redirect to the same URL at the named server, or to `location` as it is.
      const there = { home: `http://${OWN}`, elsewhere: `http://${OTHER}` }[location];
      const to = there ? `${there}${url.pathname}${url.search}` : location;
      return answer(status, body, { ...headers, location: to });
    };
  };
  const answers = Object.entries(answersOf(scenario));
  const fetch = scripted(
    Object.fromEntries(answers.map(([route, list]) => [route, list.map(toEntry)])),
    clock
  );
  const held = new Held((route) => fetch.of(route).length);
  const grants = [...(scenario.grants ?? [])];
  return {
    clock,
    stage: {
      isExact: true,
      until: (isSo) => clock.until(isSo),
      get requests() {
        return fetch.calls.map(({ what, url, method = 'GET', headers, ...more }) => ({
          ...{ ...more, route: what, method },
          target:
            (url.host === OTHER ? '@' : '') + url.pathname.slice(what.length + 2) + url.search,
          grant: headers?.authorization?.replace('Bearer ', '') ?? null
        }));
      }
    },
    options: {
      ...{ base: `http://${OWN}/`, timers: clock, random: () => 0.5 },
      async fetch(...request) {
        const answered = fetch(...request);
        held.look();
        return answered;
      },
      grant: scenario.grants && (() => nextGrant(grants))
    }
  };
}

/** Returns the program's next grant. */
function nextGrant(grants) {
  const grant = grants.length > 1 ? grants.shift() : grants[0];
  if (grant === 'fails') throw new Error('no grant to be had');
  return grant ?? undefined;
}

function clientStage(scenario) {
  const { clock, stage, options } = onClock(scenario);
  const seen = {
    ...{ states: [], sprites: [], outcomes: [], problems: [], retries: [] },
    ...{ places: [], statuses: [], resumes: [] }
  };
  let full = scenario.noRoomOnceFor;
  const client = new Client({
    ...options,
    resume: scenario.resume,
    onSprite(sprite, { seq }) {
      if (seq === full) {
        full = null;
        return false;
      }
      seen.sprites.push(seq);
      if (scenario.leavesInside) client.leave();
      return undefined;
    },
    onState: (state, about) => seen.states.push(stateOf(state, about)),
    onResume: (resume) => seen.resumes.push(resume && [resume.ack, resume.n])
  });
  client.start();
  return Object.assign(stage, {
    seen,
    pass: (ms) => clock.run(ms),
    wake: () => client.wake(),
    leave: () => client.leave(),
    async throw(edge, sprite) {
      const { state, problem, retryAfter } = await client.throw(edge, sprite, { patience: 0 });
      seen.outcomes.push(state);
      seen.problems.push(problem ?? null);
      seen.retries.push(retryAfter ?? 0);
    },
    async look(what) {
      const answer = await client[what]();
      const { row, column, rows, columns } = answer ?? {};
      if (what === 'status') seen.statuses.push(answer);
      else seen.places.push(answer && [row, column, rows, columns]);
    },
    async end() {
      if (client.state !== 'left') {
        await clock.run(100);
        client.stop();
        seen.states.pop();
      }
      await clock.settle();
      seen.timers = clock.pending;
    }
  });
}

function feedsStage(scenario) {
  const { clock, stage, options } = onClock(scenario);
  const seen = { changes: [], states: [] };
  const { cached, kept = {}, watches, follows = [] } = scenario;
  const onState = (state, about) => seen.states.push(stateOf(state, about));
  const feeds = new Feeds({ ...options, cached, onState });
  const open = new Map();
  Object.assign(stage, {
    seen,
    watch(key) {
      const onChange = (value, { problem }) =>
        seen.changes.push(problem === undefined ? { key, value } : { key, problem });
      open.set(key, feeds.watch(key, onChange, { kept: kept[key] }));
    },
    follow(key) {
      const onItems = (items, { problem, gap }) =>
        seen.changes.push(problem ? { key, problem } : { key, items, ...(gap && { gap }) });
      open.set(key, feeds.follow(key, onItems, { after: kept[key]?.cursor }));
    },
    close: (key) => open.get(key).close(),
    async end() {
      await clock.run(100);
      feeds.close();
      if (seen.states.pop() !== 'idle') throw new Error('it has not ended');
      await clock.settle();
      seen.timers = clock.pending;
    }
  });
  for (const key of watches) stage.watch(key);
  for (const key of follows) stage.follow(key);
  return stage;
}

for (const [{ scenarios }, stageFor, play] of [
  [CLIENT, clientStage, playClient],
  [FEEDS, feedsStage, playFeeds]
]) {
  for (const scenario of scenarios) {
    t.test(scenario.name, async (t) => {
      const seen = await play(stageFor(scenario), scenario);
      for (const [what, wanted] of Object.entries(scenario.sees)) {
        t.strictSame(seen[what], wanted, what);
      }
      t.equal(seen.timers, 0, 'no timer is left');
    });
  }
}

t.test('waits grow with failures, and with the number of clients', async (t) => {
  for (const { failures, clients, most } of CLIENT.waits) {
    t.equal(longestWait(failures, clients), most, `${failures} failures, ${clients} clients`);
  }
});

t.test('a place to resume is taken whole, or not at all', async (t) => {
  for (const { resume, taken } of CLIENT.resumes) {
    t.equal(readResume(resume) !== null, taken, JSON.stringify(resume));
  }
});

function errorOf(call) {
  try {
    return { result: call() };
  } catch (error) {
    return error;
  }
}

t.test('patches', async (t) => {
  // Clients must refuse the patches that only a publisher may send.
  const refused = FEEDS.publications.map((one) => ({ ...one, result: undefined }));
  for (const { why, value, patch, result } of [...FEEDS.patches, ...refused]) {
    const before = canonical(value);
    freeze(value);
    const after = errorOf(() => applyPatch(value, patch));
    if (result === undefined) t.type(after, ValueError, why);
    else t.equal(canonical(after.result), canonical(result), why);
    t.equal(canonical(value), before, 'the value before stays');
  }
});
