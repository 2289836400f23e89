import { Validator } from '@seriousme/openapi-schema-validator';
import t from 'tap';

import { Exchanges } from '../../lib/http/exchange.js';
import { problems } from '../../lib/http/problems.js';
import { NEEDS_BODY, createRoutes } from '../../lib/http/routes.js';
import { readOptions } from '../../lib/operator/options.js';
import { documentAt } from '../support/documents.js';

/**
 * Tests without a client: requests whose connections end between the door and the routes, and the completeness of the
 * OpenAPI document. Requests and answers are objects here.
 */

/** Returns the exchanges of a fake door that records its calls. */
function exchangesOver(handle, { isConnected = true } = {}) {
  const doorCalls = [];
  const answerFailure = () => ({ status: 500, headers: {}, body: 'failed' });
  const exchanges = new Exchanges({ handle, answerFailure });
  exchanges.door = {
    respond: (...answer) => doorCalls.push(answer.at(-1)),
    proceed: () => doorCalls.push('proceed'),
    abandon: () => doorCalls.push('abandon'),
    park: () => isConnected
  };
  const begin = (target, { connection = 1, generation = 1, fields = [] } = {}) =>
    exchanges.handleRequest(connection, generation, 'GET', target, fields);
  return { exchanges, begin, doorCalls };
}

t.test('fields of one name are a list, whatever it is', async (t) => {
  const seen = [];
  const { begin } = exchangesOver(async (request) => void seen.push(request));
  await begin('/', { fields: ['Accept', 'a/b', 'ACCEPT', 'c/d', '__proto__', 'e'] });
  t.strictSame({ ...seen[0].headers }, JSON.parse('{"accept":"a/b, c/d","__proto__":"e"}'));
});

t.test('an answer with a field that could end in its middle is none', async (t) => {
  for (const Location of ['a\r\nb', '☃', '\0', '\x7f']) {
    const { begin, doorCalls } = exchangesOver(async () => ({
      status: 200,
      headers: { Location }
    }));
    await begin('/');
    t.strictSame(doorCalls.pop(), 'failed', JSON.stringify(Location));
  }
});

t.test('what is parked is cancelled with its connection, once', async (t) => {
  const cancelled = [];
  const answers = [];
  const handle = ({ path: [name], park }) =>
    new Promise((resolve) => {
      answers.push(() => resolve({ status: 200, headers: {}, body: name }));
      park(() => cancelled.push(name));
    });
  const { exchanges, begin, doorCalls } = exchangesOver(handle);
  const parked = [begin('/a', { connection: 1 }), begin('/b', { connection: 2 })];
  answers[1]();
  await parked[1];
  t.equal(doorCalls.pop(), 'b');
  exchanges.cancelParked(1, 2);
  t.strictSame(cancelled, [], 'another request had that connection before');
  for (const connection of [1, 1, 2]) exchanges.cancelParked(connection, 1);
  t.strictSame(cancelled, ['a'], 'what is answered is parked no more');
  begin('/d', { connection: 1 });
  begin('/e', { connection: 1, generation: 2 });
  for (const generation of [1, 2]) exchanges.cancelParked(1, generation);
  t.strictSame(cancelled, ['a', 'd', 'e'], 'a worker tells late that a connection is gone');
  const disconnected = exchangesOver(handle, { isConnected: false });
  disconnected.begin('/c');
  t.strictSame(cancelled, ['a', 'd', 'e', 'c'], 'the connection was gone before');
  disconnected.exchanges.cancelParked(1, 1);
  t.equal(cancelled.length, 4);
});

t.test('what is answered when the door is closed goes nowhere', async (t) => {
  const answers = [];
  const cancelled = [];
  const { exchanges, begin, doorCalls } = exchangesOver(({ path: [name], park }) => {
    park(() => cancelled.push(name));
    return new Promise((resolve) => answers.push(resolve));
  });
  const handled = ['/a', '/b', '/c'].map((target, connection) => begin(target, { connection }));
  exchanges.cancelParked(0, 1);
  exchanges.close();
  t.strictSame(cancelled, ['a', 'b', 'c'], 'each is cancelled once');
  const [first, second, third] = answers;
  first({ status: 200, headers: {}, body: 'late' });
  second(NEEDS_BODY);
  third(null);
  await Promise.all(handled);
  begin('/d');
  t.equal(cancelled.pop(), 'd');
  t.strictSame(doorCalls, [], 'the native door is told nothing');
});

t.test('the OpenAPI document has every route, and every problem', async (t) => {
  const names = (text) => text.match(/urn:sprites:[a-z-]+/g).map((name) => name.slice(12));
  /** The manuals' table rows with a query. */
  const tables = ['lib/http/README.md', 'lib/arena/README.md'].flatMap((manual) => [
    ...documentAt(manual).matchAll(/^\| `([A-Z]+) ([^`?]+)\?([^`]+)`/gm)
  ]);
  t.ok(tables.length > 5, `${tables.length} were seen`);
  for (const arena of [['hall'], []]) {
    const options = { ...readOptions([]), arena };
    const { routes } = createRoutes({ pool: {}, feeds: { list() {} }, arena: {}, options });
    const answer = routes.get('openapi.json/1').GET();
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
    const all = Object.keys(problems).filter((name) => !problems[name].onlyPort);
    t.same([...new Set(names(answer.body))].sort(), all.sort());
    if (arena.length === 0) continue;
    for (const [what, method, path, query] of tables) {
      const parameterNames = document.paths[path]?.[method.toLowerCase()].parameters.map(
        ({ name }) => name
      );
      const wanted = [...query.matchAll(/(?:^|&)(\w+)=/g)].map(([, name]) => name);
      t.same(
        wanted.filter((name) => !parameterNames?.includes(name)),
        [],
        what
      );
    }
  }
});
