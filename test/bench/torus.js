/**
 * The time of a join and of a leave, with ten thousand nodes and with a million: law 3 by the clock.
 *
 *     node test/bench/torus.js [rounds]
 *
 * Both tori have random churn around their size, in batches of joins or of leaves. The batches of the two alternate,
 * so that other work of the machine affects both. The table has the medians of the batches, without the cost of the
 * call from JavaScript. A remaining difference is due to memory: a million nodes exceed the CPU's caches.
 */
import { loadTestAddon } from '../support/addon.js';
import { Random } from '../fuzz/random.js';
import { answerHelp } from '../support/documents.js';
import { fine, spread, tableOf, whole } from './figures.js';

answerHelp(import.meta.url);

const { Torus } = loadTestAddon();

const SIZES = [10_000, 1_000_000];
const BATCH = 64;
const MAX_RATIO = 4;
const rounds = Number(process.argv[2] ?? 20_000);

class MeasuredTorus {
  constructor(size) {
    const capacity = Math.ceil(size * 1.2);
    this.size = size;
    this.random = new Random(size);
    this.torus = new Torus(capacity);
    this.free = this.#shuffled(capacity);
    this.nodes = [];
    this.times = { join: [], leave: [], call: [] };
    while (this.nodes.length < size) this.#join(this.#pickNodesToJoin());
    // Churns until the torus has the shape that churn gives it.
    for (let i = 0; i < size / BATCH; i++) this.#runBatch();
  }

  /** Times one batch of joins or leaves, chosen by the population, and one batch of contains(). */
  round() {
    const [kind, picks, elapsed] = this.#runBatch();
    this.times[kind].push(elapsed / BATCH);
    const { torus } = this;
    const start = process.hrtime.bigint();
    for (const node of picks) torus.contains(node);
    this.times.call.push(Number(process.hrtime.bigint() - start) / BATCH);
  }

  report() {
    const call = median(this.times.call);
    return { join: median(this.times.join) - call, leave: median(this.times.leave) - call, call };
  }

  #runBatch() {
    const isJoin = this.random.fraction() < this.size / (this.size + this.nodes.length);
    // The nodes are picked before the clock starts.
    const picks = isJoin ? this.#pickNodesToJoin() : this.#pickNodesToLeave();
    const elapsed = isJoin ? this.#join(picks) : this.#leave(picks);
    return [isJoin ? 'join' : 'leave', picks, elapsed];
  }

  #pickNodesToJoin() {
    return this.free.splice(-BATCH);
  }

  #pickNodesToLeave() {
    return Array.from({ length: BATCH }, () => {
      const index = this.random.below(this.nodes.length);
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
      const j = this.random.below(i + 1);
      [list[i], list[j]] = [list[j], list[i]];
    }
    return list;
  }
}

const median = (list) => spread(list).median;

const subjects = SIZES.map((size) => new MeasuredTorus(size));
for (let i = 0; i < rounds; i++) {
  for (const subject of subjects) subject.round();
}

const reports = subjects.map((subject) => subject.report());
const [small, large] = reports;
const ratios = { join: large.join / small.join, leave: large.leave / small.leave };
const ns = (time) => `${whole.format(time)} ns`;
const titles = { join: 'join', leave: 'leave', call: 'the call, not in these' };
const columns = {
  what: (name) => titles[name],
  [`at ${whole.format(SIZES[0])} nodes`]: (name) => ns(small[name]),
  [`at ${whole.format(SIZES[1])}`]: (name) => ns(large[name]),
  ratio: (name) => (name in ratios ? fine.format(ratios[name]) : '-')
};
console.log(tableOf(columns, Object.keys(titles)));

const ratio = Math.max(...Object.values(ratios));
if (ratio > MAX_RATIO) {
  console.error(`a ratio of ${fine.format(ratio)}, and at most ${MAX_RATIO} is allowed`);
  process.exitCode = 1;
}
