/**
 * The table of all live counts. /status, Prometheus' metrics and the manual's list are made from it (npm run tables).
 *
 *     NAME KIND MARKS: what it counts; a line that begins with a space continues the line before
 *
 * NAME   the count's name in /status
 * KIND   a counter only grows, a gauge goes up and down; a member is in /status only, and is no metric
 * MARKS  kept       with --state the count survives a restart, so that the law of sprites does
 *        operators  only at the admin port: the count shows how busy the server is, and the progress of an attack
 *        front      counts connections: the name of the metric begins with sprites_front_
 */
const TABLE = `
clients gauge: Clients in the torus
capacity gauge: Most clients in the torus (--capacity)
rows gauge: Rows of the torus
columns gauge: Columns of the torus
joined counter kept: Clients that joined: joined = clients + left + expired
left counter kept: Clients that left by themselves
expired counter kept: Clients removed because they parked no poll for --lease seconds
parked gauge: Polls parked now
polls counter: Polls accepted, those answered at once too
pings counter: Polls answered empty when their hold ended
thrown counter kept: Accepted sprites: thrown = acked + waiting + lost; in a world, thrown + crossed_in =
    acked + waiting + lost + crossed_out
acked counter kept: Sprites acknowledged by their receivers
waiting gauge: Sprites in mailboxes and outboxes, not yet acknowledged
lost counter kept: Accepted sprites without a client left to fly to
lostReasons member: \`lost\` by reason: \`alone\`, the receiver left and no other client was there
delivered counter: Throws answered 202 delivered: written to a parked poll
queued counter: Throws answered 202 queued: the receiver had no poll parked
duplicates counter: Throws answered 202 duplicate: repeated with the same n
flown counter kept: Times that a sprite flew on because its receiver had left
crossedIn counter kept: Sprites that came from other servers of the world
crossedOut counter kept: Sprites that other servers of the world have taken
crossedInDoubt counter kept operators: Sprites sent to another server because the first did not say in time
    whether it has them: each may arrive twice
world member: null without \`--world\`. Public: \`name\`, \`state\`, \`clients\` of all servers, up to 64
    \`servers\` with their \`rows\`, and \`seams\`, the ranges of rows (\`from\`, to before \`to\`) that lead
    to \`peer\`. The admin port adds \`problem\`, \`epoch\`, \`tag\`, \`url\`, \`restarting\`, \`outboxes\`
    and \`refused\` frames
worldMember gauge operators: 1 while this server is a member of its world
worldServers gauge: Servers in the ring as this server sees it; alone 1, without --world 0
worldSeams gauge operators: Ends of rows that lead to another server
outboxSprites gauge operators: Waiting sprites for other servers of the world
outboxBytes gauge operators: Memory of the sprites in outboxes, bytes
worldFeedsIn counter operators: Versions of feeds taken from other servers
worldFeedsOut counter operators: Versions of feeds written for other servers
worldFeedsOverruled counter operators: Versions published while cut off, and replaced by another server's
worldFeedsRefused counter operators: Versions of other servers that this server could not take, each try
worldFeedsReachable gauge operators: 1 while publications reach the world; 0 while they count only here
worldFeedsBehind gauge operators: Feeds with a newer version at another server
worldFeedsUnshared gauge operators: Feeds whose newest version the world does not have yet
deliveryTimes member operators: Time from accepting a throw to the first answer with the sprite: \`bounds\` in
    milliseconds, \`counts\` up to each bound and above the last, \`sum\`
deliveryMsP50 member operators: Median of the delivery times, milliseconds; null before the first
deliveryMsP99 member operators: 99th percentile of the delivery times, milliseconds
feeds gauge: Feeds on this server
feedsAwaited gauge operators: Feeds that are watched and not yet published
watching gauge: Watchers, counted once for each feed
streams gauge: Open event streams
published counter: Versions of feeds, published or fetched
unchanged counter: Publications and fetches without a change
deleted counter: Feeds deleted by publishers
publishing gauge operators: Publications in progress
feedPolls counter: Accepted requests to watch feeds
feedPings counter: Requests to watch feeds answered empty when their hold ended
documents counter: Whole values sent to watchers
patches counter: Patches sent to watchers
skipped counter: Versions skipped by slow watchers
feedMemory gauge operators: Bytes of all feeds
feedHeld gauge operators: Memory of old versions that unsent answers still use, bytes
fetches counter operators: Fetches from the upstream
fetchesUnchanged counter operators: Fetches without a new value
fetchesFailed counter operators: Fetches that failed
fetching gauge operators: Fetches in progress
fetchesWaiting gauge operators: Feeds whose fetch waits for its turn
arenas gauge: Arenas on this server (--arena)
players gauge: Players in all arenas
playersJoined counter: Players that joined
playersLeft counter: Players that left
playersExpired counter: Players removed because they sent no input for --lease seconds
inputs counter: Accepted inputs: inputs = inputs_reduced + inputs_superseded + inputs_waiting
inputsReduced counter: Inputs given to a reducer
inputsSuperseded counter: Inputs replaced by a newer input, a leave, another round or game
inputsWaiting gauge: Inputs not yet given to a reducer
inputsRepeated counter: Inputs with an old n: ignored
reductions counter: Reductions of games
gamesStopped counter operators: Games stopped because they failed
mailboxBytes gauge operators: Memory of the sprites in mailboxes, bytes
stateBlocked gauge operators: 1 while the state cannot be written: joins and throws are 503 (--state)
journalBytes gauge operators: Bytes of the journal; a snapshot begins a new one
journalUnsynced gauge operators: Bytes of the journal that are not known to be on the disk
journalUnsyncedSeconds gauge operators: Seconds since everything written was on the disk
journalBacklog gauge operators: Bytes in memory because they cannot be written
journalLongestWriteSeconds gauge operators: Longest write of one turn
snapshots counter operators: Snapshots made while the server runs (--state)
snapshotsFailed counter operators: Snapshots that failed
refused member operators: Refused requests by problem, those of the admin port not among them
connections gauge front: Open connections, of all threads
tlsConnections gauge front: Connections by TLS
handshakes counter operators front: TLS handshakes that were done
handshakesResumed counter operators front: TLS handshakes that a session ticket made short
handshakesFailed counter operators front: TLS handshakes that failed, were broken off, or took longer than
    --head-time
connectionsRefused counter operators front: Connections over a bound or the file limit: 503 or closed
accepted counter front: Connections that were accepted
requests counter front: Requests that were served
handled counter front: Requests that JavaScript has handled, since they are not hot
timedOut counter operators front: Requests that arrived too slowly: 408 (--head-time, --body-time)
slowReaders counter operators front: Connections closed because the client did not read the answer
    (--write-time)
outOfFiles counter operators front: Times without a free file descriptor to accept a connection (ulimit
    -n)
heldBytes gauge operators front: Buffered input and output of the front door, bytes
workers gauge operators front: Threads that serve connections beside the main one (--workers)
uptime member operators: Seconds since the process started
cpuSeconds member operators: CPU seconds of the process
longestStallMs member operators: Longest turn of the event loop, milliseconds
recentStallMs member operators: Longest turn of the last minute, milliseconds
heapUsed member operators: Bytes of the V8 heap in use
rss member operators: Resident bytes of the process
`;

/**
 * @typedef {object} Count
 * @property {string} name
 * @property {'counter' | 'gauge' | 'member'} kind
 * @property {Set<string>} marks
 * @property {string} help
 */

/** @type {Count[]} */
export const countTable = TABLE.replaceAll(/\n +/g, ' ')
  .trim()
  .split('\n')
  .map((line) => {
    const [, name, kind, marks, help] = /^(\w+) (counter|gauge|member)((?: \w+)*): (.+)$/.exec(
      line
    );
    return { name, kind, marks: new Set(marks.trim().split(' ')), help };
  });
