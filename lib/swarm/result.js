import { boundsIn, judge } from './bounds.js';
import { coresBetween } from './server-watch.js';
import { inUrl } from '../base/lan-addresses.js';
import { commandLine, lawOf, number } from '../report/words.js';

/**
 * The result of a run, for `--json` and the report.
 *
 * @typedef {object} Result
 * @property {string} command
 * @property {string} commandLine the command line of the run
 * @property {string} started start of the run, an ISO date
 * @property {object} target tls, host as in a URL, port, transientPort
 * @property {number} clients
 * @property {{processes: number, addresses: number}} engines
 * @property {{clients: number, wanted: number, seconds: number, perSecond: number}} opened
 * @property {object} [throwing] mode, rate, throwers, seconds, perSecond, behind
 * @property {object} [storm] countedBy, seconds until 50, 90, 99 and 100 % were parked again
 * @property {Array<import('./stages.js').StageResult>} [stages] the stages that ended
 * @property {{arrival: object, answer: object, probe: object}} latency count and percentiles in ms
 * @property {object} account counts of the sprites: see accountOf()
 * @property {Array<object>} interruptions at, lowest, seconds until 99 % were parked again
 * @property {object} connections counts of connections and polls: joined, rejoined, closed, …
 * @property {Record<string, number>} problems of joins, polls and leaves, by name
 * @property {Record<string, number>} connectErrors
 * @property {?object} server /status of the server before and after, its law, its longest stall
 * @property {?string} version the server's version
 * @property {?object} use the server's use of its host: `by` the kernel or the server's metrics, `process`, cores,
 *     CPU seconds, perSpriteMs, memory in bytes before the load, at its end and at most, and a series
 * @property {Array<object>} bounds the bounds of the command line: see bounds.js
 * @property {string[]} faults the failures of this run: empty for a good run
 * @property {string[]} remarks notes for the reader
 * @property {Array<object>} series
 * @property {{arrival: Array<[number, number]>, answer: Array<[number, number]>, probe: Array<[number, number]>}} curves
 *     of latency: pairs of percent and ms
 */

/** Percentiles of the curves' points, denser towards 100: as many as a reader can see. */
const CURVE_PERCENTS = Array.from({ length: 101 }, (_, i) => 100 * (1 - 10 ** (-i / 20)));

/**
 * @param {object} run all observations of the run
 * @returns {Result}
 */
export function resultOf(run) {
  const { options, facts, tally } = run;
  const account = accountOf(run);
  const server = serverOf(facts);
  const result = {
    command: options.command,
    commandLine: commandLine(['sprites-swarm', ...(options.args ?? [])]),
    started: new Date(Date.now() - tally.seconds * 1000).toISOString(),
    seconds: Math.round(tally.seconds * 100) / 100,
    target: { ...pickMembers(options, 'tls host port transientPort'), host: inUrl(options.host) },
    clients: options.clients,
    seed: options.seed,
    engines: { processes: facts.plan.engines.length, addresses: facts.plan.sources },
    opened: facts.opened,
    parkedByServer: facts.serverParked ?? null,
    ...throwingOf(run),
    ...(facts.storm && { storm: facts.storm }),
    ...(facts.stages && { stages: facts.stages }),
    latency: mapTimes(tally, (histogram) => histogram.summary()),
    account,
    interruptions: run.interruptions,
    connections: pickMembers(tally.counts, CONNECTION_COUNTS),
    ...tally.countsByName,
    server,
    version: run.watch?.version ?? null,
    use: useOf(run),
    engineCores: facts.engineCores === undefined ? null : round(facts.engineCores),
    interrupted: run.interrupted,
    bounds: [],
    faults: [],
    remarks: [],
    phases: facts.phases,
    series: tally.series,
    curves: mapTimes(tally, curveOf)
  };
  result.bounds = judge(result, boundsIn(options));
  result.faults = faultsOf(result, run);
  result.remarks = remarksOf(result, run);
  return result;
}

/** @returns {object} a copy with the named members only */
const pickMembers = (object, names) =>
  Object.fromEntries(names.split(' ').map((name) => [name, object[name]]));

/** @returns {object} `of()` of each histogram of times */
const mapTimes = ({ arrival, answer, probe }, summarize) => ({
  ...{ arrival: summarize(arrival), answer: summarize(answer), probe: summarize(probe) }
});

/** @returns {Array<[number, number]>} pairs of percent and milliseconds */
function curveOf(histogram) {
  if (histogram.count === 0) return [];
  const percents = CURVE_PERCENTS.filter(
    (percent) => ((100 - percent) / 100) * histogram.count >= 0.5
  );
  const values = histogram.percentiles([...percents, 100]);
  return [...percents, 100].map((percent, i) => [percent, values[i] / 1e6]);
}

function throwingOf({ options, facts, tally }) {
  if (options.throwing === 'none') return {};
  const { throwing } = facts;
  // In a latency run the rate includes the probe's sprites.
  const probe = options.command === 'latency' ? options.probeRate : 0;
  return {
    throwing: {
      mode: options.throwing === 'rate' ? 'open loop' : 'closed loop',
      rate: options.rate === undefined ? null : options.rate + probe,
      throwers: options.throwers,
      size: options.size,
      ...throwing,
      behind: tally.counts.behind,
      swarmStallMs: Math.round(tally.lateness * 100) / 100
    }
  };
}

/** Names of the swarm's counts of connections and polls. */
const CONNECTION_COUNTS =
  'connections closed joined rejoined left answers empty retries superseded resends badAnswers';

/**
 * Returns the account of all sprites. `missing` sprites were accepted and did not arrive. `landedElsewhere` sprites did
 * not arrive at this swarm either, but the server has not lost them: they went to other programs' clients in the torus,
 * or to another server of the world.
 */
function accountOf({ facts, tally, account, engineDoubles, isAccountComplete }) {
  const { counts, countsByName } = tally;
  const { missing, elsewhere } = locateMissing(account.missing, facts, counts);
  return {
    complete: isAccountComplete,
    ...pickMembers(counts, 'sent accepted delivered queued duplicates refused'),
    refusals: countsByName.refusals,
    unanswered: counts.pending + counts.unsettled,
    received: counts.received - engineDoubles,
    resent: counts.resent,
    repeated: counts.doubles + engineDoubles,
    excusedRepeats: counts.unackedLosses,
    missing,
    missingExamples: missing > 0 ? account.examples : [],
    landedElsewhere: elsewhere,
    unconfirmed: account.unconfirmed,
    ...pickMembers(counts, 'foreign mangled')
  };
}

function locateMissing(missing, facts, { accepted, duplicates }) {
  const law = lawOf(facts.drained);
  const before = lawOf(facts.before);
  const growthOf = (name) => (law?.[name] ?? 0) - (before?.[name] ?? 0);
  // A server that restarted during the run lacks the earlier counts.
  if (!law?.holds || growthOf('thrown') < accepted - duplicates) return { missing, elsewhere: 0 };
  const outsideSwarm =
    foreignClients(facts) > 0 ? missing : Math.min(missing, growthOf('crossedOut'));
  const elsewhere = Math.max(0, Math.min(outsideSwarm, missing - growthOf('lost')));
  return { missing: missing - elsewhere, elsewhere };
}

/** @returns {number} number of other programs' clients in the torus */
function foreignClients({ before, drained, ownMembers }) {
  return Math.max(before?.clients ?? 0, (drained?.clients ?? 0) - ownMembers, 0);
}

function serverOf({ before, loaded, drained, after }) {
  const last = after ?? drained;
  if (!before && !last) return null;
  return {
    before,
    loaded: loaded ?? null,
    after: last,
    law: lawOf(last),
    longestStallMs: last?.longestStallMs ?? null,
    stalledBeforeMs: (loaded ?? before)?.longestStallMs ?? null
  };
}

/** Window of the series' mean of CPU time, in seconds: the kernel counts in hundredths of a second. */
const CPU_WINDOW_SECONDS = 1.05;

/** Returns the server's CPU time and memory over the command's own phase. */
function useOf({ watch, facts }) {
  if (!watch?.source) return null;
  const { before, after } = facts.use ?? {};
  const points = watch.points;
  // The CPU time of a server that restarted in between is unknown.
  const isSameServer = before && after && after.cpu >= before.cpu;
  const cpu = isSameServer ? after.cpu - before.cpu : null;
  const sprites = facts.throwing?.thrown;
  return {
    by: watch.source,
    process: watch.process,
    cores: isSameServer ? round(coresBetween(before, after)) : null,
    cpuSeconds: cpu === null ? null : round(cpu),
    perSpriteMs: cpu !== null && sprites > 0 ? round((cpu / sprites) * 1000) : null,
    memoryBefore: points[0].memory,
    memory: (after ?? points.at(-1)).memory,
    most: watch.peakMemory,
    series: points.map((point) => ({
      at: point.at,
      cores: round(
        coresBetween(
          points.find(({ at }) => at >= point.at - CPU_WINDOW_SECONDS),
          point
        )
      ),
      memory: point.memory
    }))
  };
}

const round = (value) => Number(value.toPrecision(4));

function faultsOf(
  { account, opened, connections, server, storm, interrupted },
  { deaths, facts, options }
) {
  const last = options.stages?.lastTarget;
  const { parked } = facts.stages?.at(-1) ?? {};
  const { serverParked, lowestParked, stayingMembers } = facts;
  // A signal excuses what is not done.
  const undone = [
    opened?.clients < opened?.wanted && `${opened.clients} of ${opened.wanted} clients got parked`,
    (serverParked ?? Infinity) < opened?.clients &&
      `all polls were written, and the server counts ${serverParked} of ${opened.clients} parked`,
    options.command === 'park' &&
      parked < last &&
      `${parked} of ${last} clients were parked at the end of the stages`,
    lowestParked !== undefined &&
      `the clients were down to ${lowestParked} parked, and not back by the end`,
    stayingMembers > 0 &&
      `${stayingMembers} clients could not leave: no answer said that they have`,
    storm?.ghosts > 0 &&
      `the server did not notice that all were gone, and counted ${storm.ghosts} parked: how long they took is not known`,
    storm?.seconds[100] === null &&
      !storm.ghosts &&
      `only ${storm.parked} of ${options.clients} were parked again in time`
  ];
  return [
    ...deaths,
    !account.complete && 'the account is incomplete: not every engine gave its own',
    account.complete &&
      account.missing > (options.missing ?? 0) &&
      `${account.missing} sprites are missing: accepted by the server, and not received`,
    account.repeated > account.excusedRepeats &&
      `${account.repeated} sprites came twice, though at most ${account.excusedRepeats} had not been acked`,
    account.mangled > 0 && `${account.mangled} sprites came in changed or by the wrong side`,
    connections.badAnswers > 0 && `${connections.badAnswers} answers are not by the contract`,
    server?.law?.holds === false &&
      `the server's law does not hold: thrown ${server.law.thrown} is not acked + waiting + lost, with what has crossed`,
    ...(interrupted ? [] : undone)
  ].filter(Boolean);
}

function remarksOf(result, { facts, options }) {
  const { account, throwing, server } = result;
  return [
    throwing?.swarmStallMs > 20 &&
      `The swarm itself was kept from running for ${throwing.swarmStallMs} ms: ` +
        "the longest times are as much its own as the server's.",
    result.interrupted && 'Stopped by a signal: this is the account so far.',
    throwing?.behind > 0 &&
      `The swarm fell ${throwing.behind} sprites behind its rate: every thrower was waiting for an answer, or for ` +
        'its turn. What they had waited by the end counts in the times.',
    account.refusals['too-many-throws'] > 0 && throwRateRemark(result),
    result.engineCores > 0.9 &&
      `An engine of the swarm was busy for ${Math.round(result.engineCores * 100)}% of the time: the limit may be ` +
        'its own. To have more: --processes 2.',
    account.landedElsewhere > 0 &&
      `${account.landedElsewhere} sprites landed at clients that are not this swarm's: ` +
        "the server's law holds and says they are not lost.",
    foreignClients(facts) > 0 &&
      account.landedElsewhere === 0 &&
      "Others' clients were in the torus too.",
    account.missing > 0 &&
      server?.law?.waiting > 0 &&
      `${server.law.waiting} sprites are still waiting at the server.`,
    account.repeated > 0 &&
      account.repeated <= account.excusedRepeats &&
      `${account.repeated} sprites came twice, after clients left, or lost their places, before an ack: ` +
        'the contract allows it.',
    account.unconfirmed > 0 &&
      `${account.unconfirmed} sprites arrived though their throw was never answered with 202.`,
    account.foreign > 0 && `${account.foreign} sprites came from others.`,
    !server && 'The server gives no /status: its side of the account is not known.',
    options.command === 'latency' &&
      `The probe is a process of its own with ${options.probes} clients that joined one after the other; its sprites ` +
        "land at them or at any of the others, which are busy: the probe's times count both."
  ].filter(Boolean);
}

/** Returns the remark that the server's --throw-rate, and not its capacity, bounds the figures. */
function throwRateRemark({ account, throwing, clients }) {
  const refusedText = number(account.refusals['too-many-throws']);
  if (throwing.rate !== null || throwing.perSecond === undefined) {
    return (
      `The server's --throw-rate bounds this run: it refused ${refusedText} of the throws (429 too-many-throws), since ` +
      'each client may throw so often only. More clients, a lower --rate, or a server with ' +
      '--throw-rate 0 show what it can do.'
    );
  }
  const perThrower = throwing.perSecond / throwing.throwers;
  return (
    `The server's --throw-rate bounds the ${number(throwing.perSecond)} sprites a second, not what it can do: ` +
    `${number(throwing.throwers)} throwers were told to wait with ${refusedText} of the throws (429 too-many-throws), and did; ` +
    `that leaves ${Number(perThrower.toPrecision(3))} a second to each. To see what it can do: --every-client, ` +
    `which has all ${number(clients)} clients throw in turn, or a server with --throw-rate 0.`
  );
}
