/**
 * What watching a feed costs in user space, beside what a connection costs:
 *
 *     node test/bench/feeds-memory.js [--watchers 18000] [--only poll|stream] [--settle 5]
 *                                       [--strict]
 *
 * It measures the resident size of bin/sprites twice: with connections that have asked for a feed once
 * and are still open, and, after those are closed, with as many that hold a long poll on it. A second
 * process does the same with event streams. Before, as many connections came and went. Held to: 128
 * bytes for watching.
 *
 * Where the file limit is low, under a kernel of its own (test/bench/own-kernel), whose times mean
 * little:
 *
 *     test/bench/own-kernel --memory 8G node test/bench/feeds-memory.js --watchers 200000 --only poll
 */
import process from 'node:process';
import { parseArgs } from 'node:util';

import { canPin, startLoad } from './contenders.js';
import { buildWatchers, feedContenders, TOKEN } from './feed-contenders.js';
import { memoryOf } from './server-memory.js';
import { answerHelp } from '../support/opening-comment.js';

answerHelp(import.meta.url);

/** Bytes that watching may cost. */
const HELD = 128;

/** Connections from one source address, which has some 28,000 ports. */
const ADDRESS_CONNECTIONS = 20000;

/** Seconds that a connection has for everything: it is there still. */
const TIME = 3600;

const { values } = parseArgs({
  options: {
    watchers: { type: 'string', default: '18000' },
    only: { type: 'string', default: '' },
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
  const addresses = Math.ceil(connections / ADDRESS_CONNECTIONS);
  const options = { protocol, connections, addresses, bytes: 500, token: TOKEN };
  const load = startLoad(server, pin, options, program);
  try {
    await load.next('open');
    return await look();
  } finally {
    await load.stop();
  }
}

/** What one who watches by `protocol` costs more than his connection, in a server of its own. */
async function measure(protocol) {
  // A kernel of its own is slow: nobody is too late.
  const names = ['idle-time', 'head-time', 'body-time', 'write-time'];
  const times = Object.fromEntries(names.map((name) => [name, TIME]));
  const server = await feedContenders['sprites-poll'].start(pin, times);
  try {
    const look = () => memoryOf(server, { settle });
    // What V8 took to start is collected, and the table of connections is as long as it gets.
    await withConnections(server, 'sprites-once', watchers, look);
    const connected = await withConnections(server, 'sprites-once', watchers, look);
    const watching = await withConnections(server, protocol, watchers, look);
    return {
      resident: (watching.resident - connected.resident) / watchers,
      heap: (watching.heap - connected.heap) / watchers
    };
  } finally {
    await server.stop();
  }
}

for (const [protocol, name] of [
  ['sprites-poll', 'a long poll'],
  ['sprites-stream', 'an event stream']
].filter(([protocol]) => protocol.endsWith(values.only))) {
  const { resident, heap } = await measure(protocol);
  console.log(
    `${name.padEnd(16)} ${resident.toFixed(0).padStart(5)} bytes more than its connection; ` +
      `V8 heap ${heap.toFixed(1)} bytes`
  );
  if (resident > HELD && values.strict) process.exitCode = 1;
}
