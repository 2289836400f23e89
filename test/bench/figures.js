/**
 * Makes the tables of the measurements: medians, spreads, ratios, and the bounds of the server.
 */
import { availableParallelism, cpus, release } from 'node:os';

/** The bounds of sprites. */
const BOUNDS = {
  /** Server CPU per sprite, as a multiple of bare epoll's in the same run. */
  cpuOverEpoll: 1.3,
  /** Sprites per second, as a multiple of node:http's. */
  rateOverNode: 4,
  /** Bytes of user space per parked client. */
  bytesPerClient: 512,
  /** Bytes of V8 heap per parked client: less than one pointer, so there is no object. */
  heapPerClient: 4,
  /** p99.9 of the time from throw to arrival of sprites thrown by the clock, in milliseconds. */
  late: 5
};

/**
 * @param {number[]} values at least one
 * @returns {{median: number, min: number, max: number}}
 */
export function spread(values) {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted.at(-1) };
}

/** Lateness of sprites, in milliseconds. */
const LATENESS_FIGURES = ['p50', 'p99', 'p99.9', 'max'];

/** Figures of a round that are summed up without changes. */
const ROUND_FIGURES = [
  ...['rate', 'cpuPerSprite', 'loadCpuPerSprite', 'stall', 'bytesPerClient', 'resident'],
  ...['heapBefore', 'heapAfter', ...LATENESS_FIGURES]
];

/**
 * @param {object[]} rounds
 * @param {string[]} names names of the rounds' figures
 * @param {Record<string, (round: object, i: number) => number>} [ratios] computed figures, such as the ratio to the
 *   same round of another contender
 * @returns {Record<string, {median: number, min: number, max: number}>} the spread of each figure that any round has
 */
function spreads(rounds, names, ratios = {}) {
  const figureGetters = Object.fromEntries(names.map((name) => [name, (round) => round[name]]));
  const valuesByName = Object.entries({ ...figureGetters, ...ratios })
    .map(([name, figureOf]) => [name, rounds.map(figureOf).filter(Number.isFinite)])
    .filter(([, values]) => values.length > 0);
  return Object.fromEntries(valuesByName.map(([name, values]) => [name, spread(values)]));
}

/**
 * Sums up the rounds of each contender.
 *
 * @param {Record<string, object[]>} rounds rounds by contender: {rate, cpuPerSprite, stall?,
 *   bytesPerClient?, heapBefore?, heapAfter?, …} each
 * @returns {Record<string, object>} by contender: the spread of each figure, and the ratios
 *   `cpuOverEpoll` and `rateOverNode` to the same rounds of epoll and node-http, if those ran
 */
export function summarize(rounds) {
  const { epoll, 'node-http': node } = rounds;
  const ratios = {
    heapGrowth: (round) => round.heapAfter - round.heapBefore,
    cpuOverEpoll: ({ cpuPerSprite }, i) => cpuPerSprite / epoll?.[i].cpuPerSprite,
    rateOverNode: ({ rate }, i) => rate / node?.[i].rate
  };
  return Object.fromEntries(
    Object.entries(rounds).map(([name, contenderRounds]) => [
      name,
      spreads(contenderRounds, ROUND_FIGURES, ratios)
    ])
  );
}

/**
 * Measures several subjects in turn, in several rounds. Each round begins with the next subject, so that no subject
 * always runs after the same other one.
 *
 * @template T
 * @param {string[]} names
 * @param {number} count number of rounds
 * @param {(name: string, round: number) => Promise<T>} measure
 * @param {string} [prefix] prefix of the progress messages
 * @returns {Promise<Record<string, T[]>>} the rounds of each subject
 */
export async function measureInRounds(names, count, measure, prefix = '') {
  const rounds = Object.fromEntries(names.map((name) => [name, []]));
  for (let round = 0; round < count; round += 1) {
    const offset = round % names.length;
    for (const name of [...names.slice(offset), ...names.slice(0, offset)]) {
      progress(`${prefix}round ${round + 1} of ${count}: ${name}`);
      rounds[name].push(await measure(name, round));
    }
  }
  progress('');
  return rounds;
}

/**
 * Measures several kinds of servers in turn, under one load after the other.
 *
 * @param {object} what
 * @param {string[]} what.kinds
 * @param {Record<string, object>} what.loads loads by name
 * @param {number} what.rounds
 * @param {(kind: string, load: object) => Promise<object>} what.measure
 * @param {string[]} what.figures names of a round's figures
 * @param {(all: Record<string, object[]>) => Parameters<typeof spreads>[2]} what.ratios returns the ratios to other
 *     kinds, from all rounds
 * @returns {Promise<object[]>} for each kind under each load: `kind`, `load`, and the spreads of figures and ratios
 */
export async function compareKinds({ kinds, loads, rounds, measure, figures, ratios }) {
  const rows = [];
  for (const [load, how] of Object.entries(loads)) {
    const roundsByKind = await measureInRounds(
      kinds,
      rounds,
      (kind) => measure(kind, how),
      `${load}, `
    );
    rows.push(
      ...kinds.map((kind) => ({
        load,
        kind,
        ...spreads(roundsByKind[kind], figures, ratios(roundsByKind))
      }))
    );
  }
  return rows;
}

/** Shows the progress of a bench. @param {string} text empty at its end */
export function progress(text) {
  process.stderr.write(process.stderr.isTTY ? `\r\x1b[K${text}` : text && `${text}\n`);
}

/** Ends a failed bench. @param {Error} error */
export function fail(error) {
  progress('');
  console.error(`bench: ${error.message}`);
  process.exit(1);
}

/** @param {boolean} pin whether server and load have a core each @returns {string} description of the machine */
export const describeMachine = (pin) =>
  `${cpus()[0].model.trim()}, ${availableParallelism()} cores; Linux ${release()}, Node ${process.version}; ` +
  `${pin ? 'server on core 0, load on core 1' : 'server and load not pinned'}.`;

/**
 * Prints which bounds hold.
 *
 * @param {{json?: boolean, strict?: boolean}} options `json`: prints nothing, as the JSON has them; `strict`: the exit
 *     code is 1 if a bound does not hold
 * @param {{figure: string, value: string, holds: boolean}[]} rows
 */
export function printVerdicts({ json = false, strict = false }, rows) {
  for (const { figure, value, holds } of json ? [] : rows) {
    console.log(`${holds ? 'holds' : 'DOES NOT HOLD'}: ${figure}: ${value}`);
  }
  if (strict && rows.some(({ holds }) => !holds)) process.exitCode = 1;
}

/**
 * Prints the findings of a bench: a table and which bounds hold, or all findings as JSON.
 *
 * @param {{json?: boolean, strict?: boolean}} options see printVerdicts
 * @param {object} found
 * @param {string} found.table a table in Markdown
 * @param {string} found.about where and how the bench measured
 * @param {{figure: string, value: string, holds: boolean}[]} [found.held]
 * @param {object} found.rest further members of the JSON
 */
export function report(options, { table, about, held = [], ...rest }) {
  const json = () => JSON.stringify({ about, held, ...rest }, null, 2);
  console.log(options.json ? json() : `${table}\n\n${about}`);
  printVerdicts(options, held);
}

/**
 * @param {Array<[figure: string, value: number, say: (value: number) => string, holds: boolean]>} rows
 * @returns {{figure: string, value: string, holds: boolean}[]} the rows with a known value
 */
export const knownVerdicts = (rows) =>
  rows
    .filter(([, value]) => value !== undefined)
    .map(([figure, value, say, holds]) => ({ figure, value: say(value), holds }));

const decimals = (digits) =>
  new Intl.NumberFormat('en-US', { minimumFractionDigits: digits, maximumFractionDigits: digits });

/** Formats of numbers in the tables. */
export const whole = decimals(0);
export const tenth = decimals(1);
export const fine = decimals(2);

/** @param {?number} value @returns {string} the number; `-` for none */
export const numberCell = (value, format = tenth) =>
  Number.isFinite(value) ? format.format(value) : '-';

/** @returns {string} the median and, in brackets, least and most if they differ; `-` for no figure */
export function spreadCell(figure, format = tenth, unit = '') {
  if (!figure) return '-';
  const [median, min, max] = [figure.median, figure.min, figure.max].map(format.format);
  return min === max ? `${median}${unit}` : `${median}${unit} (${min}–${max})`;
}

/**
 * @template T
 * @param {Record<string, (row: T) => string | number>} columns columns by their headings
 * @param {T[]} rows in a row with `failed`, this text follows the first cell
 * @returns {string} a table in Markdown
 */
export function tableOf(columns, rows) {
  const headings = Object.keys(columns);
  const [first, ...others] = Object.values(columns);
  const cells = (row) =>
    row.failed === undefined
      ? others.map((cellOf) => cellOf(row))
      : others.map((_, i) => (i === 0 ? row.failed : ''));
  const lines = rows.map((row) => [first(row), ...cells(row)]);
  return [headings, headings.map(() => '---'), ...lines]
    .map((line) => `| ${line.join(' | ')} |`)
    .join('\n');
}

/** @returns {object[]} rows of a table, from figures by name */
export const rowsByName = (figuresByName) =>
  Object.entries(figuresByName).map(([name, figures]) => ({ name, ...figures }));

function heapCell({ heapBefore, heapAfter }) {
  if (!heapBefore) return '-';
  return `${tenth.format(heapBefore.median / 1e6)} → ${tenth.format(heapAfter.median / 1e6)} MB`;
}

/**
 * @param {Record<string, object>} summary the result of `summarize`
 * @param {Record<string, string>} titles titles by contender
 * @param {number} memoryClients number of clients parked for the memory figures
 * @returns {string} the table, in Markdown
 */
export function table(summary, titles, memoryClients) {
  const columns = {
    server: ({ name }) => titles[name],
    'sprites/s': ({ rate }) => spreadCell(rate, whole),
    '× node:http': ({ rateOverNode }) => spreadCell(rateOverNode),
    'server CPU per sprite': ({ cpuPerSprite }) => spreadCell(cpuPerSprite, tenth, ' µs'),
    '× epoll': ({ cpuOverEpoll }) => spreadCell(cpuOverEpoll, fine),
    'bytes per parked client': ({ bytesPerClient }) => spreadCell(bytesPerClient, whole),
    [`V8 heap, 0 → ${whole.format(memoryClients)} parked`]: heapCell,
    'longest stall': ({ stall }) => spreadCell(stall, tenth, ' ms')
  };
  return tableOf(columns, rowsByName(summary));
}

/** Returns the table of sprites thrown by the clock: see table(). */
export function latenessTable(summary, titles) {
  const percentiles = LATENESS_FIGURES.map((one) => [
    `${one}, ms`,
    (row) => spreadCell(row[one], fine)
  ]);
  const columns = { server: ({ name }) => titles[name], ...Object.fromEntries(percentiles) };
  return tableOf(columns, rowsByName(summary));
}

/**
 * Compares the medians of sprites with their bounds.
 *
 * @param {Record<string, object>} summary the result of `summarize`
 * @param {number} memoryClients number of clients parked for the memory figures
 * @returns {{figure: string, value: string, holds: boolean}[]} a row for each measured figure
 */
export function verdicts({ sprites = {}, nchan }, memoryClients) {
  const medianOf = (name) => sprites[name]?.median;
  const [overEpoll, cpu, overNode] = ['cpuOverEpoll', 'cpuPerSprite', 'rateOverNode'].map(medianOf);
  const [bytes, heap] = ['bytesPerClient', 'heapGrowth'].map(medianOf);
  const p999 = medianOf('p99.9');
  const nchanCpu = nchan?.cpuPerSprite?.median;
  const { cpuOverEpoll, rateOverNode, bytesPerClient, heapPerClient } = BOUNDS;
  return knownVerdicts([
    [`p99.9 of sprites at most ${BOUNDS.late} ms`, p999, fine.format, p999 <= BOUNDS.late],
    [
      `CPU per sprite at most ${cpuOverEpoll} × epoll's`,
      ...[overEpoll, (value) => `${fine.format(value)} ×`, overEpoll <= cpuOverEpoll]
    ],
    [
      "CPU per sprite less than nchan's",
      nchan && cpu,
      (value) => `${tenth.format(value)} µs to ${tenth.format(nchanCpu)} µs`,
      cpu < nchanCpu
    ],
    [
      `at least ${rateOverNode} × node:http's sprites/s`,
      ...[overNode, (value) => `${tenth.format(value)} ×`, overNode >= rateOverNode]
    ],
    [
      `at most ${bytesPerClient} bytes per parked client`,
      ...[bytes, whole.format, bytes <= bytesPerClient]
    ],
    [
      'V8 heap unchanged by parked clients',
      heap,
      (value) => `${whole.format(value / 1000)} kB more`,
      heap <= heapPerClient * memoryClients
    ]
  ]);
}

/** The bound of the server's resident size in bytes, and the number of clients from which it counts. */
const COUNTING_CLIENTS = 1e6;
const MAX_RESIDENT = 600e6;

/**
 * Compares the server's resident size with its bound.
 *
 * @param {object} options options of the run
 * @param {number} options.clients
 * @param {number} [options.mostResident] bound in bytes, which counts for any number of clients
 * @param {number} resident resident size with all clients, in bytes
 * @returns {{resident: number, most: number, holds: boolean, counts: boolean}} a verdict that
 *     counts and does not hold fails the run
 */
export function residentVerdict({ clients, mostResident }, resident) {
  const most = mostResident ?? MAX_RESIDENT;
  const isBinding = mostResident !== undefined || clients >= COUNTING_CLIENTS;
  return { resident, most, holds: resident <= most, counts: isBinding };
}
