import { parentPort, workerData } from 'node:worker_threads';

/**
 * The thread of one game: has its reducer make one value of all inputs, whenever the main thread asks.
 * What goes wrong is told; what takes too long the main thread sees by itself.
 */

/** Tells that the game has failed; the thread is ended then. */
const fail = (why, message) => parentPort.postMessage({ failed: { why, message } });

/** As process.abort and chdir in every thread: what would end the server is not to be had. */
process.kill = () => {
  throw new Error('process.kill() is not supported in games');
};

const wordsOf = (error) => String(error?.message ?? error);

/** A value as JSON text of a bounded length. */
function textOf(value, what) {
  const text = JSON.stringify(value);
  if (text === undefined) throw new RangeError(`${what} is no JSON value`);
  const { most } = workerData;
  if (Buffer.byteLength(text) > most) throw new RangeError(`${what} has more than ${most} bytes`);
  return text;
}

async function load() {
  const { reduce } = await import(workerData.reduce);
  if (typeof reduce !== 'function') throw new TypeError('reduce.js exports no function reduce');
  return reduce;
}

/** The columns of the inputs' names, as long as there are players. */
function columnsOf(values, most, players) {
  return Object.fromEntries(
    workerData.names.map((name, i) => [name, values.subarray(i * most, i * most + players)])
  );
}

function serve(reduce) {
  let memory = JSON.parse(workerData.memory);
  let columns;

  function step({ players, time, step: since, page, round, settings, remember }) {
    const { numbers, fresh, values, most } = columns;
    const now = {
      players,
      numbers: numbers.subarray(0, players),
      fresh: fresh.subarray(0, players),
      inputs: columnsOf(values, most, players),
      ...{ time, step: since, page, round, settings }
    };
    let value;
    try {
      value = reduce(now, memory);
    } catch (error) {
      return fail('threw', wordsOf(error));
    }
    try {
      const text = textOf(value, 'the value');
      const kept = remember ? textOf(memory, 'the memory') : undefined;
      const { page: wanted, over } = typeof value === 'object' && value !== null ? value : {};
      parentPort.postMessage({ text, memory: kept, page: wanted, over: over === true });
    } catch (error) {
      return fail('bad-value', wordsOf(error));
    }
    return undefined;
  }

  parentPort.on('message', (message) => {
    columns = message.columns ?? columns;
    step(message);
  });
  parentPort.postMessage({ ready: true });
}

try {
  serve(await load());
} catch (error) {
  fail('not-loaded', wordsOf(error));
}
