import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';

import { certificate } from '../support/certificate.js';
import { buildClient, noClient, ROOT, SANITIZING, tool } from '../support/cpp-build.js';
import { Probe } from '../support/cpp-probe.js';
import { FaultProxy } from '../support/proxies.js';
import { problem, Stub } from '../support/cpp-servers.js';
import { put, tokenFile } from '../support/feeds.js';
import { inSeconds, keyFile, reads } from '../support/grants.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * The C++ client in what the vectors can't say (client-cpp-vectors.test.js plays those): against the running server, with
 * faults in between, and against servers that say what a test tells them to. As g++ builds it, with a thread of the
 * client's own; with SPRITES_TEST_SANITIZE set (npm run test:sanitize) by clang++ instead: with AddressSanitizer in the
 * caller's loop, and with ThreadSanitizer with a thread of the client's own.
 */

const VECTORS = ['sprites', 'client', 'feeds'].map((name) =>
  join(ROOT, `test/vectors/${name}.json`)
);

t.setTimeout(900_000);
t.jobs = 2;

/** A sprite that can be told from all others. */
let made = 0;
const sprite = (more = {}) => ({
  id: `s${++made}`,
  picture: 'ball',
  at: 0.5,
  speed: [1, 0],
  ...more
});

/** What a server answers that is asked for a place. */
const PLACE = { row: 0, column: 0, rows: 1, columns: 1 };
const joins = (stub, id) =>
  stub.always(/^\/join$/, 201, { id, hold: 120, lease: 30, maxSprite: 16384 });
/** Proves to clients that they have their place. */
const prove = (stub) => stub.always(/^\/place\//, 200, PLACE);

const ids = (sprites) => sprites.map(({ id }) => id);
const isTaken = ({ outcome }) => ['delivered', 'queued', 'duplicate'].includes(outcome);

const BUILDS = SANITIZING
  ? {
      "AddressSanitizer, the caller's loop": { preset: 'asan', mode: ['--fd'] },
      'ThreadSanitizer, a thread of its own': { preset: 'tsan', mode: [] }
    }
  : { 'a thread of its own': { preset: 'gcc', mode: [] } };

for (const [name, how] of Object.entries(BUILDS)) {
  t.test(name, { skip: noClient }, (t) => everything(t, how));
}

async function everything(t, { preset, mode }) {
  const build = await buildClient(preset);
  const probe = (t, server, ...args) =>
    new Probe(t, join(build, 'sprites_probe'), server, [...mode, ...args]);

  t.test('what needs no server', async (t) => {
    const said = await tool(join(build, 'sprites_unit'), VECTORS);
    t.match(said, /^[0-9]+ checks, 0 failed/);
  });

  t.test('two clients throw to each other, byte for byte, each sprite once', async (t) => {
    const { server, one } = await onServer(t, { 'throw-rate': 0 });
    const two = probe(t, server.url);
    await two.state('online');
    const odd = sprite({ name: 'é " \\ 🚀', unknown: { a: [1, null] } });
    t.match(await one.throw('a', 'left', odd), { outcome: /delivered|queued/, yours: false });
    t.strictSame(await two.sprite(), { event: 'sprite', edge: 'right', sprite: odd });
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

  t.test('many throws at once to a place that is elsewhere: one move', async (t) => {
    const [stub, other] = [await Stub.start(t), await Stub.start(t)];
    const one = probe(t, stub.url, '--parallel', 9);
    await stub.join('here');
    await one.state('online');
    one.say('flood', 'f', 9, 'left', JSON.stringify(sprite()));
    const all = [];
    for (let i = 0; i < 9; i++) all.push(await stub.next(/^\/throw\/here\//));
    for (const { path, query, answer } of all) {
      answer(421, problem('misdirected'), { location: `${other.url}${path}?${query}` });
    }
    other.always(/^\/throw\/here\//, 202, { state: 'queued' });
    await one.until(() => one.results.length === 9, { all: true });
    t.ok(one.results.every(({ outcome }) => outcome === 'queued'));
    await one.quit();
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
      two.say('slow', 30); // so that some wait in its mailbox all the time
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
        // What does not leave is thrown again, as a desktop would.
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

  t.test('superseded with a throw on the wire that gets no answer: unknown', async (t) => {
    const { stub, one } = await onStub(t, '--attempts', 2);
    const poll = await stub.next(/^\/poll/);
    one.say('throw', 'a', 'left', '{"id":"x"}');
    const thrown = await stub.next(/^\/throw/);
    poll.answer(200, { seq: 0, sprites: [], superseded: true });
    await stub.join('second');
    stub.always(/^\/throw/, 502, 'oh'); // the number may be the other program's by now
    thrown.answer(502, 'oh');
    t.equal((await one.until(({ tag }) => tag === 'a')).outcome, 'forgotten');
    t.equal(stub.requests.filter(({ path }) => path.startsWith('/throw')).length, 1);
    await one.quit();
  });

  t.test('half an answer is none, whatever it says', async (t) => {
    const { stub, one } = await onStub(t);
    const half = { 'content-length': 999, connection: 'close' };
    one.say('place');
    (await stub.next(/^\/place/)).answer(404, problem('unknown-client'), half);
    t.equal((await one.until(({ event }) => event === 'place')).place, null);
    prove(stub);
    stub.join('second'); // is not asked for
    one.say('throw', 'a', 'left', '{"id":"x"}');
    const first = await stub.next(/^\/throw/);
    t.equal(first.path, '/throw/first/left');
    first.answer(404, problem('unknown-client'), half);
    const again = await stub.next(/^\/throw\//);
    t.equal(again.path, first.path, 'the place is kept');
    t.equal(again.query.get('n'), first.query.get('n'));
    again.answer(202, { state: 'queued' });
    await one.until(({ outcome }) => outcome === 'queued');
    one.say('throw', 'b', 'left', '{"id":"y"}');
    (await stub.next(/^\/throw/)).cut(); // of a kept connection: curl by itself sends it again
    (await stub.next(/^\/throw/)).answer(429, problem('too-many-throws'), { 'retry-after': 1 });
    stub.always(/^\/throw/, 202, { state: 'duplicate' });
    t.match(await one.until(({ tag }) => tag === 'b'), { outcome: 'duplicate' });
    await one.quit();
  });

  t.test('a throw without an answer ends after its patience', async (t) => {
    const [stub, other] = [await Stub.start(t), await Stub.start(t)];
    // A join whose answer is too late, on a busy machine, is asked again; so is what was not sent in time.
    joins(stub, 'first');
    joins(other, 'second');
    prove(stub);
    const one = probe(t, stub.url, '--answer-timeout', 2500, '--patience', 6000);
    await one.state('online');
    const result = await one.throw('a', 'left', sprite());
    t.match(result, { outcome: 'unanswered', detail: /no answer/ });
    const tries = stub.requests.filter(({ path }) => path.startsWith('/throw/'));
    t.equal(new Set(tries.map(({ query }) => query.get('n'))).size, 1, 'always the same number');
    t.equal((await one.counts()).resent, tries.length - 1);
    await one.quit();
    const few = probe(t, other.url, '--answer-timeout', 3000, '--attempts', 1);
    await few.state('online');
    t.match(await few.throw('a', 'left', sprite()), { outcome: 'unanswered', yours: false });
    t.equal((await few.counts()).unknown, 1);
    t.equal(other.requests.filter(({ path }) => path.startsWith('/throw/second')).length, 1);
    await few.quit();
  });

  t.test('a large throw has the time that its bytes take', async (t) => {
    const stub = await Stub.start(t);
    stub.always(/^\/join$/, 201, { id: 'one', hold: 120, lease: 30, maxSprite: 1e6 });
    prove(stub);
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

  t.test('too many throws: the server is heeded, and asked nothing meanwhile', async (t) => {
    const { stub, one } = await onStub(t);
    one.say('throw', 'a', 'left', '{}');
    (await stub.next(/^\/throw/)).answer(429, problem('too-many-throws'), { 'retry-after': 30 });
    t.match(await one.until(({ tag }) => tag === 'a'), { outcome: 'busy', yours: true });
    const next = await one.throw('b', 'left', sprite());
    t.match(next, { outcome: 'busy', yours: true });
    t.ok(next.retry > 20000 && next.retry <= 45000);
    t.equal(stub.requests.filter(({ path }) => path.startsWith('/throw')).length, 1);
    await one.quit();
  });

  t.test('why a throw is refused', async (t) => {
    const { one } = await onServer(t);
    const bad = { outcome: 'refused', yours: true, problem: 'urn:sprites:bad-sprite' };
    t.match(await one.throw('a', 'left', '[]'), bad);
    await one.leave();
  });

  t.test('throws under way are bounded', async (t) => {
    const { stub, one } = await onStub(t, '--pending', 3, '--parallel', 2);
    one.say('flood', 'f', 5, 'left', '{}');
    await one.until(({ tag }) => tag === 'f4');
    const told = one.results.map(({ tag, taken }) => `${tag} ${taken}`);
    t.strictSame(told, ['f3 false', 'f4 false']);
    const onWire = [await stub.next(/^\/throw/), await stub.next(/^\/throw/)];
    t.equal(stub.requests.filter(({ path }) => path.startsWith('/throw')).length, 2);
    for (const request of onWire) request.answer(202, { state: 'queued' });
    (await stub.next(/^\/throw/)).answer(202, { state: 'delivered' });
    await one.until(({ outcome }) => outcome === 'delivered');
    t.equal(one.results.filter(isTaken).length, 3);
    await one.quit();
  });

  t.test('"retry" in an answer is waited for, and the state stays', async (t) => {
    const { stub, one } = await onStub(t, '--hold', 60);
    const poll = await stub.next(/^\/poll/);
    t.strictSame([poll.query.get('ack'), poll.query.get('hold')], ['0', '60']);
    poll.answer(200, {
      seq: 4,
      retry: 700,
      sprites: [{ seq: 4, from: 'up', sprite: { id: 'x' } }]
    });
    const next = await stub.next(/^\/poll/);
    // Two clocks are compared, by whole milliseconds.
    t.ok(next.at - poll.at >= 699, `${next.at - poll.at} ms`);
    t.equal(next.query.get('ack'), '4');
    t.notOk(one.events.some(({ state }) => state === 'offline'));
    await one.quit();
  });

  t.test('Retry-After is waited for when a poll or a join is turned away', async (t) => {
    const stub = await Stub.start(t);
    const one = probe(t, stub.url, '--backoff', 100);
    const join = await stub.next(/^\/join$/);
    join.answer(503, problem('torus-full', 'no room'), { 'retry-after': 1 });
    const offline = await one.state('offline');
    t.match(offline, { reason: 'no room' });
    t.ok(offline.retry >= 1000);
    const second = await stub.join('first');
    t.ok(second.at - join.at >= 1000);
    const poll = await stub.next(/^\/poll/);
    poll.answer(503, problem('draining'), { 'retry-after': 1 });
    const proof = await stub.next(/^\/place\/first$/);
    t.ok(proof.at - poll.at >= 1000);
    proof.answer(200, PLACE);
    const again = await stub.next(/^\/poll/);
    t.equal(again.query.get('hold'), '120', 'it is there: the whole hold');
    again.answer(200, { seq: 0, sprites: [] });
    await one.state('online');
    await one.quit();
  });

  t.test('an answer that is too long costs some time, and nothing else', async (t) => {
    const { stub, one } = await onStub(t, '--answer-bytes', 2000, '--backoff', 100);
    prove(stub);
    const arrival = (sprite) => ({ seq: 1, sprites: [{ seq: 1, from: 'up', sprite }] });
    (await stub.next(/^\/poll/)).answer(200, arrival({ name: 'x'.repeat(2000) }));
    (await stub.next(/^\/poll/)).answer(200, arrival({ name: 'short' }));
    t.equal((await one.sprite()).sprite.name, 'short');
    t.equal((await one.counts()).failures, 1);
    await one.quit();
  });

  t.test('empty answers that come at once are not asked for in a tight loop', async (t) => {
    const { stub, one } = await onStub(t, '--backoff', 300);
    const old = { seq: 1, sprites: [{ seq: 1, from: 'up', sprite: { id: 'x' } }] };
    (await stub.next(/^\/poll/)).answer(200, old);
    let last = await stub.next(/^\/poll/);
    const first = last;
    // Nothing at all, or nothing new: it is all the same.
    for (let i = 0; i < 8; i++) {
      last.answer(200, i % 2 ? old : { seq: 1, sprites: [] });
      const poll = await stub.next(/^\/poll/);
      last = poll;
    }
    t.equal((await one.counts()).repeats, 4);
    // Each wait is anywhere between 0 and 300 ms: all eight together are not this short.
    t.ok(last.at - first.at >= 100, `${last.at - first.at} ms`);
    t.notOk(one.events.some(({ state }) => state === 'offline'));
    await one.quit();
  });

  t.test(
    'a client that leaves while sprites come in gets no more of them, and acks no more',
    async (t) => {
      const { stub, one } = await onStub(t);
      const poll = await stub.next(/^\/poll/);
      one.say('leave-inside');
      one.say('counts');
      await one.until(({ event }) => event === 'counts');
      const arrival = (seq) => ({ seq, from: 'left', sprite: { id: `n${seq}` } });
      poll.answer(200, { seq: 3, sprites: [1, 2, 3].map(arrival) });
      const last = [await stub.next(/^\/poll/), await stub.next(/^\/poll/)];
      t.strictSame(
        last.map(({ query }) => query.get('ack')),
        ['1', '1']
      );
      last[0].answer(200, { seq: 3, sprites: [2, 3].map(arrival) });
      (await stub.next(/^\/leave\/first$/)).answer(204);
      await one.state('left');
      t.strictSame(ids(one.caught), ['n1']);
      await one.quit();
    }
  );

  t.test(
    'leaving without a server ends, and so does quitting in the middle of things',
    async (t) => {
      const nowhere = probe(t, 'http://127.0.0.1:9');
      await nowhere.state('offline');
      await nowhere.leave();
      const { stub, one } = await onStub(t);
      one.say('throw', 'a', 'left', '{}');
      await stub.next(/^\/throw/);
      await one.quit();
    }
  );

  t.test('it says where it is, and how many there are', async (t) => {
    const { server, one } = await onServer(t);
    await server.join();
    one.say('place');
    const { place } = await one.until(({ event }) => event === 'place');
    t.strictSame(place, [0, 0, 1, 2]);
    one.say('status');
    const { clients, status } = await one.until(({ event }) => event === 'status');
    t.equal(clients, 2);
    t.match(status, { clients: 2, parked: 1, thrown: 0 });
    await one.leave();

    const nowhere = probe(t, 'http://127.0.0.1:9');
    await nowhere.state('offline');
    nowhere.say('place');
    t.equal((await nowhere.until(({ event }) => event === 'place')).place, null);
    nowhere.say('status');
    t.equal((await nowhere.until(({ event }) => event === 'status')).status, null);
    await nowhere.quit();
  });

  t.test('a program that is started anew takes up its place, with what it kept', async (t) => {
    const { server, one: other } = await onServer(t, { lease: 600 });
    const one = probe(t, server.url);
    await one.state('online');
    other.say('throw', 'a', 'left', '{"id":"a"}');
    await one.sprite();
    await one.throw('b', 'left', sprite());
    await one.until(({ resume }) => resume?.ack === 1 && resume.n === 1, { all: true });
    const { resume } = one.events.filter(({ event }) => event === 'resume').at(-1);
    await one.quit(); // it has not left
    t.match(await other.throw('c', 'left', '{"id":"c"}'), { outcome: 'queued' });
    const again = probe(t, server.url, '--resume', JSON.stringify(resume));
    t.equal((await again.state('online')).newPlace, false);
    t.strictSame(ids([(await again.sprite()).sprite]), ['c'], 'what came meanwhile, once');
    t.match(await again.throw('d', 'left', sprite()), { outcome: /delivered|queued/ });
    t.match(await server.status(), { joined: 2, clients: 2, duplicates: 0 });
    await again.leave();
    t.equal(again.events.filter(({ event }) => event === 'resume').at(-1).resume, null);
    await other.leave();
  });

  t.test('trying now ends a wait of its own, and not one the server asked for', async (t) => {
    const stub = await Stub.start(t);
    const one = probe(t, stub.url);
    const first = await stub.next(/^\/join$/);
    first.answer(503, problem('torus-full'), { 'retry-after': 2 });
    await one.state('offline');
    one.say('try-now');
    const second = await stub.next(/^\/join$/);
    t.ok(second.at - first.at >= 2000, `${second.at - first.at} ms`);
    await one.quit();
  });

  t.test(
    'counts end a wait of its own, and where there are few clients waits are short',
    async (t) => {
      const stub = await Stub.start(t);
      const one = probe(t, stub.url);
      let tries = 0;
      /** Fails once more. @returns {Promise<number>} the wait after that */
      const fail = async () => {
        one.say('try-now');
        (await stub.next(/^\/join/)).answer(500, {});
        tries += 1;
        await until(async () => (await one.counts()).failures >= tries);
        return (await one.throw(`t${tries}`, 'left', '{}')).retry;
      };
      // Each wait is anywhere from 0 to its bound: until there is one of seconds.
      while ((await fail()) < 3000);
      one.say('status');
      const counts = { clients: 3, thrown: 0, acked: 0, waiting: 0, lost: 0 };
      (await stub.next(/^\/status/)).answer(200, counts);
      await one.until(({ event }) => event === 'status');
      t.equal((await one.throw('last', 'left', '{}')).retry, 0, 'it asks already');
      for (let more = 12; more > 0; more -= 1) t.ok((await fail()) <= 1000);
      await stub.join('first');
      await one.state('online');
      await one.quit();
    }
  );

  t.test('it goes by a proxy, sends more headers, and logs without an id', async (t) => {
    const proxy = await Stub.start(t);
    const one = probe(
      t,
      'http://sprites.invalid:8080',
      ...['--proxy', proxy.url, '--header', 'Authorization: Bearer x', '--log']
    );
    const { headers } = await proxy.join('5f0c2c1e-secret');
    t.match(headers, { host: 'sprites.invalid:8080', authorization: 'Bearer x' });
    await one.state('online');
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
  });

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
    await clients[1].quit(); // in the middle of it
    await clients[0].leave();
    await clients[2].leave();
  });

  t.test('a private feed: a new grant before the end, and when it is revoked', async (t) => {
    const options = {
      'publish-token-file': tokenFile(t),
      grants: keyFile(t),
      private: 'team/*,me/*'
    };
    const server = await startServer(t, { options });
    await put(server, 'team/a', 1);
    const grants = [{ exp: inSeconds(4), sub: 'ann' }, { sub: 'ann' }, { sub: 'bea' }];
    const one = new Probe(t, join(build, 'sprites_feeds_probe'), server.url, [
      ...[...mode, '--backoff', 300, '--watch', 'team/a', '--watch', 'me/x'],
      ...grants.flatMap((more) => ['--grant', reads('team/*', more)])
    ]);
    const given = () => one.events.filter(({ event }) => event === 'grant').length;
    const change = (key) => one.until((each) => each.event === 'change' && each.key === key);
    t.equal((await change('me/x')).problem, 'not-granted');
    t.equal((await change('team/a')).text, '1');
    await until(() => given() === 2);
    await put(server, 'team/a', 2);
    t.equal((await change('team/a')).text, '2');
    await server.until(({ watching }) => watching >= 1);
    const revoked = `http://127.0.0.1:${server.adminPort}/revoked/sub/ann`;
    await fetch(revoked, { method: 'PUT' });
    await until(() => given() === 3);
    await put(server, 'team/a', 3);
    t.equal((await change('team/a')).text, '3');
    t.strictSame(
      one.events.filter(({ key, problem }) => key === 'team/a' && problem),
      [],
      'the program hears of values alone'
    );
    await one.quit();
    await server.stop();
  });

  t.test('a place for clients with a grant only', async (t) => {
    const options = { grants: keyFile(t), 'private-join': 'yes' };
    const server = await startServer(t, { options });
    const none = probe(t, server.url, '--backoff', 300);
    t.equal((await none.state('offline')).why, 'grant-required');
    const late = probe(t, server.url, '--backoff', 300, '--grant', 'fails');
    t.equal((await late.state('offline')).why, 'no-grant');
    late.say('grant', reads('plan', { join: true }));
    t.equal((await late.state('online')).newPlace, true);
    await server.until(({ clients }) => clients === 1);
    await late.leave();
    await none.quit();
    await server.stop();
  });

  t.test('a grant that was good and is refused to a join: the next one at once', async (t) => {
    const stub = await Stub.start(t);
    const one = probe(t, stub.url, '--backoff', 100, '--grant', 'one', '--grant', 'two');
    const grantOf = ({ headers }) => headers.authorization;
    t.equal(grantOf(await stub.join('first')), 'Bearer one');
    const poll = await stub.next(/^\/poll/);
    t.equal(grantOf(poll), undefined, 'a place outlives the grant');
    poll.answer(404, problem('unknown-client'));
    const again = await stub.next(/^\/join$/);
    t.equal(grantOf(again), 'Bearer one');
    again.answer(401, problem('grant-expired'));
    t.equal(grantOf(await stub.join('second')), 'Bearer two');
    await stub.next(/^\/poll\/second/);
    t.notOk(one.events.some(({ state }) => state === 'offline'));
    await one.quit();
  });

  /** A client on a stub that it has joined. */
  async function onStub(t, ...args) {
    const stub = await Stub.start(t);
    const one = probe(t, stub.url, ...args);
    await stub.join('first');
    await one.state('online');
    return { stub, one };
  }

  /** A client on a server that it has joined. */
  async function onServer(t, options) {
    const server = await startServer(t, { options });
    const one = probe(t, server.url);
    await one.state('online');
    return { server, one };
  }
}
