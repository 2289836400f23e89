/**
 * How late a sprite is, thrown by the clock:
 *
 *     node test/bench/late.js [--only sprites,epoll] [--rounds 5] [--seconds 10] [--clients 5000] [--rate 8000]
 *                             [--warmup 18] [--json] [--strict]
 *
 * Percentiles of the time from throw to arrival, of servers in turn, each with a core where there are two. Bare epoll
 * shows what of the last tenth of a percent is the machine's. In the first 15 seconds of a Node server's life V8 collects
 * its garbage three times, for 4 to 12 ms on one core: --warmup 0 shows them.
 *
 * Exit status: 0, or 1 where a sprite was lost or, with --strict, a figure does not hold; 2 on a wrong option.
 */
import { setTimeout as pause } from 'node:timers/promises';

import { canPin, contenders, during, namesIn, thoseHere } from './contenders.js';
import { inRounds, machineOf, markdown, printHeld, show, spreads, whereOf } from './figures.js';
import { Load } from './load.js';
import { answerHelp, refuseUsage, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The most milliseconds that 999 of 1,000 sprites may be on their way. */
const HELD = 5;

/** Connections that throw, and those that may be on their way at the same time. */
const LANES = 32;
const OPENING = 64;

const PERCENTILES = ['p50', 'p99', 'p99.9', 'max'];

const { only, json, strict, ...numbers } = takeValues(import.meta.url, {
  ...{ rounds: [5, 1, 100], seconds: [10, 1, 600], warmup: [18, 0, 600] },
  ...{ clients: [5000, 1, 20000], rate: [8000, 1, 1e6] },
  ...{ only: 'sprites,epoll', json: false, strict: false }
});
const pin = canPin();

/** @returns {Promise<Record<string, number>>} the percentiles, in milliseconds */
const measure = async (contender, { clients, rate, warmup, seconds }) =>
  during(await contender.start(pin), ({ port }) => {
    const part = { port, clients, lanes: LANES, throwing: 'rate', rate };
    return during(new Load([{ ...part, ramp: 1e6, 'in-flight': OPENING }], pin), async (load) => {
      await load.park();
      load.tell(`throw ${(warmup + seconds + 60) * 1000}`);
      await pause(warmup * 1000);
      load.tally.takeStage();
      await pause(seconds * 1000);
      const late = load.tally.takeStage();
      await load.finish();
      return late;
    });
  });

const { here } = thoseHere(
  namesIn(only, contenders, (why) => refuseUsage(import.meta.url, why)),
  contenders
);
const rounds = await inRounds(here, numbers.rounds, (name) => measure(contenders[name], numbers));

const figuresOf = (name) => spreads(rounds[name], PERCENTILES);
const p999 = rounds.sprites ? figuresOf('sprites')['p99.9'] : null;
const holds = p999 === null || p999.median <= HELD;
if (json) {
  console.log(JSON.stringify({ held: HELD, holds, machine: machineOf(pin), rounds }));
} else {
  const rows = here.map((name) => [
    contenders[name].title,
    ...Object.values(figuresOf(name)).map((one) => show(one, 2))
  ]);
  console.log(markdown([['server', ...PERCENTILES.map((one) => `${one}, ms`)], ...rows]));
  console.log(`\n${whereOf(pin)}`);
  if (p999)
    printHeld([{ figure: `p99.9 of sprites at most ${HELD} ms`, value: show(p999, 2), holds }]);
}
if (strict && !holds) process.exitCode = 1;
