/**
 * Calls a callback of the program. An error in it is the program's own, and is reported as an uncaught error; the
 * client goes on.
 *
 * @template {any[]} Given
 * @template Said
 * @param {(...given: Given) => Said} callback
 * @param {Given} given
 * @returns {Said | undefined} undefined after an error
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
