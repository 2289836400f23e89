import { createServer } from 'node:net';

import t from 'tap';

import { globalTimers, Requests } from '../../lib/client/requests.js';
import { createFetch } from '../../lib/swarm/status.js';
import { parse } from '../../lib/swarm/options.js';
import { certificate } from '../support/certificate.js';
import { listening, startUnresponsivePort } from '../support/addresses.js';
import { openSockets, temporary } from '../support/processes.js';
import { FaultProxy } from '../support/proxies.js';
import { startServer } from '../support/server.js';
import { start } from '../support/swarm.js';
import { until } from '../support/until.js';

/** Https targets: the engine inside Node, with Node's OpenSSL. */

t.jobs = 3;

const TLS = /^TLS is served on https:\/\/.*:([0-9]+)\/$/;

/** @returns {Promise<{server: object, url: string, ca: string, run: Function}>} */
async function startTls(t) {
  const files = certificate(temporary(t));
  const server = await startServer(t, { options: { 'tls-port': 0, 'throw-rate': 0, ...files } });
  const [, port] = server.lines.map((line) => TLS.exec(line)).find(Boolean);
  const ca = files['tls-cert'];
  const run = async (args, url = `https://localhost:${port}`) => {
    const { code, out, err } = await start(t, [...args, '--url', url, '--json']).result();
    return { code, err, result: out ? JSON.parse(out) : null };
  };
  return { server, port: Number(port), ca, run };
}

t.test('by TLS every sprite is accounted for, and they are TLS connections', async (t) => {
  const { server, ca, run } = await startTls(t);
  const args = ['throw', 60, '--throwers', 6, '--time', 3, '--ca', ca];
  const { code, result, err } = await run([...args, '--size', 16000]);
  t.equal(code, 0, err);
  t.match(result.target, { tls: true, host: 'localhost' });
  t.match(result.account, { complete: true, missing: 0, repeated: 0, mangled: 0 });
  t.ok(result.account.received > 0);
  t.equal(result.connections.closed, 0);
  t.ok(result.server.law.holds);
  const { clients, handshakes } = await server.status();
  t.ok(clients === 0 && handshakes >= 60, `${handshakes} handshakes`);
});

t.test('TLS connections that are cut come back, and nothing is lost', async (t) => {
  const { server, port, run } = await startTls(t);
  const proxy = await FaultProxy.start(t, port);
  const args = ['throw', 40, '--rate', 100, '--time', 6, '--insecure', '--processes', 2];
  const running = run(args, `https://localhost:${proxy.port}`);
  await server.until(({ thrown }) => thrown >= 50);
  proxy.cut();
  const { code, result, err } = await running;
  t.equal(code, 0, err || result.faults.join());
  t.ok(result.connections.closed >= 40, `${result.connections.closed} broke`);
  t.match(result.account, { missing: 0, repeated: 0 });
  t.equal(result.connections.rejoined, 0);
});

t.test('a certificate that is not believed is told before the run', async (t) => {
  const { server, port, ca, run } = await startTls(t);
  const park = ['park', 3, '--time', 0.2];
  const distrusted = await run(park);
  t.equal(distrusted.code, 2);
  t.match(distrusted.err, /certificate of localhost is not believed .*--ca, or .*--insecure/);
  const misnamed = await run([...park, '--ca', ca], `https://127.0.0.1:${port}`);
  t.equal(misnamed.code, 2, 'it is for another name');
  t.equal((await run([...park, '--ca', '/nope'])).code, 2);
  const plain = await run([...park, '--insecure'], `https://localhost:${server.port}`);
  t.match(plain, { code: 2, err: /localhost speaks no TLS there: is it http/ });
  t.equal((await server.status()).joined, 0);
});

t.test('the engine checks the certificate itself, and its name', async (t) => {
  const { server, port, ca, run } = await startTls(t);
  // The first request goes to the admin port, which has no certificate.
  const park = ['park', 3, '--time', 0.2, '--status-port', server.adminPort];
  const cases = [
    [[], `https://localhost:${port}`, 'TLS self-signed certificate'],
    [['--ca', ca], `https://127.0.0.1:${port}`, 'TLS IP address mismatch']
  ];
  for (const [trustOptions, url, why] of cases) {
    const { code, result } = await run([...park, ...trustOptions], url);
    t.equal(code, 1, why);
    t.ok(result.connectErrors[why] > 0, JSON.stringify(result.connectErrors));
    t.match(result.faults, [/^0 of 3 clients got parked/]);
  }
  t.equal((await server.status()).joined, 0);
});

// This test counts the sockets of this process, so no other test may run beside it.
const alone = { buffered: false };

t.test("an agent's request ends in time, and its connection with it", alone, async (t) => {
  const answers = {
    'nothing at all': '',
    'another protocol': 'HTTP/1.1 101 -\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n',
    'a status that is none': 'HTTP/1.1 999 -\r\nContent-Length: 2\r\n\r\n{}',
    'half a head': 'HTTP/1.1 200',
    'half a body': 'HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{'
  };
  const ports = { 'no connection': await startUnresponsivePort(t) };
  for (const [name, answer] of Object.entries(answers)) {
    const server = createServer((socket) => {
      socket.on('error', () => {}).once('data', () => socket.write(answer));
    });
    ports[name] = await listening(t, server);
  }
  const fetch = createFetch(parse(['agent', 'http://127.0.0.1/play/hall']));
  const requests = new Requests(fetch, globalTimers(), { requestTimeout: 500, answerMost: 100 });
  for (const [name, port] of Object.entries(ports)) {
    const before = openSockets();
    const answer = requests.send(`http://127.0.0.1:${port}/`, { method: 'POST', body: '{}' });
    await t.rejects(answer, { reason: /^(slow|network)$/ }, name);
    await until(() => openSockets() === before, 'its connection is closed', 8);
  }
});
