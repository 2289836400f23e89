/**
 * What npm run bench:feeds measures, what of it is held to what, and its tables.
 */
import { Histogram } from '../../lib/swarm/histogram.js';
import { fine, judged, number as cell, tableOf, tenth, whole } from './figures.js';

const MEGABYTE = 2 ** 20;

/**
 * The cells: so many watchers, a document of so many bytes every so many seconds; with `patch` so
 * many bytes of it change, and that is what is published. `ws` is what the server's CPU a document
 * may be of that of ws; `short` whether the short run has it.
 */
export const CELLS = [
  { name: '165 KB/s to 120', connections: 120, bytes: 165000, every: 1, ws: 1, short: true },
  { name: '165 KB/s to 410', connections: 410, bytes: 165000, every: 1, ws: 1 },
  { name: '165 KB/s to 2,000', connections: 2000, bytes: 165000, every: 1, ws: 1 },
  { name: '5 KB/s to 4,000', connections: 4000, bytes: 5000, every: 1, ws: 0.5, short: true },
  { name: '10 KB/s to 2,000', connections: 2000, bytes: 10000, every: 1 },
  { name: '10 KB every 2 s to 4,000', connections: 4000, bytes: 10000, every: 2 },
  { name: '200-byte patch/s to 15,000', connections: 15000, bytes: 10000, patch: 200, every: 1 }
];

/** What the server is held to, in every cell. */
const HELD = { growth: 60 * MEGABYTE, late: 2000, stall: 10, grant: 1.1 };

const megabytes = (bytes) => tenth.format(bytes / MEGABYTE);

/**
 * The figures of one contender in one cell.
 *
 * @param {object} result of the load generator
 * @param {{longestStall?: number, longestWork?: number}} [turns] milliseconds: the longest of the
 *     server's event loop, by the wall and of CPU
 * @returns {object} microseconds of CPU a document, bytes, milliseconds, counts
 */
export function figuresOf(result, { longestStall: stall, longestWork: work } = {}) {
  const lateness = new Histogram().add(result.lateness);
  const [p50, p99, p999] = lateness
    .percentiles([50, 99, 99.9])
    .map((ns) => (ns === null ? null : ns / 1e6));
  return {
    documents: result.documents,
    rate: result.documents / result.seconds,
    cpu: result.documents > 0 ? (result.cpu / result.documents) * 1e6 : null,
    loadCpu: result.documents > 0 ? (result.loadCpu / result.documents) * 1e6 : null,
    resident: result.residentPeak,
    growth: result.residentPeak - result.residentBefore,
    sockets: Math.max(0, result.socketsPeak - result.socketsBefore),
    p50,
    p99,
    p999,
    max: result.documents > 0 ? result.latest / 1000 : null,
    skipped: result.skipped,
    missing: result.missing,
    repeated: result.repeated,
    unpublished: result.unpublished,
    stall,
    work
  };
}

/** Of these figures the worst round counts; of all others the median. */
const WORST = ['growth', 'max', 'skipped', 'missing', 'repeated', 'unpublished', 'stall', 'work'];

/**
 * The figures of several rounds of one contender in one cell as one.
 *
 * @param {object[]} rounds figuresOf, or {failed}
 * @returns {object}
 */
export function together(rounds) {
  const failed = rounds.find((round) => round.failed !== undefined);
  if (failed !== undefined) return failed;
  const row = {};
  for (const name of Object.keys(rounds[0])) {
    const values = rounds.map((round) => round[name]).sort((a, b) => a - b);
    row[name] = WORST.includes(name) ? values.at(-1) : values[Math.floor(values.length / 2)];
  }
  return row;
}

const COLUMNS = {
  'documents/s': ({ rate }) => cell(rate, whole),
  'CPU a document': ({ cpu }) => `${cell(cpu)} µs`,
  'resident (growth)': ({ resident, growth }) =>
    `${megabytes(resident)} MB (+${megabytes(growth)})`,
  sockets: ({ sockets }) => `${megabytes(sockets)} MB`,
  'late p50': ({ p50 }) => `${cell(p50)} ms`,
  p99: ({ p99 }) => cell(p99),
  max: ({ max }) => cell(max),
  skipped: ({ skipped }) => cell(skipped, whole),
  missing: ({ missing }) => cell(missing, whole),
  'stall (CPU)': ({ stall, work }) =>
    stall === undefined ? '-' : `${cell(stall)} ms (${cell(work)})`
};

/**
 * @param {Record<string, object>} rows by contender: figuresOf, or {failed}
 * @param {(name: string) => string} titleOf
 * @returns {string} the table of one cell, in Markdown
 */
export const table = (rows, titleOf) =>
  tableOf(
    { server: ({ name }) => titleOf(name), ...COLUMNS },
    Object.entries(rows).map(([name, row]) => ({ name, ...row }))
  );

/**
 * Compares the figures of Sprites in one cell with what is promised.
 *
 * @param {object} of one of CELLS
 * @param {Record<string, object>} rows
 * @returns {{figure: string, value: string, holds: boolean}[]}
 */
export const verdicts = (of, rows) =>
  Object.entries(rows)
    .filter(([name]) => name.startsWith('sprites'))
    .flatMap(([name, row]) =>
      judged(heldOf(of, name, row, rows)).map((one) => ({
        ...one,
        figure: `${name}: ${one.figure}`
      }))
    );

/** What one of them is held to: see judged(). */
function heldOf(of, name, row, { ws, 'sprites-poll': poll }) {
  if (row.failed !== undefined) return [['is served', row.failed, String, false]];
  const { cpu, growth, max, missing, repeated, stall, work } = row;
  const times = (other) => (other?.cpu ? cpu / other.cpu : undefined);
  const ofWs = of.ws && times(ws);
  const ofPoll = name === 'sprites-poll-grant' ? times(poll) : undefined;
  const ms = (value) => `${cell(value)} ms`;
  return [
    [`CPU a document at most ${of.ws} × ws's`, ofWs, fine.format, ofWs <= of.ws],
    [
      `CPU a document at most ${HELD.grant} × that without a grant`,
      ...[ofPoll, fine.format, ofPoll <= HELD.grant]
    ],
    ['resident size grows by at most 60 MB', growth, megabytes, growth <= HELD.growth],
    ['none is later than 2 s', max, ms, max !== null && max <= HELD.late],
    [
      'none misses what is newest, none has it twice',
      missing + repeated,
      () => `${missing}, ${repeated}`,
      missing + repeated === 0
    ],
    [
      'no stall above 10 ms',
      stall,
      () => `${ms(stall)}, ${cell(work)} of them its own CPU`,
      stall <= HELD.stall
    ]
  ];
}
