/**
 * Measures the user-space memory of watching a feed, beyond the memory of the connection:
 *
 *     node test/bench/feeds-memory.js [--watchers 18000] [--only poll,stream] [--settle 5]
 *                                       [--strict]
 *
 * It measures the resident size of bin/sprites twice: with open connections that have requested a feed once, and when
 * the same connections hold a long poll on the feed. A second process does the same with event streams. Watching may
 * cost at most 128 bytes a watcher.
 *
 * With a low file limit it runs in a kernel of its own (test/bench/own-kernel), whose times mean little:
 *
 *     test/bench/own-kernel --memory 14G node test/bench/feeds-memory.js --watchers 1000000 --only poll
 */

import { canPin, withStarted, parseNames, startLoad, TOKEN } from './contenders.js';
import { knownVerdicts, report, tableOf, tenth, describeMachine, whole } from './figures.js';
import { feedContenders } from './transports/contenders.js';
import { memoryOf } from './usage.js';
import { answerHelp, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** Most memory of a watcher, in bytes. */
const MAX_BYTES = 128;

/** Connections from one source address, which has some 28,000 ports. */
const ADDRESS_CONNECTIONS = 20000;

/** Length of the document, in bytes. */
const DOCUMENT_BYTES = 500;

/** Time limits of a connection, in seconds: none is closed while it is measured. */
const TIME_LIMIT = 3600;

const WAY_TITLES = { poll: 'a long poll', stream: 'an event stream' };

const { watchers, settle, only, strict } = takeValues(import.meta.url, {
  ...{ watchers: [18000, 1], settle: [5], only: 'poll,stream', strict: false }
});
const ways = parseNames(only, WAY_TITLES, import.meta.url);
const pin = canPin();

/** Measures, in a new server, the bytes of a watcher by `protocol` beyond its connection. */
async function measure(protocol) {
  // In a kernel of its own everything is slow, and no timeout may end a connection. `hold` also sets when the kernel
  // probes connections: half a million probes at once took that kernel longer than their timeout.
  const names = ['hold', 'idle-time', 'head-time', 'body-time', 'write-time'];
  const times = Object.fromEntries(names.map((name) => [name, TIME_LIMIT]));
  const work = {
    ...{ protocol: 'sprites-once', then: protocol, connections: watchers, bytes: DOCUMENT_BYTES },
    ...{ addresses: Math.ceil(watchers / ADDRESS_CONNECTIONS), token: TOKEN }
  };
  return withStarted(await feedContenders['sprites-poll'].start(pin, times), (server) =>
    withStarted(startLoad(server, pin, work), async (load) => {
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
  watching: ({ way }) => WAY_TITLES[way],
  'bytes more than its connection': ({ resident }) => whole.format(resident),
  'bytes of V8 heap': ({ heap }) => tenth.format(heap),
  'resident size of the connections': ({ connected }) => `${tenth.format(connected / 1e6)} MB`
};

const rows = [];
for (const way of ways) rows.push({ way, ...(await measure(`sprites-${way}`)) });
const verdictRows = rows.map(({ way, resident }) => [
  `${WAY_TITLES[way]}: at most ${MAX_BYTES} bytes`,
  ...[resident, whole.format, resident <= MAX_BYTES]
]);
report(
  { strict },
  {
    table: tableOf(COLUMNS, rows),
    about: `${whole.format(watchers)} watchers; ${describeMachine(pin)}`,
    held: knownVerdicts(verdictRows)
  }
);
