import { readFileSync } from 'node:fs';

import { fileLimit } from '../base/file-limit.js';
import { UsageError } from '../base/option-help.js';

/**
 * Checks, before anything is opened, that this host has the resources for a swarm.
 *
 *     files    a socket for each client and lane, per process      → more processes, or ulimit -n
 *     ports    some 28,000 for each pair of addresses              → loopback source addresses
 *     memory   kernel and engine, and the server's end on one host → fewer clients
 */

/** Descriptors of an engine beside its sockets: three pipes, the epoll set and the loader's files; with Node more. */
const SPARE_FILES = 16;
const TLS_SPARE_FILES = 48;

/** Descriptors of the parent itself, beside three pipes for each engine. */
const PARENT_FILES = 40;

/** Most engines that are planned without --processes: more of them only slow each other down. */
const MAX_PROCESSES = 64;

/** Upper bound of --processes. */
export const PROCESSES = 512;

/** Least memory of one end of a connection in the kernel, and of a connection in the engine, in bytes. */
const KERNEL_BYTES = 2850;
const ENGINE_BYTES = 90;

/** Additional memory with TLS: of a parked session in OpenSSL, and of each engine's Node process, in bytes. */
const TLS_BYTES = 6900;
const TLS_ENGINE_BYTES = 60e6;

/** Joins a second, and connections, from one source address: below the limits of a server for an address. */
const JOINS_PER_ADDRESS = 800;
const CONNECTIONS_PER_ADDRESS = 8000;

/** Share of the ports that a source address uses: the kernel's search for a free port is slow once most are taken. */
const PORT_SHARE = 0.5;

/**
 * @typedef {object} Host
 * @property {number} files most open files of a process
 * @property {number} systemFiles most further open files of the system
 * @property {number} ports number of ephemeral ports
 * @property {number} memory available memory, in bytes
 */

/** @returns {Host} the resources of this host */
export function readHostResources() {
  const [low, high] = numbers(readOrEmpty('/proc/sys/net/ipv4/ip_local_port_range'));
  const [open, , most] = numbers(readOrEmpty('/proc/sys/fs/file-nr'));
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(readOrEmpty('/proc/meminfo'))?.[1];
  return {
    files: fileLimit(),
    systemFiles: most === undefined ? Infinity : most - open,
    ports: high === undefined ? 28232 : high - low + 1,
    memory: available ? Number(available) * 1024 : Infinity
  };
}

function readOrEmpty(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // a kernel without this file: its value counts as unbounded, or has a default
  }
}

function numbers(text) {
  return text.trim().split(/\s+/).filter(Boolean).map(Number);
}

/**
 * @typedef {object} Plan
 * @property {Array<{clients: number, firstClient: number, lanes: number}>} engines some engines may have no lane
 * @property {number} sources number of loopback source addresses; 0: the kernel chooses
 */

/**
 * @param {object} wanted
 * @param {number} wanted.clients
 * @param {number} wanted.lanes connections for throws and leaves, in all
 * @param {number} wanted.ramp clients opened a second
 * @param {string} wanted.address numeric address of the server
 * @param {boolean} [wanted.tls] whether the server speaks TLS
 * @param {number} [wanted.processes]
 * @param {number} [wanted.addresses] source addresses
 * @param {Host} host
 * @returns {Plan}
 * @throws {UsageError} with a line for each lacking resource, and the command that adds it
 */
export function plan(wanted, host) {
  const isLoopback = wanted.address.startsWith('127.');
  const lackLines = [];
  const processes = countProcesses(wanted, host, lackLines);
  const sockets = wanted.clients + wanted.lanes;
  const tlsBytes = wanted.tls ? sockets * TLS_BYTES + processes * TLS_ENGINE_BYTES : 0;
  checkSystem({ sockets, loopback: isLoopback, extra: tlsBytes }, host, lackLines);
  if (!isLoopback && sockets > host.ports) lackLines.push(portsLine(sockets, host.ports));
  if (lackLines.length > 0) throw new UsageError(lackLines.join('\n'));
  const perAddress = Math.max(
    1,
    Math.min(CONNECTIONS_PER_ADDRESS, Math.floor(host.ports * PORT_SHARE))
  );
  const addressesForJoins = Math.ceil(Math.min(wanted.ramp, wanted.clients) / JOINS_PER_ADDRESS);
  const sources = isLoopback
    ? Math.max(wanted.addresses ?? addressesForJoins, Math.ceil(sockets / perAddress))
    : 0;
  return { engines: divideEngines(wanted, processes), sources };
}

function countProcesses({ clients, lanes, processes, tls }, host, lines) {
  const spare = tls ? TLS_SPARE_FILES : SPARE_FILES;
  const usableFiles = Math.max(0, host.files - spare);
  const lanesPerEngine = (count) => Math.ceil(lanes / count);
  const filesPerEngine = (count) => Math.ceil(clients / count) + lanesPerEngine(count) + spare;
  let count = processes ?? 1;
  if (processes === undefined) {
    while (count < MAX_PROCESSES && filesPerEngine(count) > host.files) count++;
  }
  if (filesPerEngine(count) > host.files) {
    const sufficientCount =
      usableFiles > 1 ? Math.ceil((clients + lanes) / (usableFiles - 1)) : Infinity;
    const spreadAdvice =
      sufficientCount <= MAX_PROCESSES ? `, or spread them: --processes ${sufficientCount}` : '';
    lines.push(
      `files: ${count === 1 ? 'one engine' : `each of ${count} engines`} needs ` +
        `${filesPerEngine(count)} open files and may have ${host.files}. To lift it: ` +
        `ulimit -n ${filesPerEngine(count)} (as root; in systemd: LimitNOFILE=${filesPerEngine(count)})` +
        spreadAdvice
    );
  } else if (count * 3 + PARENT_FILES > host.files) {
    const needed = count * 3 + PARENT_FILES;
    lines.push(
      `files: ${count} engines need ${needed} open files in their parent, which may ` +
        `have ${host.files}. To lift it: ulimit -n ${needed}`
    );
  }
  return Math.min(count, clients);
}

function checkSystem({ sockets, loopback, extra }, host, lines) {
  const localEnds = loopback ? 2 : 1;
  if (sockets * localEnds > host.systemFiles) {
    lines.push(
      `files: ${sockets * localEnds} sockets, and the system may open ` +
        `${host.systemFiles} more. To lift it: ` +
        `sysctl -w fs.file-max=${Math.ceil((sockets * localEnds * 1.2) / 1e5 + 1) * 1e5}`
    );
  }
  const bytes = sockets * (KERNEL_BYTES * localEnds + ENGINE_BYTES) + extra;
  if (bytes > host.memory) {
    lines.push(
      `memory: ${sockets} connections take ${megabytes(bytes)} MB at the least` +
        `${loopback ? ', both ends being on this host' : ''}; ${megabytes(host.memory)} MB are ` +
        'available. Fewer clients, or a host with more memory.'
    );
  }
}

function portsLine(sockets, ports) {
  const mostPorts = 65535 - 1024 + 1;
  const remedy =
    sockets <= mostPorts
      ? 'To lift it: sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
      : `Spread the clients over ${Math.ceil(sockets / mostPorts)} hosts, each with ` +
        'sysctl -w net.ipv4.ip_local_port_range="1024 65535"';
  return (
    `ports: ${sockets} connections to one address, and this host has ${ports} ports for ` +
    `them. ${remedy}`
  );
}

const megabytes = (bytes) => Math.ceil(bytes / 1e6);

/** @returns {number} share `i` of a number that `count` engines share evenly */
export const evenShareOf = (all, count, i) => Math.floor(all / count) + (i < all % count ? 1 : 0);

function divideEngines({ clients, lanes }, processes) {
  let firstClient = 0;
  return Array.from({ length: processes }, (_, i) => {
    const [clientsHere, lanesHere] = [clients, lanes].map((all) => evenShareOf(all, processes, i));
    const engine = { clients: clientsHere, firstClient, lanes: lanesHere };
    firstClient += clientsHere;
    return engine;
  });
}
