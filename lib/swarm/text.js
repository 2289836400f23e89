import { digits, number, countsText, size, time } from '../report/words.js';

/** Formats a result as lines for a terminal. */

function latencyLine(label, { count, p50, p90, p99, 'p99.9': p999, max }) {
  return (
    `${label.padEnd(18)} p50 ${time(p50)}, p90 ${time(p90)}, p99 ${time(p99)}, p99.9 ${time(p999)}, ` +
    `max ${time(max)}  (${number(count)})`
  );
}

/**
 * @param {import('./result.js').Result} result
 * @returns {string}
 */
export function textOf(result) {
  return [
    ...loadLines(result),
    ...latencyLines(result),
    ...accountLines(result),
    ...troubleLines(result),
    ...useLines(result),
    ...serverLines(result),
    ...verdictLines(result)
  ].join('\n');
}

function loadLines({ opened, parkedByServer, throwing, storm, stages = [], interruptions }) {
  const lines = [];
  if (opened) {
    const confirmed =
      parkedByServer === null ? '' : `, the server counts ${number(parkedByServer)}`;
    lines.push(
      `parked             ${number(opened.clients)} of ${number(opened.wanted)} in ` +
        `${opened.seconds} s (${number(opened.perSecond)} a second)${confirmed}`
    );
  }
  if (throwing?.perSecond !== undefined) {
    const loadText =
      throwing.rate === null
        ? `${throwing.throwers} throwers`
        : `${stages.length > 0 ? 'up to ' : ''}${number(throwing.rate)} a second asked`;
    lines.push(
      `sprites            ${number(throwing.perSecond)} a second for ${throwing.seconds} s ` +
        `(${throwing.mode}, ${loadText}, ${throwing.size} bytes)`
    );
  }
  stages.forEach((stage, i) => {
    const reachedText = throwing
      ? `${stage.perSecond === null ? '-' : number(stage.perSecond)} a second, p99 ${time(stage.p99)}`
      : `${number(stage.parked)} parked`;
    const stageText = `${number(stage.from)} to ${number(stage.target)} in ${digits(stage.seconds)} s`;
    lines.push(`stage ${i + 1}`.padEnd(19) + `${stageText}: ${reachedText}`);
  });
  if (storm) {
    const parts = Object.entries(storm.seconds).map(
      ([part, seconds]) => `${part}% ${seconds === null ? 'never' : `${seconds} s`}`
    );
    lines.push(`parked again       ${parts.join(', ')} (counted by the ${storm.countedBy})`);
  }
  for (const { at, lowest, seconds } of interruptions) {
    const endText =
      seconds === null ? 'not back by the end' : `99% parked again after ${seconds} s`;
    lines.push(`interrupted        at ${at} s down to ${number(lowest)} parked; ${endText}`);
  }
  return lines;
}

function latencyLines({ latency, throwing }) {
  const lines = [];
  if (latency.arrival.count > 0) lines.push(latencyLine('throw to arrival', latency.arrival));
  if (latency.probe.count > 0) lines.push(latencyLine('the quiet probe', latency.probe));
  if (latency.answer.count > 0) lines.push(latencyLine('throw to answer', latency.answer));
  if (throwing) lines.push(`the swarm's stall  ${throwing.swarmStallMs} ms at the longest`);
  return lines;
}

function accountLines({ account }) {
  if (account.sent === 0) return [];
  const accepted =
    `${number(account.accepted)} accepted (${number(account.delivered)} delivered, ` +
    `${number(account.queued)} queued, ${number(account.duplicates)} duplicate)`;
  const refused = account.refused > 0 ? `, refused ${countsText(account.refusals)}` : '';
  const unanswered = account.unanswered > 0 ? `, ${number(account.unanswered)} unanswered` : '';
  const elsewhere =
    account.landedElsewhere > 0 ? `, ${number(account.landedElsewhere)} landed elsewhere` : '';
  return [
    `sent               ${number(account.sent)}: ${accepted}${refused}${unanswered}`,
    `received           ${number(account.received)}, ${number(account.resent)} resent, ` +
      `${number(account.repeated)} repeated, ${number(account.missing)} missing${elsewhere}`
  ];
}

function troubleLines({ connections, problems, connectErrors }) {
  const lines = [];
  if (connections.closed > 0 || connections.rejoined > 0) {
    lines.push(
      `connections        ${number(connections.closed)} broke, ${number(connections.rejoined)} ` +
        `clients joined again, ${number(connections.resends)} requests repeated`
    );
  }
  for (const [label, counts] of Object.entries({ problems, 'connect errors': connectErrors })) {
    if (countsText(counts)) lines.push(label.padEnd(19) + countsText(counts));
  }
  return lines;
}

function useLines({ use, version }) {
  const lines = version ? [`the server         Sprites ${version}`] : [];
  if (!use) return lines;
  const sourceText = use.by === 'kernel' ? 'by the kernel' : 'by /metrics';
  const perSpriteText = use.perSpriteMs === null ? '' : `, ${time(use.perSpriteMs)} a sprite`;
  const cpu = use.cores === null ? '' : `${use.cores} cores${perSpriteText}; `;
  const memory = `memory ${size(use.memoryBefore)} → ${size(use.memory)}`;
  return [...lines, `what it took       ${cpu}${memory} (${sourceText})`];
}

function serverLines({ server }) {
  if (!server) return [];
  const lines = [];
  if (server.law) {
    const { thrown, acked, waiting, lost, crossedIn, crossedOut, holds } = server.law;
    const [crossedInText, crossedOutText] = [
      crossedIn === undefined ? '' : ` + crossed in ${number(crossedIn)}`,
      crossedOut === undefined ? '' : ` + crossed out ${number(crossedOut)}`
    ];
    lines.push(
      `the server's law   thrown ${number(thrown)}${crossedInText} ${holds ? '=' : '≠'} acked ${number(acked)} + ` +
        `waiting ${number(waiting)} + lost ${number(lost)}${crossedOutText}`
    );
  }
  if (server.longestStallMs !== null) {
    lines.push(
      `its longest stall  ${server.longestStallMs} ms ` +
        `(${server.stalledBeforeMs ?? '-'} ms before the load)`
    );
  }
  return lines;
}

/** @param {object} result @returns {string[]} the faults and exceeded bounds: the exit code is not 0 */
export function failureLines({ faults, bounds }) {
  return [
    ...faults.map((fault) => `FAULT: ${fault}`),
    ...bounds.filter(({ holds }) => !holds).map(({ words }) => `NOT KEPT: ${words}`)
  ];
}

function verdictLines(result) {
  const { remarks, account, bounds } = result;
  const lines = remarks.map((remark) => `note: ${remark}`);
  if (account.missingExamples.length > 0) {
    lines.push(`missing, as engine/number: ${account.missingExamples.join(', ')}, …`);
  }
  lines.push(...bounds.filter(({ holds }) => holds).map(({ words }) => `kept: ${words}`));
  return [...lines, ...failureLines(result)];
}
