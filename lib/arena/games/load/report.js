import { make, put } from '../../arena-pages/elements.js';
import { plural } from '../../arena-pages/units.js';
import { fill } from '../../swarm/page-parts.js';
import { contentOf } from '../../swarm/report-body.js';

/**
 * The report of a load, in the form of the swarm's reports (lib/swarm/result.js): the values that the panel has seen,
 * since it was opened or the round began. Values that only an engine of a machine has are left out.
 */

/** Size of an agent's sprite, in bytes. */
const SPRITE_BYTES = 256;

const NO_LATENCY = { count: 0, p50: null, p90: null, p99: null, 'p99.9': null, max: null };

function accountOf({ counted = 0, missing = 0, refused = 0 }) {
  return {
    ...{ complete: true, sent: counted + refused, accepted: counted, refused, refusals: {} },
    // Only the server knows how many were delivered at once, and only for all clients together.
    ...{ delivered: null, queued: null, duplicates: 0, unanswered: 0, unconfirmed: 0 },
    ...{ received: counted - missing, resent: 0, repeated: 0, excusedRepeats: 0 },
    ...{ missing, missingExamples: [], landedElsewhere: 0, foreign: 0, mangled: 0 }
  };
}

/** Returns the server's use of CPU and memory, by its own counts. */
function serverUse(track, { first, now }, seconds, sprites) {
  const { cpu, memory } = track.values;
  const cpuSeconds = now.cpuSeconds - first.cpuSeconds;
  return {
    ...{ by: 'arena', process: null, cpuSeconds },
    cores: seconds > 0 ? cpuSeconds / seconds : null,
    perSpriteMs: sprites > 0 ? (cpuSeconds / sprites) * 1000 : null,
    ...{ memoryBefore: first.rss, memory: now.rss, most: track.summary('memory').most ?? now.rss },
    series: track.at.map((at, i) => ({ at, cores: cpu[i] ?? 0, memory: memory[i] }))
  };
}

/**
 * @param {object} run
 * @param {import('../../pages/plots.js').Track} run.track
 * @param {object} run.value of the reduced feed
 * @param {object} run.control
 * @param {object} run.first the server's first status
 * @param {object} run.now the server's last status
 * @param {URL} run.url of the panel's page
 * @param {number} run.ended ms since 1970
 * @returns {object} a Result
 */
function resultOf({ track, value, control, first, now, url, ended }) {
  const seconds = (track.at.at(-1) ?? 0) - (track.at[0] ?? 0);
  const { machines = 0, phones = 0, torn = 0, list = [] } = value ?? {};
  const { clients, throws, polls, phoneThrows } = control.settings;
  const account = accountOf(value ?? {});
  const sprites = now.thrown - first.thrown;
  const port = Number(url.port || { 'http:': 80, 'https:': 443 }[url.protocol]);
  const { values } = track;
  return {
    command: 'panel',
    commandLine:
      `the panel of ${url.pathname.split('/').at(-1)}, round ${control.round}: ${plural(machines, 'machine')} with ` +
      `${plural(clients, 'client')} and ${plural(throws, 'throw')} a second each, ${plural(phones, 'phone')} with ` +
      `${plural(polls, 'poll')} and ${plural(phoneThrows, 'throw')} a second each`,
    started: new Date(ended - seconds * 1000).toISOString(),
    seconds,
    target: { tls: url.protocol === 'https:', host: url.hostname, port, transientPort: port },
    clients: track.summary('connections').most ?? 0,
    seed: null,
    engines: { processes: machines, addresses: 0 },
    parkedByServer: now.parked,
    throwing: {
      ...{ mode: 'open loop', rate: machines * throws + phones * phoneThrows },
      ...{
        throwers: 64 * machines + phones,
        size: SPRITE_BYTES,
        seconds,
        behind: 0,
        thrown: sprites
      },
      perSecond: seconds > 0 ? Math.round(sprites / seconds) : 0,
      swarmStallMs: Math.max(0, ...list.map(({ stall }) => stall))
    },
    latency: { arrival: NO_LATENCY, answer: NO_LATENCY, probe: NO_LATENCY },
    curves: { arrival: [], answer: [], probe: [] },
    account,
    interruptions: [],
    connections: {
      ...{ connections: now.accepted - first.accepted, closed: value?.broken ?? 0, rejoined: 0 },
      ...{ answers: now.polls - first.polls, empty: now.pings - first.pings }
    },
    problems: {},
    connectErrors: {},
    server: {
      ...{ before: first, loaded: first, after: now },
      ...{ longestStallMs: now.longestStallMs, stalledBeforeMs: first.longestStallMs }
    },
    version: now.version ?? null,
    use: serverUse(track, { first, now }, seconds, sprites),
    engineCores: null,
    interrupted: false,
    bounds: [],
    faults:
      account.missing > 0 &&
      torn === 0 &&
      now.clients <= (value?.members ?? 0) &&
      (now.crossedOut ?? 0) <= (first.crossedOut ?? 0)
        ? [`${account.missing} sprites are missing: accepted by the server, received by no client`]
        : [],
    remarks: [
      'Of the sprites those are counted that are older than 8 to 10 seconds.',
      ...(torn > 0
        ? [
            `${plural(torn, 'phone or machine')} went without a last report: what they held is not known.`
          ]
        : [])
    ],
    phases: { throwing: { from: track.at[0] ?? 0, to: track.at.at(-1) ?? 0 } },
    series: track.at.map((at, i) => ({
      ...{ at, parked: values.connections[i] ?? 0 },
      ...{
        accepted: values.sprites[i],
        received: null,
        p50: values.p50[i],
        p99: values.p99[i],
        max: null
      }
    }))
  };
}

/**
 * Returns the self-contained report. lib/report/report-body.js makes it in the browser, from the server's template
 * (lib/report/page.js): no data of the run leaves this machine.
 */
async function reportOf(run) {
  const response = await fetch(new URL('../../swarm/report.txt', import.meta.url));
  if (!response.ok) throw new Error(`the report's page: ${response.status}`);
  return fill(await response.text(), contentOf(resultOf(run)));
}

/**
 * Adds a button that saves the report.
 *
 * @param {HTMLElement} root
 * @param {() => ?object} readRun returns the run, as for resultOf; null while there is nothing to save
 */
export function saveButton(root, readRun) {
  const button = make('button', {
    className: 'act',
    text: 'Save the report',
    id: 'load-save',
    into: root
  });
  const news = make('p', { className: 'soft', role: 'status', into: root });
  button.addEventListener('click', async () => {
    const run = readRun();
    if (run === null) return put(news, 'There is nothing to save yet.');
    try {
      const href = URL.createObjectURL(new Blob([await reportOf(run)], { type: 'text/html' }));
      const name = `load-${new Date(run.ended).toISOString().slice(0, 19).replaceAll(':', '-')}.html`;
      make('a', { href, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(href), 60_000);
      return put(news, `Saved as ${name}: one file that needs nothing else.`);
    } catch (error) {
      return put(news, `It could not be saved: ${error.message}`);
    }
  });
}
