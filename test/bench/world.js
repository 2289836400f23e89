/**
 * Simulates a world of 3 to 1,000 servers with a million clients each, without sockets and in virtual time. Ring and
 * membership are the server's own (lib/world).
 *
 *     npm run simulate:world -- [options]
 *
 *     --most N      the largest ring (1000); a ring of 1000 takes some three minutes, one of 300 half a minute
 *     --throws N    sprites thrown a second at each server (10000)
 *     --lease S     seconds that a server's lease holds (10)
 *     --rounds N    histories of each kind of loss, of which the longest is printed (3); one for a ring of 1000
 *     --seed N      seed of the random numbers (1)
 */
import { Random } from '../fuzz/random.js';
import { answerHelp, takeValues } from '../support/documents.js';
import { healingOf, messages, shareThatCrosses } from '../support/world-virtual.js';

answerHelp(import.meta.url);

const CLIENTS = 1_000_000;
const RINGS = [3, 10, 30, 100, 300, 1000];

/** Larger rings have one history of each kind. */
const MAX_SERVERS_OF_MANY_ROUNDS = 300;

const { most, throws, lease, rounds, seed } = takeValues(import.meta.url, {
  ...{ most: [1000, 1], throws: [10000, 1], lease: [10, 1], rounds: [3, 1], seed: [1, 1] }
});
const printRow = (...cells) => process.stdout.write(`| ${cells.join(' | ')} |\n`);
const whole = (number) => Math.round(number).toLocaleString('en-US');

function printHeading(title, ...cells) {
  process.stdout.write(`\n${title}\n\n`);
  printRow(...cells);
  printRow(...cells.map(() => '---'));
}

/** Returns the longest of several histories, and the number of late writes in all of them. */
async function longestHealing(loss) {
  let healed = 0;
  let conflicts = 0;
  for (let round = 0; round < (loss.servers > MAX_SERVERS_OF_MANY_ROUNDS ? 1 : rounds); round++) {
    const random = new Random(seed + 1000 * round + loss.servers);
    const history = await healingOf({ ...loss, random, lease: lease * 1000 });
    healed = Math.max(healed, history.healed);
    conflicts += history.conflicts;
  }
  return { seconds: (healed / 1000).toFixed(2), conflicts };
}

printHeading(
  `Messages: ${whole(CLIENTS)} clients and ${whole(throws)} throws/s a server, a lease of ${lease} s; one throw in ${whole(1 / shareThatCrosses(CLIENTS))} crosses`,
  ...['servers', 'sprites that cross, a second', 'messages/s for them, in and out'],
  ...['for membership', 'MB/s of that', 'renewals/s each server reads']
);
for (const servers of RINGS) {
  const { crossing, sprites, members, bytes } = messages({
    ...{ servers, clients: CLIENTS, throws, lease }
  });
  const renewals = (servers * 4) / lease;
  printRow(
    servers,
    ...[crossing, sprites, members].map(whole),
    (bytes / 1e6).toFixed(1),
    whole(renewals)
  );
}

printHeading(
  `Healing: seconds until every server that is left has the new ring, the longest of ${rounds}; a lease of ${lease} s`,
  ...[
    'servers',
    'one lost',
    'a third, anywhere',
    'a third, side by side',
    'writes that came too late'
  ]
);
for (const servers of RINGS.filter((size) => size <= most)) {
  const third = Math.floor(servers / 3);
  const kinds = [{ losses: 1 }, { losses: third }, { losses: third, neighbors: true }];
  const cells = [];
  let lateWrites = 0;
  for (const kind of kinds) {
    const { seconds, conflicts } = await longestHealing({ servers, ...kind });
    cells.push(seconds);
    lateWrites += conflicts;
  }
  printRow(servers, ...cells, lateWrites);
}
