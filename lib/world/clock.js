/** The clock of the leases. It is monotonic, and is never compared with another machine's. */
export const clock = Object.freeze({
  /** @returns {number} milliseconds */
  now: () => performance.now(),

  /**
   * @param {number} ms
   * @param {() => void} callback
   * @returns {() => void} cancels the timer
   */
  after(ms, callback) {
    const timer = setTimeout(callback, ms);
    return () => clearTimeout(timer);
  }
});
