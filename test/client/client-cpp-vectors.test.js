import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';

import {
  buildClient,
  buildForWindows,
  noClient,
  noWindows,
  ROOT,
  tool
} from '../support/cpp-build.js';
import { playScenarios, Probe, WINDOWS_LOOPS } from '../support/cpp-probe.js';
import { Script } from '../support/cpp-servers.js';
import { until } from '../support/until.js';

/**
 * The C++ client against the vectors that every client is held to, in real time: in a loop of its
 * own thread, and in a loop of another kind that waits for its descriptor. The waits and the places to resume are tests/unit.cc's.
 */

const { scenarios } = JSON.parse(readFileSync(new URL('../vectors/client.json', import.meta.url)));

t.setTimeout(600_000);

t.test('the C++ client behaves as every client does', { skip: noClient }, async (t) => {
  const build = await buildClient();
  const program = join(build, 'sprites_probe');
  playScenarios(t, scenarios, (t, args, scenario) => play(t, program, args, scenario));
});

t.test('built for Windows it does so too, by Wine', { skip: noWindows }, async (t) => {
  const build = await buildForWindows(t);
  const vectors = ['sprites', 'client', 'feeds'].map((name) => `test/vectors/${name}.json`);
  const said = await tool(join(build, 'sprites_unit'), vectors, { cwd: ROOT });
  t.match(said, /^\d+ checks, 0 failed\r?\n$/);
  const program = join(build, 'sprites_probe');
  await t.test('in its loop', async (t) => {
    playScenarios(t, scenarios, (t, args, one) => play(t, program, args, one), WINDOWS_LOOPS);
  });
});

/** Plays one scenario. @returns {Promise<object>} as its `sees` */
async function play(t, program, args, { server, resume, does = [], noRoomOnceFor, sees }) {
  const script = await Script.start(t, server);
  const options = [...args];
  if (resume) options.push('--resume', JSON.stringify(resume));
  if (noRoomOnceFor) options.push('--no-room', `"s${noRoomOnceFor}"`);
  const client = new Probe(t, program, script.url, options);
  const sprites = () => client.caught.map(({ id }) => Number(id.slice(1)));
  await client.state('online');
  let tag = 0;
  for (const { throw: edge, sprite, unawaited, look, leave, pass, wake, ...waits } of does) {
    const { waitForSprites = 0, waitForPolls = 0, waitForThrows = 0 } = waits;
    if (pass) await sleep(pass);
    if (wake) client.say('try-now');
    if (edge) {
      const told = client.throw(`t${++tag}`, edge, sprite);
      if (!unawaited) await told;
    }
    if (look) {
      client.say(look);
      await client.until(({ event }) => event === look);
    }
    if (leave) {
      client.say('leave');
      await client.state('left');
    }
    await until(
      () =>
        sprites().length >= waitForSprites &&
        script.of('poll').length >= waitForPolls &&
        script.of('throw').length >= waitForThrows
    );
  }
  const polls = sees.requests?.poll?.length ?? 0;
  await until(
    () =>
      client.states.length >= (sees.states?.length ?? 0) &&
      sprites().length >= (sees.sprites?.length ?? 0) &&
      client.results.length >= (sees.outcomes?.length ?? 0) &&
      script.of('poll').length >= polls
  );
  await sleep(50); // what comes too much has time to come
  const { turns } = await client.counts();
  t.ok(turns < 2000, `it turns when there is something to do: ${turns} times`);
  await client.quit();
  return {
    states: client.states,
    sprites: sprites(),
    outcomes: client.results.map(({ outcome }) => outcome),
    throwRequests: script.of('throw').length,
    throwsMost: Math.max(sees.throwsMost, script.of('throw').length),
    requests: Object.fromEntries(
      Object.keys(sees.requests ?? {}).map((route) => [
        route,
        route === 'poll' ? script.of(route).slice(0, polls) : script.of(route)
      ])
    )
  };
}
