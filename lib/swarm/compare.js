import { readFileSync, statSync } from 'node:fs';

import { UsageError } from '../base/option-help.js';
import { isObject } from '../client/answers.js';
import { dataOf } from '../report/page.js';
import { ReportFile } from './report-file.js';
import { changeWords, digits, number, SAME_PERCENT, size, time } from '../report/words.js';

/**
 * Compares two runs: `sprites-swarm compare A B` reads reports or the output of --json.
 *
 * @typedef {object} Figure
 * @property {string} name
 * @property {(result: object) => ?number} value
 * @property {(value: number) => string} format formats the value
 * @property {-1 | 1} better 1: a larger value is better; -1: a smaller value is better
 * @property {boolean} [steady] steady enough for --worse, as a figure from many sprites or clients
 */

const arrivalTimes = ({ command, latency }) => latency[command === 'latency' ? 'probe' : 'arrival'];
const inMs = (seconds) => (typeof seconds === 'number' ? seconds * 1000 : null);

const figure = (name, value, format, better, steady = false) => ({
  ...{ name, value, format, better, steady }
});
const steadyFigure = (...parts) => figure(...parts, true);
const percentileFigure = (name) => [
  `in flight, ${name}`,
  (result) => arrivalTimes(result)[name],
  time,
  -1
];

/** @type {Figure[]} */
const FIGURES = [
  steadyFigure('sprites a second', ({ throwing }) => throwing?.perSecond, number, 1),
  ...['p50', 'p90', 'p99', 'p99.9'].map((name) => steadyFigure(...percentileFigure(name))),
  figure(...percentileFigure('max')),
  ...[50, 99, 100].map((part) =>
    steadyFigure(`until ${part}% were back`, ({ storm }) => inMs(storm?.seconds?.[part]), time, -1)
  ),
  steadyFigure("the server's CPU a sprite", ({ use }) => use?.perSpriteMs, time, -1),
  figure("the server's CPU, cores", ({ use }) => use?.cores, digits, -1),
  steadyFigure("the server's memory", ({ use }) => use?.memory, size, -1),
  figure("the server's longest stall", ({ server }) => server?.longestStallMs, time, -1),
  figure('clients opened a second', ({ opened }) => opened?.perSecond, number, 1),
  figure('throws refused', ({ account }) => account.refused, number, -1),
  figure('connections broken', ({ connections }) => connections.closed, number, -1),
  steadyFigure('sprites missing', ({ account }) => account.missing, number, -1)
];

/** Conditions that should be equal in both runs: else the figures compare two loads and not two servers. */
const CONDITIONS = {
  command: ({ command }) => command,
  clients: ({ clients }) => clients,
  seconds: ({ throwing }) => throwing?.seconds && Math.round(throwing.seconds),
  throwing: ({ throwing }) => throwing?.mode,
  rate: ({ throwing }) => throwing?.rate,
  stages: ({ stages }) =>
    stages?.map(({ seconds, from, target }) => `${from} to ${target} in ${seconds} s`).join(', '),
  throwers: ({ throwing }) => throwing?.throwers,
  'bytes of a sprite': ({ throwing }) => throwing?.size,
  TLS: ({ target }) => Boolean(target.tls),
  server: ({ target }) => `${target.host}:${target.port}`,
  version: ({ version }) => version,
  engines: ({ engines }) => engines.processes
};

/**
 * @param {string} file a report, or the output of --json
 * @returns {import('./result.js').Result}
 * @throws {UsageError} when the file is neither
 */
function readResult(file) {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new UsageError(`${file} can't be read: ${error.message}`);
  }
  const result = parseResult(text);
  const missingPart = missingPartOf(result);
  if (missingPart) {
    throw new UsageError(
      `${file} is no result of a run, it has no ${missingPart}: give a --report's file or what --json printed`
    );
  }
  return result;
}

const isListOf = (isValid) => (part) => Array.isArray(part) && part.every(isValid);

/** Parts of a result that a comparison needs, with their checks. */
const REQUIRED_PARTS = [
  [(part) => typeof part === 'string', ['command', 'target.host']],
  [(part) => !Number.isNaN(Date.parse(part)), ['started']],
  [Number.isFinite, ['clients', 'target.port', 'engines.processes']],
  [isObject, ['latency.arrival', 'latency.probe', 'account', 'connections', 'phases']],
  [isListOf(Array.isArray), ['curves.arrival', 'curves.probe', 'storm.track']],
  [isListOf(isObject), ['series', 'use.series', 'stages']],
  [Array.isArray, ['faults']]
];

/** Parts that a result may lack. */
const OPTIONAL_PARTS = ['storm', 'use', 'stages'];

/** @returns {string | undefined} the first part that a result lacks */
function missingPartOf(result) {
  const read = (name) => name.split('.').reduce((part, key) => part?.[key], result);
  const isOptional = (name) =>
    OPTIONAL_PARTS.some((part) => name.startsWith(part) && !result[part]);
  return REQUIRED_PARTS.flatMap(([isGood, names]) =>
    names.filter((name) => !isGood(read(name)) && !isOptional(name))
  )[0];
}

function parseResult(text) {
  try {
    return (text.trimStart().startsWith('{') ? JSON.parse(text) : dataOf(text)) ?? {};
  } catch {
    return {}; // missingPartOf() reports the missing parts
  }
}

/**
 * @param {import('./result.js').Result} a the run before
 * @param {import('./result.js').Result} b the run after
 * @param {number} [worse] allowed loss of a steady figure in B, in percent
 * @returns {{rows: Array<object>, remarks: string[], faults: string[]}} rows: name, a and b as numbers,
 *     `words` of both, `change` in percent (null where A is 0), `verdict` better, worse or same
 */
export function compare(a, b, worse) {
  const rows = FIGURES.map((figure) => rowOf(figure, a, b)).filter(Boolean);
  const remarks = Object.entries(CONDITIONS)
    .map(([name, read]) => [name, read(a) ?? null, read(b) ?? null])
    .filter(([, one, other]) => one !== other)
    .map(([name, one, other]) => `${name} differs: ${one ?? 'none'} in A, ${other ?? 'none'} in B`);
  for (const [name, { faults }] of Object.entries({ A: a, B: b })) {
    remarks.push(...faults.map((fault) => `${name} has a fault: ${fault}`));
  }
  remarks.push('One run of each: differences of some percent may be chance.');
  if (worse === undefined) return { rows, remarks, faults: [] };
  const faults = rows
    .filter(({ steady, loss }) => steady && loss > worse)
    .map(({ name, words }) => `${name}: ${words[1]} after ${words[0]}, more than ${worse}% worse`);
  // As with a bound, a figure that was not measured must not pass.
  const unknownInB = FIGURES.filter(
    ({ steady, value }) => steady && isKnown(value(a)) && !isKnown(value(b))
  );
  faults.push(
    ...unknownInB.map(
      ({ name, format, value }) => `${name}: ${format(value(a))} in A, not known in B`
    )
  );
  return { rows, remarks, faults };
}

const isKnown = (value) => typeof value === 'number';

function rowOf({ name, value, format, better, steady = false }, a, b) {
  const [valueA, valueB] = [value(a), value(b)];
  if (!isKnown(valueA) || !isKnown(valueB) || (valueA === 0 && valueB === 0)) return null;
  const change = valueA === 0 ? null : ((valueB - valueA) / valueA) * 100;
  // From 0 to any other value the change is infinite.
  const loss = (change ?? Infinity) * -better;
  const hasSameValue = Math.abs(change ?? Infinity) < SAME_PERCENT;
  const verdict = hasSameValue ? 'same' : loss > 0 ? 'worse' : 'better';
  return {
    name,
    a: valueA,
    b: valueB,
    words: [format(valueA), format(valueB)],
    change,
    verdict,
    steady,
    loss
  };
}

function textOf({ rows, remarks, faults }) {
  const table = [['', 'A', 'B', 'B to A', '']].concat(
    rows.map(({ name, words, change, verdict }) => [
      name,
      ...words,
      changeWords(change),
      verdict === 'same' ? '' : verdict
    ])
  );
  const widths = [0, 1, 2, 3].map((i) => Math.max(...table.map((row) => row[i].length)));
  return [
    ...table.map((row) =>
      row
        .map((cell, i) => (i === 0 ? cell.padEnd(widths[0]) : cell.padStart(widths[i] ?? 0)))
        .join('  ')
        .trimEnd()
    ),
    ...remarks.map((remark) => `note: ${remark}`),
    ...faults.map((fault) => `WORSE: ${fault}`)
  ].join('\n');
}

/** Returns whether two names are of one file; false for an unreadable file, which fails later with its error. */
function isSameFile(...names) {
  try {
    const [first, second] = names.map((name) => statSync(name));
    return first.ino === second.ino && first.dev === second.dev;
  } catch {
    return false;
  }
}

/**
 * Runs `sprites-swarm compare A B`.
 *
 * @param {{files: [string, string], json?: boolean, quiet?: boolean, report?: string,
 *     worse?: number}} options
 * @returns {Promise<number>} the exit code: 0, or 3 when B is worse than `worse` allows
 */
export async function compareFiles({ files, json, quiet, report, worse }) {
  if (report && files.some((file) => isSameFile(file, report))) {
    throw new UsageError(`--report ${report} is one of the two: give another file`);
  }
  const file = report ? new ReportFile(report) : null;
  try {
    const [a, b] = files.map(readResult);
    const result = compare(a, b, worse);
    if (json) {
      // `loss` may be Infinity, which JSON lacks; `change` is null then.
      const rows = result.rows.map(({ loss, steady, ...row }) => (void loss, void steady, row));
      process.stdout.write(`${JSON.stringify({ ...result, files, rows })}\n`);
    } else if (!quiet) process.stdout.write(`${textOf(result)}\n`);
    if (file) {
      const { comparisonOf } = await import('./report.js');
      file.write(comparisonOf({ files, a, b, ...result }));
    }
    return result.faults.length > 0 ? 3 : 0;
  } finally {
    file?.close();
  }
}
