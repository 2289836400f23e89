/**
 * What a join and a leave cost, at ten thousand nodes and at a million: law 3 by the clock.
 *
 *     node test/bench/torus.js [rounds]
 *
 * Both tori are churned at random around their size, in batches of joins or of leaves; the batches
 * of the two are interleaved, so that whatever else the machine does meets both. Printed are
 * medians over the batches, less what the call from JavaScript costs. What remains of a difference
 * is the memory's: a million nodes fit no cache.
 */
import { loadTestAddon } from '../support/addon.js';
import { law5Share } from '../model/torus.js';
import { seeded } from '../support/torus-rig.js';
import { answerHelp } from '../support/documents.js';
import { spread } from './figures.js';

answerHelp(import.meta.url);

const { Torus } = loadTestAddon();

const SIZES = [10_000, 1_000_000];
const BATCH = 64;
const ALLOWED_RATIO = 4;
const rounds = Number(process.argv[2] ?? 20_000);

class Subject {
  constructor(size) {
    const capacity = Math.ceil(size * 1.2);
    this.size = size;
    this.random = seeded(size);
    this.torus = new Torus(capacity);
    this.free = this.#shuffled(capacity);
    this.nodes = [];
    this.times = { join: [], leave: [], call: [] };
    while (this.nodes.length < size) this.#join(this.#picksToJoin());
    // From here on it is churn: let the torus get to look like it.
    for (let i = 0; i < size / BATCH; i++) this.#step();
    this.before = this.torus.touches();
  }

  /** One batch of each kind of call is timed; joins or leaves by the pull of the population. */
  round() {
    const [kind, picks, elapsed] = this.#step();
    this.times[kind].push(elapsed / BATCH);
    const { torus } = this;
    const start = process.hrtime.bigint();
    for (const node of picks) torus.contains(node);
    this.times.call.push(Number(process.hrtime.bigint() - start) / BATCH);
  }

  report() {
    const call = median(this.times.call);
    const { steps, total } = this.torus.touches();
    const links = new Uint32Array(4 * Math.ceil(this.size * 1.2));
    this.torus.links(links);
    return {
      join: median(this.times.join) - call,
      leave: median(this.times.leave) - call,
      call,
      touched: (total - this.before.total) / (steps - this.before.steps),
      law5: law5Share(links, this.nodes)
    };
  }

  #step() {
    const joins = this.random() < this.size / (this.size + this.nodes.length);
    // The node is drawn before the clock starts.
    const picks = joins ? this.#picksToJoin() : this.#picksToLeave();
    const elapsed = joins ? this.#join(picks) : this.#leave(picks);
    return [joins ? 'join' : 'leave', picks, elapsed];
  }

  #picksToJoin() {
    return this.free.splice(-BATCH);
  }

  #picksToLeave() {
    return Array.from({ length: BATCH }, () => {
      const index = Math.floor(this.random() * this.nodes.length);
      const node = this.nodes[index];
      this.nodes[index] = this.nodes.at(-1);
      this.nodes.pop();
      return node;
    });
  }

  #join(picks) {
    const { torus } = this;
    const start = process.hrtime.bigint();
    for (const node of picks) torus.join(node);
    const elapsed = Number(process.hrtime.bigint() - start);
    this.nodes.push(...picks);
    return elapsed;
  }

  #leave(picks) {
    const { torus } = this;
    const start = process.hrtime.bigint();
    for (const node of picks) torus.leave(node);
    const elapsed = Number(process.hrtime.bigint() - start);
    this.free.push(...picks);
    return elapsed;
  }

  #shuffled(count) {
    const list = Array.from({ length: count }, (_, i) => i);
    for (let i = count - 1; i > 0; i--) {
      const j = Math.floor(this.random() * (i + 1));
      [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
  }
}

const median = (list) => spread(list).median;

const subjects = SIZES.map((size) => new Subject(size));
for (let i = 0; i < rounds; i++) {
  for (const subject of subjects) subject.round();
}

const reports = subjects.map((subject) => subject.report());
const row = (name, ...cells) => {
  console.log(name.padEnd(26) + cells.map((cell) => cell.padStart(12)).join(''));
};
const ns = (time) => `${time.toFixed(0)} ns`;
const [small, large] = reports;
row('', ...SIZES.map((size) => `${size}`), 'ratio');
row('join', ns(small.join), ns(large.join), (large.join / small.join).toFixed(2));
row('leave', ns(small.leave), ns(large.leave), (large.leave / small.leave).toFixed(2));
row('the call, not in the above', ns(small.call), ns(large.call));
row('touched, mean', small.touched.toFixed(3), large.touched.toFixed(3));
row('law 5, share', small.law5.toFixed(4), large.law5.toFixed(4));

const ratio = Math.max(large.join / small.join, large.leave / small.leave);
if (ratio > ALLOWED_RATIO) {
  console.error(`a ratio of ${ratio.toFixed(2)}, and at most ${ALLOWED_RATIO} is allowed`);
  process.exitCode = 1;
}
