import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { Client } from '../../lib/client/client.js';
import { globalTimers, Requests } from '../../lib/client/requests.js';
import { listening } from '../support/addresses.js';
import { resetSocket } from '../support/http.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** Failures are waited out quickly here: the waits themselves are tested by a clock by hand. */
const LIMITS = { backoffFirst: 20, backoffMost: 100, busyLeast: 20 };

/** A client whose sprites can be waited for. */
class Catcher {
  sprites = [];
  states = [];
  #waiting = new Set();

  constructor(t, base, options = {}) {
    const tell = () => {
      for (const look of [...this.#waiting]) look();
    };
    this.client = new Client({
      base,
      limits: LIMITS,
      onSprite: (sprite, entry) => {
        this.sprites.push({ sprite, ...entry });
        tell();
      },
      onState: (state) => {
        this.states.push(state);
        tell();
      },
      ...options
    });
    t.teardown(() => this.client.leave());
    this.client.start();
  }

  get ids() {
    return this.sprites.map(({ sprite }) => sprite.id);
  }

  /** Waits until something about it is so. */
  until(isSo) {
    return new Promise((resolve) => {
      const look = () => {
        if (!isSo(this)) return;
        this.#waiting.delete(look);
        resolve();
      };
      this.#waiting.add(look);
      look();
    });
  }

  online() {
    return this.until(({ client }) => client.state === 'online');
  }
}

/** A network that, while it is bad, resets connections at random in both directions. */
async function badNetwork(t, port, { share = 0.2, seed = 1 } = {}) {
  let state = seed;
  const random = () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const open = new Set();
  const network = { bad: false, resets: 0 };
  const proxy = createServer((near) => {
    const far = connect(port, '127.0.0.1');
    open.add(near).add(far);
    const end = () => {
      near.destroy();
      far.destroy();
    };
    const reset = () => {
      network.resets += 1;
      resetSocket(near);
      resetSocket(far);
    };
    for (const [from, to] of [
      [near, far],
      [far, near]
    ]) {
      from.on('data', (chunk) => {
        if (!network.bad || random() >= share) {
          to.write(chunk);
          return;
        }
        // The whole, a part, or nothing of it still arrives.
        const part = chunk.subarray(0, Math.floor(random() * (chunk.length + 1)));
        if (random() < 0.5) to.write(random() < 0.5 ? chunk : part, reset);
        else reset();
      });
      from.on('close', end);
      from.on('error', end);
    }
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  t.teardown(() => {
    for (const socket of open) socket.destroy();
    proxy.close();
  });
  network.base = `http://127.0.0.1:${proxy.address().port}/`;
  return network;
}

t.test('against the server', async (t) => {
  const server = await startServer(t, { options: { 'throw-rate': 0 } });
  const base = `http://127.0.0.1:${server.port}/`;

  t.test('alone, a client catches what it throws', async (t) => {
    const one = new Catcher(t, base);
    await one.online();
    t.match(one.client.id, /^[0-9a-f-]{36}$/);
    t.equal(one.client.lease, 30);
    t.same(await one.client.place(), { row: 0, column: 0, rows: 1, columns: 1 });
    t.match(await one.client.status(), { clients: 1 });
    for (const [edge, from] of [
      ['left', 'right'],
      ['right', 'left'],
      ['up', 'down'],
      ['down', 'up']
    ]) {
      const count = one.sprites.length;
      t.match(await one.client.throw(edge, { edge, text: 'Grüße 🚀' }), { thrown: true });
      await one.until(({ sprites }) => sprites.length > count);
      t.match(one.sprites.at(-1), { sprite: { edge, text: 'Grüße 🚀' }, from });
    }
    t.equal(await one.client.leave(), true);
    await server.until(({ clients }) => clients === 0);
  });

  t.test('a throw repeated by its ticket is a duplicate, and arrives once', async (t) => {
    const one = new Catcher(t, base);
    await one.online();
    const { ticket } = await one.client.throw('up', { id: 'once' });
    t.match(await one.client.throw('up', { id: 'once' }, { ticket }), {
      thrown: true,
      state: 'duplicate'
    });
    await one.client.throw('up', { id: 'then' });
    await one.until(({ sprites }) => sprites.length >= 2);
    t.same(one.ids, ['once', 'then']);
    await one.client.leave();
  });

  t.test('what the server refuses is yours', async (t) => {
    const one = new Catcher(t, base);
    await one.online();
    t.match(await one.client.throw('up', '[1]'), {
      thrown: false,
      state: 'refused',
      problem: 'bad-sprite'
    });
    t.match(await one.client.throw('up', { a: 'x'.repeat(17_000) }), {
      thrown: false,
      state: 'refused',
      problem: 'sprite-too-large'
    });
    await one.client.leave();
  });

  t.test(
    'a later client takes up the place: the sprites that came meanwhile are there',
    async (t) => {
      let resume;
      const one = new Catcher(t, base, {
        onResume: (value) => {
          resume = value ?? resume;
        }
      });
      await one.online();
      await one.client.throw('up', { id: 'before' });
      await one.until(({ sprites }) => sprites.length === 1);
      one.client.stop();
      const kept = JSON.parse(JSON.stringify(resume));
      const thrown = await fetch(`${base}throw/${kept.id}/left`, {
        method: 'POST',
        body: '{"id":"meanwhile"}'
      });
      t.equal(thrown.status, 202);
      const two = new Catcher(t, base, { resume: kept });
      await two.until(({ sprites }) => sprites.length === 1);
      t.equal(two.client.id, kept.id);
      t.same(two.ids, ['meanwhile']);
      t.match(
        await two.client.throw('up', { id: 'after' }),
        { state: /delivered|queued/ },
        'by a number of its own'
      );
      await two.client.leave();
    }
  );

  t.test('superseded by another client with the same id', async (t) => {
    const one = new Catcher(t, base);
    await one.online();
    // Only a poll that is parked can be superseded.
    await server.until(({ parked }) => parked >= 1);
    const two = new Catcher(t, base, { resume: one.client.resume });
    await one.until(({ client }) => client.state === 'superseded');
    one.client.start();
    await one.online();
    t.not(one.client.id, two.client.id);
    await two.client.leave();
    await one.client.leave();
  });

  t.test('an id that was left: it joins anew, and the throw goes from there', async (t) => {
    const one = new Catcher(t, base);
    await one.online();
    const { id } = one.client;
    await fetch(one.client.leaveUrl, { method: 'POST' });
    await one.until(({ client }) => client.id !== id && client.state === 'online');
    t.match(await one.client.throw('up', {}), { thrown: true, ticket: { id: one.client.id } });
    await one.client.leave();
  });

  t.test('over a network that resets connections, every sprite arrives once', async (t) => {
    const network = await badNetwork(t, server.port);
    const catchers = Array.from({ length: 6 }, () => new Catcher(t, network.base));
    for (const catcher of catchers) await catcher.online();
    // From here on: a join whose answer is lost leaves a client behind without a program.
    network.bad = true;
    const places = catchers.map(({ client }) => client.id);
    const outcomes = await Promise.all(
      catchers.map(async ({ client }, i) => {
        const list = [];
        for (let n = 0; n < 25; n += 1) {
          const sprite = { id: `${i}-${n}` };
          const edge = ['left', 'right', 'up', 'down'][(i + n) % 4];
          let outcome = await client.throw(edge, sprite);
          for (let again = 0; outcome.thrown !== true && again < 50; again += 1) {
            outcome = await client.throw(edge, sprite, { ticket: outcome.ticket });
          }
          list.push(outcome);
        }
        return list;
      })
    );
    t.ok(
      outcomes.flat().every(({ thrown }) => thrown === true),
      'every throw was taken in the end'
    );
    t.same(
      catchers.map(({ client }) => client.id),
      places,
      'no place was lost'
    );
    network.bad = false;
    const caught = () => catchers.flatMap(({ ids }) => ids);
    await Promise.race([
      server.until(({ waiting }) => waiting === 0),
      ...catchers.map((catcher) => catcher.until(() => caught().length > 150))
    ]);
    t.equal(caught().length, 150, 'none too many, none missing');
    t.equal(new Set(caught()).size, 150, 'each of them once');
    t.ok(network.resets > 20, `${network.resets} connections were reset`);
    t.comment(
      `${network.resets} resets, ${(await server.status()).duplicates} throws had to be told apart`
    );
    await Promise.all(catchers.map(({ client }) => client.leave()));
  });
});

t.test('an answer that stalls is given up in time, whatever garbage is collected', async (t) => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc');
  let open = 0;
  const server = createServer((socket) => {
    open += 1;
    socket.on('error', () => {}).on('close', () => (open -= 1));
    socket.once('data', () => socket.write('HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n'));
  });
  const port = await listening(t, server);
  const requests = new Requests(fetch, globalTimers(), { requestTimeout: 500, answerMost: 100 });
  const collecting = setInterval(collect, 20);
  await t.rejects(requests.ask(`http://127.0.0.1:${port}/`, {}), { reason: 'slow' });
  await until(() => open === 0);
  t.pass('its connection is closed');
  clearInterval(collecting);
});

t.test('a redirect is an answer that no Sprites server gives', async (t) => {
  const server = createHttpServer((request, response) => {
    response.writeHead(307, { location: '/elsewhere' }).end('{}');
  });
  const port = await listening(t, server);
  const requests = new Requests(fetch, globalTimers(), { requestTimeout: 5000, answerMost: 100 });
  t.match(await requests.ask(`http://127.0.0.1:${port}/join`, {}), { status: 307 });
});

t.test('an answer that is small as it is sent and huge as it is read is refused', async (t) => {
  // A whole answer, of 64 MB; sent, it is a thousandth of that.
  const rest = { seq: 0, sprites: [], x: 'x'.repeat(64 << 20) };
  const bomb = gzipSync(JSON.stringify(rest));
  let polls = 0;
  const server = createHttpServer((request, response) => {
    const json = { 'Content-Type': 'application/json' };
    if (request.url.startsWith('/join')) {
      response.writeHead(201, json).end('{"id":"a-client","hold":120,"lease":30,"maxSprite":1000}');
    } else if (request.url.startsWith('/poll')) {
      polls += 1;
      response.writeHead(200, { ...json, 'Content-Encoding': 'gzip' }).end(bomb);
    } else {
      response.writeHead(204).end();
    }
  });
  const port = await listening(t, server);
  const whys = [];
  const catcher = new Catcher(t, `http://127.0.0.1:${port}`, {
    onState: (state, { why }) => whys.push(why ?? state)
  });
  while (polls < 2 && !whys.includes('garbage'))
    await new Promise((resolve) => setTimeout(resolve, 5));
  t.ok(whys.includes('garbage'), `it is no answer: ${whys}`);
  catcher.client.stop();
});
