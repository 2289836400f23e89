import { setImmediate as turn } from 'node:timers/promises';

import { jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';

import { Grants } from '../../lib/grants/open.js';
import { openRevocations } from '../../lib/grants/revocations.js';
import { tokenOf } from '../../lib/world/feed-message.js';
import { NatsLink } from '../../lib/world/nats-link.js';
import { SharedRevocations, STREAM } from '../../lib/world/shared-revocations.js';
import { problemOf } from '../support/contract.js';
import { EventStream, get, STATELESS_POOL, parkGet, put, tokenFile } from '../support/feeds.js';
import { bearer, keyFile, reads } from '../support/grants.js';
import { DAY, jumpingClock, notingPool } from '../support/jumping-clock.js';
import { enterNats, skip, startNats } from '../support/nats.js';
import { until } from '../support/until.js';
import { enterWorld, untilReady, untilRing, untilEach } from '../support/world-servers.js';

/** A grant revoked at one server of a world ends at all servers. With server processes and a real nats-server. */

function makeEnter(t, nats) {
  const common = { grants: keyFile(t), private: 'plan', 'publish-token-file': tokenFile(t) };
  return (name, more) => enterWorld(t, nats, name, { ...common, drain: 0, workers: 0, ...more });
}

const ask = (server, what, method) =>
  fetch(`http://127.0.0.1:${server.adminPort}/revoked/${what}`, { method });
const revoke = async (server, what) => (await ask(server, what, 'PUT')).status;
const restore = async (server, what) => (await ask(server, what, 'DELETE')).status;

/** Returns a server's revocations, such as `sub/ann`. */
async function revokedAt(server) {
  const list = await (await ask(server, '', 'GET')).json();
  return list.map(({ sub, jti }) => (sub ? `sub/${sub}` : `jti/${jti}`)).toSorted();
}

/** Waits until all servers have exactly these revocations. */
const untilRevoked = (servers, expected) => untilEach(servers, expected.toSorted(), revokedAt);

t.test('at once, at every server, and after restarts', { skip, timeout: 120_000 }, async (t) => {
  const nats = await startNats(t);
  const enter = makeEnter(t, nats);
  let [a, b, c] = await Promise.all([enter('a'), enter('b', { workers: 1 }), enter('c')]);
  await untilReady([a, b, c]);
  const { cursor } = (await put(a, 'plan', 1)).body;
  const token = reads('plan', { sub: 'ann ü/.', jti: 'one' });
  const other = reads('plan', { sub: 'bo' });
  for (const server of [b, c]) {
    await until(async () => (await get(server, 'plan', '', bearer(token))).status === 200);
  }

  for (const what of [`sub/${encodeURIComponent('ann ü/.')}`, 'jti/one']) {
    const polls = await Promise.all([
      parkGet(b, 'plan', `after=${cursor}`, bearer(token)),
      parkGet(b, 'plan', `after=${cursor}`, bearer(other))
    ]);
    const stream = await EventStream.open(c, 'plan', { query: `grant=${token}` });
    await stream.news();
    t.equal(await revoke(a, what), 204);
    t.equal(problemOf(await polls[0].answer), 'bad-grant', what);
    t.strictSame((await stream.news()).data, { feed: 'plan', problem: 'bad-grant' });
    for (const server of [a, b, c]) {
      t.equal(problemOf(await get(server, 'plan', '', bearer(token))), 'bad-grant', server.name);
    }
    t.equal(await restore(c, what), 204);
    await untilRevoked([a, b, c], []);
    t.equal((await get(b, 'plan', '', bearer(token))).status, 200);
    polls[1].end?.();
  }

  await revoke(a, 'sub/bo');
  await untilRevoked([a, b, c], ['sub/bo']);
  await b.kill();
  b = await enter('b');
  await untilReady([b]);
  t.strictSame(
    await revokedAt(b),
    ['sub/bo'],
    'a server without a state has them when it is ready'
  );

  await nats.kill();
  t.equal(await revoke(a, 'sub/ann'), 202, 'without the broker it holds here');
  t.equal(await restore(c, 'sub/bo'), 202);
  t.strictSame(await revokedAt(a), ['sub/ann', 'sub/bo']);
  t.strictSame(await revokedAt(c), []);
  await nats.start();
  await untilRevoked([a, b, c], ['sub/ann']);

  const { streams } = await jetstreamManager(await enterNats(t, nats));
  const { purged } = await streams.purge(STREAM);
  const isFilled = async () => (await streams.info(STREAM)).state.messages === purged;
  await until(isFilled, 'what an operator purges comes again');
  await nats.kill();
  nats.forget();
  await nats.start();
  await untilRing([a, b, c]);
  const d = await enter('d');
  await untilReady([d]);
  await untilRevoked([a, b, c, d], ['sub/ann']);
  await Promise.all([a, b, c, d].map((server) => server.stop()));
});

t.test('the bound: one more is refused, also of another server', async (t) => {
  const logged = [];
  const log = { error: (text) => logged.push(text) };
  const options = { grants: 'none', private: [], grantLongest: 60 };
  const grants = new Grants({ options, pool: STATELESS_POOL, log });
  const list = grants.revocations;
  const ended = [];
  grants.onEnded((_, name) => ended.push(name));
  for (let n = 0; n < 10_000; n += 1) await list.add('sub', `${n}`);
  const later = Date.now() + 90_000;
  t.equal(await grants.revoke('sub', 'more'), 'too-many');
  await grants.revoke('sub', '7');
  t.strictSame(ended, ['7'], 'what is refused ends nothing');
  t.notOk(list.merge('sub/more', later));
  t.match(logged, [/not taken/]);
  t.ok(list.merge('sub/7', later), 'one that is known goes on');
  await list.remove('sub', '8');
  t.ok(list.merge('sub/more', later), 'what was taken back makes room');
  t.notOk(list.merge('sub/more', -later), 'taking it back ends no grant');
  t.notOk(list.has('sub', 'more'));
  t.notOk(list.merge('sub/more', later), 'and holds against the same revocation');
  t.ok(list.merge('sub/more', later + 1), 'but not against the next one');
  t.notOk(list.merge('sub/old', Date.now() - 1), 'what is over is not taken');
});

t.test('a clock that jumps ahead ends revocations only until it is set right', async (t) => {
  const setClock = jumpingClock(t);
  const pool = notingPool();
  const open = () => openRevocations({ options: { grantLongest: 60 }, pool, log: {} });
  const namesOf = (list) => list.list().map(({ sub }) => sub);

  const list = open();
  await list.add('sub', 'ann');
  setClock(400 * DAY);
  await list.add('sub', 'bo');
  t.same(namesOf(list), ['bo']);
  t.same([...list.all().keys()], ['sub/bo'], 'another server gets what has not ended');
  const restarted = open();
  t.same(namesOf(restarted), ['bo']);
  setClock(0);
  for (const one of [list, restarted]) t.ok(one.has('sub', 'ann'), 'it has not ended');

  setClock(400 * DAY + 61_000);
  t.same(namesOf(restarted), []);
  t.equal(pool.written.size, 2);
  setClock(400 * DAY + 61_000, 2);
  t.same(namesOf(restarted), []);
  t.equal(pool.written.size, 0, 'after a day without a jump none is kept');
});

t.test('taking it back is shared each time it is asked for', async (t) => {
  const list = openRevocations({ options: { grantLongest: 60 }, pool: STATELESS_POOL, log: {} });
  let isReached = false;
  list.setSharing(async () => isReached);
  await list.add('sub', 'ann');
  t.equal(await list.remove('sub', 'ann'), 'here-only');
  t.equal(await list.remove('sub', 'ann'), 'here-only', 'as long as only this server knows');
  isReached = true;
  t.equal(await list.remove('sub', 'ann'), 'done');
});

/** Returns a server's revocations, and their sharing with the world. */
function startSharing(t, link, { grantLongest = 60, clock } = {}) {
  const logLines = [];
  const record = (...line) => logLines.push(line);
  const log = { warn: record, info: record, error() {} };
  const revocations = openRevocations({ options: { grantLongest }, pool: STATELESS_POOL, log });
  const grants = { revocations, mergeRevocation: (what, end) => revocations.merge(what, end) };
  const shared = new SharedRevocations({ link, grants, log, clock });
  t.teardown(() => shared.close());
  return { revocations, shared, logLines };
}

/** Returns the newest message of each subject. */
const newestOf = (messages) => [...new Map(messages.map((one) => [one.subject, one])).values()];

/** A link to a stream in memory. A read of the whole stream waits for `mayRead`. */
class FakeLink {
  isConnected = true;
  isLost = false;
  mayRead;
  /** Number of newest messages that the NATS server behind this link lacks. */
  lag = 0;
  hasRoom = false;
  reads = 0;
  #messages = [];
  #onMessage;
  #streams = {
    js: {
      publish: async (subject, data) => {
        await turn();
        if (!this.hasRoom) throw new Error('there is no room');
        this.#messages.push({ subject, data, seq: this.#messages.length + 1 });
      },
      consumers: {
        get: async () => {
          this.reads += 1;
          let readUpTo = 0;
          const fetch = async () => {
            await this.mayRead;
            const there = this.#messages.length - this.lag;
            const batch = newestOf(this.#messages.slice(0, there)).filter(
              ({ seq }) => seq > readUpTo
            );
            readUpTo = there;
            return batch;
          };
          return { fetch };
        }
      }
    },
    jsm: {
      streams: {
        info: async () => ({ config: { num_replicas: 3 }, state: this.#state() }),
        getMessage: async (_, { seq }) =>
          newestOf(this.#messages).find((one) => one.seq === seq) ?? null
      },
      consumers: { add: async () => ({ name: 'one' }), delete: async () => {} }
    }
  };

  subscribe(_, onMessage, onMissed) {
    this.#onMessage = onMessage;
    onMissed();
  }

  async open() {}

  request(send) {
    return send(this.#streams);
  }

  async openStream() {
    return { identity: 'one', state: this.#state() };
  }

  #state() {
    return { messages: newestOf(this.#messages).length, last_seq: this.#messages.length };
  }

  /** Writes a message without news of it. */
  write(name, end = Date.now() + 30_000) {
    const subject = `sprites.revoked.sub.${tokenOf(name)}`;
    this.#messages.push({ subject, data: String(end), seq: this.#messages.length + 1 });
  }

  publishNews(name, number) {
    const subject = `sprites.revoked-news.sub.${tokenOf(name)}`;
    this.#onMessage({ subject, data: 'x', headers: { get: () => String(number) } });
  }
}

/** Returns a clock, and a function that fires its next timer. */
function fakeClock() {
  let due;
  const clock = {
    after(_, then) {
      due = then;
      return () => {};
    }
  };
  const fireTimer = async () => {
    await until(() => due);
    const then = due;
    due = undefined;
    then();
    await until(() => due);
  };
  return { clock, fireTimer };
}

t.test('what is missed is found, whatever news say, and while all are read', async (t) => {
  const link = new FakeLink();
  const { clock, fireTimer } = fakeClock();
  let readAll;
  link.mayRead = new Promise((then) => (readAll = then));
  link.write('ann');
  const { revocations, shared } = startSharing(t, link, { clock });
  let isHere = false;
  shared.join().then(() => (isHere = true));
  await fireTimer();
  link.write('bo');
  await fireTimer();
  t.ok(revocations.has('sub', 'bo'), 'while it stands in a read');
  t.notOk(revocations.has('sub', 'ann') || isHere);
  readAll();
  await fireTimer();
  await until(() => isHere);
  t.ok(revocations.has('sub', 'ann'));
  link.publishNews('x', Number.MAX_SAFE_INTEGER);
  await fireTimer();
  link.write('cy');
  await fireTimer();
  t.ok(revocations.has('sub', 'cy'), 'after news with a number that is none');
});

t.test('what the others do not hear of is logged once, as is its end', async (t) => {
  for (const [problem, grantLongest] of [
    ['unreachable', 60],
    ['clock', 1e11] // The end is later than any that others accept, as with a clock far ahead.
  ]) {
    const { clock, fireTimer } = fakeClock();
    const link = new FakeLink();
    const { revocations, shared, logLines } = startSharing(t, link, { clock, grantLongest });
    shared.start();
    t.equal(await revocations.add('sub', 'ann'), 'here-only');
    for (let n = 0; n < 4; n += 1) await fireTimer();
    t.match(logLines, [[{ problem }]]);
    t.equal(logLines.length, 1);
    t.equal(link.reads, 1, 'not all are read for one that can not be written');
    if (problem === 'clock') continue;
    link.hasRoom = true;
    for (let n = 0; n < 4; n += 1) await fireTimer();
    t.strictSame(logLines.slice(1), [['revocations are shared again']]);
  }
});

t.test('a stream that NATS denies is logged as that', { skip }, async (t) => {
  const denied = 'publish: { deny: "$JS.API.STREAM.CREATE.sprites-revoked" }';
  const user = `{ user: u, password: u, permissions: { ${denied} } }`;
  const nats = await startNats(t, `no_auth_user: u\nauthorization { users: [${user}] }`);
  const link = new NatsLink({ servers: [nats.url], name: 'one' });
  t.teardown(() => link.close());
  const { revocations, shared, logLines } = startSharing(t, link);
  const isLogged = (code) => logLines.some(([{ problem }]) => problem === code);
  shared.start();
  await until(() => isLogged('permissions'));
  await revocations.add('sub', 'ann');
  t.notOk(isLogged('no-jetstream'), 'a revocation finds no stream, which is no other problem');
});

t.test('a NATS server of a cluster that is behind the others is not believed', async (t) => {
  const link = new FakeLink();
  const { clock, fireTimer } = fakeClock();
  const end = Date.now() + 30_000;
  link.write('ann', -end);
  link.write('ann', end + 1);
  link.lag = 1;
  const { revocations, shared } = startSharing(t, link, { clock });
  let isHere = false;
  shared.join().then(() => (isHere = true));
  for (let n = 0; n < 3; n += 1) await fireTimer();
  t.notOk(isHere);
  link.lag = 0;
  await until(async () => {
    await fireTimer();
    return isHere;
  });
  t.ok(revocations.has('sub', 'ann'));
});

t.test('the stream forgets what is over by the longest --grant-longest', { skip }, async (t) => {
  const nats = await startNats(t);
  const connection = await enterNats(t, nats);
  const { streams } = await jetstreamManager(connection);
  // The stream as earlier releases made it.
  const republish = { src: 'sprites.revoked.>', dest: 'sprites.revoked-news.>' };
  const subjects = [republish.src];
  await streams.add({ name: STREAM, subjects, max_msgs_per_subject: 1, republish });
  for (const [grantLongest, most] of [
    [60, 60],
    [120, 120],
    [60, 120]
  ]) {
    const link = new NatsLink({ servers: [nats.url], name: 'one' });
    t.teardown(() => link.close());
    await startSharing(t, link, { grantLongest }).shared.join();
    t.equal((await streams.info(STREAM)).config.max_age, (most + 3600) * 1e9);
  }
});
