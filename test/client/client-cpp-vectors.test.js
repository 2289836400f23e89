import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';

import { answersOf, CLIENT, FEEDS, playClient, playFeeds } from '../support/client-vectors.js';
import {
  buildClient,
  buildForWindows,
  noClient,
  noWindows,
  ROOT,
  tool
} from '../support/cpp-build.js';
import { Probe } from '../support/cpp-probe.js';
import { Script } from '../support/cpp-servers.js';
import { until } from '../support/until.js';

/**
 * The C++ clients against the vectors that every client is held to, in real time. The waits, the places to resume and the
 * patches are tests/unit.cc's.
 */

/** The loops that a C++ client can run in, as options of the probes: the one of its own is there on Windows, too. */
const LOOPS = { 'a thread': [], 'a descriptor': ['--fd'] };

t.setTimeout(600_000);

t.test('the C++ client behaves as every client does', { skip: noClient }, async (t) => {
  const build = await buildClient();
  for (const [loop, args] of Object.entries(LOOPS)) {
    playAll(t, loop, CLIENT, playClient, (...on) => ClientStage.start(build, args, ...on));
    playAll(t, loop, FEEDS, playFeeds, (...on) => FeedsStage.start(build, args, ...on));
  }
});

t.test('built for Windows it does so too, by Wine', { skip: noWindows }, async (t) => {
  const build = await buildForWindows(t);
  const vectors = ['sprites', 'client', 'feeds'].map((name) => `test/vectors/${name}.json`);
  const said = await tool(join(build, 'sprites_unit'), vectors, { cwd: ROOT });
  t.match(said, /^\d+ checks, 0 failed\r?\n$/);
  playAll(t, 'a thread', CLIENT, playClient, (...on) => ClientStage.start(build, [], ...on));
});

/** Plays all scenarios; those again that chance can spoil (`plays`). */
function playAll(t, loop, { scenarios }, play, stageFor) {
  t.jobs = 16; // most of the time they wait
  for (const scenario of scenarios) {
    t.test(`${loop}: ${scenario.name}`, async (t) => {
      const wanted = Object.entries(scenario.sees);
      let seen;
      for (let left = scenario.plays ?? 1; left > 0; left--) {
        seen = await play(await stageFor(t, scenario), scenario);
        if (wanted.every(([what, value]) => isDeepStrictEqual(seen[what], value))) break;
      }
      for (const [what, value] of wanted) t.strictSame(seen[what], value, what);
      t.notOk(seen.turns > 2000, `it turns when there is something to do: ${seen.turns} times`);
    });
  }
}

/** A probe on a scripted server. */
class ProbeStage {
  blur = 1; // whole milliseconds of two clocks
  #script;

  static async start(build, args, t, scenario) {
    const stage = new this();
    stage.#script = await Script.start(t, answersOf(scenario));
    const grants = (scenario.grants ?? []).flatMap((grant) => ['--grant', grant ?? '']);
    const options = [...args, ...grants, ...this.optionsOf(scenario)];
    stage.probe = new Probe(t, join(build, this.program), stage.#script.url, options);
    return stage;
  }

  get requests() {
    return this.#script.requests;
  }

  until(isSo) {
    return until(isSo, () => JSON.stringify([this.requests, this.probe.events]));
  }

  async end() {
    await sleep(50); // what comes too much has time to come
    await this.probe.quit();
  }
}

class ClientStage extends ProbeStage {
  static program = 'sprites_probe';
  #turns = 0;
  #thrown = 0;

  static optionsOf({ resume, noRoomOnceFor, leavesInside }) {
    return [
      ...(resume ? ['--resume', JSON.stringify(resume)] : []),
      ...(noRoomOnceFor ? ['--no-room', `"s${noRoomOnceFor}"`] : []),
      ...(leavesInside ? ['--leave-inside'] : [])
    ];
  }

  get seen() {
    const { states, caught, results, events } = this.probe;
    const told = (name) => events.filter(({ event }) => event === name);
    return {
      states,
      sprites: caught.map(({ id }) => Number(id.slice(1))),
      outcomes: results.map(({ outcome }) => outcome),
      problems: results.map(({ problem }) => problem.split(':')[2] ?? null),
      retries: results.map(({ retry }) => retry),
      places: told('place').map(({ place }) => place),
      statuses: told('status').map(({ status }) => status),
      resumes: told('resume').map(({ resume }) => resume && [resume.ack, resume.n]),
      turns: this.#turns
    };
  }

  pass = sleep;

  wake() {
    this.probe.say('try-now');
  }

  throw(edge, sprite) {
    this.#thrown += 1;
    return this.probe.throw(`t${this.#thrown}`, edge, sprite);
  }

  look(what) {
    this.probe.say(what);
    return this.probe.until(({ event }) => event === what);
  }

  leave() {
    this.probe.say('leave');
    return this.probe.state('left');
  }

  async end() {
    ({ turns: this.#turns } = await this.probe.counts());
    await super.end();
  }
}

class FeedsStage extends ProbeStage {
  static program = 'sprites_feeds_probe';

  static optionsOf({ watches, follows = [], kept = {}, cached }) {
    const begins = [...watches, ...follows].flatMap((key) => {
      const { cursor = '', value } = kept[key] ?? {};
      const held = ['--held', cursor, value === undefined ? '' : JSON.stringify(value)];
      return [...(kept[key] ? held : []), watches.includes(key) ? '--watch' : '--follow', key];
    });
    return [...(cached ? ['--cached'] : []), ...begins];
  }

  get seen() {
    const { states, events } = this.probe;
    const changes = events
      .filter(({ event }) => event === 'change')
      .map(({ key, text, items, gap, problem }) => {
        if (problem) return { key, problem };
        return items ? { key, items, ...(gap && { gap }) } : { key, value: JSON.parse(text) };
      });
    return { states, changes };
  }

  watch(key) {
    this.probe.say('watch', key);
  }

  follow(key) {
    this.probe.say('follow', key);
  }

  close(key) {
    this.probe.say('close', key);
  }
}
