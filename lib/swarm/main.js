import { runAgent } from './agent.js';
import { compareFiles } from './compare.js';
import { buildIfStale, ENGINE } from './build.js';
import { UsageError } from '../base/option-help.js';
import { help, parse } from './options.js';
import { createProgress } from './progress.js';
import { ReportFile } from './report-file.js';
import { Run } from './run.js';
import { onSignals } from './signals.js';
import { failureLines, textOf } from './text.js';

/** Exit code when the run could not start, or its output could not be written. */
const EXIT_FAILED = 2;

/**
 * Runs bin/sprites-swarm.
 *
 * @param {string[]} args the command line
 * @returns {Promise<number>} the exit code: 0, 1 for a fault, EXIT_FAILED, 3 for an exceeded bound
 */
export async function main(args) {
  // A broken pipe on stdout does not end the run: the report would be lost, too.
  let outputFailure = 0;
  process.stdout.on('error', () => {
    outputFailure = EXIT_FAILED;
    process.exitCode ||= EXIT_FAILED;
  });
  process.stderr.on('error', () => {});
  return (await runCommand(args)) || outputFailure;
}

async function runCommand(args) {
  try {
    const options = parse(args);
    if (options.help) {
      process.stdout.write(`${help()}\n`);
      return 0;
    }
    // Built before the run: the build blocks this process, on which nothing depends yet.
    if (options.command !== 'compare') buildIfStale(ENGINE, printOnStderr);
    const runner = { agent: runAgent, compare: compareFiles }[options.command] ?? runSwarm;
    return await runner(options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    error.message.split('\n').forEach(printOnStderr);
    return EXIT_FAILED;
  }
}

function printOnStderr(line) {
  process.stderr.write(`sprites-swarm: ${line}\n`);
}

async function runSwarm(options) {
  const run = new Run(options, await createProgress(options.quiet));
  const report = options.report ? new ReportFile(options.report) : null;
  let metrics = null;
  const removeHandlers = onSignals(() => {
    const isHandled = run.interrupt();
    if (!isHandled) report?.close();
    return isHandled;
  });
  try {
    if (options.prometheus) metrics = await startMetrics(options.prometheus, run);
    const result = await run.execute();
    printResult(result, options);
    if (report) {
      const { reportOf } = await import('./report.js');
      report.write(reportOf(result));
    }
    return exitCode(result);
  } finally {
    removeHandlers();
    metrics?.close();
    report?.close();
  }
}

/** Serves the metrics. Its library is loaded only with --prometheus. */
async function startMetrics(port, run) {
  const { serveMetrics } = await import('./metrics.js');
  return serveMetrics(port, () => run.tally);
}

function exitCode({ faults, bounds }) {
  if (faults.length > 0) return 1;
  return bounds.every(({ holds }) => holds) ? 0 : 3;
}

function printResult(result, options) {
  if (options.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else if (!options.quiet) process.stdout.write(`${textOf(result)}\n`);
  if (!options.quiet) return;
  for (const line of failureLines(result)) process.stderr.write(`${line}\n`);
}
