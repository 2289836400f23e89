import { readFileSync } from 'node:fs';
import t from 'tap';

import { Feeds } from '../../lib/client/feeds.js';
import { ValueError, applyPatch, freeze } from '../../lib/client/patch.js';
import { canonical } from '../../lib/feeds/canonical.js';
import { Clock, HANG, RESET, answer, scripted } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/stuck.js';

failWhenStuck(t);

/** The JavaScript client of feeds against the vectors that every client is held to. */

const { scenarios, patches, publications } = JSON.parse(
  readFileSync(new URL('../vectors/feeds.json', import.meta.url))
);

/** Plays one scenario, on a clock moved by hand. @returns {Promise<object>} as its `sees` */
async function play({ watches, kept = {}, server, does = [], sees }) {
  const clock = new Clock();
  const fetch = scripted({
    feeds: server.map((entry) => {
      if (entry === 'reset') return RESET;
      if (entry === 'hang') return HANG;
      return answer(entry.status, entry.body, entry.headers);
    })
  });
  const seen = { changes: [], states: [] };
  const feeds = new Feeds({
    base: 'http://feeds.test/',
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
  watches.forEach(watch);
  const asks = () => fetch.of('feeds').map(({ body }) => JSON.parse(body));
  for (const { afterAsks = 0, watch: key, close } of does) {
    await clock.until(() => asks().length >= afterAsks);
    if (close !== undefined) open.get(close).close();
    if (key !== undefined) watch(key);
  }
  const { asks: wanted = [], changes = [], states = [] } = sees;
  await clock.until(
    () =>
      asks().length >= wanted.length &&
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
    isOver: clock.pending === 0
  };
}

for (const scenario of scenarios) {
  t.test(scenario.name, async (t) => {
    const seen = await play(scenario);
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
