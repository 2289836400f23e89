/**
 * The cells of npm run bench:feeds, the rules by which a contender is broken, the bounds for Sprites, and the tables.
 */
import { Histogram } from '../../lib/swarm/histogram.js';
import {
  fine,
  knownVerdicts,
  rowsByName,
  numberCell as numberText,
  tableOf,
  tenth,
  whole
} from './figures.js';

const MEGABYTE = 2 ** 20;

/** The work whose number of clients the study raises until a contender breaks. */
export const SEARCH_WORK = {
  ...{ name: '165 KB a second to 120', connections: 120, bytes: 165000, every: 1 }
};

/**
 * The work of the cells: `connections` watchers, and a document of `bytes` bytes every `every` seconds. With `grow`
 * that many of the watchers connect each second of the measurement. `ws` bounds the server's CPU a document, as a
 * multiple of that of ws. Cells with `short` are in a short run. `only` names the only kind of run with the cell.
 */
const WORKS = [
  { ...SEARCH_WORK, ws: 1, short: true },
  { ...SEARCH_WORK, name: '165 KB a second to 410', connections: 410, ws: 1, only: 'usual' },
  { ...SEARCH_WORK, name: '165 KB a second to 2,000', connections: 2000, ws: 1, only: 'usual' },
  {
    ...{ name: '5 KB a second to 4,000', connections: 4000, bytes: 5000, every: 1, ws: 0.5 },
    ...{ short: true, only: 'usual' }
  },
  {
    ...{ name: '5 KB a second to 4,000, ten new ones a second', connections: 4000, bytes: 5000 },
    ...{ every: 1, grow: 10, short: true, only: 'study' }
  },
  { name: '10 KB a second to 2,000', connections: 2000, bytes: 10000, every: 1 },
  { name: '10 KB every two seconds to 4,000', connections: 4000, bytes: 10000, every: 2 }
];

/** Each work as it is, with a tenth that reads nothing, and with all cut off for two seconds. */
export const CHANGES = {
  none: { suffix: '' },
  stalled: { suffix: ', a tenth stalled', stalled: 0.1 },
  cut: { suffix: ', cut off for 2 s', cut: 2 }
};

/** Publications there must be for a cut: some before it, one while it lasts, two after. */
const PUBLICATIONS_OF_A_CUT = 6;
const SECONDS_OF_A_CUT_CELL = 8;

/**
 * @param {{study: boolean, short: boolean, changes: string[], seconds: number}} options
 * @returns {object[]} the cells: what the load generator is to do, with a name and what it is held to
 */
export const cellsOf = ({ study, short, changes, seconds }) =>
  WORKS.filter(
    (work) => work.only !== (study ? 'usual' : 'study') && (work.short || !short)
  ).flatMap((work) =>
    changes.map((change) => {
      const { suffix, ...changeOptions } = CHANGES[change];
      const cellSeconds = changeOptions.cut
        ? Math.max(seconds, SECONDS_OF_A_CUT_CELL, PUBLICATIONS_OF_A_CUT * work.every)
        : Math.max(seconds, 2 * work.every);
      return { ...work, ...changeOptions, name: work.name + suffix, seconds: cellSeconds };
    })
  );

/** Bounds: growth in bytes, late and stall in milliseconds, grant as a multiple of the CPU without a grant. */
const BOUNDS = { growth: 60 * MEGABYTE, late: 2000, stall: 10, grant: 1.1 };

const megabytes = (bytes) => tenth.format(bytes / MEGABYTE);
const percent = (share) => `${tenth.format(share * 100)}%`;

/**
 * Returns the figures of one contender in one cell.
 *
 * @param {object} result of the load generator
 * @param {{longestStall?: number, longestWork?: number}} [turns] milliseconds: the longest of the
 *     server's event loop, by the wall and of CPU
 * @returns {object} microseconds of CPU a document, bytes, milliseconds, counts; `missed`, the share of documents that did not
 *     come and that no newer one replaced; `load`, the load generator's share of its core; `times`, what resident size grew
 *     to, as a multiple of what it was when the measuring began; of clients that were cut off how many got `cutAll` that they
 *     had missed, `cutNewest` or nothing before the next (`cutNext`), and after how long, `cutWait`
 */
export function figuresOf(result, { longestStall: stall, longestWork: work } = {}) {
  const { documents, missing, skipped, repeated, unpublished, seconds } = result;
  const lateness = new Histogram().add(result.lateness);
  const [p50, p99, p999] = lateness
    .percentiles([50, 99, 99.9])
    .map((ns) => (ns === null ? null : ns / 1e6));
  const dueDocuments = documents + skipped + missing;
  const { cutAll, cutNewest, cutNext } = result;
  const returned = cutAll + cutNewest + cutNext;
  return {
    ...{ documents, skipped, missing, repeated, unpublished, stall, work, p50, p99, p999 },
    rate: documents / seconds,
    cpu: documents > 0 ? (result.cpu / documents) * 1e6 : null,
    resident: result.residentPeak,
    growth: result.residentPeak - result.residentBefore,
    times: result.residentPeak / result.residentWarm,
    sockets: Math.max(0, result.socketsPeak - result.socketsBefore),
    max: documents > 0 ? result.latest / 1000 : null,
    missed: dueDocuments > 0 ? missing / dueDocuments : 1,
    load: result.loadCpu / seconds,
    ...{
      cutAll,
      cutNewest,
      cutNext,
      cutWait: returned > 0 ? result.cutWait / returned / 1000 : null
    }
  };
}

/** Above this share of its core, the load generator may be late instead of the contender. */
const LOAD_LIMIT = 0.9;

/**
 * @param {object} row a result of `figuresOf`, or {failed}
 * @returns {string | null} why the contender is broken; null: it is not
 */
export function whyBroken(row) {
  if (row.failed !== undefined) return row.failed;
  const load = row.load > LOAD_LIMIT ? ' (the load generator is at its limit)' : '';
  if (row.missed > 0.01) return `${percent(row.missed)} missing${load}`;
  if (row.p99 === null) return 'nothing came';
  if (row.p99 > 1000) return `p99 ${tenth.format(row.p99 / 1000)} s late${load}`;
  if (row.times >= 2) return `resident size ${tenth.format(row.times)} times`;
  return null;
}

/** Ratio of a rung's number of clients to that of the rung below. */
const RUNG_RATIO = 4 / 3;

/** Returns the numbers of clients of a search: each a third more than the one before; the last is `most`. */
function rungsBetween(first, most) {
  const rungs = [];
  for (let next = first; next < most; next = Math.round(next * RUNG_RATIO)) rungs.push(next);
  return [...rungs, most];
}

/**
 * Estimates the most clients, where the search begins: the number that fills a core, by the CPU of a document with
 * few clients.
 *
 * @param {object} [row] a result of `figuresOf`, or {failed}
 * @returns {number | undefined}
 */
export const estimatedMost = (row) =>
  row?.cpu > 0 ? Math.round(1e6 / (row.cpu * SEARCH_WORK.every)) : undefined;

/**
 * Searches the number of clients at which a contender breaks. All contenders have the same rungs, each a third more
 * clients than the one below. The search begins at `guess`, and goes up while the contender holds or down while it
 * breaks. So the result does not depend on the guess, unless a contender breaks with fewer clients and holds with
 * more. The result must hold for `held` seconds; else the next rung below is tried.
 *
 * @param {(connections: number, seconds: number) => Promise<object>} measure returns a row
 * @param {{first: number, most: number, seconds: number, held: number, guess?: number}} options
 * @returns {Promise<{holds: number, breaks: number|null, why: string|null, steps: object[]}>} `holds`:
 *     most clients served; `breaks`: fewest clients that broke it, null above `most`
 */
export async function searchBreak(measure, { first, most, seconds, held, guess = first }) {
  const rungs = rungsBetween(first, most);
  const steps = [];
  const tryRung = async (connections, length) => {
    const row = await measure(connections, length);
    const why = whyBroken(row);
    steps.push({ connections, seconds: length, why, row });
    return why;
  };
  // Indices of rungs: `low` holds (-1: none), `high` breaks.
  let low = -1;
  let high = rungs.length;
  let why = null;
  let next = Math.max(
    0,
    rungs.findLastIndex((connections) => connections <= guess)
  );
  while (high - low > 1) {
    const reason = await tryRung(rungs[next], seconds);
    if (reason === null) {
      low = next;
      next += 1;
    } else {
      [high, why] = [next, reason];
      next -= 1;
    }
  }
  for (; low >= 0; --low) {
    const reason = await tryRung(rungs[low], held);
    if (reason === null) break;
    [high, why] = [low, `${reason}, within ${held} s`];
  }
  return { holds: rungs[low] ?? 0, breaks: rungs[high] ?? null, why, steps };
}

/** Figures of which the worst round counts; for all others the median counts. */
const WORST = [
  ...['growth', 'max', 'skipped', 'missing', 'missed', 'repeated', 'unpublished', 'stall', 'work'],
  ...['times', 'load']
];

/**
 * Combines the figures of several rounds of one contender in one cell.
 *
 * @param {object[]} rounds results of figuresOf, or {failed}
 * @returns {object}
 */
export function combinedRounds(rounds) {
  const failed = rounds.find((round) => round.failed !== undefined);
  if (failed !== undefined) return failed;
  const row = {};
  for (const name of Object.keys(rounds[0])) {
    const values = rounds.map((round) => round[name]).sort((a, b) => a - b);
    row[name] = WORST.includes(name) ? values.at(-1) : values[Math.floor(values.length / 2)];
  }
  return row;
}

/** What the clients that were cut off got. */
function cutCell({ cutAll, cutNewest, cutNext, cutWait }) {
  const returned = cutAll + cutNewest + cutNext;
  if (returned === 0) return 'nothing came';
  const parts = [
    [cutAll, 'all they missed'],
    [cutNewest, 'the newest'],
    [cutNext, 'nothing before the next']
  ].filter(([clients]) => clients > 0);
  const texts = parts.map(([clients, what]) => `${percent(clients / returned)} ${what}`);
  return `${texts.join(', ')}, after ${numberText(cutWait, whole)} ms`;
}

const COLUMNS = {
  'documents/s': ({ rate }) => numberText(rate, whole),
  'CPU a document': ({ cpu }) => `${numberText(cpu)} µs`,
  'resident (growth)': ({ resident, growth }) =>
    `${megabytes(resident)} MB (+${megabytes(growth)})`,
  sockets: ({ sockets }) => `${megabytes(sockets)} MB`,
  'late p50': ({ p50 }) => `${numberText(p50)} ms`,
  p99: ({ p99 }) => numberText(p99),
  'p99.9': ({ p999 }) => numberText(p999),
  max: ({ max }) => numberText(max),
  skipped: ({ skipped }) => numberText(skipped, whole),
  missing: ({ missing, missed }) =>
    `${numberText(missing, whole)}${missing > 0 ? ` (${percent(missed)})` : ''}`,
  'stall (CPU)': ({ stall, work }) =>
    stall === undefined ? '-' : `${numberText(stall)} ms (${numberText(work)})`,
  load: ({ load }) => percent(Math.max(0, load))
};
const CUT_COLUMN = { 'reconnected clients got': cutCell };

/**
 * @param {{rows: Record<string, object>, cut?: number}} cell its rows by contender: figuresOf, or {failed}
 * @param {(name: string) => string} titleOf
 * @returns {string} the table of one cell, in Markdown
 */
export const table = ({ rows, cut }, titleOf) =>
  tableOf(
    { server: ({ name }) => titleOf(name), ...COLUMNS, ...(cut && CUT_COLUMN) },
    rowsByName(rows)
  );

/** Returns words for the number of clients at which a contender broke. */
const breaksAt = ({ breaks }, most) =>
  breaks === null ? `more than ${whole.format(most)}` : whole.format(breaks);

/**
 * @param {{breaks: Record<string, object>, most: number, held: number}} study `breaks`: results of searchBreak()
 * @param {(name: string) => string} titleOf
 * @returns {string} the table of where each contender breaks
 */
export const breakTable = ({ breaks, most, held }, titleOf) =>
  tableOf(
    {
      server: ({ name }) => titleOf(name),
      [`held for ${held} s`]: ({ holds }) => whole.format(holds),
      'breaks at': (found) => breaksAt(found, most),
      by: ({ why }) => why ?? '-'
    },
    rowsByName(breaks)
  );

/**
 * One line a contender, over the cells without stalled or cut off clients: the table of test/README.md.
 *
 * @param {{cells: object[], breaks: Record<string, object>, most: number}} study a study, as in the file of --json
 * @param {(name: string) => string} titleOf
 * @returns {string} empty if none of these cells was measured
 */
export function summaryTable({ cells, breaks, most }, titleOf) {
  const plainCells = cells.filter(({ stalled, cut }) => !stalled && !cut);
  if (plainCells.length === 0) return '';
  const ofCell = ({ name, rows }) => [
    name,
    ({ name }) => {
      const { failed, cpu, p99 } = rows[name];
      return failed ?? `${numberText(cpu)}; ${numberText(p99)}`;
    }
  ];
  const columns = {
    server: ({ name }) => titleOf(name),
    ...Object.fromEntries(plainCells.map(ofCell)),
    ...(Object.keys(breaks).length > 0 && {
      'breaks at': ({ name }) => breaksAt(breaks[name], most)
    })
  };
  return tableOf(
    columns,
    Object.keys(plainCells[0].rows).map((name) => ({ name }))
  );
}

/**
 * Compares the figures of Sprites in one cell with their bounds.
 *
 * @param {object} cell a cell of cellsOf()
 * @param {Record<string, object>} rows
 * @returns {{figure: string, value: string, holds: boolean}[]}
 */
export const verdicts = (cell, rows) =>
  Object.entries(rows)
    .filter(([name]) => name.startsWith('sprites'))
    .flatMap(([name, row]) =>
      knownVerdicts(verdictRows(cell, name, row, rows)).map((one) => ({
        ...one,
        figure: `${name}: ${one.figure}`
      }))
    );

/** Returns the bounds of one contender: see knownVerdicts(). */
function verdictRows(cell, name, row, { ws, 'sprites-poll': poll }) {
  if (row.failed !== undefined) return [['is served', row.failed, String, false]];
  const { cpu, growth, max, missing, repeated, stall, work } = row;
  const ratioTo = (other) => (other?.cpu ? cpu / other.cpu : undefined);
  const ratioToWs = cell.ws && ratioTo(ws);
  const ratioToPoll = name === 'sprites-poll-grant' ? ratioTo(poll) : undefined;
  const ms = (value) => `${numberText(value)} ms`;
  return [
    [`CPU a document at most ${cell.ws} × ws's`, ratioToWs, fine.format, ratioToWs <= cell.ws],
    [
      `CPU a document at most ${BOUNDS.grant} × that without a grant`,
      ...[ratioToPoll, fine.format, ratioToPoll <= BOUNDS.grant]
    ],
    ['resident size grows by at most 60 MB', growth, megabytes, growth <= BOUNDS.growth],
    ['none is later than 2 s', max, ms, max !== null && max <= BOUNDS.late],
    [
      'none misses what is newest, none has it twice',
      missing + repeated,
      () => `${missing}, ${repeated}`,
      missing + repeated === 0
    ],
    [
      'no stall above 10 ms',
      stall,
      () => `${ms(stall)}, ${numberText(work)} of them its own CPU`,
      stall <= BOUNDS.stall
    ]
  ];
}
