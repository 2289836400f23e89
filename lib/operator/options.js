import { isIPv4 } from 'node:net';
import { resolve } from 'node:path';

import {
  formatHelp,
  parseGroups,
  readArguments,
  suggest,
  UsageError,
  withoutPassword
} from '../base/option-help.js';
import { isPattern } from '../grants/rights.js';
import { NAME, readServerUrl } from '../world/entry.js';

/**
 * The options of the server: one table for the command line, the environment, the checks and the help text.
 * `--mailbox-memory 1G` and `SPRITES_MAILBOX_MEMORY=1G` mean the same. The command line goes before the environment. An
 * empty variable counts as absent.
 */

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

/** @returns {number} a size in bytes; NaN for an invalid one */
function sizeOf(text) {
  const [, digits, unit] = /^([0-9]+)([KMG]?)$/i.exec(text) ?? [];
  return Number(digits) * UNITS[unit?.toUpperCase()];
}

const bytes = (low, high) => ({
  unit: 'bytes',
  read(text) {
    const value = sizeOf(text);
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

/** A type of option: a list, or none for the empty list. `isItem` is a callback of Array#every. */
const list = (unit, maxItems, isItem, expects) => ({
  unit,
  read(value) {
    if (value === 'none') return NO_NAMES;
    const all = value.split(',');
    return all.length <= maxItems && all.every(isItem) ? all : undefined;
  },
  expects: `none or 1 to ${maxItems} ${expects}`
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

/** NATS servers of one cluster, or none. Every user that may list processes could see a password in a URL. */
const natsServers = {
  unit: 'urls',
  read(value) {
    if (value === 'none') return value;
    const all = value.split(',');
    const isUrl = (url) => /^nats:\/\/[^\s,/@]+$/.test(url) && URL.canParse(url);
    return all.every(isUrl) ? all : undefined;
  },
  expects:
    'none, or nats://HOST:PORT, several of one cluster with commas between; user and password' +
    ' are for --world-credentials'
};

/** A type of option: a text that matches a pattern. */
const text = (unit, pattern, expects) => ({
  unit,
  read: (value) => (pattern.test(value) ? value : undefined),
  expects
});

/**
 * A file or a folder, as an absolute path: a surrounding program may change its folder later. Without a NUL, at which
 * native code would end the name.
 */
const path = (unit, pattern) => ({
  unit,
  read: (value) => (value === 'none' ? value : pattern.test(value) ? resolve(value) : undefined),
  expects: `a ${unit}`
});

/** Largest --grant-longest, in seconds: no server accepts a grant with a longer life. */
export const MAX_GRANT_SECONDS = 31_536_000;

/** An origin as browsers write it: browsers compare origins letter by letter. */
const origin = {
  unit: 'origin',
  read(value) {
    const isOrigin =
      /^https?:/.test(value) && URL.canParse(value) && new URL(value).origin === value;
    return isOrigin || ['*', 'none'].includes(value) ? value : undefined;
  },
  expects: '*, none, or an origin as browsers write it, such as https://example.org'
};

/** The URL of the upstream, or none. A key may not become a part of the host, and `fetch` accepts no user and password. */
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

/** Types, by their names in the table. */
const TYPES = {
  ...{ number: whole, seconds, bytes, arenas, patterns, origin, upstream, 'yes-or-no': yesOrNo },
  'nats-servers': natsServers,
  'server-url': {
    unit: 'url',
    read: readServerUrl,
    expects: 'http:// or https:// with a host, and perhaps a port, such as http://a.example:8080'
  },
  file: path('file', /^[^\0]+$/),
  folder: path('folder', /^[^\s\0][^\0]*$/),
  address: text('address', /^[^\s\0]+$/, 'an address or a host name'),
  name: text('name', NAME, 'a-z, 0-9 and -, a letter first, 32 at most')
};

/**
 * The options, in the groups of the help text:
 *
 *     NAME DEFAULT TYPE: purpose; a line that begins with a space continues the line before
 *
 * DEFAULT is as on the command line. Behind the name of a TYPE are its bounds (1..64K) or its words (a|b).
 */
const TABLE = `
# Where it listens
port 8080 number 0..65535: TCP port to listen on; 0 takes a free one
host 0.0.0.0 address: address to listen on
workers 0 number 0..100: threads that hold the connections, each on a core of its own; 0: the main thread
    does
transient-port none none-or-number 0..65535: one more port, for joins, throws and leaves only; 0 takes a
    free one
cors * origin: Access-Control-Allow-Origin of every answer
# Clients and sprites
capacity 1000000 number 1..16000000: most clients in the torus
hold 120 seconds 1..3600: longest time that a poll stays parked
lease 30 seconds 1..3600: a client without a parked poll, and a player without input, is removed after this
    long; presence shows a watcher that has gone for as long
max-sprite 16384 bytes 2..1M: largest sprite
throw-rate 20 number 0..1000000: throws per second of each client; 0 is no limit
throw-burst 40 number 1..1000000: throws that a client may send at once after a pause
poll-rate 5 number 0..1000: polls per second of each client that acknowledge nothing new; 0 is no limit
poll-burst 40 number 1..1000000: such polls that a client may send at once after a pause
# Feeds
publish-token-file none file: tokens that may publish feeds, one per line; SIGUSR2 reads the file again
feeds 10000 number 1..1000000: most feeds; as many more may be awaited
feed-bytes 1M bytes 2..64M: largest value of a feed
feed-memory 256M bytes 64..64G: memory of all feeds; as much again for old versions that unsent answers
    still use
log-items 1000 number 1..1000000: most items that a log keeps
log-bytes 1M bytes 2..64M: most bytes of items that a log keeps, and of one item
feed-watchers 4000000 number 1..64000000: most watchers; a client counts once for each feed that it watches
feed-threads 2 number 1..64: worker threads that parse, compare, compress and fetch feeds
feed-cache 0 seconds 0..3600: how long a cache in front of the server may keep answers of feeds; 0: not at
    all
feed-idle 60 seconds 1..86400: a fetched feed is forgotten after this long without watchers
upstream none upstream: URL from which the server fetches feeds that were never published; {key} is the key
upstream-every 5 seconds 1..86400: how often a watched feed is fetched
upstream-at-once 8 number 1..256: most fetches at the same time; one source address gets at most half of
    them
upstream-time 10 seconds 1..3600: time limit of a fetch
# Grants
grants none file: keys that sign grants, a JSON Web Key Set; SIGUSR2 reads the file again
private none patterns: feeds that only a grant may read, such as team/*,plan
private-join no yes-or-no: yes: a join, and one to an arena, needs a grant with join
grant-longest 2592000 seconds 60..${MAX_GRANT_SECONDS}: longest life of a grant; a revocation lasts as long
# The arena
arena none arenas: names of the arenas, such as hall or hall,yard
arena-players 10000 number 1..1000000: most players in one arena
arena-rate 20 number 1..1000: inputs per second of each player; twice as many at once
games none folder: folder of your own games, one folder each, beside the games of the server
# Mailboxes
mailbox 64 number 1..65536: most sprites that wait for one client
mailbox-bytes 256K bytes 64..1G: memory of the sprites that wait for one client
mailbox-memory 256M bytes 64..64G: memory of all sprites that wait
answer-bytes 64K bytes 64..4M: most bytes of sprites in one answer; the first sprite is always sent
# Limits
connections 16000000 number 1..16000000: most connections; the file limit may allow fewer
address-connections 10000 number 0..16000000: connections from one source address (IPv6: /64); 0 is no limit
address-held 32M bytes 0..64G: memory of buffered input and output for one source address; 0 is no limit
address-joins 1000 number 0..1000000: joins per second from one source address, ten times as many at once; 0
    is no limit
address-clients 10000 number 0..16000000: clients from one source address; 0 is no limit
address-memory 32M bytes 0..64G: memory of the waiting sprites from one source address, each at least 1K; a
    sprite that flew on counts for the client that left; 0 is no limit
address-feeds 1000 number 0..1000000: feeds fetched from --upstream, or not yet published, that one source
    address requested first; 0 is no limit
trust-proxy none one-of none|proxy|forwarded|x-forwarded-for: source of the client's address: the connection
    (none), the PROXY protocol, or one header
# Timeouts
head-bytes 16K bytes 4096..256K: largest request head
head-time 10 seconds 1..3600: time limit for a request's head to arrive
body-time 20 seconds 1..3600: time limit for a request's body to arrive
idle-time 75 seconds 1..3600: time that a connection may stay open between requests
write-time 20 seconds 1..3600: time that a client may stop reading in the middle of an answer
# Restarts and state
drain 2 seconds 0..3600: on SIGTERM, the time in which all parked polls are answered
state none file: file that keeps the whole state over a restart
state-bytes 4G bytes 1024..1048576G: largest state that is written or read
sync second one-of never|second|turn: when the journal of --state is synced: never, within a second, or
    before answers; snapshots always are
journal-bytes 256M bytes 65536..1048576G: the server makes a new snapshot when the journal reaches this size
snapshot-every 60 seconds 1..86400: the server makes a new snapshot when the journal reaches this age
state-wait 60 seconds 0..3600: how long a start waits for another server with the same state to end
# A world of many servers
world none nats-servers: NATS servers of a world: several servers that are one torus; such as
    nats://host:4222
world-replicas 1 number 1..5: NATS servers that keep each lease and feed: 3 in a cluster of three
name none name: this server's name in the world, unique there; the ring is in the order of the names
world-lease 10 seconds 2..300: the others take this server out of the ring when it is silent for this long
world-grace 60 seconds 0..3600: with --state, how long after SIGTERM and --drain the other servers keep the
    places of its clients
world-url none none-or-server-url: URL of this server in 421 answers of the others; none: its own address
    and port
world-credentials none file: user and key for NATS, a .creds file of its tools; each connection reads it
world-ca none file: certificates (PEM) that must have signed the NATS server's; requires TLS
world-certificate none file: this server's certificate (PEM), for a NATS server that asks for one
world-key none file: private key (PEM) of --world-certificate
# TLS
tls-cert none file: certificate chain (PEM); with it the server also serves TLS
tls-key none file: private key (PEM) of --tls-cert
tls-port 8443 number 0..65535: TCP port of TLS; 0 takes a free one
# For the operator
admin-port none none-or-number 0..65535: TCP port of /metrics, /status, /healthz and /readyz; 0 takes a free
    one
admin-host 127.0.0.1 address: address of the admin port; a name that resolves to loopback is also accepted
    as Host
log-level info one-of trace|debug|info|warn|error|fatal|silent: what is logged on stderr, as JSON lines
check none none-or-number 1..16000000: print what this host lacks for so many clients, and exit
`;

function typeOf(name, parameters) {
  if (name.startsWith('none-or-')) return orNone(typeOf(name.slice(8), parameters));
  if (name === 'one-of') return oneOf(...parameters.split('|'));
  const type = TYPES[name];
  return typeof type === 'function' ? type(...parameters.split('..').map(sizeOf)) : type;
}

/**
 * @typedef {object} Option
 * @property {string} [group] title of its group in the help text
 * @property {string} name on the command line, after `--`
 * @property {string} default as on the command line
 * @property {{unit: string, read: (text: string) => unknown, expects: string}} type `read`
 *     returns undefined for an invalid value
 * @property {string} help
 */

/** @type {Option[]} */
export const optionTable = parseGroups(TABLE).flatMap(([group, lines]) =>
  lines.map((line) => {
    const [, name, defaultValue, type, parameters, help] =
      /^(\S+) (\S+) ([\w-]+)(?: (\S+))?: (.+)$/.exec(line);
    return { group, name, default: defaultValue, type: typeOf(type, parameters), help };
  })
);

const SWITCHES = [
  { name: 'help', short: ['h'], help: 'print this and exit' },
  { name: 'version', short: ['v', 'V'], help: 'print the version and exit' }
];

/** @returns {string} the name of an option in a program: mailbox-memory → mailboxMemory */
export const camelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/**
 * Returns whether a variable is meant for this program: Kubernetes sets `SPRITES_PORT=tcp://10.0.0.1:80` in every container
 * beside a service with the name "sprites".
 */
const isOptionVariable = (name, value) =>
  Boolean(value) && !(name.endsWith('port') && /^(tcp|udp|sctp):\/\//.test(value));

const VARIABLE_PREFIX = 'SPRITES_';
const variableOf = (name) => VARIABLE_PREFIX + name.toUpperCase().replaceAll('-', '_');

/** Largest sprite in a world, in bytes: it must fit in a message to the NATS server. */
const MAX_WORLD_SPRITE = 512 * 2 ** 10;

/** Returns the ports on the same address. 0 is a free port, none no port. */
function portsOf({ host, port, transientPort, tlsCert, tlsPort, adminHost, adminPort }) {
  const isOnSameAddress = adminHost === host || (host === '0.0.0.0' && isIPv4(adminHost));
  return [port, transientPort, tlsCert === 'none' ? 0 : tlsPort, isOnSameAddress ? adminPort : 0];
}

/**
 * A rule between options.
 *
 * @typedef {object} Rule
 * @property {(options: object, givenNames: Set<string>) => boolean} holds `givenNames` has the names of the options that were set
 * @property {string} message
 */

/** @returns {Rule} the rule that two options need each other */
const requireBoth = (one, other) => ({
  holds: (options) =>
    (options[camelCase(one)] === 'none') === (options[camelCase(other)] === 'none'),
  message: `--${one} and --${other} go together`
});

/** @type {Rule[]} */
const RULES = [
  {
    holds: ({ grants, private: feeds, privateJoin }) =>
      grants !== 'none' || (feeds.length === 0 && !privateJoin),
    message: '--private and --private-join need --grants FILE, the keys that sign grants'
  },
  {
    holds: ({ maxSprite, mailboxBytes }) => maxSprite + 64 <= mailboxBytes,
    message: '--mailbox-bytes must have room for one sprite of --max-sprite bytes and 64 more'
  },
  {
    holds: ({ mailboxBytes, mailboxMemory }) => mailboxBytes <= mailboxMemory,
    message: '--mailbox-memory must be at least --mailbox-bytes'
  },
  {
    holds: ({ feedBytes, logBytes, feedMemory }) => 3 * Math.max(feedBytes, logBytes) <= feedMemory,
    message:
      '--feed-memory must have room for three values of --feed-bytes, and for three times --log-bytes'
  },
  {
    holds: ({ state, drain, lease }) => state === 'none' || 2 * drain < lease,
    message:
      '--lease must be more than twice --drain, so that clients that reconnect still have their places'
  },
  requireBoth('tls-cert', 'tls-key'),
  {
    holds: ({ tlsCert }, givenNames) => tlsCert !== 'none' || !givenNames.has('tls-port'),
    message: '--tls-port needs --tls-cert and --tls-key, what it serves TLS with'
  },
  {
    holds: (options) => {
      const ports = portsOf(options).filter((port) => port > 0);
      return new Set(ports).size === ports.length;
    },
    message: '--port, --transient-port, --tls-port and --admin-port must be different ports'
  },
  {
    holds: ({ arena, games }) => games === 'none' || arena.length > 0,
    message: '--games needs --arena, the names of the arenas that play them'
  },
  {
    holds: ({ world, name }) => world === 'none' || name !== 'none',
    message: '--world needs --name, a name that is unique in the world'
  },
  {
    holds: ({ world, name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey }) =>
      world !== 'none' ||
      [name, worldUrl, worldCredentials, worldCa, worldCertificate, worldKey].every(
        (one) => one === 'none'
      ),
    message:
      '--name, --world-url, --world-credentials, --world-ca, --world-certificate and --world-key need --world'
  },
  requireBoth('world-certificate', 'world-key'),
  {
    holds: ({ world, maxSprite }) => world === 'none' || maxSprite <= MAX_WORLD_SPRITE,
    message: '--max-sprite can be 512K at most with --world: NATS takes messages of 1 MiB'
  }
];

/**
 * The options and rules of a command, besides the common ones.
 *
 * @typedef {{options?: Option[], rules?: Rule[]}} Command
 */

/**
 * Reads the options.
 *
 * @param {string[]} args the command line, without node and program
 * @param {Record<string, string | undefined>} [environment]
 * @param {Command} [command]
 * @returns {object} values by names in camel case; only `help` or `version` where the command line has one of these,
 *     even if another option is wrong
 * @throws {UsageError} with a message of one line: the wrong option, and what it expects
 */
export function readOptions(args, environment = {}, command = {}) {
  for (const { name, short } of SWITCHES) {
    const spellings = [`--${name}`, ...short.map((letter) => `-${letter}`)];
    if (args.some((arg) => spellings.includes(arg))) return { [name]: true };
  }
  const values = parseArguments(args, command.options);
  return readAllOptions((name) => {
    if (values[name] !== undefined) return [values[name], `--${name}`];
    const variableValue = environment[variableOf(name)];
    return isOptionVariable(name, variableValue) ? [variableValue, variableOf(name)] : undefined;
  }, command);
}

/**
 * Reads every option of the table, and checks the rules.
 *
 * @param {(name: string) => [value: string, where: string] | undefined} findValue returns an option's value as on the command
 *     line, and its source; undefined for its default
 * @param {Command} [command]
 * @returns {object} values by names in camel case
 * @throws {UsageError}
 */
export function readAllOptions(findValue, { options: commandOptions = [], rules = [] } = {}) {
  const options = {};
  const givenNames = new Set();
  for (const { name, type, default: defaultValue } of [...optionTable, ...commandOptions]) {
    const valueAndSource = findValue(name);
    if (valueAndSource) givenNames.add(name);
    const [value, where] = valueAndSource ?? [defaultValue, `--${name}`];
    const read = type.read(value);
    if (read === undefined) {
      const shown = withoutPassword(JSON.stringify(value));
      throw new UsageError(`${where} takes ${type.expects}, not ${shown}`);
    }
    options[camelCase(name)] = read;
  }
  for (const { holds, message } of [...rules, ...RULES]) {
    if (!holds(options, givenNames)) throw new UsageError(message);
  }
  return options;
}

/** Options of earlier versions, and what to do instead. */
export const REMOVED_OPTIONS = {
  door: 'there is one door; leave it out',
  'handed-over': 'every connection is one of --connections',
  'address-handed-over': 'every connection is one of --address-connections'
};

function parseArguments(args, commandOptions = []) {
  const switches = SWITCHES.map(({ name }) => name);
  return readArguments(args, {
    options: [...optionTable, ...commandOptions],
    switches,
    unknown: REMOVED_OPTIONS
  }).values;
}

/**
 * @returns {string} the help text
 */
export const helpText = () => formatHelp(optionTable, SWITCHES);

/** Variables that Kubernetes sets in every container beside a service with the name "sprites". */
const KUBERNETES = /^SPRITES_(SERVICE_(HOST|PORT\b.*)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_.*)?)?)$/;

/**
 * Finds unknown variables that look like options. They do not prevent a start: an environment may set variables of its
 * own.
 *
 * @param {Record<string, string | undefined>} environment
 * @param {Command} [command]
 * @returns {{variable: string, instead?: string, meant?: string}[]} each with what to use instead, or with the name that
 *     is probably meant
 */
export function unknownVariables(environment, { options: commandOptions = [] } = {}) {
  const known = [...optionTable, ...commandOptions].map(({ name }) => variableOf(name));
  return Object.keys(environment)
    .filter((name) => name.startsWith(VARIABLE_PREFIX) && !known.includes(name))
    .filter((name) => !KUBERNETES.test(name))
    .map((name) => {
      const removedOption = Object.keys(REMOVED_OPTIONS).find((one) => variableOf(one) === name);
      if (removedOption !== undefined)
        return { variable: name, instead: REMOVED_OPTIONS[removedOption] };
      // What all names begin with makes none more alike.
      const [word, ...names] = [name, ...known].map((one) => one.slice(VARIABLE_PREFIX.length));
      const suggestion = suggest(word, names);
      return { variable: name, ...(suggestion && { meant: VARIABLE_PREFIX + suggestion }) };
    });
}
