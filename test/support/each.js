/**
 * Does `work` to all of them, so many at a time.
 *
 * @template T
 * @param {T[]} all
 * @param {number} atOnce
 * @param {(one: T) => Promise<void>} work
 * @returns {Promise<void>} when all are done; fails with the first that failed
 */
export async function each(all, atOnce, work) {
  const queue = all.values();
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      for (const one of queue) await work(one);
    })
  );
}
