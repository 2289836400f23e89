/**
 * Calls a function that the program has given. What it throws is the program's own fault, for its own handler of uncaught
 * errors; the client goes on.
 *
 * @template {any[]} Given
 * @template Said
 * @param {(...given: Given) => Said} callback
 * @param {Given} given
 * @returns {Said | undefined} undefined where it has thrown
 */
export function callBack(callback, ...given) {
  try {
    return callback(...given);
  } catch (error) {
    queueMicrotask(() => {
      throw error;
    });
    return undefined;
  }
}
