/**
 * What npm run bench:feeds measures, what of it is held to what, and its tables.
 */
import { Histogram } from '../../lib/swarm/histogram.js';
import { markdown, number as cell, tenth, whole } from './figures.js';

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

/**
 * @param {Record<string, object>} rows by contender: figuresOf, or {failed}
 * @param {(name: string) => string} titleOf
 * @returns {string} the table of one cell, in Markdown
 */
export function table(rows, titleOf) {
  const headings = [
    ...['server', 'documents/s', 'CPU a document', 'resident (growth)', 'sockets', 'late p50'],
    ...['p99', 'max', 'skipped', 'missing', 'stall (CPU)']
  ];
  const lines = Object.entries(rows).map(([name, row]) =>
    row.failed === undefined
      ? [
          titleOf(name),
          cell(row.rate, whole),
          `${cell(row.cpu)} µs`,
          `${megabytes(row.resident)} MB (+${megabytes(row.growth)})`,
          `${megabytes(row.sockets)} MB`,
          `${cell(row.p50)} ms`,
          cell(row.p99),
          cell(row.max),
          cell(row.skipped, whole),
          cell(row.missing, whole),
          row.stall === undefined ? '-' : `${cell(row.stall)} ms (${cell(row.work)})`
        ]
      : [titleOf(name), row.failed, ...Array(9).fill('')]
  );
  return markdown([headings, ...lines]);
}

/**
 * Compares the figures of Sprites in one cell with what is promised.
 *
 * @param {object} of one of CELLS
 * @param {Record<string, object>} rows
 * @returns {{figure: string, value: string, holds: boolean}[]}
 */
export function verdicts(of, rows) {
  const list = [];
  for (const [name, row] of Object.entries(rows)) {
    if (!name.startsWith('sprites')) continue;
    const judge = (figure, value, holds) =>
      list.push({ figure: `${name}: ${figure}`, value, holds });
    if (row.failed !== undefined) {
      judge('is served', row.failed, false);
      continue;
    }
    const ws = rows.ws?.cpu;
    if (of.ws !== undefined && ws) {
      const times = row.cpu / ws;
      judge(`CPU a document at most ${of.ws} × ws's`, times.toFixed(2), times <= of.ws);
    }
    const without = rows['sprites-poll']?.cpu;
    if (name === 'sprites-poll-grant' && without) {
      const times = row.cpu / without;
      judge(
        `CPU a document at most ${HELD.grant} × that without a grant`,
        times.toFixed(2),
        times <= HELD.grant
      );
    }
    judge('resident size grows by at most 60 MB', megabytes(row.growth), row.growth <= HELD.growth);
    judge(
      'none is later than 2 s',
      `${cell(row.max)} ms`,
      row.max !== null && row.max <= HELD.late
    );
    judge(
      'none misses what is newest, none has it twice',
      `${row.missing}, ${row.repeated}`,
      row.missing === 0 && row.repeated === 0
    );
    if (row.stall !== undefined) {
      const value = `${cell(row.stall)} ms, ${cell(row.work)} of them its own CPU`;
      judge('no stall above 10 ms', value, row.stall <= HELD.stall);
    }
  }
  return list;
}
