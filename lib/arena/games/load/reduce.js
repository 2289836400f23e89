import { batchAt } from './batches.js';

/**
 * Load: adds up the reports of machines and phones, one per second and player. The number of missing sprites covers
 * settled batches only (batches.js).
 */

/** Most reports kept per player, each of another batch. */
const REPORTS = 4;

/** Batches without a report after which a machine or phone counts as silent: its sprites are unknown. */
const SILENT = 8;

/** Most machines and phones in the list. */
const LISTED = 32;

/** Key of a round's reports. A symbol is not in the memory's JSON, so a restart of the server drops the reports. */
const HISTORY = Symbol('reports');

const tenths = (value) => Math.round(value * 10) / 10;
const hundredths = (value) => Math.round(value * 100) / 100;

/** Returns the inputs of each player that takes part in this round, as an object. */
function readReports({ players, numbers, inputs, round }) {
  const names = Object.keys(inputs);
  const reports = [];
  for (let i = 0; i < players; i += 1) {
    if (inputs.round[i] !== round || inputs.batch[i] === 0) continue;
    const report = { number: numbers[i] };
    for (const name of names) report[name] = inputs[name][i];
    reports.push(report);
  }
  return reports;
}

/** Stores each player's reports of its last batches. */
function remember(history, reports) {
  for (const { number, batch, accepted, received, done, connections } of reports) {
    const said = history.get(number) ?? [];
    const isWhole = done === 1 || connections + accepted + received === 0;
    if (said.at(-1)?.batch === batch) said.pop();
    said.push({ batch, accepted, received, isWhole });
    if (said.length > REPORTS) said.shift();
    history.set(number, said);
  }
}

/** Adds the last reports of players that have left to the sums. Counts players whose last report is not complete. */
function bury(history, reports, memory) {
  const here = new Set(reports.map(({ number }) => number));
  for (const [number, said] of history) {
    if (here.has(number)) continue;
    history.delete(number);
    const { accepted, received, isWhole } = said.at(-1);
    memory.accepted += accepted;
    memory.received += received;
    if (!isWhole) memory.torn += 1;
  }
}

/** Returns a player's report of a batch. Before its first report, that report counts if it has no sprites. */
function reportOf(said, batch) {
  const [first] = said;
  const found = said.find((one) => one.batch === batch);
  if (found !== undefined || first.batch < batch) return found;
  return first.accepted + first.received === 0 ? first : undefined;
}

/**
 * Returns the number of missing sprites up to the newest batch that all players, except silent ones, have reported.
 * While there is no such batch, the last result stays.
 */
function settle(history, batch, memory) {
  const all = [...history.values()];
  const isHeard = (said) => said.at(-1).batch >= batch - SILENT;
  const heard = all.filter(isHeard);
  const silent = all.filter((said) => !isHeard(said)).map((said) => said.at(-1));
  const batches = new Set(heard.flatMap((said) => said.map((one) => one.batch)));
  for (const common of [...batches].toSorted((a, b) => b - a)) {
    const reports = heard.map((said) => reportOf(said, common));
    if (reports.includes(undefined)) continue;
    const sum = (name) =>
      [...reports, ...silent].reduce((total, report) => total + report[name], memory[name]);
    const counted = sum('accepted');
    memory.told = { counted, missing: Math.max(0, counted - sum('received')) };
    break;
  }
  return { ...memory.told, torn: memory.torn + silent.length };
}

/** Returns the median of the players' own medians, weighted by their sprites. */
function weightedMedian(reports) {
  const sorted = reports.filter(({ p50 }) => p50 >= 0).toSorted((a, b) => a.p50 - b.p50);
  const half = sorted.reduce((sum, { perSecond }) => sum + perSecond, 0) / 2;
  let below = 0;
  for (const { p50, perSecond } of sorted) {
    below += perSecond;
    if (below >= half) return hundredths(p50);
  }
  return null;
}

/** Returns the largest p99 of the players: an upper bound of the p99 of all sprites. */
function slowest(reports) {
  const p99 = Math.max(-1, ...reports.map((report) => report.p99));
  return p99 < 0 ? null : hundredths(p99);
}

/** See lib/arena/README.md. */
export function reduce(now, memory) {
  if (memory.accepted === undefined) {
    const told = { counted: 0, missing: 0 };
    Object.assign(memory, { accepted: 0, received: 0, torn: 0, told });
  }
  memory[HISTORY] ??= new Map();
  const history = memory[HISTORY];
  const batch = batchAt(now.time);
  const reports = readReports(now);
  remember(history, reports);
  bury(history, reports, memory);
  const sum = (name) => reports.reduce((all, report) => all + report[name], 0);
  const machines = reports.filter(({ machine }) => machine === 1);
  const phones = reports.filter(({ machine }) => machine === 0);
  return {
    batch,
    machines: machines.length,
    phones: phones.length,
    connections: sum('connections'),
    members: sum('members'),
    perSecond: tenths(sum('perSecond')),
    p50: weightedMedian(machines),
    p99: slowest(machines),
    phone50: weightedMedian(phones),
    phone99: slowest(phones),
    refused: sum('refused'),
    broken: sum('broken'),
    ...settle(history, batch, memory),
    list: [...machines, ...phones]
      .slice(0, LISTED)
      .map(({ number, machine, connections, perSecond, p50, p99, stall, bounded }) => ({
        ...{ number, machine, connections, bounded },
        ...{ perSecond: tenths(perSecond), p50: hundredths(p50), p99: hundredths(p99) },
        stall: tenths(stall)
      }))
  };
}
