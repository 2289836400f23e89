import t from 'tap';

import { Random, freshSeed } from '../fuzz/random.js';
import { playHistory } from '../support/feeds-history.js';
import { DOORS } from '../support/server.js';

/**
 * The JavaScript client through a random history; test/client/feeds-cpp.test.js has the C++ client as
 * well, and test/fuzz/feeds.js plays on for as long as one likes.
 */

t.setTimeout(300_000);

for (const door of DOORS) {
  t.test(`who watches has the newest value in the end, "${door}"`, async (t) => {
    const seed = Number(process.env.SEED ?? freshSeed());
    t.comment(`seed ${seed}`);
    const { faults, told, patched } = await playHistory(t, {
      random: new Random(seed),
      door,
      steps: 60
    });
    t.comment(JSON.stringify({ faults, told, patched }));
    t.ok(told > 20 && patched > 0, 'there was something to hear, and patches');
  });
}
