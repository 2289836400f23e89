import t from 'tap';

import { Player } from '../../lib/client/player.js';
import { HANG, RESET, answer, problem, scripted, uncaught } from '../support/page-fakes.js';
import { failWhenStuck } from '../support/until.js';
import { VirtualTime } from '../support/virtual-time.js';

failWhenStuck(t);

/** The phone's player on a scripted server: its requests, their times, and its states. */

const BASE = 'http://arena.test/arena/hall';
const TAKEN = { status: 204 };
const joins = (number, more = {}) =>
  answer(201, { player: `p${number}`, number, rate: 4, lease: 30, ...more });

/** Starts a player on a scripted server, and collects its callbacks, its requests and its stored values. */
function start(script, options = {}) {
  const clock = new VirtualTime();
  const fetch = scripted({ arena: script });
  const states = [];
  const saved = [];
  const player = new Player({
    base: BASE,
    fetch,
    timers: clock,
    random: () => 0.5,
    onState: (state, { why, again }) =>
      states.push([state, why, again && 'again'].filter(Boolean).join(': ')),
    onSave: (what) => saved.push(what),
    ...options
  });
  const sent = () =>
    fetch.calls.map(({ url, body }) => [
      `${url.pathname.slice('/arena/hall'.length)}${url.search}`,
      body === '' ? '' : JSON.parse(body)
    ]);
  player.start();
  return { player, clock, fetch, states, saved, sent };
}

t.test('it joins, and sends the newest input as often as it shall', async (t) => {
  const { player, clock, states, saved, sent } = start([joins(7), TAKEN]);
  player.addInput({ y: 0.1 });
  await clock.settle();
  t.equal(player.number, 7);
  t.equal(player.leaveUrl, `${BASE}/p7/leave`);
  t.strictSame(saved, [{ player: 'p7', number: 7, lease: 30, n: 0 }]);
  await clock.run(250);
  for (const y of [0.2, 0.3, 0.4]) player.addInput({ y });
  player.addInput({ taps: 1 });
  await clock.run(249);
  t.strictSame(sent().slice(1), [['/p7?n=1', { y: 0.1 }]], 'four a second, and no more');
  await clock.run(1);
  t.strictSame(sent().at(-1), ['/p7?n=2', { y: 0.4, taps: 1 }], 'the newest of each');
  player.setRate(20);
  player.addInput({ y: 0.5 });
  await clock.run(50);
  t.strictSame(sent().at(-1), ['/p7?n=3', { y: 0.5 }], 'the panel has changed the rate');
  t.strictSame(states, ['online']);
});

t.test('a player without news says three times a lease that it is there', async (t) => {
  const { clock, sent } = start([joins(1, { lease: 6 }), TAKEN]);
  await clock.run(6000);
  t.strictSame(sent().slice(1), [
    ['/p1?n=1', {}],
    ['/p1?n=2', {}],
    ['/p1?n=3', {}]
  ]);
});

t.test('one input is under way at a time: over a slow network they become fewer', async (t) => {
  const { player, clock, states, fetch, sent } = start([joins(1), HANG, TAKEN]);
  for (let i = 0; i < 100; i += 1) {
    player.addInput({ y: i });
    await clock.run(50);
  }
  t.equal(fetch.calls.length, 2);
  await clock.until(() => fetch.calls.length === 4);
  t.strictSame(sent().at(-1), ['/p1?n=3', { y: 99 }], 'and none is old');
  t.strictSame(states, ['online', 'offline: slow', 'online']);
});

t.test('an input that is refused as one too many goes out later, and is no loss', async (t) => {
  const busy = problem(429, 'too-many-inputs', { 'retry-after': '1' });
  const { player, clock, states, sent } = start([joins(1), busy, TAKEN]);
  player.addInput({ y: 0.1 });
  await clock.run(250);
  player.addInput({ y: 0.2 });
  await clock.run(1249);
  t.equal(sent().length, 2, 'not before the server has asked for');
  await clock.run(1);
  t.strictSame(sent().at(-1), ['/p1?n=2', { y: 0.2 }]);
  t.strictSame(states, ['online']);
});

t.test('a forgotten player joins again with all that holds, and says so', async (t) => {
  const unknownPlayer = problem(404, 'unknown-player');
  const { player, clock, states, saved, sent } = start([
    joins(1),
    TAKEN,
    unknownPlayer,
    joins(2),
    TAKEN
  ]);
  player.addInput({ y: 0.1, taps: 3 });
  await clock.run(250);
  player.addInput({ y: 0.2 });
  await clock.run(500);
  t.strictSame(sent().slice(2), [
    ['/p1?n=2', { y: 0.2 }],
    ['', ''],
    ['/p2?n=1', { y: 0.2, taps: 3 }]
  ]);
  t.equal(player.number, 2);
  t.strictSame(states, ['online', 'joining: unknown-player', 'online: again']);
  t.equal(saved.at(-1).player, 'p2');
  t.ok(saved.includes(null), 'the old one is kept no more');
});

t.test('a full arena is asked again, slower and slower, until there is a place', async (t) => {
  const full = problem(503, 'arena-full', { 'retry-after': '2' });
  const { player, clock, states, fetch } = start([full, full, joins(5), TAKEN]);
  await clock.settle();
  player.wake();
  await clock.run(2499);
  t.equal(fetch.calls.length, 1, 'not before the server has asked for, and half of that at random');
  await clock.run(1);
  t.equal(fetch.calls.length, 2);
  await clock.run(2500);
  t.equal(player.number, 5);
  t.strictSame(states, ['offline: arena-full', 'online']);
});

t.test(
  'the network is away: nothing is lost, and the page may have it tried at once',
  async (t) => {
    const { player, clock, states, fetch, sent } = start([joins(1), RESET, RESET, RESET, TAKEN]);
    player.addInput({ y: 0.1 });
    await clock.until(() => fetch.calls.length === 3);
    player.addInput({ taps: 2 });
    player.wake();
    await clock.settle();
    t.equal(fetch.calls.length, 4, 'at once');
    await clock.until(() => fetch.calls.length === 5);
    await clock.run(249);
    t.strictSame(sent().at(-1), ['/p1?n=4', {}], 'the page may hear of another round first');
    await clock.run(1);
    t.strictSame(sent().at(-1), ['/p1?n=5', { y: 0.1, taps: 2 }]);
    t.strictSame(states, ['online', 'offline: network', 'online']);
  }
);

t.test('a bad input is said, and not sent again; one of the game before is not said', async (t) => {
  const badInput = problem(400, 'bad-input');
  const late = () => {
    player.startGame();
    return badInput;
  };
  const { player, clock, states, sent } = start([joins(1), badInput, TAKEN, late, TAKEN]);
  player.addInput({ y: 7 });
  await clock.run(750);
  t.strictSame(states, ['online', 'online: bad-input']);
  player.addInput({ y: 0.5 });
  await clock.run(250);
  t.strictSame(sent().at(-1), ['/p1?n=2', { y: 0.5 }]);
  t.equal(states.at(-1), 'online');
  player.addInput({ tilt: 1 });
  await clock.run(10_500);
  t.strictSame(sent().at(-1), ['/p1?n=4', {}], 'what was offered for the other game is gone');
  t.equal(states.length, 3);
});

t.test('what was amiss with an input is over with its game', async (t) => {
  const { player, clock, states } = start([joins(1), problem(400, 'bad-input'), TAKEN]);
  player.addInput({ y: 7 });
  await clock.run(250);
  player.startGame();
  t.strictSame(states, ['online', 'online: bad-input', 'online']);
});

t.test('a reload is the same player, with numbers that were not used before', async (t) => {
  const { player, clock, saved } = start([joins(3), TAKEN]);
  for (let i = 0; i < 70; i += 1) {
    player.addInput({ y: i });
    await clock.run(250);
  }
  player.stop();
  const last = saved.at(-1);
  t.equal(last.n, 64, 'it is kept now and then');

  const again = start([TAKEN], { saved: last });
  await again.clock.settle();
  t.equal(again.player.number, 3);
  t.strictSame(again.sent(), [['/p3?n=193', {}]], 'and says at once that it is there');
  const noCounts = [undefined, -1, 1.5, Number.MAX_SAFE_INTEGER];
  const badNumbers = noCounts.map((n) => ({ player: 'p', number: 1, n }));
  for (const rubbish of [{}, { player: 1 }, ...badNumbers, 'p', 4]) {
    const fresh = start([joins(9), TAKEN], { saved: rubbish });
    await fresh.clock.settle();
    t.equal(fresh.player.number, 9, JSON.stringify(rubbish));
  }
});

t.test('a number that the server does not want is left behind', async (t) => {
  const { player, clock, sent } = start([joins(1), problem(400, 'bad-number'), TAKEN]);
  player.addInput({ x: 1, y: 1 });
  await clock.run(250);
  player.addInput({ y: 2 });
  await clock.run(250);
  t.strictSame(sent().at(-1), ['/p1?n=130', { x: 1, y: 2 }], 'and the input is not');
});

t.test('an answer that is none of ours is no answer', async (t) => {
  const { clock, states } = start([
    answer(200, '<html>'),
    answer(201, 'null'),
    ...[7, null, '../x', 'p'.repeat(65)].map((player) => answer(201, { player, number: 1 })),
    ...['7', -1, 1.5, 2 ** 60, null].map((number) => answer(201, { player: 'p', number })),
    joins(1),
    TAKEN
  ]);
  await clock.run(300_000);
  t.strictSame(states, ['offline: garbage', 'online']);
});

t.test('whatever a server says of times, it is not hammered', async (t) => {
  for (const times of [
    { lease: 1e-300, rate: 1e300 },
    { lease: 1e300, rate: 1e-300 },
    { lease: '', rate: [] }
  ]) {
    const { player, clock, fetch } = start([joins(1, times), ...Array(200).fill(TAKEN)]);
    await clock.run(10_000);
    t.ok(fetch.calls.length <= 33, `${fetch.calls.length} in ten seconds`);
    player.addInput({ y: 1 });
    await clock.run(1);
    player.stop();
  }
});

t.test('a stop gives up the request under way, and is no loss of contact', async (t) => {
  const { player, clock, states, fetch } = start([joins(1), HANG, TAKEN]);
  await clock.settle();
  player.addInput({ y: 1 });
  await clock.run(250);
  t.equal(fetch.calls.length, 2);
  player.stop();
  await clock.settle();
  t.equal(clock.pending, 0, 'nothing is waited for');
  t.strictSame(states, ['online']);
  player.start();
  await clock.run(250);
  t.match(JSON.parse(fetch.calls.at(-1).body), { y: 1 }, 'what was not answered is sent again');
});

t.test('a page that fails over what it is told stops no player', async (t) => {
  const fails = (what) => () => {
    throw new Error(what);
  };
  const caught = uncaught(t);
  const failingCallbacks = { onState: fails('state'), onSave: fails('keep') };
  const { player, clock, sent } = start([joins(1), TAKEN], failingCallbacks);
  player.addInput({ y: 1 });
  await clock.run(250);
  t.strictSame(sent().at(-1), ['/p1?n=1', { y: 1 }]);
  t.same(caught, ['keep', 'state'], 'and the page hears of it');
});

t.test('after a stop no join is sent for a grant that comes late', async (t) => {
  let resolveGrant;
  const grant = () => new Promise((resolve) => (resolveGrant = resolve));
  const { player, clock, fetch } = start([joins(1), TAKEN], { grant });
  await clock.settle();
  player.stop();
  resolveGrant('token');
  await clock.settle();
  t.equal(fetch.calls.length, 0);
  player.start();
  await clock.settle();
  t.equal(fetch.calls.length, 1);
});

t.test('after a stop nothing is sent any more', async (t) => {
  const { player, clock, fetch } = start([joins(1), TAKEN]);
  await clock.settle();
  player.stop();
  player.addInput({ y: 1 });
  await clock.run(60_000);
  t.equal(fetch.calls.length, 1);
});
