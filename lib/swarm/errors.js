/** The run can't begin: `message` is for a person, and the exit code is 2. */
export class UsageError extends Error {}

/** This host lacks something. `lines` say what, each with the command that mends it. */
export class NeedsError extends UsageError {
  /** @param {string[]} lines */
  constructor(lines) {
    super(lines.join('\n'));
    this.lines = lines;
  }
}
