import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import t from 'tap';

import { Client } from '../../lib/client/client.js';
import { Feeds } from '../../lib/client/feeds.js';
import { tagOf, tagText } from '../../lib/base/tag.js';
import { certificate, certificateWithKey } from '../support/certificate.js';
import { freePort, listening } from '../support/addresses.js';
import { createCredentials, skip as noNats, startNats } from '../support/nats.js';
import { startProgram, temporary } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';
import { logOf, readStatuses, untilRing } from '../support/world-servers.js';

/**
 * Runs the files of deploy/world: three servers of one world with a real nats-server, and HAProxy in front. Only ports,
 * addresses, certificates and paths are replaced.
 */

const deployFile = (name) => readFileSync(join(ROOT, 'deploy', name), 'utf8');
const NAMES = ['a', 'b', 'c'];

/** Debian installs some programs in folders that are only on root's path. */
process.env.PATH += ':/usr/sbin:/sbin';
const noProxy = spawnSync('haproxy', ['-v']).error ? 'haproxy is not installed' : false;
const noSystemd = spawnSync('systemd-analyze', ['--version']).error
  ? 'systemd-analyze is not installed'
  : false;

/** Returns the options that the unit, the drop-in and a server's own file set, by name. */
function optionsOf(name, folder, file = name) {
  const set = (text, prefix) =>
    [...text.matchAll(new RegExp(`^${prefix}SPRITES_(\\w+)=(.*)$`, 'gm'))].map(
      ([, option, value]) => [option.toLowerCase().replaceAll('_', '-'), value]
    );
  const texts = [
    set(deployFile('sprites.service'), 'Environment='),
    set(deployFile('world/world.conf'), 'Environment='),
    set(deployFile(`world/${file}.env`), '')
  ];
  return Object.fromEntries(
    texts
      .flat()
      .map(([option, value]) => [
        option,
        value.replace('%S/%N', join(folder, name)).replaceAll('%i', name).replaceAll('%d', folder)
      ])
  );
}

/** Returns nats.conf for a test. startNats adds its address and port. */
function natsConfig(folder, config, { 'tls-cert': cert, 'tls-key': key }) {
  return deployFile('world/nats.conf')
    .replace(/^(host|port):.*$/gm, '')
    .replace('/var/lib/nats', join(folder, 'store'))
    .replace('/etc/nats/nats.crt', cert)
    .replace('/etc/nats/nats.key', key)
    .replace(/^include .*$/m, () => config);
}

const NATS_UNIT = '/lib/systemd/system/nats-server.service';
const noUnit = existsSync(NATS_UNIT) ? false : 'there is no unit of nats-server here';

t.test(
  'nats.conf stands where its unit looks, and has what its user may write',
  { skip: noUnit },
  async (t) => {
    const text = deployFile('world/nats.conf');
    const unit = readFileSync(NATS_UNIT, 'utf8');
    const [, file] = /^ExecStart=.* -c (\S+)$/m.exec(unit);
    const [, user] = /^User=(.*)$/m.exec(unit);
    t.match(text, `sudo cp deploy/world/nats.conf ${file} && sudo systemctl restart nats-server`);
    const [, store] = /^ {2}store_dir: (.*)$/m.exec(text);
    t.match(
      text,
      `sudo install -d -o ${user} -g ${user} -m 700 ${store}\n`,
      'the package has none'
    );
    t.notMatch(text, /^ *max_file_store/m, 'the bound is of the account alone');
    // A path in nats.conf is relative to the folder of that file.
    const [, more] = /^include (.*)$/m.exec(text);
    t.match(text, `--config-file ${join(dirname(file), more)}\n`);
    t.match(
      text,
      'nsc add operator --sys sprites\n',
      'without a system account JetStream does not start'
    );
  }
);

/** Returns the limits of the account that the commands in nats.conf make. */
function accountLimits() {
  const text = deployFile('world/nats.conf');
  const [, disk, streams, consumer] =
    /--js-disk-storage (\d+)G --js-streams (\d+) --js-consumer (\d+)/.exec(text);
  return {
    ...{ mem_storage: 0, disk_storage: disk * 2 ** 30 },
    ...{ streams: Number(streams), consumer: Number(consumer) }
  };
}

/** Returns haproxy.cfg with the test's ports, without TLS. */
function proxyConfig(port, ports) {
  let text = deployFile('world/haproxy.cfg')
    .replace(/bind :8443 .*/, `bind 127.0.0.1:${port}`)
    .replace(/^ {4}(user|group) haproxy$/gm, process.getuid() === 0 ? '$&' : '')
    .replace('maxconn 200000', 'maxconn 2000');
  for (const [at, name] of NAMES.entries()) {
    text = text
      .replaceAll(`127.0.0.1:808${at + 1}`, `127.0.0.1:${ports[name].port}`)
      .replaceAll(`port 946${at + 5}`, `port ${ports[name].adminPort}`);
  }
  return text;
}

function startProxy(t, config) {
  const file = join(temporary(t), 'haproxy.cfg');
  writeFileSync(file, config);
  return startProgram(t, 'haproxy', ['-db', '-f', file]);
}

t.test('haproxy accepts the file', { skip: noProxy }, async (t) => {
  const folder = temporary(t);
  const both = certificateWithKey(folder, 'localhost', ['DNS:localhost']);
  const file = join(folder, 'haproxy.cfg');
  writeFileSync(file, deployFile('world/haproxy.cfg').replace('/etc/haproxy/sprites.pem', both));
  const { status, stdout, stderr } = spawnSync('haproxy', ['-c', '-f', file], { encoding: 'utf8' });
  t.equal(status, 0, stdout + stderr);
  t.notMatch(stdout + stderr, /warn/i, 'and warns of nothing');
});

t.test('what ids begin with is what the file says', async (t) => {
  const text = deployFile('world/haproxy.cfg');
  for (const name of NAMES) {
    t.match(text, `use_backend of-${name} if { var(txn.server) -m str ${tagText(tagOf(name))} }`);
  }
  // A parked poll is silent for at most 120 s and a sixteenth of that.
  const silences = [...text.matchAll(/^ {4}timeout (?:client|server) +(\d+)s$/gm)];
  t.equal(silences.length, 2);
  for (const [, seconds] of silences) t.ok(Number(seconds) > 130);
});

t.test('systemd accepts the unit as a template', { skip: noSystemd }, async (t) => {
  const folder = temporary(t);
  // Installed by the commands at the head of world.conf.
  for (const [, command] of deployFile('world/world.conf').matchAll(
    /^# +sudo (.* \/etc\/systemd\/system\/\S+)$/gm
  )) {
    execFileSync('sh', ['-c', command.replaceAll('/etc/systemd/system', folder)], { cwd: ROOT });
  }
  const { status, stdout, stderr } = spawnSync(
    'systemd-analyze',
    ['verify', '--man=no', 'sprites@a.service'],
    { encoding: 'utf8', env: { ...process.env, SYSTEMD_UNIT_PATH: `${folder}:` } }
  );
  t.equal(status, 0, stdout + stderr);
  t.equal((stdout + stderr).trim(), '');
});

/** Starts a source of feeds. Its document counts its own changes, four a second. Returns the URL. */
async function startSource(t) {
  const began = Date.now();
  const source = createServer((request, response) => {
    const count = Math.floor((Date.now() - began) / 250);
    response.setHeader('Content-Type', 'application/json').end(JSON.stringify({ count }));
  });
  return `http://127.0.0.1:${await listening(t, source)}/{key}.json`;
}

/** Starts three servers of one world, each with its name. Returns them with a function that starts another one. */
async function startWorld(t, url, upstream) {
  const folder = temporary(t);
  const { config, credentials } = createCredentials(accountLimits());
  const files = certificate(folder, 'localhost', ['DNS:localhost']);
  writeFileSync(join(folder, 'nats.creds'), credentials);
  writeFileSync(join(folder, 'nats-ca.pem'), readFileSync(files['tls-cert']));
  const nats = await startNats(t, natsConfig(folder, config, files));
  const world = nats.url.replace('127.0.0.1', 'localhost');
  const start = async (name, more = {}) => {
    mkdirSync(join(folder, name), { recursive: true });
    const options = {
      ...optionsOf(name, folder, NAMES.includes(name) ? name : 'a'),
      ...{ name, world, 'world-url': url, 'world-lease': 6 },
      ...{ state: join(folder, name, 'state'), port: 0, 'admin-port': 0 },
      ...{ upstream, 'upstream-every': 1, ...more }
    };
    return Object.assign(await startServer(t, { options }), { name });
  };
  const servers = await Promise.all(NAMES.map((name) => start(name)));
  /** Waits until the servers with these names form the ring. */
  const sewnBy = (names) => untilRing(servers.filter(({ name }) => names.includes(name)));
  await sewnBy('abc');
  return { servers, start, sewnBy };
}

const skip = noNats || noProxy;

t.test('three servers of one world behind HAProxy', { skip, timeout: 240_000 }, async (t) => {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const { servers, start, sewnBy } = await startWorld(t, base, await startSource(t));
  const of = Object.fromEntries(servers.map((server) => [server.name, server]));
  const proxy = startProxy(t, proxyConfig(port, of));
  /** All answers of the proxy, to every client. */
  const answers = [];
  const fetchHere = async (url, init) => {
    const response = await fetch(url, init);
    const { pathname } = new URL(url);
    answers.push({ status: response.status, route: pathname.split('/')[1] });
    return response;
  };
  const ask = (path, init) => fetchHere(`${base}${path}`, init);
  /**
   * Retries once, as clients do: HAProxy closes a connection without an answer when it has just lost the server behind
   * it.
   */
  const askAgain = (path) => ask(path).catch(() => ask(path));
  await until(
    async () => {
      const response = await fetch(`${base}/status`).catch(() => null);
      return response?.status === 200;
    },
    () => `the proxy serves: ${proxy.said}`
  );
  const serverOf = (id) => NAMES.find((name) => id.startsWith(tagText(tagOf(name))));

  /** Clients, each with the sprites that have come to it. */
  const clients = [];
  const enter = () => {
    const received = [];
    const client = new Client({
      base,
      fetch: fetchHere,
      onSprite: (sprite) => void received.push(sprite)
    });
    clients.push({ client, received });
    t.teardown(() => client.stop());
    client.start();
  };
  for (let i = 0; i < 12; i++) enter();
  const allOnline = () =>
    until(
      () => clients.every(({ client }) => client.state === 'online' && client.id),
      () => JSON.stringify(clients.map(({ client }) => [client.state, client.why]))
    );
  await allOnline();

  t.test('joins go to all of them, and an id to its server', async (t) => {
    const homes = new Set(clients.map(({ client }) => serverOf(client.id)));
    t.strictSame([...homes].toSorted(), NAMES);
    await until(async () => {
      const all = await readStatuses(servers);
      return all.reduce((sum, { parked }) => sum + parked, 0) === clients.length;
    });
    // Before a server knows all rows, two clients may throw at the same one.
    await sewnBy('abc');
    for (const [at, { client }] of clients.entries()) {
      const outcome = await client.throw('right', { from: at });
      t.equal(outcome.thrown, true);
      t.ok(await client.place());
    }
    await until(() => clients.every(({ received }) => received.length === 1));
    t.equal(
      new Set(clients.map(({ received }) => received[0].from)).size,
      clients.length,
      'one each'
    );
    t.notOk(answers.some(({ status }) => status === 421));
    const { status, headers } = await ask('/');
    t.equal(status, 200);
    t.match(headers.get('content-type'), 'text/html', 'the page');
  });

  t.test('each is told of its own server, and how many there are in all', async (t) => {
    // The counts of other servers come with the renewals of their leases.
    await until(async () => {
      const counts = await Promise.all(clients.map(({ client }) => client.status()));
      for (const [at, { world }] of counts.entries()) {
        t.equal(world.name, serverOf(clients[at].client.id));
      }
      return counts.every(({ world }) => world.clients === clients.length);
    });
  });

  t.test('the address of a client is its own', async (t) => {
    const { client } = clients[0];
    const { adminPort } = of[serverOf(client.id)];
    const seen = await (await fetch(`http://127.0.0.1:${adminPort}/clients/${client.id}`)).json();
    t.equal(seen.address, '127.0.0.1');
  });

  t.test('a watcher of what is fetched stays with one server', async (t) => {
    const seen = [];
    let asked = 0;
    const feeds = new Feeds({
      base,
      fetch: (...what) => {
        asked += 1;
        return fetch(...what);
      }
    });
    t.teardown(() => feeds.close());
    feeds.watch('count', (value) => void seen.push(value?.count));
    await until(() => new Set(seen).size >= 4);
    feeds.close();
    // With requests to three servers in turn there would be hundreds, for the same few values.
    t.ok(asked <= seen.length + 2, `${asked} requests for ${seen.length} values`);
    const rising = [...new Set(seen)].toSorted((one, other) => one - other);
    t.strictSame(seen, rising, 'each once, and none is older than the one before');
    // Longer than two health checks of HAProxy.
    const { child } = servers[0];
    child.kill('SIGSTOP');
    await pause(2500);
    child.kill('SIGCONT');
    t.notMatch(proxy.said, 'is DOWN', 'nor do watchers of one that stands still go to another');
  });

  t.test('an id of no client', async (t) => {
    for (const id of ['00000000-0000-8000-8000-000000000000', 'nonsense', '']) {
      const { status } = await ask(`/poll/${id}`);
      t.equal(status, 404, id);
    }
  });

  t.test('a client that goes takes its poll with it', async (t) => {
    const { client } = clients.pop();
    const home = serverOf(client.id);
    const others = clients.filter((one) => serverOf(one.client.id) === home).length;
    await of[home].until(({ parked }) => parked === others + 1);
    client.stop();
    await of[home].until(({ parked }) => parked === others);
    const response = await ask(`/leave/${client.id}`, { method: 'POST' });
    t.equal(response.status, 204);
  });

  t.test('no client gets in without the credentials, or without TLS', async (t) => {
    const outsiders = [
      ['x', { 'world-credentials': 'none' }, 'credentials', /does not let this server in/],
      ['y', { 'world-ca': 'none', 'world-credentials': 'none' }, 'unreachable', /nats:/]
    ];
    for (const [name, more, problem, words] of outsiders) {
      const outsider = await start(name, more);
      const { world, worldMember } = await outsider.until((now) => now.world.problem === problem);
      t.match(world, { state: 'alone', servers: [{ name }] });
      t.equal(worldMember, 0);
      const log = () => logOf(outsider);
      await until(() => log().includes(`"problem":"${problem}"`) && words.test(log()), log);
      const id = await outsider.join();
      t.equal((await outsider.throw(id, 'right')).status, 202, 'it serves its own all the same');
      t.equal((await outsider.poll(id)).body.sprites.length, 1);
      const at = await of.a.poll(id);
      t.equal(at.status, 404, 'no server sends a client to it');
      for (const status of await readStatuses(servers)) {
        t.equal(status.worldServers, 3, 'the ring has not heard of it');
      }
      await outsider.stop();
    }
  });

  t.test('a server that dies: its clients wait, and join anew', async (t) => {
    const lost = clients.filter(({ client }) => serverOf(client.id) === 'b');
    const others = clients.filter((one) => !lost.includes(one));
    const before = new Map(others.map(({ client }) => [client, client.id]));
    t.ok(lost.length > 0);
    const [{ client }] = lost;
    const { id } = client;
    const began = answers.length;
    of.b.child.kill('SIGKILL');
    await of.b.ended();
    let waited = 0;
    await until(async () => {
      const { status, headers } = await askAgain(`/place/${id}`);
      if (status === 503 && headers.get('retry-after') === '1') waited += 1;
      return status === 404;
    });
    t.ok(waited > 0, `503 while it may be back: ${waited}`);
    await sewnBy('ac');
    await until(() =>
      lost.every((one) => one.client.state === 'online' && serverOf(one.client.id ?? '') !== 'b')
    );
    for (const [one, old] of before) t.equal(one.id, old, 'nothing has happened to the others');
    const outcome = await client.throw('right', { again: true }, { patience: 30_000 });
    t.equal(outcome.thrown, true);
    const seen = answers.slice(began);
    t.notOk(
      seen.some(({ status }) => status === 421),
      'no client has seen 421'
    );
    t.ok(seen.filter(({ route }) => route === 'join').every(({ status }) => status === 201));
  });

  t.test('a server that restarts in order: its clients wait, and keep their places', async (t) => {
    const { port: own, adminPort } = of.c;
    const ids = clients.map(({ client }) => client.id);
    const id = ids.find((one) => serverOf(one) === 'c');
    const began = answers.length;
    of.c.child.kill('SIGTERM');
    await of.c.ended();
    // Until a health check has failed, HAProxy answers 503 with its own text.
    await until(async () => {
      const answer = await askAgain(`/place/${id}`);
      t.equal(answer.status, 503);
      return (await answer.text()).includes('urn:sprites:restarting');
    });
    // The last start of c, with a short grace period: the next test ends it for good.
    of.c = await start('c', { port: own, 'admin-port': adminPort, 'world-grace': 1 });
    servers[2] = of.c;
    await sewnBy('ac');
    await until(async () => (await of.c.adminStatus()).parked >= 1);
    await until(() => clients.every(({ client }) => client.state === 'online'));
    t.strictSame(
      clients.map(({ client }) => client.id),
      ids
    );
    t.notOk(
      answers.slice(began).some(({ route }) => route === 'join'),
      'no client has joined anew'
    );
    t.notOk(answers.slice(began).some(({ status: any }) => any === 404 || any === 421));
  });

  t.test('a server that leaves gets no newcomers while it drains', async (t) => {
    const began = answers.length;
    of.c.child.kill('SIGTERM');
    await of.c.ended();
    enter();
    await until(
      () => clients.every(({ client }) => client.state === 'online' && serverOf(client.id) === 'a'),
      () => JSON.stringify(clients.map(({ client }) => [client.state, client.why]))
    );
    t.notOk(answers.slice(began).some(({ status }) => status === 421));
    t.equal((await of.a.adminStatus()).clients, clients.length);
  });
});
