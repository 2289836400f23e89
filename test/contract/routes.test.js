import t from 'tap';

import { createRoutes } from '../../lib/http/routes.js';
import { table } from '../../lib/operator/options.js';
import { Unanswerable } from '../../lib/torus/pool.js';

/** The routes without a socket: a request is an object, and so is the answer. */

const ID = '11111111-2222-4333-8444-555555555555';

/** Routes over a pool that answers as told. */
function routesOver(t, calls = {}, more = {}) {
  const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());
  const options = {
    ...Object.fromEntries(table.map(({ name, default: usual }) => [camel(name), usual])),
    ...{ hold: 120, lease: 30, maxSprite: 100, transientPort: 0, arena: [], cors: '*' }
  };
  const refused = [];
  const errors = [];
  const { handle } = createRoutes({
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
  return { ask, refused, errors };
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

t.test('a poll parks, and is answered later, refused later, or not at all', async (t) => {
  let later;
  let failed;
  const cancel = () => {};
  const { ask } = routesOver(t, {
    poll(id, how, answer, fail) {
      [later, failed] = [answer, fail];
      return { outcome: 'ok', cancel };
    }
  });
  const parked = [];
  const poll = () => ask('GET', `/poll/${ID}?ack=1&hold=5`, { park: (how) => parked.push(how) });
  const first = poll();
  await null;
  t.strictSame(parked, [cancel]);
  later('{"seq":1}');
  t.equal((await first).body, '{"seq":1}');
  const second = poll();
  await null;
  failed('draining');
  t.equal(problemOf(await second), 'draining');
  const third = poll();
  await null;
  failed(new Unanswerable('gone'));
  t.equal(await third, null, 'its connection is closed');
});
