import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, readFileSync, rmSync } from 'node:fs';
import { constants } from 'node:os';
import path from 'node:path';
import { connect } from 'node:tls';

import t from 'tap';

import { openTls } from '../../lib/http/tls.js';
import { certificate } from '../support/certificate.js';
import { checkAnswer } from '../support/contract.js';
import { clientHello, request, Wire } from '../support/http.js';
import { launch } from '../support/launch.js';
import { startServer } from '../support/server.js';
import { temporary } from '../support/processes.js';
import { until } from '../support/until.js';

/**
 * TLS: the same routes, certificates that change while the server runs, and the bounds before a handshake.
 */

/** Returns the lines of a server's log that have this message. */
const linesWithMessage = (server, message) => server.logLines.filter(({ msg }) => msg === message);

// ---- SIGUSR2 ------------------------------------------------------------------------------------

const RELOADED_MESSAGE = 'TLS certificate and key read anew';
const NO_CERTIFICATE_MESSAGE = 'there is no certificate of TLS to read anew';

/** Returns whether a process has a handler for a signal. */
function listensFor(pid, number) {
  const [, mask] = /^SigCgt:\s*([0-9a-f]+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return ((BigInt(`0x${mask}`) >> BigInt(number - 1)) & 1n) === 1n;
}

t.test('SIGUSR2 while it starts is no end either', async (t) => {
  const { child, ended, lines, errors, listening } = launch({
    drain: 0,
    workers: 2,
    'transient-port': 0
  });
  t.teardown(() => child.kill('SIGKILL'));
  // Of these signals only SIGHUP has no listener before the server's: Node listens for SIGTERM, bin/sprites for
  // SIGUSR2.
  const listens = () => listensFor(child.pid, constants.signals.SIGHUP);
  await until(listens, 'it listens for the signals');
  child.kill('SIGUSR2');
  child.kill('SIGTERM');
  t.strictSame(await ended, [0, null]);
  await listening;
  t.ok(lines.some((line) => line.includes('listens on')));
  t.match(Buffer.concat(errors).toString(), NO_CERTIFICATE_MESSAGE);
});

// ---- The port -----------------------------------------------------------------------------------

/** Starts a server with the certificate "old". */
async function startTls(t, { options = {} } = {}) {
  const dir = temporary(t);
  certificate(dir, 'old');
  const [cert, key] = ['now.cert', 'now.key'].map((name) => path.join(dir, name));
  copyFileSync(path.join(dir, 'old.cert'), cert);
  copyFileSync(path.join(dir, 'old.key'), key);
  const server = await startServer(t, {
    options: { 'tls-cert': cert, 'tls-key': key, 'tls-port': 0, drain: 0, ...options }
  });
  return Object.assign(server, { dir, cert, key });
}

/** Opens a TLS connection. Returns a wire with its socket, and with the name in the server's certificate (`certificateName`). */
async function openSecure(port, how = {}) {
  const to = how.socket ? {} : { port, host: '127.0.0.1' };
  const socket = connect({ ...to, rejectUnauthorized: false, allowHalfOpen: true, ...how });
  await once(socket, 'secureConnect');
  const certificateName = socket.getPeerCertificate().subject?.CN;
  return Object.assign(new Wire(socket), { socket, certificateName });
}

/** Sends a request over a wire. Returns the answer. */
async function ask(wire, method, target, more) {
  wire.send(request(method, target, more));
  return checkAnswer(await wire.read({ head: method === 'HEAD' }));
}

t.test('the same routes answer over TLS', async (t) => {
  const server = await startTls(t);
  const wire = await openSecure(server.tlsPort);
  const { id } = (await ask(wire, 'POST', '/join')).body;
  t.match(id, /^[0-9a-f-]{36}$/);
  const plain = await server.wire();
  for (const [method, target, body, status] of [
    ['GET', `/place/${id}`, undefined, 200],
    ['GET', '/', undefined, 200],
    ['GET', '/nothing', undefined, 404],
    ['POST', `/throw/${id}/left?n=1`, '[]', 400],
    ['POST', `/throw/${id}/north`, '{}', 400],
    ['GET', `/poll/${id}?ack=9`, undefined, 400],
    ['OPTIONS', '/join', undefined, 204],
    ['DELETE', '/join', undefined, 405]
  ]) {
    const there = await ask(plain, method, target, { body });
    const here = await ask(wire, method, target, { body });
    t.equal(here.status, status, `${method} ${target}`);
    t.strictSame([here.status, here.bytes], [there.status, there.bytes]);
  }
  const { answer } = await server.park(id);
  t.equal(
    (await ask(wire, 'POST', `/throw/${id}/up`, { body: '{"x":1}' })).body.state,
    'delivered',
    'a throw by TLS reaches a poll without'
  );
  t.equal((await answer).body.sprites[0].from, 'down');
  const parked = await server.park(id, 'ack=1', wire);
  t.equal((await server.throw(id, 'left')).body.state, 'delivered', 'and the other way around');
  t.equal((await parked.answer).body.seq, 2);
  t.equal((await ask(wire, 'GET', '/status')).body.tlsConnections, 1, 'it is counted');
  t.equal((await ask(wire, 'POST', `/leave/${id}`)).status, 204);
  await Promise.all([wire.destroy(), plain.destroy()]);
  await server.until(({ tlsConnections }) => tlsConnections === 0);
  await server.assertNothingLeft();
  await server.stop();
});

// ---- Certificates -------------------------------------------------------------------------------

/** Puts a certificate and a key where the server reads them. */
function installCertificate(server, name, key = name) {
  copyFileSync(path.join(server.dir, `${name}.cert`), server.cert);
  copyFileSync(path.join(server.dir, `${key}.key`), server.key);
}

/** Returns the name in the certificate that a new connection gets. */
async function presentedName(server) {
  const wire = await openSecure(server.tlsPort);
  await wire.destroy();
  return wire.certificateName;
}

/** Waits until new connections get a certificate with this name. There are enough of them to reach every worker. */
const untilPresented = (server, name) =>
  until(async () => {
    for (let i = 0; i < 12; i += 1) if ((await presentedName(server)) !== name) return false;
    return true;
  }, `all show ${name}`);

for (const workers of [0, 2]) {
  t.test(`a new certificate drops no connection, with ${workers} workers`, async (t) => {
    const server = await startTls(t, { options: { workers } });
    certificate(server.dir, 'new');
    const id = await server.join();
    const wire = await openSecure(server.tlsPort);
    t.equal(wire.certificateName, 'old');
    const { answer } = await server.park(id, '', wire);
    installCertificate(server, 'new');
    t.equal(await presentedName(server), 'old', 'not before it is told to');
    for (const [times, name] of [
      [1, 'new'],
      [2, 'old']
    ]) {
      installCertificate(server, name);
      server.child.kill('SIGUSR2');
      await until(() => linesWithMessage(server, RELOADED_MESSAGE).length === times, 'it is read');
      await untilPresented(server, name);
      t.equal((await server.status()).parked, 1, 'a parked client stays');
    }
    await server.throw(id, 'left', '{"still":"here"}');
    t.strictSame(
      (await answer).body.sprites.map(({ sprite }) => sprite),
      [{ still: 'here' }]
    );
    t.equal((await ask(wire, 'POST', `/leave/${id}`)).status, 204, 'and goes on being served');
    await wire.destroy();
    await server.assertNothingLeft();
    await server.stop();
  });
}

t.test('a pair that does not fit, or is not there, leaves the old one', async (t) => {
  const server = await startTls(t);
  certificate(server.dir, 'new');
  const UNCHANGED_MESSAGE = 'TLS certificate and key not changed';
  installCertificate(server, 'new', 'old');
  server.child.kill('SIGUSR2');
  await until(() => linesWithMessage(server, UNCHANGED_MESSAGE).length === 1, 'it says so');
  t.equal(await presentedName(server), 'old');
  rmSync(server.key);
  server.child.kill('SIGUSR2');
  await until(() => linesWithMessage(server, UNCHANGED_MESSAGE).length === 2, 'it says so');
  t.match(linesWithMessage(server, UNCHANGED_MESSAGE), [
    { level: 50, err: { message: /are no certificate with its key/ } },
    { level: 50, err: { message: /^--tls-key \S+ can't be read \(ENOENT\)$/ } }
  ]);
  t.equal(await presentedName(server), 'old');
  installCertificate(server, 'new');
  server.child.kill('SIGUSR2');
  await until(() => linesWithMessage(server, RELOADED_MESSAGE).length === 1, 'it is read');
  t.equal(await presentedName(server), 'new', 'and the next that fits is taken');
  const again = ['-in', server.cert, '-signkey', server.key, '-days', '-1', '-out', server.cert];
  t.equal(spawnSync('openssl', ['x509', ...again]).status, 0);
  server.child.kill('SIGUSR2');
  await until(() => linesWithMessage(server, RELOADED_MESSAGE).length === 2, 'it is read');
  const ended = 'the TLS certificate has ended: renew it, then reload';
  await until(() => linesWithMessage(server, ended).length === 1, 'it says so');
  await server.stop();
});

// ---- Handshakes ---------------------------------------------------------------------------------

t.test('a session goes on by its ticket, after a restart with --state too', async (t) => {
  const versions = ['TLSv1.2', 'TLSv1.3'];
  const sessionOf = async (server, maxVersion) => {
    const to = { port: server.tlsPort, host: '127.0.0.1' };
    const socket = connect({ ...to, rejectUnauthorized: false, maxVersion });
    const [session] = await once(socket, 'session');
    socket.destroy();
    return session;
  };
  const resumed = async (server, sessions) => {
    for (const [i, session] of sessions.entries()) {
      const wire = await openSecure(server.tlsPort, { session, maxVersion: versions[i] });
      t.equal((await ask(wire, 'GET', '/status')).status, 200);
      await wire.destroy();
    }
    return (await server.status()).handshakesResumed;
  };
  for (const [options, times] of [
    [{ state: path.join(temporary(t), 'state') }, 2],
    [{}, 0]
  ]) {
    const first = await startTls(t, { options });
    const sessions = [];
    for (const version of versions) sessions.push(await sessionOf(first, version));
    t.equal(await resumed(first, sessions), 2);
    await first.stop();
    const second = await startTls(t, { options });
    t.equal(await resumed(second, sessions), times, options.state ? 'the same keys' : 'new keys');
    await second.stop();
  }
});

t.test('a key of tickets that a start makes is kept for the next one', async (t) => {
  const files = certificate(t.testdir());
  const options = { tlsCert: files['tls-cert'], tlsKey: files['tls-key'] };
  const kept = [];
  const pool = {
    notes: () => kept.slice(-1).map((keys) => ['', keys]),
    note: (name, keys) => kept.push(keys)
  };
  const door = { setTls() {}, listen: async () => 1 };
  const { now } = Date;
  t.teardown(() => Object.assign(Date, { now }));
  for (const [hours, times] of Object.entries({ 0: 1, 1: 1, 12: 2, 13: 2 })) {
    Date.now = () => now() + hours * 3_600_000;
    (await openTls({ door, options, pool })).close();
    t.equal(kept.length, times, `${hours} hours later`);
  }
});

t.test('handshakes that stop cost others nothing, and are closed', async (t) => {
  const server = await startTls(t, { options: { 'head-time': 6 } });
  const hello = await clientHello();
  const wires = await Promise.all(Array.from({ length: 200 }, () => Wire.open(server.tlsPort)));
  // Every other connection sends a whole hello, and does not answer when it gets the certificate.
  for (const [i, wire] of wires.entries()) wire.send(hello.subarray(0, hello.length - (i % 2)));
  const id = await server.join();
  const wire = await openSecure(server.tlsPort);
  const { answer } = await server.park(id, '', wire);
  t.equal((await server.throw(id, 'left')).body.state, 'delivered');
  t.equal((await answer).status, 200);
  await Promise.all(wires.map((one) => one.closed()));
  const { handshakes, handshakesFailed } = await server.status();
  t.strictSame([handshakes, handshakesFailed], [1, 200]);
  await wire.destroy();
  await server.assertNothingLeft();
  await server.stop();
});

// ---- Bounds -------------------------------------------------------------------------------------

t.test('a connection that begins no handshake is bounded, and does not stay', async (t) => {
  const server = await startTls(t, { options: { 'address-connections': 5, 'head-time': 6 } });
  const wires = await Promise.all(
    Array.from({ length: 200 }, () => Wire.open(server.tlsPort, '127.0.0.1', '127.0.0.9'))
  );
  // On a slow machine some more are accepted: the first connections have ended before the last ones come.
  await server.until(
    ({ connectionsRefused, tlsConnections }) => connectionsRefused > 100 && tlsConnections <= 5
  );
  t.equal(
    (await openSecure(server.tlsPort)).certificateName,
    'old',
    'another address is still welcome'
  );
  await Promise.all(wires.map((wire) => wire.closed()));
  t.ok(
    wires.every(({ unreadBytes }) => unreadBytes.length === 0),
    'without a word that is no TLS'
  );
  const counted = await openSecure(server.tlsPort, { localAddress: '127.0.0.9' });
  t.equal((await ask(counted, 'GET', '/place/nobody')).status, 404, 'and so is this one again');
  await server.stop();
  await counted.destroy();
});

t.test('an end does not wait for a handshake that never comes', async (t) => {
  // A server that waits for the handshake would wait longer than this test.
  const options = { 'head-time': 3600, 'body-time': 3600 };
  const server = await startTls(t, { options });
  const wire = await Wire.open(server.tlsPort);
  t.teardown(() => wire.destroy());
  await server.until(({ tlsConnections }) => tlsConnections === 1);
  await server.stop();
});

t.test('what is no handshake is closed', async (t) => {
  const server = await startTls(t);
  const wire = await Wire.open(server.tlsPort);
  wire.send(request('POST', '/join'));
  await wire.closed();
  await server.until(({ tlsConnections }) => tlsConnections === 0);
  await server.stop();
});
