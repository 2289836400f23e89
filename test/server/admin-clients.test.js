import { networkInterfaces } from 'node:os';
import { join } from 'node:path';

import t from 'tap';

import { openBans } from '../../lib/operator/bans.js';
import { problemOf } from '../support/contract.js';
import { request as bytesOf, Wire } from '../support/http.js';
import { DAY, jumpingClock, notingPool } from '../support/jumping-clock.js';
import { startServer } from '../support/server.js';

/** Requests of an operator about one client, at the admin port. */

/** The address of the banned clients. */
const HOSTILE = '127.0.6.6';

const NOBODY = '11111111-2222-8333-8444-000000000000';

/** Starts a server with an admin port. Returns it with a function that sends requests to that port. */
async function startAdministered(t, { options = {} } = {}) {
  const server = await startServer(t, { options: { drain: 0, 'log-level': 'warn', ...options } });
  const { adminPort: port } = server;
  /** @returns {Promise<import('../support/http.js').Answer>} */
  const ask = async (method, path, { headers, host } = {}) => {
    const wire = await Wire.open(port, host);
    try {
      const all = { Host: `127.0.0.1:${port}`, ...headers };
      return await wire.send(bytesOf(method, path, { headers: all })).read();
    } finally {
      await wire.destroy();
    }
  };
  return { server, ask, port };
}

t.test('one client is looked at and sent away', async (t) => {
  const { server, ask } = await startAdministered(t);
  const [id, other] = [await server.join(), await server.join()];
  const parked = await server.park(id);
  t.same((await ask('GET', `/clients/${id}`)).body, {
    ...{ row: 0, column: 0, parked: true, waiting: 0, unsent: 0, bytes: 0, sequence: 0 },
    address: '127.0.0.1'
  });
  await server.throw(id, 'left', '{"a":1}');
  t.match((await ask('GET', `/clients/${other}`)).body, {
    ...{ parked: false, waiting: 1, unsent: 1, sequence: 1 }
  });
  t.equal((await ask('GET', `/clients/${NOBODY}`)).status, 404);

  t.equal((await ask('POST', `/clients/${id}/leave`)).status, 204);
  t.equal((await parked.answer).status, 200, 'its poll is answered');
  t.equal(problemOf(await server.poll(id)), 'unknown-client');
  t.equal((await ask('POST', `/clients/${id}/leave`)).status, 204, 'also when repeated');
  t.equal((await server.status()).clients, 1, 'and no other is');
  const logText = Buffer.concat(server.errors).toString();
  t.match(logText, 'a client is sent away');
  t.notMatch(logText, id, 'no whole id in the log');
  await server.stop();
});

t.test('an address is banned, and no more', async (t) => {
  const { server, ask } = await startAdministered(t);
  const id = await server.join();
  const wire = await server.wire();
  t.equal((await ask('POST', `/clients/${id}/ban?seconds=600`)).status, 204);
  const { body } = await ask('GET', '/bans');
  t.match(body, [{ address: '127.0.0.1' }]);
  t.ok(body[0].seconds > 500 && body[0].seconds <= 600);
  wire.send(bytesOf('POST', '/join'));
  const join = await server.read(wire);
  t.equal(problemOf(join), 'too-many-joins', 'no join by what is open');
  t.match(join.body.title, /^No join from this address/, 'which is true of a ban');
  const next = await server.wire();
  next.send(bytesOf('GET', '/status'));
  const opened = await server.read(next);
  t.equal(problemOf(opened), 'too-many-connections', 'and nothing new opens');
  t.match(opened.body.detail, /takes no further connection from this address/);
  t.equal((await ask('DELETE', '/bans/127.0.0.1')).status, 204);
  t.same((await ask('GET', '/bans')).body, []);
  await server.join();
  t.equal((await server.status()).clients, 1, 'the one that was banned has been sent away');

  t.equal((await ask('PUT', '/bans/192.0.2.1?seconds=60')).status, 204);
  t.equal((await ask('PUT', '/bans/2001%3Adb8%3A%3A1')).status, 204);
  t.same(
    (await ask('GET', '/bans')).body.map(({ address }) => address),
    ['192.0.2.1', '2001:db8::'],
    'IPv6 by its /64'
  );
  for (const spelling of ['::ffff:c000:201', '[2001:DB8:0:0::5]'])
    t.equal((await ask('DELETE', `/bans/${spelling}`)).status, 204, spelling);
  t.same((await ask('GET', '/bans')).body, [], 'in any spelling');
  for (const wrong of ['PUT /bans/nobody', 'PUT /bans/1.2.3.4?seconds=0', 'DELETE /bans/x']) {
    t.equal(problemOf(await ask(...wrong.split(' '))), 'bad-ban', wrong);
  }
  for (const text of [
    '1.2.3.4%00',
    '2001:db8::1%00',
    '%001.2.3.4',
    '[1.2.3.4]',
    'fe80::1%25eth0'
  ]) {
    t.equal(problemOf(await ask('PUT', `/bans/${text}`)), 'bad-ban', text);
    t.equal(problemOf(await ask('DELETE', `/bans/${text}`)), 'bad-ban', text);
  }
  for (const wrong of ['31536001', '1e3', '-1', '', '60&seconds=60', '60&x']) {
    t.equal(problemOf(await ask('PUT', `/bans/1.2.3.4?seconds=${wrong}`)), 'bad-ban', wrong);
  }
  t.equal(problemOf(await ask('PUT', '/bans/1.2.3.4?second=60')), 'bad-ban');
  for (const [problem, targets] of Object.entries({
    'bad-request': ['bans/%zz', 'bans/%ff', 'revoked/sub/%ff', 'revoked/sub?name=%ff'],
    'bad-revocation': [
      ...['revoked/sub/ann?nmae=bo', 'revoked/sub?nmae=bo', 'revoked?sub=ann&jti=1'],
      ...['revoked/sub/ann?name=bo', 'revoked/sub?name=ann&name=bo', 'revoked/sub?name=ann&x']
    ]
  })) {
    for (const target of targets)
      for (const method of ['PUT', 'DELETE'])
        t.equal(problemOf(await ask(method, `/${target}`)), problem, target);
  }
  t.same((await ask('GET', '/revoked')).body, []);
  for (const nothing of ['bans/192.0.2.2', 'revoked/sub/ann']) {
    t.equal((await ask('DELETE', `/${nothing}`)).status, 204);
  }
  await server.stop();
  const ended = server.logLines.filter(({ msg }) => msg.endsWith(' no more'));
  t.equal(ended.length, 3, 'those that were banned');
});

t.test('with --state bans outlive a crash, and end when they are to', async (t) => {
  const directory = t.testdir();
  const state = join(directory, 'state');
  const start = () => startAdministered(t, { options: { state } });
  const addresses = async ({ ask }) => (await ask('GET', '/bans')).body.map((ban) => ban.address);

  const one = await start();
  for (const banned of [HOSTILE, '2001%3Adb8%3A%3A1', '192.0.2.1']) {
    t.equal((await one.ask('PUT', `/bans/${banned}?seconds=600`)).status, 204);
  }
  t.equal((await one.ask('DELETE', '/bans/192.0.2.1')).status, 204);
  one.server.child.kill('SIGKILL');
  await one.server.ended();
  const two = await start();
  t.same(await addresses(two), [HOSTILE, '2001:db8::']);
  const { body } = await two.ask('GET', '/bans');
  t.ok(body.every(({ seconds }) => seconds > 500 && seconds <= 600));
  const wire = await Wire.open(two.server.port, two.server.host, HOSTILE);
  wire.send(bytesOf('GET', '/status'));
  t.equal(problemOf(await wire.read()), 'too-many-connections');
  await wire.destroy();
  await two.server.stop();
  const three = await start();
  t.same(await addresses(three), [HOSTILE, '2001:db8::'], 'a restart neither');
  await three.server.stop();
});

/** Returns limits whose bans last as long as they were made for, by `performance.now`. */
function makeLimits() {
  const bans = new Map();
  return {
    ban(address, seconds) {
      bans.set(address, performance.now() + seconds * 1000);
      return address;
    },
    bans: () =>
      [...bans]
        .map(([address, end]) => ({
          address,
          seconds: Math.ceil((end - performance.now()) / 1000)
        }))
        .filter(({ seconds }) => seconds > 0)
  };
}

const MINUTE = 60_000;

t.test('bans and the clock', async (t) => {
  const setClock = jumpingClock(t);
  const pool = notingPool();
  const { setInterval } = globalThis;
  t.teardown(() => Object.assign(globalThis, { setInterval }));
  let lookAtClock;
  globalThis.setInterval = (look) => {
    lookAtClock = look;
    return { unref() {} };
  };
  const restart = () => openBans({ limits: makeLimits(), pool, log: {} });
  const listed = (bans) => Object.fromEntries(bans.list().map((one) => [one.address, one.seconds]));

  t.test('one that has ended is none after a restart, and a year is the most', async (t) => {
    const now = Date.now();
    for (const [address, end] of [
      ['192.0.2.1', now - 1],
      ['192.0.2.2', now + MINUTE],
      ['192.0.2.3', now + 1e12]
    ])
      pool.note(`ban/${address}`, String(end));
    t.strictSame(listed(restart()), { '192.0.2.2': 60, '192.0.2.3': 31_536_000 });
    pool.written.clear();
  });

  t.test('a clock that is ahead at a restart ends bans only until it is set right', async (t) => {
    await restart().ban('192.0.2.1', 600);
    setClock(400 * DAY);
    const bans = restart();
    t.strictSame(listed(bans), {});
    await bans.ban('192.0.2.2', 60);
    setClock(0);
    lookAtClock();
    t.strictSame(listed(bans), { '192.0.2.1': 600, '192.0.2.2': 60 });
    t.strictSame(listed(restart()), { '192.0.2.1': 600, '192.0.2.2': 60 }, 'none is longer');
  });

  t.test('one that has ended is kept until the clock was steady for a day', async (t) => {
    const bans = restart();
    setClock(400 * DAY);
    lookAtClock();
    t.equal(pool.written.size, 2);
    t.equal(bans.list().length, 2, 'in a run they last as long as they were made for');
    setClock(400 * DAY, 2);
    lookAtClock();
    t.equal(pool.written.size, 0);
  });
});

t.test('there are a thousand bans at the most', async (t) => {
  const { server, ask } = await startAdministered(t);
  for (let i = 0; i < 1000; i += 1) {
    const { status } = await ask('PUT', `/bans/192.0.${i >> 8}.${i & 255}`);
    if (status !== 204) t.fail(`ban ${i}: ${status}`);
  }
  t.equal(problemOf(await ask('PUT', '/bans/198.51.100.1')), 'bad-ban');
  t.equal((await ask('PUT', '/bans/192.0.0.7?seconds=9')).status, 204, 'one of them, anew');
  await ask('DELETE', '/bans/192.0.0.8');
  t.equal((await ask('PUT', '/bans/198.51.100.1')).status, 204);
  t.equal((await ask('GET', '/bans')).body.length, 1000);
  await server.stop();
});

t.test(
  'what is about one client is taken from this host alone, and from no other page',
  async (t) => {
    const { server, ask, port } = await startAdministered(t, {
      options: { 'admin-host': '0.0.0.0' }
    });
    const own = `127.0.0.1:${port}`;
    for (const headers of [
      { Origin: 'https://evil.example' },
      { 'Sec-Fetch-Site': 'cross-site' },
      { Host: `evil.example:${port}` }
    ]) {
      const answer = await ask('PUT', '/bans/192.0.2.1', { headers });
      t.equal(problemOf(answer), 'not-from-here', JSON.stringify(headers));
    }
    const outside = Object.values(networkInterfaces())
      .flat()
      .find(({ internal, family }) => !internal && family === 'IPv4')?.address;
    if (outside !== undefined) {
      const host = outside;
      t.equal(
        problemOf(await ask('GET', '/bans', { host })),
        'not-from-here',
        'by another address'
      );
      t.equal((await ask('GET', '/metrics', { host })).status, 200, 'metrics are for others, too');
    }
    t.same((await ask('GET', '/bans')).body, [], 'nothing has happened');
    const headers = { Origin: `http://${own}`, 'Sec-Fetch-Site': 'same-origin' };
    t.equal((await ask('PUT', '/bans/192.0.2.1', { headers })).status, 204, 'its own page may');
    t.match((await ask('GET', '/')).headers, {
      'content-security-policy': /default-src 'none'.*frame-ancestors 'none'/
    });
    t.match(await ask('POST', '/bans'), { status: 405, headers: { allow: 'GET' } });
    for (const path of ['/clients', '/revoked/all/ann', '/bans/192.0.2.1/now', '/nothing']) {
      const { status, body } = await ask('GET', path);
      t.equal(status, 404, path);
      t.match(body.detail, /^There are \/, .*\/clients\/\{id\}, \/bans and \/revoked\.$/);
    }
    t.equal(problemOf(await ask('GET', '/clients/%zz')), 'bad-request');
    await server.stop();
  }
);
