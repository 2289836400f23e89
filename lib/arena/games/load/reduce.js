import { batchAt } from './batches.js';

/**
 * Load: adds up the reports of machines and phones, one per second and player. The number of missing sprites covers
 * settled batches only (batches.js).
 */

/** Most reports kept per player, each of another batch. */
const MAX_REPORTS = 4;

/** Batches without a report after which a machine or phone counts as silent: its sprites are unknown. */
const SILENT_AFTER = 8;

/** Most machines and phones in the list. */
const MAX_LISTED = 32;

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
function storeReports(history, reports) {
  for (const { number, batch, accepted, received, done, connections } of reports) {
    const playerReports = history.get(number) ?? [];
    const isComplete = done === 1 || connections + accepted + received === 0;
    if (playerReports.at(-1)?.batch === batch) playerReports.pop();
    playerReports.push({ batch, accepted, received, isComplete });
    if (playerReports.length > MAX_REPORTS) playerReports.shift();
    history.set(number, playerReports);
  }
}

/** Adds the last reports of players that have left to the sums. Counts players whose last report is not complete. */
function addDeparted(history, reports, memory) {
  const presentNumbers = new Set(reports.map(({ number }) => number));
  for (const [number, playerReports] of history) {
    if (presentNumbers.has(number)) continue;
    history.delete(number);
    const { accepted, received, isComplete } = playerReports.at(-1);
    memory.accepted += accepted;
    memory.received += received;
    if (!isComplete) memory.torn += 1;
  }
}

/** Returns a player's report of a batch. Before its first report, that report counts if it has no sprites. */
function reportOf(playerReports, batch) {
  const [first] = playerReports;
  const batchReport = playerReports.find((one) => one.batch === batch);
  if (batchReport !== undefined || first.batch < batch) return batchReport;
  return first.accepted + first.received === 0 ? first : undefined;
}

/**
 * Returns the number of missing sprites up to the newest batch that all players, except silent ones, have reported.
 * While there is no such batch, the last result stays.
 */
function settledCounts(history, batch, memory) {
  const all = [...history.values()];
  const isReporting = (playerReports) => playerReports.at(-1).batch >= batch - SILENT_AFTER;
  const reporting = all.filter(isReporting);
  const silent = all
    .filter((playerReports) => !isReporting(playerReports))
    .map((playerReports) => playerReports.at(-1));
  const batches = new Set(
    reporting.flatMap((playerReports) => playerReports.map((one) => one.batch))
  );
  for (const common of [...batches].toSorted((a, b) => b - a)) {
    const reports = reporting.map((playerReports) => reportOf(playerReports, common));
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
  let spritesBelow = 0;
  for (const { p50, perSecond } of sorted) {
    spritesBelow += perSecond;
    if (spritesBelow >= half) return hundredths(p50);
  }
  return null;
}

/** Returns the largest p99 of the players: an upper bound of the p99 of all sprites. */
function slowestP99(reports) {
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
  storeReports(history, reports);
  addDeparted(history, reports, memory);
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
    p99: slowestP99(machines),
    phone50: weightedMedian(phones),
    phone99: slowestP99(phones),
    refused: sum('refused'),
    broken: sum('broken'),
    ...settledCounts(history, batch, memory),
    list: [...machines, ...phones]
      .slice(0, MAX_LISTED)
      .map(({ number, machine, connections, perSecond, p50, p99, stall, bounded }) => ({
        ...{ number, machine, connections, bounded },
        ...{ perSecond: tenths(perSecond), p50: hundredths(p50), p99: hundredths(p99) },
        stall: tenths(stall)
      }))
  };
}
