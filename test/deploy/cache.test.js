import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import t from 'tap';

import { Feeds } from '../../lib/client/client.js';
import { freePort } from '../support/addresses.js';
import { put, tokenFile } from '../support/feeds.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * The caches of deploy/, really run: how many requests reach the server, and what clients see while a cache is
 * restarted.
 */

const WATCHERS = 300;
const HOLD = 5;

t.setTimeout(300_000);

const deployed = (name) =>
  readFileSync(fileURLToPath(new URL(`../../deploy/${name}`, import.meta.url)), 'utf8');

/** One of the files, with the ports of a test. */
const withPorts = (text, { port, server }) =>
  text
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${server}`)
    .replace('.port = "8080"', `.port = "${server}"`)
    .replace('listen 8081', `listen 127.0.0.1:${port}`);

const CACHES = {
  nginx(folder, ports) {
    const site = withPorts(deployed('nginx-cache.conf'), ports)
      .replaceAll('/var/cache/nginx', folder)
      .replaceAll('/var/log/nginx', folder);
    const file = join(folder, 'nginx.conf');
    const events = 'events { worker_connections 4096; }';
    // Its workers may otherwise be somebody to whom the test's folder is closed.
    const user = process.getuid() === 0 ? 'user root;' : '';
    const head = `${user} daemon off; worker_processes 1; pid ${folder}/pid; ${events}`;
    writeFileSync(file, `${head}\nhttp {\n${site}\n}\n`);
    return ['nginx', ['-p', folder, '-e', join(folder, 'error.log'), '-c', file]];
  },
  varnishd(folder, ports) {
    const file = join(folder, 'sprites.vcl');
    writeFileSync(file, withPorts(deployed('varnish.vcl'), ports));
    const storage = ['-s', 'malloc,64m', '-n', join(folder, 'varnish')];
    return ['varnishd', ['-F', '-j', 'none', '-a', `127.0.0.1:${ports.port}`, '-f', file, ...storage]];
  }
};

/** Starts a cache, and waits until it answers. @returns {Promise<() => Promise<void>>} ends it */
async function startCache(t, kind, ports) {
  const folder = temporary(t);
  mkdirSync(join(folder, 'sprites'));
  const [program, args] = CACHES[kind](folder, ports);
  const child = spawn(program, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  let said = '';
  for (const output of [child.stdout, child.stderr]) output.on('data', (text) => (said += text));
  const ended = new Promise((resolve) => child.on('exit', resolve));
  const end = async () => {
    child.kill('SIGTERM');
    await ended;
  };
  t.teardown(end);
  const answers = () =>
    fetch(`http://127.0.0.1:${ports.port}/status`).then(
      ({ status }) => status === 200,
      () => false
    );
  await until(answers, () => said, 30);
  return end;
}

const ONE = ['scores'];
/** In the order in which an answer has them. */
const SEVERAL = ['scores', 'standings', 'table'];
const cases = Object.keys(CACHES).flatMap((kind) => [ONE, SEVERAL].map((keys) => ({ kind, keys })));

for (const { kind, keys } of cases) {
  const missing = spawnSync('which', [kind]).status !== 0 && `${kind} is not installed`;
  t.test(`${WATCHERS} watch ${keys} through ${kind}`, { skip: missing }, async (t) => {
    const server = await startServer(t, {
      options: { 'publish-token-file': tokenFile(t), 'feed-cache': 10, hold: HOLD }
    });
    const ports = { port: await freePort(), server: server.port };
    let endCache = await startCache(t, kind, ports);
    // Whatever is published is larger than what was before.
    const publish = (value) => put(server, keys.at(value % keys.length), value);
    for (const [i, key] of keys.entries()) await put(server, key, i + 1 - keys.length);

    const seen = Array.from({ length: WATCHERS }, () => []);
    const clients = seen.map((list) => {
      const client = new Feeds({
        base: `http://127.0.0.1:${ports.port}`,
        cached: true,
        limits: { feedHold: HOLD }
      });
      for (const key of keys) client.watch(key, (value) => list.push(value));
      return client;
    });
    t.teardown(() => clients.forEach((client) => client.close()));
    const haveAll = (value) =>
      until(() => seen.every((list) => list.at(-1) === value), () => `${value}`, 60);

    await haveAll(0);
    await server.until(({ watching }) => watching > 0);
    const before = await server.status();
    const began = performance.now();
    let versions = 1;
    for (; versions <= 3; versions += 1) {
      await publish(versions);
      await haveAll(versions);
    }
    // Some turns with nothing new.
    await server.until(({ feedPings }) => feedPings >= before.feedPings + 3, 60);
    const turns = Math.ceil((performance.now() - began) / (HOLD * 1000)) + 1;
    const { feedPolls, watching } = await server.status();
    const polls = feedPolls - before.feedPolls;
    t.comment(`${polls} requests, ${versions} versions, ${turns} turns`);
    t.ok(polls <= 2 * (versions + turns), `${polls} requests`);
    t.ok(watching <= 2 * keys.length, `${watching} are parked`);

    await endCache();
    await publish(versions);
    endCache = await startCache(t, kind, ports);
    await haveAll(versions);
    await publish(versions + 1);
    await haveAll(versions + 1);
    const backwards = seen.filter((list) => list.some((value, i) => i > 0 && value <= list[i - 1]));
    t.same(backwards, [], 'nobody has seen an older value');
    for (const client of clients) client.close();
    await endCache();
    await server.stop();
  });
}
