import t from 'tap';

import { checkAnswer, problemOf } from '../support/contract.js';
import { request, Wire } from '../support/http.js';
import { startServer } from '../support/server.js';

/**
 * Limits of one source address on shared resources: an attack from one address does not harm clients at others.
 */

const HOSTILE = '127.0.6.6';

/** A client at an address. Its requests use one connection, so they are in order. */
class Visitor {
  #wire;

  static async open(server, address) {
    const visitor = new Visitor();
    visitor.#wire = await Wire.open(server.port, server.host, address);
    return visitor;
  }

  async ask(method, target, more) {
    const [answer] = await this.askAll([[method, target, more]]);
    return answer;
  }

  /** Pipelines requests, 20 at a time, and reads their answers. */
  async askAll(requests) {
    const answers = [];
    for (let i = 0; i < requests.length; i += 20) {
      const some = requests.slice(i, i + 20);
      this.#wire.send(Buffer.concat(some.map((one) => request(...one))));
      while (answers.length < i + some.length) answers.push(checkAnswer(await this.#wire.read()));
    }
    return answers;
  }

  async join(count = 1) {
    const joins = Array.from({ length: count }, () => ['POST', '/join']);
    return (await this.askAll(joins)).map(({ body }) => body.id);
  }

  throw(id, edge, body = '{}') {
    return this.ask('POST', `/throw/${id}/${edge}`, { body });
  }

  close() {
    return this.#wire.destroy();
  }
}

const EDGES = ['left', 'right', 'up', 'down'];

const testShare = (name, options, test) =>
  t.test(name, async (t) => {
    const server = await startServer(t, { options });
    await test(t, server);
    await server.stop();
  });

testShare('what is held for one address', { 'address-held': '64K' }, async (t, server) => {
  // Each connection parks a poll, and pipelines 15 kB behind it.
  const wires = [];
  const refused = [];
  for (let i = 0; i < 6; i += 1) {
    const wire = await Wire.open(server.port, server.host, HOSTILE);
    wires.push(wire);
    wire.send(request('POST', '/join'));
    const { id } = (await wire.read()).body;
    const { polls } = await server.status();
    wire.send(request('GET', `/poll/${id}`));
    await server.until((status) => status.polls > polls);
    const { heldBytes } = await server.status();
    wire.send('x'.repeat(15000));
    wire.read().then(
      (answer) => refused.push(checkAnswer(answer)),
      () => {}
    );
    await server.until((status) => status.heldBytes > heldBytes || refused.length > 0);
  }
  t.ok(refused.length > 0, 'the last are refused');
  for (const answer of refused) t.equal(problemOf(answer), 'too-much-held');
  const headWire = await Wire.open(server.port, server.host, HOSTILE);
  headWire.send('HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 15000\r\n\r\n1');
  t.equal((await headWire.read({ head: true })).status, 503);
  await headWire.closed();
  t.equal(headWire.unreadBytes.length, 0, 'the refusal of a HEAD request has no content');
  await headWire.destroy();
  const { heldBytes, parked } = await server.status();
  t.ok(heldBytes <= 65536, `${heldBytes} bytes are held`);
  t.equal(parked, 6 - refused.length, 'what was parked there is no more');
  const other = await Visitor.open(server, '127.0.1.1');
  const [id] = await other.join();
  t.equal((await other.throw(id, 'left')).status, 202, 'others are served');
  await Promise.all([...wires.map((wire) => wire.destroy()), other.close()]);
  await server.until((status) => status.heldBytes === 0);
});

testShare(
  'memory for the sprites of one address',
  { 'address-memory': '4K', 'throw-rate': 0 },
  async (t, server) => {
    const hostile = await Visitor.open(server, HOSTILE);
    const honest = await Visitor.open(server, '127.0.1.1');
    const [thrower, other] = await hostile.join(2);
    const [victim] = await honest.join();
    let accepted = 0;
    let refused;
    for (let i = 0; refused === undefined && i < 9; i += 1) {
      const answer = await hostile.throw(i % 2 ? thrower : other, EDGES[i % 4]);
      if (answer.status === 202) accepted += 1;
      else refused = answer;
    }
    t.equal(accepted, 4, 'each counts as 1 KiB');
    t.equal(problemOf(refused), 'too-many-sprites');
    t.equal((await honest.throw(victim, 'left')).status, 202, 'others throw');
    // After the clients have left, the waiting sprites still count for their thrower's address.
    for (const id of [thrower, other]) await hostile.ask('POST', `/leave/${id}`);
    const [again] = await hostile.join();
    t.equal(problemOf(await hostile.throw(again, 'left')), 'too-many-sprites', 'and still has');
    t.equal((await server.status()).waiting, 5);
    await hostile.ask('POST', `/leave/${again}`);
    const { body } = await honest.ask('GET', `/poll/${victim}`);
    t.equal(body.sprites.length, 5);
    // The ack is applied at once. The next sprite answers this poll.
    const acking = honest.ask('GET', `/poll/${victim}?ack=${body.seq}`);
    await server.until(({ waiting }) => waiting === 0);
    const [back] = await hostile.join();
    t.equal((await hostile.throw(back, 'left')).status, 202, 'what was acked is no longer its');
    for (const edge of EDGES.slice(1)) await hostile.throw(back, edge);
    await acking;
    await hostile.close();
    await honest.close();
  }
);

testShare(
  'sprites that hostile clients take and pass on are charged to these',
  { 'address-memory': '4K', 'throw-rate': 0 },
  async (t, server) => {
    const hostile = await Visitor.open(server, HOSTILE);
    const honest = await Visitor.open(server, '127.0.1.1');
    const [id] = await honest.join();
    const [one] = await hostile.join();
    const throwAll = async (n) => {
      const all = Array.from({ length: n }, () => ['POST', `/throw/${id}/left`, { body: '{}' }]);
      return (await honest.askAll(all)).map(({ status }) => status);
    };
    t.strictSame(await throwAll(5), [202, 202, 202, 202, 429], 'its share waits at the other');
    const [two] = await hostile.join();
    await hostile.ask('POST', `/leave/${one}`);
    t.strictSame(await throwAll(5), [202, 202, 202, 202, 429], 'it has its share again');
    const none = await hostile.throw(two, 'up');
    t.equal(problemOf(none), 'too-many-sprites', 'the client that left them has none');
    await hostile.ask('POST', `/leave/${two}`);
    t.strictSame(await throwAll(4), [202, 202, 202, 202], 'nor does it end there');
    t.equal((await server.status()).waiting, 12, 'and none is lost');
    const { body } = await honest.ask('GET', `/poll/${id}`);
    t.equal(body.sprites.length, 12);
    const acking = honest.ask('GET', `/poll/${id}?ack=${body.seq}`);
    await server.until(({ waiting }) => waiting === 0);
    const [back] = await hostile.join();
    for (const edge of EDGES) t.equal((await hostile.throw(back, edge)).status, 202, 'acked');
    await acking;
    await Promise.all([hostile.close(), honest.close()]);
  }
);

testShare(
  'polls of one client that ack nothing',
  { 'poll-rate': 1, 'poll-burst': 3, 'throw-rate': 0 },
  async (t, server) => {
    const visitor = await Visitor.open(server, HOSTILE);
    const [id] = await visitor.join();
    // A client alone catches its own sprites.
    const throws = async () => {
      for (const edge of EDGES) t.equal((await visitor.throw(id, edge)).status, 202);
    };
    await throws();
    const target = `/poll/${id}?ack=0`;
    const first = await visitor.ask('GET', target);
    let refused;
    for (let i = 0; refused === undefined && i < 20; i += 1) {
      const answer = await visitor.ask('GET', target);
      if (answer.status === 200) t.same(answer.body, first.body, 'the same again');
      else refused = answer;
    }
    t.equal(problemOf(refused), 'too-many-polls');
    t.equal((await server.status()).waiting, 4, 'and nothing is acked');
    // A client that acks may poll as often as sprites come.
    let { seq } = first.body;
    for (let i = 0; i < 10; i += 1) {
      await throws();
      const { status, body } = await visitor.ask('GET', `/poll/${id}?ack=${seq}`);
      t.equal(status, 200, 'an ack is always taken');
      seq = body.seq;
    }
    await visitor.close();
  }
);

testShare(
  'a mailbox that is full of one address takes the throws of others',
  { mailbox: 4, 'throw-rate': 0 },
  async (t, server) => {
    const hostile = await Visitor.open(server, HOSTILE);
    const honest = await Visitor.open(server, '127.0.1.1');
    // With two clients, each throws at the other over two edges, and at itself over the other two.
    const [full] = await hostile.join();
    const [id] = await honest.join();
    const answers = [];
    for (let n = 0; n < 20; n += 1) answers.push(await hostile.throw(full, EDGES[n % 4]));
    t.equal(answers.filter(({ status }) => status === 202).length, 8, 'both mailboxes are full');
    t.equal(problemOf(answers.at(-1)), 'neighbor-busy');
    t.equal(problemOf(await hostile.throw(full, EDGES[0])), 'neighbor-busy', 'for that address');
    const taken = [];
    for (let n = 0; n < 20; n += 1) {
      const answer = await honest.throw(id, EDGES[n % 4]);
      if (answer.status === 202) taken.push(n);
      else t.equal(problemOf(answer), 'neighbor-busy');
    }
    t.equal(taken.length, 8, 'as many again, and no more');
    await Promise.all([hostile.close(), honest.close()]);
  }
);

testShare(
  'the junk of clients that have left keeps no client from throwing',
  {},
  async (t, server) => {
    const honest = await Promise.all([1, 2, 3].map((n) => Visitor.open(server, `127.0.1.${n}`)));
    const ids = [];
    for (const one of honest) ids.push(...(await one.join()));

    // 400 clients of one address throw 40 each, all at once, and leave.
    const hostile = await Visitor.open(server, HOSTILE);
    const crowd = await hostile.join(400);
    const throws = crowd.flatMap((id) =>
      Array.from({ length: 40 }, (_, i) => ['POST', `/throw/${id}/${EDGES[i % 4]}`, { body: '{}' }])
    );
    const taken = (await hostile.askAll(throws)).filter(({ status }) => status === 202).length;
    await hostile.askAll(crowd.map((id) => ['POST', `/leave/${id}`]));
    const { waiting } = await server.until(({ clients }) => clients === 3);
    t.ok(taken > 1000 && waiting === taken, `${waiting} wait for the three`);

    // The three honest clients go on: they throw in turn, and catch sprites.
    const acks = ids.map(() => 0);
    const caught = { honest: 0, junk: 0 };
    async function read(i) {
      const { body } = await honest[i].ask('GET', `/poll/${ids[i]}?ack=${acks[i]}&hold=5`);
      for (const { sprite } of body.sprites) caught['honest' in sprite ? 'honest' : 'junk'] += 1;
      acks[i] = body.seq;
    }
    // Their mailboxes are full of sprites from the attack.
    for (const i of ids.keys()) await read(i);
    for (let round = 1; round <= 20; round += 1) {
      for (const [i, id] of ids.entries()) {
        const answer = await honest[i].throw(id, EDGES[round % 4], `{"honest":${round}}`);
        t.equal(answer.status, 202, `a throw gets in: ${problemOf(answer)}`);
      }
      for (const i of ids.keys()) await read(i);
      t.equal(caught.honest, round * 3, 'and arrives with the next poll');
    }
    t.ok((await server.status()).waiting > 5000, 'while the junk still waits');
    t.equal((await server.status()).lost, 0);
    await Promise.all([hostile, ...honest].map((one) => one.close()));
  }
);
