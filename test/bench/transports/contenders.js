/**
 * The contenders that push one document to many, by name. `protocol` is the protocol of the load generator;
 * `missing()` and `start(pin)` are as in ../contenders.js; `token` returns the publisher's token if it is not TOKEN.
 * The servers of libraries are in servers.js.
 */
import { existsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { inSeconds, KEY_SET, reads } from '../../support/grants.js';
import { atExit, temporary } from '../../support/processes.js';
import {
  nchanMissing,
  startBare,
  startNchan,
  startNode,
  startPrinting,
  startSprites,
  TOKEN
} from '../contenders.js';

const THIS_FOLDER = fileURLToPath(new URL('.', import.meta.url));
const SERVERS = join(THIS_FOLDER, 'servers.js');
const BUN = join(THIS_FOLDER, 'node_modules', '.bin', 'bun');

/** @returns {string | null} why a contender's package can't be used here; null: it can */
const packageMissing = (name) =>
  existsSync(join(THIS_FOLDER, 'node_modules', name))
    ? null
    : 'its package is not installed (npm install --prefix test/bench/transports)';

/** Share of a document that changes with each version in the study; only deltas benefit from it. */
export const CHANGING_SHARE = 0.05;

function startFeeds(pin, extraOptions = {}) {
  const folder = temporary(atExit);
  const [tokens, keys] = [join(folder, 'tokens'), join(folder, 'keys.json')];
  writeFileSync(tokens, `${TOKEN}\n`);
  writeFileSync(keys, JSON.stringify(KEY_SET));
  const options = { 'publish-token-file': tokens, 'address-held': 0, 'log-level': 'error' };
  const grants = extraOptions.private ? { grants: keys } : {};
  return startSprites({ ...options, ...grants, ...extraOptions }, { pin });
}

const notMissing = () => null;

const bareContender = (way, protocol) => ({
  ...{ title: `bare epoll in C, ${way}`, protocol, missing: notMissing },
  start: (pin) => startBare('epoll-feed', pin)
});

const spritesContender = (way, protocol) => ({
  ...{ title: `Sprites, ${way}`, protocol, missing: notMissing, start: startFeeds }
});

const nchanContender = (way, protocol) => ({
  ...{ title: `nchan, ${way}`, protocol, missing: nchanMissing, start: startNchan }
});

/** One on node:http, whose package has its name. */
const libraryContender = (name, title, packages = [name]) => ({
  ...{ title, protocol: name },
  missing: () => packages.map(packageMissing).find((why) => why !== null) ?? null,
  start: (pin) => startNode(name, pin, [SERVERS, name])
});

/** The contenders of the study. */
export const contenders = {
  'sprites-poll': spritesContender('long poll', 'sprites-poll'),
  'sprites-poll-delta': spritesContender('long poll, deltas', 'sprites-poll-delta'),
  'sprites-stream': spritesContender('event stream', 'sprites-stream'),
  'sprites-stream-delta': spritesContender('event stream, deltas', 'sprites-stream-delta'),
  ws: libraryContender('ws', 'ws'),
  'socket.io': libraryContender('socket.io', 'Socket.IO'),
  'engine.io': libraryContender('engine.io', 'Engine.IO'),
  primus: libraryContender('primus', 'Primus over ws', ['primus', 'ws']),
  sockjs: libraryContender('sockjs', 'SockJS'),
  sse: libraryContender('sse', 'node:http, event stream', []),
  'nchan-stream': nchanContender('event stream', 'nchan-stream'),
  'nchan-ws': nchanContender('WebSocket', 'nchan-ws'),
  'nchan-poll': nchanContender('long poll', 'nchan-poll'),
  bun: {
    ...{ title: "Bun's server (uWebSockets)", protocol: 'ws' },
    missing: () => packageMissing('bun'),
    start: (pin) => startPrinting('bun', pin, BUN, [SERVERS, 'bun'])
  }
};

/** All contenders: those of the study, the limit in C, and a private feed. */
export const feedContenders = {
  ...contenders,
  'epoll-poll': bareContender('long poll', 'sprites-poll'),
  'epoll-stream': bareContender('event stream', 'sprites-stream'),
  'sprites-poll-grant': {
    ...spritesContender('long poll of a private feed', 'sprites-poll-grant'),
    token: () => reads('bench', { publish: ['bench'], exp: inSeconds(3600) }),
    start: (pin) => startFeeds(pin, { private: 'bench' })
  }
};
