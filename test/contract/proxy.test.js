import { spawnSync } from 'node:child_process';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import path from 'node:path';
import tls from 'node:tls';
import t from 'tap';
import { readOptions } from '../../lib/operator/options.js';
import { certificateWithKey } from '../support/certificate.js';
import { freePort } from '../support/addresses.js';
import { problemOf } from '../support/contract.js';
import { authorized, TOKEN, tokenFile } from '../support/feeds.js';
import { coldHeads, differences, head } from '../support/http-cases.js';
import { request, Wire } from '../support/http.js';
import { startProgram, temporary } from '../support/processes.js';
import { ROOT, startServer } from '../support/server.js';
import { until } from '../support/until.js';

/**
 * Runs the real proxies with the files of deploy/ in front of the real server. Only ports, paths and the certificate
 * are replaced. Skipped where a proxy is not installed.
 */

const deployFile = (name) => readFileSync(path.join(ROOT, 'deploy', name), 'utf8');
/** Debian has some programs in folders that only root's PATH contains. */
process.env.PATH += ':/usr/sbin:/sbin';
const isInstalled = (command) => !spawnSync(command, ['-v']).error;

/** Returns a folder that nginx's workers, which run as another user, can read. */
function openFolder(t) {
  const dir = temporary(t);
  chmodSync(dir, 0o755);
  return dir;
}

/** Returns deploy/haproxy.cfg with the test's ports and paths. */
function haproxyConfig({ dir, port, upstream }) {
  return (
    deployFile('haproxy.cfg')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`)
      .replace('bind :8443', `bind 127.0.0.1:${port}`)
      .replaceAll('/etc/haproxy/sprites.pem', path.join(dir, 'both.pem'))
      .replace(/^ {4}(user|group) haproxy$/gm, process.getuid() === 0 ? '$&' : '')
      // A limit for the memory and the open files of a test machine.
      .replace('maxconn 200000', 'maxconn 2000')
  );
}

/** Returns deploy/nginx.conf with the test's ports and paths. */
function nginxConfig({ dir, port, upstream }) {
  return deployFile('nginx.conf')
    .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`)
    .replace('listen 8443', `listen 127.0.0.1:${port}`)
    .replaceAll('/etc/nginx/sprites.crt', path.join(dir, 'localhost.cert'))
    .replaceAll('/etc/nginx/sprites.key', path.join(dir, 'localhost.key'))
    .replaceAll('/var/log/nginx', dir)
    .replace('/run/nginx.pid', path.join(dir, 'nginx.pid'))
    .replace('worker_processes auto', 'worker_processes 2')
    .replace('worker_rlimit_nofile 262144', 'worker_rlimit_nofile 4096')
    .replace('worker_connections 131072', 'worker_connections 1024')
    .replace(/^user .*$/m, process.getuid() === 0 ? '$&' : '');
}

const PROXIES = {
  haproxy: {
    file: 'haproxy.cfg',
    trust: 'proxy',
    greeting: 'PROXY UNKNOWN\r\n',
    config: haproxyConfig,
    check: (config) => ['-c', '-f', config],
    run: (config) => ['-db', '-f', config]
  },
  nginx: {
    file: 'nginx.conf',
    trust: 'x-forwarded-for',
    config: nginxConfig,
    check: (config) => ['-t', '-q', '-c', config],
    run: (config) => ['-c', config, '-g', 'daemon off;']
  }
};

/**
 * Starts a server behind a proxy. The `server`'s own functions bypass the proxy.
 *
 * @returns {Promise<object>} `open`: opens a TLS connection to the proxy from an address; `ask`: sends a request over a
 *     new one
 */
async function startBehindProxy(t, name, options = {}) {
  const { file, trust, greeting, config, run } = PROXIES[name];
  const server = await startServer(t, {
    options: { drain: 0, 'trust-proxy': trust, ...options },
    greeting
  });
  const dir = openFolder(t);
  certificateWithKey(dir);
  const port = await freePort();
  const configFile = path.join(dir, file);
  writeFileSync(configFile, config({ dir, port, upstream: server.port }));
  const proxy = startProgram(t, name, run(configFile));
  const open = (address) => Wire.openTls(port, '127.0.0.1', address);
  const tryConnect = async () => {
    if (proxy.exitCode !== null) throw new Error(proxy.said);
    const wire = await open().catch(() => undefined);
    await wire?.destroy();
    return wire;
  };
  await until(tryConnect, `${name} listens`);
  const ask = async (method, target, more) => {
    const wire = await open();
    try {
      return await server.read(wire.send(request(method, target, more)));
    } finally {
      await wire.destroy();
    }
  };
  return { server, open, ask, port, dir, proxy };
}

/** Joins from one address, with a different forged address each time. @returns {Promise<number[]>} the statuses */
async function joinRepeatedly({ server, open }, address, times) {
  const wire = await open(address);
  const statuses = [];
  for (let i = 0; i < times; i += 1) {
    const headers = { 'X-Forwarded-For': `192.0.2.${i}`, Forwarded: `for=192.0.2.${i}` };
    wire.send(request('POST', '/join', { headers }));
    statuses.push((await server.read(wire)).status);
  }
  await wire.destroy();
  return statuses;
}

for (const name of Object.keys(PROXIES)) {
  const skip = isInstalled(name) ? false : `${name} is not installed`;

  t.test(`${name} accepts deploy/${PROXIES[name].file}`, { skip }, async (t) => {
    const dir = openFolder(t);
    certificateWithKey(dir);
    const { file, config, check } = PROXIES[name];
    const written = path.join(dir, file);
    writeFileSync(written, config({ dir, port: 8443, upstream: 8080 }));
    const { status, stdout, stderr } = spawnSync(name, check(written), { encoding: 'utf8' });
    t.equal(status, 0, stdout + stderr);
    t.notMatch(stdout + stderr, /warn/i, 'and warns of nothing');
  });

  t.test(
    `the server bounds each client by its own address, behind ${name}`,
    { skip },
    async (t) => {
      const proxied = await startBehindProxy(t, name, { 'address-joins': 1 });
      const statuses = await joinRepeatedly(proxied, '127.0.0.77', 40);
      t.equal(statuses[0], 201);
      t.ok(statuses.includes(429), 'whatever it claims to be');
      t.same(
        await joinRepeatedly(proxied, '127.0.0.78', 1),
        [201],
        'and another is not held up by it'
      );
    }
  );

  t.test(`through ${name}, with TLS`, { skip }, async (t) => {
    const options = { 'publish-token-file': tokenFile(t) };
    const { server, open, ask, port, dir, proxy } = await startBehindProxy(t, name, options);
    const join = async () => (await ask('POST', '/join')).body;
    const sprites = ({ body }) => body.sprites.map(({ sprite }) => sprite);

    t.test('each of many parked polls is answered by its own sprite, at once', async (t) => {
      const clients = [];
      for (let i = 0; i < 20; i += 1) {
        const { id } = await join();
        clients.push({ id, ...(await server.park(id, '', await open())) });
      }
      for (const [i, { id }] of clients.entries()) {
        const thrown = await ask('POST', `/throw/${id}/left?n=1`, { body: `{"from":${i}}` });
        t.same(thrown.body, { state: 'delivered' });
      }
      // The hold is 120 s: an answer stuck in a proxy's buffer would come only with the ping.
      const received = (await Promise.all(clients.map(({ answer }) => answer))).flatMap(sprites);
      const from = received.map((sprite) => sprite.from).sort((a, b) => a - b);
      t.same(from, [...clients.keys()]);
      for (const { id, wire } of clients) {
        t.equal((await ask('POST', `/leave/${id}`)).status, 204);
        await wire.destroy();
      }
    });

    t.test('a sprite of the largest size passes', async (t) => {
      const { id, maxSprite } = await join();
      const body = JSON.stringify({ data: 'x'.repeat(maxSprite - 11) });
      t.equal(body.length, maxSprite);
      t.equal((await ask('POST', `/throw/${id}/up`, { body })).status, 202);
      t.same(sprites(await ask('GET', `/poll/${id}?ack=0`)), [JSON.parse(body)]);
      await server.leave(id);
    });

    t.test("problems are the server's own", async (t) => {
      const unknown = await ask('GET', '/poll/0190b0c0-0000-7000-8000-000000000000');
      t.equal(problemOf(unknown), 'unknown-client');
      const { id, maxSprite } = await join();
      const body = JSON.stringify({ data: 'x'.repeat(maxSprite * 2) });
      t.equal(problemOf(await ask('POST', `/throw/${id}/up`, { body })), 'sprite-too-large');
      await server.leave(id);
      const value = { headers: authorized(), body: ' '.repeat(2 ** 20 + 1) };
      t.equal(problemOf(await ask('PUT', '/feed/a', value)), 'feed-too-large');
    });

    t.test('a client that goes away takes its parked poll with it', async () => {
      const { id } = await join();
      const { wire } = await server.park(id, '', await open());
      await wire.destroy();
      await server.until(({ parked }) => parked === 0);
      await server.leave(id);
    });

    if (name === 'nginx') {
      t.test('HTTP/2 carries polls and throws on one connection', async (t) => {
        const session = http2.connect(`https://127.0.0.1:${port}`, { rejectUnauthorized: false });
        t.teardown(() => session.close());
        const over2 = async (method, target, body = '') => {
          const stream = session.request(
            { ':method': method, ':path': target },
            { endStream: body === '' }
          );
          if (body !== '') stream.end(body);
          let text = '';
          for await (const piece of stream.setEncoding('utf8')) text += piece;
          return JSON.parse(text || 'null');
        };
        const { id } = await over2('POST', '/join');
        const poll = over2('GET', `/poll/${id}?ack=0`);
        await server.until(({ parked }) => parked === 1);
        t.same(await over2('POST', `/throw/${id}/down`, '{"a":2}'), { state: 'delivered' });
        t.same((await poll).sprites[0].sprite, { a: 2 });
        await over2('POST', `/leave/${id}`);
      });

      t.test('while the server is away, a problem document says when to come again', async (t) => {
        const { id } = await join();
        await server.stop();
        const answer = await ask('GET', `/poll/${id}?ack=0`);
        t.equal(problemOf(answer), 'draining');
        t.equal(answer.headers['retry-after'], '2');
        proxy.kill('SIGTERM');
        await proxy.gone;
        const [logged, errors] = ['sprites.log', 'error.log'].map((file) =>
          readFileSync(path.join(dir, file), 'utf8')
        );
        t.match(logged, / GET \/poll\/- 503 /, 'which the log shows');
        t.notOk((logged + errors).includes(id), 'without the id');
      });
    }
  });
}

t.test(
  'nginx lets no Forwarded through',
  { skip: isInstalled('nginx') ? false : 'nginx is not installed' },
  async (t) => {
    const way = await startBehindProxy(t, 'nginx', {
      'address-joins': 1,
      'trust-proxy': 'forwarded'
    });
    t.ok(
      (await joinRepeatedly(way, '127.0.0.77', 40)).includes(429),
      'whatever a client claims to be'
    );
  }
);

/** A hidden request, which publishes a feed: the feed exists if the server has read the request. */
const hiddenRequest = (i) =>
  `PUT /feed/hidden/${i} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 1\r\n\r\n7`;
const LAST_REQUEST = 'GET /feed/last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';

/** Ways to hide a request: in a body, in a chunked body, and behind every trick, with two ends of its body. */
const TRICKS = [
  (text) => `${head('POST /join', `Content-Length: ${text.length}`)}${text}`,
  (text) =>
    `${head('POST /join', 'Transfer-Encoding: chunked')}${text.length.toString(16)}\r\n${text}\r\n0\r\n\r\n`,
  ...[
    ...Object.values(coldHeads),
    ...Object.values(differences).flatMap((rules) => Object.values(rules).map(({ text }) => text))
  ]
    .filter((text) => text.length < 10_000)
    .flatMap((trick) => ['', '0\r\n\r\n', '{}'].map((end) => (text) => trick + end + text))
];

for (const name of Object.keys(PROXIES)) {
  const skip = isInstalled(name) ? false : `${name} is not installed`;

  t.test(`nothing is smuggled through ${name}`, { skip }, async (t) => {
    const options = { 'publish-token-file': tokenFile(t) };
    const { server, open, port } = await startBehindProxy(t, name, options);
    // One connection for all questions: HAProxy accepts few new connections of an address.
    const asking = await open();
    t.teardown(() => asking.destroy());

    /** Sends bytes over a new connection. Returns all answers until it is closed, or silent for `silence` ms. */
    async function answersTo(bytes, silence = 1000) {
      const socket = tls.connect({ host: '127.0.0.1', port, rejectUnauthorized: false });
      let said = '';
      socket.setEncoding('latin1').on('data', (piece) => {
        said += piece;
      });
      const closed = new Promise((resolve) => {
        socket.on('error', () => {}).on('close', resolve);
      });
      // The server waits for a body that never comes.
      socket.setTimeout(silence, () => socket.destroy());
      socket.write(bytes, 'latin1');
      await closed;
      return said;
    }

    const isTold = (said) => said.includes('"watching":0');
    /** Retries with a long timeout: on a busy machine the first answer may have come too late. */
    const isToldOf = async (trick) =>
      isTold(await answersTo(trick(hiddenRequest('again')) + LAST_REQUEST, 30_000));
    t.match(
      await answersTo(hiddenRequest('shown') + LAST_REQUEST, 30_000),
      /"watching":0[^]*unknown-feed/,
      'both are told'
    );
    let read = 0;
    for (let at = 0; at < TRICKS.length; at += 32) {
      const some = TRICKS.slice(at, at + 32);
      const answers = await Promise.all(
        some.map((trick, i) => answersTo(trick(hiddenRequest(at + i)) + LAST_REQUEST))
      );
      for (const [i, said] of answers.entries()) {
        asking.send(request('GET', `/feed/hidden/${at + i}`));
        const { status, body } = await server.read(asking);
        // The proxy reuses the tricks' connections to the server: this answer must not belong to another request.
        if (body.feed !== `hidden/${at + i}` && body.type !== 'urn:sprites:unknown-feed') {
          t.fail(`another's answer: ${JSON.stringify(body)}`);
        }
        // The proxy must have seen each request that the server has read.
        if (status !== 200) continue;
        read += 1;
        if (at + i <= 1 || !(isTold(said) || (await isToldOf(some[i])))) {
          t.fail(`read, and not asked: ${JSON.stringify(some[i]('…'))}`);
        }
      }
    }
    t.ok(read > 20, `of ${TRICKS.length} the proxy let ${read} through`);
  });
}

/** "180s", "5m", "500ms" → seconds. */
function seconds(text) {
  const [, number, unit] = /^(\d+)(ms|s|m|h)?$/.exec(text);
  return Number(number) * { ms: 0.001, s: 1, m: 60, h: 3600 }[unit ?? 's'];
}

t.test('nothing ends a poll that is parked for its whole hold', async (t) => {
  const longest = 120 * 1.2;
  const haproxy = deployFile('haproxy.cfg');
  for (const which of ['client', 'server']) {
    const [, value] = new RegExp(`^\\s*timeout ${which} (\\S+)$`, 'm').exec(haproxy);
    t.ok(seconds(value) > longest, `haproxy: timeout ${which} ${value}`);
  }
  t.notMatch(haproxy, /^\s*timeout (tunnel|http-request|http-keep-alive)/m, 'no other applies');
  const nginx = deployFile('nginx.conf');
  const [, value] = /^\s*proxy_read_timeout (\S+);$/m.exec(nginx);
  t.ok(seconds(value) > longest, `nginx: proxy_read_timeout ${value}`);
});

t.test('nginx gives up idle connections to the server before the server does', async (t) => {
  const [, upstream] = /upstream sprites \{(.*?)\n {4}\}/s.exec(deployFile('nginx.conf'));
  const idle = readOptions([]).idleTime;
  const [, kept] = /keepalive_timeout (\S+);/.exec(upstream);
  t.ok(seconds(kept) < idle, `${kept} < ${idle} s`);
});
