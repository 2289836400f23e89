/** The reason why a server is not a member. `/status` shows its `code`; its message tells an operator what to do. */
export class WorldError extends Error {
  /**
   * @param {'unreachable' | 'credentials' | 'permissions' | 'no-jetstream' | 'no-replicas' | 'bad-bucket' | 'other-version' |
   *     'name-taken' | 'same-tag' | 'world-full'} code
   * @param {string} message
   */
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** A failed compare-and-set: another server has written meanwhile. Nothing was written. */
export class Conflict extends Error {}
