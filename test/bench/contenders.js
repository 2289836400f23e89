/**
 * The servers that are measured, and how each is started and stopped. Those of feeds are in transports/contenders.js.
 *
 * A contender listens on loopback, on a port of its own. It prints that port, or is given it as an option. Node
 * servers are started with probe.js preloaded, which reports what only the process itself can know.
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync
} from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

import { fileLimit } from '../../lib/base/file-limit.js';
import { buildWhenWanted, builtFile } from '../../lib/swarm/build.js';
import { loadTestAddon } from '../support/addon.js';
import { freePort } from '../support/addresses.js';
import { refuseUsage } from '../support/documents.js';
import { launch, SPRITES, UNBOUND } from '../support/launch.js';
import { until } from '../support/until.js';
import { ask, statusAt, Use } from './usage.js';

const PROBE = new URL('probe.js', import.meta.url).href;

/**
 * Options of bin/sprites as it is measured: on loopback, on a free port, without the bounds for each source address, since
 * here all clients have the same one. A connection costs the same with these bounds and without.
 */
const MEASURED = { host: '127.0.0.1', port: 0, 'throw-rate': 0, ...UNBOUND };

const HERE = fileURLToPath(new URL('.', import.meta.url));
const BUILD = join(HERE, '.build');

/** Milliseconds that a server may take to start, and to end before it is killed. */
const START_TIMEOUT = 15000;
const STOP_TIMEOUT = 5000;

/** The core that only the server uses, and the one that only the load generator uses. */
export const SERVER_CORE = 0;
export const LOAD_CORE = 1;

const coreOf = (pin) => (pin ? SERVER_CORE : null);

/** Clients that sprites has room for. */
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

/** @param {?number} core none: any @returns {string[]} what stands before a command that is to have it */
export const onCore = (core) =>
  Number.isInteger(core) && canPin() ? ['taskset', '-c', String(core)] : [];

/**
 * Compiles a C program beside this file, unless that was done since it last changed.
 *
 * @param {string} place its file, relative to this folder
 * @param {string} name of the program; of a shared object where it ends with .so
 * @returns {string} path of the program
 * @throws {Error} when the compiler refuses, with what it says
 */
export function compile(place, name) {
  const source = join(HERE, place);
  const program = join(BUILD, name);
  if (existsSync(program) && statSync(program).mtimeMs > statSync(source).mtimeMs) return program;
  mkdirSync(BUILD, { recursive: true });
  const fresh = `${program}.${process.pid}`;
  const kind = name.endsWith('.so') ? ['-shared', '-fPIC'] : [];
  const flags = ['-O2', '-std=gnu11', '-Wall', '-Wextra', ...kind];
  execFileSync('cc', [...flags, '-o', fresh, source], { stdio: ['ignore', 'inherit', 'inherit'] });
  renameSync(fresh, program);
  return program;
}

/** Builds turns.c. @returns {string} what `env` sets to preload it */
export const withTurns = () => `LD_PRELOAD=${compile('turns.c', 'turns.so')}`;

/**
 * Builds what a Node server needs to answer probe.js's questions; it needs an IPC channel besides.
 *
 * @param {?number} [core] see onCore
 * @returns {string[]} arguments of `env` that run Node so, but for the program
 */
function probedNode(core = null) {
  loadTestAddon();
  const node = [process.execPath, '--expose-gc', '--import', PROBE];
  return [withTurns(), ...onCore(core), ...node];
}

const running = new Set();
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.once(signal, () => process.exit(1));
}

/** This program's end is its end. */
function keep(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
  child.once('error', () => running.delete(child));
  return child;
}

/**
 * @param {?number} core see onCore
 * @param {Array<string | number>} command
 * @param {import('node:child_process').SpawnOptions} options
 * @returns {import('node:child_process').ChildProcess} which ends with this program at the latest
 */
export function start(core, command, options) {
  const [program, ...args] = [...onCore(core), ...command].map(String);
  return keep(spawn(program, args, options));
}

async function stop(child) {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT);
  await gone;
  clearTimeout(timer);
}

/** Waits for the address a server prints, and reads on so that its pipe never fills. */
async function readPort(child, name) {
  const lines = createInterface({ input: child.stdout });
  const late = AbortSignal.timeout(START_TIMEOUT);
  return new Promise((resolve, reject) => {
    late.addEventListener('abort', () => reject(new Error(`${name} printed no address in time`)));
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
 * @param {string} command it and `args` as `env` takes them
 * @param {string[]} args
 * @param {{probed?: boolean}} [how] whether probe.js is in it
 * @returns {Promise<Server>}
 */
export async function startPrinting(name, pin, command, args, { probed = false } = {}) {
  // The test runner's loader is in NODE_OPTIONS: the server and its threads would load it.
  const plain = ['env', '-u', 'NODE_OPTIONS', command, ...args];
  const child = start(coreOf(pin), plain, {
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
  const [first, ...rest] = [...probedNode(), ...args];
  return startPrinting(name, pin, first, rest, { probed: true });
}

/**
 * Starts bin/sprites.
 *
 * @param {Record<string, string | number>} options besides MEASURED, without their dashes
 * @param {object} [how]
 * @param {boolean} [how.pin]
 * @param {boolean} [how.probed] whether probe.js is in it
 * @param {string} [how.program]
 * @returns {Promise<Server & {tlsPort?: number, adminPort?: number, errors: Buffer[], status: () => Promise<object>}>}
 *     `errors`: what it says on stderr
 */
export async function startSprites(options, { pin, probed = true, program = SPRITES[1] } = {}) {
  const core = coreOf(pin);
  const node = probed ? probedNode(core) : [...onCore(core), process.execPath];
  const how = { command: [...node, program], ipc: probed };
  const { child, errors, listening } = launch({ ...MEASURED, ...options }, how);
  keep(child).stderr.pipe(process.stderr, { end: false });
  const ports = await listening;
  return {
    ...{ ...ports, pids: [child.pid], probe: probed ? child : null, stop: () => stop(child) },
    errors,
    status: () => statusAt(ports.adminPort ?? ports.port)
  };
}

/**
 * Works with something that has a `stop()`, as a server has, and stops it whatever happens.
 *
 * @template T, R
 * @param {T & {stop: () => Promise<void>}} started
 * @param {(started: T) => Promise<R>} work
 * @returns {Promise<R>}
 */
export async function during(started, work) {
  try {
    return await work(started);
  } finally {
    await started.stop();
  }
}

/** Where nginx keeps its modules, or null where there is no nginx with nchan. */
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

/** @returns {string | null} why there is no nchan here */
export const nchanMissing = () =>
  nchanModules() ? null : 'there is no nginx with nchan (Debian: libnginx-mod-nchan)';

/**
 * Starts nginx with nchan.
 *
 * @param {boolean} pin
 * @returns {Promise<Server>}
 */
export async function startNchan(pin) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-nchan-'));
  const port = await freePort();
  const names = { modules: nchanModules(), folder, port, files: fileLimit(), connections: 20000 };
  if (names.files === Infinity) names.files = 1000000;
  let text = readFileSync(join(HERE, 'contenders', 'nchan.conf'), 'utf8').replace(
    /@(\w+)@/g,
    (_, name) => names[name]
  );
  // nginx's worker must run as this user: no other may read the folder.
  if (process.getuid() === 0) text = `user root;\n${text}`;
  const file = join(folder, 'nginx.conf');
  writeFileSync(file, text);
  const child = start(coreOf(pin), ['nginx', '-p', folder, '-c', file, '-e', 'stderr'], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
  });
  const isUp = () => {
    if (child.exitCode !== null) throw new Error(`nginx stopped at once, with ${child.exitCode}`);
    return fetch(`http://127.0.0.1:${port}/`).then(
      () => true,
      () => false
    );
  };
  await until(isUp, 'nginx comes up', START_TIMEOUT / 1000);
  // nginx listens before its worker process exists.
  const children = `/proc/${child.pid}/task/${child.pid}/children`;
  const workers = await until(() => readFileSync(children, 'utf8').trim(), 'nginx has a worker');
  return {
    port,
    pids: [child.pid, ...workers.split(/\s+/).map(Number)],
    probe: null,
    stop: async () => {
      await stop(child);
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

/**
 * Starts a program in C that prints its address.
 *
 * @param {string} name of contenders/NAME.c
 * @param {boolean} pin
 * @returns {Promise<Server>}
 */
export function startBare(name, pin) {
  return startPrinting(name, pin, compile(`contenders/${name}.c`, name), []);
}

/**
 * A contender that runs.
 *
 * @typedef {object} Server
 * @property {number} port on 127.0.0.1
 * @property {number[]} pids its processes, all of them
 * @property {import('node:child_process').ChildProcess|null} probe answers as probe.js says, if any
 * @property {() => Promise<void>} stop ends it, and resolves when it has ended
 */

/**
 * All contenders, by name. `missing()` says why one can't run here, or null; `start(pin)` starts it, on a core of its own
 * where `pin`; `nchan`: it is that which the load speaks to.
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
    start: (pin) => startNode('node-http', pin, [join(HERE, 'contenders', 'node-http.js')])
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
 * @param {string} only names with commas between them
 * @param {Record<string, object>} all by name
 * @param {string} url of the program, which ends as `refuseUsage` does where there is no such name
 * @returns {string[]}
 */
export function namesIn(only, all, url) {
  const names = only.split(',');
  const unknown = names.find((name) => !Object.hasOwn(all, name));
  return unknown === undefined
    ? names
    : refuseUsage(url, `no contender "${unknown}": there are ${Object.keys(all).join(', ')}`);
}

/**
 * @param {string[]} names
 * @param {Record<string, {title: string, missing: () => string | null}>} all
 * @returns {string[]} those that can run here; the others are told of
 */
export const thoseHere = (names, all) =>
  names.filter((name) => {
    const why = all[name].missing();
    if (why !== null) console.error(`bench: ${all[name].title} is left out: ${why}`);
    return why === null;
  });

/**
 * Starts the load of a feed's watchers against a server.
 *
 * @param {Server} server
 * @param {boolean} pin whether to give the load a core of its own
 * @param {Record<string, string|number>} options of the program, without their dashes
 * @returns {{child: import('node:child_process').ChildProcess, next: (name: string) => Promise<object>,
 *   measure: (begin?: () => Promise<unknown>) => Promise<object>, ended: Promise<number>, stop: () => void}} `next`
 *   resolves with the load's next event of that name and rejects with its error, or when it ends without one; `measure`
 *   lets a load of feeds go, once all its connections are open, and resolves with its result and what the server took
 *   meanwhile (usage.js); `begin` is called when it is warm, before what is measured
 */
export function startLoad(server, pin, options) {
  const args = Object.entries({ port: server.port, ...options }).map(
    ([name, value]) => `--${name}=${value}`
  );
  const child = start(pin ? LOAD_CORE : null, [buildWatchers(), ...args], {
    stdio: ['pipe', 'pipe', 'inherit']
  });
  child.stdin.on('error', () => {}); // Writing fails once it has ended; `ended` reports that.
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
    const use = new Use(server.pids);
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

/** The publisher's token of the server that is measured. */
export const TOKEN = 'bench-token-0123456789';

const WATCHERS = {
  name: "the watchers' load generator",
  home: 'test/bench/watchers',
  sources: ['native/flags.gypi', 'native/base', 'native/swarm', 'test/bench/watchers'],
  command: 'npm run bench:feeds'
};

/**
 * Builds the load generator, where it is older than its sources.
 *
 * @returns {string} its path
 */
export function buildWatchers() {
  buildWhenWanted(WATCHERS);
  return builtFile(WATCHERS, 'watchers');
}

/**
 * Measures one contender with a load of feeds: a server of its own, from its start to its end.
 *
 * @param {{start: (pin: boolean) => Promise<Server>}} contender
 * @param {boolean} pin
 * @param {Record<string, string | number>} options of the load, without their dashes
 * @returns {Promise<[object, object]>} what `measure` of startLoad gives, and what probe.js tells of its turns meanwhile
 */
export async function measureFeed(contender, pin, options) {
  // On a core of its own the load does not sleep while documents come: on one machine it is the server that would pay
  // for waking it.
  const all = { token: contender.token?.() ?? TOKEN, awake: pin ? 1 : 0, ...options };
  return during(await contender.start(pin), (server) =>
    during(startLoad(server, pin, all), async (load) => {
      const result = await load.measure(() => ask(server));
      return [result, await ask(server)];
    })
  );
}
