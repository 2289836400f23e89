/**
 * Calls a callback of the program. An error in it is the program's own, and is reported as an uncaught error; the
 * client goes on.
 *
 * @template {any[]} Arguments
 * @template Result
 * @param {(...args: Arguments) => Result} callback
 * @param {Arguments} args
 * @returns {Result | undefined} undefined after an error
 */
export function callBack(callback, ...args) {
  try {
    return callback(...args);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
    return undefined;
  }
}
