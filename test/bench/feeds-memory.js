/**
 * What watching a feed costs in user space, beside what a connection costs:
 *
 *     node test/bench/feeds-memory.js [--watchers 18000] [--settle 5] [--strict]
 *
 * Resident size of one bin/sprites with so many connections that have asked for a feed once and are
 * open still; then, those closed, with as many that hold a long poll on it; then with as many event
 * streams of it. As many came and went before. Held to: 128 bytes more for one who watches.
 */
import process from 'node:process';
import { parseArgs } from 'node:util';

import { canPin, startLoad } from './contenders.js';
import { buildWatchers, feedContenders, TOKEN } from './feed-contenders.js';
import { memoryOf } from './server-memory.js';

/** Bytes that watching may cost. */
const HELD = 128;

/** Seconds: a connection that was served may be idle for so long and is there still. */
const IDLE_TIME = 3600;

const { values } = parseArgs({
  options: {
    watchers: { type: 'string', default: '18000' },
    settle: { type: 'string', default: '5' },
    strict: { type: 'boolean', default: false }
  }
});
const watchers = Number(values.watchers);
const settle = Number(values.settle);
const pin = canPin();
const program = buildWatchers();

/** Opens connections and leaves them be while `look` looks. */
async function withConnections(server, protocol, connections, look) {
  const options = { protocol, connections, bytes: 5000, token: TOKEN };
  const load = startLoad(server, pin, options, program);
  try {
    await load.next('open');
    return await look();
  } finally {
    await load.stop();
  }
}

const server = await feedContenders['sprites-poll'].start(pin, { 'idle-time': IDLE_TIME });
try {
  const look = () => memoryOf(server, { settle });
  // All tables have been as long as they get, and what V8 took to start is collected.
  await withConnections(server, 'sprites-poll', watchers, look);
  const kinds = {};
  for (const protocol of ['sprites-once', 'sprites-poll', 'sprites-stream']) {
    kinds[protocol] = await withConnections(server, protocol, watchers, look);
  }
  const connection = kinds['sprites-once'];
  for (const [protocol, name] of [
    ['sprites-poll', 'a long poll'],
    ['sprites-stream', 'an event stream']
  ]) {
    const more = (kinds[protocol].resident - connection.resident) / watchers;
    const heap = (kinds[protocol].heap - connection.heap) / watchers;
    console.log(
      `${name.padEnd(16)} ${more.toFixed(0).padStart(5)} bytes more than its connection; ` +
        `V8 heap ${heap.toFixed(1)} bytes`
    );
    if (more > HELD && values.strict) process.exitCode = 1;
  }
} finally {
  await server.stop();
}
