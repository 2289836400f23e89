import { spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import t from 'tap';

import { certificate } from '../support/certificate.js';
import { answersOf, CLIENT, FEEDS, playClient, playFeeds } from '../support/client-vectors.js';
import {
  buildClient,
  buildForWindows,
  noClient,
  noWindows,
  ROOT,
  SANITIZING,
  tool
} from '../support/cpp-build.js';
import { Probe } from '../support/cpp-probe.js';
import { problem, Script, Stub } from '../support/cpp-servers.js';
import { FaultProxy } from '../support/proxies.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * The C++ clients: with the vectors of all clients, in real time, in each of their loops; and beyond the vectors,
 * against the running server, with faults in between, and against scripted servers. They are built by g++. With
 * SPRITES_TEST_SANITIZE set (npm run test:sanitize) they are built by clang++: with AddressSanitizer for the caller's
 * loop, and with ThreadSanitizer for the client's own thread.
 */

/** Tests that need no server. */
async function checkUnit(t, build) {
  const vectors = ['sprites', 'client', 'feeds'].map((name) => `test/vectors/${name}.json`);
  const output = await tool(join(build, 'sprites_unit'), vectors, { cwd: ROOT });
  t.match(output, /^\d+ checks, 0 failed\r?\n$/);
}

const THREAD = { loop: 'a thread of its own', preset: SANITIZING ? 'tsan' : 'gcc', mode: [] };
const DESCRIPTOR = {
  ...{ loop: "the caller's loop", preset: SANITIZING ? 'asan' : 'gcc', mode: ['--fd'] }
};

t.setTimeout(900_000);
t.jobs = 2;

/** Returns a sprite with an id of its own. */
let spriteCount = 0;
const sprite = (members = {}) => ({
  id: `s${++spriteCount}`,
  picture: 'ball',
  at: 0.5,
  speed: [1, 0],
  ...members
});

/** A server's answer to a request for a place. */
const PLACE = { row: 0, column: 0, rows: 1, columns: 1 };
const answerJoins = (stub, id) =>
  stub.always(/^\/join$/, 201, { id, hold: 120, lease: 30, maxSprite: 16384 });
/** Answers requests for a place, so that clients know that they have theirs. */
const answerPlace = (stub) => stub.always(/^\/place\//, 200, PLACE);

const ids = (sprites) => sprites.map(({ id }) => id);

/** The folder of the authorities that the system's libcurl trusts. */
const AUTHORITIES = '/etc/ssl/certs';

/** Why a test can't replace that folder; false: it can. */
const noMounts =
  (!existsSync(AUTHORITIES) || spawnSync('unshare', ['-rm', 'true']).status !== 0) &&
  'no folder can be mounted here';

const isTaken = ({ outcome }) => ['delivered', 'queued', 'duplicate'].includes(outcome);

for (const run of [THREAD, DESCRIPTOR]) {
  t.test(run.loop, { skip: noClient }, async (t) => {
    const build = await buildClient(run.preset);
    t.test('as every client', async (t) => {
      playAll(t, CLIENT, playClient, (...args) => ClientStage.start(build, run.mode, ...args));
      playAll(t, FEEDS, playFeeds, (...args) => FeedsStage.start(build, run.mode, ...args));
    });
    if (run === THREAD || SANITIZING) testBeyondVectors(t, build, run.mode);
  });
}

t.test('built for Windows, by Wine', { skip: noWindows }, async (t) => {
  const build = await buildForWindows(t);
  await checkUnit(t, build);
  playAll(t, CLIENT, playClient, (...args) => ClientStage.start(build, [], ...args));
});

/** Plays all scenarios; those that chance can spoil have several tries (`plays`). */
function playAll(t, { scenarios }, play, stageFor) {
  t.jobs = 16; // the scenarios mostly wait
  for (const scenario of scenarios.filter(({ slow }) => !slow)) {
    t.test(scenario.name, async (t) => {
      const expected = Object.entries(scenario.sees);
      let seen;
      for (let triesLeft = scenario.plays ?? 1; triesLeft > 0; triesLeft--) {
        seen = await play(await stageFor(t, scenario), scenario);
        if (expected.every(([what, value]) => isDeepStrictEqual(seen[what], value))) break;
      }
      for (const [what, value] of expected) t.strictSame(seen[what], value, what);
      t.notOk(seen.turns > 2000, `it turns when there is something to do: ${seen.turns} times`);
    });
  }
}

/** A probe on a scripted server. */
class ProbeStage {
  isExact = false;
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
    await sleep(50); // time for unexpected requests to arrive
    await this.probe.quit();
  }
}

class ClientStage extends ProbeStage {
  static program = 'sprites_probe';
  #turns = 0;
  #thrown = 0;

  static optionsOf({ resume, noRoomOnceFor, leavesInside }) {
    return [
      ...['--parallel', '32'], // the other clients have no such limit
      ...(resume ? ['--resume', JSON.stringify(resume)] : []),
      ...(noRoomOnceFor ? ['--no-room', `"s${noRoomOnceFor}"`] : []),
      ...(leavesInside ? ['--leave-inside'] : [])
    ];
  }

  get seen() {
    const { states, caught, results, events } = this.probe;
    const eventsOf = (name) => events.filter(({ event }) => event === name);
    return {
      states,
      sprites: caught.map(({ id }) => Number(id.slice(1))),
      outcomes: results.map(({ outcome }) => outcome),
      problems: results.map(({ problem }) => problem.split(':')[2] ?? null),
      retries: results.map(({ retry }) => retry),
      places: eventsOf('place').map(({ place }) => place),
      statuses: eventsOf('status').map(({ status }) => status),
      resumes: eventsOf('resume').map(({ resume }) => resume && [resume.ack, resume.n]),
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
    const watchArgs = [...watches, ...follows].flatMap((key) => {
      const { cursor = '', value } = kept[key] ?? {};
      const heldArgs = ['--held', cursor, value === undefined ? '' : JSON.stringify(value)];
      return [...(kept[key] ? heldArgs : []), watches.includes(key) ? '--watch' : '--follow', key];
    });
    return [...(cached ? ['--cached'] : []), ...watchArgs];
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

/** Tests that the vectors can't express. */
function testBeyondVectors(t, build, mode) {
  const probe = (t, server, ...args) =>
    new Probe(t, join(build, 'sprites_probe'), server, [...mode, ...args]);

  t.test('what needs no server', (t) => checkUnit(t, build));

  t.test('two clients throw to each other, byte for byte, each sprite once', async (t) => {
    const server = await startServer(t, { options: { 'throw-rate': 0 } });
    const [one, two] = [probe(t, server.url), probe(t, server.url)];
    await one.state('online');
    await two.state('online');
    const unusual = sprite({ name: 'é " \\ 🚀', unknown: { a: [1, null] } });
    t.match(await one.throw('a', 'left', unusual), { outcome: /delivered|queued/, yours: false });
    t.strictSame(await two.sprite(), { event: 'sprite', edge: 'right', sprite: unusual });
    await two.throw('b', 'left', sprite());
    t.equal((await one.sprite()).edge, 'right');
    for (let i = 0; i < 60; i++) one.say('throw', `n${i}`, 'left', JSON.stringify(sprite({ i })));
    await server.until(({ acked }) => acked === 62);
    t.equal(new Set(ids(two.caught)).size, 61);
    t.equal(two.caught.length, 61);
    await one.until(() => one.results.length === 61, { all: true });
    t.ok(one.results.every(isTaken));
    t.equal((await two.counts()).repeats, 0, 'each poll acked what had come');
    await one.leave();
    await two.leave();
    t.match(await server.status(), { clients: 0, thrown: 62, acked: 62, flown: 0, left: 2 });
  });

  t.test(
    'connections are cut, the server comes back with its state, and each sprite is caught once',
    async (t) => {
      const state = join(t.testdir(), 'state');
      const options = { 'throw-rate': 0, lease: 60, state, drain: 1 };
      const first = await startServer(t, { options });
      const proxy = await FaultProxy.start(t, first.port);
      const one = probe(t, proxy.url, '--backoff', 300);
      await one.state('online');
      const two = probe(t, proxy.url, '--backoff', 300);
      await two.state('online');
      two.say('slow', 30); // so that sprites always wait in its mailbox
      const names = Array.from({ length: 120 }, (_, i) => `c${i}`);
      let back;
      for (const [i, name] of names.entries()) {
        if (i === names.length / 2) {
          await first.stop();
          back = startServer(t, { options }).then(({ port }) => {
            proxy.target = port;
          });
        }
        if (i % 20 === 10) proxy.swallow(/^POST \/throw/);
        if (i % 20 === 15) proxy.cut();
        // A sprite that did not leave is thrown again, as a desktop does.
        for (let result; !result || result.yours;) {
          one.say('throw', name, 'left', JSON.stringify({ id: name }));
          result = await one.until(({ event, tag }) => event === 'result' && tag === name);
          t.notMatch(result.outcome, /unanswered|forgotten/);
          if (result.yours) await sleep(Math.min(result.retry, 200));
        }
      }
      await back;
      await two.until(() => two.caught.length >= names.length, { all: true });
      t.strictSame(ids(two.caught), names, 'each once, in order');
      for (const client of [one, two]) t.equal((await client.counts()).joins, 1);
      await one.leave();
      await two.leave();
    }
  );

  t.test('a throw that curl by itself sends again may have been taken before', async (t) => {
    const { stub, one } = await onStub(t);
    answerPlace(stub);
    one.say('throw', 'a', 'left', '{"id":"x"}');
    (await stub.next(/^\/throw/)).answer(202, { state: 'queued' });
    await one.until(({ tag }) => tag === 'a');
    one.say('throw', 'b', 'left', '{"id":"y"}');
    (await stub.next(/^\/throw/)).cut(); // on a kept-alive connection
    (await stub.next(/^\/throw/)).answer(429, problem('too-many-throws'), { 'retry-after': 1 });
    stub.always(/^\/throw/, 202, { state: 'duplicate' });
    t.match(await one.until(({ tag }) => tag === 'b'), { outcome: 'duplicate' });
    await one.quit();
  });

  t.test('a throw without an answer ends after its patience', async (t) => {
    const [stub, other] = [await Stub.start(t), await Stub.start(t)];
    // On a busy machine a join with a late answer is repeated; so is a request that could not be sent in time.
    answerJoins(stub, 'first');
    answerJoins(other, 'second');
    answerPlace(stub);
    const one = probe(t, stub.url, '--answer-timeout', 2500, '--patience', 6000);
    await one.state('online');
    const result = await one.throw('a', 'left', sprite());
    t.match(result, { outcome: 'unanswered', detail: /no answer/ });
    const tries = stub.requests.filter(({ path }) => path.startsWith('/throw/'));
    t.equal(new Set(tries.map(({ query }) => query.get('n'))).size, 1, 'always the same number');
    const { resent } = await one.counts();
    t.ok(resent <= 2 && tries.length <= resent + 1, `${tries.length} came, resent ${resent}`);
    await one.quit();
    const impatient = probe(t, other.url, '--answer-timeout', 3000, '--attempts', 1);
    await impatient.state('online');
    t.match(await impatient.throw('a', 'left', sprite()), { outcome: 'unanswered', yours: false });
    t.equal((await impatient.counts()).unknown, 1);
    t.equal(other.requests.filter(({ path }) => path.startsWith('/throw/second')).length, 1);
    await impatient.quit();
  });

  t.test('a large throw has the time that its bytes take', async (t) => {
    const stub = await Stub.start(t);
    stub.always(/^\/join$/, 201, { id: 'one', hold: 120, lease: 30, maxSprite: 1e6 });
    answerPlace(stub);
    const one = probe(t, stub.url, '--answer-timeout', 1000);
    await one.state('online');
    one.say('throw', 'a', 'left', JSON.stringify(sprite({ photo: 'x'.repeat(800_000) })));
    const large = await stub.next(/^\/throw/);
    one.say('status');
    t.match(await one.until(({ event }) => event === 'status'), { clients: null });
    large.answer(202, { state: 'queued' });
    await one.until(({ outcome }) => outcome === 'queued');
    await one.quit();
  });

  t.test('throws under way are bounded', async (t) => {
    const { stub, one } = await onStub(t, '--pending', 3, '--parallel', 2);
    one.say('flood', 'f', 5, 'left', '{}');
    await one.until(({ tag }) => tag === 'f4');
    const refused = one.results.map(({ tag, taken }) => `${tag} ${taken}`);
    t.strictSame(refused, ['f3 false', 'f4 false']);
    const onWire = [await stub.next(/^\/throw/), await stub.next(/^\/throw/)];
    t.equal(stub.requests.filter(({ path }) => path.startsWith('/throw')).length, 2);
    for (const request of onWire) request.answer(202, { state: 'queued' });
    (await stub.next(/^\/throw/)).answer(202, { state: 'delivered' });
    await one.until(({ outcome }) => outcome === 'delivered');
    t.equal(one.results.filter(isTaken).length, 3);
    await one.quit();
  });

  t.test('an answer that is too long costs some time, and nothing else', async (t) => {
    const { stub, one } = await onStub(t, '--answer-bytes', 2000, '--backoff', 100);
    answerPlace(stub);
    const arrival = (sprite) => ({ seq: 1, sprites: [{ seq: 1, from: 'up', sprite }] });
    (await stub.next(/^\/poll/)).answer(200, arrival({ name: 'x'.repeat(2000) }));
    (await stub.next(/^\/poll/)).answer(200, arrival({ name: 'short' }));
    t.equal((await one.sprite()).sprite.name, 'short');
    t.equal((await one.counts()).failures, 1);
    await one.quit();
  });

  t.test(
    'it goes by a proxy, sends more headers, asks for a hold, and logs without an id',
    async (t) => {
      const proxy = await Stub.start(t);
      const one = probe(
        t,
        'http://sprites.invalid:8080',
        ...['--proxy', proxy.url, '--header', 'Authorization: Bearer x', '--log', '--hold', 60]
      );
      const { headers } = await proxy.join('5f0c2c1e-secret');
      t.match(headers, { host: 'sprites.invalid:8080', authorization: 'Bearer x' });
      await one.state('online');
      t.equal((await proxy.next(/^\/poll/)).query.get('hold'), '60');
      one.say('throw', 'a', 'left', '{}');
      const thrown = await proxy.next(/^\/throw/);
      t.match(thrown.headers, { authorization: 'Bearer x', 'content-type': 'application/json' });
      thrown.answer(202, { state: 'queued' });
      await one.until(({ tag }) => tag === 'a');
      const { line } = await one.until(({ line }) => /throw/.test(line ?? ''), { all: true });
      t.equal(line, 'POST /throw/5f0c.../left?n=1: 202');
      const lines = one.events.filter(({ event }) => event === 'log').map((each) => each.line);
      t.ok(lines.includes('POST /join: 201') && lines.includes('online'), lines.join('; '));
      t.notOk(lines.some((each) => each.includes('secret')));
      await one.quit();
    }
  );

  t.test('by TLS with an authority of its own, and never without from then on', async (t) => {
    const { 'tls-cert': ca, 'tls-key': key } = certificate(t.testdir(), 'a', ['IP:127.0.0.1']);
    const stub = await Stub.start(t, { cert: readFileSync(ca), key: readFileSync(key) });
    const plain = await Stub.start(t);
    const one = probe(t, stub.url.replace('https', 'HTTPS'), '--ca', ca);
    await stub.join('first');
    await one.state('online');
    const { path, query, answer } = await stub.next(/^\/poll/);
    t.strictSame(one.inherited, [], 'its connections are its own');
    answer(421, problem('misdirected'), { location: `${plain.url}${path}?${query}` });
    await Promise.race([stub.next(/^\/place/), plain.next(/./)]);
    t.strictSame(plain.requests, []);
    await one.quit();
    const stranger = probe(t, stub.url);
    t.equal((await stranger.state('offline')).why, 'network');
    await stranger.quit();
  });

  t.test("authorities of its own take the place of the system's", { skip: noMounts }, async (t) => {
    const dir = t.testdir({ system: {} });
    const { 'tls-cert': known, 'tls-key': key } = certificate(dir, 'known', ['IP:127.0.0.1']);
    const { 'tls-cert': ca } = certificate(dir, 'other');
    const [hash] = (await tool('openssl', ['x509', '-hash', '-noout', '-in', known])).split('\n');
    for (const name of [`${hash}.0`, 'ca-certificates.crt'])
      copyFileSync(known, join(dir, 'system', name));
    const mount = `mount --bind ${join(dir, 'system')} ${AUTHORITIES} && exec`;
    const script = `#!/bin/sh\nexec unshare -rm sh -c '${mount} "$0" "$@"' ${build}/sprites_probe "$@"`;
    const program = join(dir, 'probe');
    writeFileSync(program, script, { mode: 0o755 });
    const stub = await Stub.start(t, { cert: readFileSync(known), key: readFileSync(key) });
    answerJoins(stub, 'first');
    for (const [args, state] of [
      [[], 'online'],
      [['--ca', ca], 'offline']
    ]) {
      const one = new Probe(t, program, stub.url, args);
      t.ok(await one.state(state), args.join(' '));
      await one.quit();
    }
  });

  t.test('everything at once: cuts, a killed server, slow answers, floods, bouncing', async (t) => {
    const options = { 'throw-rate': 0, lease: 5 };
    let server = await startServer(t, { options });
    const proxy = await FaultProxy.start(t, server.port);
    const clients = [1, 2, 3].map(() => probe(t, proxy.url, '--backoff', 200));
    for (const client of clients) await client.state('online');
    clients[0].say('bounce', 'up');
    clients[1].say('bounce', 'left');
    for (let round = 0; round < 12; round++) {
      clients[round % 3].say('flood', `f${round}-`, 10, ['left', 'up'][round % 2], '{"id":"f"}');
      proxy.delay = (round % 3) * 30;
      await sleep(50);
      if (round % 2 === 1) proxy.cut();
      if (round % 4 === 3) {
        await server.kill();
        server = await startServer(t, { options });
        proxy.target = server.port;
      }
    }
    for (const client of clients) {
      const { joins } = await client.counts();
      t.ok(joins >= 1);
    }
    clients[0].say('throw', 'last', 'left', '{}');
    await clients[1].quit(); // during the throw
    await clients[0].leave();
    await clients[2].leave();
  });

  /** Starts a client on a stub, and waits for its join. */
  async function onStub(t, ...args) {
    const stub = await Stub.start(t);
    const one = probe(t, stub.url, ...args);
    await stub.join('first');
    await one.state('online');
    return { stub, one };
  }
}
