/** The time that leases are counted by: it only goes forward, and no other machine's is compared with it. */
export const clock = Object.freeze({
  /** @returns {number} milliseconds */
  now: () => performance.now(),

  /**
   * @param {number} ms
   * @param {() => void} then
   * @returns {() => void} takes it back
   */
  after(ms, then) {
    const timer = setTimeout(then, ms);
    return () => clearTimeout(timer);
  }
});
