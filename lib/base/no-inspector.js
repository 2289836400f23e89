/**
 * Keeps Node from opening its inspector on SIGUSR1: a program that connects to the inspector can run any code in this
 * process. A listener for the signal prevents this. Import this module before all others; then the signal can only open
 * the inspector in the milliseconds of Node's own start.
 */

process.on('SIGUSR1', () => {});
