/** Made from lib/operator/options.js by `npm run types`. */
export interface Options {
  /** TCP port to listen on; 0 takes a free one. By default 8080. */
  port?: number;
  /** Address to listen on. By default 0.0.0.0. */
  host?: string;
  /** Most clients in the torus. By default 1000000. */
  capacity?: number;
  /** Longest time that a poll stays parked; seconds. By default 120. */
  hold?: number;
  /** A client or player is removed when it has no poll parked, or sends no input, for this long; seconds. By default 30. */
  lease?: number;
  /** Largest sprite; bytes. By default 16384. */
  maxSprite?: number | string;
  /** Most sprites that wait for one client. By default 64. */
  mailbox?: number;
  /** Memory of the sprites that wait for one client; bytes. By default 256K. */
  mailboxBytes?: number | string;
  /** Memory of all sprites that wait; bytes. By default 256M. */
  mailboxMemory?: number | string;
  /** Most bytes of sprites in one answer; the first sprite is always sent; bytes. By default 64K. */
  answerBytes?: number | string;
  /** Throws per second of each client; 0 is no limit. By default 20. */
  throwRate?: number;
  /** Throws that a client may send at once after a pause. By default 40. */
  throwBurst?: number;
  /** Polls per second of each client that acknowledge nothing new; 0 is no limit. By default 5. */
  pollRate?: number;
  /** Such polls that a client may send at once after a pause. By default 40. */
  pollBurst?: number;
  /** Tokens that may publish feeds, one per line; SIGUSR2 reads the file again. By default none. */
  publishTokenFile?: string;
  /** Largest value of a feed; bytes. By default 1M. */
  feedBytes?: number | string;
  /** Most feeds; as many more may be awaited. By default 10000. */
  feeds?: number;
  /** Memory of all feeds; as much again for old versions that unsent answers still use; bytes. By default 256M. */
  feedMemory?: number | string;
  /** Most watchers; a client counts once for each feed that it watches. By default 4000000. */
  feedWatchers?: number;
  /** Worker threads that parse, compare, compress and fetch feeds. By default 2. */
  feedThreads?: number;
  /** URL from which the server fetches feeds that were never published; {key} is the key. By default none. */
  upstream?: string;
  /** How often a watched feed is fetched; seconds. By default 5. */
  upstreamEvery?: number;
  /** Most fetches at the same time; one source address gets at most half of them. By default 8. */
  upstreamAtOnce?: number;
  /** Time limit of a fetch; seconds. By default 10. */
  upstreamTime?: number;
  /** A fetched feed is forgotten after this long without watchers; seconds. By default 60. */
  feedIdle?: number;
  /** Names of the arenas, such as hall or hall,yard. By default none. */
  arena?: string;
  /** Most players in one arena. By default 10000. */
  arenaPlayers?: number;
  /** Inputs per second of each player; twice as many at once. By default 20. */
  arenaRate?: number;
  /** Folder of your own games, one folder each, beside the games of the server. By default none. */
  games?: string;
  /** Access-Control-Allow-Origin of every answer. By default *. */
  cors?: string;
  /** Most connections; the file limit may allow fewer. By default 16000000. */
  connections?: number;
  /** Connections from one source address (IPv6: /64); 0 is no limit. By default 10000. */
  addressConnections?: number;
  /** Joins per second from one source address, ten times as many at once; 0 is no limit. By default 1000. */
  addressJoins?: number;
  /** Clients from one source address; 0 is no limit. By default 10000. */
  addressClients?: number;
  /** Memory of the waiting sprites from one source address, each at least 1K; a sprite that flew on counts for the client that left; 0 is no limit; bytes. By default 32M. */
  addressMemory?: number | string;
  /** Memory of buffered input and output for one source address; 0 is no limit; bytes. By default 32M. */
  addressHeld?: number | string;
  /** Feeds fetched from --upstream, or not yet published, that one source address requested first; 0 is no limit. By default 1000. */
  addressFeeds?: number;
  /** Source of the client's address: the connection (none), the PROXY protocol, or one header. By default none. */
  trustProxy?: 'none' | 'proxy' | 'forwarded' | 'x-forwarded-for';
  /** Largest request head; bytes. By default 16K. */
  headBytes?: number | string;
  /** Time limit for a request's head to arrive; seconds. By default 10. */
  headTime?: number;
  /** Time limit for a request's body to arrive; seconds. By default 20. */
  bodyTime?: number;
  /** Time that a connection may stay open between requests; seconds. By default 75. */
  idleTime?: number;
  /** Time that a client may stop reading in the middle of an answer; seconds. By default 20. */
  writeTime?: number;
  /** On SIGTERM, the time in which all parked polls are answered; seconds. By default 2. */
  drain?: number;
  /** Threads that hold the connections, each on a core of its own; 0: the main thread does. By default 0. */
  workers?: number;
  /** One more port, for joins, throws and leaves only; 0 takes a free one. By default none. */
  transientPort?: number | 'none';
  /** File that keeps the whole state over a restart. By default none. */
  state?: string;
  /** Largest state that is written or read; bytes. By default 4G. */
  stateBytes?: number | string;
  /** When the journal of --state is synced to the disk: never, within a second, or before answers. By default second. */
  sync?: 'never' | 'second' | 'turn';
  /** The server makes a new snapshot when the journal reaches this size; bytes. By default 256M. */
  journalBytes?: number | string;
  /** The server makes a new snapshot when the journal reaches this age; seconds. By default 60. */
  snapshotEvery?: number;
  /** How long a start waits for another server with the same state to end; seconds. By default 60. */
  stateWait?: number;
  /** Certificate chain (PEM); with it the server also serves TLS. By default none. */
  tlsCert?: string;
  /** Private key (PEM) of --tls-cert. By default none. */
  tlsKey?: string;
  /** TCP port of TLS; 0 takes a free one. By default 8443. */
  tlsPort?: number;
  /** NATS servers of a world: several servers that are one torus; such as nats://host:4222. By default none. */
  world?: string;
  /** This server's name in the world, unique there; the ring is in the order of the names. By default none. */
  name?: string;
  /** The others take this server out of the ring when it is silent for this long; seconds. By default 10. */
  worldLease?: number;
  /** With --state, how long after SIGTERM and --drain the other servers keep the places of its clients; seconds. By default 60. */
  worldGrace?: number;
  /** URL of this server in 421 answers of the others; none: its own address and port. By default none. */
  worldUrl?: string;
  /** User and key for the NATS server, in a .creds file of the NATS tools. By default none. */
  worldCredentials?: string;
  /** Certificates (PEM) that must have signed the NATS server's; requires TLS. By default none. */
  worldCa?: string;
  /** This server's certificate (PEM), for a NATS server that asks for one. By default none. */
  worldCertificate?: string;
  /** Private key (PEM) of --world-certificate. By default none. */
  worldKey?: string;
  /** TCP port of /metrics, /status, /healthz and /readyz; 0 takes a free one. By default none. */
  adminPort?: number | 'none';
  /** Address of the admin port; a name that resolves to loopback is also accepted as Host. By default 127.0.0.1. */
  adminHost?: string;
}
