import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { parentPort, workerData } from 'node:worker_threads';

/**
 * The thread of one game. For each message of the main thread, its reducer makes one value of all inputs. The thread
 * reports errors; the main thread measures timeouts itself.
 */

/** Reports that the game has failed. The main thread then ends this thread. */
const reportFailure = (why, error) =>
  parentPort.postMessage({ failed: { why, message: messageOf(error), stack: stackOf(error) } });

/** Blocks process.kill, which could end the server. Node itself blocks process.abort and chdir in threads. */
process.kill = () => {
  throw new Error('process.kill() is not supported in games');
};

const messageOf = (error) => String(error?.message ?? error);
const stackOf = (error) => String(error?.stack ?? '');

/** Returns a value as JSON text, or throws: the text has a bounded length. */
function toJson(value, name) {
  // JSON.stringify would return `{}` for a promise.
  if (value instanceof Promise) throw new TypeError('reduce is async: it must return its value');
  const text = JSON.stringify(value);
  if (text === undefined) throw new RangeError(`${name} is no JSON value`);
  const { most } = workerData;
  if (Buffer.byteLength(text) > most) throw new RangeError(`${name} has more than ${most} bytes`);
  return text;
}

/**
 * Returns the place of a syntax error in reduce.js, as a frame of a stack; undefined if it is not found. The error of
 * an import has no line; `node --check` has one, and runs none of the code.
 */
function frameOfSyntax(url) {
  const args = ['--input-type=module', '--check', '-'];
  const { stderr } = spawnSync(process.execPath, args, { input: readFileSync(new URL(url)) });
  const line = /^\[stdin\]:(\d+)$/m.exec(stderr)?.[1];
  return line && `    at ${url}:${line}`;
}

async function load() {
  const { reduce } = await import(workerData.reduce);
  if (typeof reduce !== 'function') throw new TypeError('reduce.js exports no function reduce');
  return reduce;
}

/** Returns the column of each input by its name, with one element per player. */
function columnsOf(values, most, players) {
  return Object.fromEntries(
    workerData.names.map((name, i) => [name, values.subarray(i * most, i * most + players)])
  );
}

function serve(reduce) {
  let memory = JSON.parse(workerData.memory);
  let content = JSON.parse(workerData.content);
  let columns;

  function reduceOnce({ players, time, step: stepTime, page, round, settings, remember }) {
    const { numbers, fresh, values, most } = columns;
    const now = {
      players,
      numbers: numbers.subarray(0, players),
      fresh: fresh.subarray(0, players),
      inputs: columnsOf(values, most, players),
      ...{ time, step: stepTime, page, round, settings, content }
    };
    let value;
    try {
      value = reduce(now, memory);
    } catch (error) {
      return reportFailure('threw', error);
    }
    try {
      const text = toJson(value, 'the value');
      const memoryText = remember ? toJson(memory, 'the memory') : undefined;
      const {
        page: nextPage,
        over,
        named
      } = typeof value === 'object' && value !== null ? value : {};
      parentPort.postMessage({
        text,
        memory: memoryText,
        page: nextPage,
        over: over === true,
        named
      });
    } catch (error) {
      return reportFailure('bad-value', error);
    }
    return undefined;
  }

  parentPort.on('message', (message) => {
    columns = message.columns ?? columns;
    if (message.content !== undefined) content = JSON.parse(message.content);
    reduceOnce(message);
  });
  parentPort.postMessage({ ready: true });
}

try {
  serve(await load());
} catch (error) {
  if (error instanceof SyntaxError) error.stack = frameOfSyntax(workerData.reduce) ?? error.stack;
  reportFailure('not-loaded', error);
}
