import { copyFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';

import t from 'tap';

import { certificate } from '../support/certificate.js';
import { request, Wire } from '../support/http.js';
import { temporary } from '../support/processes.js';
import { startServer } from '../support/server.js';
import { until } from '../support/until.js';

/** TLS that workers serve: their connections, and a certificate that changes under way. */

/** Enough that each worker has some. */
const WIRES = 12;

async function startTls(t, options = {}) {
  const folder = temporary(t);
  for (const name of ['old', 'new']) certificate(folder, name);
  const files = { 'tls-cert': join(folder, 'cert'), 'tls-key': join(folder, 'key') };
  /** Puts a certificate and its key where the server reads them. */
  const put = (name) => {
    copyFileSync(join(folder, `${name}.cert`), files['tls-cert']);
    copyFileSync(join(folder, `${name}.key`), files['tls-key']);
  };
  put('old');
  const server = await startServer(t, {
    options: { workers: 2, drain: 0, 'tls-port': 0, ...files, ...options }
  });
  return Object.assign(server, { put, files });
}

/** The name in the certificate that a new connection is shown; undefined where there is no such. */
function shown({ tlsPort: port }) {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1', rejectUnauthorized: false }, () => {
      resolve(socket.getPeerCertificate().subject.CN);
      socket.destroy();
    });
    socket.on('error', () => resolve(undefined));
  });
}

/** Waits until so many connections in a row are shown this name: every worker shows it. */
const untilAllShow = (server, name) =>
  until(async () => {
    for (let i = 0; i < WIRES; i += 1) if ((await shown(server)) !== name) return false;
    return true;
  }, `all show ${name}`);

t.test('a poll by TLS is parked in a worker, and answered there', async (t) => {
  const server = await startTls(t);
  const wires = [];
  for (let i = 0; i < WIRES; i += 1) wires.push(await Wire.openTls(server.tlsPort));
  const ids = [];
  for (const wire of wires) ids.push((await wire.send(request('POST', '/join')).read()).body.id);
  for (const [i, wire] of wires.entries()) wire.send(request('GET', `/poll/${ids[i]}`));
  await server.until(({ parked, tlsConnections }) => parked === WIRES && tlsConnections === WIRES);
  for (const id of ids) t.equal((await server.throw(id, 'left', `"not"`)).status, 400);
  for (const id of ids) t.equal((await server.throw(id, 'left', '{"a":1}')).status, 202);
  for (const wire of wires) {
    t.match((await wire.read()).body, { sprites: [{ sprite: { a: 1 } }] });
    await wire.destroy();
  }
  await server.until(({ parked }) => parked === 0);
  for (const id of ids) await server.leave(id);
  await server.leaveNothing();
  await server.stop();
});

t.test('SIGUSR2 has every worker show another certificate', async (t) => {
  const server = await startTls(t, { 'log-level': 'warn' });
  await untilAllShow(server, 'old');
  const stays = await Wire.openTls(server.tlsPort);
  server.put('new');
  t.equal(await shown(server), 'old', 'not before it is told to');
  server.child.kill('SIGUSR2');
  await untilAllShow(server, 'new');
  t.equal(
    (await stays.send(request('POST', '/join')).read()).status,
    201,
    'the connection from before stays'
  );
  await stays.destroy();

  // What can't be read changes nothing.
  writeFileSync(server.files['tls-cert'], 'no certificate');
  rmSync(server.files['tls-key']);
  server.child.kill('SIGUSR2');
  await until(() => Buffer.concat(server.errors).includes('not changed'), 'it says so');
  await untilAllShow(server, 'new');
  await server.stop();
});

/** Ways to the workers: a connection is counted once, whichever of them has it. */
const OPEN = {
  'by TLS': (server) => Wire.openTls(server.tlsPort, '127.0.0.1', '127.0.0.9'),
  plain: (server) => Wire.open(server.port, '127.0.0.1', '127.0.0.9')
};

for (const [name, openAt] of Object.entries(OPEN)) {
  t.test(`connections ${name} are those of their address`, (t) => oneTooMany(t, openAt));
}

async function oneTooMany(t, openAt) {
  const server = await startTls(t, { 'address-connections': 4, 'idle-time': 60 });
  /** A connection that is served, or undefined where it was refused: 503, or closed. */
  async function served() {
    const wire = await openAt(server).catch(() => undefined);
    const { status } =
      (await wire
        ?.send(request('OPTIONS', '/join'))
        .read()
        .catch(() => {})) ?? {};
    if (status === 204) return wire;
    await wire?.destroy();
    return undefined;
  }
  const wires = (await Promise.all(Array.from({ length: WIRES }, served))).filter(Boolean);
  t.equal(wires.length, 4, 'as many as an address may have');
  await Promise.all(wires.map((wire) => wire.destroy()));
  await until(async () => {
    const wire = await served();
    await wire?.destroy();
    return wire !== undefined;
  }, 'others have their places');
  await server.stop();
}
