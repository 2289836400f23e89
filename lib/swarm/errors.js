/** The run can't begin: `message` is for a person, a line for each thing, and the exit code is 2. */
export class UsageError extends Error {}
