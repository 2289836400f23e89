import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

import t from 'tap';

import { createServer } from '../../server.js';
import { Client, Feeds } from '../../lib/client/client.js';
import { put, tokenFile } from '../support/feeds.js';
import { hmac, inSeconds, KEY_SET, keyFile, reads } from '../support/grants.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Grants in programs: the clients, a server within a program, and the command. */

t.test('Feeds ask for a new grant when theirs ends, and when it is refused', async (t) => {
  const options = {
    ...{ 'publish-token-file': tokenFile(t), grants: keyFile(t), private: 'team/*' },
    'private-join': 'yes'
  };
  const server = await startServer(t, { options });
  await put(server, 'team/a', 1);
  let given = 0;
  const problems = [];
  const states = [];
  const feeds = new Feeds({
    base: `http://127.0.0.1:${server.port}`,
    onState: (state) => states.push(state),
    // The grant names a longer life than it has by the server's clock, so the poll ends first.
    grant: async () => {
      given += 1;
      return reads('team/*', { exp: inSeconds(given === 1 ? 5 : 60), sub: 'ann' });
    }
  });
  t.teardown(() => feeds.close());
  let held;
  feeds.watch('team/a', (value, { problem }) => {
    held = value;
    if (problem) problems.push(problem);
  });
  await until(() => held === 1 && given === 2);
  await put(server, 'team/a', 2);
  await until(() => held === 2);
  await server.until(({ watching }) => watching === 1);
  await fetch(`http://127.0.0.1:${server.adminPort}/revoked/sub/ann`, { method: 'PUT' });
  await until(() => given >= 3);
  await fetch(`http://127.0.0.1:${server.adminPort}/revoked/sub/ann`, { method: 'DELETE' });
  await put(server, 'team/a', 3);
  await until(() => held === 3);
  t.strictSame(problems, []);

  const client = new Client({
    base: `http://127.0.0.1:${server.port}`,
    onSprite() {},
    grant: () => hmac({ exp: inSeconds(60), join: true })
  });
  client.start();
  await until(() => client.state === 'online');
  await client.leave();
});

t.test('a server in a program takes a key set, and signs', async (t) => {
  const server = await createServer({
    ...{ port: 0, host: '127.0.0.1', grants: KEY_SET, private: ['team/*', 'plan'] }
  });
  t.teardown(() => server.close());
  await server.publish('team/a', { a: 1 });
  const ask = (key, token) =>
    fetch(`http://127.0.0.1:${server.port}/feed/${key}`, {
      headers: token ? { authorization: `Bearer ${token}` } : {}
    });
  t.equal((await ask('team/a')).status, 401);
  t.equal((await ask('plan')).status, 401);
  const grant = await server.grant({ read: ['team/*'], sub: 'ann' });
  t.strictSame((await (await ask('team/a', grant)).json()).value, { a: 1 });
  t.equal((await ask('plan', grant)).status, 403);
  await t.rejects(server.grant({ read: ['te*m'] }), { message: /prefix/ });
  await t.rejects(server.grant({ seconds: 2592001 }), { message: /grantLongest/ });
});

t.test('wrong keys and options are said in one line, without the keys', async (t) => {
  const k = 'c2hvcnQ';
  for (const [given, message] of [
    [{ grants: {} }, /JSON Web Key Set/],
    [{ grants: { keys: [] } }, /1 to 100 keys/],
    [{ grants: { keys: [{ kty: 'oct', k }] } }, /at least 32 random bytes/],
    [{ grants: { keys: [{ kty: 'OKP', crv: 'Ed25519', x: k }] } }, /32 bytes/],
    [{ grants: { keys: [{ ...KEY_SET.keys[1], d: k }] } }, /public/],
    [{ grants: { keys: [{ ...KEY_SET.keys[0], alg: 'HS512' }] } }, /HS256/],
    [{ grants: { keys: [KEY_SET.keys[0], KEY_SET.keys[0]] } }, /same "kid"/],
    [{ grants: KEY_SET, private: ['a*'] }, /prefix/],
    [{ private: ['a'] }, /private and privateJoin need grants/],
    [{ grants: '/nowhere/keys.json' }, /can't be read \(ENOENT\)/]
  ]) {
    const error = await createServer({ port: 0, ...given }).catch((why) => why);
    t.match(error.message, message);
    t.notMatch(error.message, k);
    t.notMatch(error.message, '\n');
  }
});

t.test('the command prints a grant', async (t) => {
  const file = keyFile(t);
  const run = (...args) =>
    spawnSync(join(ROOT, 'bin/sprites'), ['grant', ...args], { encoding: 'utf8' });
  const rights = '--read team/7/*,plan --for 1h --sub ann';
  const { stdout, status } = run('--grants', file, ...rights.split(' '));
  t.equal(status, 0);
  const claims = JSON.parse(Buffer.from(stdout.split('.')[1], 'base64url'));
  t.match(claims, { read: ['team/7/*', 'plan'], sub: 'ann', jti: /^[0-9a-f-]{36}$/ });
  t.ok(Math.abs(claims.exp - inSeconds(3600)) < 60);
  t.equal(claims.exp - claims.iat, 3600);
  const most = run('--grants', file, '--join', '--for', '365d');
  t.equal(most.status, 0, 'as long as --grant-longest may be');
  const times = ['1y', '366d', '0s'].map((time) => ['--for', time]);
  for (const wrong of [[], ...times, ['--read', 'a*'], ['--raed', 'a'], ['--sub', '']]) {
    const result = run(...(wrong.length === 0 ? [] : ['--grants', file, '--join']), ...wrong);
    t.not(result.status, 0, wrong.join(' '));
    t.match(result.stderr, /^sprites: [^\n]+\n$/);
  }
  const keys = Array.from({ length: 30 }, (_, i) => 'k'.repeat(190) + i).join();
  t.match(run('--grants', file, '--read', keys), { status: 2, stderr: /at most 4096 bytes/ });
  t.match(run('--grants', file, '--sub', 'ann'), { status: 2, stderr: /needs a right: --read/ });
  const only = keyFile(t, { keys: [KEY_SET.keys[1]] });
  t.match(run('--grants', only, '--join').stderr, /only an "oct" key signs/);
  for (const help of ['--help', '-h']) t.match(run(help).stdout, /Usage: sprites grant/);
});
