import { isIPv4 } from 'node:net';

import { ArgumentError, formatHelp, readArguments, suggest } from '../base/option-help.js';
import { isPattern } from '../grants/patterns.js';
import { NAME, readServerUrl } from '../world/entry.js';

/**
 * The options: one table, from which the command line, the environment, the checks and the help
 * text all come. `--mailbox-memory 1G` and `SPRITES_MAILBOX_MEMORY=1G` say the same; the command
 * line wins, and a variable that is empty is as good as none.
 */

/** A wrong option: `message` is one line for a person. */
export class OptionError extends Error {
  code = 'ERR_SPRITES_OPTION';
}

/** A type of option: a whole number. */
export const whole = (low, high) => ({
  unit: 'number',
  read(text) {
    const value = /^[0-9]+$/.test(text) ? Number(text) : NaN;
    return value >= low && value <= high ? value : undefined;
  },
  expects: `a whole number from ${low} to ${high}`
});

const seconds = (low, high) => ({ ...whole(low, high), unit: 'seconds' });

const UNITS = { '': 1, K: 2 ** 10, M: 2 ** 20, G: 2 ** 30 };

const bytes = (low, high) => ({
  unit: 'bytes',
  read(text) {
    const [, digits, unit] = /^([0-9]+)([KMG]?)$/i.exec(text) ?? [];
    const value = Number(digits) * UNITS[unit?.toUpperCase()];
    return value >= low && value <= high ? value : undefined;
  },
  expects: `a size from ${low} to ${high} bytes, such as 4096, 64K, 256M or 1G`
});

const oneOf = (...values) => ({
  unit: values.join('|'),
  read: (text) => (values.includes(text) ? text : undefined),
  expects: `one of ${values.join(', ')}`
});

const yesOrNo = {
  unit: 'yes|no',
  read: (value) => (['yes', 'no'].includes(value) ? value === 'yes' : undefined),
  expects: 'yes or no'
};

const orNone = (type) => ({
  ...type,
  read: (value) => (value === 'none' ? value : type.read(value)),
  expects: `none or ${type.expects}`
});

const NO_NAMES = Object.freeze([]);

/** A list, or none: the empty one. `isOne` is asked as by Array#every. */
const list = (unit, most, isOne, expects) => ({
  unit,
  read(value) {
    if (value === 'none') return NO_NAMES;
    const all = value.split(',');
    return all.length <= most && all.every(isOne) ? all : undefined;
  },
  expects: `none or 1 to ${most} ${expects}`
});

const arenas = list(
  'names',
  16,
  (name, at, all) => NAME.test(name) && all.indexOf(name) === at,
  'names with commas between, of a-z, 0-9 and -, 32 characters at most'
);

const patterns = list(
  'patterns',
  100,
  isPattern,
  'keys, prefix/* or *, with commas between, such as team/*,plan'
);

/** NATS servers of one cluster, or none. A password in a URL would be seen by every user that may list processes. */
const natsServers = {
  unit: 'urls',
  read(value) {
    if (value === 'none') return value;
    const all = value.split(',');
    const isOne = (url) => /^nats:\/\/[^\s,/@]+$/.test(url) && URL.canParse(url);
    return all.every(isOne) ? all : undefined;
  },
  expects:
    'none, or nats://HOST:PORT, several of one cluster with commas between; user and password' +
    ' are for --world-credentials'
};

/** A type of option: what a pattern takes. */
export const text = (unit, pattern, expects) => ({
  unit,
  read: (value) => (pattern.test(value) ? value : undefined),
  expects
});

const file = text('file', /./, 'a file');
const address = text('address', /^[^\s]+$/, 'an address or a host name');

/** The most that --grant-longest can be, in seconds: no server takes a grant that lasts longer. */
export const MOST_GRANT_LONGEST = 31_536_000;

/** An origin as browsers write it: they compare it letter by letter. */
const origin = {
  unit: 'origin',
  read(value) {
    const isOne = /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value;
    return isOne || ['*', 'none'].includes(value) ? value : undefined;
  },
  expects: '*, none, or an origin as browsers write it, such as https://example.org'
};

/** Where feeds are fetched, or none. A key may not become a part of the host, and `fetch` takes no user and password. */
const upstream = {
  unit: 'url',
  read(value) {
    const isTemplate = /^https?:\/\/[^\s{}/?#@\\]+[/?][^\s{}#]*\{key\}[^\s{}#]*$/.test(value);
    return value === 'none' || (isTemplate && URL.canParse(value)) ? value : undefined;
  },
  expects:
    'none, or a URL with {key} once in its path or query, and without user and password, such as' +
    ' https://api.example/{key}'
};

/**
 * @typedef {object} Option
 * @property {string} name on the command line, after `--`
 * @property {string} default as one would type it
 * @property {{unit: string, read: (text: string) => unknown, expects: string}} type `read` gives
 *     undefined for what is not such a value
 * @property {string} help
 */

/** @type {Option[]} */
export const table = [
  {
    name: 'port',
    default: '8080',
    type: whole(0, 65535),
    help: 'TCP port to listen on; 0 takes a free one'
  },
  { name: 'host', default: '0.0.0.0', type: address, help: 'address to listen on' },
  {
    name: 'capacity',
    default: '1000000',
    type: whole(1, 16000000),
    help: 'most clients in the torus'
  },
  {
    name: 'hold',
    default: '120',
    type: seconds(1, 3600),
    help: 'longest time that a poll stays parked'
  },
  {
    name: 'lease',
    default: '30',
    type: seconds(1, 3600),
    help:
      'a client without a parked poll, and a player without input, is removed after this long;' +
      ' presence shows a watcher that has gone for as long'
  },
  { name: 'max-sprite', default: '16384', type: bytes(2, 1048576), help: 'largest sprite' },
  {
    name: 'mailbox',
    default: '64',
    type: whole(1, 65536),
    help: 'most sprites that wait for one client'
  },
  {
    name: 'mailbox-bytes',
    default: '256K',
    type: bytes(64, 2 ** 30),
    help: 'memory of the sprites that wait for one client'
  },
  {
    name: 'mailbox-memory',
    default: '256M',
    type: bytes(64, 2 ** 36),
    help: 'memory of all sprites that wait'
  },
  {
    name: 'answer-bytes',
    default: '64K',
    type: bytes(64, 2 ** 24),
    help: 'most bytes of sprites in one answer; the first sprite is always sent'
  },
  {
    name: 'throw-rate',
    default: '20',
    type: whole(0, 1000000),
    help: 'throws per second of each client; 0 is no limit'
  },
  {
    name: 'throw-burst',
    default: '40',
    type: whole(1, 1000000),
    help: 'throws that a client may send at once after a pause'
  },
  {
    name: 'poll-rate',
    default: '5',
    type: whole(0, 1000),
    help: 'polls per second of each client that acknowledge nothing new; 0 is no limit'
  },
  {
    name: 'poll-burst',
    default: '40',
    type: whole(1, 1000000),
    help: 'such polls that a client may send at once after a pause'
  },
  {
    name: 'publish-token-file',
    default: 'none',
    type: file,
    help: 'tokens that may publish feeds, one per line; SIGUSR2 reads the file again'
  },
  {
    name: 'grants',
    default: 'none',
    type: file,
    help: 'keys that sign grants, a JSON Web Key Set; SIGUSR2 reads the file again'
  },
  {
    name: 'private',
    default: 'none',
    type: patterns,
    help: 'feeds that only a grant may read, such as team/*,plan'
  },
  {
    name: 'private-join',
    default: 'no',
    type: yesOrNo,
    help: 'yes: a join, and one to an arena, needs a grant with join'
  },
  {
    name: 'grant-longest',
    default: '2592000',
    type: seconds(60, MOST_GRANT_LONGEST),
    help: 'longest life of a grant; a revocation lasts as long'
  },
  { name: 'feed-bytes', default: '1M', type: bytes(2, 2 ** 26), help: 'largest value of a feed' },
  {
    name: 'feeds',
    default: '10000',
    type: whole(1, 1000000),
    help: 'most feeds; as many more may be awaited'
  },
  {
    name: 'feed-memory',
    default: '256M',
    type: bytes(64, 2 ** 36),
    help: 'memory of all feeds; as much again for old versions that unsent answers still use'
  },
  {
    name: 'log-items',
    default: '1000',
    type: whole(1, 1000000),
    help: 'most items that a log keeps'
  },
  {
    name: 'log-bytes',
    default: '1M',
    type: bytes(2, 2 ** 26),
    help: 'most bytes of items that a log keeps, and of one item'
  },
  {
    name: 'feed-watchers',
    default: '4000000',
    type: whole(1, 64000000),
    help: 'most watchers; a client counts once for each feed that it watches'
  },
  {
    name: 'feed-cache',
    default: '0',
    type: seconds(0, 3600),
    help: 'how long a cache in front of the server may keep answers of feeds; 0: not at all'
  },
  {
    name: 'feed-threads',
    default: '2',
    type: whole(1, 64),
    help: 'worker threads that parse, compare, compress and fetch feeds'
  },
  {
    name: 'upstream',
    default: 'none',
    type: upstream,
    help: 'URL from which the server fetches feeds that were never published; {key} is the key'
  },
  {
    name: 'upstream-every',
    default: '5',
    type: seconds(1, 86400),
    help: 'how often a watched feed is fetched'
  },
  {
    name: 'upstream-at-once',
    default: '8',
    type: whole(1, 256),
    help: 'most fetches at the same time; one source address gets at most half of them'
  },
  { name: 'upstream-time', default: '10', type: seconds(1, 3600), help: 'time limit of a fetch' },
  {
    name: 'feed-idle',
    default: '60',
    type: seconds(1, 86400),
    help: 'a fetched feed is forgotten after this long without watchers'
  },
  {
    name: 'arena',
    default: 'none',
    type: arenas,
    help: 'names of the arenas, such as hall or hall,yard'
  },
  {
    name: 'arena-players',
    default: '10000',
    type: whole(1, 1000000),
    help: 'most players in one arena'
  },
  {
    name: 'arena-rate',
    default: '20',
    type: whole(1, 1000),
    help: 'inputs per second of each player; twice as many at once'
  },
  {
    name: 'games',
    default: 'none',
    type: text('folder', /^[^\s\0]/, 'a folder'),
    help: 'folder of your own games, one folder each, beside the games of the server'
  },
  { name: 'cors', default: '*', type: origin, help: 'Access-Control-Allow-Origin of every answer' },
  {
    name: 'connections',
    default: '16000000',
    type: whole(1, 16000000),
    help: 'most connections; the file limit may allow fewer'
  },
  {
    name: 'address-connections',
    default: '10000',
    type: whole(0, 16000000),
    help: 'connections from one source address (IPv6: /64); 0 is no limit'
  },
  {
    name: 'address-joins',
    default: '1000',
    type: whole(0, 1000000),
    help: 'joins per second from one source address, ten times as many at once; 0 is no limit'
  },
  {
    name: 'address-clients',
    default: '10000',
    type: whole(0, 16000000),
    help: 'clients from one source address; 0 is no limit'
  },
  {
    name: 'address-memory',
    default: '32M',
    type: bytes(0, 2 ** 36),
    help:
      'memory of the waiting sprites from one source address, each at least 1K; a sprite' +
      ' that flew on counts for the client that left; 0 is no limit'
  },
  {
    name: 'address-held',
    default: '32M',
    type: bytes(0, 2 ** 36),
    help: 'memory of buffered input and output for one source address; 0 is no limit'
  },
  {
    name: 'address-feeds',
    default: '1000',
    type: whole(0, 1000000),
    help:
      'feeds fetched from --upstream, or not yet published, that one source address requested' +
      ' first; 0 is no limit'
  },
  {
    name: 'trust-proxy',
    default: 'none',
    type: oneOf('none', 'proxy', 'forwarded', 'x-forwarded-for'),
    help: "source of the client's address: the connection (none), the PROXY protocol, or one header"
  },
  { name: 'head-bytes', default: '16K', type: bytes(4096, 262144), help: 'largest request head' },
  {
    name: 'head-time',
    default: '10',
    type: seconds(1, 3600),
    help: "time limit for a request's head to arrive"
  },
  {
    name: 'body-time',
    default: '20',
    type: seconds(1, 3600),
    help: "time limit for a request's body to arrive"
  },
  {
    name: 'idle-time',
    default: '75',
    type: seconds(1, 3600),
    help: 'time that a connection may stay open between requests'
  },
  {
    name: 'write-time',
    default: '20',
    type: seconds(1, 3600),
    help: 'time that a client may stop reading in the middle of an answer'
  },
  {
    name: 'drain',
    default: '2',
    type: seconds(0, 3600),
    help: 'on SIGTERM, the time in which all parked polls are answered'
  },
  {
    name: 'workers',
    default: '0',
    type: whole(0, 100),
    help: 'threads that hold the connections, each on a core of its own; 0: the main thread does'
  },
  {
    name: 'transient-port',
    default: 'none',
    type: orNone(whole(0, 65535)),
    help: 'one more port, for joins, throws and leaves only; 0 takes a free one'
  },
  {
    name: 'state',
    default: 'none',
    type: file,
    help: 'file that keeps the whole state over a restart'
  },
  {
    name: 'state-bytes',
    default: '4G',
    type: bytes(1024, 2 ** 50),
    help: 'largest state that is written or read'
  },
  {
    name: 'sync',
    default: 'second',
    type: oneOf('never', 'second', 'turn'),
    help: 'when the journal of --state is synced to the disk: never, within a second, or before answers'
  },
  {
    name: 'journal-bytes',
    default: '256M',
    type: bytes(65536, 2 ** 50),
    help: 'the server makes a new snapshot when the journal reaches this size'
  },
  {
    name: 'snapshot-every',
    default: '60',
    type: seconds(1, 86400),
    help: 'the server makes a new snapshot when the journal reaches this age'
  },
  {
    name: 'state-wait',
    default: '60',
    type: seconds(0, 3600),
    help: 'how long a start waits for another server with the same state to end'
  },
  {
    name: 'tls-cert',
    default: 'none',
    type: file,
    help: 'certificate chain (PEM); with it the server also serves TLS'
  },
  { name: 'tls-key', default: 'none', type: file, help: 'private key (PEM) of --tls-cert' },
  {
    name: 'tls-port',
    default: '8443',
    type: whole(0, 65535),
    help: 'TCP port of TLS; 0 takes a free one'
  },
  {
    name: 'world',
    default: 'none',
    type: natsServers,
    help: 'NATS servers of a world: several servers that are one torus; such as nats://host:4222'
  },
  {
    name: 'world-replicas',
    default: '1',
    type: whole(1, 5),
    help: 'NATS servers that keep each lease and feed: 3 in a cluster of three'
  },
  {
    name: 'name',
    default: 'none',
    type: text('name', NAME, 'a-z, 0-9 and -, a letter first, 32 at most'),
    help: "this server's name in the world, unique there; the ring is in the order of the names"
  },
  {
    name: 'world-lease',
    default: '10',
    type: seconds(2, 300),
    help: 'the others take this server out of the ring when it is silent for this long'
  },
  {
    name: 'world-grace',
    default: '60',
    type: seconds(0, 3600),
    help:
      'with --state, how long after SIGTERM and --drain the other servers keep the places' +
      ' of its clients'
  },
  {
    name: 'world-url',
    default: 'none',
    type: orNone({
      unit: 'url',
      read: readServerUrl,
      expects: 'http:// or https:// with a host, and perhaps a port, such as http://a.example:8080'
    }),
    help: 'URL of this server in 421 answers of the others; none: its own address and port'
  },
  {
    name: 'world-credentials',
    default: 'none',
    type: file,
    help: 'user and key for the NATS server, in a .creds file of the NATS tools'
  },
  {
    name: 'world-ca',
    default: 'none',
    type: file,
    help: "certificates (PEM) that must have signed the NATS server's; requires TLS"
  },
  {
    name: 'world-certificate',
    default: 'none',
    type: file,
    help: "this server's certificate (PEM), for a NATS server that asks for one"
  },
  {
    name: 'world-key',
    default: 'none',
    type: file,
    help: 'private key (PEM) of --world-certificate'
  },
  {
    name: 'admin-port',
    default: 'none',
    type: orNone(whole(0, 65535)),
    help: 'TCP port of /metrics, /status, /healthz and /readyz; 0 takes a free one'
  },
  {
    name: 'admin-host',
    default: '127.0.0.1',
    type: address,
    help: 'address of the admin port; a name that resolves to loopback is also accepted as Host'
  },
  {
    name: 'check',
    default: 'none',
    type: orNone(whole(1, 16000000)),
    help: 'print what this host lacks for so many clients, and exit'
  },
  {
    name: 'log-level',
    default: 'info',
    type: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    help: 'what is logged on stderr, as JSON lines'
  }
];

const SWITCHES = [
  { name: 'help', short: ['h'], help: 'print this and exit' },
  { name: 'version', short: ['v', 'V'], help: 'print the version and exit' }
];

/** @returns {string} an option's name in a program: mailbox-memory → mailboxMemory */
export const camel = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/**
 * Whether a variable says something to this program: Kubernetes sets `SPRITES_PORT=tcp://10.0.0.1:80`
 * in every container beside a service that is called "sprites".
 */
const isGiven = (name, value) =>
  Boolean(value) && !(name.endsWith('port') && /^(tcp|udp|sctp):\/\//.test(value));

const variable = (name) => `SPRITES_${name.toUpperCase().replaceAll('-', '_')}`;

/** The largest sprite there may be in a world, bytes: one must go into a message to the NATS server. */
const WORLD_SPRITE = 512 * 2 ** 10;

/** The ports that are listened on side by side. A free one is 0, and one that is not wanted none. */
function portsOf({ host, port, transientPort, tlsCert, tlsPort, adminHost, adminPort }) {
  const isBeside = adminHost === host || (host === '0.0.0.0' && isIPv4(adminHost));
  return [port, transientPort, tlsCert === 'none' ? 0 : tlsPort, isBeside ? adminPort : 0];
}

/**
 * What the options must hold among each other.
 *
 * @typedef {object} Rule
 * @property {(options: object, given: Set<string>) => boolean} holds `given`: the names of the options that were set
 * @property {string} says
 */

/** @returns {Rule} of two options neither of which is without the other */
const pair = (one, other) => ({
  holds: (options) => (options[camel(one)] === 'none') === (options[camel(other)] === 'none'),
  says: `--${one} and --${other} go together`
});

/** @type {Rule[]} */
const together = [
  {
    holds: ({ grants, private: feeds, privateJoin }) =>
      grants !== 'none' || (feeds.length === 0 && !privateJoin),
    says: '--private and --private-join need --grants FILE, the keys that sign grants'
  },
  {
    holds: ({ maxSprite, mailboxBytes }) => maxSprite + 64 <= mailboxBytes,
    says: '--mailbox-bytes must have room for one sprite of --max-sprite bytes and 64 more'
  },
  {
    holds: ({ mailboxBytes, mailboxMemory }) => mailboxBytes <= mailboxMemory,
    says: '--mailbox-memory must be at least --mailbox-bytes'
  },
  {
    holds: ({ feedBytes, feedMemory }) => 3 * feedBytes <= feedMemory,
    says: '--feed-memory must have room for three values of --feed-bytes'
  },
  {
    holds: ({ state, drain, lease }) => state === 'none' || 2 * drain < lease,
    says: '--lease must be more than twice --drain, so that clients that reconnect still have their places'
  },
  pair('tls-cert', 'tls-key'),
  {
    holds: ({ tlsCert }, given) => tlsCert !== 'none' || !given.has('tls-port'),
    says: '--tls-port needs --tls-cert and --tls-key, what it serves TLS with'
  },
  {
    holds: (options) => {
      const ports = portsOf(options).filter((port) => port > 0);
      return new Set(ports).size === ports.length;
    },
    says: '--port, --transient-port, --tls-port and --admin-port must be different ports'
  },
  {
    holds: ({ arena, games }) => games === 'none' || arena.length > 0,
    says: '--games needs --arena, the names of the arenas that play them'
  },
  {
    holds: ({ world, name }) => world === 'none' || name !== 'none',
    says: '--world needs --name, a name that is unique in the world'
  },
  {
    holds: ({ world, name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey }) =>
      world !== 'none' ||
      [name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey].every(
        (one) => one === 'none'
      ),
    says: '--name, --world-url, --world-credentials, --world-ca, --world-certificate and --world-key need --world'
  },
  pair('world-certificate', 'world-key'),
  {
    holds: ({ world, maxSprite }) => world === 'none' || maxSprite <= WORLD_SPRITE,
    says: '--max-sprite can be 512K at most with --world: NATS takes messages of 1 MiB'
  }
];

/**
 * What a command has besides the options of all.
 *
 * @typedef {{options?: Option[], rules?: Rule[]}} Command
 */

/**
 * Reads the options.
 *
 * @param {string[]} args the command line, without node and program
 * @param {Record<string, string | undefined>} [environment]
 * @param {Command} [command] has options besides
 * @returns {object} camel-case names to values; only `help` or `version` when asked for that,
 *     whatever else is wrong
 * @throws {OptionError} saying in one line which option is wrong and what it expects
 */
export function readOptions(args, environment = {}, command = {}) {
  for (const { name, short } of SWITCHES) {
    const spellings = [`--${name}`, ...short.map((letter) => `-${letter}`)];
    if (args.some((arg) => spellings.includes(arg))) return { [name]: true };
  }
  const given = parse(args, command.options);
  return readEach((name) => {
    if (given[name] !== undefined) return [given[name], `--${name}`];
    const set = environment[variable(name)];
    return isGiven(name, set) ? [set, variable(name)] : undefined;
  }, command);
}

/**
 * Reads every option of the table, and what they must hold among each other.
 *
 * @param {(name: string) => [value: string, where: string] | undefined} find an option's value as one would type
 *     it, and where it comes from; undefined for its default
 * @param {Command} [command] has options besides
 * @returns {object} camel-case names to values
 * @throws {OptionError}
 */
export function readEach(find, { options: more = [], rules = [] } = {}) {
  const options = {};
  const given = new Set();
  for (const { name, type, default: usual } of [...table, ...more]) {
    const found = find(name);
    if (found) given.add(name);
    const [value, where] = found ?? [usual, `--${name}`];
    const read = type.read(value);
    if (read === undefined) {
      // A password in a URL is not for the log.
      const shown = JSON.stringify(value).replace(/\/\/.*@/, '//…@');
      throw new OptionError(`${where} takes ${type.expects}, not ${shown}`);
    }
    options[camel(name)] = read;
  }
  for (const { holds, says } of [...rules, ...together]) {
    if (!holds(options, given)) throw new OptionError(says);
  }
  return options;
}

/** Options of earlier versions, and what to do instead. */
export const GONE = {
  door: 'there is one door; leave it out',
  'handed-over': 'every connection is one of --connections',
  'address-handed-over': 'every connection is one of --address-connections'
};

function parse(args, more = []) {
  const switches = SWITCHES.map(({ name }) => name);
  try {
    return readArguments(args, { options: [...table, ...more], switches, unknown: GONE }).values;
  } catch (error) {
    throw error instanceof ArgumentError ? new OptionError(error.message) : error;
  }
}

/**
 * @returns {string} the help text
 */
export const helpText = () => formatHelp(table, SWITCHES);

/** What Kubernetes sets in every container beside a service that is called "sprites". */
const KUBERNETES = /^SPRITES_(SERVICE_(HOST|PORT\b.*)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$/;

/**
 * Finds variables that look like options and are none. They are no reason not to start: a place
 * where programs run may set some of its own.
 *
 * @param {Record<string, string | undefined>} environment
 * @param {Command} [command] has options besides
 * @returns {{variable: string, instead?: string, meant?: string}[]} and what to do instead, or what was probably meant
 */
export function unknownVariables(environment, { options: more = [] } = {}) {
  const known = [...table, ...more].map(({ name }) => variable(name));
  return Object.keys(environment)
    .filter((name) => name.startsWith('SPRITES_') && !known.includes(name))
    .filter((name) => !KUBERNETES.test(name))
    .map((name) => {
      const gone = Object.keys(GONE).find((one) => variable(one) === name);
      if (gone !== undefined) return { variable: name, instead: GONE[gone] };
      const meant = suggest(name, known);
      return { variable: name, ...(meant && { meant }) };
    });
}
