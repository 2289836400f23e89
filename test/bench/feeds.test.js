import { execFile, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';

import t from 'tap';

import { Histogram } from '../../lib/swarm/histogram.js';
import { listening } from '../support/addresses.js';
import { documentAt } from '../support/documents.js';
import { buildWatchers, startLoad, TOKEN, withTurns } from './contenders.js';
import {
  breakTable,
  cellsOf,
  figuresOf,
  estimatedMost,
  searchBreak,
  SEARCH_WORK,
  summaryTable,
  table,
  combinedRounds,
  verdicts,
  whyBroken
} from './feed-figures.js';
import { CHANGING_SHARE, contenders, feedContenders } from './transports/contenders.js';

/**
 * The benchmark of feeds and the transport study: the load generator's reader of each wire format against a recording
 * of the real server (transports/record.js) and, if its package is installed, against the server itself; and the
 * computed figures.
 */

t.jobs = 3;

const recordings = JSON.parse(
  gunzipSync(readFileSync(new URL('transports/recordings.json.gz', import.meta.url)))
);
const program = buildWatchers();

/** First and last version in a recording of `record.js`. */
const FIRST = 1;
const LAST = 9;

/** Number of sends while a recording is read: pongs and next polls. */
const SENDS = {
  'engine.io': 1,
  'socket.io': 2, // the namespace, too
  primus: 1,
  sockjs: 1,
  'sprites-poll': 9,
  'sprites-poll-delta': 9,
  'nchan-poll': 8
};

for (const [name, text] of Object.entries(recordings)) {
  t.test(`${name}: a recording is read, in whatever pieces it comes`, async (t) => {
    const input = Buffer.from(text, 'latin1');
    for (const piece of [1, 7, 1460, input.length]) {
      const args = [`--protocol=${contenders[name].protocol}`, `--read=${piece}`];
      const read = spawnSync(program, args, { input, encoding: 'utf8' });
      t.equal(read.stderr, '');
      const { versions, sends } = JSON.parse(read.stdout);
      const first = versions[0];
      t.ok(first <= FIRST + 1, 'what streams need not have the one from before they were opened');
      t.strictSame(
        versions,
        Array.from({ length: LAST - first + 1 }, (_, i) => first + i)
      );
      t.equal(sends, SENDS[name] ?? 0);
    }
  });
}

t.test('every contender has its recording', async (t) => {
  const recorded = Object.keys(recordings);
  t.strictSame(recorded.toSorted(), Object.keys(contenders).toSorted());
});

const CONNECTIONS = 20;
const STALLED = 2;
const READERS = CONNECTIONS - STALLED;
const PUBLICATIONS = 12;
const EVERY = 0.1;

/** Runs a short load on a contender, and checks the counts. @returns {Promise<?object>} null: not installed */
async function runLoad(t, contender, extraOptions) {
  const why = contender.missing();
  if (why !== null) return t.skip(why) && null;
  const server = await contender.start(false);
  t.teardown(() => server.stop());
  const work = {
    ...{ protocol: contender.protocol, token: contender.token?.() ?? TOKEN },
    // This length gives frames and chunks of all kinds of lengths.
    ...{ connections: CONNECTIONS, bytes: 70000, stalled: STALLED / CONNECTIONS },
    ...{ every: EVERY, seconds: PUBLICATIONS * EVERY, warmup: 2, ...extraOptions }
  };
  const load = startLoad(server, false, work);
  t.teardown(() => load.stop());
  const result = await load.measure();
  t.equal(await load.ended, 0);
  const { published, unpublished, documents, skipped } = result;
  t.equal(published + unpublished, PUBLICATIONS);
  t.match(result, { stalled: STALLED, missing: 0, ended: 0 });
  t.equal(documents + skipped, READERS * published, 'seen, or replaced by a newer one');
  const { residentBefore, residentWarm, residentPeak } = result;
  t.ok(result.cpu > 0 && result.loadCpu >= 0);
  t.ok(residentPeak >= residentBefore && residentPeak >= residentWarm);
  return result;
}

/** One of each kind: a body with a length, chunks, frames, and what nginx makes of an event stream. */
const WAYS = ['sprites-poll', 'sprites-poll-grant', 'sprites-stream', 'ws', 'sse', 'nchan-stream'];

for (const name of WAYS) {
  t.test(`${name}: every document is counted once, whole`, async (t) => {
    const result = await runLoad(t, feedContenders[name], {});
    if (result === null) return;
    t.equal(result.repeated, 0);
    t.equal(new Histogram().add(result.lateness).count, result.documents);
    const least = result.documents * 69900;
    t.ok(result.bytes >= least, `${result.bytes} bytes of at least ${least}`);
  });
}

/** Contenders that npm run bench:feeds lacks; and what a reconnected client gets, where that is certain. */
const LIVE = {
  'sprites-poll-delta': 'remembers',
  'sprites-stream': 'remembers',
  'socket.io': 'all',
  'engine.io': 'any',
  primus: 'any',
  sockjs: 'any',
  'nchan-stream': 'all',
  'nchan-ws': 'any',
  'nchan-poll': 'all',
  bun: 'any'
};

for (const [name, expected] of Object.entries(LIVE)) {
  const why = contenders[name].missing();
  if (why !== null && name === 'bun') {
    // The suite does not download bun (100 MB): its wire format is that of ws, and it has a recording.
    t.comment(`bun: ${why}`);
    continue;
  }
  t.test(`${name}: what was sent is counted, before and after a cut`, async (t) => {
    const cut = { changing: CHANGING_SHARE, 'warmup-every': 0.1, cut: 2 * EVERY, again: 1 };
    const result = await runLoad(t, contenders[name], cut);
    if (result === null) return;
    const { skipped, cutAll, cutNewest, cutNext } = result;
    t.equal(cutAll + cutNewest + cutNext, READERS, 'all were cut off, and came again');
    if (expected !== 'any') t.equal(cutNext, 0, 'what was missed came');
    if (expected === 'all') t.strictSame([cutAll, skipped], [READERS, 0]);
  });
}

t.test('a server that goes away is told of, and ends the load', async (t) => {
  const server = await feedContenders.sse.start(false);
  const load = startLoad(server, false, { protocol: 'sse', connections: 5 });
  t.teardown(() => load.stop());
  await load.next('open');
  const ended = once(load.child, 'exit');
  await server.stop();
  await t.rejects(load.next('result'), /ended/);
  t.strictSame((await ended)[0], 1);
});

t.test('what was due before the measuring is not counted, late or not', async (t) => {
  const heldAnswers = [];
  let published = 0;
  let isMeasured = false;
  const end = (response) => response.writeHead(204).end();
  const publish = (response) => {
    published += 1;
    if (published === 1 || isMeasured) end(response);
    else heldAnswers.push(response);
  };
  // This server sends its documents to no watcher.
  const server = createServer((request, response) => {
    if (request.method === 'POST') request.resume().on('end', () => publish(response));
    else response.writeHead(200, { 'Content-Type': 'text/event-stream' }).write(':\n\n');
  });
  const port = await listening(t, server);
  const warmup = { protocol: 'sse', connections: 3, warmup: 10, 'warmup-every': 0.01 };
  const loadOptions = { ...warmup, every: 0.05, seconds: 0.1 };
  const load = startLoad({ port, pids: [process.pid] }, false, loadOptions);
  t.teardown(() => load.stop());
  const measured = await load.measure(async () => {
    isMeasured = true;
    heldAnswers.forEach(end);
  });
  t.equal(heldAnswers.length, 8, 'of ten two were left out');
  t.match(measured, { published: 2, unpublished: 0, missing: 3 * 2 });
});

const result = (more = {}) => ({
  ...{ seconds: 2, published: 2, unpublished: 0, documents: 200, skipped: 0, missing: 0 },
  ...{ repeated: 0, cpu: 0.002, loadCpu: 0.001, residentBefore: 1e7, residentWarm: 1.5e7 },
  ...{ residentPeak: 2e7, socketsBefore: 5e6, socketsPeak: 4e6, latest: 1500, ended: 0 },
  ...{ lateness: [[1000, 200]], cutAll: 0, cutNewest: 0, cutNext: 0, cutWait: 0 },
  ...more
});

t.test('the cells', async (t) => {
  const options = { changes: ['none', 'stalled', 'cut'], seconds: 6 };
  const namesOf = (how) => cellsOf({ ...options, ...how }).map(({ name }) => name);
  const study = cellsOf({ ...options, study: true });
  t.equal(study.length, 12);
  t.equal(new Set(namesOf({ study: true })).size, 12);
  for (const { every, cut, seconds } of study.filter(({ cut }) => cut)) {
    const before = Math.floor(seconds / every / 2) + 1;
    const returnSeconds = (before - 1) * every + 0.3 * every + cut;
    t.ok(seconds - every > returnSeconds, 'something is published after all are back');
  }
  t.equal(namesOf({ changes: ['none', 'stalled'] }).length, 12);
  const short = [SEARCH_WORK.name, '5 KB a second to 4,000'];
  t.strictSame(namesOf({ short: true, changes: ['none'] }), short);
  t.match(namesOf({ short: true, study: true, changes: ['none'] })[1], /^5 KB .* ten new ones/);
});

t.test('why a contender is broken', async (t) => {
  const reasonOf = (more) => whyBroken(figuresOf(result(more)));
  t.equal(reasonOf({}), null);
  t.match(reasonOf({ missing: 3 }), '1.5% missing');
  t.equal(reasonOf({ missing: 2 }), null, 'at most one in a hundred');
  t.match(reasonOf({ lateness: [[34000, 200]] }), /^p99 .* late$/);
  t.match(reasonOf({ lateness: [[34000, 200]], loadCpu: 1.9 }), 'load generator is at its limit');
  t.match(reasonOf({ residentPeak: 3e7 }), 'resident size 2.0 times');
  t.match(reasonOf({ documents: 0, lateness: [] }), '100.0% missing');
  t.equal(whyBroken({ failed: 'it ended' }), 'it ended');
});

t.test('the search for the number at which one breaks', async (t) => {
  const rungs = [100, 133, 177, 236, 315, 420, 560, 747, 996, 1328, 1771, 2361, 3148, 4197, 5000];
  const searchWith = async (limit, { minute = limit, guess } = {}) => {
    const attempts = [];
    const measure = async (connections, seconds) => {
      attempts.push([connections, seconds]);
      const isLate = connections > (seconds === 60 ? minute : limit);
      return figuresOf(result(isLate ? { lateness: [[34000, 200]] } : {}));
    };
    const outcome = await searchBreak(measure, {
      ...{ first: 100, most: 5000, seconds: 6, held: 60, guess }
    });
    return { ...outcome, tried: attempts };
  };
  const below = await searchWith(1500, { guess: 1000 });
  t.match(below, { holds: 1328, breaks: 1771, why: /late/ });
  t.strictSame(
    below.tried.slice(0, -1),
    [
      [996, 6],
      [1328, 6],
      [1771, 6]
    ],
    'upwards from the guess'
  );
  t.strictSame(below.tried.at(-1), [1328, 60], 'what is found is held for a minute');
  const above = await searchWith(1500, { guess: 3000 });
  t.strictSame(
    above.tried,
    [
      [2361, 6],
      [1771, 6],
      [1328, 6],
      [1328, 60]
    ],
    'downwards from the guess'
  );
  for (const guess of [undefined, 1, 100, 1000, 4999, 1e9]) {
    t.match(
      await searchWith(1500, { guess }),
      { holds: 1328, breaks: 1771 },
      'whatever was guessed'
    );
    t.match(await searchWith(Infinity, { guess }), { holds: 5000, breaks: null, why: null });
    t.match(await searchWith(10, { guess }), { holds: 0, breaks: 100, why: /late/ });
  }
  t.strictSame(
    (await searchWith(Infinity)).tried.map(([of]) => of).slice(0, -1),
    rungs,
    'all it may try'
  );
  const minute = await searchWith(1500, { minute: 1000, guess: 1500 });
  t.match(minute, { holds: 996, breaks: 1328, why: /within 60 s/ });
  t.match(await searchWith(150, { minute: 50 }), { holds: 0, breaks: 100, why: /within 60 s/ });
});

t.test('a search begins where a core would be full, going by the first cell', async (t) => {
  t.equal(estimatedMost({ cpu: 125 }), 8000);
  for (const row of [undefined, { failed: 'it ended' }, { cpu: null }])
    t.equal(estimatedMost(row), undefined);
});

t.test('the tables', async (t) => {
  const row = figuresOf(result({ cutAll: 15, cutNext: 5, cutWait: 4e6 }));
  const titleOf = (name) => feedContenders[name].title;
  const cell = { name: 'a', rows: { 'sprites-poll': row, ws: { failed: 'it ended' } } };
  const text = table({ ...cell, cut: 2 }, titleOf);
  t.match(text, /75.0% all they missed, 25.0% nothing before the next, after 200 ms/);
  t.match(text, /\| ws \| it ended \|/);
  t.notMatch(table(cell, titleOf), 'missed');
  const breaks = {
    'sprites-poll': { holds: 900, breaks: null, why: null },
    ws: { holds: 100, breaks: 133, why: 'p99 2.0 s late' }
  };
  const study = { cells: [cell, { ...cell, cut: 2 }], breaks, most: 18000, held: 5 };
  const broken = breakTable(study, titleOf);
  t.match(broken, /\| held for 5 s \|[^]*\| Sprites, long poll \| 900 \| more than 18,000 \| - \|/);
  t.match(broken, '| ws | 100 | 133 | p99 2.0 s late |');
  t.match(
    summaryTable(study, titleOf),
    /^\| server \| a \| breaks at \|\n.*\n\| .* \| 10.0; 0.0 \| more than 18,000 \|\n.* it ended \| 133 \|$/
  );
  t.equal(summaryTable({ ...study, cells: study.cells.slice(1) }, titleOf), '');
});

t.test('test/README.md prints what was measured', async (t) => {
  const study = JSON.parse(
    gunzipSync(readFileSync(new URL('transports/measured.json.gz', import.meta.url)))
  );
  const rows = summaryTable(study, (name) => contenders[name].title).match(/^\|.*$/gm);
  t.equal(rows.length, 2 + Object.keys(contenders).length, 'all of them');
  // It leaves out contenders that others surpass in everything.
  const [, textAfterHead] = documentAt('test/README.md').split(`${rows[0]}\n`);
  const [table] = /^(\|.*\n)+/.exec(textAfterHead);
  const shownRows = table.trim().split('\n');
  t.ok(shownRows.length >= 11, `${shownRows.length} rows`);
  for (const row of shownRows) t.ok(rows.includes(row), row);
});

t.test('figures of feeds', async (t) => {
  const row = figuresOf(result(), { longestStall: 3, longestWork: 2 });
  t.match(row, { rate: 100, cpu: 10, growth: 1e7, sockets: 0, max: 1.5, stall: 3, work: 2 });
  t.equal(row.p99, 1e-3);
  const none = figuresOf(result({ documents: 0, lateness: [] }));
  t.match(none, { cpu: null, p50: null, max: null });
});

t.test('several rounds of feeds', async (t) => {
  const rounds = [0.006, 0.002, 0.004].map((cpu, i) =>
    figuresOf(result({ cpu, latest: 1000 * (i + 1) }), { longestStall: 9 - i })
  );
  t.match(combinedRounds(rounds), { cpu: 20, max: 3, stall: 9 });
  t.match(combinedRounds([rounds[0], { failed: 'it ended' }]), { failed: 'it ended' });
});

t.test('the longest turn of a loop, and what of it was its own work', async (t) => {
  const program = `
    import { setImmediate as immediate, setTimeout as sleep } from 'node:timers/promises';
    import { loadTestAddon } from '${new URL('../support/addon.js', import.meta.url)}';
    const { takeTurns } = loadTestAddon();
    const turnOf = async (act) => {
      await sleep(1);
      takeTurns();
      act();
      // The turn is over, and another has begun: timers alone may all run in a turn that was late, immediates do not.
      for (let i = 0; i < 2; i += 1) {
        await immediate();
        await sleep(1);
      }
      return takeTurns();
    };
    const cpu = () => Object.values(process.cpuUsage()).reduce((sum, each) => sum + each, 0);
    const worked = async (tries) => {
      // That of all threads is known here: where another has worked meanwhile, it is tried again.
      const turn = await turnOf(() => {
        const end = cpu() + 60000;
        while (cpu() < end);
      });
      return turn.cpu >= 20 || tries === 0 ? turn : worked(tries - 1);
    };
    const wait = () => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 60);
    console.log(JSON.stringify([await worked(10), await turnOf(wait), await turnOf(() => {})]));`;
  const command = [
    '-u',
    'NODE_OPTIONS',
    withTurns(),
    process.execPath,
    '--input-type=module',
    '--eval',
    program
  ];
  const { stdout } = await promisify(execFile)('env', command);
  const [worked, waited, slept] = JSON.parse(stdout);
  t.ok(worked.wall >= worked.cpu - 1 && worked.cpu >= 20, `it worked for ${worked.cpu} ms`);
  t.ok(waited.wall >= 59, `it waited for ${waited.wall} ms`);
  t.ok(waited.cpu < waited.wall - 20, `which was no work: ${waited.cpu} ms`);
  t.ok(slept.cpu < 59);
});

t.test('what holds of feeds, and what does not', async (t) => {
  const [cell] = cellsOf({ changes: ['none'], seconds: 6 }).filter(({ ws }) => ws === 0.5);
  const ws = figuresOf(result({ cpu: 0.0041 }));
  const goodVerdicts = verdicts(cell, {
    'sprites-poll': figuresOf(result(), { longestStall: 3 }),
    ws
  });
  t.equal(goodVerdicts.length, 5);
  t.ok(goodVerdicts.every(({ holds }) => holds));
  const badCases = {
    'CPU a document': [result({ cpu: 0.003 }), 3],
    'resident size': [result({ residentPeak: 9e7 }), 3],
    'later than 2 s': [result({ latest: 2000001 }), 3],
    'misses what is newest': [result({ missing: 1 }), 3],
    stall: [result(), 11]
  };
  for (const [what, [figures, stall]] of Object.entries(badCases)) {
    const list = verdicts(cell, {
      'sprites-poll': figuresOf(figures, { longestStall: stall }),
      ws
    });
    const [broken, ...others] = list.filter(({ holds }) => !holds);
    t.match(broken.figure, what);
    t.equal(others.length, 0);
  }
  for (const [cpu, holds] of [
    [0.0022, true],
    [0.0023, false]
  ]) {
    const rows = {
      'sprites-poll': figuresOf(result()),
      'sprites-poll-grant': figuresOf(result({ cpu }))
    };
    const isOfGrant = ({ figure }) => figure.includes('without a grant');
    t.match(verdicts(cell, rows).filter(isOfGrant), [{ holds }]);
  }
  const failed = { 'sprites-poll': { failed: 'it ended' }, ws };
  t.match(verdicts(cell, failed), [{ holds: false, value: 'it ended' }]);
  t.match(
    table({ rows: failed }, (name) => name),
    /\| sprites-poll \| it ended \|/
  );
});
