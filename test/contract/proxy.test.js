import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import path from 'node:path';
import tls from 'node:tls';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { certificate } from '../support/certificate.js';
import { freePort } from '../support/addresses.js';
import { coldHeads, differences, head } from '../support/http-cases.js';
import { temporary } from '../support/processes.js';

/**
 * The proxy files of deploy/ under the real proxies, in front of the real server: only ports, the
 * certificate and paths are put in. Skipped where a proxy is not installed.
 */

const ROOT = fileURLToPath(new URL('../..', import.meta.url));
const SPRITES = path.join(ROOT, 'bin/sprites');
const deployed = (name) => readFileSync(path.join(ROOT, 'deploy', name), 'utf8');
/** Debian keeps some programs where only root looks. */
process.env.PATH += ':/usr/sbin:/sbin';
const installed = (command) => !spawnSync(command, ['-v']).error;

/** Runs bin/sprites with this Node, and without the loader of the test runner. */
const SERVER = ['env', ['-u', 'NODE_OPTIONS', process.execPath, SPRITES]];
const HELP = spawnSync(SERVER[0], [...SERVER[1], '--help'], { encoding: 'utf8' }).stdout;

/** A folder that nginx's workers, another user, can read. */
function openFolder(t) {
  const dir = temporary(t);
  chmodSync(dir, 0o755);
  return dir;
}

/** Makes `localhost.cert`, `localhost.key` and, as HAProxy wants it, both in `both.pem`; returns the first. */
function proxyCertificate(dir) {
  const files = certificate(dir, 'localhost', ['DNS:localhost', 'IP:127.0.0.1']);
  const [cert, key] = Object.values(files).map((file) => readFileSync(file, 'utf8'));
  writeFileSync(path.join(dir, 'both.pem'), cert + key);
  return cert;
}

/**
 * Starts a program that is stopped and waited for when the test ends, and that ends by itself when
 * the test is killed.
 */
function program(t, command, args) {
  const child = spawn('timeout', ['--kill-after=5', '110', command, ...args], {
    stdio: ['ignore', 'pipe', 'pipe']
  });
  child.said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text) => {
      child.said += text;
    });
  }
  child.gone = once(child, 'exit');
  t.teardown(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 10_000);
    await child.gone;
    clearTimeout(late);
  });
  return child;
}

/** Waits until something listens on the port, or the program has ended. */
async function listening(child, port) {
  while (child.exitCode === null) {
    const socket = net.connect(port, '127.0.0.1');
    const open = await new Promise((resolve) => {
      socket.on('connect', () => resolve(true)).on('error', () => resolve(false));
    });
    socket.destroy();
    if (open) return;
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
  }
  throw new Error(child.said);
}

async function startSprites(t, port, options) {
  const child = program(t, SERVER[0], [
    ...SERVER[1],
    '--host',
    '127.0.0.1',
    '--port',
    String(port),
    ...options
  ]);
  await listening(child, port);
  return child;
}

/** deploy/haproxy.cfg with the test's ports and paths. */
function haproxyConfig({ dir, port, upstream }) {
  return (
    deployed('haproxy.cfg')
      .replaceAll('127.0.0.1:8080', `127.0.0.1:${upstream}`)
      .replace('bind :8443', `bind 127.0.0.1:${port}`)
      .replaceAll('/etc/haproxy/sprites.pem', path.join(dir, 'both.pem'))
      .replace(/^ {4}(user|group) haproxy$/gm, process.getuid() === 0 ? '$&' : '')
      // The memory and the files of a test machine, not of a server.
      .replace('maxconn 200000', 'maxconn 2000')
  );
}

/** deploy/nginx.conf with the test's ports and paths. */
function nginxConfig({ dir, port, upstream }) {
  return deployed('nginx.conf')
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

/** A proxy before what listens at a port. */
async function startProxy(t, name, upstream) {
  const dir = openFolder(t);
  const ca = proxyCertificate(dir);
  const port = await freePort();
  const { file, config, run } = PROXIES[name];
  const written = path.join(dir, file);
  writeFileSync(written, config({ dir, port, upstream }));
  const proxy = program(t, name, run(written));
  await listening(proxy, port);
  return { dir, ca, port, proxy };
}

/** Server and proxy, and a way to speak TLS to it. */
async function behind(t, name, options = []) {
  const upstream = await freePort();
  const trust = ['--trust-proxy', PROXIES[name].trust];
  const sprites = await startSprites(t, upstream, [...trust, ...options]);
  const { dir, ca, port, proxy } = await startProxy(t, name, upstream);
  const agent = new https.Agent({ keepAlive: true, ca, maxSockets: 100 });
  t.teardown(() => agent.destroy());

  /** @returns {Promise<{ status: number, headers: object, body: object | null }>} */
  function ask(method, target, { body, headers } = {}) {
    return new Promise((resolve, reject) => {
      const request = https.request(
        { host: '127.0.0.1', port, method, path: target, agent, headers },
        (response) => {
          let text = '';
          response.setEncoding('utf8').on('data', (piece) => {
            text += piece;
          });
          response.on('error', reject);
          response.on('end', () => {
            const { statusCode: status, headers: fields } = response;
            resolve({ status, headers: fields, body: text === '' ? null : JSON.parse(text) });
          });
        }
      );
      request.on('error', reject);
      request.end(body);
    });
  }
  const parked = async (count) => {
    while ((await ask('GET', '/status')).body.parked !== count) {
      await new Promise((resolve) => {
        setTimeout(resolve, 10);
      });
    }
  };
  return { ask, parked, port, upstream, ca, dir, sprites, proxy, agent };
}

for (const name of Object.keys(PROXIES)) {
  const skip = installed(name) ? false : `${name} is not installed`;

  t.test(`${name} accepts deploy/${PROXIES[name].file}`, { skip }, async (t) => {
    const dir = openFolder(t);
    proxyCertificate(dir);
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
      const { port, ca } = await behind(t, name, ['--address-joins', '1']);
      const joins = async (localAddress, times) => {
        const agent = new https.Agent({ ca, localAddress, keepAlive: true, maxSockets: 1 });
        const statuses = [];
        for (let i = 0; i < times; i++) {
          const request = https
            .request({
              host: '127.0.0.1',
              port,
              path: '/join',
              method: 'POST',
              agent,
              headers: { 'Content-Length': 0, 'X-Forwarded-For': `192.0.2.${i}` }
            })
            .end();
          const [response] = await once(request, 'response');
          response.resume();
          await once(response, 'end');
          statuses.push(response.statusCode);
        }
        agent.destroy();
        return statuses;
      };
      const many = await joins('127.0.0.77', 40);
      t.equal(many[0], 201);
      t.ok(many.includes(429), 'whatever it claims to be');
      t.same(await joins('127.0.0.78', 1), [201], 'and another is not held up by it');
    }
  );

  t.test(`through ${name}, with TLS`, { skip }, async (t) => {
    const { ask, parked, dir, sprites, ...rest } = await behind(t, name);

    t.test('a thrown sprite arrives at a parked poll at once', async (t) => {
      const {
        status,
        body: { id }
      } = await ask('POST', '/join');
      t.equal(status, 201);
      const poll = ask('GET', `/poll/${id}?ack=0`);
      await parked(1);
      const thrown = await ask('POST', `/throw/${id}/left?n=1`, { body: '{"name":"cat"}' });
      t.equal(thrown.status, 202);
      t.same(thrown.body, { state: 'delivered' });
      const answer = await poll;
      // The hold is 120 s: an answer held back in a buffer would come with the ping, not now.
      t.same(
        answer.body.sprites.map(({ from, sprite }) => ({ from, sprite })),
        [{ from: 'right', sprite: { name: 'cat' } }]
      );
      t.ok(answer.headers['content-length'], 'with its length');
      t.equal(answer.headers['content-encoding'], undefined, 'not compressed');
      t.equal((await ask('POST', `/leave/${id}`)).status, 204);
    });

    t.test('a sprite of the largest size passes', async (t) => {
      const { id, maxSprite } = (await ask('POST', '/join')).body;
      const sprite = JSON.stringify({ data: 'x'.repeat(maxSprite - 11) });
      t.equal(sprite.length, maxSprite);
      t.equal((await ask('POST', `/throw/${id}/up`, { body: sprite })).status, 202);
      const answer = await ask('GET', `/poll/${id}?ack=0`);
      t.equal(JSON.stringify(answer.body.sprites[0].sprite), sprite);
      await ask('POST', `/leave/${id}`);
    });

    t.test("problems are the server's own", async (t) => {
      const answer = await ask('GET', '/poll/0190b0c0-0000-7000-8000-000000000000');
      t.equal(answer.status, 404);
      t.equal(answer.headers['content-type'], 'application/problem+json');
      t.equal(answer.body.type, 'urn:sprites:unknown-client');
      const { id, maxSprite } = (await ask('POST', '/join')).body;
      const large = JSON.stringify({ data: 'x'.repeat(maxSprite * 2) });
      t.match(await ask('POST', `/throw/${id}/up`, { body: large }), {
        status: 413,
        body: { type: 'urn:sprites:sprite-too-large' }
      });
      await ask('POST', `/leave/${id}`);
    });

    t.test('many polls park at once, each is answered by its own sprite', async (t) => {
      const ids = [];
      for (let i = 0; i < 20; i++) ids.push((await ask('POST', '/join')).body.id);
      const polls = ids.map((id) => ask('GET', `/poll/${id}?ack=0`));
      await parked(ids.length);
      const thrown = ids.map((id, i) =>
        ask('POST', `/throw/${id}/left?n=1`, { body: `{"from":${i}}` })
      );
      for (const { status } of await Promise.all(thrown)) t.equal(status, 202);
      const got = (await Promise.all(polls)).flatMap(({ body }) =>
        body.sprites.map(({ sprite }) => sprite.from)
      );
      t.same(
        got.sort((a, b) => a - b),
        ids.map((_, i) => i)
      );
      for (const id of ids) await ask('POST', `/leave/${id}`);
    });

    t.test('a client that goes away takes its parked poll with it', async (t) => {
      const { id } = (await ask('POST', '/join')).body;
      const agent = new https.Agent({ ca: rest.ca });
      const request = https.get({
        host: '127.0.0.1',
        port: rest.port,
        path: `/poll/${id}?ack=0`,
        agent
      });
      request.on('error', () => {});
      await parked(1);
      request.destroy();
      agent.destroy();
      await parked(0);
      await ask('POST', `/leave/${id}`);
      t.pass();
    });

    if (name === 'nginx') {
      t.test('HTTP/2 carries polls and throws on one connection', async (t) => {
        const session = http2.connect(`https://127.0.0.1:${rest.port}`, { ca: rest.ca });
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
        await parked(1);
        t.same(await over2('POST', `/throw/${id}/down`, '{"a":2}'), { state: 'delivered' });
        t.same((await poll).sprites[0].sprite, { a: 2 });
        await over2('POST', `/leave/${id}`);
      });

      t.test('while the server is away, a problem document says when to come again', async (t) => {
        const { id } = (await ask('POST', '/join')).body;
        sprites.kill('SIGTERM');
        await sprites.gone;
        const answer = await ask('GET', `/poll/${id}?ack=0`);
        t.match(answer, { status: 503, body: { type: 'urn:sprites:draining', status: 503 } });
        t.equal(answer.headers['content-type'], 'application/problem+json');
        t.equal(answer.headers['retry-after'], '2');
        rest.proxy.kill('SIGTERM');
        await rest.proxy.gone;
        const [logged, errors] = ['sprites.log', 'error.log'].map((file) =>
          readFileSync(path.join(dir, file), 'utf8')
        );
        t.match(logged, / GET \/poll\/- 503 /, 'which the log shows');
        t.notOk((logged + errors).includes(id), 'without the id');
      });
    }
  });
}

const TOKEN = 'a-token-that-nobody-has-guessed';

/** Publishes a feed of its own: whether it was read can be asked. */
const hidden = (i) =>
  `PUT /feed/hidden/${i} HTTP/1.1\r\nHost: a.example\r\nAuthorization: Bearer ${TOKEN}\r\nContent-Length: 1\r\n\r\n7`;
const LAST = 'GET /feed/last HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n';

/** Requests that are bodies, and every trick, as if its body had ended, and as if a chunk ended it. */
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
  const skip = installed(name) ? false : `${name} is not installed`;

  t.test(`nothing is smuggled through ${name}`, { skip }, async (t) => {
    const tokens = path.join(temporary(t), 'tokens');
    writeFileSync(tokens, `${TOKEN}\n`);
    const { ask, ca, port } = await behind(t, name, ['--publish-token-file', tokens]);

    /** What a connection with these bytes is answered, until it is closed or silent for so many milliseconds. */
    async function answersTo(bytes, silence = 1000) {
      const socket = tls.connect({ host: '127.0.0.1', port, ca, servername: 'localhost' });
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
    /** The same once more: on a busy machine the answer may have come when none waited for it any more. */
    const isToldOf = async (trick) =>
      isTold(await answersTo(trick(hidden('again')) + LAST, 30_000));
    t.match(
      await answersTo(hidden('shown') + LAST, 30_000),
      /"watching":0[^]*unknown-feed/,
      'both are told'
    );
    let read = 0;
    for (let at = 0; at < TRICKS.length; at += 32) {
      const some = TRICKS.slice(at, at + 32);
      const answers = await Promise.all(
        some.map((trick, i) => answersTo(trick(hidden(at + i)) + LAST))
      );
      for (const [i, said] of answers.entries()) {
        const { status, body } = await ask('GET', `/feed/hidden/${at + i}`);
        // The connections that the tricks have used to the server are others' now.
        if (body.feed !== `hidden/${at + i}` && body.type !== 'urn:sprites:unknown-feed') {
          t.fail(`another's answer: ${JSON.stringify(body)}`);
        }
        // What the server has read as a request was one to the proxy, too.
        if (status !== 200) continue;
        read += 1;
        if (at + i <= 1 || !(isTold(said) || (await isToldOf(some[i])))) {
          t.fail(`read, and not asked: ${JSON.stringify(some[i]('…'))}`);
        }
      }
    }
    t.ok(read > 50, `of ${TRICKS.length} the proxy let ${read} through`);
  });
}

t.test(
  "haproxy tells the client's address by the PROXY protocol, version 2",
  { skip: installed('haproxy') ? false : 'haproxy is not installed' },
  async (t) => {
    let head;
    const backend = net
      .createServer((socket) => {
        let received = Buffer.alloc(0);
        socket.on('error', () => {});
        // The start of the connection that looked whether haproxy listens yet says nothing further.
        socket.on('data', (bytes) => {
          received = Buffer.concat([received, bytes]);
          if (!received.includes('GET /status') || !received.toString().endsWith('\r\n\r\n'))
            return;
          head = received;
          socket.end('HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n');
        });
      })
      .listen(0, '127.0.0.1');
    await once(backend, 'listening');
    t.teardown(() => backend.close());
    const { ca, port } = await startProxy(t, 'haproxy', backend.address().port);
    const agent = new https.Agent({ ca, localAddress: '127.0.0.77' });
    const [response] = await once(
      https.get({ host: '127.0.0.1', port, path: '/status', agent }),
      'response'
    );
    t.equal(response.statusCode, 204);
    response.resume();
    agent.destroy();
    t.equal(head.subarray(0, 12).toString('latin1'), '\r\n\r\n\0\r\nQUIT\n');
    t.equal(head[12], 0x21, 'version 2, PROXY');
    t.equal(head[13], 0x11, 'TCP over IPv4');
    t.same([...head.subarray(16, 20)], [127, 0, 0, 77], "the client's address");
    const length = head.readUInt16BE(14);
    t.match(
      head.subarray(16 + length).toString('latin1'),
      /^GET \/status HTTP\/1\.1\r\n/,
      'and after it the request as it came'
    );
  }
);

t.test(
  "nginx tells the client's address, and not what the client claims",
  { skip: installed('nginx') ? false : 'nginx is not installed' },
  async (t) => {
    const seen = [];
    const backend = http
      .createServer((request, response) => {
        seen.push(request.headers);
        response.end('{}');
      })
      .listen(0, '127.0.0.1');
    await once(backend, 'listening');
    t.teardown(() => {
      backend.close();
      backend.closeAllConnections();
    });
    const { ca, port } = await startProxy(t, 'nginx', backend.address().port);
    const agent = new https.Agent({ ca, localAddress: '127.0.0.77' });
    const claims = { 'X-Forwarded-For': '192.0.2.1', Forwarded: 'for=192.0.2.1' };
    const [response] = await once(
      https.get({ host: '127.0.0.1', port, path: '/status', agent, headers: claims }),
      'response'
    );
    response.resume();
    await once(response, 'end');
    agent.destroy();
    t.equal(seen[0]['x-forwarded-for'], '127.0.0.77');
    t.equal(seen[0].forwarded, undefined);
  }
);

/** "180s", "5m", "500ms" → seconds. */
function seconds(text) {
  const [, number, unit] = /^(\d+)(ms|s|m|h)?$/.exec(text);
  return Number(number) * { ms: 0.001, s: 1, m: 60, h: 3600 }[unit ?? 's'];
}

t.test('nothing ends a poll that is parked for its whole hold', async (t) => {
  const longest = 120 * 1.2;
  const haproxy = deployed('haproxy.cfg');
  for (const which of ['client', 'server']) {
    const [, value] = new RegExp(`^\\s*timeout ${which} (\\S+)$`, 'm').exec(haproxy);
    t.ok(seconds(value) > longest, `haproxy: timeout ${which} ${value}`);
  }
  t.notMatch(haproxy, /^\s*timeout (tunnel|http-request|http-keep-alive)/m, 'no other applies');
  const nginx = deployed('nginx.conf');
  const [, value] = /^\s*proxy_read_timeout (\S+);$/m.exec(nginx);
  t.ok(seconds(value) > longest, `nginx: proxy_read_timeout ${value}`);
});

t.test('nginx gives up idle connections to the server before the server does', async (t) => {
  const [, upstream] = /upstream sprites \{(.*?)\n {4}\}/s.exec(deployed('nginx.conf'));
  const [, idle] = /--idle-time .*\(default (\d+)\)/.exec(HELP);
  const [, kept] = /keepalive_timeout (\S+);/.exec(upstream);
  t.ok(seconds(kept) < Number(idle), `${kept} < ${idle} s`);
});
