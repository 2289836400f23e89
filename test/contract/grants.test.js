import { execFileSync } from 'node:child_process';
import { closeSync, openSync, unlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

import t from 'tap';

import { problemOf } from '../support/contract.js';
import { EventStream, get, getMany, park, put, remove, tokenFile } from '../support/feeds.js';
import {
  bearer,
  ed25519,
  hmac,
  inSeconds,
  KEY_SET,
  keyFile,
  base64Json,
  PUBLIC,
  reads,
  SECRET
} from '../support/grants.js';
import { request } from '../support/http.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';

/** Grants over the wire: which clients may read private feeds, publish and join. */

const grantOptions = (t) => ({
  'publish-token-file': tokenFile(t),
  'feed-threads': 1,
  hold: 10,
  private: 'team/*,plan'
});

const getWithToken = (server, key, token) => get(server, key, '', bearer(token));

/** Parks a poll for a private feed at its current cursor. */
async function parkPrivate(server, token) {
  const { body } = await getWithToken(server, 'team/a', token);
  return park(server, request('GET', `/feed/team/a?after=${body.cursor}&hold=10`, bearer(token)));
}

const revoke = (server, revocation, method = 'PUT') =>
  fetch(`http://127.0.0.1:${server.adminPort}/revoked/${revocation}`, { method });

for (const workers of [0, 1]) {
  t.test(`with ${workers} workers`, async (t) => {
    const file = keyFile(t);
    const options = {
      ...grantOptions(t),
      workers,
      grants: file,
      'private-join': 'yes',
      arena: 'hall'
    };
    const server = await startServer(t, { options });
    await put(server, 'team/a', { secret: 1 });
    await put(server, 'plan', { secret: 2 });
    await put(server, 'open', { open: 1 });

    t.test('a private feed is read by a grant, and an open one without', async (t) => {
      t.equal((await get(server, 'open')).status, 200);
      t.equal((await get(server, 'open', '', bearer('nonsense'))).status, 200);
      for (const token of [
        reads('team/*'),
        reads('team/a'),
        reads('*'),
        ed25519({ exp: inSeconds(60), iat: inSeconds(-2591900), read: ['team/a'] }),
        ed25519({ exp: inSeconds(60), iat: inSeconds(60), read: ['team/a'] }),
        ed25519({ exp: inSeconds(60), read: ['team/a'] }, { alg: 'Ed25519' }),
        hmac({ exp: inSeconds(60), read: ['team/a'] }, { header: { alg: 'HS256', typ: 'jwt' } })
      ]) {
        // The second time native code knows it.
        for (let n = 0; n < 2; n += 1) {
          t.strictSame((await getWithToken(server, 'team/a', token)).body.value, { secret: 1 });
          t.equal((await get(server, 'team/a', `grant=${token}`)).status, 200);
          t.equal((await server.ask('HEAD', '/feed/team/a', bearer(token))).status, 200);
        }
      }
    });

    t.test('the second request with a grant is no business of JavaScript', async (t) => {
      const token = reads('team/a');
      await getWithToken(server, 'team/a', token);
      const { handled } = await server.status();
      for (let n = 0; n < 5; n += 1) await getWithToken(server, 'team/a', token);
      t.equal((await server.status()).handled, handled);
    });

    t.test('whether a private feed exists does not show', async (t) => {
      const strangers = [
        [undefined, 'grant-required'],
        [reads('team/b'), 'not-granted'],
        [reads([]), 'not-granted'],
        ['x.y.z', 'bad-grant'],
        [hmac({ exp: inSeconds(-1), read: ['*'] }), 'grant-expired']
      ];
      const without = ({ headers }) => ({ ...headers, date: undefined });
      for (const [token, problem] of strangers) {
        const more = token === undefined ? {} : bearer(token);
        for (const method of ['GET', 'GET', 'HEAD', 'PATCH']) {
          const there = await server.ask(method, '/feed/team/a', more);
          const not = await server.ask(method, '/feed/team/nothing', more);
          t.equal(there.status, not.status);
          t.strictSame(without(there), without(not));
          t.ok(there.bytes.equals(not.bytes), 'the same bytes');
          if (method === 'GET') t.equal(problemOf(there), problem);
          if (there.status === 401) t.equal(there.headers['www-authenticate'], 'Bearer');
        }
      }
    });

    t.test('no token that could be another is a grant', async (t) => {
      const exp = inSeconds(60);
      const claims = { exp, read: ['*'] };
      const goodToken = hmac(claims);
      const [head, body, signature] = goodToken.split('.');
      /** Returns a token with another header, or with other claims. */
      const tokenWithHeader = (header, more) => hmac(claims, { header, ...more });
      const tokenWith = (more) => hmac({ ...claims, ...more });
      const secret = Buffer.from(PUBLIC.x, 'base64url');
      const own = 'a'.repeat(32);
      const last = String.fromCharCode(signature.charCodeAt(signature.length - 1) + 1);
      const bad = {
        none: `${base64Json({ alg: 'none' })}.${body}.`,
        'none, signed': `${base64Json({ alg: 'none' })}.${body}.${signature}`,
        'None of a name': `${base64Json({ alg: 'None', kid: 'secret' })}.${body}.${signature}`,
        'the public key as a secret': tokenWithHeader({ alg: 'HS256', kid: 'public' }, { secret }),
        'the public key as a secret, nameless': tokenWithHeader({ alg: 'HS256' }, { secret }),
        'the secret by another hash': tokenWithHeader(
          { alg: 'HS512', kid: 'secret' },
          { hash: 'sha512' }
        ),
        'a secret that says EdDSA': tokenWithHeader({ alg: 'EdDSA', kid: 'secret' }),
        'no alg': tokenWithHeader({ kid: 'secret' }),
        'an alg that is a list': tokenWithHeader({ alg: ['HS256'], kid: 'secret' }),
        'another key': hmac(claims, { secret: Buffer.alloc(32, 1) }),
        'an empty key': hmac(claims, { secret: Buffer.alloc(0) }),
        'a name of no key': tokenWithHeader({ alg: 'HS256', kid: 'nobody' }),
        'a key of its own': tokenWithHeader(
          { alg: 'HS256', jwk: { kty: 'oct', k: base64Json(own) } },
          { secret: Buffer.from(own) }
        ),
        'an unknown crit': tokenWithHeader({ alg: 'HS256', crit: ['x'], x: 1 }),
        'a crit that jose knows': tokenWithHeader({ alg: 'HS256', crit: ['b64'], b64: true }),
        'an empty crit': tokenWithHeader({ alg: 'HS256', crit: [] }),
        'a token of another kind': tokenWithHeader({ alg: 'HS256', typ: 'dpop+jwt' }),
        'alg twice': tokenWithHeader('{"alg":"none","alg":"HS256"}'),
        huge: tokenWith({ padding: 'x'.repeat(4096) }),
        'nbf in the future': tokenWith({ nbf: inSeconds(30) }),
        'no exp': hmac({ read: ['*'] }),
        'exp a text': tokenWith({ exp: String(exp) }),
        'exp infinite': hmac(`{"exp":1e999,"read":["*"]}`),
        'exp beyond 2^53': hmac(`{"exp":9007199254740993,"read":["*"]}`),
        'iat infinite': hmac(`{"exp":${exp},"iat":1e999,"read":["*"]}`),
        'iat beyond 2^53': hmac(`{"exp":${exp},"iat":9007199254740993,"read":["*"]}`),
        'exp negative': tokenWith({ exp: -1 }),
        'exp null': tokenWith({ exp: null }),
        'exp too far': tokenWith({ exp: inSeconds(2592100) }),
        'exp too far after iat': tokenWith({ iat: inSeconds(-2591970) }),
        'exp twice': hmac(`{"exp":1,"read":["*"],"exp":${exp}}`),
        'exp twice, once escaped': hmac(`{"exp":1,"read":["*"],"\\u0065xp":${exp}}`),
        'an audience': tokenWith({ aud: 'another' }),
        'read a text': tokenWith({ read: '*' }),
        'read of numbers': tokenWith({ read: [1] }),
        'read of no pattern': tokenWith({ read: ['te*m'] }),
        'too many patterns': tokenWith({ read: Array(65).fill('a') }),
        'join a number': tokenWith({ join: 1 }),
        'sub empty': tokenWith({ sub: '' }),
        'sub of half a pair': tokenWith({ sub: 'a\ud83d' }),
        'jti too long': tokenWith({ jti: 'x'.repeat(201) }),
        'claims a list': hmac('[]'),
        'claims null': hmac('null'),
        'no JSON': hmac('{'),
        'no UTF-8': `${head}.${Buffer.from([0x7b, 0xff, 0x7d]).toString('base64url')}.${signature}`,
        'another claim': `${head}.${base64Json({ ...claims, exp: exp + 1 })}.${signature}`,
        'an empty head': `.${body}.${signature}`,
        'empty claims': `${head}..${signature}`,
        'an empty signature': `${head}.${body}.`,
        'a part more': `${goodToken}.x`,
        'a part less': `${head}.${body}`,
        'no base64url': `${head}.${body}=.${signature}`,
        'base64url with bits left': `${head}.${body}.${signature.slice(0, -1)}${last}`
      };
      t.equal((await getWithToken(server, 'team/a', goodToken)).status, 200);
      for (const [name, token] of Object.entries(bad)) {
        const answer = await getWithToken(server, 'team/a', token);
        t.equal(problemOf(answer), 'bad-grant', name);
        const byQuery = await get(server, 'team/a', `grant=${encodeURIComponent(token)}`);
        t.equal(problemOf(byQuery), 'bad-grant', name);
      }
      const expiredToken = hmac({ ...claims, exp: inSeconds(-1) });
      t.equal(problemOf(await getWithToken(server, 'team/a', expiredToken)), 'grant-expired');
      t.equal(
        problemOf(await get(server, 'team/a', `grant=${goodToken}&grant=${goodToken}`)),
        'bad-grant'
      );
      t.equal(problemOf(await get(server, 'team/a', 'grant=')), 'bad-grant');
      const basic = { headers: { Authorization: 'Basic YTpi' } };
      t.equal(problemOf(await get(server, 'team/a', '', basic)), 'grant-required');
    });

    t.test('a list says of each feed what is with it', async (t) => {
      const ask = (feeds, token) =>
        server.ask('POST', '/feeds', {
          body: JSON.stringify({ hold: 5, feeds }),
          ...(token === undefined ? {} : bearer(token))
        });
      const feeds = { open: '', 'team/a': '', 'team/nothing': '', plan: '' };
      const problemsOf = ({ body }) =>
        Object.fromEntries(body.items.map(({ feed, problem }) => [feed, problem]));
      const required = 'grant-required';
      const token = reads('team/*');
      // The second time native code knows it.
      for (let n = 0; n < 2; n += 1) {
        t.strictSame(problemsOf(await ask(feeds)), {
          ...{ open: undefined, 'team/a': required, 'team/nothing': required, plan: required }
        });
        const some = await ask(feeds, token);
        t.strictSame(problemsOf(some), {
          ...{ open: undefined, 'team/a': undefined, 'team/nothing': 'unknown-feed' },
          plan: 'not-granted'
        });
        t.strictSame(some.body.items.find(({ feed }) => feed === 'team/a').value, { secret: 1 });
      }
      t.equal(problemOf(await ask(feeds, hmac({ exp: inSeconds(-1) }))), 'grant-expired');
      t.equal((await ask({ open: '' }, 'nonsense')).status, 200);
    });

    t.test('a grant publishes what it says', async (t) => {
      const token = hmac({ exp: inSeconds(60), publish: ['team/x/*', 'solo', 'arena/*'] });
      const by = (key, method = 'PUT') =>
        server.ask(method, `/feed/${key}`, { body: '1', ...bearer(token) });
      t.equal((await by('team/x/1')).status, 201);
      t.equal((await by('team/x/1', 'DELETE')).status, 204);
      t.equal((await by('solo')).status, 201);
      t.equal((await by('solo', 'DELETE')).status, 204);
      for (const key of ['team/x', 'team/a', 'open']) {
        t.equal(problemOf(await by(key)), 'not-granted', key);
        t.equal(problemOf(await by(key, 'DELETE')), 'not-granted', key);
      }
      t.equal(problemOf(await by('arena/hall')), 'reserved-feed');
      t.equal(
        problemOf(await getWithToken(server, 'team/a', token)),
        'not-granted',
        'it does not read'
      );
      for (const [how, problem] of [
        [{}, 'grant-required'],
        [bearer('mistyped'), 'bad-grant']
      ]) {
        const refused = await server.ask('PUT', '/feed/open', { body: '1', ...how });
        t.equal(problemOf(refused), problem);
        t.match(refused.body.detail, / token .*--publish-token-file/, 'which is the other way');
      }
      t.equal(problemOf(await server.ask('GET', '/feeds', bearer(token))), 'bad-token');
    });

    t.test('joining takes a grant with join', async (t) => {
      for (const path of ['/join', '/arena/hall']) {
        const by = (token) => server.ask('POST', path, token === undefined ? {} : bearer(token));
        t.equal(problemOf(await by(undefined)), 'grant-required');
        t.equal(problemOf(await by(reads('*'))), 'not-granted');
        t.equal(problemOf(await by(hmac({ exp: inSeconds(-1), join: true }))), 'grant-expired');
        t.equal((await by(hmac({ exp: inSeconds(60), join: true }))).status, 201);
      }
    });

    t.test('a parked poll and a stream end with their grant', async (t) => {
      // Long enough to park everything below before the grant's end, on a busy machine too.
      const token = reads('team/a', { exp: inSeconds(6) });
      const { wire, answer } = await parkPrivate(server, token);
      const stream = await EventStream.open(server, 'team/a', { query: `grant=${token}` });
      t.strictSame((await stream.news()).data.value, { secret: 1 });
      const feeds = { open: (await get(server, 'open')).body.cursor, 'team/a': '' };
      feeds['team/a'] = (await getWithToken(server, 'team/a', token)).body.cursor;
      const many = await park(
        server,
        request('POST', '/feeds', { body: JSON.stringify({ hold: 10, feeds }), ...bearer(token) })
      );
      t.equal(problemOf(await answer), 'grant-expired');
      t.ok(Date.now() / 1000 >= JSON.parse(Buffer.from(token.split('.')[1], 'base64url')).exp);
      t.equal(problemOf(await many.answer), 'grant-expired');
      t.strictSame((await stream.news()).data, { feed: 'team/a', problem: 'grant-expired' });
      t.equal(await stream.next(), null, 'the stream has ended');
      t.equal(problemOf(await getWithToken(server, 'team/a', token)), 'grant-expired');
      // The connection stays open.
      wire.send(request('GET', '/feed/team/a', bearer(reads('team/a'))));
      t.equal((await server.read(wire)).status, 200);
    });

    t.test('a revocation ends what is parked, and its deletion lets in again', async (t) => {
      for (const [part, name, what] of [
        ['jti', 'one', 'jti/one'],
        ['jti', 'one?', 'jti?name=one?'],
        ['sub', 'ann@example/ü', `sub/${encodeURIComponent('ann@example/ü')}`],
        ['sub', '..', 'sub?name=..']
      ]) {
        const token = reads('team/a', { [part]: name });
        const other = reads('team/a', { [part]: 'another' });
        const { answer } = await parkPrivate(server, token);
        const stream = await EventStream.open(server, 'team/a', { query: `grant=${token}` });
        await stream.news();
        const left = await parkPrivate(server, other);
        t.equal((await revoke(server, what)).status, 204);
        t.equal(problemOf(await answer), 'bad-grant');
        t.strictSame((await stream.news()).data, { feed: 'team/a', problem: 'bad-grant' });
        t.equal(await stream.next(), null);
        t.equal(problemOf(await getWithToken(server, 'team/a', token)), 'bad-grant');
        const list = await (await revoke(server, '', 'GET')).json();
        t.equal(list.length, 1);
        t.equal(list[0][part], name);
        t.ok(list[0].seconds > 2591000);
        t.equal((await revoke(server, what, 'DELETE')).status, 204);
        t.equal((await getWithToken(server, 'team/a', token)).status, 200);
        await put(server, 'team/a', { secret: 1, at: Date.now() });
        t.equal((await left.answer).status, 200, 'another goes on');
        await put(server, 'team/a', { secret: 1 });
      }
      t.equal((await revoke(server, `sub/${'x'.repeat(201)}`)).status, 400);
      t.equal((await revoke(server, 'sub/', 'PUT')).status, 404);
      t.equal((await revoke(server, 'exp/1')).status, 404);
    });

    t.test('keys are read anew, and grants of one that is gone end', async (t) => {
      const token = reads('team/a');
      const other = ed25519({ exp: inSeconds(60), read: ['team/a'] });
      const endedPoll = await parkPrivate(server, token);
      const stays = await parkPrivate(server, other);
      const says = async (message) => {
        while (!server.errors.some((line) => line.includes(message))) await server.status();
      };
      writeFileSync(file, '{"keys":[]}');
      server.child.kill('SIGUSR2');
      await says('the keys of grants stay as they were');
      t.equal((await getWithToken(server, 'team/a', token)).status, 200);
      writeFileSync(file, `\uFEFF${JSON.stringify({ keys: [KEY_SET.keys[1]] })}`);
      server.child.kill('SIGUSR2');
      await says('the keys of grants are read anew');
      t.equal(problemOf(await endedPoll.answer), 'bad-grant');
      t.equal(problemOf(await getWithToken(server, 'team/a', token)), 'bad-grant');
      unlinkSync(file);
      execFileSync('mkfifo', [file]);
      const silentWriter = openSync(file, 'r+');
      server.child.kill('SIGUSR2');
      await says('the program that writes to it is silent');
      closeSync(silentWriter);
      await put(server, 'team/a', { news: 1 });
      t.equal((await stays.answer).status, 200);
      t.notMatch(server.errors.join('\n'), token, 'no grant is in the log');
      t.notMatch(server.errors.join('\n'), SECRET.toString('base64url'), 'no secret either');
    });

    await t.test('a private feed goes, and no client hears of it that may not', async (t) => {
      await remove(server, 'plan');
      t.equal(problemOf(await get(server, 'plan')), 'grant-required');
    });
  });
}

t.test('a restart keeps a revocation', async (t) => {
  const state = join(temporary(t), 'state');
  const options = { ...grantOptions(t), grants: keyFile(t), state, drain: 0 };
  const first = await startServer(t, { options });
  await put(first, 'plan', 1);
  const token = reads('plan', { sub: 'ann' });
  t.equal((await getWithToken(first, 'plan', token)).status, 200);
  t.equal((await revoke(first, 'sub/ann')).status, 204);
  await first.kill();
  const second = await startServer(t, { options });
  t.equal(problemOf(await getWithToken(second, 'plan', token)), 'bad-grant');
  t.equal((await getWithToken(second, 'plan', reads('plan', { sub: 'bo' }))).status, 200);
  t.equal((await revoke(second, 'sub/ann', 'DELETE')).status, 204);
  await second.kill();
  const third = await startServer(t, { options });
  t.equal((await getWithToken(third, 'plan', token)).status, 200);
});

for (const workers of [0, 1]) {
  t.test(`behind a cache, with ${workers} workers`, async (t) => {
    const options = { ...grantOptions(t), workers, grants: keyFile(t), 'feed-cache': 7 };
    const server = await startServer(t, { options });
    const cacheOf = ({ headers }) => headers['cache-control'];
    const { etag } = (await put(server, 'open', 1), await get(server, 'open')).headers;
    await put(server, 'plan', 1);
    const token = reads('*');
    const known = { headers: { ...bearer(token).headers, 'If-None-Match': '*' } };

    t.test('no cache may keep a private feed, by whatever way it is asked for', async (t) => {
      for (let n = 0; n < 2; n += 1) {
        const { headers, status, body } = await getWithToken(server, 'plan', token);
        t.strictSame(
          [status, headers['cache-control'], headers.etag],
          [200, 'no-store', undefined]
        );
        t.equal(cacheOf(await get(server, 'plan', `grant=${token}`)), 'no-store');
        t.equal((await get(server, 'plan', '', known)).status, 200);
        t.equal(cacheOf(await server.ask('HEAD', '/feed/plan', bearer(token))), 'no-store');
        const ping = await get(server, 'plan', `after=${body.cursor}&hold=5`, bearer(token));
        t.strictSame(Object.keys(ping.body), ['feed', 'cursor']);
        t.equal(cacheOf(ping), 'no-store');
        for (const [more, expected] of [
          [known, 1],
          [{}, 'grant-required']
        ]) {
          const both = await getMany(server, { open: '', plan: '' }, '', more);
          const { value, problem } = both.body.items.find(({ feed }) => feed === 'plan');
          t.strictSame([both.status, value ?? problem, cacheOf(both)], [200, expected, 'no-store']);
        }
      }
    });

    t.test('what a cache has does not tell that a private feed exists', async (t) => {
      for (const key of ['plan', 'team/nothing']) {
        const refusal = await get(server, key, '', { headers: { 'If-None-Match': '*' } });
        t.equal(problemOf(refusal), 'grant-required');
        t.equal(cacheOf(refusal), 'no-store');
      }
      // A worker without the value fetches it from the main thread, and answers 200.
      const { status } = await get(server, 'open', '', { headers: { 'If-None-Match': etag } });
      t.ok(status === 304 || (workers > 0 && status === 200), `an open one is ${status}`);
    });

    t.test('a grant appends to a log, whose parts have tags of their own', async (t) => {
      const append = (key, item, more) =>
        server.ask('POST', `/feed/${key}`, { ...more, body: item });
      const writes = hmac({ exp: inSeconds(60), publish: ['log'] });
      t.equal(problemOf(await append('log', '1', {})), 'grant-required');
      t.equal(problemOf(await append('other', '1', bearer(writes))), 'not-granted');
      const first = await append('log', '1', bearer(writes));
      t.equal(first.status, 201);
      t.equal((await append('log', '2', bearer(writes))).status, 200);
      const whole = await get(server, 'log');
      const rest = await get(server, 'log', `after=${first.body.cursor}`);
      t.strictSame([whole.body.items, rest.body.items], [[1, 2], [2]]);
      t.strictSame([whole, rest].map(cacheOf), [
        'public, s-maxage=1, max-age=0',
        'public, s-maxage=7, max-age=0'
      ]);
      t.not(whole.headers.etag, rest.headers.etag);
    });
  });
}
