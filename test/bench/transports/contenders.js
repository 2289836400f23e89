/**
 * The contenders that push one document to many, by name: `protocol` and `patches`, what the load generator speaks where
 * documents are published whole, and where what has changed in them is; `missing()` and `start(pin)` as in ../contenders.js;
 * `token`, where it is another one than TOKEN, publishes; `version()` is of what was installed. The servers of libraries are
 * in servers.js.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { inSeconds, KEY_SET, reads } from '../../support/grants.js';
import {
  nchanMissing,
  startBare,
  startNchan,
  startNode,
  startPrinting,
  startSprites,
  TOKEN
} from '../contenders.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const SERVERS = join(HERE, 'servers.js');
const BUN = join(HERE, 'node_modules', '.bin', 'bun');

/** @returns {string | null} why a package that only a contender needs can't be used here */
const packageMissing = (name) =>
  existsSync(join(HERE, 'node_modules', name))
    ? null
    : 'its package is not installed (npm install --prefix test/bench/transports)';

const versionIn = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'))).version;
const ofPackage = (name) => `${name} ${versionIn(join(HERE, 'node_modules', name))}`;
const spritesVersion = () => `Sprites ${versionIn(join(HERE, '..', '..', '..'))}`;
const nodeVersion = () => `Node ${process.version}`;

/** nginx says its version, and Debian that of the module. */
function nchanVersion() {
  const run = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim();
  const nginx = run('PATH=$PATH:/usr/sbin:/sbin nginx -v 2>&1').replace('nginx version: ', '');
  const module = run(
    "dpkg-query -W -f '${Version}' libnginx-mod-nchan 2>/dev/null || echo unknown"
  );
  return `nchan ${module}, ${nginx}`;
}

async function startFeeds(pin, more = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-feeds-'));
  const [tokens, keys] = [join(folder, 'tokens'), join(folder, 'keys.json')];
  writeFileSync(tokens, `${TOKEN}\n`);
  writeFileSync(keys, JSON.stringify(KEY_SET));
  const options = { 'publish-token-file': tokens, 'address-held': 0, 'log-level': 'error' };
  const grants = more.private ? { grants: keys } : {};
  const server = await startSprites({ ...options, ...grants, ...more }, { pin });
  // It has read them.
  rmSync(folder, { recursive: true });
  return server;
}

const never = () => null;

const inC = (way, protocol) => ({
  ...{ title: `bare epoll in C, ${way}`, protocol, patches: protocol, missing: never },
  start: (pin) => startBare('epoll-feed', pin)
});

const ofSprites = (way, protocol, patches = `${protocol}-delta`) => ({
  ...{ title: `Sprites, ${way}`, protocol, patches, missing: never },
  ...{ version: spritesVersion, start: startFeeds }
});

const ofNchan = (way, protocol) => ({
  ...{ title: `nchan, ${way}`, protocol, patches: protocol, missing: nchanMissing },
  ...{ version: nchanVersion, start: startNchan }
});

/** One on node:http, whose package has its name. */
const library = (name, title, packages = [name]) => ({
  ...{ title, protocol: name, patches: name },
  version: () => packages.map(ofPackage).join(', '),
  missing: () => packages.map(packageMissing).find((why) => why !== null) ?? null,
  start: (pin) => startNode(name, pin, [SERVERS, name])
});

/** The study's. */
export const contenders = {
  'sprites-poll': ofSprites('long poll', 'sprites-poll'),
  'sprites-poll-delta': ofSprites('long poll, deltas', 'sprites-poll-delta', 'sprites-poll-delta'),
  'sprites-stream': ofSprites('event stream', 'sprites-stream'),
  'sprites-stream-delta': ofSprites(
    'event stream, deltas',
    'sprites-stream-delta',
    'sprites-stream-delta'
  ),
  ws: library('ws', 'ws'),
  'socket.io': library('socket.io', 'Socket.IO'),
  'engine.io': library('engine.io', 'Engine.IO'),
  primus: library('primus', 'Primus over ws', ['primus', 'ws']),
  sockjs: library('sockjs', 'SockJS'),
  sse: { ...library('sse', 'node:http, event stream', []), version: nodeVersion },
  'nchan-stream': ofNchan('event stream', 'nchan-stream'),
  'nchan-ws': ofNchan('WebSocket', 'nchan-ws'),
  'nchan-poll': ofNchan('long poll', 'nchan-poll'),
  bun: {
    ...{ title: "Bun's server (uWebSockets)", protocol: 'ws', patches: 'ws' },
    version: () => `Bun ${versionIn(join(HERE, 'node_modules', 'bun'))}`,
    missing: () => packageMissing('bun'),
    start: (pin) => startPrinting('bun', pin, BUN, [SERVERS, 'bun'])
  }
};

/** What the load generator is measured with before the others, no contender; and the same by long poll. */
export const bare = inC('event stream', 'sprites-stream');
export const barePoll = inC('long poll', 'sprites-poll');

/** Those of npm run bench:feeds. */
export const feedContenders = {
  ...contenders,
  ...{ 'epoll-poll': barePoll, 'epoll-stream': bare },
  'sprites-poll-grant': {
    ...ofSprites('long poll of a private feed', 'sprites-poll-grant'),
    token: () => reads('bench', { publish: ['bench'], exp: inSeconds(3600) }),
    start: (pin) => startFeeds(pin, { private: 'bench' })
  }
};

/** Whether a contender is of this project, and whether it sends only what has changed. */
export const isOurs = (name) => name.startsWith('sprites');
export const isDelta = (name) => name.endsWith('-delta');
