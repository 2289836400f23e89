import { readFileSync } from 'node:fs';

import { fileLimit } from '../base/file-limit.js';
import { UsageError } from '../base/option-help.js';

/**
 * What this host must have for a swarm, worked out before anything is opened.
 *
 *     files    a socket for each client and lane, per process      → more processes, or ulimit -n
 *     ports    some 28,000 for each pair of addresses              → loopback source addresses
 *     memory   kernel and engine, and the server's end on one host → fewer clients
 */

/** Beside its sockets an engine has three pipes, its poll set and what the loader opened; in a Node more. */
const SPARE_FILES = 16;
const TLS_SPARE_FILES = 48;

/** Of the parent for each engine: three pipes. And for itself. */
const PARENT_FILES = 40;

/** More engines than this only stand in each other's way. */
const MOST_PROCESSES = 64;

/** The most that --processes may ask for. */
export const PROCESSES = 512;

/** At the least, of one end of a connection: what the kernel takes, and the engine. */
const KERNEL_BYTES = 2850;
const ENGINE_BYTES = 90;

/** Besides, by TLS: what OpenSSL keeps of a parked session, and what the engine's Node takes. */
const TLS_BYTES = 6900;
const TLS_ENGINE_BYTES = 60e6;

/** A server limits joins a second and connections by source address: these it should not mind. */
const JOINS_PER_ADDRESS = 800;
const CONNECTIONS_PER_ADDRESS = 8000;

/** The kernel looks long for a free port once most are taken, so a source address gets half. */
const PORT_SHARE = 0.5;

/**
 * @typedef {object} Host
 * @property {number} files that a process may have open
 * @property {number} systemFiles files the whole system may still open
 * @property {number} ports of the ephemeral range
 * @property {number} memory available, in bytes
 */

/** @returns {Host} this one */
export function lookAtHost() {
  const [low, high] = numbers(read('/proc/sys/net/ipv4/ip_local_port_range'));
  const [open, , most] = numbers(read('/proc/sys/fs/file-nr'));
  const available = /^MemAvailable:\s+(\d+) kB/m.exec(read('/proc/meminfo'))?.[1];
  return {
    files: fileLimit(),
    systemFiles: most === undefined ? Infinity : most - open,
    ports: high === undefined ? 28232 : high - low + 1,
    memory: available ? Number(available) * 1024 : Infinity
  };
}

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return ''; // a kernel without it: the value counts as unbounded
  }
}

function numbers(text) {
  return text.trim().split(/\s+/).filter(Boolean).map(Number);
}

/**
 * @typedef {object} Plan
 * @property {Array<{clients: number, firstClient: number, lanes: number}>} engines some may have no lane
 * @property {number} sources loopback source addresses; 0 leaves the choice to the kernel
 */

/**
 * @param {object} wanted
 * @param {number} wanted.clients
 * @param {number} wanted.lanes connections for throws and leaves, in all
 * @param {number} wanted.ramp clients opened a second
 * @param {string} wanted.address numeric, of the server
 * @param {boolean} [wanted.tls] whether the server speaks it
 * @param {number} [wanted.processes]
 * @param {number} [wanted.addresses] source addresses
 * @param {Host} host
 * @returns {Plan}
 * @throws {UsageError} with a line for each thing that is lacking, and the command that mends it
 */
export function plan(wanted, host) {
  const loopback = wanted.address.startsWith('127.');
  const lines = [];
  const processes = countProcesses(wanted, host, lines);
  const sockets = wanted.clients + wanted.lanes;
  const extra = wanted.tls ? sockets * TLS_BYTES + processes * TLS_ENGINE_BYTES : 0;
  checkSystem({ sockets, loopback, extra }, host, lines);
  if (!loopback && sockets > host.ports) lines.push(portsLine(sockets, host.ports));
  if (lines.length > 0) throw new UsageError(lines.join('\n'));
  const perAddress = Math.max(
    1,
    Math.min(CONNECTIONS_PER_ADDRESS, Math.floor(host.ports * PORT_SHARE))
  );
  const joins = Math.ceil(Math.min(wanted.ramp, wanted.clients) / JOINS_PER_ADDRESS);
  const sources = loopback
    ? Math.max(wanted.addresses ?? joins, Math.ceil(sockets / perAddress))
    : 0;
  return { engines: share(wanted, processes), sources };
}

function countProcesses({ clients, lanes, processes, tls }, host, lines) {
  const spare = tls ? TLS_SPARE_FILES : SPARE_FILES;
  const holds = Math.max(0, host.files - spare);
  const lanesEach = (count) => Math.ceil(lanes / count);
  const filesEach = (count) => Math.ceil(clients / count) + lanesEach(count) + spare;
  let count = processes ?? 1;
  if (processes === undefined) {
    while (count < MOST_PROCESSES && filesEach(count) > host.files) count++;
  }
  if (filesEach(count) > host.files) {
    const enough = holds > 1 ? Math.ceil((clients + lanes) / (holds - 1)) : Infinity;
    const spread = enough <= MOST_PROCESSES ? `, or spread them: --processes ${enough}` : '';
    lines.push(
      `files: ${count === 1 ? 'one engine' : `each of ${count} engines`} needs ` +
        `${filesEach(count)} open files and may have ${host.files}. To lift it: ` +
        `ulimit -n ${filesEach(count)} (as root; in systemd: LimitNOFILE=${filesEach(count)})` +
        spread
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
  const ends = loopback ? 2 : 1;
  if (sockets * ends > host.systemFiles) {
    lines.push(
      `files: ${sockets * ends} sockets, and the system may open ` +
        `${host.systemFiles} more. To lift it: ` +
        `sysctl -w fs.file-max=${Math.ceil((sockets * ends * 1.2) / 1e5 + 1) * 1e5}`
    );
  }
  const bytes = sockets * (KERNEL_BYTES * ends + ENGINE_BYTES) + extra;
  if (bytes > host.memory) {
    lines.push(
      `memory: ${sockets} connections take ${megabytes(bytes)} MB at the least` +
        `${loopback ? ', both ends being on this host' : ''}; ${megabytes(host.memory)} MB are ` +
        'available. Fewer clients, or a host with more memory.'
    );
  }
}

function portsLine(sockets, ports) {
  const wide = 65535 - 1024 + 1;
  const remedy =
    sockets <= wide
      ? 'To lift it: sysctl -w net.ipv4.ip_local_port_range="1024 65535"'
      : `Spread the clients over ${Math.ceil(sockets / wide)} hosts, each with ` +
        'sysctl -w net.ipv4.ip_local_port_range="1024 65535"';
  return (
    `ports: ${sockets} connections to one address, and this host has ${ports} ports for ` +
    `them. ${remedy}`
  );
}

const megabytes = (bytes) => Math.ceil(bytes / 1e6);

/** @returns {number} what one of several has of a number that all of them share */
export const partOf = (all, count, i) => Math.floor(all / count) + (i < all % count ? 1 : 0);

function share({ clients, lanes }, processes) {
  let firstClient = 0;
  return Array.from({ length: processes }, (_, i) => {
    const [mine, lanesHere] = [clients, lanes].map((all) => partOf(all, processes, i));
    const engine = { clients: mine, firstClient, lanes: lanesHere };
    firstClient += mine;
    return engine;
  });
}
