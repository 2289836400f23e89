import { existsSync } from 'node:fs';
import { createServer } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { parse } from '../../lib/swarm/options.js';
import { listening } from '../support/addresses.js';
import { arenaOptions, tell, valueOf } from '../support/arena.js';
import { keyFile } from '../support/grants.js';
import { childrenOf } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { until } from '../support/until.js';

/** bin/sprites-swarm agent: machines whose load one panel controls. */

const agent = (t, server, args = '') =>
  start(t, [
    'agent',
    `http://127.0.0.1:${server.port}/play/hall`,
    ...args.split(' ').filter(Boolean)
  ]);

const load = (server, holds) => valueOf(server, ({ value }) => value !== null && holds(value));

t.test('any number of machines swarm by one hand, and nothing is missing', async (t) => {
  const server = await startServer(t, { options: { ...arenaOptions(t, {}), lease: 5 } });
  const [one, other] = [agent(t, server), agent(t, server, '--clients-max 25 --rate-max 30')];

  await t.test('before its game it says why it waits', () =>
    Promise.all([one, other].map((machine) => machine.says(/another game is played/)))
  );

  await t.test('up and down', async (t) => {
    const settings = { clients: 40, throws: 60 };
    await tell(server, { game: 'load', running: true, settings });
    const up = await load(server, (now) => now.connections === 65 && now.perSecond > 70);
    t.match(up.value, { machines: 2, phones: 0, members: 65 });
    const bounded = up.value.list.map((row) => row.bounded).sort();
    t.strictSame(bounded, [0, 1], 'one of them is held by its own bounds');
    t.ok(up.value.p99 > 0);
    await tell(server, { settings: { clients: 5 } });
    await load(server, ({ connections, members }) => connections === 10 && members === 10);
    const settled = await load(server, ({ counted }) => counted > 200);
    t.match(settled.value, { missing: 0, torn: 0, broken: 0 });
    t.match(await server.status(), { lost: 0 });
  });

  await t.test('another round, and a machine that leaves with all counted', async (t) => {
    await tell(server, { running: false });
    await server.until(({ clients }) => clients === 0);
    await tell(server, { running: true });
    // The value of the last round stays until this round has one.
    for (const machine of [one, other]) await machine.says(/round 2: \d+ clients/);
    await load(server, ({ connections, perSecond }) => connections === 10 && perSecond > 0);
    other.kill('SIGTERM');
    t.match(await other.result(), { code: 0, err: /round 2: \d+ clients.*bounded by/ });
    const left = await load(server, ({ machines, counted }) => machines === 1 && counted > 20);
    t.match(left.value, { missing: 0, torn: 0, connections: 5 });
  });

  await t.test('another game is none of theirs', async () => {
    await tell(server, { game: 'pong', running: true });
    await server.until(({ clients, players }) => clients === 0 && players === 0);
  });

  await t.test('one that is killed is told of: what it held is not known', async (t) => {
    await tell(server, { game: 'load', running: true, settings: { clients: 3, throws: 20 } });
    await load(server, ({ connections }) => connections === 3);
    one.kill('SIGKILL');
    const { value } = await load(server, ({ torn }) => torn === 1);
    t.match(value, { machines: 0, connections: 0 });
  });
});

t.test('what it can not begin with, in a line', async (t) => {
  const at = 'http://127.0.0.1:1';
  const cases = [
    ['agent', /agent URL: the address of an arena/],
    [`agent ${at}/throw/x/left`, /agent URL/],
    ['agent ftp://127.0.0.1/play/hall', /agent URL/],
    [`agent ${at}/play/hall --rate 5`, /--rate is no option of agent/],
    [`agent ${at}/play/hall --rate-max x`, /--rate-max x: must be/],
    [`agent ${at}/play/hall --insecure`, /about TLS/],
    ['throw 5 --clients-max 3', /--clients-max is an option of agent/],
    ['throw 5 --rate -1', /^--rate -1: must be a number/]
  ];
  for (const [args, says] of cases) t.throws(() => parse(args.split(' ')), { message: says }, args);
  t.match(parse(['agent', 'https://[::1]:8443/control/hall', '--ca', 'x.pem']), {
    ...{ host: '::1', port: 8443, tls: true, arena: 'hall', rateMax: 10_000 }
  });
});

t.test('no server, or no such arena there', async (t) => {
  const options = { ...arenaOptions(t, {}), arena: 'hall,yard' };
  const { port } = await startServer(t, { options });
  const cases = [
    [`http://127.0.0.1:${port}/play/attic`, /no arena "attic" there: .*play\/hall.*play\/yard/],
    [`http://127.0.0.1:${port}`, /which arena\?/],
    ['http://127.0.0.1:1/play/hall', /nothing answers/]
  ];
  const ends = cases.map(([url]) => start(t, ['agent', url]).result());
  for (const [i, [url, err]] of cases.entries()) {
    t.match(await ends[i], { code: 2, out: '', err }, url);
  }
});

t.test('an arena for grants only is named as such', async (t) => {
  const options = { ...arenaOptions(t, {}), grants: keyFile(t), private: 'arena/*' };
  const one = agent(t, await startServer(t, { options }));
  await one.says(/no word of the arena \(grant-required\)/);
  one.kill('SIGTERM');
  t.match(await one.result(), { code: 0 });
});

t.test('a second signal ends it at once, and its engines, whatever the server does', async (t) => {
  const server = await startServer(t, { options: arenaOptions(t, {}) });
  const one = agent(t, server);
  await tell(server, { game: 'load', running: true, settings: { clients: 5, throws: 20 } });
  await load(server, ({ counted }) => counted > 0);
  const engines = childrenOf(one.pid);
  t.equal(engines.length, 1);
  server.child.kill('SIGSTOP');
  t.teardown(() => server.child.kill('SIGCONT'));
  one.kill('SIGTERM');
  await one.says(/leaving: what is under way has to arrive/);
  one.kill('SIGTERM');
  t.match(await one.result(), { code: null, signal: 'SIGTERM' }, 'not by its own end, later');
  await until(() => !existsSync(`/proc/${engines[0]}`));
});

/** Starts a foreign server. `answers[METHOD PATH]` is its answer, a text or a function. */
async function startStranger(t, answers) {
  const requests = [];
  const server = createServer((request, response) => {
    request.resume();
    const what = `${request.method} ${request.url}`;
    requests.push(what);
    const answer = answers[what] ?? answers.else;
    if (typeof answer === 'function') answer(response, request);
    else response.end(answer);
  });
  return { requests, base: `http://127.0.0.1:${await listening(t, server)}` };
}

const redirect = (response) => response.writeHead(302, { Location: '/elsewhere' }).end();

t.test('what a server says that has no arena is one line, whatever it is', async (t) => {
  const endless = (response) => {
    const writeMore = () => {
      while (!response.destroyed && response.write(`{"arenas":[${'x'.repeat(65536)}`));
    };
    response.on('drain', writeMore);
    writeMore();
  };
  const lists = ['null', '7', '{"arenas":[null]}', '{"arenas":[{"name":7}]}', '{"arenas":"x"}'];
  const cases = [
    ...lists.map((list) => [list, /has no arena/]),
    ['{"arenas":[{"name":"\\u001b]0;x"}]}', /has no arena/],
    ['<html>', /nothing answers at .* \(what does is no list of arenas\)/],
    [endless, /nothing answers at .* \(what does is no list of arenas\)/],
    [redirect, /answers 302, a redirect, which is not followed: give the URL/],
    [(response) => response.writeHead(500).end(), /has no arena/],
    [(response) => response.write('{"arenas":'), /nothing answers at .* \(not in time\)/, 1]
  ];
  const ends = cases.map(async ([answer, says, wait = 60]) => {
    const { base, requests } = await startStranger(t, { else: answer });
    const { code, signal, out, err } = await start(t, `agent ${base} --wait ${wait}`).result();
    t.strictSame({ code, signal, out }, { code: 2, signal: null, out: '' }, err);
    t.match(err, says);
    t.match(err, /^sprites-swarm: [ -~]+\n$/, 'one line');
    t.strictSame(requests, ['GET /arena']);
  });
  await Promise.all(ends);
});

t.test('a signal while the server does not answer ends it', async (t) => {
  const { base, requests } = await startStranger(t, { else: () => {} });
  const child = start(t, `agent ${base} --wait 600`);
  await until(() => requests.length > 0);
  child.kill('SIGTERM');
  t.match(await child.result(), { code: null, signal: 'SIGTERM' });
});

t.test('no feed of a stranger’s ends it, or has it do more than it shall', async (t) => {
  const hall = { feed: 'arena/hall/control', cursor: 'a-1' };
  const good = { game: 'load', running: true, round: 1, settings: { clients: 1, throws: 1 } };
  const controls = [
    good,
    null,
    7,
    [],
    { ...good, round: '1\0' },
    { ...good, round: 'x'.repeat(300_000) },
    ...[-1, 1.5, 2 ** 53, 1e300, null, [], '1'].map((round) => ({ ...good, round })),
    { ...good, settings: null, running: 'yes' },
    { ...good, round: 2, settings: { clients: '5\nquit', throws: -1 } },
    { ...good, round: 3, settings: { clients: 1e300, throws: [] } },
    // More rounds than the most engines.
    ...Array.from({ length: 14 }, (_, n) => ({ ...good, round: 100 + n })),
    { ...good, game: 'over' }
  ];
  const joins = [
    { player: '../x', number: 0 },
    { player: 'x', number: '7' },
    { player: 'me', number: 1, lease: 1e300, rate: 1e300 }
  ];
  let version = 0;
  let players = 0;
  const json = (value) => (response) => {
    response.setHeader('Content-Type', 'application/json');
    response.end(JSON.stringify(value));
  };
  const { base, requests } = await startStranger(t, {
    'GET /arena': '{"arenas":[{"name":"hall"}]}',
    'POST /feeds': async (response) => {
      const value = controls[version];
      version += 1;
      if (version > controls.length) return;
      // The agent joins before the next control comes, and engines have time to start.
      if (version > 1) await until(() => players >= joins.length);
      if (version > 15) await pause(400);
      const reduced = { game: 'load', round: value?.round, value: { batch: 7 } };
      const items = [
        { ...hall, cursor: `a-${version}`, value },
        { feed: 'arena/hall', cursor: `b-${version}`, value: reduced }
      ];
      json({ items })(response);
    },
    'POST /arena/hall': (response) => {
      response.statusCode = 201;
      json(joins[Math.min(players, joins.length - 1)])(response);
      players += 1;
    },
    'POST /arena/hall/me/leave': redirect,
    'POST /join': (response) => {
      response.statusCode = 201;
      json({ id: 'c', hold: 120 })(response);
    },
    // Inputs are accepted, polls are parked, and leaves of an engine's clients get no answer.
    else: (response, { method, url }) => {
      if (method === 'POST' && url.startsWith('/arena')) response.writeHead(204).end();
    }
  });
  const child = start(t, `agent ${base}/play/hall --clients-max 2 --rate-max 2`);
  let most = 0;
  await until(() => {
    most = Math.max(most, childrenOf(child.pid).length);
    return requests.includes('POST /arena/hall/me/leave') && version > controls.length;
  });
  t.ok(most <= 5, `${most} engines at once`);
  child.kill('SIGTERM');
  const { code, err } = await child.result();
  t.equal(code, 0, err.slice(0, 2000));
  t.notMatch(err, /Error|node:|\.js:/, 'no stack');
  t.notOk(
    requests.some((what) => what.includes('elsewhere')),
    'its leave follows no redirect either'
  );
});
