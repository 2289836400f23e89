/** Why a server is not one of the world. `code` is what `/status` shows; the message tells an operator what to do. */
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

/** A write that came too late: another server has written since. Nothing was written. */
export class Conflict extends Error {}
