import { ArgumentError, readArguments } from './arguments.js';
import { formatHelp, suggest } from './option-help.js';
import { NAME } from '../world/entry.js';
import { readServerUrl } from '../world/public-url.js';

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

const orNone = (type) => ({
  ...type,
  read: (value) => (value === 'none' ? value : type.read(value)),
  expects: `none or ${type.expects}`
});

const NO_NAMES = Object.freeze([]);

/** Names of arenas, or none. */
const names = (most) => ({
  unit: 'names',
  read(value) {
    if (value === 'none') return NO_NAMES;
    const all = value.split(',');
    const good = all.every((name) => NAME.test(name));
    return good && all.length <= most && new Set(all).size === all.length ? all : undefined;
  },
  expects: `none or 1 to ${most} names with commas between, of a-z, 0-9 and -, 32 characters at most`
});

/** NATS servers of one cluster, or none. A password in a URL would be seen by everybody who may list processes. */
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
  {
    name: 'host',
    default: '0.0.0.0',
    type: text('address', /^[^\s]+$/, 'an address or a host name'),
    help: 'address to listen on'
  },
  {
    name: 'capacity',
    default: '1000000',
    type: whole(1, 16000000),
    help: 'clients there is room for'
  },
  {
    name: 'hold',
    default: '120',
    type: seconds(1, 3600),
    help: 'how long a poll is parked at most'
  },
  {
    name: 'lease',
    default: '30',
    type: seconds(1, 3600),
    help: 'a client with no poll parked for this long has left'
  },
  { name: 'max-sprite', default: '16384', type: bytes(2, 1048576), help: 'largest sprite' },
  {
    name: 'mailbox',
    default: '64',
    type: whole(1, 65536),
    help: 'sprites that may wait for one client'
  },
  {
    name: 'mailbox-bytes',
    default: '256K',
    type: bytes(64, 2 ** 30),
    help: 'memory of the sprites that may wait for one client'
  },
  {
    name: 'mailbox-memory',
    default: '256M',
    type: bytes(64, 2 ** 36),
    help: 'memory of the sprites that may wait in all'
  },
  {
    name: 'answer-bytes',
    default: '64K',
    type: bytes(64, 2 ** 24),
    help: 'sprites in one answer; one always goes'
  },
  {
    name: 'throw-rate',
    default: '20',
    type: whole(0, 1000000),
    help: 'throws a second each client may make; 0 for any number'
  },
  {
    name: 'throw-burst',
    default: '40',
    type: whole(1, 1000000),
    help: 'throws a rested client may make at once'
  },
  {
    name: 'poll-rate',
    default: '5',
    type: whole(0, 1000),
    help: 'polls a second each client may make that ack nothing new; 0 for any number'
  },
  {
    name: 'poll-burst',
    default: '40',
    type: whole(1, 1000000),
    help: 'such polls a rested client may make at once'
  },
  {
    name: 'publish-token-file',
    default: 'none',
    type: file,
    help: 'tokens that may publish feeds, one a line; read anew on SIGUSR2'
  },
  { name: 'feed-bytes', default: '1M', type: bytes(2, 2 ** 26), help: 'largest value of a feed' },
  { name: 'feeds', default: '10000', type: whole(1, 1000000), help: 'feeds there may be' },
  {
    name: 'feed-memory',
    default: '256M',
    type: bytes(64, 2 ** 36),
    help:
      'memory of all feeds: values, patches, compressed; as much again for what slow readers' +
      " still hold at the native door, and at Node's server"
  },
  {
    name: 'feed-watchers',
    default: '4000000',
    type: whole(1, 64000000),
    help: 'feeds being watched, each counted for everyone who does'
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
    help: 'where feeds come from that nobody publishes'
  },
  {
    name: 'upstream-every',
    default: '5',
    type: seconds(1, 86400),
    help: 'how often a feed that is watched is fetched'
  },
  {
    name: 'upstream-at-once',
    default: '8',
    type: whole(1, 256),
    help: 'fetches there may be at once; half of them for what one source address has asked for'
  },
  {
    name: 'upstream-time',
    default: '10',
    type: seconds(1, 3600),
    help: 'how long a fetch may take'
  },
  {
    name: 'feed-idle',
    default: '60',
    type: seconds(1, 86400),
    help: 'a fetched feed that nobody has watched for this long is forgotten'
  },
  {
    name: 'arena',
    default: 'none',
    type: names(16),
    help: 'arenas that there are, by their names, such as hall or hall,yard'
  },
  {
    name: 'arena-players',
    default: '10000',
    type: whole(1, 1000000),
    help: 'players there may be in one arena'
  },
  {
    name: 'arena-rate',
    default: '20',
    type: whole(1, 1000),
    help: 'inputs a second each player may send, twice that at once'
  },
  {
    name: 'games',
    default: 'none',
    type: text('folder', /^[^\s\0]/, 'a folder'),
    help: 'games of your own: a folder of their folders, besides those that come with the server'
  },
  {
    name: 'cors',
    default: '*',
    type: text(
      'origin',
      /^(\*|none|https?:\/\/[^\s/]+)$/,
      '*, none, or an origin such as https://example.org'
    ),
    help: 'Access-Control-Allow-Origin of every answer'
  },
  {
    name: 'connections',
    default: '16000000',
    type: whole(1, 16000000),
    help:
      'connections there may be, and as many again at the workers; the file limit may allow' +
      ' fewer'
  },
  {
    name: 'address-connections',
    default: '10000',
    type: whole(0, 16000000),
    help:
      'connections there may be from one source address (IPv6: /64), to the main process and all' +
      ' workers together; 0 for any number'
  },
  {
    name: 'address-joins',
    default: '1000',
    type: whole(0, 1000000),
    help: 'joins a second from one source address, ten times that at once; 0 for any number'
  },
  {
    name: 'address-clients',
    default: '10000',
    type: whole(0, 16000000),
    help: 'clients there may be from one source address; 0 for any number'
  },
  {
    name: 'address-memory',
    default: '32M',
    type: bytes(0, 2 ** 36),
    help:
      'memory of the sprites from one source address that may wait in all, one counted as 1K at' +
      ' least, and one that has flown on for the address that left it; 0 for any'
  },
  {
    name: 'address-handed-over',
    default: '2000',
    type: whole(0, 16000000),
    help:
      "connections from one source address that Node's own servers may hold, and as many again at" +
      ' the workers; 0 for any number'
  },
  {
    name: 'address-held',
    default: '32M',
    type: bytes(0, 2 ** 36),
    help:
      'memory of the input and output that is held for the connections from one source address;' +
      ' 0 for any'
  },
  {
    name: 'address-feeds',
    default: '1000',
    type: whole(0, 1000000),
    help:
      'feeds that are fetched from --upstream because somebody at one source address has asked for' +
      ' them first; 0 for any number'
  },
  {
    name: 'handed-over',
    default: '10000',
    type: whole(1, 16000000),
    help:
      "connections that Node's own servers may hold, those by TLS among them; as many again" +
      ' at the workers'
  },
  {
    name: 'trust-proxy',
    default: 'none',
    type: oneOf('none', 'proxy', 'forwarded', 'x-forwarded-for'),
    help:
      "whose word to take for a client's address: a proxy's by the PROXY protocol, by" +
      ' Forwarded (RFC 7239) alone, or by X-Forwarded-For alone'
  },
  { name: 'head-bytes', default: '16K', type: bytes(4096, 262144), help: 'largest request head' },
  {
    name: 'head-time',
    default: '10',
    type: seconds(1, 3600),
    help: "how long a request's head may take to arrive"
  },
  {
    name: 'body-time',
    default: '20',
    type: seconds(1, 3600),
    help: "how long a request's body may take to arrive"
  },
  {
    name: 'idle-time',
    default: '75',
    type: seconds(1, 3600),
    help: 'how long a connection may stay open between requests'
  },
  {
    name: 'write-time',
    default: '20',
    type: seconds(1, 3600),
    help: 'how long a peer may take to read on in its answer'
  },
  {
    name: 'drain',
    default: '2',
    type: seconds(0, 3600),
    help: 'on SIGTERM, the time within which parked polls are answered'
  },
  {
    name: 'workers',
    default: '0',
    type: whole(0, 100),
    help: 'processes that hold the connections of the main port; the main process then only decides'
  },
  {
    name: 'transient-port',
    default: 'none',
    type: orNone(whole(0, 65535)),
    help: 'one more port of the workers, for joins, throws and leaves alone; 0 takes a free one'
  },
  {
    name: 'state',
    default: 'none',
    type: file,
    help: 'where the whole state is kept from one run to the next'
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
    help: 'when the journal of --state must be on the disk: never, within a second, before answers'
  },
  {
    name: 'journal-bytes',
    default: '256M',
    type: bytes(65536, 2 ** 50),
    help: 'a journal of this size makes a new snapshot of the state'
  },
  {
    name: 'snapshot-every',
    default: '60',
    type: seconds(1, 86400),
    help: 'so does one of this age'
  },
  {
    name: 'state-wait',
    default: '60',
    type: seconds(0, 3600),
    help: 'how long a start waits for another server to end that has the same state'
  },
  {
    name: 'tls-cert',
    default: 'none',
    type: file,
    help: 'certificate chain (PEM); with it, the same is served over TLS'
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
    help: 'NATS server of a world of many servers, which are one torus, such as nats://host:4222'
  },
  {
    name: 'name',
    default: 'none',
    type: text('name', NAME, 'a-z, 0-9 and -, a letter first, 32 at most'),
    help: "this server's name in the world, which no other has; by their names they form the ring"
  },
  {
    name: 'world-lease',
    default: '10',
    type: seconds(2, 300),
    help: 'how long this server stays in the ring when nothing is heard of it'
  },
  {
    name: 'world-grace',
    default: '60',
    type: seconds(0, 3600),
    help: 'with --state: how long after SIGTERM and --drain the others keep the places of its clients for it'
  },
  {
    name: 'world-url',
    default: 'none',
    type: orNone({
      unit: 'url',
      read: readServerUrl,
      expects: 'http:// or https:// with a host, and perhaps a port, such as http://a.example:8080'
    }),
    help: 'where clients reach this server alone, for 421 at the others; none: by its own address and port'
  },
  {
    name: 'world-credentials',
    default: 'none',
    type: file,
    help: "user and key for the NATS server, as NATS's own tools write them (.creds)"
  },
  {
    name: 'world-ca',
    default: 'none',
    type: file,
    help: "certificates (PEM) that the NATS server's must be signed by; then TLS is a must"
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
    type: text('address', /^[^\s]+$/, 'an address or a host name'),
    help: 'address of the admin port; on loopback a name in its place is one it may be asked by'
  },
  {
    name: 'check',
    default: '0',
    type: whole(0, 16000000),
    help: 'say what stands in the way of this many clients on this host, and exit'
  },
  {
    name: 'log-level',
    default: 'info',
    type: oneOf('trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'),
    help: 'how much is logged on stderr, as JSON lines'
  },
  {
    name: 'door',
    default: 'native',
    type: oneOf('native', 'node'),
    help: 'who reads the hot requests: the native front door, or node:http alone'
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

/** What the options must hold among each other. */
const together = [
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
    holds: ({ trustProxy, door }) => trustProxy !== 'proxy' || door === 'native',
    says: '--trust-proxy proxy needs --door native: node:http does not read the PROXY protocol'
  },
  {
    holds: ({ state, drain, lease }) => state === 'none' || 2 * drain < lease,
    says: '--lease must be more than twice --drain: who is told to come back must still be known'
  },
  {
    holds: ({ workers, door }) => workers === 0 || door === 'native',
    says: '--workers needs --door native, which watches the relays to them'
  },
  {
    holds: ({ tlsCert, tlsKey }) => (tlsCert === 'none') === (tlsKey === 'none'),
    says: '--tls-cert and --tls-key go together'
  },
  {
    holds: ({ world, name }) => world === 'none' || name !== 'none',
    says: '--world needs --name, which no other server of the world has'
  },
  {
    holds: ({ world, name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey }) =>
      world !== 'none' ||
      [name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey].every(
        (one) => one === 'none'
      ),
    says: '--name, --world-url, --world-credentials, --world-ca, --world-certificate and --world-key need --world'
  },
  {
    holds: ({ worldCertificate, worldKey }) =>
      (worldCertificate === 'none') === (worldKey === 'none'),
    says: '--world-certificate and --world-key go together'
  },
  {
    holds: ({ world, maxSprite }) => world === 'none' || maxSprite <= WORLD_SPRITE,
    says: '--max-sprite can be 512K at most with --world: NATS takes messages of 1 MiB'
  },
  {
    holds: ({ headTime, bodyTime }) => headTime <= bodyTime,
    says: "--body-time must be at least --head-time: Node's server counts both from the first byte"
  }
];

/**
 * Reads the options.
 *
 * @param {string[]} args the command line, without node and program
 * @param {Record<string, string | undefined>} [environment]
 * @returns {object} camel-case names to values; only `help` or `version` when asked for that,
 *     whatever else is wrong
 * @throws {OptionError} saying in one line which option is wrong and what it expects
 */
export function readOptions(args, environment = {}) {
  for (const { name, short } of SWITCHES) {
    const spellings = [`--${name}`, ...short.map((letter) => `-${letter}`)];
    if (args.some((arg) => spellings.includes(arg))) return { [name]: true };
  }
  const given = parse(args);
  return readEach(({ name, default: usual }) => {
    if (given[name] !== undefined) return [given[name], `--${name}`];
    const set = environment[variable(name)];
    return isGiven(name, set) ? [set, variable(name)] : [usual, `--${name}`];
  });
}

/**
 * Reads every option of the table, and what they must hold among each other.
 *
 * @param {(option: Option) => [value: string, where: string]} find an option's value as one would type
 *     it, and where it comes from
 * @returns {object} camel-case names to values
 * @throws {OptionError}
 */
export function readEach(find) {
  const options = {};
  for (const option of table) {
    const [value, where] = find(option);
    const { type, name } = option;
    const read = type.read(value);
    if (read === undefined) {
      throw new OptionError(`${where} takes ${type.expects}, not ${JSON.stringify(value)}`);
    }
    options[camel(name)] = read;
  }
  for (const { holds, says } of together) if (!holds(options)) throw new OptionError(says);
  return options;
}

function parse(args) {
  try {
    return readArguments(args, { options: table, switches: SWITCHES.map(({ name }) => name) })
      .values;
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

/** Variables of the program's own, which are no options. */
const OWN_VARIABLES = ['SPRITES_WORKER'];

/**
 * Finds variables that look like options and are none. They are no reason not to start: a place
 * where programs run may set some of its own.
 *
 * @param {Record<string, string | undefined>} environment
 * @returns {{variable: string, meant?: string}[]} and what was probably meant
 */
export function unknownVariables(environment) {
  const known = table.map(({ name }) => variable(name));
  return Object.keys(environment)
    .filter((name) => name.startsWith('SPRITES_') && !known.includes(name))
    .filter((name) => !KUBERNETES.test(name) && !OWN_VARIABLES.includes(name))
    .map((name) => {
      const meant = suggest(name, known);
      return { variable: name, ...(meant && { meant }) };
    });
}
