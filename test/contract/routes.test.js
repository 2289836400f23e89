import { Validator } from '@seriousme/openapi-schema-validator';
import t from 'tap';

import { Exchanges } from '../../lib/http/exchange.js';
import { problems } from '../../lib/http/problems.js';
import { Awaited, AWAITS, createRoutes } from '../../lib/http/routes.js';
import { table } from '../../lib/operator/options.js';
import { Unanswerable } from '../../lib/torus/pool.js';
import { documentAt } from '../support/documents.js';

/** The routes without a socket: a request is an object, and so is the answer. */

const ID = '11111111-2222-4333-8444-555555555555';

/** Routes over a pool that answers as told. */
function routesOver(t, calls = {}, more = {}, chosen = {}) {
  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  const options = {
    ...Object.fromEntries(table.map(({ name, default: usual }) => [camel(name), usual])),
    ...{ hold: 120, lease: 30, maxSprite: 100, transientPort: 0, arena: [], cors: '*' },
    ...chosen
  };
  const refused = [];
  const errors = [];
  const { handle, routes } = createRoutes({
    pool: { refuse: (name) => name, ...calls },
    feeds: {},
    tokens: { open: true, admits: (header) => header === 'Bearer right' },
    options,
    log: { error: (error) => errors.push(error) },
    refusals: { refused: (what) => refused.push(what.why), joined() {} },
    status: () => ({ clients: 3 }),
    pages: { answer: () => undefined, has: () => false },
    ...more
  });
  const ask = (method, target, { body = '', ...rest } = {}) => {
    const url = new URL(target, 'http://x');
    const bytes = Buffer.from(body);
    return handle({
      ...{ method, path: url.pathname.split('/').slice(1), query: url.searchParams },
      ...{ headers: {}, address: '192.0.2.1', secure: false, park() {} },
      body: (most) => (bytes.length <= most ? bytes : null),
      ...rest
    });
  };
  return { ask, routes, refused, errors };
}

const problemOf = ({ body }) => JSON.parse(body).type.replace('urn:sprites:', '');

t.test('each route answers by status, headers and body', async (t) => {
  const { ask } = routesOver(t, {
    join: async () => ({ outcome: 'ok', id: ID }),
    throw: async () => 'queued',
    leave: async () => 'ok',
    place: async () => ({ row: 1, column: 2, rows: 3, columns: 4 })
  });
  const joined = await ask('POST', '/join');
  t.equal(joined.status, 201);
  t.match(JSON.parse(joined.body), { id: ID, hold: 120, lease: 30, maxSprite: 100 });
  t.equal(joined.headers['Content-Length'], joined.body.length);
  t.equal(joined.headers['Cache-Control'], 'no-store');
  const thrown = await ask('POST', `/throw/${ID}/left?n=1`, { body: '{}' });
  t.strictSame([thrown.status, thrown.body], [202, '{"state":"queued"}']);
  const left = await ask('POST', `/leave/${ID}`);
  t.strictSame(
    [left.status, left.body, left.headers['Content-Length']],
    [204, undefined, undefined]
  );
  t.equal((await ask('GET', `/place/${ID}`)).body, '{"row":1,"column":2,"rows":3,"columns":4}');
  t.equal((await ask('GET', '/status')).body, '{"clients":3}');
  t.equal((await ask('OPTIONS', '/anything')).status, 204);
});

t.test('what is wrong is a problem, and is told', async (t) => {
  const { ask, refused, errors } = routesOver(t, {
    throw: async () => 'neighbor-busy',
    leave: async () => {
      throw new Error('a defect');
    },
    place: async () => null,
    poll: () => ({ outcome: 'unknown-client' })
  });
  const cases = [
    ['POST', `/throw/${ID}/inside`, {}, 400, 'bad-edge'],
    ['POST', `/throw/${ID}/left?n=1&n=2`, {}, 400, 'bad-number'],
    ['POST', `/throw/${ID}/left?n=9007199254740992`, {}, 400, 'bad-number'],
    ['POST', `/throw/${ID}/left`, { body: ' '.repeat(101) }, 413, 'sprite-too-large'],
    ['POST', `/throw/${ID}/left`, { body: '{}' }, 503, 'neighbor-busy'],
    ['GET', `/poll/${ID}?hold=0`, {}, 400, 'bad-hold'],
    ['GET', `/poll/${ID}?hold=121`, {}, 400, 'bad-hold'],
    ['GET', `/poll/${ID}?ack=-1`, {}, 400, 'bad-ack'],
    ['GET', `/poll/${ID}`, {}, 404, 'unknown-client'],
    ['GET', `/place/${ID}`, {}, 404, 'unknown-client'],
    ['PUT', '/feed/a', {}, 401, 'bad-token'],
    ['GET', '/nothing', {}, 404, 'not-found'],
    ['DELETE', '/join', {}, 405, 'method-not-allowed'],
    ['constructor', '/join', {}, 405, 'method-not-allowed'],
    ['__proto__', '/feed/a', {}, 405, 'method-not-allowed'],
    ['POST', `/leave/${ID}`, {}, 500, 'internal-error']
  ];
  for (const [method, target, more, status, name] of cases) {
    const answer = await ask(method, target, more);
    t.strictSame([answer.status, problemOf(answer)], [status, name], `${method} ${target}`);
  }
  t.strictSame(
    refused,
    cases.map(([, , , , name]) => name).filter((name) => name !== 'internal-error')
  );
  t.match(errors, [{ err: { message: 'a defect' } }]);
  t.equal((await ask('DELETE', '/join')).headers.Allow, 'POST, OPTIONS');
});

t.test('a poll parks, and is answered later, or not at all', async (t) => {
  let later;
  const cancel = () => {};
  const polled = [
    (answer) => {
      later = answer;
      return { outcome: 'ok', cancel };
    },
    () => {
      throw new Unanswerable('gone');
    }
  ];
  const { ask } = routesOver(t, { poll: (id, how, answer) => polled.shift()(answer) });
  const parked = [];
  const poll = () => ask('GET', `/poll/${ID}?ack=1&hold=5`, { park: (how) => parked.push(how) });
  const first = poll();
  await null;
  t.strictSame(parked, [cancel]);
  later('{"seq":1}');
  t.equal((await first).body, '{"seq":1}');
  t.equal(await poll(), null, 'its connection is closed');
});

// ---- From the door to the routes, and back ------------------------------------------------------

/** The exchanges of a door that notes what it is told. */
function exchangesOver(handle, { isThere = true } = {}) {
  const told = [];
  const failed = () => ({ status: 500, headers: {}, body: 'failed' });
  const exchanges = new Exchanges({ handle, failed });
  exchanges.door = {
    respond: (connection, generation, status, fields, body) =>
      told.push([status, fields.toString('latin1'), body]),
    proceed: () => told.push('proceed'),
    abandon: () => told.push('abandon'),
    park: () => isThere
  };
  const begin = (method, target, how) => {
    const { fields, body, connection, generation } = {
      ...{ fields: [], body: Buffer.alloc(0), connection: 1, generation: 1 },
      ...how
    };
    return exchanges.begin(connection, generation, method, target, fields, body, '192.0.2.1', true);
  };
  return { exchanges, begin, told };
}

t.test('what the door has read is the request that a route gets', async (t) => {
  const seen = [];
  const { begin } = exchangesOver(async (request) => void seen.push(request));
  const targets = {
    '/poll/a?ack=1&hold=5': [['poll', 'a'], 'ack=1&hold=5'],
    'http://a.example:8080/feed/x/y?after': [['feed', 'x', 'y'], 'after='],
    'HTTPS://a.example?n=1': [[''], 'n=1'],
    '//join': [['', 'join'], ''],
    '/a%2Fb': [['a%2Fb'], ''],
    '*': [['/*'], ''],
    'join?n=1': [['/join'], 'n=1']
  };
  for (const [target, [path, query]] of Object.entries(targets)) {
    await begin('GET', target);
    const request = seen.pop();
    t.strictSame([request.path, String(request.query)], [path, query], target);
  }
  const fields = ['Host', 'x', 'Accept', 'a/b', 'ACCEPT', 'c/d', '__proto__', 'e'];
  await begin('PUT', '/feed/a', { fields, body: Buffer.from('12345') });
  const { method, headers, address, secure, ...request } = seen.pop();
  t.strictSame([method, address, secure], ['PUT', '192.0.2.1', true]);
  t.strictSame({ ...headers }, JSON.parse('{"host":"x","accept":"a/b, c/d","__proto__":"e"}'));
  t.equal(typeof request.park, 'function');
});

t.test('a body is there, too long, or awaited', async (t) => {
  let most;
  const { begin, told } = exchangesOver(async (request) => {
    try {
      const body = request.body(most);
      return { status: 200, headers: {}, body: String(body) };
    } catch (error) {
      if (error instanceof Awaited) return AWAITS;
      throw error;
    }
  });
  for (const [bytes, body, said] of [
    [5, Buffer.from('12345'), '12345'],
    [4, Buffer.from('12345'), 'null'],
    [5, null, 'null']
  ]) {
    most = bytes;
    await begin('PUT', '/', { body });
    t.strictSame(told.pop(), ['HTTP/1.1 200 OK\r\n', '\r\n', said]);
  }
  await begin('PUT', '/', { body: undefined });
  t.strictSame(told, ['proceed']);
});

t.test('what a route returns goes to the door, if a field can carry it', async (t) => {
  let answer;
  const { begin, told } = exchangesOver(async () => answer);
  answer = { status: 404, headers: { 'X-A': 1, 'X-B': 'b' }, body: 'no' };
  await begin('GET', '/');
  t.strictSame(told.pop(), ['HTTP/1.1 404 Not Found\r\n', 'X-A: 1\r\nX-B: b\r\n\r\n', 'no']);
  await begin('HEAD', '/');
  t.strictSame(told.pop().at(-1), undefined, 'HEAD has no body');
  answer = { status: 200, headers: { Location: 'é' }, body: 'yes' };
  await begin('GET', '/');
  t.strictSame(told.pop()[1], 'Location: é\r\n\r\n', 'a byte');
  for (const value of ['a\r\nb', '☃', '\0', '\x7f']) {
    answer = { status: 200, headers: { Location: value }, body: 'yes' };
    await begin('GET', '/');
    t.strictSame(told.pop().at(-1), 'failed', JSON.stringify(value));
  }
  answer = null;
  await begin('GET', '/');
  t.equal(told.pop(), 'abandon');
  answer = undefined;
  await begin('GET', '/');
  t.equal(told.length, 0, 'it watches');
});

t.test('what is parked is cancelled with its connection, once', async (t) => {
  const cancelled = [];
  const answers = [];
  const handle = ({ path: [name], park }) =>
    new Promise((resolve) => {
      answers.push(() => resolve({ status: 200, headers: {}, body: name }));
      park(() => cancelled.push(name));
    });
  const { exchanges, begin, told } = exchangesOver(handle);
  const parked = [begin('GET', '/a', { connection: 1 }), begin('GET', '/b', { connection: 2 })];
  answers[1]();
  await parked[1];
  t.equal(told.pop().at(-1), 'b');
  exchanges.gone(1, 2);
  t.strictSame(cancelled, [], 'another request had that connection before');
  for (const connection of [1, 1, 2]) exchanges.gone(connection, 1);
  t.strictSame(cancelled, ['a'], 'what is answered is parked no more');
  begin('GET', '/d', { connection: 1 });
  begin('GET', '/e', { connection: 1, generation: 2 });
  for (const generation of [1, 2]) exchanges.gone(1, generation);
  t.strictSame(cancelled, ['a', 'd', 'e'], 'a worker tells late that a connection is gone');
  const late = exchangesOver(handle, { isThere: false });
  late.begin('GET', '/c');
  t.strictSame(cancelled, ['a', 'd', 'e', 'c'], 'the connection was gone before');
  late.exchanges.gone(1, 1);
  t.equal(cancelled.length, 4);
});

t.test('what is answered when the door is closed goes nowhere', async (t) => {
  const answers = [];
  const cancelled = [];
  const { exchanges, begin, told } = exchangesOver(({ path: [name], park }) => {
    park(() => cancelled.push(name));
    return new Promise((resolve) => answers.push(resolve));
  });
  const begun = ['/a', '/b', '/c'].map((target, connection) =>
    begin('GET', target, { connection })
  );
  exchanges.gone(0, 1);
  exchanges.close();
  t.strictSame(cancelled, ['a', 'b', 'c'], 'each is cancelled once');
  const [first, second, third] = answers;
  first({ status: 200, headers: {}, body: 'late' });
  second(AWAITS);
  third(null);
  await Promise.all(begun);
  begin('GET', '/d');
  t.equal(cancelled.pop(), 'd');
  t.strictSame(told, [], 'the native door is told nothing');
});

t.test('the OpenAPI document has every route, and every problem', async (t) => {
  const names = (text) => text.match(/urn:sprites:[a-z-]+/g).map((name) => name.slice(12));
  /** Requests with a query, as the manuals have them. */
  const tables = ['lib/http/README.md', 'lib/arena/README.md'].flatMap((manual) => [
    ...documentAt(manual).matchAll(/^\| `([A-Z]+) ([^`?]+)\?([^`]+)`/gm)
  ]);
  t.ok(tables.length > 5, `${tables.length} were seen`);
  for (const arena of [['hall'], []]) {
    const { ask, routes } = routesOver(t, {}, { feeds: { list() {} }, arena: {} }, { arena });
    const answer = await ask('GET', '/openapi.json');
    t.equal(answer.status, 200);
    const document = JSON.parse(answer.body);
    const { valid, errors } = await new Validator().validate(structuredClone(document));
    t.ok(valid, JSON.stringify(errors));
    const there = Object.entries(document.paths).flatMap(([path, methods]) => {
      const segments = path.slice(1).split('/');
      const route = segments[0] === 'feed' ? 'feed' : `${segments[0]}/${segments.length}`;
      return Object.keys(methods).map((method) => `${route} ${method.toUpperCase()}`);
    });
    const wanted = [...routes].flatMap(([route, methods]) =>
      Object.keys(methods).map((method) => `${route} ${method}`)
    );
    t.same([...new Set(there)].sort(), wanted.sort());
    const ids = Object.values(document.paths).flatMap((one) => Object.values(one));
    t.equal(new Set(ids.map(({ operationId }) => operationId)).size, ids.length);
    const all = Object.keys(problems).filter((name) => !problems[name].at);
    t.same([...new Set(names(answer.body))].sort(), all.sort());
    if (arena.length === 0) continue;
    for (const [what, method, path, query] of tables) {
      const has = document.paths[path]?.[method.toLowerCase()].parameters.map(({ name }) => name);
      const wanted = [...query.matchAll(/(?:^|&)(\w+)=/g)].map(([, name]) => name);
      t.same(
        wanted.filter((name) => !has?.includes(name)),
        [],
        what
      );
    }
  }
});
