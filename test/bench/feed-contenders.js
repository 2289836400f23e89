/**
 * Who is measured by npm run bench:feeds, by which protocol, and the load generator's program.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { buildWhenWanted, builtFile } from '../../lib/swarm/build.js';
import { nchanMissing, startBare, startNchan, startNode } from './contenders.js';
import { PROBED, spritesArgs } from './sprites.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const TRANSPORTS = join(HERE, 'transports');

/** The publisher's token of the server that is measured. */
export const TOKEN = 'bench-token-0123456789';

const WATCHERS = {
  name: "the watchers' load generator",
  home: 'test/bench/watchers',
  sources: ['native/flags.gypi', 'native/base', 'native/swarm', 'test/bench/watchers'],
  command: 'npm run bench:feeds'
};

/**
 * Builds the load generator, where it is older than its sources.
 *
 * @returns {string} its path
 */
export function buildWatchers() {
  buildWhenWanted(WATCHERS);
  return builtFile(WATCHERS, 'watchers');
}

/**
 * @param {string} name of a package that only a contender needs
 * @returns {string | null} why it can't be used here
 */
export const packageMissing = (name) =>
  existsSync(join(TRANSPORTS, 'node_modules', name))
    ? null
    : 'its package is not installed (npm install --prefix test/bench/transports)';

async function startSprites(pin, more = {}) {
  const folder = mkdtempSync(join(tmpdir(), 'bench-feeds-'));
  const tokens = join(folder, 'tokens');
  writeFileSync(tokens, `${TOKEN}\n`);
  const options = {
    'publish-token-file': tokens,
    'address-held': 0,
    'log-level': 'error',
    ...more
  };
  const server = await startNode('bin/sprites', pin, spritesArgs(options));
  return {
    ...server,
    async stop() {
      await server.stop();
      rmSync(folder, { recursive: true, force: true });
    }
  };
}

const never = () => null;

/**
 * The contenders, by name: `protocol` and `patches`, what the load generator speaks where documents
 * are published whole, and where what has changed in them is; `missing()` and `start(pin)` as in
 * contenders.js.
 */
export const feedContenders = {
  'epoll-poll': {
    title: 'bare epoll in C, long poll',
    protocol: 'sprites-poll',
    patches: 'sprites-poll',
    missing: never,
    start: (pin) => startBare('epoll-feed', pin)
  },
  'epoll-stream': {
    title: 'bare epoll in C, event stream',
    protocol: 'sprites-stream',
    patches: 'sprites-stream',
    missing: never,
    start: (pin) => startBare('epoll-feed', pin)
  },
  'sprites-poll': {
    title: 'Sprites, long poll',
    protocol: 'sprites-poll',
    patches: 'sprites-poll-delta',
    missing: never,
    start: startSprites
  },
  'sprites-stream': {
    title: 'Sprites, event stream',
    protocol: 'sprites-stream',
    patches: 'sprites-stream-delta',
    missing: never,
    start: startSprites
  },
  ws: {
    title: 'ws',
    protocol: 'ws',
    patches: 'ws',
    missing: () => packageMissing('ws'),
    start: (pin) => startNode('ws', pin, [...PROBED, join(TRANSPORTS, 'ws.js')])
  },
  sse: {
    title: 'node:http, event stream',
    protocol: 'sse',
    patches: 'sse',
    missing: never,
    start: (pin) => startNode('sse', pin, [...PROBED, join(HERE, 'contenders', 'sse.js')])
  },
  'nchan-stream': {
    title: 'nchan, event stream',
    protocol: 'nchan-stream',
    patches: 'nchan-stream',
    missing: nchanMissing,
    start: (pin) => startNchan(pin, 'nchan-feed.conf')
  },
  'nchan-ws': {
    title: 'nchan, WebSocket',
    protocol: 'nchan-ws',
    patches: 'nchan-ws',
    missing: nchanMissing,
    start: (pin) => startNchan(pin, 'nchan-feed.conf')
  },
  'nchan-poll': {
    title: 'nchan, long poll',
    protocol: 'nchan-poll',
    patches: 'nchan-poll',
    missing: nchanMissing,
    start: (pin) => startNchan(pin, 'nchan-feed.conf')
  }
};
