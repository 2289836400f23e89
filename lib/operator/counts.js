/**
 * Every live count, once: /status, Prometheus' metrics and the manual's rows are made of this table (npm run tables).
 *
 *     NAME KIND MARKS: what it counts; a line that begins with a space goes on with the one before
 *
 * NAME   its member of /status
 * KIND   a counter only grows, a gauge goes up and down; a member of /status alone is no metric by this name
 * MARKS  kept       with --state it goes on over a restart, so that the law of sprites does
 *        operators  says how the server fares, and with that how far an attack has come: the admin port's alone
 *        front      counts connections: its metric begins with sprites_front_
 *        native     only the native front door has it
 */
const TABLE = `
clients gauge: Clients with a place in the torus
capacity gauge: Clients there is room for
rows gauge: Rows of the torus
columns gauge: Columns of the torus
joined counter kept: Clients that joined
left counter kept: Clients that left by themselves
expired counter kept: Clients that came back too late: no poll was parked for --lease seconds
parked gauge: Polls parked now
polls counter: Polls taken, those answered at once among them
pings counter: Polls answered with nothing when their hold ended
thrown counter kept: Sprites accepted: thrown = acked + waiting + lost; in a world, thrown + crossed_in = acked +
    waiting + lost + crossed_out
acked counter kept: Sprites their receivers have acknowledged
waiting gauge: Sprites in mailboxes and outboxes, not yet acknowledged
lost counter kept: Sprites accepted that had nobody left to fly to
lostReasons member: Sprites lost, by the reason: \`alone\`, the receiver left and no other client was there to fly to
delivered counter: Throws answered 202 delivered: written to a parked poll at once
queued counter: Throws answered 202 queued: their receiver had no poll parked
duplicates counter: Throws answered 202 duplicate: repeated with the same n, and not delivered again
flown counter kept: Times a sprite flew on to the next neighbor because its receiver had left
crossedIn counter kept: Sprites that came from other servers of the world
crossedOut counter kept: Sprites that other servers of the world have taken
crossedInDoubt counter kept operators: Sprites sent elsewhere since the server they were sent to has not said in
    time whether it has them: each may arrive twice
world member: null without \`--world\`; else its name, state, servers and seams ([lib/world](../world/README.md));
    anybody is told \`name\`, \`state\`, \`clients\`, up to 64 \`servers\` with their \`rows\`, and \`seams\`
worldMember gauge operators: 1 while this server is one of its world (--world)
worldServers gauge: Servers in the ring, as this one sees it; 1 while it is alone
worldSeams gauge operators: Ends of rows that lead to another server
outboxSprites gauge operators: Sprites that wait to be taken by another server of the world
outboxBytes gauge operators: Memory of those
worldFeedsIn counter operators: Versions of feeds taken from other servers of the world
worldFeedsOut counter operators: Versions of feeds written for other servers of the world
worldFeedsOverruled counter operators: Versions published while this server was cut off that a newer one of another
    server has replaced
worldFeedsRefused counter operators: Versions of other servers that this one could not take, each try counted
worldFeedsReachable gauge operators: 1 while what is published goes to the feeds of the world; else it counts here
    alone
worldFeedsBehind gauge operators: Feeds of which another server of the world has a newer version
worldFeedsUnshared gauge operators: Feeds whose newest version the world does not have yet
deliveryTimes member operators: How long sprites waited, from the throw's acceptance to the answer that first
    carried them: \`bounds\` in milliseconds, \`counts\` up to each bound and beyond the last, and the \`sum\`
deliveryMsP50 member operators: Half of the sprites waited no longer than these milliseconds since the start; null
    before the first
deliveryMsP99 member operators: 99 of 100 sprites waited no longer than these milliseconds
feeds gauge: Feeds there are now
watching gauge: Watchers of feeds, one of many feeds counted for each
streams gauge: Event streams open now
published counter: Versions of feeds taken, published or fetched
unchanged counter: Publications and fetches that changed nothing
deleted counter: Feeds deleted by publishers
publishing gauge operators: Publications under way
feedPolls counter: Requests to watch feeds
feedPings counter: Those answered with nothing new when their hold ended
documents counter: Values that answers and events took to watchers
patches counter: Patches that they took instead
skipped counter: Versions that a watcher was too slow for
feedMemory gauge operators: Bytes of all feeds
feedHeld gauge operators: Bytes of feeds that only answers under way hold
fetches counter operators: Fetches from the upstream
fetchesUnchanged counter operators: Fetches that found nothing new
fetchesFailed counter operators: Fetches from the upstream that failed
fetching gauge operators: Fetches under way
fetchesWaiting gauge operators: Feeds whose fetch waits for its turn
arenas gauge: Arenas there are (--arena)
players gauge: Players in all arenas now
playersJoined counter: Players that joined an arena
playersLeft counter: Players that left by themselves
playersExpired counter: Players that sent no input for --lease seconds
inputs counter: Inputs of players taken: inputs = inputs_reduced + inputs_superseded + inputs_waiting
inputsReduced counter: Inputs that a reducer was given
inputsSuperseded counter: Inputs that a newer one of the same player, or his leaving, came before
inputsWaiting gauge: Inputs that no reducer was given yet
inputsRepeated counter: Inputs that had come before, by their n, and changed nothing
reductions counter: Reductions of games begun (--arena)
gamesStopped counter operators: Games that were stopped because they failed
mailboxBytes gauge operators: Memory of all sprites in mailboxes now, in bytes
stateBlocked gauge operators: 1 while the state can't be written: joins and throws are 503 (--state)
journalBytes gauge operators: Bytes of the journal that is being written; a snapshot begins a new one
journalUnsynced gauge operators: Bytes of it that are not known to be on the disk
journalUnsyncedSeconds gauge operators: How long ago all that was written was on the disk
journalBacklog gauge operators: Bytes in memory because they can't be written
journalLongestWriteSeconds gauge operators: The longest write of one turn since the start
snapshots counter operators: Snapshots of the state made while the server runs (--state)
snapshotsFailed counter operators: Snapshots of the state that could not be made
refused member operators: Requests that were refused, by the problem; what is refused for its form alone is not
    counted
connections gauge front: Connections of the main process now, by every way in
nodeConnections gauge front: Those of them that Node's HTTP server holds, at some 18 kB each (--handed-over)
tlsConnections gauge front: Connections by TLS, which Node's HTTPS servers hold, at some 43 kB each, in workers as
    well
connectionsRefused counter operators front: Connections that were one too many, by a bound or the file limit: 503 or
    closed
accepted counter front native: Connections that the native doors have accepted
handedOver counter front native: Connections that the native doors handed over to Node's server, as too unusual
requests counter front native: Joins, polls, throws and leaves that the native doors have served themselves
timedOut counter operators front native: Requests that came too slowly: 408 (--head-time, --body-time)
slowReaders counter operators front native: Connections closed because nobody read the answer (--write-time)
outOfFiles counter operators front native: Times no file descriptor was left to accept a connection with (ulimit -n)
heldBytes gauge operators front: Input and output in user space for connections of the native door, now
workers gauge operators front: Workers that listen now (--workers)
workerDeaths counter operators front: Workers that have died, hung ones that were ended among them; each was
    replaced
workerConnections gauge front: Connections of all workers now, as of a second ago
workerHeldBytes gauge operators front: The same of all workers, as of a second ago
uptime member operators: Seconds that the main process runs
cpuSeconds member operators: Seconds of processor time that it has used
longestStallMs member operators: The longest turn of its event loop since the start, in milliseconds
recentStallMs member operators: The same, of the last minute
heapUsed member operators: Bytes of its V8 heap in use
rss member operators: Its resident bytes
`;

/**
 * @typedef {object} Count
 * @property {string} name
 * @property {'counter' | 'gauge' | 'member'} kind
 * @property {Set<string>} marks
 * @property {string} help
 */

/** @type {Count[]} */
export const counts = TABLE.replaceAll(/\n +/g, ' ')
  .trim()
  .split('\n')
  .map((line) => {
    const [, name, kind, marks, help] = /^(\w+) (counter|gauge|member)((?: \w+)*): (.+)$/.exec(
      line
    );
    return { name, kind, marks: new Set(marks.trim().split(' ')), help };
  });
