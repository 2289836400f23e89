import t from 'tap';

import { playUntilHeard } from '../support/feeds-history.js';
import { lengthOf } from '../support/long.js';
import { DOORS } from '../support/server.js';

/**
 * The JavaScript client through a random history; test/client/feeds-cpp.test.js has the C++ client as
 * well, and test/fuzz/feeds.js plays on for as long as one likes.
 */

t.setTimeout(300_000);

for (const door of DOORS) {
  t.test(`who watches has the newest value in the end, "${door}"`, (t) =>
    playUntilHeard(t, { door, steps: lengthOf({ short: 30, long: 60 }) })
  );
}
