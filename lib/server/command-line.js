import { loadAddon } from '../base/addon.js';
import { createLog, LineWriter, logInspectorRequests } from '../base/log.js';
import { UsageError } from '../base/option-help.js';
import { check, printCheck } from '../operator/host-check.js';
import { helpText, readOptions, unknownVariables } from '../operator/options.js';
import { describeFileLimit, fileLimit } from '../base/file-limit.js';
import { urlsOf } from '../base/port-errors.js';
import { version } from '../base/version.js';
import { grantCommand } from './grant.js';
import { readTrial, TRIAL_COMMAND, tryGame } from './try.js';

/**
 * The program as it is started from a command line: its options, its signals, and what it says. What it starts is
 * server.js's `start`, which bin/sprites hands in: nothing here imports what stands above it.
 */

/** @typedef {typeof import('../../server.js').start} Start */

/** How long the process may live on when its server has stopped, in milliseconds. */
const EXIT_DELAY = 500;

/**
 * Runs the program until a signal ends it.
 *
 * @param {Start} start
 * @param {string[]} args the command line, without node and program
 * @param {Record<string, string | undefined>} environment
 * @returns {Promise<void>} sets process.exitCode: 2 for a wrong option, 1 for what can't be had
 */
export async function main(start, args, environment) {
  // A pipe whose reader has gone does not end the server. The exit code says that an output,
  // such as that of --help, was not written.
  process.stdout.on('error', () => {
    process.exitCode = 1;
  });
  process.stderr.on('error', () => {});
  try {
    const [command, ...commandArgs] = args;
    if (command === 'grant') {
      print(await grantCommand(commandArgs));
      return;
    }
    const isTrial = command === 'play';
    const options = isTrial ? readTrial(commandArgs, environment) : readOptions(args, environment);
    if (options.help) print(helpText());
    else if (options.version) print(version());
    else if (options.check !== 'none') process.exitCode = printCheck(check(options.check, options));
    else {
      const unknown = unknownVariables(environment, isTrial ? TRIAL_COMMAND : {});
      await run(start, options, unknown).finally(exitSoon);
    }
  } catch (error) {
    // A signal has ended the start.
    if (error.name === 'AbortError') return;
    process.exitCode = error instanceof UsageError ? 2 : 1;
    process.stderr.write(`sprites: ${error.message}\n`);
  }
}

async function run(start, options, unknown) {
  const log = createLog(options.logLevel, options);
  for (const unknownVariable of unknown) log.warn(unknownVariable, 'a variable that is no option');
  logInspectorRequests(log);
  const stopRequest = listenForStop();
  // Certificate, key, tokens and the keys of grants are read anew. During the start it waits for the end of that; when
  // the start fails there is nothing to reload, and `main` says why it failed.
  process.on('SIGUSR2', () => {
    starting.then(
      ({ reload }) => reload(),
      () => {}
    );
  });
  // What loading has left; V8 would give it back 8 s later. In another program the heap is not the server's.
  loadAddon().giveBackHeap();
  const starting = start(options, log, stopRequest.signal, { ownsProcess: true });
  const server = await starting;
  const announce = createAnnouncer(log);
  let trial;
  try {
    if (options.play) trial = await tryGame(server, options, log);
    announcePorts(server, options, announce);
    if (trial) announce(`Try ${trial.name}: ${trial.url}`, {}, 'a game is tried');
  } catch (error) {
    // With its ports open it would go on, and would not hear signals.
    await server.stop();
    throw error;
  }
  const signal = await stopRequest.received;
  trial?.stop();
  announce(
    'Answering every parked poll.',
    { signal, drain: options.drain },
    'answers every parked poll, and ends'
  );
  await server.stop();
}

/**
 * Ends the process, if it does not end by itself, after a failure too. What still keeps it is a name that Node looks up,
 * of the upstream or of the NATS server: that can't be given up, takes as long as the resolver does, and `process.exit`
 * waits for it.
 */
function exitSoon() {
  setTimeout(() => loadAddon().endNow(process.exitCode ?? 0), EXIT_DELAY).unref();
  // Node that ends by itself takes its listeners away first: a signal that comes then would be how the process ended.
  process.once('beforeExit', () => process.exit());
}

/**
 * The listeners stay, so that a second signal does not end the process while it drains and saves its state.
 * SIGQUIT has no listener here: it ends the server at once, as a crash would.
 *
 * @returns {{received: Promise<string>, signal: AbortSignal}} `received` resolves to the signal's name; `signal` ends a
 *     start that is under way
 */
function listenForStop() {
  const startAbort = new AbortController();
  const received = new Promise((resolve) => {
    for (const name of ['SIGTERM', 'SIGINT', 'SIGHUP']) {
      process.on(name, () => {
        startAbort.abort();
        resolve(name);
      });
    }
  });
  return { received, signal: startAbort.signal };
}

/**
 * @returns {(line: string, fields: object, message: string) => void} says a line to a person or a program on
 *     stdout, and in the log, where that is for a machine
 */
function createAnnouncer(log) {
  const out = new LineWriter(1);
  const isTerminal = process.stderr.isTTY;
  return (line, fields, message) => {
    out.write(`${line}\n`);
    if (!isTerminal) log.info(fields, message);
  };
}

/** Says where the server listens, and for how many there is room. */
function announcePorts({ port, transientPort, tlsPort, adminPort }, options, announce) {
  const { host, adminHost, capacity, workers } = options;
  const [mainUrl, ...lanUrls] = urlsOf('http', host, port);
  const name = `Sprites ${version()}`;
  announce(`${name} listens on ${mainUrl}`, { url: mainUrl, version: version() }, 'listens');
  for (const url of lanUrls) announce(`From elsewhere: ${url}`, { url }, 'listens for others');
  if (transientPort) {
    const [url] = urlsOf('http', host, transientPort);
    announce(
      `Joins, throws and leaves alone are taken on ${url}`,
      { url },
      'the transient port listens'
    );
  }
  if (tlsPort) {
    const [url] = urlsOf('https', host, tlsPort);
    announce(`TLS is served on ${url}`, { url }, 'TLS is served');
  }
  if (adminPort) {
    const url = `${urlsOf('http', adminHost, adminPort)[0]}metrics`;
    announce(`Metrics are on ${url}`, { url }, 'metrics are served');
  }
  const files = fileLimit();
  announce(
    `There is room for ${capacity} clients. ${describeFileLimit(capacity, files, workers)}`,
    { capacity, files },
    'room for clients'
  );
}

function print(line) {
  process.stdout.write(`${line.trimEnd()}\n`);
}
