/** Made from lib/server/options.js by `npm run types`. */
export interface Options {
  /** TCP port to listen on; 0 takes a free one. By default 8080. */
  port?: number;
  /** Address to listen on. By default 0.0.0.0. */
  host?: string;
  /** Clients there is room for. By default 1000000. */
  capacity?: number;
  /** How long a poll is parked at most; seconds. By default 120. */
  hold?: number;
  /** A client with no poll parked for this long has left; seconds. By default 30. */
  lease?: number;
  /** Largest sprite; bytes. By default 16384. */
  maxSprite?: number | string;
  /** Sprites that may wait for one client. By default 64. */
  mailbox?: number;
  /** Memory of the sprites that may wait for one client; bytes. By default 256K. */
  mailboxBytes?: number | string;
  /** Memory of the sprites that may wait in all; bytes. By default 256M. */
  mailboxMemory?: number | string;
  /** Sprites in one answer; one always goes; bytes. By default 64K. */
  answerBytes?: number | string;
  /** Throws a second each client may make; 0 for any number. By default 20. */
  throwRate?: number;
  /** Throws a rested client may make at once. By default 40. */
  throwBurst?: number;
  /** Polls a second each client may make that ack nothing new; 0 for any number. By default 5. */
  pollRate?: number;
  /** Such polls a rested client may make at once. By default 40. */
  pollBurst?: number;
  /** Tokens that may publish feeds, one a line; read anew on SIGUSR2. By default none. */
  publishTokenFile?: string;
  /** Largest value of a feed; bytes. By default 1M. */
  feedBytes?: number | string;
  /** Feeds there may be. By default 10000. */
  feeds?: number;
  /** Memory of all feeds: values, patches, compressed; as much again for what slow readers still hold at the native door, and at Node's server; bytes. By default 256M. */
  feedMemory?: number | string;
  /** Feeds being watched, each counted for everyone who does. By default 4000000. */
  feedWatchers?: number;
  /** Worker threads that parse, compare, compress and fetch feeds. By default 2. */
  feedThreads?: number;
  /** Where feeds come from that nobody publishes. By default none. */
  upstream?: string;
  /** How often a feed that is watched is fetched; seconds. By default 5. */
  upstreamEvery?: number;
  /** Fetches there may be at once; half of them for what one source address has asked for. By default 8. */
  upstreamAtOnce?: number;
  /** How long a fetch may take; seconds. By default 10. */
  upstreamTime?: number;
  /** A fetched feed that nobody has watched for this long is forgotten; seconds. By default 60. */
  feedIdle?: number;
  /** Arenas that there are, by their names, such as hall or hall,yard. By default none. */
  arena?: string;
  /** Players there may be in one arena. By default 10000. */
  arenaPlayers?: number;
  /** Inputs a second each player may send, twice that at once. By default 20. */
  arenaRate?: number;
  /** Games of your own: a folder of their folders, besides those that come with the server. By default none. */
  games?: string;
  /** Access-Control-Allow-Origin of every answer. By default *. */
  cors?: string;
  /** Connections there may be, and as many again at the workers; the file limit may allow fewer. By default 16000000. */
  connections?: number;
  /** Connections there may be from one source address (IPv6: /64), to the main process and all workers together; 0 for any number. By default 10000. */
  addressConnections?: number;
  /** Joins a second from one source address, ten times that at once; 0 for any number. By default 1000. */
  addressJoins?: number;
  /** Clients there may be from one source address; 0 for any number. By default 10000. */
  addressClients?: number;
  /** Memory of the sprites from one source address that may wait in all, one counted as 1K at least, and one that has flown on for the address that left it; 0 for any; bytes. By default 32M. */
  addressMemory?: number | string;
  /** Connections from one source address that Node's own servers may hold, and as many again at the workers; 0 for any number. By default 2000. */
  addressHandedOver?: number;
  /** Memory of the input and output that is held for the connections from one source address; 0 for any; bytes. By default 32M. */
  addressHeld?: number | string;
  /** Feeds that are fetched from --upstream because somebody at one source address has asked for them first; 0 for any number. By default 1000. */
  addressFeeds?: number;
  /** Connections that Node's own servers may hold, those by TLS among them; as many again at the workers. By default 10000. */
  handedOver?: number;
  /** Whose word to take for a client's address: a proxy's by the PROXY protocol, by Forwarded (RFC 7239) alone, or by X-Forwarded-For alone. By default none. */
  trustProxy?: 'none' | 'proxy' | 'forwarded' | 'x-forwarded-for';
  /** Largest request head; bytes. By default 16K. */
  headBytes?: number | string;
  /** How long a request's head may take to arrive; seconds. By default 10. */
  headTime?: number;
  /** How long a request's body may take to arrive; seconds. By default 20. */
  bodyTime?: number;
  /** How long a connection may stay open between requests; seconds. By default 75. */
  idleTime?: number;
  /** How long a peer may take to read on in its answer; seconds. By default 20. */
  writeTime?: number;
  /** On SIGTERM, the time within which parked polls are answered; seconds. By default 2. */
  drain?: number;
  /** Where the whole state is kept from one run to the next. By default none. */
  state?: string;
  /** Largest state that is written or read; bytes. By default 4G. */
  stateBytes?: number | string;
  /** When the journal of --state must be on the disk: never, within a second, before answers. By default second. */
  sync?: 'never' | 'second' | 'turn';
  /** A journal of this size makes a new snapshot of the state; bytes. By default 256M. */
  journalBytes?: number | string;
  /** So does one of this age; seconds. By default 60. */
  snapshotEvery?: number;
  /** How long a start waits for another server to end that has the same state; seconds. By default 60. */
  stateWait?: number;
  /** Certificate chain (PEM); with it, the same is served over TLS. By default none. */
  tlsCert?: string;
  /** Private key (PEM) of --tls-cert. By default none. */
  tlsKey?: string;
  /** TCP port of TLS; 0 takes a free one. By default 8443. */
  tlsPort?: number;
  /** NATS server of a world of many servers, which are one torus, such as nats://host:4222. By default none. */
  world?: string;
  /** This server's name in the world, which no other has; by their names they form the ring. By default none. */
  name?: string;
  /** How long this server stays in the ring when nothing is heard of it; seconds. By default 10. */
  worldLease?: number;
  /** With --state: how long after SIGTERM and --drain the others keep the places of its clients for it; seconds. By default 60. */
  worldGrace?: number;
  /** Where clients reach this server alone, for 421 at the others; none: by its own address and port. By default none. */
  worldUrl?: string;
  /** User and key for the NATS server, as NATS's own tools write them (.creds). By default none. */
  worldCredentials?: string;
  /** Certificates (PEM) that the NATS server's must be signed by; then TLS is a must. By default none. */
  worldCa?: string;
  /** This server's certificate (PEM), for a NATS server that asks for one. By default none. */
  worldCertificate?: string;
  /** Private key (PEM) of --world-certificate. By default none. */
  worldKey?: string;
  /** TCP port of /metrics, /status, /healthz and /readyz; 0 takes a free one. By default none. */
  adminPort?: number | 'none';
  /** Address of the admin port; on loopback a name in its place is one it may be asked by. By default 127.0.0.1. */
  adminHost?: string;
  /** Who reads the hot requests: the native front door, or node:http alone. By default native. */
  door?: 'native' | 'node';
}
