/**
 * What a parked poll costs over TLS: `node test/bench/tls.js [clients]`.
 *
 * Starts bin/sprites with a certificate of its own making (openssl), parks clients over TLS by Node's
 * https, and prints the growth of the server's resident size a client, beside the same over the plain
 * port by Node's server and by the native front door.
 */
import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';

import { launch, SPRITES } from '../support/launch.js';
import { answerHelp } from '../support/opening-comment.js';

answerHelp(import.meta.url);

const CLIENTS = Number(process.argv[2] ?? 3000);
/** Clients that are there before the measuring begins, so that what every server has is not counted. */
const WARM = 200;
const AT_ONCE = 50;

const directory = mkdtempSync(join(tmpdir(), 'sprites-tls-'));
const cert = join(directory, 'cert.pem');
const key = join(directory, 'key.pem');

function resident(pid) {
  const [, kilobytes] = /^VmRSS:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'));
  return Number(kilobytes) * 1024;
}

async function startServer(door) {
  const [node, ...program] = SPRITES;
  const options = {
    ...{ door, drain: 0, 'tls-cert': cert, 'tls-key': key, 'tls-port': 0 },
    ...{ 'address-joins': 0, 'address-clients': 0, 'address-handed-over': 0 }
  };
  const { child, listening } = launch(options, { command: [node, '--expose-gc', ...program] });
  const { port, tlsPort } = await listening;
  return { server: child, ports: { http: port, https: tlsPort } };
}

function request({ scheme, port, agent, method, path }) {
  const { request: ask } = scheme === 'https' ? https : http;
  return ask({ host: '127.0.0.1', port, agent, method, path, rejectUnauthorized: false });
}

async function park(options) {
  const joining = request({ ...options, method: 'POST', path: '/join' });
  joining.end();
  const [response] = await once(joining, 'response');
  const { id } = JSON.parse(await response.toArray());
  const poll = request({ ...options, method: 'GET', path: `/poll/${id}` });
  poll.on('error', () => {});
  poll.end();
}

async function measure(scheme, door) {
  const { server, ports } = await startServer(door);
  const { Agent } = scheme === 'https' ? https : http;
  const agent = new Agent({ keepAlive: true });
  const options = { scheme, port: ports[scheme], agent };
  const parkMany = async (count) => {
    for (let done = 0; done < count; done += AT_ONCE) {
      await Promise.all(Array.from({ length: AT_ONCE }, () => park(options)));
    }
    await pause(3000);
  };
  await parkMany(WARM);
  const before = resident(server.pid);
  await parkMany(CLIENTS);
  const bytes = Math.round((resident(server.pid) - before) / CLIENTS);
  agent.destroy();
  server.kill('SIGTERM');
  await once(server, 'exit');
  return bytes;
}

try {
  execFileSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      '-subj',
      '/CN=localhost'
    ],
    { stdio: 'ignore' }
  );
  console.log(`| way in | bytes of resident size per parked client (${CLIENTS}) |\n| --- | --- |`);
  console.log(`| native front door | ${await measure('http', 'native')} |`);
  console.log(`| node:http | ${await measure('http', 'node')} |`);
  console.log(`| node:https (--tls-port) | ${await measure('https', 'native')} |`);
} finally {
  rmSync(directory, { recursive: true });
}
