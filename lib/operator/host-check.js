import { readFileSync, statfsSync } from 'node:fs';
import { dirname, relative } from 'node:path';
import { fileURLToPath } from 'node:url';

import { OWN_FILES, ownFiles } from '../base/file-limit.js';

/**
 * `bin/sprites --check N`: lists the settings of this host that do not suffice for N clients, each with the command that
 * changes it.
 *
 *     deploy/sysctl.conf ──┐
 *     /proc, cgroups ──────┴─▶ check(N) ─▶ findings ─▶ printCheck: lines, exit code
 *
 * deploy/sysctl.conf is for a million clients. For fewer clients, NEEDS has the need of each setting: a queue scales, a
 * buffer bound matters from some number of clients on. From a million clients on, the values of the file itself count.
 */

/** Size of a client without sprites in a snapshot, in bytes: snapshot.h. */
const STATE_BYTES = 60;

/** Memory of an idle connection in the kernel and the process, with a second pool for snapshots, in bytes. */
const KERNEL_BYTES = 3400;
const USER_BYTES = 512;

/** Memory of the process without clients and sprites, in bytes; and the default of --mailbox-memory. */
const BASE_BYTES = 80e6;
const MAILBOX_BYTES = 2 ** 28;

const PAGE_BYTES = 4096;
const MILLION = 1e6;
const CROWD = 100_000;
const SYSCTL_CONF = fileURLToPath(new URL('../../deploy/sysctl.conf', import.meta.url));

const unchanged = (value) => value;

/**
 * The ways to judge the value of a setting.
 *
 * - `least`: every number at least the wanted one
 * - `most`: every number at most the wanted one
 * - `buffer`: three numbers, the last at most, the middle one at least the wanted one
 * - `range`: at least as wide as the wanted one
 * - `set`: has at least the wanted numbers
 */
const JUDGES = {
  least: (have, want) => want.every((n, i) => have[i] >= n),
  most: (have, want) => want.every((n, i) => have[i] <= n),
  buffer: (have, want) => have[1] >= want[1] && have[2] <= want[2],
  range: (have, want) => have[1] - have[0] >= want[1] - want[0],
  set: (have, want) => want.every((n) => have.includes(n))
};

const scaled = (wanted, clients) => wanted.map((n) => Math.ceil((n * clients) / MILLION));
const neededFrom = (least) => (wanted, clients) => (clients >= least ? wanted : null);

/** Values that fewer than a million clients need; null: no need. */
const NEEDS = {
  always: unchanged,
  scaled,
  crowd: neededFrom(CROWD),
  million: neededFrom(MILLION),
  files: (_, clients) => [clients + OWN_FILES],
  'files-of-all': (_, clients, used) => [clients + OWN_FILES + used],
  arriving: (_, clients) => [Math.ceil(clients / 32)],
  'last-scaled': (wanted, clients) => [0, 0, Math.ceil((wanted[1] * clients) / MILLION)]
};

/**
 * The settings of deploy/sysctl.conf with a judge and a need. Of any other setting, every number must be at least that of
 * the file.
 *
 *     NAME JUDGE NEED: why it matters
 */
const TABLE = `
fs.nr_open least files: the most files one process may be allowed
fs.file-max least files-of-all: files of all processes together
fs.epoll.max_user_watches least files: descriptors a user may watch; one more fails with ENOSPC
net.core.somaxconn least scaled: connections waiting to be accepted when all come back at once
net.ipv4.tcp_max_syn_backlog least arriving: connections half open when all come back at once
net.ipv4.tcp_syncookies least always: a flood must not shut others out
net.core.netdev_max_backlog least crowd: packets dropped when a herd comes over loopback or RPS
net.ipv4.tcp_mem least last-scaled: pages for all socket buffers: one a client when all speak at once
net.ipv4.tcp_rmem buffer crowd: what one peer can fill at will (the last number, at most)
net.ipv4.tcp_wmem buffer crowd: what one reader that stops can hold on to (the last number, at most)
net.ipv4.tcp_slow_start_after_idle most crowd: an answer after a long hold starts slowly
net.ipv4.tcp_max_tw_buckets least scaled: records of connections just closed
net.ipv4.ip_local_port_range range crowd: ports for a proxy or a swarm on this host
net.ipv4.ip_local_reserved_ports set million: listening ports that an outgoing connection could take
vm.min_free_kbytes least crowd: memory that packets can take without waiting
vm.swappiness most crowd: parked clients must not be swapped out for page cache
`;

const SETTINGS = new Map(
  TABLE.trim()
    .split('\n')
    .map((line) => {
      const [, name, judge, need, why] = /^(\S+) (\w+) ([\w-]+): (.+)$/.exec(line);
      return [name, { judge, need: NEEDS[need], why }];
    })
);

/**
 * @typedef {object} Reader
 * @property {(path: string) => string | undefined} read returns a file's text; undefined if there is no file
 * @property {(folder: string) => number | undefined} [free] returns the free bytes of its disk for this user;
 *     undefined if unknown
 */

/** Reads the real host. @type {Reader} */
export const hostReader = {
  read(path) {
    try {
      return readFileSync(path, 'utf8');
    } catch (error) {
      // Missing, or hidden from a container: the checks report it where it matters.
      if (['ENOENT', 'ENOTDIR', 'EACCES', 'EPERM', 'EIO', 'EINVAL'].includes(error.code)) {
        return undefined;
      }
      throw error;
    }
  },
  free(folder) {
    try {
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize;
    } catch {
      // Missing or hidden: the finding reports it.
      return undefined;
    }
  }
};

/**
 * @typedef {object} Finding
 * @property {'ok' | 'no' | 'unseen'} state `no`: too small for N clients; `unseen`: unknown
 * @property {string} name name of a setting, or a description
 * @property {string} have the current value
 * @property {string} [need] the value that N clients need
 * @property {string} [why] why the value matters
 * @property {string} [fix] the command that changes a value with `no`
 */

/**
 * @typedef {object} CheckResult
 * @property {number} clients N
 * @property {boolean} ok whether the host suffices for N clients
 * @property {number} room number of clients for which the host suffices now: the smallest hard limit
 * @property {string} limitedBy the name of that limit
 * @property {Finding[]} findings
 */

/**
 * Reads a sysctl.conf.
 *
 * @param {string} text
 * @returns {Map<string, string>} name → value, with one blank between numbers
 */
export function parseSysctl(text) {
  const settings = new Map();
  for (const line of text.split('\n')) {
    const match = /^\s*-?\s*([\w./-]+?)\s*=\s*(.*?)\s*$/.exec(line);
    if (match) settings.set(match[1].replaceAll('/', '.'), match[2].replace(/\s+/g, ' '));
  }
  return settings;
}

/** Reads a list of numbers: "8080-8082,9464 1" → [8080, 8081, 8082, 9464, 1]. Other text becomes NaN. */
function numbers(text) {
  return text
    .trim()
    .split(/[\s,]+/)
    .filter(Boolean)
    .flatMap((part) => {
      const range = /^(\d+)-(\d+)$/.exec(part);
      if (!range) return [Number(part)];
      const [low, high] = [Number(range[1]), Number(range[2])];
      return Array.from({ length: high - low + 1 }, (_, i) => low + i);
    });
}

const grouped = (n) => Number(n).toLocaleString('en-US');
const gigabytes = (bytes) => `${(bytes / 1e9).toFixed(1)} GB`;
const squeezed = (text) => text.trim().replace(/\s+/g, ' ');

/** @returns {Finding | null} null when N clients need nothing of this setting */
function checkSetting(name, wantedText, clients, reader) {
  const { judge, need: needOf, why } = SETTINGS.get(name) ?? { judge: 'least', need: unchanged };
  const isMemory = name === 'net.ipv4.tcp_mem';
  const wanted = isMemory ? withinMemory(numbers(wantedText), reader) : numbers(wantedText);
  const used = name === 'fs.file-max' ? filesInUse(reader) : 0;
  const scaledNeed = needOf(wanted, clients, used);
  if (scaledNeed === null) return null;
  const need =
    judge !== 'least'
      ? scaledNeed
      : wanted.map((n, i) =>
          clients >= MILLION ? Math.max(n, scaledNeed[i]) : Math.min(n, scaledNeed[i])
        );
  const fixedValues = isMemory && clients < MILLION ? scaled(wanted, clients) : need;
  const separator = judge === 'set' ? ',' : ' ';
  const commonFields = { name, need: need.join(separator), why };
  const text = reader.read(`/proc/sys/${name.replaceAll('.', '/')}`);
  if (text === undefined)
    return { ...commonFields, state: 'unseen', have: 'not to be seen from here' };
  const have = numbers(text);
  const isRecommended = clients <= MILLION && squeezed(text) === wantedText;
  const value =
    judge === 'set'
      ? [squeezed(text), ...wanted.filter((n) => !have.includes(n))].filter(Boolean).join(',')
      : fixedValues.join(' ');
  return {
    ...commonFields,
    state: isRecommended || JUDGES[judge](have, need) ? 'ok' : 'no',
    have: squeezed(text) || 'none',
    fix: `sudo sysctl -w ${name}=${/[ ,]/.test(value) ? `'${value}'` : value}`
  };
}

/** Returns the memory of the host, in bytes; Infinity if unknown. */
function totalMemory(reader) {
  const match = /^MemTotal:\s+(\d+) kB/m.exec(reader.read('/proc/meminfo') ?? '');
  return match ? Number(match[1]) * 1024 : Infinity;
}

/** Returns the pages for tcp_mem, reduced in proportion to at most 40% of the host's memory. */
function withinMemory(pages, reader) {
  const most = (0.4 * totalMemory(reader)) / PAGE_BYTES;
  const share = Math.min(1, most / pages.at(-1));
  return pages.map((n) => Math.floor(n * share));
}

/** Returns the number of open files on the whole host. */
function filesInUse(reader) {
  return numbers(reader.read('/proc/sys/fs/file-nr') ?? '0')[0] || 0;
}

/** @returns {{ soft: number, hard: number } | null} the limits of open files; Infinity for unlimited */
function fileLimits(reader) {
  const match = /^Max open files\s+(\S+)\s+(\S+)/m.exec(reader.read('/proc/self/limits') ?? '');
  if (!match) return null;
  const [soft, hard] = match.slice(1).map((n) => (n === 'unlimited' ? Infinity : Number(n)));
  return { soft, hard };
}

/** @returns {Finding & { room: number }} */
function checkFiles(clients, { workers = 0 }, reader) {
  const limits = fileLimits(reader);
  const own = ownFiles(workers);
  const need = clients + own;
  const common = {
    name: 'files of this process',
    need: grouped(need),
    why: 'a connection is a file, and a throw has one of its own while it lasts'
  };
  if (limits === null) {
    return { ...common, state: 'unseen', have: 'not to be seen from here', room: Infinity };
  }
  // Node raises the soft limit to the hard limit at its start, so that the hard limit counts.
  const { hard } = limits;
  return {
    ...common,
    state: hard >= need ? 'ok' : 'no',
    have: hard === Infinity ? 'unlimited' : grouped(hard),
    room: hard - own,
    fix:
      `ulimit -n ${need}  (as root, in the shell that starts the server; ` +
      'for good: deploy/sprites.service has LimitNOFILE, deploy/limits.conf is for logins)'
  };
}

/** Returns the smallest memory limit of the control groups of this process, v1 or v2. */
function cgroupMemory(reader) {
  let tightest = { limit: Infinity, group: '' };
  for (const line of (reader.read('/proc/self/cgroup') ?? '').split('\n')) {
    const match = /^\d+:([^:]*):(\/.*)$/.exec(line);
    if (!match) continue;
    const [, controllers, path] = match;
    const isV2 = controllers === '';
    if (!isV2 && !controllers.split(',').includes('memory')) continue;
    const [mount, file] = isV2
      ? ['/sys/fs/cgroup', 'memory.max']
      : ['/sys/fs/cgroup/memory', 'memory.limit_in_bytes'];
    // The limits of all groups up to the root count. In a container the path may be a path of the host that does not
    // exist inside; the root is then the container's own.
    for (let group = path === '/' ? '' : path; ; group = group.slice(0, group.lastIndexOf('/'))) {
      const text = reader.read(`${mount}${group}/${file}`)?.trim();
      const limit = text === undefined || text === 'max' ? Infinity : Number(text);
      if (limit < tightest.limit) tightest = { limit, group: `${mount}${group}/${file}` };
      if (group === '') break;
    }
  }
  return tightest;
}

/** @returns {Array<Finding & { room: number }>} free memory, and the control group's limit */
function checkMemory(clients, { mailboxMemory = MAILBOX_BYTES }, reader) {
  const base = BASE_BYTES + mailboxMemory;
  const need = base + clients * (KERNEL_BYTES + USER_BYTES);
  const finding = (name, bytes, fix) => ({
    ...{ name, state: bytes >= need ? 'ok' : 'no', have: gigabytes(bytes), need: gigabytes(need) },
    why: `${grouped(KERNEL_BYTES)} bytes of kernel and ${USER_BYTES} of user space a client`,
    room: Math.max(0, Math.floor((bytes - base) / (KERNEL_BYTES + USER_BYTES))),
    fix
  });
  const findings = [];
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(reader.read('/proc/meminfo') ?? '');
  if (available) {
    const found = finding('memory available', Number(available[1]) * 1024);
    const fix = `give the host more memory, or start with --capacity ${found.room}`;
    findings.push({ ...found, fix });
  }
  // A control group's limit counts the kernel's memory for sockets too.
  const { limit, group } = cgroupMemory(reader);
  if (limit < 2 ** 60) {
    const fix =
      `echo ${Math.ceil(need)} | sudo tee ${group}  (for good: MemoryMax= of the unit, ` +
      '--memory of the container)';
    findings.push(finding('memory limit of the control group', limit, fix));
  }
  return findings;
}

/** @returns {Array<Finding & { room: number }>} nothing where no firewall tracks connections */
function checkConntrack(clients, reader) {
  const text = reader.read('/proc/sys/net/netfilter/nf_conntrack_max');
  if (text === undefined) return [];
  const have = numbers(text)[0];
  const need = Math.ceil(clients * 1.25) + OWN_FILES;
  return [
    {
      state: have >= need ? 'ok' : 'no',
      name: 'net.netfilter.nf_conntrack_max',
      have: String(have),
      need: String(need),
      why: 'a stateful firewall drops every connection above it',
      room: Math.floor((have - OWN_FILES) / 1.25),
      fix: `sudo sysctl -w net.netfilter.nf_conntrack_max=${need}  (or don't track the server's port)`
    }
  ];
}

/** Checks the room for a snapshot, the next snapshot, and two journals. @returns {Finding[]} */
function checkState(clients, { state = 'none', journalBytes = 0 }, reader) {
  if (state === 'none') return [];
  const need = 2 * STATE_BYTES * clients + 2 * journalBytes;
  const folder = dirname(state);
  const have = reader.free?.(folder);
  const common = {
    name: 'room on the disk of --state',
    need: gigabytes(need),
    why: 'without it joins and throws are 503 state-unwritable; what waits for clients comes on top'
  };
  if (have === undefined) return [{ ...common, state: 'unseen', have: `${folder} can't be seen` }];
  const fix = `df -h ${folder}  (make room there, or give --state a file on a larger disk)`;
  return [{ ...common, have: gigabytes(have), state: have >= need ? 'ok' : 'no', fix }];
}

/**
 * Checks this host.
 *
 * @param {number} clients N, a whole number from 1 on
 * @param {object} [options]
 * @param {Reader} [options.reader] reads /proc and /sys; tests plant hosts through it
 * @param {string} [options.settings] the text of a sysctl.conf; by default deploy/sysctl.conf
 * @param {string} [options.state] the server's --state
 * @param {number} [options.journalBytes] its --journal-bytes
 * @param {number} [options.mailboxMemory] its --mailbox-memory
 * @param {number} [options.workers] its --workers
 * @returns {CheckResult}
 * @throws {RangeError} when `clients` is no whole number from 1 on
 */
export function check(clients, { reader = hostReader, settings, ...serverOptions } = {}) {
  if (!Number.isSafeInteger(clients) || clients < 1) {
    throw new RangeError(`--check takes a number of clients, not ${clients}`);
  }
  const limits = [
    checkFiles(clients, serverOptions, reader),
    ...checkMemory(clients, serverOptions, reader),
    ...checkConntrack(clients, reader)
  ];
  const lines = [...parseSysctl(settings ?? readFileSync(SYSCTL_CONF, 'utf8'))]
    .map(([name, wanted]) => checkSetting(name, wanted, clients, reader))
    .filter((finding) => finding !== null);
  lines.push(...checkState(clients, serverOptions, reader));
  const usedElsewhere = { 'fs.epoll.max_user_watches': 0, 'fs.file-max': filesInUse(reader) };
  for (const { name, state, have } of lines) {
    if (state === 'unseen' || !(name in usedElsewhere)) continue;
    limits.push({ name, room: numbers(have)[0] - OWN_FILES - usedElsewhere[name] });
  }
  const tightest = limits.reduce((least, limit) => (limit.room < least.room ? limit : least));
  // A name in both lists stands at its place among the limits.
  const byName = [...limits, ...lines].map((finding) => [finding.name, finding]);
  const findings = [...new Map(byName).values()];
  return {
    clients,
    ok: findings.every((finding) => finding.state !== 'no'),
    room: Math.max(0, tightest.room),
    limitedBy: tightest.name,
    findings
  };
}

/**
 * Prints a check for people.
 *
 * @param {CheckResult} result
 * @param {(line: string) => void} [print] prints a line, given without its line feed
 * @returns {number} the exit code: 0 if the host suffices, else 1
 */
export function printCheck({ clients, ok, room, limitedBy, findings }, print = console.log) {
  const failing = findings.filter((finding) => finding.state === 'no');
  const obstacles = failing.length === 1 ? '1 thing stands' : `${failing.length} things stand`;
  const clientText = clients === 1 ? '1 client' : `${grouped(clients)} clients`;
  print(`${clientText} on this host: ${ok ? 'nothing stands' : obstacles} in the way.`);
  const order = ['no', 'unseen', 'ok'];
  const width = Math.max(...findings.map((finding) => finding.name.length));
  for (const state of order) {
    for (const { name, have, need, why, fix } of findings.filter((f) => f.state === state)) {
      const mark = { no: 'NO', unseen: '??', ok: 'ok' }[state];
      print(`  ${mark}  ${name.padEnd(width)}  ${have}${state === 'ok' ? '' : `, needs ${need}`}`);
      if (state !== 'no') continue;
      if (why) print(`      ${' '.repeat(width)}  ${why}`);
      print(`      ${' '.repeat(width)}  ${fix}`);
    }
  }
  if (room < clients) {
    print(`As it is, this host takes ${grouped(room)} clients: ${limitedBy} says so.`);
  }
  if (clients >= MILLION && failing.some((finding) => finding.fix?.startsWith('sudo sysctl'))) {
    const relativePath = relative('', SYSCTL_CONF);
    print(
      `All settings at once: sudo cp ${relativePath.startsWith('..') ? SYSCTL_CONF : relativePath} ` +
        '/etc/sysctl.d/90-sprites.conf && sudo sysctl --system'
    );
  }
  return ok ? 0 : 1;
}
