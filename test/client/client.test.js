import t from 'tap';
import { Client, Feeds } from '../../lib/client/client.js';
import { globalTimers } from '../../lib/client/requests.js';
import {
  HANG,
  RESET,
  answer,
  joined,
  problem,
  scripted,
  sprites,
  uncaught
} from '../support/page-fakes.js';
import { failWhenStuck } from '../support/until.js';
import { VirtualTime } from '../support/virtual-time.js';

failWhenStuck(t);

const BUSY = { 'retry-after': '2' };
const HERE = answer(200, { row: 3, column: 7, rows: 11, columns: 10 });

/** Starts a client on a scripted server, and collects its callbacks. */
function start(script, options = {}) {
  const clock = options.timers ?? new VirtualTime();
  const fetch = scripted({
    join: [joined('one')],
    place: [HERE],
    leave: [answer(204, '')],
    ...script
  });
  const reported = { sprites: [], states: [], resumes: [] };
  const client = new Client({
    base: 'http://torus.test:8080/',
    fetch,
    timers: clock,
    random: () => 0.5,
    onSprite: (sprite, { seq }) => reported.sprites.push(seq),
    onState: (state, { why }) => reported.states.push(why ? `${state}: ${why}` : state),
    onResume: (resume) => reported.resumes.push(resume),
    ...options
  });
  client.start();
  return { client, clock, fetch, reported };
}

/** Moves the clock until a promise resolves, and returns its value. */
async function inTime(clock, promise) {
  let ended;
  promise.then((value) => (ended = { value }));
  await clock.until(() => ended);
  return ended.value;
}

t.test('what a program has no room for stays in the mailbox, and is asked for again', async (t) => {
  let room = 2;
  const acceptedSeqs = [];
  const { client, clock, fetch, reported } = start(
    { poll: [sprites(1, 2, 3, 4), ...new Array(6).fill(sprites(3, 4)), HANG] },
    {
      onSprite: (sprite, { seq }) => {
        if (acceptedSeqs.length >= room) return false;
        acceptedSeqs.push(seq);
        return undefined;
      }
    }
  );
  const acks = () => fetch.of('poll').map(({ url }) => url.searchParams.get('ack'));
  await clock.run(2000);
  t.same(acceptedSeqs, [1, 2]);
  t.same(acks().slice(0, 2), ['0', '2'], 'what was taken is acked, the rest is not');
  t.ok(acks().length <= 5, `not in a tight loop: ${acks().length} polls`);
  t.equal(client.state, 'online');
  t.equal(client.resume.ack, 2);
  room = 9;
  client.wake();
  await clock.settle();
  t.same(acceptedSeqs, [1, 2, 3, 4], 'room again: waking up asks at once');
  t.equal(acks().at(-1), '4');
  t.equal(reported.states.join(), 'joining,online');
  await client.leave();
});

t.test('a program that fails over what it is told stops nothing', async (t) => {
  const caught = uncaught(t);
  const fail = (what) => () => {
    throw new Error(what);
  };
  const { client, clock, fetch } = start(
    { poll: [sprites(1, 2), HANG], throw: [answer(202, { state: 'queued' })] },
    {
      onState: fail('state'),
      onResume: fail('resume'),
      onSprite: (sprite, { seq }) => fail(`no room for ${seq}`)()
    }
  );
  await clock.settle();
  t.same(new Set(caught), new Set(['state', 'resume', 'no room for 1', 'no room for 2']));
  t.equal(fetch.of('poll').at(-1).url.search, '?ack=2&hold=120', 'it polls on');
  t.equal(client.state, 'online');
  t.match(await client.throw('left', {}), { thrown: true });
  await client.leave();
});

t.test('it may be woken at every moment between an answer and the next poll', async (t) => {
  const failed = [];
  for (let moment = 0; moment < 50; moment += 1) {
    let polls = 0;
    const { client, clock } = start(
      {},
      {
        limits: { quick: 0 },
        fetch: async (url, { signal }) => {
          if (url.includes('join')) return new Response(joined('one').body, { status: 201 });
          if (url.includes('place')) return new Response(HERE.body);
          if (url.includes('leave')) return new Response(null, { status: 204 });
          polls += 1;
          if (polls > 1) return new Promise((_, cut) => signal.addEventListener('abort', cut));
          return new Response(
            new ReadableStream({
              async start(body) {
                body.enqueue(new TextEncoder().encode('{"seq":0,"sprites":[]}'));
                body.close();
                for (let i = 0; i < moment; i += 1) await undefined;
                try {
                  client.wake();
                } catch ({ message }) {
                  failed.push([moment, message]);
                }
              }
            })
          );
        }
      }
    );
    await clock.settle();
    client.stop();
  }
  t.same(failed, []);
});

t.test(
  'a callback may stop in the middle of an answer: the rest comes with the next poll',
  async (t) => {
    const { client, clock, reported } = start(
      { poll: [sprites(1, 2), sprites(2), HANG] },
      {
        onSprite: (sprite, { seq }) => {
          reported.sprites.push(seq);
          if (seq === 1) client.stop();
        }
      }
    );
    await clock.settle();
    t.same(reported.sprites, [1]);
    t.equal(client.state, 'left');
    t.match(client.resume, { id: 'one', ack: 1, hold: 120, lease: 30, maxSprite: 16_384 });
    client.start();
    await clock.settle();
    t.same(reported.sprites, [1, 2]);
    t.equal(await client.leave(), true);
    t.equal(await client.leave(), true, 'leaving again is leaving');
    t.equal(client.resume, null);
  }
);

t.test('no answer at all, whatever is asked: it is as no connection', async (t) => {
  const { client, clock, fetch, reported } = start({
    join: [HANG, joined('one')],
    poll: [sprites(1), HANG, sprites(2), HANG],
    place: [HANG, HERE],
    throw: [HANG, answer(202, { state: 'duplicate' })]
  });
  await clock.until(() => client.resume?.ack === 2);
  t.same(reported.sprites, [1, 2]);
  t.same(reported.states, ['joining', 'offline: slow', 'online', 'offline: slow', 'online']);
  const outcome = await inTime(clock, client.throw('left', {}));
  t.match(outcome, { thrown: true, state: 'duplicate' });
  t.same(
    fetch.of('throw').map(({ url }) => url.search),
    ['?n=1', '?n=1']
  );
  await client.leave();
});

t.test('an answer too long to read is refused before it is read', async (t) => {
  const long = answer(200, { seq: 0, sprites: [] }, { 'content-length': '999999999' });
  const { client, clock, reported } = start({ poll: [long, HANG], place: [long] });
  await clock.until(() => client.state === 'offline');
  t.equal(reported.states.at(-1), 'offline: garbage');
  await client.leave();
});

t.test('after a stop no join is sent for a grant that comes late', async (t) => {
  let resolveGrant;
  const grant = () => new Promise((resolve) => (resolveGrant = resolve));
  const { client, clock, fetch } = start({}, { grant });
  await clock.settle();
  client.stop();
  resolveGrant('token');
  await clock.settle();
  t.equal(fetch.calls.length, 0);
});

t.test('superseded: it says so, and joins anew; a program may stop it instead', async (t) => {
  const over = answer(200, { seq: 0, sprites: [], superseded: true });
  const states = [];
  const { client, clock, fetch, reported } = start(
    { join: [joined('one'), joined('two')], poll: [over, HANG] },
    {
      onState(state) {
        states.push(state);
        if (state === 'superseded') client.stop();
      }
    }
  );
  await clock.run(300_000);
  t.equal(client.state, 'left');
  t.equal(reported.resumes.at(-1), null);
  t.equal(fetch.of('poll').length, 1);
  client.start();
  await clock.settle();
  t.equal(client.id, 'two');
  t.same(states, ['joining', 'online', 'superseded', 'left', 'joining', 'online']);
  await client.leave();
});

t.test('with a resume that is none it joins', async (t) => {
  const { client, clock, fetch } = start({ poll: [HANG] }, { resume: { id: 'a', ack: -1 } });
  await clock.settle();
  t.equal(fetch.calls[0].what, 'join');
  await client.leave();
});

t.test('waking up with a parked poll asks for the place; a fresh poll is left alone', async (t) => {
  const { client, clock, fetch, reported } = start({ poll: [HANG, sprites(1), HANG] });
  await clock.run(500);
  client.wake();
  await clock.settle();
  t.equal(fetch.of('poll').length, 1);
  await clock.run(60_000);
  client.wake();
  await clock.settle();
  t.same(
    fetch.of('poll').map(({ url }) => url.search),
    ['?ack=0&hold=120', '?ack=0&hold=120', '?ack=1&hold=120']
  );
  t.equal(fetch.of('place').length, 1);
  t.same(reported.states, ['joining', 'online'], 'the program was not alarmed');
  await client.leave();
});

t.test(
  'a poll that a program stopped and started again ends is not counted as a failure',
  async (t) => {
    const { client, clock, reported } = start({ poll: [HANG] });
    await clock.settle();
    client.stop();
    client.start();
    await clock.settle();
    t.same(reported.states, ['joining', 'online', 'left', 'joining', 'online']);
    await client.leave();
  }
);

for (const end of ['stop', 'leave']) {
  t.test(`a look under way ends without an answer after "${end}"`, async (t) => {
    const { client, clock } = start({ poll: [HANG], status: [HANG], place: [HANG] });
    await clock.settle();
    const looks = Promise.all([client.status(), client.place()]);
    const before = clock.now();
    await client[end]();
    t.same(await looks, [null, null]);
    t.equal(clock.now(), before);
  });
}

t.test('a look that succeeds ends no poll, and an answer of something else no wait', async (t) => {
  const { client, clock, fetch } = start({
    poll: [RESET, RESET, RESET, HANG],
    status: [answer(502, 'oh'), answer(200, { clients: 1 })]
  });
  await clock.until(() => client.state === 'offline');
  for (const polls of [3, 4, 4]) {
    await client.status();
    await clock.settle();
    t.equal(fetch.of('poll').length, polls);
    if (polls === 4) await clock.run(1500);
  }
  await client.leave();
});

// ---- throwing ----

t.test('a throw has a ticket, and a sprite may be text', async (t) => {
  const { client, clock, fetch, reported } = start({
    poll: [HANG],
    throw: [answer(202, { state: 'delivered' })]
  });
  await clock.settle();
  const ticket = { id: 'one', n: 1 };
  t.match(await client.throw('left', { id: 'x' }), { thrown: true, ticket });
  t.match(await client.throw('down', '{"id":"y"}'), { thrown: true });
  t.equal(reported.resumes.at(-1).n, 2);
  t.same(
    fetch.of('throw').map(({ url, body }) => [url.pathname + url.search, body]),
    [
      ['/throw/one/left?n=1', '{"id":"x"}'],
      ['/throw/one/down?n=2', '{"id":"y"}']
    ]
  );
  await client.leave();
});

t.test('a large throw has the time that its bytes take', async (t) => {
  const join = [joined('one', { maxSprite: 200_000 })];
  const { client, clock, fetch } = start({ join, poll: [HANG], throw: [HANG] });
  await clock.settle();
  client.throw('left', `{"photo":"${'x'.repeat(160_000)}"}`);
  await clock.run(19_990);
  t.equal(fetch.of('throw').length, 1);
  await clock.run(1000);
  t.equal(fetch.of('throw').length, 2);
  client.stop();
});

t.test('an edge or a sprite that is none is a mistake of the program', async (t) => {
  const { client } = start({ poll: [HANG] });
  await t.rejects(client.throw('north', {}), TypeError);
  await t.rejects(client.throw('left', undefined), /undefined is no sprite/);
  await client.leave();
});

t.test('a throw that is never answered ends unknown, with a ticket to ask again', async (t) => {
  const { client, clock, fetch } = start({
    poll: [HANG],
    throw: [RESET, RESET, RESET, RESET, RESET, answer(202, { state: 'duplicate' })]
  });
  await clock.settle();
  const outcome = await inTime(clock, client.throw('left', {}));
  t.match(outcome, { thrown: null, state: 'unanswered', ticket: { id: 'one', n: 1, tried: true } });
  t.equal(fetch.of('throw').length, 5);
  const ticket = JSON.parse(JSON.stringify(outcome.ticket));
  t.match(await client.throw('left', {}, { ticket }), { thrown: true, state: 'duplicate' });
  t.equal(fetch.of('throw').at(-1).url.search, '?n=1');
  await client.leave();
});

t.test('with patience a throw over an edge that rests waits its turn', async (t) => {
  const throws = [problem(503, 'neighbor-busy', BUSY), answer(202, { state: 'queued' })];
  const { client, clock } = start({ poll: [HANG], throw: throws });
  await clock.settle();
  const outcome = await inTime(clock, client.throw('left', {}, null));
  t.match(outcome, { thrown: true });
  t.equal(clock.now(), 2500);
  await client.leave();
});

t.test('a time that is too long for a timer is not over at once', async (t) => {
  const { setTimeout } = globalThis;
  t.teardown(() => (globalThis.setTimeout = setTimeout));
  const times = [];
  globalThis.setTimeout = (_, ms) => times.push(ms);
  for (const ms of [5, 2 ** 31, 1e300, Infinity]) globalTimers().setTimeout(() => {}, ms);
  t.strictSame(times, [5, ...Array.from({ length: 3 }, () => 2 ** 31 - 1)]);
});

t.test('a number of another place is never sent from this one: unknown', async (t) => {
  const { client, clock, fetch } = start({ poll: [HANG], throw: [HANG] });
  await clock.settle();
  const ticket = { id: 'zero', n: 1, tried: true };
  t.match(await client.throw('left', {}, { ticket }), { thrown: null, state: 'forgotten' });
  t.equal(fetch.of('throw').length, 0);
  await client.leave();
});

/** Returns a server that remembers the numbers of throws. */
function remembering() {
  let last = 0;
  return (n) => {
    last = Math.max(last, n);
    return n > last - 64 ? answer(202, { state: 'queued' }) : problem(400, 'stale-number');
  };
}

t.test('a throw that waits while many others fly is sent with a number of then', async (t) => {
  const answerThrow = remembering();
  const { client, clock } = start({
    poll: [HANG],
    throw: [
      problem(503, 'neighbor-busy', BUSY),
      ({ url }) => answerThrow(Number(url.searchParams.get('n')))
    ]
  });
  await clock.settle();
  const waiting = client.throw('left', {});
  await clock.settle();
  for (let i = 0; i < 70; i += 1) await client.throw('up', {});
  t.match(await inTime(clock, waiting), { thrown: true, state: 'queued' });
  await client.leave();
});

t.test('many throws at once: none is too late, and none looks at all others', async (t) => {
  const take = remembering();
  const arrived = [];
  let looks = 0;
  const watched = (ticket) =>
    new Proxy(ticket, { get: (of, name) => ((looks += name === 'tried'), of[name]) });
  const { client, clock } = start({
    poll: [HANG],
    throw: [
      ({ url: { searchParams } }) =>
        new Promise((go) => arrived.push(() => go(take(Number(searchParams.get('n'))))))
    ]
  });
  await clock.settle();
  const throwOne = () => client.throw('left', {}, { ticket: watched(client.ticket()) });
  const outcomes = Promise.all(Array.from({ length: 200 }, throwOne));
  await clock.settle();
  while (arrived.length > 0) {
    for (const answerIt of arrived.splice(0).reverse()) answerIt();
    await clock.settle();
  }
  t.same(new Set((await outcomes).map(({ state }) => state)), new Set(['queued']));
  t.ok(looks < 200 * 100, `${looks} looks`);
  await client.leave();
});

t.test('no place to throw from: yours, at once or after some patience', async (t) => {
  const { client, clock } = start({ join: [RESET] });
  await clock.settle();
  t.match(await client.throw('left', {}, { patience: 0 }), { thrown: false, state: 'offline' });
  const outcome = await inTime(clock, client.throw('left', {}, { patience: 9000 }));
  t.match(outcome, { thrown: false, state: 'offline' });
  t.equal(clock.now(), 9000);
  await client.leave();
  t.match(await client.throw('left', {}), { thrown: false, state: 'offline' });
});

for (const [state, ...said] of [
  ['offline', 404, 'unknown-client'],
  ['busy', 503, 'neighbor-busy', BUSY]
]) {
  t.test(`a throw that is answered ${said[1]} while the client leaves: yours`, async (t) => {
    let answerIt;
    const { client, clock, reported } = start({
      poll: [HANG],
      place: [problem(404, 'unknown-client')],
      throw: [() => new Promise((resolve) => (answerIt = resolve))]
    });
    await clock.settle();
    const thrown = client.throw('left', {});
    await clock.settle();
    const leaving = client.leave();
    t.equal(await client.place(), null);
    answerIt(problem(...said));
    t.match(await inTime(clock, thrown), { thrown: false, state });
    t.equal(await inTime(clock, leaving), true);
    t.same(reported.states, ['joining', 'online', 'left']);
    t.equal(clock.now(), 0);
  });
}

t.test('waking up while it leaves does not end the poll that proves the ack', async (t) => {
  const { client, clock, fetch } = start({ poll: [sprites(1), HANG] });
  await clock.run(2000);
  const left = client.leave();
  client.wake();
  t.equal(await inTime(clock, left), true);
  t.equal(fetch.of('poll').length, 3);
  t.equal(clock.now(), 2000);
});

t.test(
  'stopped while it leaves, or left while it is stopped, it starts and leaves anew',
  async (t) => {
    const leave = [HANG, answer(204, '')];
    const throws = [answer(202, { state: 'queued' })];
    const { client, clock } = start({ poll: [HANG], leave, throw: throws });
    for (const halt of [
      () => client.leave() && client.stop(),
      () => client.stop() ?? client.leave()
    ]) {
      await clock.settle();
      halt();
      await clock.settle();
      client.start();
      await clock.settle();
      t.match(await client.throw('left', {}, { patience: 0 }), { state: 'queued' });
    }
    t.equal(await inTime(clock, client.leave()), true);
    t.equal(client.state, 'left');
    t.equal(clock.now(), 0);
  }
);

t.test('the transient port: throws and leaves go there, polls do not', async (t) => {
  const { client, clock, fetch } = start({
    join: [joined('one', { transient: 9090 })],
    poll: [HANG],
    throw: [answer(202, { state: 'queued' })]
  });
  await clock.settle();
  await client.throw('left', {});
  t.equal(client.leaveUrl, 'http://torus.test:9090/leave/one');
  await client.leave();
  t.same(
    fetch.calls.map(({ what, url }) => `${what} ${url.port}`),
    ['join 8080', 'poll 8080', 'throw 9090', 'leave 9090']
  );
});

t.test(
  'a transient port without answers: the main port takes over, with the same number',
  async (t) => {
    const { client, clock, fetch } = start({
      join: [joined('one', { transient: 9090 })],
      poll: [HANG],
      throw: [({ url }) => (url.port === '9090' ? RESET : answer(202, { state: 'queued' }))]
    });
    await clock.settle();
    const outcome = await inTime(clock, client.throw('left', {}));
    t.match(outcome, { thrown: true });
    await client.throw('up', {});
    t.same(
      fetch.of('throw').map(({ url }) => url.port + url.search),
      ['9090?n=1', '8080?n=1', '8080?n=2']
    );
    await client.leave();
  }
);

t.test('behind TLS, or where it is no port, there is no transient port', async (t) => {
  for (const [base, transient] of [
    ['https://torus.test/', 9090],
    ['http://torus.test:8080/', 99_999],
    ['http://torus.test:8080/', '90']
  ]) {
    const { client, clock } = start(
      { join: [joined('one', { transient })], poll: [HANG] },
      { base }
    );
    await clock.settle();
    t.equal(client.leaveUrl, new URL('leave/one', base).href);
    await client.leave();
  }
});

t.test('a server under a path of its own', async (t) => {
  const { client, clock } = start(
    {},
    {
      base: 'https://example.org/sprites',
      fetch: scripted({
        sprites: [({ url }) => (url.pathname.endsWith('/join') ? joined('one') : HANG)]
      })
    }
  );
  await clock.settle();
  t.equal(client.leaveUrl, 'https://example.org/sprites/leave/one');
  client.stop();
});

t.test('a base that can be no server is a mistake of the program', async (t) => {
  const names = ['torus', 'torus:8080', 'ftp://torus', 'http://ann:x@torus'];
  for (const base of [...names, 'http://torus/?a=b', 'http://torus?', 'http://torus/#c']) {
    t.throws(() => new Client({ base, onSprite() {} }), TypeError, base);
    t.throws(() => new Feeds({ base }), TypeError, base);
  }
});
