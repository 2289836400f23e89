import { runAgent } from './agent.js';
import { compareFiles } from './compare.js';
import { buildWhenWanted, ENGINE } from './build.js';
import { UsageError } from '../base/option-help.js';
import { help, parse } from './options.js';
import { createProgress } from './progress.js';
import { ReportFile } from './report-file.js';
import { Run } from './run.js';
import { onSignals } from './signals.js';
import { badLines, textOf } from './text.js';

/** Exit code when the run could not start, or its output could not be written. */
const NOT_DONE = 2;

/**
 * Runs bin/sprites-swarm.
 *
 * @param {string[]} args the command line
 * @returns {Promise<number>} the exit code: 0, 1 for a fault, NOT_DONE, 3 for an exceeded bound
 */
export async function main(args) {
  // A broken pipe on stdout does not end the run: the report would be lost, too.
  let unwritten = 0;
  process.stdout.on('error', () => {
    unwritten = NOT_DONE;
    process.exitCode ||= NOT_DONE;
  });
  process.stderr.on('error', () => {});
  return (await runOf(args)) || unwritten;
}

async function runOf(args) {
  try {
    const options = parse(args);
    if (options.help) {
      process.stdout.write(`${help()}\n`);
      return 0;
    }
    // Built before the run: the build blocks this process, on which nothing depends yet.
    if (options.command !== 'compare') buildWhenWanted(ENGINE, tellOnStderr);
    const run = { agent: runAgent, compare: compareFiles }[options.command] ?? swarm;
    return await run(options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    error.message.split('\n').forEach(tellOnStderr);
    return NOT_DONE;
  }
}

function tellOnStderr(line) {
  process.stderr.write(`sprites-swarm: ${line}\n`);
}

async function swarm(options) {
  const run = new Run(options, await createProgress(options.quiet));
  const report = options.report ? new ReportFile(options.report) : null;
  let metrics = null;
  const listenNoMore = onSignals(() => {
    const isSeenTo = run.interrupt();
    if (!isSeenTo) report?.close();
    return isSeenTo;
  });
  try {
    if (options.prometheus) metrics = await metricsAt(options.prometheus, run);
    const result = await run.go();
    tell(result, options);
    if (report) {
      const { reportOf } = await import('./report.js');
      report.write(reportOf(result));
    }
    return exitCode(result);
  } finally {
    listenNoMore();
    metrics?.close();
    report?.close();
  }
}

/** Serves the metrics. Its library is loaded only with --prometheus. */
async function metricsAt(port, run) {
  const { serveMetrics } = await import('./metrics.js');
  return serveMetrics(port, () => run.tally);
}

function exitCode({ faults, bounds }) {
  if (faults.length > 0) return 1;
  return bounds.every(({ holds }) => holds) ? 0 : 3;
}

function tell(result, options) {
  if (options.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else if (!options.quiet) process.stdout.write(`${textOf(result)}\n`);
  if (!options.quiet) return;
  for (const line of badLines(result)) process.stderr.write(`${line}\n`);
}
