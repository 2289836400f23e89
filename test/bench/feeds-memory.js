/**
 * What watching a feed costs in user space, beside what a connection costs, and the longest turn of the event loop
 * while every watcher gets a document:
 *
 *     node test/bench/feeds-memory.js [--watchers 18000] [--only poll,stream] [--settle 5]
 *                                       [--strict]
 *
 * It measures the resident size of bin/sprites twice: with connections that have asked for a feed once
 * and are still open, and when the same connections hold a long poll on it. A second process does the
 * same with event streams. Watching may cost at most 128 bytes a watcher. Then one document is published.
 *
 * Where the file limit is low, under a kernel of its own (test/bench/own-kernel), whose times mean
 * little:
 *
 *     test/bench/own-kernel --memory 14G node test/bench/feeds-memory.js --watchers 1000000 --only poll
 */
import process from 'node:process';

import { canPin, during, namesIn, startLoad, TOKEN } from './contenders.js';
import { feedContenders } from './transports/contenders.js';
import { ask, memoryOf } from './usage.js';
import { answerHelp, takeValues } from '../support/documents.js';
import { until } from '../support/until.js';

answerHelp(import.meta.url);

/** The most bytes that a watcher may cost. */
const HELD = 128;

/** Connections from one source address, which has some 28,000 ports. */
const ADDRESS_CONNECTIONS = 20000;

/** Bytes of the document that is published. */
const DOCUMENT = 500;

/** Time limits of a connection, in seconds: none is closed while it is measured. */
const TIME = 3600;

const WAYS = { poll: 'a long poll', stream: 'an event stream' };

const { watchers, settle, only, strict } = takeValues(import.meta.url, {
  ...{ watchers: [18000, 1], settle: [5], only: 'poll,stream', strict: false }
});
const ways = namesIn(only, WAYS, import.meta.url);
const pin = canPin();

/**
 * Publishes a document.
 *
 * @returns {Promise<object>} the server's longest turn until every watcher has been answered, by the clock and by
 *     CPU, in milliseconds, and the seconds until then
 */
async function publish(server) {
  const answered = async () => (await server.status().catch(() => null))?.documents ?? 0;
  const before = await answered();
  await ask(server);
  const began = Date.now();
  const response = await fetch(`http://127.0.0.1:${server.port}/feed/bench`, {
    method: 'PUT',
    headers: { authorization: `Bearer ${TOKEN}` },
    body: JSON.stringify({ text: 'x'.repeat(DOCUMENT) })
  });
  if (!response.ok) throw new Error(await response.text());
  await until(async () => (await answered()) >= before + watchers, 'documents', TIME);
  const { longestStall, longestWork } = await ask(server);
  return { longestStall, longestWork, seconds: (Date.now() - began) / 1000 };
}

/** Bytes that a watcher by `protocol` costs beyond its connection, in a server of its own. */
async function measure(protocol) {
  // Under a kernel of its own everything is slow: no time limit may end a connection. By `hold` the kernel knows
  // after how long it may probe one: half a million probes at once took that kernel longer than they may.
  const names = ['hold', 'idle-time', 'head-time', 'body-time', 'write-time'];
  const times = Object.fromEntries(names.map((name) => [name, TIME]));
  const work = {
    ...{ protocol: 'sprites-once', then: protocol, connections: watchers, bytes: DOCUMENT },
    ...{ addresses: Math.ceil(watchers / ADDRESS_CONNECTIONS), token: TOKEN }
  };
  return during(await feedContenders['sprites-poll'].start(pin, times), (server) =>
    during(startLoad(server, pin, work), async (load) => {
      await load.next('open');
      const connected = await memoryOf(server, { settle });
      load.child.stdin.write('ask\n');
      await load.next('asked');
      const watching = await memoryOf(server, { settle });
      return {
        resident: (watching.resident - connected.resident) / watchers,
        connected: connected.resident,
        heap: (watching.heap - connected.heap) / watchers,
        turn: await publish(server)
      };
    })
  );
}

for (const way of ways) {
  const { resident, connected, heap, turn } = await measure(`sprites-${way}`);
  console.log(
    `${WAYS[way].padEnd(16)} ${resident.toFixed(0).padStart(5)} bytes more than its connection; ` +
      `V8 heap ${heap.toFixed(1)} bytes; ${watchers} connections: ${(connected / 1e6).toFixed(1)} MB\n` +
      `${'a document to all'.padEnd(16)} in ${turn.seconds.toFixed(1)} s: longest turn ` +
      `${turn.longestStall.toFixed(1)} ms, ${turn.longestWork.toFixed(1)} ms of CPU`
  );
  if (resident > HELD && strict) process.exitCode = 1;
}
