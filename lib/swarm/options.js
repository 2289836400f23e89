import { helpEntry, parseGroups, readArguments, UsageError } from '../base/option-help.js';
import { bounds, checkBounds } from './bounds.js';
import { PROCESSES } from './needs.js';
import { LONGEST_RUN, secondsIn, stageType, Stages } from './stages.js';

/**
 * The commands and the options: one table each, from which the parser, the checks and the help text are made.
 */

const numberType = (low, high, whole = true) => ({
  unit: 'NUMBER',
  read(text) {
    const value = /^[0-9]+(\.[0-9]+)?$/.test(text) ? Number(text) : NaN;
    return value >= low && value <= high && (!whole || Number.isInteger(value)) ? value : undefined;
  },
  expects: `a ${whole ? 'whole ' : ''}number from ${low} to ${high}`
});

const secondsType = (low, high) => ({ ...numberType(low, high, false), unit: 'SECONDS' });

const durationType = (low, high) => ({
  unit: 'TIME',
  read(text) {
    const value = secondsIn(text);
    return value >= low && value <= high ? value : undefined;
  },
  expects: `a time from ${low} to ${high} seconds, as 30, 30s, 1m30s or 2h`
});

const textType = (unit) => ({
  unit,
  read: (value) => value || undefined,
  expects: `a ${unit.toLowerCase()}`
});

const flagType = { unit: '', read: () => true, expects: 'no value' };

/** The URL of a server: its host, its port, and whether it speaks TLS. */
const urlType = {
  unit: 'URL',
  read(text) {
    const parsedUrl = URL.canParse(text) ? new URL(text) : null;
    if (
      !['http:', 'https:'].includes(parsedUrl?.protocol) ||
      parsedUrl.href !== `${parsedUrl.origin}/`
    ) {
      return undefined;
    }
    const isTls = parsedUrl.protocol === 'https:';
    const port = parsedUrl.port === '' ? (isTls ? 443 : 80) : Number(parsedUrl.port);
    return { host: parsedUrl.hostname.replace(/^\[(.*)\]$/, '$1'), port, tls: isTls };
  },
  expects: 'http:// or https://, a host, and a port where it has another'
};

const CLIENTS_TYPE = numberType(1, 16e6);

/**
 * The commands: their help, their default --time in seconds, and the bounds of a stage's target.
 */
const commands = {
  park: {
    help: 'opens N clients, each with one parked poll',
    time: 30,
    stage: numberType(0, 16e6)
  },
  throw: {
    help:
      'N clients that throw: --rate R sprites per second in total (open loop), or --throwers T ' +
      'clients, each as soon as its last throw was answered (closed loop)',
    time: 10,
    stage: numberType(0, 1e7, false)
  },
  latency: {
    help:
      'measures a few quiet clients in a process of their own, beside N others that throw at ' +
      '--rate',
    time: 15
  },
  storm: {
    help: 'N clients disconnect and reconnect at once: the time until all are parked again',
    time: 60
  }
};

/** The command `compare`, which runs no load, and its options. */
const COMPARE = {
  help: 'shows two runs side by side, from their reports or the output of --json',
  options: ['json', 'quiet', 'report', 'worse']
};

/** The command `agent`, which the panel of an arena controls, and its options. */
const AGENT = {
  help:
    "follows an arena's panel while the game is load; URL is that of the phones " +
    '(http://host:8080/play/hall)',
  options: [
    ...['clients-max', 'rate-max', 'ca', 'insecure', 'wait', 'size', 'ramp', 'connecting'],
    ...['addresses', 'seed', 'quiet']
  ]
};

const ARENA = '[a-z][a-z0-9-]{0,31}';

/** The path of an arena's page, or `/`. */
const ARENA_PATH = new RegExp(`^/(?:(?:play|field|control|arena)/(${ARENA})/?)?$`);

/** @returns {boolean} whether this is a valid name of an arena */
export const isArenaName = (name) => typeof name === 'string' && ARENA_NAME.test(name);

const ARENA_NAME = new RegExp(`^${ARENA}$`);

/**
 * @typedef {object} Option
 * @property {string} name name on the command line, after `--`
 * @property {string} [default] as on the command line; without a default the option is absent
 * @property {string} [shown] the help's words for a computed default
 * @property {{unit: string, read: (text: string) => unknown, expects: string}} type
 * @property {string} group
 * @property {boolean} [many] whether the option may be repeated
 * @property {string} help
 */

/** Types by their names in the table; a function makes a type from the bounds behind the name. */
const TYPES = {
  ...{ number: numberType, seconds: secondsType, time: durationType },
  ...{ url: urlType, switch: flagType, stage: stageType },
  fraction: (low, high) => numberType(low, high, false),
  percent: (low, high) => ({ ...numberType(low, high, false), unit: 'PERCENT' }),
  bytes: (low, high) => ({ ...numberType(low, high), unit: 'BYTES' }),
  hold: (low, high) => ({ ...numberType(low, high), unit: 'SECONDS' }),
  port: { ...numberType(1, 65535), unit: 'PORT' },
  host: textType('HOST'),
  file: textType('FILE')
};

const USUAL_TIMES = Object.entries(commands).map(([name, { time }]) => `${name} ${time}`);

const BOUNDS = 'Bounds, which set the exit code';

/**
 * The options, in the groups of the help text. The group of the bounds also has the options of bounds.js.
 *
 *     NAME TYPE = DEFAULT: help; a line that begins with a space continues the line before
 *
 * The bounds of a TYPE follow its name. DEFAULT is as on the command line; after ~ it is a description of a computed
 * default.
 */
const TABLE = `
# The server
host host = 127.0.0.1: host name or address of the server
port port = 8080: port of the server
url url: instead of --host and --port, such as https://sprites.example; needed for TLS
ca file ~ Node's authorities: https: trusted certificate authorities, or a self-signed certificate (PEM)
insecure switch: https: accepts any certificate
transient-port port ~ --port: the server's port for throws, joins and leaves
status-port port ~ --port: the server's port for /status, by http; the admin port also gives longest stall
    and version, and CPU time and memory of a server on another host
wait seconds 0..3600 = 5: how long to wait for its first answer
# The load
time time 0.1..${LONGEST_RUN} ~ ${USUAL_TIMES.join(', ')}: how long to hold, to throw, or to wait until all are
    parked again; also --duration, -d
stage stage: park, throw: within TIME the clients (park, from N), or the sprites per second (throw, from
    --rate or 0), change evenly to TARGET; instead of --time, may be repeated; also -s
rate fraction 0.01..1e7 ~ latency 1000: open loop: sprites per second in total, thrown by all clients in
    turn
throwers number 1..100000 ~ 32: closed loop: clients that throw; with --rate the connections that throws
    share
every-client switch: closed loop: the throwers throw for all clients in turn, not each for its own
size bytes 1..1048576 = 256: size of a sprite, at least some 140
drain seconds 0..3600 = 10: at the end, how long unreceived sprites may take to arrive
spread seconds 0..3600 = 0: storm: the clients reconnect at random within this time instead of at once
probes number 1..1000 = 16: latency: clients that are measured, which join last
probe-rate fraction 0.1..1000 = 20: latency: sprites per second that these throw
hold hold 5..3600 ~ the server's: hold that the polls ask for
stay switch: do not leave at the end: close the connections
seed number 0..2147483648 ~ a new one: seed of random edges and pauses
# This host
ramp fraction 0.1..1e6 = 5000: most clients opened per second
connecting number 1..65535 = 256: most clients that connect or join at the same time; keep it below the
    server's listen backlog
processes number 1..${PROCESSES} ~ as the file limit needs: engine processes
addresses number 1..1e6 ~ as the ports need: loopback source addresses, for a server in 127.0.0.0/8
clients-max number 1..1e6 ~ 10000, or what the file limit allows: agent: most clients, whatever the panel
    says
rate-max number 0..1e6 = 10000: agent: most sprites per second, whatever the panel says
# ${BOUNDS}
worse percent 0..1e6: compare: how much worse a figure of B may be than of A
# What it says
json switch: prints only the result, as JSON
report file: writes a report: one HTML file
prometheus port: serves the figures for Prometheus at http://127.0.0.1:PORT/metrics during the run
quiet switch: no progress, no summary
help switch: prints this text
`;

/** @returns {Omit<Option, 'group'>} */
function optionOf(line) {
  const [, name, typeName, low, high, usualValue, shown, help] =
    /^(\S+) (\w+)(?: (\S+?)\.\.(\S+))?(?: = (\S+)| ~ (.+?))?: (.+)$/.exec(line);
  const type =
    typeof TYPES[typeName] === 'function'
      ? TYPES[typeName](Number(low), Number(high))
      : TYPES[typeName];
  return { name, type, help, default: usualValue, shown, many: type === stageType };
}

/** @type {Option[]} */
export const optionTable = parseGroups(TABLE).flatMap(([group, lines]) => [
  ...(group === BOUNDS ? bounds.map(({ name, type, help }) => ({ group, name, type, help })) : []),
  ...lines.map((line) => ({ group, ...optionOf(line) }))
]);

/** Names that other load testers have for some of these options. */
const ALIASES = { duration: 'time', d: 'time', z: 'time', s: 'stage' };

/** Options of other load testers that are unknown here or have another meaning, by the advice for them. */
const ADVICE = {
  'the clients are the number after the command, as in throw 100':
    'u vus users c connections concurrency',
  '--rate is in sprites a second, in all': 'q R r rps qps arrival-rate',
  'a run ends by --time, not by a count': 'n i iterations requests amount',
  '--processes is for engines, --throwers for connections that throw': 'threads workers',
  '--processes is for engines, --throwers for connections that throw, --time for seconds': 't',
  '--ramp is how many clients a second are opened, --stage how they become more': 'ramp-up',
  '--report FILE for a page, --json for figures': 'o',
  '--report FILE for a page, --json for figures, --prometheus PORT while it runs': 'out'
};

const UNKNOWN_OPTIONS = Object.fromEntries(
  Object.entries(ADVICE).flatMap(([advice, names]) =>
    names.split(' ').map((name) => [name, advice])
  )
);

/** Options of one command only. */
const COMMAND_OF_OPTION = {
  ...{ 'clients-max': 'agent', 'rate-max': 'agent', worse: 'compare' },
  ...{ probes: 'latency', 'probe-rate': 'latency', spread: 'storm' }
};

const toCamelCase = (name) => name.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/**
 * @param {string[]} args the command line
 * @returns {object} `command`, `clients`, and each option by its name in camel case; with --help only `help`
 * @throws {UsageError} with a message of one line
 */
export function parse(args) {
  const { values, words } = splitArguments(args);
  if (values.help) return { help: true };
  if (values.url !== undefined && (values.host ?? values.port) !== undefined) {
    throw new UsageError('--url includes host and port: omit --host and --port');
  }
  const options = Object.fromEntries(
    optionTable
      .map((option) => [toCamelCase(option.name), parseValue(option, values[option.name])])
      .filter(([, value]) => value !== undefined)
  );
  options.seed ??= Math.floor(Math.random() * 2 ** 31);
  const [command, countWord, ...extraWords] = words;
  if (command === 'compare') return compareOptions(values, options, words.slice(1));
  if (command === 'agent') return agentOptions(values, options, words.slice(1));
  for (const [name, onlyCommand] of Object.entries(COMMAND_OF_OPTION)) {
    if (values[name] !== undefined && onlyCommand !== command) {
      throw new UsageError(`--${name} is an option of ${onlyCommand}`);
    }
  }
  if (!command) throw new UsageError(`which command? ${commandNames()}`);
  if (!Object.hasOwn(commands, command)) {
    throw new UsageError(`no command "${command}": ${commandNames()}`);
  }
  const clientCount =
    countWord === undefined && command === 'latency' ? 1 : CLIENTS_TYPE.read(countWord ?? '');
  if (clientCount === undefined)
    throw new UsageError(`${command} N: N must be ${CLIENTS_TYPE.expects}`);
  if (extraWords.length > 0) throw new UsageError(`too much: ${extraWords.join(' ')}`);
  return completeOptions({ ...options, args, command, clients: clientCount });
}

const commandNames = () => [...Object.keys(commands), 'agent', 'compare'].join(', ');

/** Refuses options that a command does not have. */
function checkOptions(givenValues, command, known) {
  const foreignOption = Object.keys(givenValues).find((name) => !known.includes(name));
  if (foreignOption) throw new UsageError(`--${foreignOption} is no option of ${command}`);
}

function checkTrust({ tls, ca, insecure }, advice) {
  if (!tls && (ca || insecure))
    throw new UsageError(`--ca and --insecure are about TLS: ${advice}`);
  if (ca && insecure) {
    throw new UsageError('--insecure believes any certificate, and --ca a few: give one of them');
  }
}

function agentOptions(givenValues, options, targets) {
  checkOptions(givenValues, 'agent', AGENT.options);
  const [target] = targets;
  const targetUrl = targets.length === 1 && URL.canParse(target) ? new URL(target) : null;
  const server = targetUrl && urlType.read(targetUrl.origin);
  const [isPath, arena] = ARENA_PATH.exec(targetUrl?.pathname ?? '') ?? [];
  if (!server || isPath === undefined || targetUrl.username || targetUrl.password) {
    throw new UsageError(
      'agent URL: the address of an arena, without a user, as http://host:8080/play/hall'
    );
  }
  checkTrust({ ...options, ...server }, 'https://…');
  return { ...options, ...server, command: 'agent', arena };
}

function compareOptions(givenValues, options, files) {
  if (files.length !== 2) throw new UsageError('compare A B: two files, of --report or --json');
  checkOptions(givenValues, 'compare', COMPARE.options);
  return { ...options, command: 'compare', files };
}

function splitArguments(args) {
  const isSwitch = ({ type }) => type === flagType;
  return readArguments(args, {
    options: optionTable.filter((option) => !isSwitch(option)),
    switches: optionTable.filter(isSwitch).map(({ name }) => name),
    words: true,
    aliases: ALIASES,
    unknown: UNKNOWN_OPTIONS
  });
}

function parseValue(option, rawValue) {
  if (rawValue === undefined) rawValue = option.default;
  if (rawValue === undefined) return undefined;
  if (option.many) return rawValue.map((one) => parseValue({ ...option, many: false }, one));
  const value = rawValue === true ? true : option.type.read(rawValue);
  if (value === undefined) {
    throw new UsageError(`--${option.name} ${rawValue}: must be ${option.type.expects}`);
  }
  return value;
}

function completeOptions(options) {
  const { command, throwers } = options;
  const completed = { ...options, ...timesOf(options) };
  const { rate } = completed;
  if (command === 'latency') completed.rate ??= 1000;
  if (command === 'park' && (rate || throwers)) {
    throw new UsageError('park throws nothing: for --rate and --throwers the command is throw');
  }
  completed.throwing = completed.rate
    ? 'rate'
    : command === 'throw' || throwers
      ? 'closed'
      : 'none';
  if (completed.everyClient && completed.throwing !== 'closed') {
    throw new UsageError('--every-client is of the closed loop, which is throw without --rate');
  }
  completed.throwers ??= completed.throwing === 'closed' ? Math.min(32, completed.clients) : 64;
  if (
    completed.throwing === 'closed' &&
    !completed.everyClient &&
    completed.throwers > completed.clients
  ) {
    throw new UsageError(
      `${completed.throwers} throwers of ${completed.clients} clients: at most all of them`
    );
  }
  Object.assign(completed, completed.url, { tls: completed.url?.tls ?? false });
  checkTrust(completed, '--url https://…');
  completed.transientPort ??= completed.port;
  checkBounds(completed);
  return completed;
}

/**
 * Returns the length of the run in seconds. With stages also returns the highest number of clients, or the highest
 * rate, that they reach.
 */
function timesOf({ command, clients, rate, stage, time }) {
  const { time: usualTime, stage: targetType } = commands[command];
  if (!stage) return { time: time ?? usualTime };
  if (!targetType) throw new UsageError('--stage is an option of park and throw');
  if (time !== undefined) throw new UsageError('--time: omit it with --stage');
  const isPark = command === 'park';
  const stages = new Stages(isPark ? clients : (rate ?? 0), stage, targetType);
  const highest = isPark ? { clients: stages.highestTarget } : { rate: stages.highestTarget };
  if (stages.highestTarget === 0) throw new UsageError('--stage: every target is 0');
  return { stages, time: stages.seconds, ...highest };
}

/** @returns {string} the help text */
export function help() {
  const lines = [
    'Usage: sprites-swarm COMMAND N [OPTION ...]',
    '       sprites-swarm agent URL [OPTION ...]',
    '       sprites-swarm compare A B [OPTION ...]',
    '',
    'Loads a sprites server with thousands of clients, and accounts for every sprite.',
    '',
    ...Object.entries(commands).flatMap(([name, { help }]) => helpEntry(`${name} N`, help)),
    ...helpEntry('agent URL', AGENT.help),
    ...helpEntry('compare A B', COMPARE.help)
  ];
  for (const group of new Set(optionTable.map((option) => option.group))) {
    lines.push('', `${group}:`);
    for (const option of optionTable.filter((one) => one.group === group)) {
      const { name, type, help, shown, default: usual = shown } = option;
      lines.push(...helpEntry(`--${name} ${type.unit}`, help, usual));
    }
  }
  lines.push(
    '',
    'Exit code: 0 success; 1 a sprite missing, repeated or damaged, or a broken contract; 2 the run',
    'could not start, or its result not be written; 3 a bound was exceeded, or its figure is unknown.'
  );
  return lines.join('\n');
}
