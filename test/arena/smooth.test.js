import t from 'tap';

import { between, Smooth } from '../../lib/arena/pages/smooth.js';

/** What the field draws between two versions. */

const INTERVAL = 50;

/** What is drawn at a moment, as a number. */
function drawn(smooth, now) {
  const seen = smooth.at(now);
  return seen && between(seen.from, seen.to, seen.share);
}

t.test('a movement is even, though versions come unevenly', async (t) => {
  const smooth = new Smooth();
  t.equal(smooth.at(0), null);
  const late = [0, 30, 5, 22, 0, 12, 34, 2];
  const arrivals = Array.from({ length: 60 }, (_, i) => i * INTERVAL + 1000 + late[i % 8]);
  let shown = null;
  const steps = [];
  for (let now = 1000, next = 0; now < 3900; now += 16) {
    for (; arrivals[next] <= now; next += 1) {
      smooth.push(next * INTERVAL, next * INTERVAL, arrivals[next], INTERVAL);
    }
    const at = drawn(smooth, now);
    if (shown !== null && now > 1300) steps.push(at - shown);
    shown = at;
  }
  t.ok(Math.min(...steps) > 10, `${Math.min(...steps)} of 16`);
  t.ok(Math.max(...steps) < 22, `${Math.max(...steps)} of 16`);
});

t.test('after a standstill it begins to move, and does not creep', async (t) => {
  const smooth = new Smooth();
  smooth.push(0, 10, 100, INTERVAL);
  smooth.push(50, 10, 150, INTERVAL);
  t.equal(drawn(smooth, 5000), 10);
  smooth.push(5000, 20, 5100, INTERVAL);
  t.equal(drawn(smooth, 5100), 10);
  t.ok(drawn(smooth, 5150) > 10);
  t.equal(drawn(smooth, 5200), 20);
  t.equal(drawn(smooth, 9000), 20, 'and stays at the newest');
});

t.test('another round begins anew, with no way between', async (t) => {
  const smooth = new Smooth();
  smooth.push(9000, 1, 9100, INTERVAL);
  smooth.push(9050, 2, 9150, INTERVAL);
  smooth.push(10, 7, 9200, INTERVAL);
  t.equal(drawn(smooth, 9200), 7);
});
