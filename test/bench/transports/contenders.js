/**
 * The contenders of the study, by name: `protocol` is what the load generator speaks to it; `missing()` says why one can't
 * run here, or null; `start(pin)` starts it; `version()` is of what was installed. The servers of libraries are in servers.js.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { feedContenders, packageMissing, startLibrary, startPrinting } from '../contenders.js';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const BUN = join(HERE, 'node_modules', '.bin', 'bun');

const versionIn = (folder) => JSON.parse(readFileSync(join(folder, 'package.json'))).version;
const ofPackage = (name) => `${name} ${versionIn(join(HERE, 'node_modules', name))}`;
const ofSprites = () => `Sprites ${versionIn(join(HERE, '..', '..', '..'))}`;
const ofNode = () => `Node ${process.version}`;

/** nginx says its version, and Debian that of the module. */
function ofNchan() {
  const run = (command) => execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trim();
  const nginx = run('PATH=$PATH:/usr/sbin:/sbin nginx -v 2>&1').replace('nginx version: ', '');
  const module = run(
    "dpkg-query -W -f '${Version}' libnginx-mod-nchan 2>/dev/null || echo unknown"
  );
  return `nchan ${module}, ${nginx}`;
}

/** A contender on node:http, whose package has its name. */
const library = (name, title, packages = [name]) => ({
  title,
  protocol: name,
  version: () => packages.map(ofPackage).join(', '),
  missing: () => packages.map(packageMissing).find((why) => why !== null) ?? null,
  start: (pin) => startLibrary(name, pin)
});

/** A contender of npm run bench:feeds. */
const known = (name, version, more = {}) => ({ ...feedContenders[name], version, ...more });

export const contenders = {
  'sprites-poll': known('sprites-poll', ofSprites),
  'sprites-poll-delta': known('sprites-poll', ofSprites, {
    title: 'Sprites, long poll, deltas',
    protocol: 'sprites-poll-delta'
  }),
  'sprites-stream': known('sprites-stream', ofSprites),
  'sprites-stream-delta': known('sprites-stream', ofSprites, {
    title: 'Sprites, event stream, deltas',
    protocol: 'sprites-stream-delta'
  }),
  ws: library('ws', 'ws'),
  'socket.io': library('socket.io', 'Socket.IO'),
  'engine.io': library('engine.io', 'Engine.IO'),
  primus: library('primus', 'Primus over ws', ['primus', 'ws']),
  sockjs: library('sockjs', 'SockJS'),
  sse: known('sse', ofNode),
  'nchan-stream': known('nchan-stream', ofNchan),
  'nchan-ws': known('nchan-ws', ofNchan),
  'nchan-poll': known('nchan-poll', ofNchan),
  bun: {
    title: "Bun's server (uWebSockets)",
    protocol: 'ws',
    version: () => `Bun ${versionIn(join(HERE, 'node_modules', 'bun'))}`,
    missing: () => packageMissing('bun'),
    start: (pin) => startPrinting('bun', pin, BUN, [join(HERE, 'servers.js'), 'bun'])
  }
};

/** What the load generator is measured with before the others, no contender; and the same by long poll. */
export const bare = feedContenders['epoll-stream'];
export const barePoll = feedContenders['epoll-poll'];

/** Whether a contender is of this project, and whether it sends only what has changed. */
export const isOurs = (name) => name.startsWith('sprites');
export const isDelta = (name) => name.endsWith('-delta');
