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
import { canPin, contenders, during, namesIn, thoseHere } from './contenders.js';
import { fine, inRounds, judged, report, show, spreads, tableOf, whereOf } from './figures.js';
import { byClock, withLoad } from './load.js';
import { answerHelp, takeValues } from '../support/documents.js';

answerHelp(import.meta.url);

/** The most milliseconds that 999 of 1,000 sprites may be on their way. */
const HELD = 5;

const PERCENTILES = ['p50', 'p99', 'p99.9', 'max'];

const { only, json, strict, ...numbers } = takeValues(import.meta.url, {
  ...{ rounds: [5, 1, 100], seconds: [10, 1, 600], warmup: [18, 0, 600] },
  ...{ clients: [5000, 1, 20000], rate: [8000, 1, 1e6] },
  ...{ only: 'sprites,epoll', json: false, strict: false }
});
const pin = canPin();

/** @returns {Promise<Record<string, number>>} the percentiles, in milliseconds */
const measure = async (contender, { clients, rate, ...how }) =>
  during(await contender.start(pin), (server) =>
    withLoad([byClock({ port: server.port, clients, rate })], pin, async (load) => {
      return (await load.throwAll(server, how)).late;
    })
  );

const { here } = thoseHere(namesIn(only, contenders, import.meta.url), contenders);
const rounds = await inRounds(here, numbers.rounds, (name) => measure(contenders[name], numbers));

const rows = here.map((name) => ({ name, ...spreads(rounds[name], PERCENTILES) }));
const p999 = rows.find(({ name }) => name === 'sprites')?.['p99.9'];
const percentiles = PERCENTILES.map((one) => [`${one}, ms`, (row) => show(row[one], fine)]);
report(
  { json, strict },
  {
    table: tableOf(
      { server: ({ name }) => contenders[name].title, ...Object.fromEntries(percentiles) },
      rows
    ),
    about: whereOf(pin),
    held: judged([
      [`p99.9 of sprites at most ${HELD} ms`, p999?.median, fine.format, p999?.median <= HELD]
    ]),
    rounds
  }
);
