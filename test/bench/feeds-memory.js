/**
 * What watching a feed costs in user space, beside what a connection costs:
 *
 *     node test/bench/feeds-memory.js [--watchers 18000] [--only poll,stream] [--settle 5]
 *                                       [--strict]
 *
 * It measures the resident size of bin/sprites twice: with connections that have asked for a feed once
 * and are still open, and when the same connections hold a long poll on it. A second process does the
 * same with event streams. Watching may cost at most 128 bytes a watcher.
 *
 * Where the file limit is low, under a kernel of its own (test/bench/own-kernel), whose times mean
 * little:
 *
 *     test/bench/own-kernel --memory 14G node test/bench/feeds-memory.js --watchers 1000000 --only poll
 */

import { canPin, during, namesIn, startLoad, TOKEN } from './contenders.js';
import { judged, report, tableOf, tenth, whereOf, whole } from './figures.js';
import { feedContenders } from './transports/contenders.js';
import { memoryOf } from './usage.js';
import { answerHelp, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The most bytes that a watcher may cost. */
const HELD = 128;

/** Connections from one source address, which has some 28,000 ports. */
const ADDRESS_CONNECTIONS = 20000;

/** Bytes of the document. */
const DOCUMENT = 500;

/** Time limits of a connection, in seconds: none is closed while it is measured. */
const TIME = 3600;

const WAYS = { poll: 'a long poll', stream: 'an event stream' };

const { watchers, settle, only, strict } = takeValues(import.meta.url, {
  ...{ watchers: [18000, 1], settle: [5], only: 'poll,stream', strict: false }
});
const ways = namesIn(only, WAYS, import.meta.url);
const pin = canPin();

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
        heap: (watching.heap - connected.heap) / watchers
      };
    })
  );
}

const COLUMNS = {
  watching: ({ way }) => WAYS[way],
  'bytes more than its connection': ({ resident }) => whole.format(resident),
  'bytes of V8 heap': ({ heap }) => tenth.format(heap),
  'resident size of the connections': ({ connected }) => `${tenth.format(connected / 1e6)} MB`
};

const rows = [];
for (const way of ways) rows.push({ way, ...(await measure(`sprites-${way}`)) });
const held = rows.map(({ way, resident }) => [
  `${WAYS[way]}: at most ${HELD} bytes`,
  ...[resident, whole.format, resident <= HELD]
]);
report(
  { strict },
  {
    table: tableOf(COLUMNS, rows),
    about: `${whole.format(watchers)} watchers; ${whereOf(pin)}`,
    held: judged(held)
  }
);
