import assert from 'node:assert/strict';
import { setTimeout as pause } from 'node:timers/promises';

import { Skip } from './scene.js';
import { LEASE, MAX_HEALING, NAMES, Rig } from './world-rig.js';
import { BUCKET } from '../../lib/world/broker.js';
import { STREAM } from '../../lib/world/feed-store.js';
import { noLimit } from '../support/processes.js';
import { skip } from '../support/nats.js';

/** Kills, stops and cuts off servers of a world under load, and kills and slows down their broker. */

/** Milliseconds that a fault goes on after the others have healed. */
const EXTRA_TIME = 1000;

/** Returns all servers' names but one. */
const without = (name) => NAMES.filter((one) => one !== name);

/**
 * Plays a fault of one server: the others go on throwing, close the ring without it, and at the end all is well.
 *
 * @param {Rig} rig
 * @param {string} victim
 * @param {string} faultText the fault, in words
 * @param {object} by functions that break and mend the server; default to mend: start it again
 */
async function fault(
  rig,
  victim,
  faultText,
  { break: breakServer, mend = startAgain, leavesRing = true, names }
) {
  const since = performance.now();
  const title = `${victim} ${faultText}`;
  const member = rig.members.get(victim);
  await breakServer(member);
  const others = without(victim);
  if (leavesRing) {
    await rig.measureHealing(`${title}: without it`, others);
    await pause(EXTRA_TIME);
  }
  await mend(member);
  await rig.measureHealing(`${title}: with it again`, NAMES);
  rig.recordThrows(title, names ?? others, since);
}

const startAgain = (member) => member.startAgain();
const resumeProcess = async (member) => member.signal('SIGCONT');

const serverFaults = {
  /** Killed, and started again after the others have closed the ring. */
  killed: (rig, victim) =>
    fault(rig, victim, 'killed', { break: (member) => member.killThrowing() }),

  /** Killed, and restarted at once as by its unit: to the others the old process may still live. */
  killedAndBack: (rig, victim) =>
    fault(rig, victim, 'killed and back at once', {
      leavesRing: false,
      async break(member) {
        await member.killThrowing();
        await pause(1000);
      }
    }),

  /** Stopped and continued within its lease. */
  paused: (rig, victim) =>
    fault(rig, victim, 'stopped for a third of its lease', {
      leavesRing: false,
      async break(member) {
        member.signal('SIGSTOP');
        await pause((LEASE * 1000) / 3);
      },
      mend: resumeProcess
    }),

  stopped: (rig, victim) =>
    fault(rig, victim, 'stopped for longer than its lease', {
      break: async (member) => member.signal('SIGSTOP'),
      mend: resumeProcess
    }),

  /** All its connections to the broker are reset. */
  cut: (rig, victim) => cutOff(rig, victim, 'cut off from the broker', (way) => way.cut()),

  /** The traffic between server and broker hangs, without a reset. */
  hung: (rig, victim) => cutOff(rig, victim, 'without a word of the broker', (way) => way.hang())
};

const cutOff = (rig, victim, faultText, act) =>
  fault(rig, victim, faultText, {
    names: NAMES,
    break: async ({ way }) => act(way),
    async mend(member) {
      const { world } = await member.readStatus();
      assert.equal(world.state, 'cut-off', `${victim} serves its own clients`);
      member.way.mend();
    }
  });

/** Faults of servers with states. */
const statesFaults = {
  /** For a while the victim's acknowledgements did not reach the others. */
  unheard: (rig, victim) =>
    killSilenced(rig, victim, 'out', 'killed when no other had heard from it'),

  /** For a while the others' acknowledgements did not reach the victim. */
  deaf: (rig, victim) => killSilenced(rig, victim, 'in', 'killed when it had heard from no other'),

  /** The victim's disk is full for longer than its lease. */
  full: (rig, victim) =>
    blockDisk(rig, victim, 'whose disk takes nothing for a while', async (member) =>
      member.limitFiles('unlimited')
    ),

  fullAndKilled: (rig, victim) =>
    blockDisk(rig, victim, 'whose disk takes nothing, and which is killed', async (member) => {
      await member.kill();
      await member.startAgain();
    })
};

const killSilenced = (rig, victim, side, faultText) =>
  fault(rig, victim, faultText, {
    leavesRing: false,
    break: (member) => member.killSilenced(side)
  });

/** Fills a server's disk. The server then accepts nothing from clients and servers, and keeps its place in the ring. */
async function blockDisk(rig, victim, faultText, mend) {
  if (noLimit) throw new Skip(noLimit);
  const blocked = ({ stateBlocked, world }) => stateBlocked === 1 && world.state === 'member';
  await fault(rig, victim, faultText, {
    leavesRing: false,
    async break(member) {
      const books = async () => {
        const [{ thrown, crossedIn, crossedOut }] = await rig.untilEvery(blocked, [member]);
        return { thrown, crossedIn, crossedOut };
      };
      member.limitFiles(1);
      const before = await books();
      await pause(LEASE * 1000 + EXTRA_TIME);
      assert.deepEqual(await books(), before, `${victim} stands still`);
    },
    mend
  });
}

/** Kills all servers at the same time, and starts them again. */
async function allKilled(rig) {
  await Promise.all(rig.all.map((member) => member.kill()));
  for (const member of rig.all) await member.startAgain();
  await rig.measureHealing('all killed at once: all back', NAMES);
}

/** Plays a fault of all servers: only throws over a seam may be refused. */
async function faultOfAll(rig, title, { break: breakAll, mend }) {
  const since = performance.now();
  await breakAll();
  await mend();
  await rig.measureHealing(`${title}: all well again`, NAMES);
  rig.recordThrows(title, NAMES, since);
}

const brokerFaults = {
  /** Killed and started again while all leases hold. */
  brief: (rig) =>
    faultOfAll(rig, 'broker killed and back at once', {
      break: () => rig.nats.kill(),
      mend: () => rig.nats.start()
    }),

  killed: (rig) => brokerAway(rig, 'broker killed for longer than the leases', () => {}),

  forgets: (rig) => brokerAway(rig, 'broker killed, its store lost', () => rig.nats.forget()),

  stopped: (rig) =>
    faultOfAll(rig, 'broker stopped for longer than the leases', {
      async break() {
        rig.nats.signal('SIGSTOP');
        await untilAllCutOff(rig);
      },
      mend: async () => rig.nats.signal('SIGCONT')
    }),

  slow: (rig) => slowBroker(rig, 'broker 200 ms away', { delay: 200 }),

  narrow: (rig) => slowBroker(rig, 'broker 200 ms away, 64 kB/s', { delay: 200, width: 64_000 })
};

async function untilAllCutOff(rig) {
  await rig.untilEvery(({ world }) => world.state === 'cut-off');
  await pause(EXTRA_TIME);
}

const brokerAway = (rig, title, act) =>
  faultOfAll(rig, title, {
    async break() {
      await rig.nats.kill();
      act();
      await untilAllCutOff(rig);
    },
    mend: () => rig.nats.start()
  });

/** Returns whether all servers stay members for two leases. */
async function allStayMembers(rig) {
  const end = performance.now() + 2 * LEASE * 1000;
  while (performance.now() < end) {
    const all = await rig.readStatuses();
    if (all.some(({ world }) => world.state !== 'member')) return false;
    await pause(200);
  }
  return true;
}

/**
 * Slows all ways: for two leases no server may leave the ring, and sprites must cross. A machine that stands still ends
 * leases too, so that there are three tries.
 */
async function slowBroker(rig, title, slowness) {
  const since = performance.now();
  for (const { way } of rig.all) way.slow(slowness);
  let before;
  let tries = 0;
  do {
    assert.ok(tries < 3, `${title}: all stay members for two leases, in one of three tries`);
    if (tries > 0) await rig.untilEvery(({ world }) => world.state === 'member');
    before = rig.all.map(({ way }) => ({ ...way.counts }));
    tries += 1;
  } while (!(await allStayMembers(rig)));
  await rig.untilCrossing(NAMES);
  const bytes = rig.all.map(({ way }, at) => way.counts.out - before[at].out);
  rig.observations.push(
    `${title}: ${bytes} bytes to the broker in ${LEASE * 2} s, at try ${tries}`
  );
  for (const { way } of rig.all) way.mend();
  rig.recordThrows(title, NAMES, since);
}

/** The streams of a world. */
const STREAMS = [`KV_${BUCKET}`, STREAM];

/** Faults of one NATS server of a cluster: the leader of the leases' stream. */
const natsFaults = {
  killed: (rig) =>
    faultOfNatsServer(rig, 'killed', {
      break: (one) => rig.nats.servers[one].kill(),
      mend: (one) => rig.nats.servers[one].start()
    }),

  forgets: (rig) =>
    faultOfNatsServer(rig, 'killed, its disk lost', {
      async break(one) {
        await rig.nats.servers[one].kill();
        rig.nats.servers[one].forget();
      },
      mend: (one) => rig.nats.servers[one].start()
    }),

  stopped: (rig) =>
    faultOfNatsServer(rig, 'stopped', {
      break: (one) => rig.nats.servers[one].signal('SIGSTOP'),
      mend: (one) => rig.nats.servers[one].signal('SIGCONT')
    }),

  /** The servers of the world still reach it, but it reaches no other NATS server. */
  cut: (rig) =>
    faultOfNatsServer(rig, 'cut off from the others', {
      break: (one) => rig.nats.cutOff(one),
      mend: (one) => rig.nats.mend(one)
    }),

  exchanged: (rig) =>
    faultOfNatsServer(rig, 'exchanged', { break: (one) => rig.nats.exchange(one), mend() {} })
};

/**
 * Two of three NATS servers are killed at once, and their disks are lost: NATS can't recover a quorum by itself. The
 * third server is emptied, too, and the servers of the world fill the stores again.
 */
const twoForget = (rig) =>
  faultOfAll(rig, 'two NATS servers of three killed, their disks lost, and the third emptied', {
    async break() {
      const [one, ...two] = rig.nats.servers;
      await Promise.all(two.map((server) => server.kill()));
      await untilAllCutOff(rig);
      await one.kill();
      for (const server of rig.nats.servers) server.forget();
    },
    async mend() {
      await Promise.all(rig.nats.servers.map((server) => server.start()));
      for (const stream of STREAMS) await rig.nats.leads(stream, { copies: 3 });
    }
  });

async function faultOfNatsServer(rig, faultText, { break: breakLeader, mend }) {
  const since = performance.now();
  const leader = await rig.nats.leads(STREAMS[0]);
  const title = `NATS server ${rig.nats.names[leader]}, the leader, ${faultText}`;
  await breakLeader(leader);
  await rig.nats.leads(STREAMS[0], { not: leader });
  const seconds = () => ((performance.now() - since) / 1000).toFixed(1);
  rig.observations.push(`${title}: another leader after ${seconds()} s`);
  await rig.measureHealing(`${title}: without it`, NAMES);
  await rig.untilEvery((one) => one.worldFeedsReachable === 1 && one.worldFeedsUnshared === 0);
  rig.observations.push(`${title}: feeds are the world's again after ${seconds()} s`);
  await mend(leader);
  for (const stream of STREAMS) await rig.nats.leads(stream, { copies: 3 });
  await rig.measureHealing(`${title}: all copies there`, NAMES);
  rig.recordThrows(title, NAMES, since);
}

/** Returns all observations as one text. */
function summaryOf(rig, { promised, missing, heldByKilled, repeated, unacknowledged }) {
  const slow = rig.healings.filter(({ seconds }) => seconds > LEASE + MAX_HEALING);
  const lossText = rig.states
    ? ''
    : ` (killed servers held ${heldByKilled}; ${unacknowledged} of these they had taken and not said so)`;
  return [
    `${promised} sprites promised, ${missing} missing, ${repeated} came twice${lossText}`,
    `${rig.healings.length - slow.length} of ${rig.healings.length} healed within lease and ${MAX_HEALING} s ` +
      `(${LEASE + MAX_HEALING} s)`,
    ...rig.observations
  ].join('\n            ');
}

/** Plays all faults of a list, and checks the counts after each. */
async function run(scene, list, rigOptions) {
  if (skip) throw new Skip(skip);
  const rig = await Rig.start(scene, rigOptions);
  let account;
  for (const one of list) {
    await one(rig);
    account = await rig.account(rig.observations.at(-1));
    rig.resume();
  }
  await rig.account('at the end');
  return summaryOf(rig, account);
}

/** Returns a case of the suite, with the faults of its short and long forms; `how`: Rig.start's. */
const caseOf = (name, promise, { short, long, how }) => ({
  name: `world: ${name}`,
  promise,
  run: (scene) => run(scene, scene.short ? short : long, how)
});

/** Returns all these kinds of faults for all servers. */
const forEachServer = (...kinds) =>
  NAMES.flatMap((name) => kinds.map((kind) => (rig) => kind(rig, name)));

const { killed, killedAndBack, paused, stopped, cut, hung } = serverFaults;
const { unheard, deaf, full, fullAndKilled } = statesFaults;

const promise =
  'every 202 arrives once; only what a killed server held is missing; only throws over its seams are refused; ' +
  'all is well within the lease and two seconds';

const statePromise =
  'every 202 arrives, and once, whenever a server is killed; every client keeps its place; a server whose disk takes nothing ' +
  'promises and acknowledges nothing; only throws over its seams are refused';

const clusterPromise =
  'every 202 arrives once; only throws over a seam are refused; a cursor is one value everywhere, and all ' +
  'have the newest in the end';

const allStatesFaults = [
  ...forEachServer(killed, killedAndBack, unheard, deaf, full, fullAndKilled),
  allKilled
];

/** The fault suite's cases of a world. */
export const world = [
  caseOf('servers killed and stopped', promise, {
    short: [(rig) => killed(rig, 'b'), (rig) => paused(rig, 'a'), (rig) => stopped(rig, 'c')],
    long: forEachServer(killed, killedAndBack, paused, stopped)
  }),
  caseOf('servers cut off from the broker', promise, {
    short: [(rig) => cut(rig, 'a'), (rig) => hung(rig, 'b')],
    long: forEachServer(cut, hung)
  }),
  caseOf('broker killed and slow', promise, {
    short: [brokerFaults.killed, brokerFaults.slow],
    long: Object.values(brokerFaults)
  }),
  caseOf(
    'one NATS server of three killed, emptied, stopped, cut off and exchanged',
    clusterPromise,
    {
      short: [natsFaults.forgets, natsFaults.cut],
      long: [...Object.values(natsFaults), twoForget],
      how: { cluster: true, feeds: ['one', 'two/three'] }
    }
  ),
  caseOf('servers with states killed, their disks full', statePromise, {
    short: [(rig) => killed(rig, 'b'), allKilled],
    long: allStatesFaults,
    how: { states: true }
  }),
  caseOf('servers with states and workers', statePromise, {
    short: [(rig) => unheard(rig, 'c'), (rig) => fullAndKilled(rig, 'b')],
    long: allStatesFaults,
    how: { states: true, workers: 2 }
  })
];
