import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { documentAt } from './documents.js';
import { until } from './until.js';

/** The caches of deploy/, as a process of their own before a server. */

/** One of the files, with other ports. */
const withPorts = (text, { port, server }) =>
  text
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${server}`)
    .replace('.port = "8080"', `.port = "${server}"`)
    .replace('listen 8081', `listen 127.0.0.1:${port} backlog=4096`);

/** What the command in the head of varnish.vcl sets, but for the address, the file and the storage. */
const parametersOf = (vcl) => {
  const [command] = /varnishd -a(.*\\\n)*.*/.exec(vcl);
  return [...command.matchAll(/-p \S+/g)].flatMap(([one]) => one.split(' '));
};

/** A mistake that others make: the address is looked at without its query, and what is old is given, too. */
const blinded = (text) =>
  text
    .replace('"$request_uri ', '"$uri ')
    .replace('hash_data(req.url)', 'hash_data(regsub(req.url, "\\?.*", ""))')
    .replace('beresp.grace = 0s', 'beresp.grace = 1m');

/** By the name of the program: writes what it reads into a folder, and says how it is called. */
const CACHES = {
  nginx(folder, ports, change) {
    const site = withPorts(change(documentAt('deploy/nginx-cache.conf')), ports)
      .replaceAll('/var/cache', folder)
      .replaceAll('/var/log/nginx', folder);
    const file = join(folder, 'nginx.conf');
    const events = 'worker_rlimit_nofile 20000; events { worker_connections 19000; }';
    // Its workers may otherwise run as a user that may not read the folder.
    const user = process.getuid() === 0 ? 'user root;' : '';
    const head = `${user} daemon off; worker_processes 1; pid ${folder}/pid; ${events}`;
    writeFileSync(file, `${head}\nhttp {\n${site}\n}\n`);
    return ['-p', folder, '-e', join(folder, 'error.log'), '-c', file];
  },
  varnishd(folder, ports, change) {
    const file = join(folder, 'sprites.vcl');
    const text = documentAt('deploy/varnish.vcl');
    writeFileSync(file, withPorts(change(text), ports));
    const storage = ['-s', 'malloc,64m', '-n', join(folder, 'varnish')];
    const listens = ['-a', `127.0.0.1:${ports.port}`];
    return ['-F', '-j', 'none', ...listens, '-f', file, ...storage, ...parametersOf(text)];
  }
};

export const CACHE_NAMES = Object.keys(CACHES);

/** @returns {string|false} why a cache can't be run here */
export const cacheMissing = (name) =>
  spawnSync('which', [name]).status !== 0 && `${name} is not installed`;

/**
 * Starts a cache, and waits until it answers.
 *
 * @param {string} name of CACHE_NAMES
 * @param {string} folder its own, empty
 * @param {{port: number, server: number}} ports its own, and that of the server behind it
 * @param {object} [how]
 * @param {string[]} [how.before] a command that runs it, such as taskset
 * @param {boolean} [how.blind] it is set so that it does not see the query: what it answers may be old
 * @returns {Promise<{pid: number, end: (signal?: string) => Promise<void>}>} `pid`: of a process group of its own
 */
export async function startCache(name, folder, ports, { before = [], blind = false } = {}) {
  const change = blind ? blinded : (text) => text;
  const [program, ...args] = [...before, name, ...CACHES[name](folder, ports, change)];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let said = '';
  for (const output of [child.stdout, child.stderr]) output.on('data', (text) => (said += text));
  const ended = new Promise((resolve) => child.on('close', resolve));
  const end = async (signal = 'SIGTERM') => {
    // By SIGKILL the first process can't end the others.
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal);
    await ended;
  };
  const answers = () =>
    fetch(`http://127.0.0.1:${ports.port}/status`).then(
      ({ status }) => status === 200,
      () => false
    );
  try {
    await until(answers, () => said, 30);
  } catch (error) {
    await end();
    throw error;
  }
  return { pid: child.pid, end };
}
