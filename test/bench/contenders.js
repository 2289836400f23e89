/**
 * The measured servers, and how each is started and stopped. The servers of feeds are in transports/contenders.js.
 *
 * A contender listens on loopback, on a port of its own, which it prints or gets as an option. Node servers run with
 * probe.js preloaded, which reports figures that only the process itself knows.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { fileLimit } from '../../lib/base/file-limit.js';
import { buildIfStale, builtFile } from '../../lib/swarm/build.js';
import { loadTestAddon } from '../support/addon.js';
import { freePort } from '../support/addresses.js';
import { refuseUsage } from '../support/documents.js';
import { launch, SPRITES, NO_ADDRESS_LIMITS } from '../support/launch.js';
import { atExit, childrenOf, endProcess, temporary } from '../support/processes.js';
import { until } from '../support/until.js';
import { askProbe, statusAt, UsageMeter } from './usage.js';

const PROBE_URL = new URL('probe.js', import.meta.url).href;

/**
 * Options of the measured bin/sprites: on loopback, on a free port, and without limits for a source address, since
 * here all clients have the same address. The limits do not change the cost of a connection.
 */
const MEASURED_OPTIONS = { host: '127.0.0.1', port: 0, 'throw-rate': 0, ...NO_ADDRESS_LIMITS };

const THIS_FOLDER = fileURLToPath(new URL('.', import.meta.url));
const BUILD_FOLDER = join(THIS_FOLDER, '.build');

/** Timeouts of a server's start, and of its end before it is killed, in milliseconds. */
const START_TIMEOUT = 15000;
const STOP_TIMEOUT = 5000;

/** The core of the server, and the core of the load generator. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

const coreOf = (pin) => (pin ? SERVER_CORE : null);

/** Capacity of sprites, in clients. */
const CAPACITY = 20000;

/** @returns {boolean} whether processes can be pinned to cores of their own */
export function canPin() {
  if (availableParallelism() < 2) return false;
  try {
    execFileSync('taskset', ['-c', String(LOAD_CORE), 'true'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
}

/** @param {?number} core none: any core @returns {string[]} the words before a command that pin it to the core */
export const pinningWords = (core) =>
  Number.isInteger(core) && canPin() ? ['taskset', '-c', String(core)] : [];

/**
 * Compiles a C program beside this file, unless the last build is newer than the source.
 *
 * @param {string} sourceFile its source, relative to this folder
 * @param {string} name name of the program; of a shared object with the ending .so
 * @returns {string} path of the program
 * @throws {Error} when the compiler fails
 */
export function compile(sourceFile, name) {
  const source = join(THIS_FOLDER, sourceFile);
  const program = join(BUILD_FOLDER, name);
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return program;
  mkdirSync(BUILD_FOLDER, { recursive: true });
  const newProgram = `${program}.${process.pid}`;
  const kindFlags = name.endsWith('.so') ? ['-shared', '-fPIC'] : [];
  const flags = ['-O2', '-std=gnu11', '-Wall', '-Wextra', ...kindFlags];
  execFileSync('cc', [...flags, '-o', newProgram, source], {
    stdio: ['ignore', 'inherit', 'inherit']
  });
  renameSync(newProgram, program);
  return program;
}

/** Builds turns.c. @returns {string} the variable that preloads it, for `env` */
export const withTurns = () => `LD_PRELOAD=${compile('turns.c', 'turns.so')}`;

/**
 * Builds the parts that probe.js needs in a Node server. The server also needs an IPC channel.
 *
 * @param {?number} [core] see pinningWords
 * @returns {string[]} arguments of `env` that run Node with probe.js, without the program
 */
function probedNodeWords(core = null) {
  loadTestAddon();
  const node = [process.execPath, '--expose-gc', '--import', PROBE_URL];
  return [withTurns(), ...pinningWords(core), ...node];
}

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => process.exit(1));
}

/** Kills the child when this program ends. */
function killAtExit(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/**
 * @param {?number} core see pinningWords
 * @param {Array<string | number>} command
 * @param {import('node:child_process').SpawnOptions} options
 * @returns {import('node:child_process').ChildProcess} the process, which ends with this program at the latest
 */
export function start(core, command, options) {
  const [program, ...args] = [...pinningWords(core), ...command].map(String);
  return killAtExit(spawn(program, args, options));
}

async function stop(child) {
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT);
  await endProcess(child);
  clearTimeout(timer);
}

/** Waits for the address that a server prints, and reads on so that the pipe never fills. */
async function readPort(child, name) {
  const lines = createInterface({ input: child.stdout });
  const timeout = AbortSignal.timeout(START_TIMEOUT);
  return new Promise((resolve, reject) => {
    timeout.addEventListener('abort', () =>
      reject(new Error(`${name} printed no address in time`))
    );
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`${name} stopped at once, with ${code}`)));
    lines.on('line', (line) => {
      const [, port] = /http:\/\/127\.0\.0\.1:(\d+)/.exec(line) ?? [];
      if (port) resolve(Number(port));
    });
  });
}

/**
 * Starts a program that prints its address.
 *
 * @param {string} name for messages
 * @param {boolean} pin
 * @param {string} command the command, for `env`
 * @param {string[]} args its arguments
 * @param {{probed?: boolean}} [how] whether the program has probe.js
 * @returns {Promise<Server>}
 */
export async function startPrinting(name, pin, command, args, { probed = false } = {}) {
  // NODE_OPTIONS has the test runner's loader, which the server and its threads would load.
  const commandWords = ['env', '-u', 'NODE_OPTIONS', command, ...args];
  const child = start(coreOf(pin), commandWords, {
    stdio: ['ignore', 'pipe', 'inherit', ...(probed ? ['ipc'] : [])]
  });
  const port = await readPort(child, name);
  return { port, pids: [child.pid], probe: probed ? child : null, stop: () => stop(child) };
}

/**
 * Starts a Node program that prints its address, with probe.js preloaded.
 *
 * @param {string} name for messages
 * @param {boolean} pin
 * @param {string[]} args
 * @returns {Promise<Server>}
 */
export function startNode(name, pin, args) {
  const [first, ...rest] = [...probedNodeWords(), ...args];
  return startPrinting(name, pin, first, rest, { probed: true });
}

/**
 * Starts bin/sprites.
 *
 * @param {Record<string, string | number>} options options besides MEASURED_OPTIONS, without their dashes
 * @param {object} [how]
 * @param {boolean} [how.pin]
 * @param {boolean} [how.probed] whether the server has probe.js
 * @returns {Promise<Server & {tlsPort?: number, adminPort?: number, errors: Buffer[], status: () => Promise<object>}>}
 *     `errors`: the output on stderr
 */
export async function startSprites(options, { pin, probed = true } = {}) {
  const core = coreOf(pin);
  const node = probed ? probedNodeWords(core) : [...pinningWords(core), process.execPath];
  const how = { command: [...node, SPRITES[1]], ipc: probed };
  const { child, errors, listening } = launch({ ...MEASURED_OPTIONS, ...options }, how);
  killAtExit(child).stderr.pipe(process.stderr, { end: false });
  const ports = await listening;
  return {
    ...{ ...ports, pids: [child.pid], probe: probed ? child : null, stop: () => stop(child) },
    errors,
    status: () => statusAt(ports.adminPort ?? ports.port)
  };
}

/**
 * Runs `work` with something that has a `stop()`, such as a server, and stops it in any case.
 *
 * @template T, R
 * @param {T & {stop: () => Promise<void>}} resource
 * @param {(started: T) => Promise<R>} work
 * @returns {Promise<R>}
 */
export async function withStarted(resource, work) {
  try {
    return await work(resource);
  } finally {
    await resource.stop();
  }
}

/** Returns nginx's folder of modules; null: there is no nginx with nchan. */
function nchanModules() {
  let about;
  try {
    about = execFileSync('sh', ['-c', 'PATH=$PATH:/usr/sbin:/sbin nginx -V 2>&1'], {
      encoding: 'utf8'
    });
  } catch {
    return null;
  }
  const folder = /--modules-path=(\S+)/.exec(about)?.[1] ?? '/usr/lib/nginx/modules';
  return existsSync(join(folder, 'ngx_nchan_module.so')) ? folder : null;
}

/** @returns {string | null} why nchan can't run here; null: it can */
export const nchanMissing = () =>
  nchanModules() ? null : 'there is no nginx with nchan (Debian: libnginx-mod-nchan)';

/**
 * Starts nginx with nchan.
 *
 * @param {boolean} pin
 * @returns {Promise<Server>}
 */
export async function startNchan(pin) {
  const folder = temporary(atExit);
  const port = await freePort();
  const settings = {
    modules: nchanModules(),
    folder,
    port,
    files: fileLimit(),
    connections: 20000
  };
  if (settings.files === Infinity) settings.files = 1000000;
  let text = readFileSync(join(THIS_FOLDER, 'contenders', 'nchan.conf'), 'utf8').replace(
    /@(\w+)@/g,
    (_, name) => settings[name]
  );
  // nginx's worker must run as this user: no other user may read the folder.
  if (process.getuid() === 0) text = `user root;\n${text}`;
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, text);
  const child = start(coreOf(pin), ['nginx', '-p', folder, '-c', file, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
  });
  const isListening = () => {
    if (child.exitCode !== null) throw new Error(`nginx stopped at once, with ${child.exitCode}`);
    return fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false
    );
  };
  await until(isListening, 'nginx comes up', START_TIMEOUT / 1000);
  // nginx listens before its worker process exists.
  await until(() => childrenOf(child.pid).length > 0, 'nginx has a worker');
  return {
    port,
    pids: [child.pid, ...childrenOf(child.pid)],
    probe: null,
    stop: () => stop(child)
  };
}

/**
 * Starts a program in C that prints its address.
 *
 * @param {string} name NAME of contenders/NAME.c
 * @param {boolean} pin
 * @returns {Promise<Server>}
 */
export function startBare(name, pin) {
  return startPrinting(name, pin, compile(`contenders/${name}.c`, name), []);
}

/**
 * A running contender.
 *
 * @typedef {object} Server
 * @property {number} port on 127.0.0.1
 * @property {number[]} pids all processes of the server
 * @property {import('node:child_process').ChildProcess|null} probe process with probe.js, if any
 * @property {() => Promise<void>} stop ends the server, and resolves after its end
 */

/**
 * All contenders, by name. `missing()` returns why a contender can't run here, or null. `start(pin)` starts it, with
 * `pin` on a core of its own. With `nchan` the load speaks nchan's protocol.
 *
 * @type {Record<string, {title: string, nchan?: boolean,
 *   missing: () => string|null, start: (pin: boolean) => Promise<Server>}>}
 */
export const contenders = {
  sprites: {
    title: 'sprites',
    missing: () => null,
    start: (pin) => startSprites({ capacity: CAPACITY }, { pin })
  },
  'node-http': {
    title: 'node:http, written the obvious way',
    missing: () => null,
    start: (pin) => startNode('node-http', pin, [join(THIS_FOLDER, 'contenders', 'node-http.js')])
  },
  epoll: {
    title: 'bare epoll in C, no checks: the limit',
    missing: () => null,
    start: (pin) => startBare('epoll', pin)
  },
  nchan: {
    title: 'nginx with nchan',
    nchan: true,
    missing: nchanMissing,
    start: (pin) => startNchan(pin)
  }
};

/**
 * @param {string} list names, separated by commas
 * @param {Record<string, object>} entriesByName all contenders, by name
 * @param {string} url URL of the program, which ends by `refuseUsage` for an unknown name
 * @returns {string[]}
 */
export function parseNames(list, entriesByName, url) {
  const names = list.split(',');
  const unknown = names.find((name) => !Object.hasOwn(entriesByName, name));
  return unknown === undefined
    ? names
    : refuseUsage(
        url,
        `no contender "${unknown}": there are ${Object.keys(entriesByName).join(', ')}`
      );
}

/**
 * @param {string[]} names
 * @param {Record<string, {title: string, missing: () => string | null}>} contendersByName
 * @returns {string[]} names of those that can run here; for the others a message is printed
 */
export const availableNames = (names, contendersByName) =>
  names.filter((name) => {
    const why = contendersByName[name].missing();
    if (why !== null) console.error(`bench: ${contendersByName[name].title} is left out: ${why}`);
    return why === null;
  });

/**
 * Starts the load generator of a feed's watchers.
 *
 * @param {Server} server
 * @param {boolean} pin whether the load has a core of its own
 * @param {Record<string, string|number>} options options of the load generator, without their dashes
 * @returns {{child: import('node:child_process').ChildProcess, next: (name: string) => Promise<object>,
 *   measure: (begin?: () => Promise<unknown>) => Promise<object>, ended: Promise<number>, stop: () => void}} `next`
 *   resolves with the load's next event of that name, and rejects with the load's error, or when the load ends before;
 *   `measure` starts a load of feeds once all its connections are open, and resolves with its result and the server's
 *   use of CPU and memory meanwhile (usage.js); `begin` is called after the warm-up, before the measurement
 */
export function startLoad(server, pin, options) {
  const args = Object.entries({ port: server.port, ...options }).map(
    ([name, value]) => `--${name}=${value}`
  );
  const child = start(pin ? LOAD_CORE : null, [buildWatchers(), ...args], {
    stdio: ['pipe', 'pipe', 'inherit']
  });
  child.stdin.on('error', () => {}); // Writing to an ended load fails; `ended` reports the end.
  const ended = once(child, 'close').then(([code, signal]) => code ?? signal);
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const next = async (name) => {
    for (;;) {
      const { value, done } = await lines.next();
      if (done) throw new Error(`the load ended with ${await ended} before "${name}"`);
      const event = JSON.parse(value);
      if (event.event === 'error') throw new Error(event.message);
      if (event.event === name) return event;
    }
  };
  const measure = async (begin = async () => {}) => {
    await next('open');
    const use = new UsageMeter(server.pids);
    try {
      child.stdin.write('go\n');
      await next('begin');
      await begin();
      use.begin();
      child.stdin.write('go\n');
      const result = await next('result');
      return { ...result, ...use.end() };
    } finally {
      use.close();
    }
  };
  return { child, next, measure, ended, stop: () => stop(child) };
}

/** The publisher's token of the measured server. */
export const TOKEN = 'bench-token-0123456789';

const WATCHERS = {
  name: "the watchers' load generator",
  home: 'test/bench/watchers',
  sources: ['native/flags.gypi', 'native/base', 'native/swarm', 'test/bench/watchers'],
  command: 'npm run bench:feeds'
};

/**
 * Builds the load generator if it is older than its sources.
 *
 * @returns {string} path of the load generator
 */
export function buildWatchers() {
  buildIfStale(WATCHERS);
  return builtFile(WATCHERS, 'watchers');
}

/**
 * Measures one contender with a load of feeds, on a new server.
 *
 * @param {{start: (pin: boolean) => Promise<Server>}} contender
 * @param {boolean} pin
 * @param {Record<string, string | number>} options options of the load, without their dashes
 * @returns {Promise<[object, object]>} the result of startLoad's `measure`, and probe.js's answer on the turns
 *     meanwhile
 */
export async function measureFeed(contender, pin, options) {
  // On a core of its own the load does not sleep while documents come: on one machine the server would pay for waking
  // the load.
  const loadOptions = { token: contender.token?.() ?? TOKEN, awake: pin ? 1 : 0, ...options };
  return withStarted(await contender.start(pin), (server) =>
    withStarted(startLoad(server, pin, loadOptions), async (load) => {
      const result = await load.measure(() => askProbe(server));
      return [result, await askProbe(server)];
    })
  );
}
