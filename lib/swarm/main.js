import { writeFile } from 'node:fs/promises';

import { UsageError } from './errors.js';
import { help, parse } from './options.js';
import { createProgress } from './progress.js';
import { Run } from './run.js';
import { textOf } from './text.js';

/**
 * bin/sprites-swarm.
 *
 * @param {string[]} args the command line
 * @returns {Promise<number>} the exit code: 0, 1 for a fault, 2 when the run could not begin
 */
export async function main(args) {
  try {
    const options = parse(args);
    if (options.help) {
      process.stdout.write(`${help()}\n`);
      return 0;
    }
    return await swarm(options);
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    for (const line of error.message.split('\n')) process.stderr.write(`sprites-swarm: ${line}\n`);
    return 2;
  }
}

async function swarm(options) {
  const run = new Run(options, await createProgress(options.quiet));
  const interrupt = () => run.interrupt();
  process.on('SIGINT', interrupt).on('SIGTERM', interrupt);
  try {
    const result = await run.go();
    await tell(result, options);
    return result.faults.length > 0 ? 1 : 0;
  } finally {
    process.off('SIGINT', interrupt).off('SIGTERM', interrupt);
  }
}

async function tell(result, options) {
  if (options.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else if (!options.quiet) process.stdout.write(`${textOf(result, options)}\n`);
  if (options.quiet) for (const fault of result.faults) process.stderr.write(`FAULT: ${fault}\n`);
  if (!options.report) return;
  const { reportOf } = await import('./report.js');
  try {
    await writeFile(options.report, reportOf(result));
  } catch (error) {
    throw new UsageError(`the report can't be written: ${error.message}`);
  }
}
