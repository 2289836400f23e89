import t from 'tap';

import { parse } from '../../lib/swarm/options.js';
import { arenaOptions, tell, valueOf } from '../support/arena.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';

/** bin/sprites-swarm agent: machines that swarm by one hand. */

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
    // The value of the round before stands until there is one of this.
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
    [`agent ${at}/play/hall --rate 5`, /--rate is not of agent/],
    [`agent ${at}/play/hall --rate-max x`, /--rate-max x: must be/],
    [`agent ${at}/play/hall --insecure`, /about TLS/],
    ['throw 5 --clients-max 3', /--clients-max is of agent/],
    ['throw 5 --rate', /^--rate takes a number from .*, and nothing follows it$/],
    ['throw 5 --rate --json', /^--rate takes a number from .*, not the option --json$/],
    ['throw 5 --rate -1', /^--rate -1: must be a number/],
    ['throw 5 --json=1', /^--json takes no value, not "1"$/],
    ['throw 5 --raet 5', /^there is no option --raet; did you mean --rate\?$/]
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
