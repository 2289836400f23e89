/**
 * Node opens its inspector at SIGUSR1, and every program that can connect to it runs any code in this
 * process, unless the program listens to the signal itself. To be imported before everything else:
 * what is left to the signal are the milliseconds in which Node itself starts.
 */

process.on('SIGUSR1', () => {});
