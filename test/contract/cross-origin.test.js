import t from 'tap';

import { problemOf } from '../support/contract.js';
import { get, put, tokenFile } from '../support/feeds.js';
import { contract, refused } from '../support/server.js';

/** Sends a request for every kind of answer. The strict reader checks the headers, as in every test. */
async function everyAnswer(t, server) {
  const id = await server.join();
  for (const [name, ask] of Object.entries({
    'a throw': () => server.throw(id, 'left'),
    'a poll': () => server.poll(id),
    'the status': () => server.ask('GET', '/status'),
    'the status, its head': () => server.ask('HEAD', '/status'),
    'the page': () => server.ask('GET', '/'),
    'a preflight': () => server.ask('OPTIONS', `/throw/${id}/left`),
    'bad-edge': () => server.throw(id, 'top'),
    'ack-ahead': () => server.poll(id, 'ack=99'),
    'head-too-large': () => server.ask('GET', '/status', { headers: { X: 'x'.repeat(20000) } })
  })) {
    const answer = await ask();
    t.equal(problemOf(answer) ?? answer.status < 300, name.includes(' ') || name);
  }
}

contract(t, {}, (t, server) => {
  t.test('a throw sent as text/plain needs no preflight and is welcome', async (t) => {
    const id = await server.join();
    for (const type of [
      ...['text/plain', 'text/plain;charset=UTF-8', 'application/json'],
      ...['application/x-www-form-urlencoded', 'multipart/form-data; boundary=x', undefined]
    ]) {
      const { status } = await server.ask('POST', `/throw/${id}/left`, {
        headers: { 'Content-Type': type, Origin: 'https://example.org', 'Sec-Fetch-Mode': 'cors' },
        body: '{"kind":"ball"}'
      });
      t.equal(status, 202, type ?? 'no type');
    }
  });

  t.test('OPTIONS is answered, for every route', async (t) => {
    for (const target of [
      ...['/join', '/poll/x', '/throw/x/left', '/leave/x', '/place/x', '/status', '/', '*'],
      '/nowhere'
    ]) {
      const { status, headers } = await server.ask('OPTIONS', target, {
        headers: {
          Origin: 'https://example.org',
          'Access-Control-Request-Method': 'POST',
          'Access-Control-Request-Headers': 'content-type',
          'Access-Control-Request-Private-Network': 'true'
        }
      });
      t.equal(status, 204, target);
      t.match(headers['access-control-allow-methods'], /GET.*POST|POST.*GET/);
      t.match(headers['access-control-allow-headers'], /content-type/i);
      t.match(headers['access-control-max-age'], /^[0-9]+$/);
    }
  });

  t.test('a page may read when to come back, and no cookie is set', async (t) => {
    const { headers } = await server.ask('POST', '/leave/x', { headers: { Cookie: 'a=b' } });
    t.match(headers['access-control-expose-headers'], /Retry-After/);
    t.equal(headers['set-cookie'], undefined);
    t.equal(headers['access-control-allow-credentials'], undefined);
  });

  t.test('wrong methods are 405, with those that are right', async (t) => {
    const routes = {
      '/join': ['POST'],
      '/poll/x': ['GET'],
      '/throw/x/left': ['POST'],
      '/leave/x': ['POST'],
      '/place/x': ['GET'],
      '/status': ['GET', 'HEAD'],
      '/': ['GET', 'HEAD']
    };
    for (const [target, right] of Object.entries(routes)) {
      for (const method of ['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'PROPFIND']) {
        if (right.includes(method)) continue;
        const { status, headers } = await server.ask(method, target);
        t.equal(status, 405, `${method} ${target}`);
        t.strictSame(headers.allow?.split(', ').sort(), [...right, 'OPTIONS'].sort());
      }
    }
  });

  t.test('what is not there is not-found', async (t) => {
    for (const target of [
      ...['/nowhere', '/join/', '/join/x', '/Join', '//join', '/poll', '/poll/x/y', '/throw'],
      ...['/throw/x', '/throw/x/left/z', '/leave', '/place', '/favicon.ico', '/../../etc/passwd'],
      ...['/%2e%2e/%2e%2e/etc/passwd', '/..%2fpackage.json', '/package.json', '/page/index.html'],
      ...['/__proto__', '/constructor', '/j%6fin', '/join;x', '*', 'status']
    ]) {
      await refused(t, server, 'not-found', () => server.ask('GET', target), target);
    }
    await refused(t, server, 'not-found', () => server.ask('POST', '/nowhere', { body: '{}' }));
  });
});

const strict = { cors: 'https://example.org', 'publish-token-file': tokenFile(t) };

contract(t, { options: strict }, (t, server) => {
  t.test("an origin of the operator's choice", async (t) => {
    await everyAnswer(t, server);
    t.equal((await server.ask('GET', '/status')).headers.vary, 'Origin');
    t.equal((await server.ask('POST', '/leave/x')).headers.vary, 'Origin');
    await put(server, 'a', 1);
    t.equal((await get(server, 'a')).headers.vary, 'Origin, Accept-Encoding');
  });
});

contract(t, { options: { cors: 'none' } }, (t, server) => {
  t.test('no origin at all', (t) => everyAnswer(t, server));
});
