import { spawn, spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import { documentAt } from './documents.js';
import { until } from './until.js';

/** Runs the caches of deploy/, each as a process in front of a server. */

/** Returns the text of a configuration file with other ports. */
const withPorts = (text, { port, server }) =>
  text
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${server}`)
    .replace('.port = "8080"', `.port = "${server}"`)
    .replace('listen 8081', `listen 127.0.0.1:${port} backlog=4096`);

/** Returns the `-p` parameters of the command in the head of varnish.vcl. */
const parametersOf = (vcl) => {
  const [command] = /varnishd -a(.*\\\n)*.*/.exec(vcl);
  return [...command.matchAll(/-p \S+/g)].flatMap(([one]) => one.split(' '));
};

/** Adds a common mistake to a configuration: the cache's key omits the query, and stale answers are served. */
const withBadKey = (text) =>
  text
    .replace('"$request_uri ', '"$uri ')
    .replace('hash_data(req.url)', 'hash_data(regsub(req.url, "\\?.*", ""))')
    .replace('beresp.grace = 0s', 'beresp.grace = 1m');

/** By a program's name: writes its configuration into a folder, and returns its arguments. */
const CACHES = {
  nginx(folder, ports, change) {
    const site = withPorts(change(documentAt('deploy/nginx-cache.conf')), ports)
      .replaceAll('/var/cache', folder)
      .replaceAll('/var/log/nginx', folder);
    const file = join(folder, 'nginx.conf');
    const events = 'worker_rlimit_nofile 20000; events { worker_connections 19000; }';
    // Without it nginx's workers may run as a user that can't read the folder.
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

/** @returns {string|false} why a cache can't run here; false: it can */
export const reasonToSkip = (name) =>
  spawnSync('which', [name]).status !== 0 && `${name} is not installed`;

/**
 * Starts a cache, and waits until it answers.
 *
 * @param {string} name of CACHE_NAMES
 * @param {string} folder an empty folder for the cache alone
 * @param {{port: number, server: number}} ports the cache's port, and that of the server behind it
 * @param {object} [how]
 * @param {string[]} [how.commandPrefix] a command that runs it, such as taskset
 * @param {boolean} [how.hasBadKey] configures the cache to ignore the query: its answers may be stale
 * @returns {Promise<{pid: number, end: (signal?: string) => Promise<void>}>} `pid` leads a process group
 */
export async function startCache(
  name,
  folder,
  ports,
  { commandPrefix = [], hasBadKey = false } = {}
) {
  const change = hasBadKey ? withBadKey : (text) => text;
  const [program, ...args] = [...commandPrefix, name, ...CACHES[name](folder, ports, change)];
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let outputText = '';
  for (const output of [child.stdout, child.stderr])
    output.on('data', (text) => (outputText += text));
  const ended = new Promise((resolve) => child.on('close', resolve));
  const end = async (signal = 'SIGTERM') => {
    // A first process that dies of SIGKILL does not end its children: the signal goes to the group.
    if (child.exitCode === null && child.signalCode === null) process.kill(-child.pid, signal);
    await ended;
  };
  const isUp = () =>
    fetch(`http://127.0.0.1:${ports.port}/status`).then(
      ({ status }) => status === 200,
      () => false
    );
  try {
    await until(isUp, () => outputText, 30);
  } catch (error) {
    await end();
    throw error;
  }
  return { pid: child.pid, end };
}
