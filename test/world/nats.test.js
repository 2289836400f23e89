import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { join } from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';

import { Kvm } from '@nats-io/kv';
import { createUser } from '@nats-io/nkeys';
import t from 'tap';

import { BUCKET } from '../../lib/world/broker.js';
import { FeedStore, STREAM } from '../../lib/world/feed-store.js';
import { NatsLink } from '../../lib/world/nats-link.js';
import { certificate } from '../support/certificate.js';
import { freePort, listening, startUnresponsivePort } from '../support/addresses.js';
import { credentialsOf, enterNats, skip, startCluster, startNats } from '../support/nats.js';
import { openSockets, temporary } from '../support/processes.js';
import { until } from '../support/until.js';
import { enterMember, enterWorld } from '../support/world-servers.js';
import { VirtualTime } from '../support/virtual-time.js';
import { Conflict } from '../../lib/world/world-error.js';
import { silent } from '../support/world-virtual.js';
import { createServer as startServer } from '../../server.js';

/** Memberships with a real nats-server. membership.test.js tests the exact times. */

/** @returns {boolean} whether both are members, and each sees the ring of both */
const isRing = (members) =>
  members.every(({ membership, ring }) => membership.state === 'member' && ring() === 'ab');

t.test('a broker that hangs and goes on', { skip }, async (t) => {
  const nats = await startNats(t);
  const members = ['a', 'b'].map((name) => enterMember(t, nats, name));
  const isWhole = () => isRing(members);
  await until(isWhole);
  nats.signal('SIGSTOP');
  await until(() => members.every(({ membership }) => membership.state === 'cut-off'));
  nats.signal('SIGCONT');
  await until(isWhole);
});

t.test('a NATS server that does not answer costs no descriptor', async (t) => {
  const greetings = { 'says nothing': '', 'says half a word': 'INFO {"server_id":' };
  const ports = { 'is not even reached': await startUnresponsivePort(t) };
  for (const [name, greeting] of Object.entries(greetings)) {
    const server = createServer((socket) => {
      socket.on('error', () => {}).resume();
      socket.write(greeting);
    });
    ports[name] = await listening(t, server);
  }
  for (const [name, port] of Object.entries(ports)) {
    const before = openSockets();
    const [patient, other] = ['a', 'b'].map(
      (name) => new NatsLink({ servers: [`nats://127.0.0.1:${port}`], name })
    );
    const failed = t.rejects(patient.open(), { code: 'unreachable' }, `one that ${name}`);
    const tried = t.rejects(other.open(), { code: 'unreachable' });
    await until(() => openSockets() >= before + 2);
    await other.close();
    const first = Promise.race([tried.then(() => 'closed'), failed.then(() => 'not in time')]);
    t.equal(await first, 'closed', 'and one that is closed meanwhile');
    await failed;
    await until(() => openSockets() === before);
    await patient.close();
  }
});

t.test('a NATS server that is too old for a cluster is named', async (t) => {
  const fake = createServer((socket) => {
    socket.on('error', () => {}).on('data', () => socket.write('PONG\r\n'));
    socket.write('INFO {"server_id":"x","version":"2.9.10","max_payload":1048576}\r\n');
  });
  const warnings = [];
  const log = { ...silent, warn: (_, text) => warnings.push(text) };
  const world = `nats://127.0.0.1:${await listening(t, fake)}`;
  const server = await startServer({ port: 0, world, worldReplicas: 3, name: 'a', log });
  await until(() => warnings.some((text) => /before 2\.10\.19/.test(text)));
  await server.close();
});

t.test('what came while the process stood still was not late', async (t) => {
  const server = createServer((socket) => socket.on('error', () => {}));
  const client = connect(await listening(t, server), '127.0.0.1');
  const [socket] = await once(server, 'connection');
  const link = new NatsLink({ servers: ['nats://127.0.0.1:1'], name: 'a' });
  const block = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100);
  const act = () => {
    const answer = once(client, 'data');
    socket.write('1');
    block();
    return answer;
  };
  // The loop runs timers next, and then reads input.
  await turn();
  t.match(await link.withTimeout(50, act), [/1/]);
  client.destroy();
});

/** Returns a NATS server that only greets its clients. */
function fakeNats(server_id, onConnect) {
  const info = `INFO ${JSON.stringify({ server_id, version: '2.10.19', max_payload: 1 })}\r\n`;
  const answer = (bytes, socket) => {
    if (bytes.includes('CONNECT')) onConnect(server_id, socket);
    socket.write('PONG\r\n');
  };
  return createServer((socket) => {
    socket.on('error', () => {}).on('data', (bytes) => answer(bytes, socket));
    socket.write(info);
  });
}

t.test('a NATS server that was down at the start is tried later', async (t) => {
  const sockets = [];
  const [early, late] = ['early', 'late'].map((name) =>
    fakeNats(name, (_, socket) => sockets.push(socket))
  );
  const ports = [await listening(t, early), await freePort()];
  const servers = ports.map((port) => `nats://127.0.0.1:${port}`);
  // Each link begins with a random one.
  const links = Array.from({ length: 8 }, () => new NatsLink({ servers, name: 'a' }));
  for (const link of links) t.teardown(() => link.close());
  await Promise.all(links.map((link) => link.open()));
  await once(late.listen(ports[1], '127.0.0.1'), 'listening');
  t.teardown(() => late.close());
  early.close();
  for (const socket of sockets) socket.destroy();
  await until(() => links.every(({ run }) => run === 'late'));
});

t.test('a link leaves a NATS server that takes no writes', async (t) => {
  const time = new VirtualTime();
  const connectedRuns = [];
  const startFake = async (server_id) => {
    const server = fakeNats(server_id, () => {
      // The client tries its first server twice, unless it has just connected to it.
      if (connectedRuns.at(-1) !== server_id) connectedRuns.push(server_id);
    });
    return `nats://127.0.0.1:${await listening(t, server)}`;
  };
  const servers = [await startFake('x'), await startFake('y')];
  const link = new NatsLink({ servers, name: 'a', clock: time });
  t.teardown(() => link.close());
  const reconnected = () => new Promise((resolve) => (onReconnect = resolve));
  let [connection, onReconnect] = [undefined, () => {}];
  link.addListener((newConnection) => {
    connection = newConnection;
    onReconnect();
  });
  await link.open();

  const lateError = new Error('late');
  const conflict = new Conflict('');
  const success = null;

  /** Begins a write. @returns {() => Promise<void>} lets the write fail */
  const begin = () => {
    let fail;
    const act = () => new Promise((_, reject) => (fail = () => reject(lateError)));
    const request = link.withTimeout(1e6, act, 'write').catch(() => {});
    return () => {
      fail();
      return request;
    };
  };

  /** Sends a request that ends after some time. With `moves` the link must go to the other server. */
  const send = async ({ kind = 'write', error = lateError, after = 0, moves = false, then }) => {
    const moved = moves && reconnected();
    const end = async () => {
      await time.pause(after);
      if (error) throw error;
    };
    const request = link.withTimeout(1e6, end, kind).catch(() => {});
    await time.run(after);
    await Promise.all([request, then?.()]);
    await moved;
    // A move that has begun shows.
    await connection.flush();
  };

  await send({ error: conflict });
  await send({ error: conflict, after: 3000 });
  await send({ after: 2000 });
  await send({ error: success });
  await send({ after: 2999 });
  await send({ kind: 'read', error: success });
  const failOfFirstServer = begin();
  await send({ error: conflict, after: 1 });
  await send({ moves: true });
  // The next one gets as long as a request may take.
  await failOfFirstServer();
  await send({ after: 1999 });
  await send({ kind: 'read', error: success });
  await send({ after: 1, moves: true });
  // None of these is a long failure of the next one.
  await time.run(3000);
  await send({ error: success });
  await send({});
  await send({ error: success });
  const failOfSlow = begin();
  await send({ error: success, after: 3000 });
  await failOfSlow();
  await send({ error: success });
  // This is one, and one move.
  const failOfParallel = begin();
  await send({ after: 3000, moves: true, then: failOfParallel });
  const [first, second] = connectedRuns;
  t.strictSame(connectedRuns, [first, second, first, second]);
  t.not(first, second);
});

t.test('two that open a link at once have one connection', { skip }, async (t) => {
  const nats = await startNats(t);
  const before = openSockets();
  const link = new NatsLink({ servers: [nats.url], name: 'a' });
  const opened = [];
  link.addListener((connection) => opened.push(connection));
  await Promise.all([link.open(), link.open()]);
  t.equal(opened.length, 1);
  await link.close();
  await until(() => openSockets() === before);
});

t.test('a stream of one NATS server is the same, whether that says who leads it', async (t) => {
  const link = new NatsLink({ servers: [], name: 'a' });
  const identityOf = async (copies, cluster) => {
    const info = { created: 'then', config: { num_replicas: copies }, cluster };
    const jsm = { streams: { info: async () => info } };
    return (await link.openStream(jsm, { name: STREAM }, () => true)).identity;
  };
  const [one, other] = ['one', 'other'].map((leader) => ({ leader }));
  t.equal(await identityOf(1, one), await identityOf(1));
  t.not(await identityOf(3, one), await identityOf(3, other));
});

t.test('frames go to their receivers, and name their senders', { skip }, async (t) => {
  const nats = await startNats(t);
  const received = [];
  const [a, , c] = ['a', 'b', 'c'].map((name) => {
    const frame = (from, bytes) => received.push(`${from} to ${name}: ${Buffer.from(bytes)}`);
    return enterMember(t, nats, name, { receive: { frame, presence() {} } });
  });
  await until(() => a.ring() === 'abc' && c.ring() === 'abc');
  a.broker.send('b', Buffer.from('one'));
  c.broker.send('a', Buffer.from('two'));
  await until(() => received.length === 2);
  t.strictSame(received.toSorted(), ['a to b: one', 'c to a: two']);
  // Messages above the bound are dropped. The count falls when the broker has read the others.
  const large = Buffer.alloc(2 ** 20 - 100);
  for (let i = 0; i < 40; i++) a.broker.send('b', large);
  await until(() => received.length > 2 && a.broker.bytesInFlight < 2 ** 20);
  t.ok(received.length < 2 + 40, `${received.length - 2} of 40`);
  t.doesNotThrow(
    () => a.broker.sendPresence(Buffer.alloc(2 ** 20 + 1)),
    'no caller knows its size'
  );
  a.broker.send('b', Buffer.from('three'));
  await until(() => received.at(-1) === 'a to b: three');
});

t.test('each server has its own credentials and permissions', { skip }, async (t) => {
  const names = ['a', 'b'];
  const users = names.map(() => createUser());
  const permissionsOf = (name) => {
    const own = [`sprites.frames.*.${name}`, `sprites.presence.${name}`, '$KV.sprites-world.>'];
    const publish = JSON.stringify([...own, '$JS.API.>', '_INBOX.>']);
    return `{ publish: ${publish}, subscribe: ["sprites.>", "_INBOX.>"] }`;
  };
  const entries = users.map(
    (user, at) => `{ nkey: ${user.getPublicKey()}, permissions: ${permissionsOf(names[at])} }`
  );
  const nats = await startNats(t, `authorization { users: [${entries.join(', ')}] }`);
  const [a, b] = names.map((name, at) => {
    const credentials = Buffer.from(credentialsOf('none', users[at]));
    return enterMember(t, nats, name, { credentials });
  });
  await until(() => a.ring() === 'ab' && b.ring() === 'ab', a.problem);
  await b.membership.close();
  await until(() => a.ring() === 'a', a.problem);
  const outsider = enterMember(t, nats, 'x');
  await until(() => outsider.problem() === 'credentials');
  t.match(outsider.membership.view().problem.message, /--world-credentials/);
  t.equal(a.ring(), 'a');
});

t.test('credentials that are rolled hold from the next connection on', { skip }, async (t) => {
  const file = join(temporary(t), 'creds');
  let user;
  const nats = await startNats(t, () => {
    user = createUser();
    writeFileSync(file, credentialsOf('none', user));
    return `authorization { users: [{ nkey: ${user.getPublicKey()} }] }`;
  });
  const server = await enterWorld(t, nats, 'a', { 'world-credentials': file });
  await server.until((now) => now.worldMember === 1);
  await nats.kill();
  await server.until((now) => now.worldMember === 0);
  await nats.start();
  await server.until((now) => now.worldMember === 1);
});

t.test('a subject that NATS refuses is why a server is alone', { skip }, async (t) => {
  let denied;
  const config = () =>
    `no_auth_user: u\nauthorization { users: [{ user: u, password: u, permissions: { ${denied} } }] }`;
  const enterRefused = async () => {
    const nats = await startNats(t, config);
    const warnings = [];
    const log = { ...silent, warn: ({ problem }) => warnings.push(problem) };
    const states = new Set();
    const { membership } = enterMember(t, nats, 'a', {
      log,
      onChange: ({ state }) => states.add(state)
    });
    await until(() => warnings.length > 0);
    t.strictSame([warnings[0], states.has('member')], ['permissions', false], denied);
    return { nats, membership };
  };
  for (const subject of ['frames', 'entries']) {
    denied = `subscribe: { deny: "sprites.${subject}.>" }`;
    await enterRefused();
  }
  for (const subject of ['sprites.frames', 'sprites.presence', '$KV']) {
    denied = `publish: { deny: "${subject}.>" }`;
    await enterRefused();
  }
  const { nats, membership } = await enterRefused();
  denied = '';
  await nats.kill();
  await nats.start();
  await until(() => membership.state === 'member');
  denied = 'subscribe: { deny: "sprites.feed-news.>" }';
  await nats.kill();
  await nats.start();
  const store = new FeedStore(new NatsLink({ servers: [nats.url], name: 'b' }), 'b');
  t.teardown(() => store.close());
  const isRefused = () =>
    store.open().then(
      () => false,
      ({ code }) => code === 'permissions'
    );
  await until(isRefused, 'news of feeds, too');
});

t.test('TLS', { skip }, async (t) => {
  const files = certificate(temporary(t), 'localhost', ['IP:127.0.0.1']);
  const [cert, key] = [files['tls-cert'], files['tls-key']];
  const nats = await startNats(t, `tls { cert_file: "${cert}", key_file: "${key}" }`);
  const warnings = [];
  const log = { ...silent, warn: (_, text) => warnings.push(text) };
  const member = enterMember(t, nats, 'a', { ca: readFileSync(cert), log });
  await until(
    () => member.membership.state === 'member',
    () => member.membership.view().problem
  );
  const stranger = enterMember(t, nats, 'x');
  await until(() => stranger.problem() === 'unreachable');
  t.equal(stranger.membership.state, 'alone');
  await nats.kill();
  execFileSync('openssl', ['x509', '-in', cert, '-signkey', key, '-days', '-1', '-out', cert]);
  await nats.start();
  await until(() => warnings.some((text) => /certificate has expired/.test(text)));
});

t.test(
  'a bucket that something else has made, and a value that is no entry',
  { skip },
  async (t) => {
    const nats = await startNats(t);
    const connection = await enterNats(t, nats);
    const kvm = new Kvm(connection);
    const foreign = await kvm.create(BUCKET);
    const member = enterMember(t, nats, 'a');
    await until(() => member.problem() === 'bad-bucket');
    await foreign.destroy();
    await until(() => member.membership.state === 'member');
    const kv = await kvm.open(BUCKET);
    await kv.put('b', 'no entry');
    await kv.put('no.name', 'x');
    await kv.put('c', 'x');
    await kv.delete('c');
    for (const name of ['b', 'c']) {
      const other = enterMember(t, nats, name);
      await until(() => other.membership.state === 'member');
    }
    await until(() => member.ring() === 'abc');
  }
);

t.test('a bucket that is deleted is made again', { skip }, async (t) => {
  const nats = await startNats(t);
  const members = ['a', 'b'].map((name) => enterMember(t, nats, name));
  const isWhole = () => isRing(members);
  await until(isWhole);
  const connection = await enterNats(t, nats);
  const kvm = new Kvm(connection);
  await (await kvm.open(BUCKET)).destroy();
  const isThere = () => kvm.open(BUCKET).then((kv) => kv.status());
  await until(() => isThere().catch(() => false));
  await until(isWhole);
});

t.test(
  'a cluster keeps copies, and a client at a cut off server of it goes to another',
  { skip },
  async (t) => {
    const nats = await startCluster(t);
    const servers = nats.url.split(',');
    const alone = enterMember(t, nats, 'a', { servers });
    await until(() => alone.membership.state === 'member');
    const copied = enterMember(t, nats, 'b', { servers, replicas: 3 });
    await until(() => copied.ring() === 'ab');
    await nats.leads(`KV_${BUCKET}`, { copies: 3 });

    const links = ['c', 'd'].map((name) => new NatsLink({ servers, name, replicas: 3 }));
    const [one, other] = links.map((link, at) => new FeedStore(link, 'cd'[at]));
    t.teardown(() => Promise.all([one.close(), other.close()]));
    await until(() => one.open().catch(() => false));
    await other.open();
    await nats.leads(STREAM, { copies: 3 });
    for (let version = 1, revision = 0; version <= 5; version += 1) {
      revision = await one.put('a', { epoch: 7, version }, Buffer.of(), revision);
      t.match((await other.readHeads()).get('a'), { version }, 'whichever copy is read');
    }
    t.not(
      one.run,
      other.run,
      'no epoch is of two servers: a cluster may forget one of its versions'
    );

    const ids = [];
    for (const url of servers) {
      const { info } = await enterNats(t, { url });
      ids.push(info.server_id);
    }
    const left = links[0].run;
    nats.cutOff(ids.indexOf(left));
    await until(() =>
      one.open().then(
        () => links[0].run !== left,
        () => false
      )
    );
  }
);

t.test('a broker that is none for a world says so', { skip }, async (t) => {
  const nats = await startNats(t, '# no jetstream');
  const member = enterMember(t, nats, 'a');
  await until(() => member.problem() === 'no-jetstream');
  const nowhere = enterMember(t, { url: 'nats://127.0.0.1:1' }, 'b');
  await until(() => nowhere.problem() === 'unreachable');
  t.match(nowhere.membership.view().problem.message, /127\.0\.0\.1:1/);
  // As a proxy in front of a NATS server that is down.
  const port = await listening(
    t,
    createServer((socket) => socket.destroy())
  );
  const closing = new NatsLink({ servers: [`nats://127.0.0.1:${port}`], name: 'd' });
  await t.rejects(closing.open(), { message: /the connection was closed at once/ });
  const single = await startNats(t);
  const early = enterMember(t, single, 'c', { replicas: 3 });
  await until(() => early.problem() === 'no-replicas');
  const modest = enterMember(t, single, 'e');
  await until(() => modest.membership.state === 'member');
  const late = enterMember(t, single, 'f', { replicas: 3 });
  await until(() => late.problem() === 'no-replicas', 'where the bucket has one copy');
});
