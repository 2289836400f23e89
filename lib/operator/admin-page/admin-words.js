/**
 * What the status page says in words, by what /overview says: pure, for the page and for its tests.
 */

const wholeFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenthFormat = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });

/** @returns {string} such as `1 client`, `12,410 clients` */
export const count = (amount, noun) =>
  `${wholeFormat.format(amount)} ${noun}${amount === 1 ? '' : 's'}`;

/** @returns {string} such as `0.4`, `12,410` */
export const number = (value) => (value < 10 ? tenthFormat : wholeFormat).format(value);

/** @returns {string} such as `0.4 s`, `12 min`, `3 d 4 h` */
export function duration(seconds) {
  if (seconds < 10) return `${tenthFormat.format(seconds)} s`;
  if (seconds < 60) return `${wholeFormat.format(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** @returns {string} such as `812 B`, `1.5 MB` */
export function bytes(value) {
  const power = Math.min(4, Math.floor(Math.log2(Math.max(1, value)) / 10));
  return `${tenthFormat.format(value / 2 ** (10 * power))} ${['B', 'kB', 'MB', 'GB', 'TB'][power]}`;
}

/** What a crash would cost. */
function safety({ state, status }) {
  if (state === null) return 'nothing is kept (--state)';
  if (status.stateBlocked) return 'the state can’t be written';
  if (state.sync === 'never') return 'the disk is not waited for (--sync never)';
  const age = status.journalUnsyncedSeconds;
  return age === 0 ? 'everything is on the disk' : `last crash-safe point ${duration(age)} ago`;
}

/** @returns {string} the page's first sentence */
export function headline(overview) {
  const { unready, status } = overview;
  const { clients, watching = 0, players = 0 } = status;
  const served = [
    count(clients, 'client'),
    ...(watching > 0 ? [count(watching, 'watcher')] : []),
    ...(players > 0 ? [count(players, 'player')] : [])
  ];
  const servedText =
    served.length === 1 ? served[0] : `${served.slice(0, -1).join(', ')} and ${served.at(-1)}`;
  const readiness =
    unready === null ? `Serving ${servedText}` : `Not ready: ${unready}. There are ${servedText}`;
  return `${readiness}; ${safety(overview)}.`;
}

/** @returns {string} which program this is */
export function programText({ version, node, pid, status: { uptime, world } }) {
  const worldText = world ? `Server ${world.name}, ` : '';
  return `${worldText}Sprites ${version} on Node ${node}, process ${pid}, up ${duration(uptime)}.`;
}

/** Of what has a bound, how full it may be before that is said. */
const FULL_SHARE = 0.85;

/** Free bytes of a disk below which that is said: a journal, and the snapshot that replaces it. */
const LOW_DISK_BYTES = 2 ** 30;

/**
 * What needs the operator's attention, the worst first.
 *
 * @param {object} overview
 * @param {object} [latestSample] the newest sample of the history
 * @returns {string[]} empty: nothing does
 */
export function alarms({ status, law, bounds, arenas, disk, unready, state }, latestSample = {}) {
  const { world, feedMemory = 0, mailboxBytes, outOfFiles = 0 } = status;
  const percent = (value, most) => Math.round((100 * value) / most);
  const isAbove = (value, most) => value > FULL_SHARE * most;
  return [
    unready !== null && `${unready}: no newcomers are sent here while /readyz says so.`,
    !law.holds &&
      'The law of sprites does not hold: sprites are missing, or counted twice. Report it.',
    state !== null &&
      status.stateBlocked &&
      `${state.file} can’t be written: joins and throws are refused. Look at its disk and the log.`,
    disk?.free < LOW_DISK_BYTES && `${disk.folder} has ${bytes(disk.free)} left.`,
    isAbove(mailboxBytes, bounds.mailboxMemory) &&
      `Mailboxes are ${percent(mailboxBytes, bounds.mailboxMemory)} % full (--mailbox-memory): at 100 % every throw is refused.`,
    isAbove(feedMemory, bounds.feedMemory) &&
      `Feeds take ${percent(feedMemory, bounds.feedMemory)} % of --feed-memory: at 100 % publications are refused.`,
    latestSample.fetchesFailed > 0 &&
      'Fetches from --upstream fail: watchers have the last value that came.',
    ...arenas.map(
      ({ name, failed }) =>
        failed !== null &&
        `In arena ${name} the game ${failed.game} was stopped (${failed.why}): ${failed.message}`
    ),
    world?.problem && `No member of its world: ${world.problem}. The log says more.`,
    world?.state === 'cut-off' &&
      'Cut off from the other servers of its world: throws over seams are refused.',
    outOfFiles > 0 &&
      `No file descriptor was left ${count(outOfFiles, 'time')} since the start (ulimit -n).`
  ].filter(Boolean);
}
